// RUN: mutad-opt %s -p skew-vectors,eliminate-common | filecheck %s

// Each step stores behind what the next one reads, so four go together, each 8 elements behind the one before.
// The first element has a map of its own, which goes with the block that begins there.
// CHECK-LABEL: @four_steps_of_two_vectors
// CHECK:         %[[LARGE:.*]] = arith.cmpi sgt
// CHECK:         %[[LONG:.*]] = arith.cmpi sge, %n
// CHECK:         arith.andi %[[LARGE]], %[[LONG]]
// CHECK:         %[[TOGETHER:.*]] = arith.select
// CHECK:         array.loop %{{.*}} to %[[TOGETHER]] do
// CHECK:           array.loop %block to %{{.*}} do
// CHECK:             array.loop %t to %{{.*}} carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>)
// CHECK:               %[[BEGINS:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:               %[[FIRST:.*]] = arith.andi %{{.*}}, %[[BEGINS]]
// CHECK:               %[[ONE:.*]] = arith.select %[[FIRST]], %c1, %c0
// CHECK:               array.map(%[[ONE]])
// CHECK:               array.map(%count)
// CHECK:               array.yield %v, %u
// What is left of the steps begins with the vectors where they were.
// CHECK:         array.loop %{{.*}} to %{{.*}} carry(%{{.*}} = %u0 : memref<?xf64>, %{{.*}} = %v0 : memref<?xf64>)
// CHECK:           array.map(%c1)
// CHECK:           array.map(%n)
// CHECK-NOT:     array.map
func.func @four_steps_of_two_vectors(%x : memref<?xf64>, %steps : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.addi %n, %c2 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %first = array.view %u[%c0] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<1xf64, strided<[1]>>
    %there = array.view %v[%c0] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<1xf64, strided<[1]>>
    array.map(%c1) ins(%first : memref<1xf64, strided<[1]>>) outs(%there : memref<1xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %right = array.view %u[%c2] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%left, %right : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.addf %a, %b : f64
      array.yield %s : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// A step would have to stay far behind.
// CHECK-LABEL: @kept_where_a_step_reads_far_ahead
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_a_step_reads_far_ahead(%steps : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %size = arith.addi %n, %c4 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %far = array.view %u[%c4] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%far : memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// All steps add to one number, in their order.
// CHECK-LABEL: @kept_where_steps_add_to_one_number
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_steps_add_to_one_number(%steps : index, %n : index, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.addi %n, %c2 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %all = array.view %s[] dims [-1] extents(%n) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%n) ins(%left : memref<?xf64, strided<[1]>>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// The second map reads what the first one has stored.
// CHECK-LABEL: @kept_where_two_maps_are_long
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_two_maps_are_long(%steps : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.addi %n, %c2 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %again = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%left : memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n) ins(%here : memref<?xf64, strided<[1]>>) outs(%again : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// Rows of a tape come from far away, best in one piece.
// CHECK-LABEL: @kept_where_a_step_reads_a_row_of_a_tape
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_a_step_reads_a_row_of_a_tape(%steps : index, %n : index, %rows : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.addi %n, %c2 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %row = array.view %rows[%t, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%row : memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// Three vectors that move on are elsewhere after four steps.
// CHECK-LABEL: @kept_where_the_vectors_do_not_come_back
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_the_vectors_do_not_come_back(%steps : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.addi %n, %c2 : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %w0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1, %w1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>, %w = %w0 : memref<?xf64>) do {
    %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%left : memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %w, %u : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  func.return
}

// How far ahead a step reads is known at run time.
// CHECK-LABEL: @kept_where_the_distance_is_not_known
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_the_distance_is_not_known(%steps : index, %n : index, %k : index) {
  %c1 = arith.constant 1 : index
  %size = arith.addi %n, %k : index
  %u0 = array.alloc(%size) : memref<?xf64>
  %v0 = array.alloc(%size) : memref<?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %left = array.view %u[%k] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %here = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%left : memref<?xf64, strided<[1]>>) outs(%here : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}
