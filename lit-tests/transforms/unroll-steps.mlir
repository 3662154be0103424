// RUN: mutad-opt %s -p unroll-steps,eliminate-common | filecheck %s

!grid = memref<?x?xf64>

// The update goes through a temporary, and reads coefficients that stay.
// CHECK-LABEL: @two_steps_are_one_body
// CHECK:         %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[MOST:.*]] = arith.divsi %trips, %[[TWO]]
// CHECK:         %[[DONE:.*]] = arith.muli %[[MOST]], %[[TWO]]
// CHECK:         %[[LEFT:.*]] = arith.subi %trips, %[[DONE]]
// CHECK:         array.loop %t to %[[MOST]] do
// CHECK:           array.alloc
// CHECK-COUNT-2:   array.map
// CHECK:           array.alloc
// CHECK-COUNT-2:   array.map
// CHECK:         array.loop %t_1 to %[[LEFT]] do
// CHECK:           arith.addi %[[DONE]], %t_1
// CHECK-COUNT-2:   array.map
// CHECK-NOT:     array.map
func.func @two_steps_are_one_body(%u : !grid, %k : !grid, %steps : index, %n : index) {
  %trips = array.loop %t to %steps do {
    %w = array.alloc(%n, %n) : !grid
    array.map(%n, %n) ins(%u, %k : !grid, !grid) outs(%w : !grid) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %c = arith.mulf %a, %b : f64
      array.yield %c : f64
    }
    array.map(%n, %n) ins(%w : !grid) outs(%u : !grid) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_every_grid_is_stored_to
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_every_grid_is_stored_to(%u : !grid, %steps : index, %n : index) {
  %trips = array.loop %t to %steps do {
    %w = array.alloc(%n, %n) : !grid
    array.map(%n, %n) ins(%u : !grid) outs(%w : !grid) kinds ["store"] {
    ^bb0(%a : f64):
      %c = arith.mulf %a, %a : f64
      array.yield %c : f64
    }
    array.map(%n, %n) ins(%w : !grid) outs(%u : !grid) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// Rows are read from the last to the first: no row of the next step is ready before all are.
// CHECK-LABEL: @kept_where_rows_turn_around
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_rows_turn_around(%u : !grid, %k : !grid, %steps : index, %n : index) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %trips = array.loop %t to %steps do {
    %w = array.alloc(%n, %n) : !grid
    %turned = array.view %u[%last, %c0] dims [0, 1] extents(%n, %n) steps(%cm1, %c1) : !grid -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %n) ins(%turned, %k : memref<?x?xf64, strided<[?, 1]>>, !grid) outs(%w : !grid) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %c = arith.mulf %a, %b : f64
      array.yield %c : f64
    }
    array.map(%n, %n) ins(%w : !grid) outs(%u : !grid) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_without_a_temporary
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_without_a_temporary(%u : !grid, %k : !grid, %steps : index, %n : index) {
  %trips = array.loop %t to %steps do {
    array.map(%n, %n) ins(%k : !grid) outs(%u : !grid) kinds ["add"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}
