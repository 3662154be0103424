// RUN: mutad-opt %s -p reorder-loops | filecheck %s

// The gradient without a budget: its loop goes upwards.
// CHECK-LABEL: func.func @whole(
// CHECK:         array.loop %[[J:.*]] to %n do {
// CHECK-NEXT:      {{.*}} = array.view %saved[%[[J]], %c0]
func.func @whole(%saved : memref<?x?xf64>, %u_shadow : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %saved, %c0 : memref<?x?xf64>
  %m = memref.dim %saved, %c1 : memref<?x?xf64>
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%u_shadow : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      %more = arith.mulf %e, %e {ad.adjoint} : f64
      array.yield %more : f64
    }
    array.yield
  }
  func.return
}

// So do steps that add to what they have in common, an array and a number, and to a row of their own.
// CHECK-LABEL: func.func @added(
// CHECK:         activation.steps @added_step {{.*}} within 4000 : i64 upwards moves
// CHECK:         activation.reverse_steps @added_step {{.*}} upwards moves
func.func @added(%u : memref<?xf64>, %k : memref<f64>, %rows : memref<?x?xf64>, %u_shadow : memref<?xf64>, %k_shadow : memref<f64>, %rows_shadow : memref<?x?xf64>) attributes {checkpointed = 4000 : i64} {
  %c0 = arith.constant 0 : index
  %count = arith.constant 3 : index
  %kept, %trips = activation.steps @added_step %count state %c0 saved %c0 to %c0 around %c0 %c0 %c0 %c0 (%u, %k, %rows : memref<?xf64>, memref<f64>, memref<?x?xf64>) within 4000 moves [0, 1, 2] reads [0, 1, 2] writes [0] live [0]
  activation.reverse_steps @added_step %kept (%u, %k, %rows : memref<?xf64>, memref<f64>, memref<?x?xf64>) shadows (%u_shadow, %k_shadow, %rows_shadow : memref<?xf64>, memref<f64>, memref<?x?xf64>) of [0, 1, 2] moves [0, 1, 2] reads [0, 1, 2] writes [0] live [0]
  func.return
}
func.func private @added_step(%i : index, %u : memref<?xf64>, %k : memref<f64>, %rows : memref<?x?xf64>) attributes {overlaps = []} {
  func.return
}
func.func private @added_step_forward(%i : index, %u : memref<?xf64>, %k : memref<f64>, %rows : memref<?x?xf64>) -> (memref<?xf64>, index, index) attributes {overlaps = [], changing = array<i64: 1>, live = array<i64: 1>, keeps = 3 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n, %i : memref<?xf64>, index, index
}
func.func private @added_step_backward(%saved : memref<?xf64>, %n : index, %i : index, %u_shadow : memref<?xf64>, %k_shadow : memref<f64>, %rows_shadow : memref<?x?xf64>) attributes {overlaps = [], kept = 3 : i64, live = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %so_far = memref.load %k_shadow[] : memref<f64>
  %row = array.view %rows_shadow[%i, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%saved, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%u_shadow, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["add", "store"] {
  ^bb0(%e : f64, %r : f64):
    %more = arith.mulf %e, %r {ad.adjoint} : f64
    %less = arith.subf %r, %e {ad.adjoint} : f64
    array.yield %more, %less : f64, f64
  }
  %first = memref.load %saved[%c0] : memref<?xf64>
  %sum = arith.addf %so_far, %first {ad.adjoint} : f64
  memref.store %sum, %k_shadow[] : memref<f64>
  func.return
}

// A step reads what the step behind it has left.
// CHECK-LABEL: func.func @handed_on(
// CHECK-NOT:     upwards
// CHECK:         func.return
func.func @handed_on(%u : memref<?xf64>, %u_shadow : memref<?xf64>) attributes {checkpointed = 4000 : i64} {
  %c0 = arith.constant 0 : index
  %count = arith.constant 3 : index
  %kept, %trips = activation.steps @handed_on_step %count state %c0 saved %c0 to %c0 around %c0 %c0 %c0 %c0 (%u : memref<?xf64>) within 4000 moves [0] reads [0] writes [0] live [0]
  activation.reverse_steps @handed_on_step %kept (%u : memref<?xf64>) shadows (%u_shadow : memref<?xf64>) of [0] moves [0] reads [0] writes [0] live [0]
  func.return
}
func.func private @handed_on_step(%i : index, %u : memref<?xf64>) attributes {overlaps = []} {
  func.return
}
func.func private @handed_on_step_forward(%i : index, %u : memref<?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 1>, live = array<i64: 1>, keeps = 2 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @handed_on_step_backward(%saved : memref<?xf64>, %n : index, %u_shadow : memref<?xf64>) attributes {overlaps = [], kept = 2 : i64, live = array<i64: 1>} {
  array.map(%n) ins(%saved, %u_shadow : memref<?xf64>, memref<?xf64>) outs(%u_shadow : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %s : f64):
    %scaled = arith.mulf %e, %s {ad.adjoint} : f64
    array.yield %scaled : f64
  }
  func.return
}

// A step takes the cotangent of a number away, which the last of them has stored.
// CHECK-LABEL: func.func @taken_away(
// CHECK-NOT:     upwards
// CHECK:         func.return
func.func @taken_away(%u : memref<?xf64>, %t : memref<f64>, %u_shadow : memref<?xf64>, %t_shadow : memref<f64>) attributes {checkpointed = 4000 : i64} {
  %c0 = arith.constant 0 : index
  %count = arith.constant 3 : index
  %kept, %trips = activation.steps @taken_away_step %count state %c0 saved %c0 to %c0 around %c0 %c0 %c0 %c0 (%u, %t : memref<?xf64>, memref<f64>) within 4000 moves [0, 1] reads [0] writes [1] live []
  activation.reverse_steps @taken_away_step %kept (%u, %t : memref<?xf64>, memref<f64>) shadows (%u_shadow, %t_shadow : memref<?xf64>, memref<f64>) of [0, 1] moves [0, 1] reads [0] writes [1] live []
  func.return
}
func.func private @taken_away_step(%i : index, %u : memref<?xf64>, %t : memref<f64>) attributes {overlaps = []} {
  func.return
}
func.func private @taken_away_step_forward(%i : index, %u : memref<?xf64>, %t : memref<f64>) -> (index) attributes {overlaps = [], changing = array<i64: 2>, live = array<i64>, keeps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  func.return %n : index
}
func.func private @taken_away_step_backward(%n : index, %u_shadow : memref<?xf64>, %t_shadow : memref<f64>) attributes {overlaps = [], kept = 1 : i64, live = array<i64>} {
  %zero = arith.constant 0.0 : f64
  %t_bar = memref.load %t_shadow[] : memref<f64>
  memref.store %zero, %t_shadow[] : memref<f64>
  array.map(%n) outs(%u_shadow : memref<?xf64>) kinds ["add"] {
    array.yield %t_bar : f64
  }
  func.return
}

// The shadow is another one in each step.
// CHECK-LABEL: func.func @in_turn(
// CHECK-NOT:     upwards
// CHECK:         func.return
func.func @in_turn(%u : memref<?xf64>, %v : memref<?xf64>, %u_shadow : memref<?xf64>, %v_shadow : memref<?xf64>) attributes {checkpointed = 4000 : i64} {
  %c0 = arith.constant 0 : index
  %count = arith.constant 3 : index
  %kept, %trips = activation.steps @in_turn_step %count state %c0 saved %c0 to %c0 around %c0 %c0 %c0 %c0 (%u, %v : memref<?xf64>, memref<?xf64>) within 4000 moves [1, 0] reads [0] writes [1] live [0]
  activation.reverse_steps @in_turn_step %kept (%u, %v : memref<?xf64>, memref<?xf64>) shadows (%u_shadow, %v_shadow : memref<?xf64>, memref<?xf64>) of [0, 1] moves [1, 0] reads [0] writes [1] live [0]
  func.return
}
func.func private @in_turn_step(%i : index, %u : memref<?xf64>, %v : memref<?xf64>) attributes {overlaps = []} {
  func.return
}
func.func private @in_turn_step_forward(%i : index, %u : memref<?xf64>, %v : memref<?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 1, 2>, live = array<i64: 1>, keeps = 2 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @in_turn_step_backward(%saved : memref<?xf64>, %n : index, %u_shadow : memref<?xf64>, %v_shadow : memref<?xf64>) attributes {overlaps = [], kept = 2 : i64, live = array<i64: 1>} {
  array.map(%n) ins(%saved : memref<?xf64>) outs(%u_shadow : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}
