// RUN: mutad-opt %s -p vectorize-outer | filecheck %s
// RUN: mutad-opt %s -p vectorize-outer --run --only sums_side_by_side --args 'x=[[1, 2], [3, 5], [0, 1]], w=[1, 2], n=3, d=2, zero=0' | filecheck %s --check-prefix VALUES
// RUN: mutad-opt %s -p vectorize-outer --run --only extremes_are_taken_by_maps --args 'x=[[0, 3], [1, 2]], out=[0, 0], n=2, d=2, zero=0' | filecheck %s --check-prefix LARGEST
// RUN: mutad-opt %s -p vectorize-outer --run --only raises_as_written --args 'x=[[4, 9], [16, -1], [1, 1]], total=[0], n=3, d=2, zero=0' | filecheck %s --check-prefix RAISES

// The rows that points read again and again are packed; scratch memory has an axis for the points; `total` is
// handed on in their order.
// CHECK-LABEL: @sums_side_by_side
// CHECK:         array.loop %block to
// CHECK:           %x_1 = array.alloc(%{{.*}}, %points) : memref<?x?xf64>
// CHECK:           %s_1 = array.alloc(%points) : memref<?xf64>
// CHECK:           %t_1 = array.alloc(%{{.*}}, %points) : memref<?x?xf64>
// CHECK:           array.loop %c to %d do {
// CHECK-NEXT:        array.loop %e to %d do {
// CHECK-NEXT:          array.loop %[[p:.*]] to %points do {
// CHECK:                 %v = memref.load %x_1[%e, %[[p]]]
// CHECK:                 memref.store %{{.*}}, %t_1[%e, %[[p]]]
// CHECK:             %u = memref.load %w[%c]
// CHECK-NEXT:        array.loop %f to %d do {
// CHECK-NEXT:          array.loop %[[q:.*]] to %points do {
// CHECK-NEXT:            memref.load %t_1[%f, %[[q]]]
// CHECK:                 memref.store %sum, %s_1[%[[q]]]
// CHECK:             memref.store %{{.*}}, %mine[
// CHECK:           array.loop %{{.*}} to %points do {
// CHECK-NEXT:        %before = memref.load %total[]
// CHECK-NEXT:        memref.load %mine[
// CHECK-NEXT:        %more = arith.addf %before
// CHECK:             memref.store %more, %total[]
// VALUES: result = 22.14699704
func.func @sums_side_by_side(%x : memref<?x?xf64>, %w : memref<?xf64>, %n : index, %d : index, %zero : f64) -> f64 {
  %s = memref.alloca() : memref<f64>
  %total = memref.alloca() : memref<f64>
  %t = array.alloc(%d) : memref<?xf64>
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %c to %d do {
      %trips_2 = array.loop %e to %d do {
        %v = memref.load %x[%i, %e] : memref<?x?xf64>
        %y = math.sqrt %v : f64
        memref.store %y, %t[%e] : memref<?xf64>
        array.yield
      }
      %u = memref.load %w[%c] : memref<?xf64>
      %trips_3 = array.loop %f to %d do {
        %v = memref.load %t[%f] : memref<?xf64>
        %p = arith.mulf %u, %v : f64
        %old = memref.load %s[] : memref<f64>
        %sum = arith.addf %old, %p : f64
        memref.store %sum, %s[] : memref<f64>
        array.yield
      }
      array.yield
    }
    %mine = memref.load %s[] : memref<f64>
    %before = memref.load %total[] : memref<f64>
    %more = arith.addf %before, %mine : f64
    %all = arith.mulf %more, %more : f64
    memref.store %more, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}

