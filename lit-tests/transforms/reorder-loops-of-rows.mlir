// RUN: mutad-opt %s -p reorder-loops | filecheck %s
// RUN: mutad-opt %s -p 'reorder-loops{fastmath=true}' | filecheck %s --check-prefix FAST

!row = memref<?xf64, strided<[1]>>
!still = memref<?xf64, strided<[0]>>

// CHECK-LABEL: @turned_when_it_adds_cotangents
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      array.view %saved[%i, %c0]
func.func @turned_when_it_adds_cotangents(%saved : memref<?x?xf64>, %u : memref<?xf64>, %s : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row, %u : !row, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %z = arith.mulf %x, %y {ad.adjoint} : f64
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}

// The program's own sums have the program's order.
// CHECK-LABEL: @kept_when_the_primal_adds
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
// FAST-LABEL: @kept_when_the_primal_adds
// FAST:         array.loop %i to %n
// FAST-NEXT:      array.view %x[%i, %c0]
func.func @kept_when_the_primal_adds(%x : memref<?x?xf64>, %s : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row : !row) outs(%s : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      %z = arith.mulf %e, %e : f64
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @turned_when_rows_are_their_own
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      array.view %x[%i, %c0]
func.func @turned_when_rows_are_their_own(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row : !row) outs(%row : !row) kinds ["store"] {
    ^bb0(%e : f64):
      %z = arith.mulf %e, %e : f64
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_row_is_made_of_the_one_behind
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_when_a_row_is_made_of_the_one_behind(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %j1 = arith.addi %j, %c1 : index
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    %behind = array.view %x[%j1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%behind : !row) outs(%row : !row) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_other_rows_go_up
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_when_other_rows_go_up(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    %to = array.view %y[%i, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row : !row) outs(%to : !row) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// Each iteration finds a zero in the cell, and leaves one.
// CHECK-LABEL: @turned_when_a_cell_is_zero_between_iterations
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      memref.load %v[%i]
func.func @turned_when_a_cell_is_zero_between_iterations(%x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  memref.store %zero, %cell[] : memref<f64>
  %spread = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !still
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %e = memref.load %v[%j] : memref<?xf64>
    %old = memref.load %cell[] : memref<f64>
    %new = arith.addf %old, %e {ad.adjoint} : f64
    memref.store %new, %cell[] : memref<f64>
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%spread : !still) outs(%row : !row) kinds ["add"] {
    ^bb0(%b : f64):
      array.yield %b : f64
    }
    memref.store %zero, %cell[] : memref<f64>
    array.yield
  }
  func.return
}

// The first iteration finds something else, and the first would be another.
// CHECK-LABEL: @kept_when_the_first_iteration_finds_another_number
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_when_the_first_iteration_finds_another_number(%x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index, %begin : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  memref.store %begin, %cell[] : memref<f64>
  %spread = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !still
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %e = memref.load %v[%j] : memref<?xf64>
    %old = memref.load %cell[] : memref<f64>
    %new = arith.addf %old, %e {ad.adjoint} : f64
    memref.store %new, %cell[] : memref<f64>
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%spread : !still) outs(%row : !row) kinds ["add"] {
    ^bb0(%b : f64):
      array.yield %b : f64
    }
    memref.store %zero, %cell[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_last_iteration_leaves_a_number
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_when_the_last_iteration_leaves_a_number(%x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cell = memref.alloca() : memref<f64>
  %spread = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !still
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %e = memref.load %v[%j] : memref<?xf64>
    memref.store %e, %cell[] : memref<f64>
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%spread : !still) outs(%row : !row) kinds ["store"] {
    ^bb0(%b : f64):
      array.yield %b : f64
    }
    array.yield
  }
  %left = memref.load %cell[] : memref<f64>
  func.return %left : f64
}

// CHECK-LABEL: @kept_when_it_may_raise
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_when_it_may_raise(%x : memref<?x?xf64>, %bad : memref<?xi1>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %wrong = memref.load %bad[%j] : memref<?xi1>
    array.raise_if %wrong, "ValueError", "wrong"
    %row = array.view %x[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row : !row) outs(%row : !row) kinds ["store"] {
    ^bb0(%e : f64):
      %z = arith.mulf %e, %e : f64
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}

// Within a budget the functions of steps follow the gradient that runs none again: it has this sum in its order.
// CHECK-LABEL: @kept_in_the_gradient
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func @kept_in_the_gradient(%s : memref<f64>, %saved : memref<?x?xf64>, %u : memref<?xf64>, %u_shadow : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    %x = memref.load %s[] : memref<f64>
    memref.store %x, %s[] : memref<f64>
    array.map(%m) ins(%row, %u : !row, memref<?xf64>) outs(%u_shadow : memref<?xf64>) kinds ["add"] {
    ^bb0(%a : f64, %b : f64):
      %z = arith.mulf %a, %b {ad.adjoint} : f64
      array.yield %z : f64
    }
    array.yield
  } loc("sum.py":4:5)
  func.return
}

// CHECK-LABEL: @kept_in_a_step_backward
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %j = arith.subi
func.func private @kept_in_a_step_backward(%step : index, %saved : memref<?x?xf64>, %u : memref<?xf64>, %u_shadow : memref<?xf64>, %n : index, %m : index)
    attributes {live = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
    array.map(%m) ins(%row, %u : !row, memref<?xf64>) outs(%u_shadow : memref<?xf64>) kinds ["add"] {
    ^bb0(%a : f64, %b : f64):
      %z = arith.mulf %a, %b {ad.adjoint} : f64
      array.yield %z : f64
    }
    array.yield
  } loc("sum.py":4:5)
  func.return
}
