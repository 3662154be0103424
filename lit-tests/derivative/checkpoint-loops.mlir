// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000}' | filecheck %s
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000},reverse' --run --only squares_gradient --args 'u=[1.0,2.0], n=2, u_shadow=[1.0,1.0]' | filecheck %s --check-prefix VALUES
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000},reverse' | mutad-opt -p measure-steps | filecheck %s --check-prefix SIZES

// The body becomes a function, of which each iteration is a call.
// CHECK-LABEL: @squares
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      activation.call @squares_step(%i, %u{{.*}} frames 0 : i64 reads [1 : i64] writes [1 : i64]
// CHECK-NEXT:      array.yield
// CHECK-NEXT:    } {checkpointed = 1000 : i64, overwritten = array<i64>}
// CHECK-LABEL: func.func private @squares_step(%i: index, %u: memref<?xf64>)
// CHECK-SAME:    changing = array<i64: 1>
// CHECK:         array.map
// CHECK-NEXT:    ^bb0
// (u**2)**2, whose derivative is 4 u**3.
// VALUES:        u = [1, 16]
// VALUES:        u_shadow = [4, 32]
// An item has a head of 24 bytes; a record is the extent, the segment, and a word in front of the segment.
// SIZES-LABEL: @squares_gradient
// SIZES:         %[[BYTES:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// SIZES:         %[[STATE:.*]] = arith.addi %[[BYTES]], %{{.*}} : index
// SIZES:         activation.steps @squares_step %{{.*}} within %{{.*}} beside %{{.*}} state %[[STATE]] saved %{{.*}} or
func.func @squares(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %m = memref.dim %u, %c0 : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    array.yield
  }
  func.return
}

// An active float comes in a cell, and is read where it is used.
// CHECK-LABEL: @a_float_comes_in_a_cell
// CHECK:         memref.store %k, %k_cell[] : memref<f64>
// CHECK:         activation.call @a_float_comes_in_a_cell_step(%i, %u, %k_cell
// CHECK-LABEL: func.func private @a_float_comes_in_a_cell_step
// CHECK:         memref.load %k_cell[]
func.func @a_float_comes_in_a_cell(%u : memref<?xf64>, %k : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.mulf %x, %k : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// What the loop permutes, the call is given as the loop has it.
// CHECK-LABEL: @arrays_that_change_places
// CHECK:         array.loop %i to %n carry(%a = %u : memref<?xf64>, %b = %v : memref<?xf64>) do {
// CHECK-NEXT:      activation.call @arrays_that_change_places_step(%i, %a, %b
// CHECK-NEXT:      array.yield %b, %a
// CHECK-LABEL: func.func private @arrays_that_change_places_step
// CHECK-SAME:    overlaps = [], changing = array<i64: 1, 2>
func.func @arrays_that_change_places(%u : memref<?xf64>, %v : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips, %p, %q = array.loop %i to %n carry(%a = %u : memref<?xf64>, %b = %v : memref<?xf64>) do {
    %x = memref.load %a[%c0] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %b[%c0] : memref<?xf64>
    array.yield %b, %a : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// What a step overwrites before it reads it is no part of a restart state; what it overwrites in part is.
// CHECK-LABEL: func.func private @scratch_is_not_live_step(
// CHECK-SAME:    changing = array<i64: 1, 2, 3>, live = array<i64: 1, 3>
func.func @scratch_is_not_live(%u : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.alloc(%m) : memref<?xf64>
  %b = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %i to %n do {
    array.map(%m) ins(%u : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    %p = memref.load %a[%c1] : memref<?xf64>
    memref.store %p, %b[%c0] : memref<?xf64>
    %q = memref.load %b[%c1] : memref<?xf64>
    %r = arith.mulf %p, %q : f64
    memref.store %r, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// Nothing is saved, so nothing need be run again.
// CHECK-LABEL: @kept_where_nothing_is_saved
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @kept_where_nothing_is_saved(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.addf %x, %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_it_may_end_early
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @kept_where_it_may_end_early(%u : memref<?xf64>, %n : index, %go : i1) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n while {
  ^bb0(%j : index):
    array.condition %go
  } do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_it_prints
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @kept_where_it_prints(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.print "{}" (%y : f64)
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_arrays_may_overlap
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @kept_where_arrays_may_overlap(%u : memref<?xf64>, %v : memref<?xf64>, %n : index) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %x = memref.load %v[%c0] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}