// What a point computes does not raise in a block: where it would, the block's points run as they were written.
// CHECK-LABEL: @raises_as_written
// CHECK:         array.loop %block to
// CHECK:             memref.store %{{.*}}, %mine[
// CHECK:           %[[fails:.*]] = memref.load %raises[]
// CHECK-NEXT:      scf.if %[[fails]] {
// CHECK:             array.raise_if %negative
// CHECK:             array.raise_if %[[fails]], "ValueError"
// CHECK:           }{raises}
// CHECK-NOT:       raise_if
// CHECK:           memref.store %more{{.*}}, %sum[]
// RAISES: raises ValueError: math domain error
func.func @raises_as_written(%x : memref<?x?xf64>, %total : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %s = memref.alloca() : memref<f64>
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %c to %d do {
      %trips_2 = array.loop %e to %d do {
        %v = memref.load %x[%i, %e] : memref<?x?xf64>
        %negative = arith.cmpf olt, %v, %zero : f64
        array.raise_if %negative, "ValueError", "math domain error"
        %y = math.sqrt %v : f64
        %old = memref.load %s[] : memref<f64>
        %new = arith.addf %old, %y : f64
        memref.store %new, %s[] : memref<f64>
        array.yield
      }
      array.yield
    }
    %mine = memref.load %s[] : memref<f64>
    %before = memref.load %sum[] : memref<f64>
    %more = arith.addf %before, %mine : f64
    memref.store %more, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// A branch that only computes is a choice; what is not taken computes with 1.0.
// CHECK-LABEL: @branches_are_choices
// CHECK:         array.loop %e to %d do {
// CHECK:           array.loop %point
// CHECK:             %[[tame:.*]] = arith.select %high, %v, %{{.*}} : f64
// CHECK-NEXT:        %y = math.log %[[tame]]
// CHECK-NEXT:        arith.select %high, %y, %v
// CHECK-NOT:     scf.if
func.func @branches_are_choices(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %old = memref.load %s[] : memref<f64>
      %high = arith.cmpf ogt, %v, %old : f64
      %new = scf.if %high -> (f64) {
        %y = math.log %v : f64
        scf.yield %y : f64
      } else {
        scf.yield %v : f64
      }
      memref.store %new, %s[] : memref<f64>
      array.yield
    }
    %mine = memref.load %s[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_points_hand_on_in_an_inner_loop
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_points_hand_on_in_an_inner_loop(%x : memref<?x?xf64>, %n : index, %d : index, %s : f64) {
  %cell = memref.alloca() : memref<f64>
  memref.store %s, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Only part of the scratch array is stored before it is read.
// CHECK-LABEL: @kept_where_scratch_memory_holds_what_a_point_before_has_left
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_scratch_memory_holds_what_a_point_before_has_left(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %m : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %t = array.alloc(%d) : memref<?xf64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %e to %m do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      memref.store %y, %t[%e] : memref<?xf64>
      array.yield
    }
    memref.store %zero, %cell[] : memref<f64>
    %trips_2 = array.loop %f to %d do {
      %y = memref.load %t[%f] : memref<?xf64>
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_trips_depend_on_the_point
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_trips_depend_on_the_point(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %i do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The element of `x` that a point stores to, the next one reads.
// CHECK-LABEL: @kept_where_points_meet
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_points_meet(%x : memref<?x?xf64>, %n : index, %d : index, %zero : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    %j = arith.addi %i, %c1 : index
    memref.store %mine, %x[%c0, %j] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_exception_would_find_later_stores
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_an_exception_would_find_later_stores(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %negative = arith.cmpf olt, %v, %zero : f64
      array.raise_if %negative, "ValueError", "math domain error"
      %y = math.sqrt %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_rows_are_read_once
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_rows_are_read_once(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%i, %e] : memref<?x?xf64>
      %y = math.sqrt %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A sum of products alone is left to the order of loops, and to products.
// CHECK-LABEL: @kept_where_all_is_additions
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_all_is_additions(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %v : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_for_threads
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_for_threads(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  } {claimed}
  func.return
}

// A derivative would save what is overwritten, and what lies in scratch memory beside that.
// CHECK-LABEL: @kept_where_points_overwrite_what_they_read
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_points_overwrite_what_they_read(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %mine = memref.load %cell[] : memref<f64>
    %before = memref.load %out[%i] : memref<?xf64>
    %after = arith.mulf %before, %mine : f64
    memref.store %after, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// Equal extremes share the derivative evenly, which a map knows: it takes those of all points.
// CHECK-LABEL: @extremes_are_taken_by_maps
// CHECK:         array.loop %block to
// CHECK:           %t = array.alloc(%d, %points) : memref<?x?xf64>
// CHECK:           %[[t:.*]] = array.view %t[%{{.*}}, %{{.*}}] dims [0, 1] extents(%d, %points)
// CHECK-NEXT:      %[[most:.*]] = array.view %cell[%{{.*}}] dims [-1, 0] extents(%d, %points)
// CHECK-NEXT:      array.map(%d, %points) ins(%[[t]] : {{.*}}) outs(%[[most]] : {{.*}}) kinds ["max"] {
// LARGEST: out = [2.718281828, 20.08553692]
func.func @extremes_are_taken_by_maps(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %t = array.alloc(%d) : memref<?xf64>
    %cell = array.alloc() : memref<f64>
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      memref.store %y, %t[%e] : memref<?xf64>
      array.yield
    }
    %most = array.view %cell[] dims [-1] extents(%d) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%d) ins(%t : memref<?xf64>) outs(%most : memref<?xf64, strided<[0]>>) kinds ["max"] {
    ^bb0(%one : f64):
      array.yield %one : f64
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What is computed on the way to the largest is stored first, for all points.
// CHECK-LABEL: @extremes_of_expressions
// CHECK:         array.loop %block to
// CHECK:           array.alloc(%d, %points) : memref<?x?xf64>
// CHECK:           array.map(%d, %points) {{.*}} kinds ["min"] {
// CHECK-NEXT:      ^{{.*}}(%[[one:.*]]: f64):
// CHECK-NEXT:        array.yield %[[one]] : f64
func.func @extremes_of_expressions(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %inf : f64, %never : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    scf.if %never {
      array.raise_if %never, "ValueError", "never"
    } {raises}
    %cell = array.alloc() : memref<f64>
    memref.store %inf, %cell[] : memref<f64>
    %row = array.view %x[%c0, %i] dims [0] extents(%d) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %least = array.view %cell[] dims [-1] extents(%d) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%d) ins(%row : memref<?xf64, strided<[?]>>) outs(%least : memref<?xf64, strided<[0]>>) kinds ["min"] {
    ^bb0(%one : f64):
      %y = math.exp %one : f64
      array.yield %y : f64
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_extremes_go_to_memory_of_all
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_extremes_go_to_memory_of_all(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %t = array.alloc(%d) : memref<?xf64>
    %cell = array.alloc() : memref<f64>
    memref.store %zero, %cell[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %v = memref.load %x[%e, %i] : memref<?x?xf64>
      %y = math.exp %v : f64
      memref.store %y, %t[%e] : memref<?xf64>
      %old = memref.load %cell[] : memref<f64>
      %sum = arith.addf %old, %y : f64
      memref.store %sum, %cell[] : memref<f64>
      array.yield
    }
    %most = array.view %out[%i] dims [-1] extents(%d) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[0]>>
    array.map(%d) ins(%t : memref<?xf64>) outs(%most : memref<?xf64, strided<[0]>>) kinds ["max"] {
    ^bb0(%one : f64):
      array.yield %one : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_map_with_an_extreme_does_more
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_a_map_with_an_extreme_does_more(%x : memref<?x?xf64>, %out : memref<?xf64>, %n : index, %d : index, %zero : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %t = array.alloc(%d) : memref<?xf64>
    %cell = array.alloc() : memref<f64>
    memref.store %zero, %cell[] : memref<f64>
    %row = array.view %x[%c0, %i] dims [0] extents(%d) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %most = array.view %cell[] dims [-1] extents(%d) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%d) ins(%row : memref<?xf64, strided<[?]>>) outs(%most, %t : memref<?xf64, strided<[0]>>, memref<?xf64>) kinds ["max", "store"] {
    ^bb0(%one : f64):
      %y = math.exp %one : f64
      array.yield %one, %y : f64, f64
    }
    %mine = memref.load %cell[] : memref<f64>
    memref.store %mine, %out[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What points store to an array that is read after the loop is theirs to see, and no scratch memory.
// CHECK-LABEL: @results_of_all_points
// CHECK:         %block to
// CHECK:         memref.store %{{.*}}, %made[%{{.*}}]
// CHECK:         func.return %made
func.func @results_of_all_points(%x : memref<?x?xf64>, %w : memref<?xf64>, %n : index, %d : index, %zero : f64) -> memref<?xf64> {
  %s = memref.alloca() : memref<f64>
  %made = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %a = memref.load %x[%e, %i] : memref<?x?xf64>
      %b = memref.load %w[%e] : memref<?xf64>
      %c = arith.mulf %a, %b : f64
      %v = math.exp %c : f64
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %v : f64
      memref.store %sum, %s[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    memref.store %r, %made[%i] : memref<?xf64>
    array.yield
  }
  func.return %made : memref<?xf64>
}

// CHECK-LABEL: @kept_where_results_of_other_points_are_read
// CHECK-NOT:     %block to
func.func @kept_where_results_of_other_points_are_read(%x : memref<?x?xf64>, %n : index, %d : index) -> memref<?xf64> {
  %s = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %made = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    %first = memref.load %made[%c0] : memref<?xf64>
    memref.store %first, %s[] : memref<f64>
    %trips_1 = array.loop %e to %d do {
      %a = memref.load %x[%e, %i] : memref<?x?xf64>
      %v = math.exp %a : f64
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %v : f64
      memref.store %sum, %s[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    memref.store %r, %made[%i] : memref<?xf64>
    array.yield
  }
  func.return %made : memref<?xf64>
}

// Products and additions that wait for each other: a step of an oscillator.
// CHECK-LABEL: @long_steps
// CHECK:         %block to
func.func @long_steps(%x : memref<?xf64>, %y : memref<?xf64>, %k : f64, %n : index, %steps : index) {
  %s = memref.alloca() : memref<f64>
  %t = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %start = memref.load %x[%i] : memref<?xf64>
    memref.store %start, %s[] : memref<f64>
    memref.store %k, %t[] : memref<f64>
    %trips_1 = array.loop %e to %steps do {
      %a = memref.load %s[] : memref<f64>
      %v = memref.load %t[] : memref<f64>
      %a2 = arith.mulf %a, %a : f64
      %a3 = arith.mulf %a2, %a : f64
      %f = arith.mulf %a3, %k : f64
      %v1 = arith.subf %v, %f : f64
      %d = arith.mulf %v1, %k : f64
      %a1 = arith.addf %a, %d : f64
      memref.store %a1, %s[] : memref<f64>
      memref.store %v1, %t[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    memref.store %r, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
