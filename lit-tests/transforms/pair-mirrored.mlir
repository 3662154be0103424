// RUN: mutad-opt %s -p pair-mirrored | filecheck %s

// A map over half of the points has both elements of a pair, another one that in the middle.
// CHECK-LABEL: @paired
// CHECK:         %half = arith.floordivsi
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%half) ins(%u_{{.*}}, %back_{{.*}}) outs(%u_{{.*}}, %u_{{.*}}) kinds ["store", "store"] {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: f64, %[[B:.*]]: f64):
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %a, %[[B]]
// CHECK-NEXT:      %[[Q:.*]] = arith.addf %[[A]], %[[P]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %a, %[[A]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[B]], %[[R]]
// CHECK-NEXT:      array.yield %[[Q]], %[[S]]
// CHECK:         array.map(%rest)
// CHECK:         func.return
func.func @paired(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%z : f64, %w : f64):
    %s = arith.addf %w, %z : f64
    array.yield %s : f64
  }
  func.return
}

// What is added to is read with the pair; a sum over all points has one term for both.
// CHECK-LABEL: @paired_with_a_sum
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%half) ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%u_{{.*}}, %u_{{.*}}, %sum_{{.*}}) kinds ["store", "store", "add"] {
// CHECK-NEXT:    ^{{.*}}(%[[B:.*]]: f64, %[[A:.*]]: f64):
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %a, %[[B]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %a, %[[A]]
// CHECK-NEXT:      %[[Q:.*]] = arith.addf %[[A]], %[[P]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[B]], %[[R]]
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[P]], %[[R]]
// CHECK-NEXT:      array.yield %[[Q]], %[[S]], %[[SUM]]
// CHECK:         array.map(%rest) ins({{.*}}) outs(%{{.*}}, %{{.*}} : {{.*}}) kinds ["add", "add"]
// CHECK:         func.return
func.func @paired_with_a_sum(%u : memref<?xf64>, %n : index, %a : f64, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  %sum = array.view %s[] dims [-1] extents(%n) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%t : memref<?xf64>) outs(%u, %sum : memref<?xf64>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
  ^bb0(%z : f64):
    array.yield %z, %z : f64, f64
  }
  func.return
}

// What is saved is copied before, from its first element to its last.
// CHECK-LABEL: @saved_before
// CHECK:         %row = ad.push
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%row : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%half) ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%{{.*}}, %{{.*}} : {{.*}}) kinds ["store", "store"]
// CHECK:         func.return
func.func @saved_before(%u : memref<?xf64>, %n : index, %a : f64, %tape : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  %row = ad.push %tape(%n) : memref<?xf64>
  array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%u, %row : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%z : f64, %w : f64):
    array.yield %z, %w : f64, f64
  }
  func.return
}

// Rows are mirrored along one axis; the other has all of its points.
// CHECK-LABEL: @paired_along_the_second_axis
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%m, %half)
// CHECK:         array.map(%m, %rest)
// CHECK:         func.return
func.func @paired_along_the_second_axis(%u : memref<?x?xf64>, %m : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%c0, %last] dims [0, 1] extents(%m, %n) steps(%c1, %cm1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, -1]>>
  %t = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%back : memref<?x?xf64, strided<[?, -1]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%m, %n) ins(%t : memref<?x?xf64>) outs(%u : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// The point in the middle of one axis would read what others in that row write.
// CHECK-LABEL: @kept_where_both_axes_are_mirrored
// CHECK:         array.map(%m, %n) ins(%back :
// CHECK:         array.map(%m, %n) ins(%t :
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_both_axes_are_mirrored(%u : memref<?x?xf64>, %m : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %end = arith.addi %m, %cm1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%end, %last] dims [0, 1] extents(%m, %n) steps(%cm1, %cm1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, -1]>>
  %t = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%back : memref<?x?xf64, strided<[?, -1]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%m, %n) ins(%t : memref<?x?xf64>) outs(%u : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// Element i is stored to i + 1: what a point reads, a pair further in stores to.
// CHECK-LABEL: @kept_where_the_image_is_shifted
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_the_image_is_shifted(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  %up = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%t : memref<?xf64>) outs(%up : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  func.return
}

// The map reads a neighbour as well, of another pair.
// CHECK-LABEL: @kept_where_another_element_is_read
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_another_element_is_read(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  %up = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%t, %up : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%u : memref<?xf64>) kinds ["add"] {
  ^bb0(%z : f64, %w : f64):
    %s = arith.addf %w, %z : f64
    array.yield %s : f64
  }
  func.return
}

// Behind the first map an element changes.
// CHECK-LABEL: @kept_where_the_array_changes_in_between
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_the_array_changes_in_between(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  memref.store %a, %u[%c1] : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_temporary_is_read_again
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_the_temporary_is_read_again(%u : memref<?xf64>, %n : index, %a : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  %z1 = memref.load %t[%c0] : memref<?xf64>
  func.return %z1 : f64
}

// CHECK-LABEL: @kept_where_maxima_are_stored
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_maxima_are_stored(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["max"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  func.return
}

// An output that is both what is mirrored and another one.
// CHECK-LABEL: @kept_where_outputs_share_memory
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_outputs_share_memory(%u : memref<?xf64>, %n : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%u, %back : memref<?xf64>, memref<?xf64, strided<[-1]>>) kinds ["add", "add"] {
  ^bb0(%z : f64):
    array.yield %z, %z : f64, f64
  }
  func.return
}

// Where they overlap is known when the function is called.
// CHECK-LABEL: @kept_where_arguments_may_overlap
// CHECK:         array.map(%n) ins(%back :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_arguments_may_overlap(%u : memref<?xf64>, %v : memref<?xf64>, %n : index, %a : f64) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  func.return
}

// In place without pairs: for fuse-elementwise.
// CHECK-LABEL: @kept_where_nothing_is_mirrored
// CHECK:         array.map(%n) ins(%u :
// CHECK:         array.map(%n) ins(%t
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_where_nothing_is_mirrored(%u : memref<?xf64>, %n : index, %a : f64) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %a, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%z : f64):
    array.yield %z : f64
  }
  func.return
}
