// RUN: mutad-opt %s -p fuse-rows,eliminate-common | filecheck %s

// u[1:-1] = u[:-2] + u[2:]: the store is one row behind the sum, and the buffer has a row more than a step (where
// rows are elements, a cache line more).
// CHECK-LABEL: @an_update_in_place_follows_one_row_behind
// CHECK:         %[[LINE:.*]] = arith.constant 8 : index
// CHECK-NEXT:    %rows = arith.maxsi %{{.*}}, %[[LINE]]
// CHECK:         %[[MORE:.*]] = arith.addi %rows, %[[LINE]]
// CHECK-NEXT:    %[[HELD:.*]] = arith.maxsi %[[MORE]], %c1
// CHECK-NEXT:    %t = array.alloc(%[[HELD]])
// CHECK-NEXT:    array.loop %step to %steps
// CHECK:           array.map(%count) ins(%left_1, %right_1 {{.*}} outs(%t_1
// CHECK:           array.map(%count_1) ins(%t_2 {{.*}} outs(%mid_1
// The last row that a step has filled is still to be stored: it moves to the front.
// CHECK:           array.map(%[[LINE]]) ins(%t_3 {{.*}} outs(%t_4
// CHECK:           array.yield
// CHECK-NOT:     array.map
func.func @an_update_in_place_follows_one_row_behind(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %mid = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %right = array.view %u[%c2] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%left, %right : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %s = arith.addf %a, %b : f64
    array.yield %s : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%mid : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// u[:-1] = 2 * u[1:] reads ahead: the store need not wait.
// CHECK-LABEL: @an_update_that_reads_ahead_waits_for_nothing
// CHECK:         %t = array.alloc(%rows)
// CHECK:         array.loop
// CHECK:           array.map(%count) ins(%next_1
// CHECK:           array.map(%count) ins(%t_1 {{.*}} outs(%here_1
// CHECK-NEXT:      ^bb
// CHECK-NEXT:        array.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      array.yield
func.func @an_update_that_reads_ahead_waits_for_nothing(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %here = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %next = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%next : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    %s = arith.addf %a, %a : f64
    array.yield %s : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// The later map reads rows 0 and 2 of the temporary, which must not have been overwritten when it comes to it.
// Moving two rows is cheap beside eight, but what buffers hold should stay in the cache, too.
// CHECK-LABEL: @rows_that_are_read_late_stay_in_the_buffer
// CHECK:         %[[SHARE:.*]] = arith.constant 131072
// CHECK-NEXT:    %[[FIT:.*]] = array.floordiv %[[SHARE]], %[[LENGTH:.*]] : index
// CHECK-NEXT:    %[[MANY:.*]] = arith.constant 8
// CHECK-NEXT:    %[[LESS:.*]] = arith.minsi %[[FIT]], %[[MANY]]
// CHECK:         %[[MORE:.*]] = arith.addi %rows, %c2
// CHECK-NEXT:    %[[HELD:.*]] = arith.maxsi %[[MORE]], %c1
// CHECK-NEXT:    %t = array.alloc(%[[HELD]], %m)
func.func @rows_that_are_read_late_stay_in_the_buffer(%n : index, %m : index, %u : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  %last = array.view %t[%c2, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%last : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%n, %m) ins(%t, %last : memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>) outs(%u : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %f : f64):
    %s = arith.addf %e, %f : f64
    array.yield %s : f64
  }
  func.return
}

// Rows of three arrays, two more of %u than a step has, and one of the others: as many as a first cache holds. In
// steps of one row the two rows of the buffer take turns, and none is moved; each begins at a line of the cache.
// CHECK-LABEL: @single_rows_take_turns
// CHECK:         %[[HELD:.*]] = arith.constant 4096 : index
// CHECK-NEXT:    %[[FIT:.*]] = array.floordiv %[[HELD]], %[[LENGTH:.*]] : index
// CHECK-NEXT:    %[[BETWEEN:.*]] = arith.constant -4 : index
// CHECK-NEXT:    %[[LEFT:.*]] = arith.addi %[[FIT]], %[[BETWEEN]]
// CHECK-NEXT:    %[[ARRAYS:.*]] = arith.constant 3 : index
// CHECK-NEXT:    %[[EACH:.*]] = array.floordiv %[[LEFT]], %[[ARRAYS]]
// CHECK-NEXT:    %[[NEAR:.*]] = arith.maxsi %[[EACH]], %c1
// CHECK-NEXT:    arith.minsi %{{.*}}, %[[NEAR]]
// CHECK:         %[[SINGLE:.*]] = arith.cmpi eq, %rows, %c1
// CHECK:         %[[ODD:.*]] = arith.ori %{{.*}}, %c1
// CHECK-NEXT:    %[[WIDE:.*]] = arith.muli %[[ODD]], %{{.*}}
// CHECK-NEXT:    %[[COLUMNS:.*]] = arith.select %[[SINGLE]], %[[WIDE]], %m
// CHECK-NEXT:    %t = array.alloc(%{{.*}}, %[[COLUMNS]])
// CHECK:           %[[TURN:.*]] = arith.remsi %first, %c2
// CHECK-NEXT:      %[[ROW:.*]] = arith.select %[[SINGLE]], %[[TURN]], %c1
// CHECK-NEXT:      %t_1 = array.view %t[%[[ROW]], %c0] {{.*}} extents(%count, %m)
// CHECK:           %[[BACK:.*]] = arith.subi %[[LOW:.*]], %first
// CHECK-NEXT:      %[[BEHIND:.*]] = arith.addi %[[BACK]], %c1
// CHECK-NEXT:      %[[TURN:.*]] = arith.remsi %[[LOW]], %c2
// CHECK-NEXT:      arith.select %[[SINGLE]], %[[TURN]], %[[BEHIND]]
// CHECK:           %[[MOVED:.*]] = arith.select %[[SINGLE]], %c0, %c1
// CHECK:           array.map(%[[MOVED]], %m)
func.func @single_rows_take_turns(%u : memref<?x?xf64>, %k : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %above = array.view %u[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %here = array.view %u[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %below = array.view %u[%c2, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%above, %below, %k : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64, %f : f64):
    %s = arith.addf %a, %b : f64
    %g = arith.mulf %s, %f : f64
    array.yield %g : f64
  }
  array.map(%n, %m) ins(%t, %k : memref<?x?xf64>, memref<?x?xf64>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%e : f64, %f : f64):
    %g = arith.mulf %e, %f : f64
    array.yield %g : f64
  }
  func.return
}

// Two operands of one map that begin a row apart are at the two places; which is whose changes with each step.
// CHECK-LABEL: @views_take_turns_from_where_they_begin
// CHECK:           %[[TURN:.*]] = arith.remsi %first, %[[TWO:.*]] : index
// CHECK-NEXT:      %[[PLACE:.*]] = arith.select %[[SINGLE:.*]], %[[TURN]], %c1
// CHECK-NEXT:      array.view %t[%[[PLACE]], %c0]
// CHECK:           %[[LOW:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:           %[[TURN:.*]] = arith.remsi %[[LOW]], %[[TWO]]
// CHECK-NEXT:      %[[PLACE:.*]] = arith.select %[[SINGLE]], %[[TURN]], %{{.*}}
// CHECK-NEXT:      %[[FIRST:.*]] = array.view %t[%[[PLACE]], %c0]
// CHECK-NEXT:      %upper = array.view %[[FIRST]][%c0, %c0]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[LOW]], %c1
// CHECK-NEXT:      %[[TURN:.*]] = arith.remsi %[[NEXT]], %[[TWO]]
// CHECK-NEXT:      %[[PLACE:.*]] = arith.select %[[SINGLE]], %[[TURN]], %{{.*}}
// CHECK-NEXT:      %[[SECOND:.*]] = array.view %t[%[[PLACE]], %c0]
// CHECK-NEXT:      %lower = array.view %[[SECOND]][%c0, %c0]
func.func @views_take_turns_from_where_they_begin(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  %t = array.alloc(%more, %m) : memref<?x?xf64>
  array.map(%more, %m) ins(%u : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  %upper = array.view %t[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %lower = array.view %t[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %m) ins(%upper, %lower : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) outs(%v : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.subf %b, %a : f64
    array.yield %d : f64
  }
  func.return
}

// A row of each of two versions on a tape is not the same row.
// CHECK-LABEL: @versions_are_arrays_of_their_own
// CHECK:         %[[ARRAYS:.*]] = arith.constant 4 : index
// CHECK:         arith.constant -1 : index
// CHECK:         array.floordiv %{{.*}}, %[[ARRAYS]]
func.func @versions_are_arrays_of_their_own(%versions : memref<?x?x?xf64>, %u : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = array.view %versions[%c0, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %other = array.view %versions[%c1, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %above = array.view %u[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %here = array.view %u[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%above, %one, %other : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64, %c : f64):
    %s = arith.addf %a, %b : f64
    %d = arith.addf %s, %c : f64
    array.yield %d : f64
  }
  array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// A map that looks at two rows of the buffer at once needs them side by side. They are moved, so a step is not smaller.
// CHECK-LABEL: @rows_that_are_read_together_take_no_turns
// CHECK-NOT:     arith.constant 4096
// CHECK:         %t = array.alloc(%{{.*}}, %m)
// CHECK-NOT:     arith.remsi
// CHECK:           array.map(%c1, %m) ins(%t_3 {{.*}} outs(%t_4
// CHECK-NOT:     arith.remsi
// CHECK:         func.return
func.func @rows_that_are_read_together_take_no_turns(%n : index, %m : index, %s : memref<?x?xf64>, %x : memref<?x?xf64>) {
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%bar : f64):
    array.yield %bar : f64
  }
  array.map(%more, %m) ins(%t, %t : memref<?x?xf64>, memref<?x?xf64>) outs(%s : memref<?x?xf64>) kinds ["add"] window(%n, %m) shifts [0, 0, 1, 0] zeros [0, 1] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.addf %a, %b : f64
    array.yield %d : f64
  }
  func.return
}

// Rows of which a later map reads the one before, too, are needed for three steps.
// CHECK-LABEL: @rows_that_are_needed_longer_take_no_turns
// CHECK-NOT:     arith.constant 4096
// CHECK:         %t = array.alloc(%{{.*}}, %m)
// CHECK-NOT:     arith.remsi
// CHECK:         func.return
func.func @rows_that_are_needed_longer_take_no_turns(%u : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %here = array.view %u[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %there = array.view %u[%c2, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%here : memref<?x?xf64, strided<[?, 1]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%there : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Planes take no turns: of several rows that one map goes over, each has its ends.
// CHECK-LABEL: @planes_take_no_turns
// CHECK-NOT:     arith.constant 4096
// CHECK:         %t = array.alloc(%{{.*}}, %m, %l)
// CHECK-NOT:     arith.remsi
// CHECK:         func.return
func.func @planes_take_no_turns(%u : memref<?x?x?xf64>, %n : index, %m : index, %l : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %above = array.view %u[%c0, %c0, %c0] dims [0, 1, 2] extents(%n, %m, %l) steps(%c1, %c1, %c1) : memref<?x?x?xf64> -> memref<?x?x?xf64, strided<[?, ?, 1]>>
  %here = array.view %u[%c1, %c0, %c0] dims [0, 1, 2] extents(%n, %m, %l) steps(%c1, %c1, %c1) : memref<?x?x?xf64> -> memref<?x?x?xf64, strided<[?, ?, 1]>>
  %below = array.view %u[%c2, %c0, %c0] dims [0, 1, 2] extents(%n, %m, %l) steps(%c1, %c1, %c1) : memref<?x?x?xf64> -> memref<?x?x?xf64, strided<[?, ?, 1]>>
  %t = array.alloc(%n, %m, %l) : memref<?x?x?xf64>
  array.map(%n, %m, %l) ins(%above, %below : memref<?x?x?xf64, strided<[?, ?, 1]>>, memref<?x?x?xf64, strided<[?, ?, 1]>>) outs(%t : memref<?x?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %s = arith.addf %a, %b : f64
    array.yield %s : f64
  }
  array.map(%n, %m, %l) ins(%t : memref<?x?x?xf64>) outs(%here : memref<?x?x?xf64, strided<[?, ?, 1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Sums of the rows are read in the rows that they are of; the check of extents may be first.
// CHECK-LABEL: @sums_of_rows_are_read_at_once
// CHECK:         array.raise_if
// CHECK:         %t = array.alloc(%rows, %m)
// CHECK:         array.loop %step to %steps
// CHECK:           array.map(%count, %m) ins(%x_1 {{.*}} outs(%t_1, %sums_of
// CHECK:           array.map(%count_1, %m) ins(%t_2, %sums_of
func.func @sums_of_rows_are_read_at_once(%n : index, %n2 : index, %m : index, %x : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  %sums = array.alloc(%n) : memref<?xf64>
  %sums_of = array.view %sums[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t, %sums_of : memref<?x?xf64>, memref<?x?xf64, strided<[1, 0]>>) kinds ["store", "add"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  %differ = arith.cmpi ne, %n, %n2 : index
  array.raise_if %differ, "ValueError", "no"
  array.map(%n2, %m) ins(%t, %sums_of : memref<?x?xf64>, memref<?x?xf64, strided<[1, 0]>>) outs(%x : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %s : f64):
    %d = arith.divf %a, %s : f64
    array.yield %d : f64
  }
  func.return
}

// The sums of columns are whole only at the end.
// CHECK-LABEL: @apart_where_sums_of_columns_are_read
// CHECK-NOT:     array.loop
func.func @apart_where_sums_of_columns_are_read(%n : index, %m : index, %x : memref<?x?xf64>, %sums : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %columns = array.view %sums[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t, %columns : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) kinds ["store", "add"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  array.map(%n, %m) ins(%t, %columns : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) outs(%x : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %s : f64):
    %d = arith.divf %a, %s : f64
    array.yield %d : f64
  }
  func.return
}

// x[:] = x[::-1]: the last row is needed first.
// CHECK-LABEL: @apart_where_rows_are_walked_against_each_other
// CHECK-NOT:     array.loop
func.func @apart_where_rows_are_walked_against_each_other(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %last = arith.addi %n, %cm1 : index
  %back = array.view %x[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_a_row_is_too_far_away
// CHECK-NOT:     array.loop
func.func @apart_where_a_row_is_too_far_away(%x : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %here = array.view %x[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %there = array.view %x[%c9] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%here : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%there : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_arguments_may_share_memory
// CHECK-NOT:     array.loop
func.func @apart_where_arguments_may_share_memory(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) attributes {overlaps = [[1, 2]]} {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Where it raises, the first map has written all of %y.
// CHECK-LABEL: @apart_where_something_may_raise_in_between
// CHECK-NOT:     array.loop
func.func @apart_where_something_may_raise_in_between(%n : index, %c : i1, %x : memref<?xf64>, %y : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  array.raise_if %c, "ValueError", "no"
  array.map(%n) ins(%t : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @an_element_that_is_read_in_between_is_read_behind
// CHECK:         array.loop %step
// CHECK:         %[[FIRST:.*]] = memref.load %y[%c0]
// CHECK-NEXT:    func.return %[[FIRST]]
func.func @an_element_that_is_read_in_between_is_read_behind(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  %first = memref.load %y[%c0] : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return %first : f64
}

// CHECK-LABEL: @apart_where_the_element_is_needed
// CHECK-NOT:     array.loop
func.func @apart_where_the_element_is_needed(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  %first = memref.load %y[%c0] : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %d = arith.subf %e, %first : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_what_is_read_in_between_is_overwritten
// CHECK-NOT:     array.loop
func.func @apart_where_what_is_read_in_between_is_overwritten(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  %first = memref.load %y[%c0] : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %d = arith.addf %e, %e : f64
    array.yield %d : f64
  }
  func.return %first : f64
}

// The adjoint of u[1:-1] = f(u): what is taken out of the shadow is collected two rows further on.
// CHECK-LABEL: @what_is_gathered_is_at_hand
// CHECK:         %t = array.alloc(%{{.*}}, %m)
// CHECK:         array.loop %step to %steps
// CHECK:           array.map(%count, %m) ins(%mid_1 {{.*}} outs(%mid_1, %t_1
// CHECK:           %count_1 = arith.maxsi
// CHECK-NEXT:      %[[BACK:.*]] = arith.addi %first
// CHECK-NEXT:      %[[LOW:.*]] = arith.maxsi %[[BACK]], %c0
// CHECK:           %[[ORIGIN:.*]] = arith.subi %first, %[[LOW]]
// CHECK:           array.map(%count_1, %m) ins(%t_2, %t_2, %t_2 {{.*}} outs(%s_1 {{.*}} window(%count_2, %m) origin(%[[ORIGIN]], %c0) shifts [0, 0, 1, 0, 2, 0]
// CHECK:           array.map(%c2, %m) ins(%t_3 {{.*}} outs(%t_4
// CHECK:           array.yield
// CHECK-NOT:     array.map
func.func @what_is_gathered_is_at_hand(%n : index, %m : index, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f64
  %more = arith.addi %n, %c2 : index
  %mid = array.view %s[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%mid : memref<?x?xf64, strided<[?, 1]>>) outs(%mid, %t : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>) kinds ["store", "store"] {
  ^bb0(%bar : f64):
    array.yield %zero, %bar : f64, f64
  }
  array.map(%more, %m) ins(%t, %t, %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>) outs(%s : memref<?x?xf64>) kinds ["add"] window(%n, %m) shifts [0, 0, 1, 0, 2, 0] zeros [0, 1, 2] {
  ^bb0(%a : f64, %b : f64, %c : f64):
    %d = arith.addf %a, %b : f64
    %e = arith.addf %d, %c : f64
    array.yield %e : f64
  }
  func.return
}

// Row 0 would be read as the nearest one before there is one.
// CHECK-LABEL: @apart_where_a_map_gathers_from_rows_ahead
// CHECK-NOT:     array.loop
func.func @apart_where_a_map_gathers_from_rows_ahead(%n : index, %m : index, %x : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c2 = arith.constant 2 : index
  %more = arith.addi %n, %c2 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%bar : f64):
    array.yield %bar : f64
  }
  array.map(%more, %m) ins(%t, %t : memref<?x?xf64>, memref<?x?xf64>) outs(%s : memref<?x?xf64>) kinds ["add"] window(%n, %m) shifts [1, 0, 2, 0] zeros [0] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.mulf %a, %b : f64
    array.yield %d : f64
  }
  func.return
}

// Of three rows the second map has two, the third one: each does those that there are.
// CHECK-LABEL: @maps_of_different_numbers_of_rows
// CHECK:         %[[LATE:.*]] = arith.addi %fewer, %c1
// CHECK-NEXT:    %[[ALL:.*]] = arith.maxsi %n, %[[LATE]]
// CHECK:         array.loop %step to %steps
// CHECK:           arith.minsi %{{.*}}, %n
// CHECK:           array.map(%count, %m) ins(%x_1 {{.*}} outs(%t_1
// CHECK:           arith.minsi %{{.*}}, %fewer
// CHECK:           array.map(%count_1, %m) ins(%here, %next {{.*}} outs(%y_1
func.func @maps_of_different_numbers_of_rows(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf64>
  %less = arith.addi %n, %cm1 : index
  %fewer = arith.maxsi %less, %c0 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  %here = array.view %t[%c0, %c0] dims [0, 1] extents(%fewer, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %next = array.view %t[%c1, %c0] dims [0, 1] extents(%fewer, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%fewer, %m) ins(%here, %next : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) outs(%y : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.subf %b, %a : f64
    array.yield %d : f64
  }
  func.return
}

// What goes over the same array behind the maps with temporaries comes along, a sum of all rows does not.
// CHECK-LABEL: @what_reads_the_same_rows_comes_along
// CHECK:         array.loop %step
// CHECK:           array.map
// CHECK:           array.map
// CHECK:           array.map({{.*}} outs(%z_1
// CHECK:           array.yield
// CHECK:         array.map(%n, %m) ins(%y {{.*}} outs(%all
func.func @what_reads_the_same_rows_comes_along(%n : index, %m : index, %x : memref<?x?xf64>, %y : memref<?x?xf64>, %z : memref<?x?xf64>, %sum : memref<f64>) {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n, %m) ins(%y : memref<?x?xf64>) outs(%z : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %all = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  array.map(%n, %m) ins(%y : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Vectors are in the cache as a whole, or no better for steps.
// CHECK-LABEL: @apart_where_a_vector_gathers
// CHECK-NOT:     array.loop
func.func @apart_where_a_vector_gathers(%n : index, %x : memref<?xf64>, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%more) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.addf %a, %b : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_arrays_lie_column_by_column
// CHECK-NOT:     array.loop
func.func @apart_where_arrays_lie_column_by_column(%n : index, %m : index, %x : memref<?x?xf64, strided<[1, ?]>>) {
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64, strided<[1, ?]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%x : memref<?x?xf64, strided<[1, ?]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_no_temporary_is_handed_on
// CHECK-NOT:     array.loop
func.func @apart_where_no_temporary_is_handed_on(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %z : memref<?xf64>) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%y : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// What is returned keeps all its rows.
// CHECK-LABEL: @whole_where_a_temporary_is_returned
// CHECK:         %t = array.alloc(%n)
// CHECK-NOT:     array.loop
// CHECK:         func.return %t
func.func @whole_where_a_temporary_is_returned(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) -> memref<?xf64> {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return %t : memref<?xf64>
}

// Several tangents go along: a step has as many numbers, and so fewer elements.
// CHECK-LABEL: @steps_of_vectors_have_as_many_numbers
// CHECK:         %[[BLOCK:.*]] = arith.constant 128 : index
// CHECK:         %[[SMALL:.*]] = arith.constant 256 : index
// CHECK:         arith.cmpi slt, %{{.*}}, %[[SMALL]]
// CHECK-NEXT:    arith.select %{{.*}}, %{{.*}}, %[[BLOCK]]
// CHECK:         array.loop %step to %steps
func.func @steps_of_vectors_have_as_many_numbers(%n : index, %x : memref<?xf64>, %d : memref<?xvector<8xf64>>) {
  %t = array.alloc(%n) : memref<?xvector<8xf64>>
  array.map(%n) ins(%x, %d : memref<?xf64>, memref<?xvector<8xf64>>) outs(%t : memref<?xvector<8xf64>>) kinds ["store"] {
  ^bb0(%a : f64, %b : vector<8xf64>):
    %s = vector.broadcast %a : f64 to vector<8xf64>
    %p = arith.mulf %s, %b : vector<8xf64>
    array.yield %p : vector<8xf64>
  }
  array.map(%n) ins(%t : memref<?xvector<8xf64>>) outs(%d : memref<?xvector<8xf64>>) kinds ["store"] {
  ^bb1(%c : vector<8xf64>):
    array.yield %c : vector<8xf64>
  }
  func.return
}

// The sum of a row comes first, in rows of one number; those that follow decide how many fit the cache.
// CHECK-LABEL: @blocks_are_of_the_longest_rows
// CHECK:         [[LENGTH:%[0-9]+]] = arith.maxsi %m, %c1 : index
// CHECK-NEXT:    [[BLOCK:%[0-9]+]] = arith.constant 1024 : index
// CHECK-NEXT:    array.floordiv [[BLOCK]], [[LENGTH]] : index
// CHECK:         array.loop %step to %steps do
!sums = memref<?x1xf64>
!sum = memref<?x?xf64, strided<[1, 0]>>
func.func @blocks_are_of_the_longest_rows(%n : index, %m : index, %x : memref<?x?xf64>, %y : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %s = array.alloc(%n, %c1) : !sums
  array.map(%n, %c1) outs(%s : !sums) kinds ["store"] {
    array.yield %zero : f64
  }
  %t = array.view %s[%c0, %c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : !sums -> !sum
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%t : !sum) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%n, %m) ins(%x, %t : memref<?x?xf64>, !sum) outs(%y : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %d = arith.subf %a, %b : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @the_longer_of_rows_that_are_known_at_run_time
// CHECK:         [[SHORT:%[0-9]+]] = arith.maxsi %k, %c1 : index
// CHECK-NEXT:    [[LENGTH:%[0-9]+]] = arith.maxsi %m, [[SHORT]] : index
// CHECK-NEXT:    [[BLOCK:%[0-9]+]] = arith.constant 1024 : index
// CHECK-NEXT:    array.floordiv [[BLOCK]], [[LENGTH]] : index
func.func @the_longer_of_rows_that_are_known_at_run_time(%n : index, %k : index, %m : index, %x : memref<?x?xf64>, %y : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  %few = array.view %t[%c0, %c0] dims [0, 1] extents(%n, %k) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %some = array.view %x[%c0, %c0] dims [0, 1] extents(%n, %k) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %k) ins(%some : memref<?x?xf64, strided<[?, 1]>>) outs(%few : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  func.return
}

// Nothing but rows of one number.
// CHECK-LABEL: @rows_of_one_number
// CHECK:         %rows = arith.maxsi
// CHECK:         array.loop %step to %steps do
func.func @rows_of_one_number(%n : index, %x : memref<?x1xf64>, %y : memref<?x1xf64>) {
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n, %c1) : memref<?x1xf64>
  array.map(%n, %c1) ins(%x : memref<?x1xf64>) outs(%t : memref<?x1xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%n, %c1) ins(%t : memref<?x1xf64>) outs(%x, %y : memref<?x1xf64>, memref<?x1xf64>) kinds ["store", "add"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  func.return
}
