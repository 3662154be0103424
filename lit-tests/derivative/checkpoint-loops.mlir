// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1}' | filecheck %s
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse' --run --only squares_gradient --args 'u=[1.0,2.0], n=2, u_shadow=[1.0,1.0]' | filecheck %s --check-prefix VALUES
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse' | mutad-opt -p measure-steps | filecheck %s --check-prefix SIZES

// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse,forward' | filecheck %s --check-prefix DOTS
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse,forward' --run --only squares_gradient_tangent --args 'u=[1.0,2.0], n=2, u_shadow=[1.0,1.0], u_dot=[1.0,1.0], u_shadow_dot=[0.0,0.0]' | filecheck %s --check-prefix MOVED

// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse{adjoints=true},reverse' | filecheck %s --check-prefix TWICE

// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=1},reverse' | filecheck %s --check-prefix SHADOWS

// Whose adjoint will be taken keeps what every step needs.
// TWICE-LABEL: @squares_gradient_gradient
// TWICE-NOT:     activation.steps
// TWICE:         activation.call @squares_step_forward_forward

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
// With tangents a state has them, too, and a step keeps them: 12 u**2.
// DOTS-LABEL: @squares_gradient_tangent
// DOTS:         activation.steps @squares_step_tangent {{.*}}(%u, %u_dot :
// DOTS:         activation.reverse_steps @squares_step_tangent {{.*}}shadows(%u_shadow, %u_shadow_dot :
// MOVED:        u_shadow_dot = [12, 48]
// An item has a head of 32 bytes; a record is the extent, the segment, and a word in front of the segment.
// SIZES-LABEL: @squares_gradient
// SIZES:         activation.stack within %{{.*}} beside %{{.*}} or
// SIZES:         %[[BYTES:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// SIZES:         %[[STATE:.*]] = arith.addi %[[BYTES]], %{{.*}} : index
// SIZES:         activation.steps @squares_step %{{.*}} state %[[STATE]] saved %{{.*}} to
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

// What adds nothing to a shadow takes none, unless arrays take turns.
// SHADOWS-LABEL: @squares_gradient
// SHADOWS:         activation.reverse_steps @squares_step {{.*}}shadows(%u_shadow : memref<?xf64>) of [0 : i64]
// SHADOWS-LABEL: @chosen_by_sign_gradient
// SHADOWS:         activation.reverse_steps @chosen_by_sign_step {{.*}}shadows(%u_shadow : memref<?xf64>) of [0 : i64]
// SHADOWS-LABEL: @arrays_that_change_places_gradient
// SHADOWS:         activation.reverse_steps @arrays_that_change_places_step {{.*}}shadows(%u_shadow, %v_shadow :
// SHADOWS-LABEL: @chosen_by_sign_step_backward
// SHADOWS-NOT:     %w_shadow
// SHADOWS:         func.return
func.func @chosen_by_sign(%u : memref<?xf64>, %w : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %m = memref.dim %u, %c0 : memref<?xf64>
    %x = memref.load %w[%c0] : memref<?xf64>
    %zero = arith.constant 0.0 : f64
    %one = arith.constant 1.0 : f64
    %positive = arith.cmpf ogt, %x, %zero : f64
    %h = arith.select %positive, %one, %zero : f64
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%y : f64):
      %z = arith.mulf %y, %y : f64
      %t = arith.mulf %z, %h : f64
      array.yield %t : f64
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

// So is it before the loop and after it: its cotangent has one order, that of the function.
// CHECK-LABEL: @a_float_is_read_of_its_cell_everywhere(
// CHECK:         memref.store %k, %k_cell[] : memref<f64>
// CHECK:         %[[SECOND:.*]] = memref.load %k_cell[]
// CHECK:         %[[FIRST:.*]] = memref.load %k_cell[]
// CHECK-NEXT:    arith.mulf %[[FIRST]], %[[SECOND]]
// CHECK:         activation.call @a_float_is_read_of_its_cell_everywhere_step(%i, %u, %k_cell
// CHECK:         %[[AFTER:.*]] = memref.load %k_cell[]
// CHECK-NEXT:    memref.store %[[AFTER]], %u
func.func @a_float_is_read_of_its_cell_everywhere(%u : memref<?xf64>, %k : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %square = arith.mulf %k, %k : f64
  memref.store %square, %u[%c0] : memref<?xf64>
  %trips = array.loop %i to %n do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.mulf %x, %k : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  memref.store %k, %u[%c0] : memref<?xf64>
  func.return
}

