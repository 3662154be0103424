// RUN: mutad-opt %s -p jam-maps | filecheck %s

// Four rows have one map for their sums, each in a cell of its own, and one for their updates.
// CHECK-LABEL: @jammed
// CHECK-DAG:     %[[C1:.*]] = memref.alloca() : memref<f64>
// CHECK:         array.loop %j to
// CHECK:           array.loop %k to
// CHECK:             array.map(%m) ins(%by, %row, %row_1, %row_2, %row_3 : {{.*}}) kinds ["add", "add", "add", "add"] {
// CHECK-COUNT-4:       arith.mulf
// CHECK:             memref.load
// CHECK-NEXT:        memref.load
// CHECK-NEXT:        memref.load
// CHECK-NEXT:        memref.load
// CHECK-NEXT:        array.map(%m) ins(%by, %row, %row_1, %row_2, %row_3 : {{.*}}) outs(%row, %row_1, %row_2, %row_3 : {{.*}}) kinds ["store", "store", "store", "store"] {
// CHECK:         %trips = array.loop
// CHECK:         func.return
func.func @jammed(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// All rows behind one were updated by it; now a row is finished, with four of them at once.
// CHECK-LABEL: @interchanged_then_jammed
// CHECK:         array.loop
// CHECK:           array.loop
// CHECK:             array.map(%m) ins(%by, %row, %row_1, %row_2, %row_3 :
// CHECK:             array.map(%m) ins(%by, %row, %row_1, %row_2, %row_3 :
// CHECK:           array.loop {{.*}} to %{{.*}} do {
// CHECK:             array.loop
// CHECK:               array.map(%m) ins(%by_{{.*}}, %row_{{.*}} :
// CHECK:             arith.addf %e
// CHECK:         arith.addf %e
// CHECK:         func.return
func.func @interchanged_then_jammed(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %first = arith.addi %j, %c1 : index
    %left = arith.subi %n, %first : index
    %by = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%by : memref<?xf64, strided<[1]>>) outs(%by : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %half = arith.addf %e, %e : f64
      array.yield %half : f64
    }
    %trips_1 = array.loop %k to %left do {
      %jk = arith.addi %first, %k : index
      %row = array.view %a[%jk, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The row before is read as it is in the end.
// CHECK-LABEL: @kept_where_a_row_needs_the_one_before
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_a_row_needs_the_one_before(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %jk = arith.addi %j, %c1 : index
      %row = array.view %a[%jk, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %above = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.map(%m) ins(%above : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb2(%e : f64):
        array.yield %e : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows multiply a number of each step, in their order.
// CHECK-LABEL: @kept_where_a_step_hands_a_number_on
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_a_step_hands_a_number_on(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      %old = memref.load %t[%k] : memref<?xf64>
      %new = arith.mulf %old, %dot : f64
      memref.store %new, %t[%k] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What the last iteration leaves in the cell is read.
// CHECK-LABEL: @kept_where_the_last_sum_is_used_behind
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_the_last_sum_is_used_behind(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  %last = memref.load %cell[] : memref<f64>
  memref.store %last, %t[%c0] : memref<?xf64>
  func.return
}

// Iterations of the outer loop share nothing.
// CHECK-LABEL: @kept_where_all_rows_are_read_by_one_row_alone
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_all_rows_are_read_by_one_row_alone(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_rows_differ_in_length
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_rows_differ_in_length(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %more = arith.addi %j, %c1 : index
      %row = array.view %a[%j, %c0] dims [1] extents(%more) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%more) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%more) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %d1 = arith.subf %y1, %x1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_iteration_may_raise
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_an_iteration_may_raise(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      %bad = arith.cmpf olt, %dot, %zero : f64
      array.raise_if %bad, "ValueError", "below zero"
      array.yield
    }
    array.yield
  }
  func.return
}

// What a row is updated by may be another row.
// CHECK-LABEL: @kept_where_matrices_may_overlap
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_matrices_may_overlap(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %dot = memref.load %cell[] : memref<f64>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %p1 = arith.mulf %x1, %dot : f64
        %d1 = arith.subf %y1, %p1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_maxima_are_stored
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_maxima_are_stored(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %t : memref<?xf64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%by : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["max"] {
      ^bb1(%x1 : f64):
        array.yield %x1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What is left is the last one's last element: their order matters.
// CHECK-LABEL: @kept_where_rows_are_stored_to_one_number
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_rows_are_stored_to_one_number(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %s : memref<f64>, %n : index, %m : index, %m2 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cell = memref.alloca() : memref<f64>
  %last = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row, %last : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[0]>>) kinds ["store", "store"] {
      ^bb0(%x : f64, %y : f64):
        %d = arith.subf %y, %x : f64
        array.yield %d, %d : f64, f64
      }
      array.yield
    }
    array.yield
  }
  %v = memref.load %cell[] : memref<f64>
  memref.store %v, %s[] : memref<f64>
  func.return
}

// An adjoint goes backwards, and comes to what the iterations have in common last: the rows behind are first,
// one by one. All four add to one row of the shadow of q, in their order.
// CHECK-LABEL: @adjoint_of_rows
// CHECK:         array.loop
// CHECK:           array.loop
// CHECK:             array.loop
// CHECK:               array.map(%m)
// CHECK:           array.loop
// CHECK:             [[to:%to_[0-9]+]] = array.view %q_bar[
// CHECK-NOT:         array.view %q_bar[
// CHECK:             array.map(%m) ins({{.*}}) outs([[to]], %row_1, %row_2, %row_3, %row_4 : {{.*}}) kinds ["store", "store", "store", "store", "store"] {
// CHECK:         func.return
func.func @adjoint_of_rows(%a_bar : memref<?x?xf64>, %q_bar : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %s to %n do {
    %j = arith.subi %last, %s : index
    %count = arith.maxsi %j, %c0 : index
    %end = arith.subi %count, %c1 : index
    %row = array.view %a_bar[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %i to %count do {
      %k = arith.subi %end, %i : index
      %to = array.view %q_bar[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%to, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %w = arith.mulf %z, %y {ad.adjoint} : f64
        array.yield %z, %w : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The program's own sums keep the order of their terms.
// CHECK-LABEL: @kept_where_primal_rows_are_added_up
// CHECK:         array.loop %s to %n
// CHECK:           array.loop %i to %count
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_where_primal_rows_are_added_up(%a_bar : memref<?x?xf64>, %q_bar : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %s to %n do {
    %j = arith.subi %last, %s : index
    %count = arith.maxsi %j, %c0 : index
    %end = arith.subi %count, %c1 : index
    %row = array.view %a_bar[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %i to %count do {
      %k = arith.subi %end, %i : index
      %to = array.view %q_bar[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%to, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y : f64
        %w = arith.mulf %z, %y : f64
        array.yield %z, %w : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A row that is added to by all is read as well: the next iteration sees what the one before has added.
// CHECK-LABEL: @kept_where_the_shared_row_is_read
// CHECK:         array.loop %s to %n
// CHECK:           array.loop %i to %count
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_where_the_shared_row_is_read(%a_bar : memref<?x?xf64>, %q_bar : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %s to %n do {
    %j = arith.subi %last, %s : index
    %count = arith.maxsi %j, %c0 : index
    %end = arith.subi %count, %c1 : index
    %row = array.view %a_bar[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %i to %count do {
      %k = arith.subi %end, %i : index
      %to = array.view %q_bar[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%to, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%to, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %w = arith.mulf %z, %y {ad.adjoint} : f64
        array.yield %z, %w : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Two maps add to one row: each iteration would add by the first one before any adds by the second.
// CHECK-LABEL: @kept_where_two_maps_add_to_the_shared_row
// CHECK:         array.loop %s to %n
// CHECK:           array.loop %i to %count
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_where_two_maps_add_to_the_shared_row(%a_bar : memref<?x?xf64>, %q_bar : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %s to %n do {
    %j = arith.subi %last, %s : index
    %count = arith.maxsi %j, %c0 : index
    %end = arith.subi %count, %c1 : index
    %row = array.view %a_bar[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %i to %count do {
      %k = arith.subi %end, %i : index
      %to = array.view %q_bar[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%to, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %w = arith.mulf %z, %y {ad.adjoint} : f64
        array.yield %z, %w : f64, f64
      }
      array.map(%m) ins(%by : memref<?xf64, strided<[1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%x : f64):
        %z = arith.mulf %x, %x {ad.adjoint} : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A row of the tape of one iteration is made of the one before: four tapes are filled at once.
// CHECK-LABEL: @jammed_along_tapes
// CHECK:         array.loop %j to
// CHECK:           array.loop %k to
// CHECK:             %[[NEXT:.*]] = arith.addi %k, %c1
// CHECK:             %then = array.view %tapes[%{{.*}}, %[[NEXT]], %c0]
// CHECK:             array.map(%m) ins(%by, %now, %now_1, %now_2, %now_3 : {{.*}}) outs(%then, %then_1, %then_2, %then_3 : {{.*}}) kinds ["store", "store", "store", "store"] {
// CHECK:         func.return
func.func @jammed_along_tapes(%q : memref<?x?xf64>, %n : index, %m : index, %m2 : index, %longer : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tapes = array.alloc(%n, %longer, %m) : memref<?x?x?xf64>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %now = array.view %tapes[%j, %k, %c0] dims [2] extents(%m) steps(%c1) : memref<?x?x?xf64> -> memref<?xf64, strided<[1]>>
      %k1 = arith.addi %k, %c1 : index
      %then = array.view %tapes[%j, %k1, %c0] dims [2] extents(%m) steps(%c1) : memref<?x?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%by, %now : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%then : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %d1 = arith.subf %y1, %x1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The tape of an iteration is made of that of the one before.
// CHECK-LABEL: @kept_where_a_tape_needs_the_one_before
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_a_tape_needs_the_one_before(%q : memref<?x?xf64>, %n : index, %m : index, %m2 : index, %longer : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tapes = array.alloc(%n, %longer, %m) : memref<?x?x?xf64>
  %trips = array.loop %j to %n do {
    %j1 = arith.addi %j, %c1 : index
    %trips_1 = array.loop %k to %m2 do {
      %now = array.view %tapes[%j, %k, %c0] dims [2] extents(%m) steps(%c1) : memref<?x?x?xf64> -> memref<?xf64, strided<[1]>>
      %then = array.view %tapes[%j1, %k, %c0] dims [2] extents(%m) steps(%c1) : memref<?x?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%by, %now : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%then : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64, %y1 : f64):
        %d1 = arith.subf %y1, %x1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Each iteration fills rows of its own: there is no update that four of them would share.
// CHECK-LABEL: @kept_where_rows_are_made_of_another_array
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_rows_are_made_of_another_array(%q : memref<?x?xf64>, %n : index, %m : index, %m2 : index, %longer : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tapes = array.alloc(%n, %longer, %m) : memref<?x?x?xf64>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m2 do {
      %then = array.view %tapes[%j, %k, %c0] dims [2] extents(%m) steps(%c1) : memref<?x?x?xf64> -> memref<?xf64, strided<[1]>>
      %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%by : memref<?xf64, strided<[1]>>) outs(%then : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb1(%x1 : f64):
        %d1 = arith.addf %x1, %x1 : f64
        array.yield %d1 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
