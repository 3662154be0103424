// RUN: mutad-opt %s -p skew-steps,eliminate-common | filecheck %s

// Two grids that swap: step k stores what step k + 1 reads one row later, so each step is a row behind.
// CHECK-LABEL: @four_steps_of_two_grids_go_row_by_row
// CHECK:         %[[LARGE:.*]] = arith.cmpi sgt
// CHECK:         %[[ALL:.*]] = arith.divsi
// CHECK:         %[[TOGETHER:.*]] = arith.select %[[LARGE]], %[[ALL]]
// CHECK:         %[[DONE:.*]] = arith.muli %[[TOGETHER]]
// CHECK:         %[[LEFT:.*]] = arith.subi %{{.*}}, %[[DONE]]
// CHECK:         array.loop %{{.*}} to %[[TOGETHER]] do
// CHECK:           array.loop %step to %steps_1 do
// CHECK:             array.loop %t to %{{.*}} carry(%u = %u0 : memref<?x?xf64>, %v = %v0 : memref<?x?xf64>)
// CHECK:               %[[LATE:.*]] = arith.muli %t, %c1
// CHECK:               arith.subi %{{.*}}, %[[LATE]]
// CHECK:               array.map(%count, %m)
// CHECK:               array.yield %v, %u
// What is left of the steps begins with the grids where they were.
// CHECK:         array.loop %{{.*}} to %[[LEFT]] carry(%{{.*}} = %u0 : memref<?x?xf64>, %{{.*}} = %v0 : memref<?x?xf64>)
// CHECK:           array.map(%n, %m)
// CHECK-NOT:     array.map
func.func @four_steps_of_two_grids_go_row_by_row(%steps : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = arith.addi %n, %c2 : index
  %u0 = array.alloc(%rows, %m) : memref<?x?xf64>
  %v0 = array.alloc(%rows, %m) : memref<?x?xf64>
  %trips, %u1, %v1 = array.loop %t to %steps carry(%u = %u0 : memref<?x?xf64>, %v = %v0 : memref<?x?xf64>) do {
    %up = array.view %u[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %down = array.view %u[%c2, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %here = array.view %v[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%up, %down : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.addf %a, %b : f64
      array.yield %s : f64
    }
    array.yield %v, %u : memref<?x?xf64>, memref<?x?xf64>
  }
  func.return
}

// Three grids that move on are where they were after three steps.
// CHECK-LABEL: @three_steps_of_three_grids
// CHECK:         %[[THREE:.*]] = arith.constant 3 : index
// CHECK:         arith.divsi %{{.*}}, %[[THREE]]
// CHECK:             array.loop %t to %[[THREE]] carry(
func.func @three_steps_of_three_grids(%steps : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.addi %n, %c1 : index
  %u0 = array.alloc(%rows, %m) : memref<?x?xf64>
  %v0 = array.alloc(%rows, %m) : memref<?x?xf64>
  %w0 = array.alloc(%rows, %m) : memref<?x?xf64>
  %trips, %u1, %v1, %w1 = array.loop %t to %steps carry(%u = %u0 : memref<?x?xf64>, %v = %v0 : memref<?x?xf64>, %w = %w0 : memref<?x?xf64>) do {
    %down = array.view %u[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %here = array.view %v[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%down : memref<?x?xf64, strided<[?, 1]>>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield %v, %w, %u : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  }
  func.return
}

// `block-rows` has it.
// CHECK-LABEL: @kept_where_rows_need_no_others
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_rows_need_no_others(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %steps : index, %n : index, %m : index) {
  %trips = array.loop %t to %steps do {
    array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%v : memref<?x?xf64>) kinds ["add"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// The first row of a step is what the last one of the step before was.
// CHECK-LABEL: @kept_where_rows_turn_around
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_rows_turn_around(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %steps : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %trips = array.loop %t to %steps do {
    %turned = array.view %u[%last, %c0] dims [0, 1] extents(%n, %m) steps(%cm1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%turned : memref<?x?xf64, strided<[?, 1]>>) outs(%v : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%u : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_sum_would_change_its_order
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_where_a_sum_would_change_its_order(%u : memref<?x?xf64>, %sum : memref<f64>, %steps : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %s = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  %trips = array.loop %t to %steps do {
    array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%u, %s : memref<?x?xf64>, memref<?x?xf64, strided<[0, 0]>>) kinds ["store", "add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b, %a : f64, f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_vectors
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_vectors(%u : memref<?xf64>, %v : memref<?xf64>, %steps : index, %n : index) {
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_what_may_raise
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_what_may_raise(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %steps : index, %n : index, %m : index, %bad : i1) {
  %trips = array.loop %t to %steps do {
    array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%v : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.raise_if %bad, "ValueError", "no"
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_with_a_temporary
// CHECK-NOT:     arith.divsi
// CHECK:         func.return
func.func @kept_with_a_temporary(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %steps : index, %n : index, %m : index) {
  %trips = array.loop %t to %steps do {
    %w = array.alloc(%n, %m) : memref<?x?xf64>
    array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%w : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n, %m) ins(%w : memref<?x?xf64>) outs(%v : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// From one version of a grid to the next: the first row stays what it was, so all steps copy it first.
// CHECK-LABEL: @borders_go_first
// CHECK:         array.loop %{{.*}} to %[[TOGETHER:.*]] do
// CHECK-NEXT:      %[[START:.*]] = arith.muli %{{.*}}, %[[FOUR:.*]] : index
// CHECK-NEXT:      array.loop %t to %[[FOUR]] do
// CHECK:             array.map(%one, %m)
// CHECK-NOT:         array.map
// CHECK:           array.loop %step to %{{.*}} do
// CHECK:             array.loop %t_1 to %[[FOUR]] do
// CHECK-NOT:           array.map(%one, %m)
// CHECK:               array.map(%count, %m)
// What is left of the steps does each as the program has it.
// CHECK:         array.loop %t_2 to
// CHECK:           array.map(%n, %m)
// CHECK:           array.map(%one, %m)
// CHECK:         func.return
func.func @borders_go_first(%u : memref<?x?x?xf64>, %steps : index, %rows : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %less = arith.addi %rows, %cm1 : index
  %n = arith.maxsi %less, %c0 : index
  %one = arith.minsi %c1, %rows : index
  %trips = array.loop %t to %steps do {
    %t1 = arith.addi %t, %c1 : index
    %old = array.view %u[%t, %c0, %c0] dims [1, 2] extents(%rows, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %next = array.view %u[%t1, %c0, %c0] dims [1, 2] extents(%rows, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %up = array.view %old[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    %here = array.view %next[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%up : memref<?x?xf64, strided<[?, 1]>>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %first = array.view %old[%c0, %c0] dims [0, 1] extents(%one, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    %same = array.view %next[%c0, %c0] dims [0, 1] extents(%one, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%one, %m) ins(%first : memref<?x?xf64, strided<[?, 1]>>) outs(%same : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// The first row is set from the second, which the step has just stored.
// CHECK-LABEL: @a_border_that_needs_the_step_does_not_go_first
// CHECK-NOT:     array.map
// CHECK:         array.loop %step to
// CHECK:           array.loop %t to
// CHECK-NOT:         array.map(%one, %m)
// CHECK:             array.map(%count, %m)
// CHECK:             array.map(%count_1, %m)
// CHECK:         func.return
func.func @a_border_that_needs_the_step_does_not_go_first(%u : memref<?x?x?xf64>, %steps : index, %rows : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %less = arith.addi %rows, %cm1 : index
  %n = arith.maxsi %less, %c0 : index
  %one = arith.minsi %c1, %n : index
  %trips = array.loop %t to %steps do {
    %t1 = arith.addi %t, %c1 : index
    %old = array.view %u[%t, %c0, %c0] dims [1, 2] extents(%rows, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %next = array.view %u[%t1, %c0, %c0] dims [1, 2] extents(%rows, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %up = array.view %old[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    %here = array.view %next[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%up : memref<?x?xf64, strided<[?, 1]>>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %second = array.view %next[%c1, %c0] dims [0, 1] extents(%one, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    %first = array.view %next[%c0, %c0] dims [0, 1] extents(%one, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%one, %m) ins(%second : memref<?x?xf64, strided<[?, 1]>>) outs(%first : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}