// A cell of a function's own is there for all loops within loops.
// CHECK-LABEL: @a_cell_stands_where_its_float_is_computed(
// CHECK:         memref.store %k, %k_cell[] : memref<f64>
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      activation.call @a_cell_stands_where_its_float_is_computed_step2(%i, %u, %k_cell
func.func @a_cell_stands_where_its_float_is_computed(%u : memref<?xf64>, %k : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      %m = memref.dim %u, %c0 : memref<?xf64>
      array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %k : f64
        %z = arith.mulf %y, %x : f64
        array.yield %z : f64
      }
      array.yield
    }
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

// Whether there is another step, the step says, in a cell: it is asked before the first one, too.
// CHECK-LABEL: @a_loop_that_may_end_early
// CHECK:         %[[GO:.*]] = memref.alloca() : memref<i1>
// CHECK:         %[[FIRST:.*]] = arith.cmpf
// CHECK-NEXT:    memref.store %[[FIRST]], %[[GO]][] : memref<i1>
// CHECK-NEXT:    array.loop %i while {
// CHECK:           %[[MORE:.*]] = memref.load %[[GO]][]
// CHECK-NEXT:      array.condition %[[MORE]]
// CHECK:           activation.call @a_loop_that_may_end_early_step(%i, %u, %[[GO]]
// CHECK:         flag = 1 : i64
// CHECK-LABEL: func.func private @a_loop_that_may_end_early_step
// CHECK:         memref.store %y, %u
// CHECK:         %[[AGAIN:.*]] = arith.cmpf
// CHECK-NEXT:    memref.store %[[AGAIN]], %go{{.*}}[] : memref<i1>
func.func @a_loop_that_may_end_early(%u : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f64
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %z = memref.load %u[%c0] : memref<?xf64>
    %more = arith.cmpf olt, %z, %one : f64
    array.condition %more
  } do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// Beyond its count a loop is not asked whether it goes on.
// CHECK-LABEL: @a_loop_that_may_end_early_and_counts
// CHECK:         arith.cmpi slt, %{{.*}}, %n
// CHECK-LABEL: func.func private @a_loop_that_may_end_early_and_counts_step
// CHECK:         %[[POSSIBLE:.*]] = arith.cmpi slt, %{{.*}}, %n
// CHECK-NEXT:    scf.if %[[POSSIBLE]] {
// CHECK-NEXT:      memref.store %{{.*}}, %go{{.*}}[] : memref<i1>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[NO:.*]] = arith.constant false
// CHECK-NEXT:      memref.store %[[NO]], %go{{.*}}[] : memref<i1>
func.func @a_loop_that_may_end_early_and_counts(%u : memref<?xf64>, %n : index, %go : i1) {
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

// Each loop of which a step saves an array, in branches too; what the last reads comes after the others.
// CHECK-LABEL: @loops_that_share
// CHECK:         activation.call @loops_that_share_step(%
// CHECK:         checkpointed = 1000 : i64{{.*}}followed
// CHECK:         scf.if %c {
// CHECK:           activation.call @loops_that_share_step2(%
// CHECK-NOT:       followed
// CHECK:         func.return
func.func @loops_that_share(%u : memref<?xf64>, %n : index, %c : i1) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    array.yield
  }
  scf.if %c {
    %more = array.loop %i to %n do {
      array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        array.yield %y : f64
      }
      array.yield
    }
  }
  func.return
}

// A loop within a step, of which an iteration saves an array: its steps are functions, too. What it reads of
// an array that the step writes is read again of a copy.
// CHECK-LABEL: @loops_within
// CHECK:         activation.call @loops_within_step2(%
// CHECK-LABEL: func.func private @loops_within_step2(
// CHECK:         activation.call @loops_within_step(%{{.*}}, %u
// CHECK:         overwritten = array<i64: 0, 1>
// CHECK-LABEL: func.func private @loops_within_step(
func.func @loops_within(%u : memref<?xf64>, %w : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      array.map(%m) ins(%u, %w : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64, %z : f64):
        %y = arith.mulf %x, %x : f64
        %a = arith.mulf %y, %z : f64
        array.yield %a : f64
      }
      array.yield
    }
    array.map(%m) ins(%w : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    array.yield
  }
  func.return
}

