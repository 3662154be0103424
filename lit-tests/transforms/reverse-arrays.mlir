// RUN: mutad-opt %s -p reverse-arrays | filecheck %s
// RUN: mutad-opt %s -p 'reverse-arrays{sums=true}' | filecheck %s --check-prefix SUMS

// CHECK-LABEL: @an_array_that_is_read_backwards_is_read_from_a_copy
// CHECK:         %r_reversed = array.alloc
// CHECK:         %[[LYING:.*]] = array.view %r[%[[LAST:.*]]] dims [0]
// CHECK:         array.map({{.*}}) ins(%[[LYING]] : memref<?xf64, strided<[-1]>>) outs(%r_reversed :
// CHECK:         array.loop %k
// CHECK:           %[[AT:.*]] = arith.subi %[[LAST]], %k
// CHECK:           %from = array.view %r_reversed[%[[AT]]] dims [0] extents(%m) steps({{.*}}) : memref<?xf64> -> memref<?xf64, strided<[1]>>
// CHECK-NOT:     outs(%[[LYING]]
func.func @an_array_that_is_read_backwards_is_read_from_a_copy(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @an_array_that_is_stored_to_is_copied_back
// CHECK:         %y_reversed = array.alloc
// CHECK:         %[[LYING:.*]] = array.view %y[
// CHECK:         array.loop %k
// CHECK:           outs(%to : memref<?xf64, strided<[1]>>)
// CHECK:         array.map({{.*}}) ins(%y_reversed : memref<?xf64>) outs(%[[LYING]] : memref<?xf64, strided<[-1]>>) kinds ["store"]
func.func @an_array_that_is_stored_to_is_copied_back(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %to = array.view %y[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[1]>>) outs(%to : memref<?xf64, strided<[-1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @elements_of_an_array_that_is_stored_to_are_of_the_copy
// CHECK:         %y_reversed = array.alloc
// CHECK:         array.loop %k
// CHECK:           %[[AT:.*]] = arith.subi %{{.*}}, %m
// CHECK:           memref.load %y_reversed[%[[AT]]]
// CHECK:           memref.store %{{.*}}, %y_reversed[
func.func @elements_of_an_array_that_is_stored_to_are_of_the_copy(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %to = array.view %y[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[1]>>) outs(%to : memref<?xf64, strided<[-1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %old = memref.load %y[%m] : memref<?xf64>
    %new = arith.negf %old : f64
    memref.store %new, %y[%m] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @elements_of_an_array_that_is_only_read_stay
// CHECK:         array.loop %k
// CHECK:           memref.load %r[%m]
// CHECK:           array.view %r_reversed[
func.func @elements_of_an_array_that_is_only_read_stay(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %old = memref.load %r[%m] : memref<?xf64>
    memref.store %old, %y[%m] : memref<?xf64>
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_reverse_sweep_goes_down
// CHECK:         %[[COUNT:.*]] = arith.subi
// CHECK:         %r_reversed = array.alloc
// CHECK:           array.view %r_reversed[
func.func @a_reverse_sweep_goes_down(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %j = arith.subi %last, %k : index
    %m = arith.addi %j, %c1 : index
    %from = array.view %r[%j] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @the_whole_array_may_be_read_each_time
// CHECK:         %r_reversed = array.alloc
func.func @the_whole_array_may_be_read_each_time(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %m = memref.dim %r, %c0 : memref<?xf64>
  %end = arith.subi %m, %c1 : index
  %trips = array.loop %k to %n do {
    %from = array.view %r[%end] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @maps_in_branches_read_the_copy_too
// CHECK:         %r_reversed = array.alloc
// CHECK:           scf.if
// CHECK:             array.view %r_reversed[
func.func @maps_in_branches_read_the_copy_too(%r : memref<?xf64>, %y : memref<?xf64>, %n : index, %b : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    scf.if %b {
      %again = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
      array.map(%m) ins(%again : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      scf.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_loop_also_goes_forwards
// CHECK-NOT:     array.alloc
func.func @kept_where_the_loop_also_goes_forwards(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %front = array.view %r[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%front : memref<?xf64, strided<[1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_nothing_goes_forwards
// CHECK-NOT:     array.alloc
func.func @kept_where_nothing_goes_forwards(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[-1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_another_name_stores_to_the_array
// CHECK-NOT:     array.alloc
func.func @kept_where_another_name_stores_to_the_array(%r : memref<?xf64>, %y : memref<?xf64>, %n : index, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %part = array.view %r[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    memref.store %x, %part[%c0] : memref<?xf64, strided<[1]>>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_arguments_may_share_memory
// CHECK-NOT:     array.alloc
func.func @kept_where_arguments_may_share_memory(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_only_a_branch_reads_backwards
// CHECK-NOT:     array.alloc
func.func @kept_where_only_a_branch_reads_backwards(%r : memref<?xf64>, %y : memref<?xf64>, %n : index, %b : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    scf.if %b {
      %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
      array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      scf.yield
    }
    array.yield
  }
  func.return
}

// Eight iterations would read less than what the copy has.
// CHECK-LABEL: @kept_where_the_part_jumps
// CHECK-NOT:     array.alloc
func.func @kept_where_the_part_jumps(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %c64 = arith.constant 64 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %c64, %c1 : index
    %far = arith.muli %c64, %k : index
    %from = array.view %r[%far] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_part_is_loaded
// CHECK-NOT:     array.alloc
func.func @kept_where_the_part_is_loaded(%r : memref<?xf64>, %y : memref<?xf64>, %n : index, %places : memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %at = memref.load %places[%k] : memref<?xindex>
    %from = array.view %r[%at] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_maps_are_short
// CHECK-NOT:     array.alloc
func.func @kept_where_maps_are_short(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %m = arith.constant 8 : index
  %trips = array.loop %k to %n do {
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @an_iteration_that_only_reads_backwards_may_raise
// CHECK:         %r_reversed = array.alloc
func.func @an_iteration_that_only_reads_backwards_may_raise(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %bad = arith.cmpi eq, %k, %n : index
    array.raise_if %bad, "ValueError", "no"
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_view_may_be_from_before_the_loop
// CHECK:         %r_reversed = array.alloc
// CHECK:         %from = array.view %r_reversed[
// CHECK:         array.loop
func.func @a_view_may_be_from_before_the_loop(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %m = memref.dim %r, %c0 : memref<?xf64>
  %last = arith.subi %m, %c1 : index
  %from = array.view %r[%last] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %trips = array.loop %k to %n do {
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_iteration_that_stores_may_raise
// CHECK-NOT:     array.alloc
func.func @kept_where_an_iteration_that_stores_may_raise(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %bad = arith.cmpi eq, %k, %n : index
    array.raise_if %bad, "ValueError", "no"
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%to : memref<?xf64, strided<[1]>>) outs(%from : memref<?xf64, strided<[-1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// A sum has the bits that it has in a step, which is no loop; a function without derivative has no steps.
// CHECK-LABEL: @kept_where_a_map_sums_up
// CHECK-NOT:     array.alloc
// SUMS-LABEL:  @kept_where_a_map_sums_up
// SUMS:          %r_reversed = array.alloc
func.func @kept_where_a_map_sums_up(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %cell = memref.alloca() : memref<f64>
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %other = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%m) ins(%from, %other : memref<?xf64, strided<[-1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %e : f64):
      %p = arith.mulf %x, %e : f64
      array.yield %p : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_iterations_are_few
// CHECK-NOT:     array.alloc
func.func @kept_where_iterations_are_few(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %few = arith.constant 2 : index
  %trips = array.loop %k to %few do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_another_view_has_the_view
// CHECK-NOT:     array.alloc
func.func @kept_where_another_view_has_the_view(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %part = array.view %from[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64, strided<[-1]>> -> memref<?xf64, strided<[-1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%part : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_in_loops_of_loops
// CHECK-NOT:     array.alloc
func.func @kept_in_loops_of_loops(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %trips_1 = array.loop %i to %n do {
      %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
      %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// One element of it is a view without an axis.
// CHECK-LABEL: @kept_where_a_view_is_one_element
// CHECK-NOT:     _reversed
func.func @kept_where_a_view_is_one_element(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %trips = array.loop %k to %n do {
    %m = arith.addi %k, %c1 : index
    %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%from : memref<?xf64, strided<[-1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %one = array.view %r[%k] dims [] extents() steps() : memref<?xf64> -> memref<f64, strided<[]>>
    %first = array.view %y[%c0] dims [] extents() steps() : memref<?xf64> -> memref<f64, strided<[]>>
    array.map() ins(%one : memref<f64, strided<[]>>) outs(%first : memref<f64, strided<[]>>) kinds ["store"] {
    ^bb0(%v : f64):
      array.yield %v : f64
    }
    array.yield
  }
  func.return
}