// And so on, however deep.
// CHECK-LABEL: @loops_within_loops_within
// CHECK-LABEL: func.func private @loops_within_loops_within_step3(
// CHECK:         activation.call @loops_within_loops_within_step2(
// CHECK-LABEL: func.func private @loops_within_loops_within_step2(
// CHECK:         activation.call @loops_within_loops_within_step(
// CHECK-LABEL: func.func private @loops_within_loops_within_step(
// CHECK-NOT:     array.loop
func.func @loops_within_loops_within(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      %innermost = array.loop %k to %n do {
        array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
        ^bb0(%x : f64):
          %y = arith.mulf %x, %x : f64
          array.yield %y : f64
        }
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A `while` within a step is a loop in steps, too, where it saves no more than numbers: a step has to have a
// bound for what it keeps.
// CHECK-LABEL: @a_while_within
// CHECK-LABEL: func.func private @a_while_within_step2(
// CHECK:         activation.call @a_while_within_step(
func.func @a_while_within(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f64
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    %inner = array.loop %j while {
    ^bb0(%k : index):
      %z = memref.load %u[%c0] : memref<?xf64>
      %more = arith.cmpf olt, %z, %one : f64
      array.condition %more
    } do {
      %x = memref.load %u[%c0] : memref<?xf64>
      %y = arith.mulf %x, %x : f64
      memref.store %y, %u[%c0] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// One that has a count saves numbers in the step.
// CHECK-LABEL: @a_count_within
// CHECK-LABEL: func.func private @a_count_within_step(
// CHECK:         array.loop %j to
// CHECK-NOT:   @a_count_within_step2
func.func @a_count_within(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    %inner = array.loop %j to %n do {
      %x = memref.load %u[%c0] : memref<?xf64>
      %y = arith.mulf %x, %x : f64
      memref.store %y, %u[%c0] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A loop that works on one row of an array has that row as its state.
// CHECK-LABEL: @a_row_is_a_state
// CHECK-LABEL: func.func private @a_row_is_a_state_step2(
// CHECK:         %row = array.view %u
// CHECK:         activation.call @a_row_is_a_state_step({{.*}}%row{{.*}} memref<?xf64, strided
// CHECK-LABEL: func.func private @a_row_is_a_state_step(
// CHECK-SAME:    %row: memref<?xf64, strided
func.func @a_row_is_a_state(%u : memref<?x?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %u, %c1 : memref<?x?xf64>
  %trips = array.loop %i to %n do {
    %row = array.view %u[%i, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %inner = array.loop %j to %steps do {
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        array.yield %y : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A loop over the rows of an array saves no more than the array: a restart state would be as large.
// CHECK-LABEL: @rows_are_kept
// CHECK:         activation.call @rows_are_kept_step(%
// CHECK-LABEL: func.func private @rows_are_kept_step(
// CHECK:         array.loop
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @rows_are_kept(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %m = memref.dim %u, %c1 : memref<?x?xf64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %rows do {
      %row = array.view %u[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        array.yield %y : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The reverse sweep has branches of its own, in which no array of this one is.
// CHECK-LABEL: @kept_where_a_branch_makes_its_array
// CHECK-NOT:     activation.call
// CHECK:         func.return
func.func @kept_where_a_branch_makes_its_array(%u : memref<?xf64>, %n : index, %c : i1) {
  %c0 = arith.constant 0 : index
  scf.if %c {
    %a = array.alloc(%n) : memref<?xf64>
    %trips = array.loop %i to %n do {
      %x = memref.load %u[%c0] : memref<?xf64>
      %y = arith.mulf %x, %x : f64
      memref.store %y, %a[%c0] : memref<?xf64>
      %z = memref.load %a[%i] : memref<?xf64>
      memref.store %z, %u[%c0] : memref<?xf64>
      array.yield
    }
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
