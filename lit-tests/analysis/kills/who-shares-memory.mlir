// RUN: mutad-opt %s -p print-kills | filecheck %s

// CHECK-LABEL: @arguments_are_disjoint_unless_listed
// CHECK:         %y = memref.load %x[%i] {kill = "read %x[%i]: kept"}
func.func @arguments_are_disjoint_unless_listed(%x : memref<?xf64>, %z : memref<?xf64>, %i : index) {
  %y = memref.load %x[%i] : memref<?xf64>
  memref.store %y, %z[%i] {tag = "s"} : memref<?xf64>
  func.return
}

// Equal subscripts of overlapping arguments say nothing, nor do different ones.
// CHECK-LABEL: @killed_when_the_arguments_overlap
// CHECK:         %y = memref.load %x[%c0] {kill = "read %x[0]: killed by s"}
func.func @killed_when_the_arguments_overlap(%x : memref<?xf64>, %z : memref<?xf64>) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = memref.load %x[%c0] : memref<?xf64>
  memref.store %y, %z[%c1] {tag = "s"} : memref<?xf64>
  func.return
}

// u, v = v, u. Within an iteration the two are different memory; what is read is killed one step later.
// CHECK-LABEL: @ping_pong
// CHECK:         %x = memref.load %u[%i] {kill = "read %u[%i]: killed by next"}
// CHECK:         memref.store %x, %v[%i] {{.*}} kill = "write %v[%i]: killed by itself"
// CHECK:         %z = memref.load %u[%c0] {kill = "read %u[0]: killed by next"}
func.func @ping_pong(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %t, %a, %b = array.loop %k to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %ti = array.loop %i to %n do {
      %x = memref.load %u[%i] : memref<?xf64>
      memref.store %x, %v[%i] {tag = "next"} : memref<?xf64>
      array.yield
    }
    %z = memref.load %u[%c0] : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// Only the first is written, and it moves on: after three steps the read memory is written.
// CHECK-LABEL: @a_permutation_of_three_comes_back
// CHECK:         %x = memref.load %v[%c0] {kill = "read %v[0]: killed by s"}
func.func @a_permutation_of_three_comes_back(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %w0 : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %t, %a, %b, %c = array.loop %k to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>, %w = %w0 : memref<?xf64>) do {
    %x = memref.load %v[%c0] : memref<?xf64>
    memref.store %x, %u[%c0] {tag = "s"} : memref<?xf64>
    array.yield %v, %w, %u : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  func.return
}

// With one iteration at most there is no later one.
// CHECK-LABEL: @a_swap_that_runs_once_is_kept
// CHECK:         %x = memref.load %u[%c0] {kill = "read %u[0]: kept"}
func.func @a_swap_that_runs_once_is_kept(%u0 : memref<?xf64>, %v0 : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t, %a, %b = array.loop %k to %c1 carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %x = memref.load %u[%c0] : memref<?xf64>
    memref.store %x, %v[%c0] {tag = "s"} : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @killed_when_a_swap_carries_two_views_of_one_array
// CHECK:         %x = memref.load %u[%c0] {kill = "read %u[0]: killed by s"}
func.func @killed_when_a_swap_carries_two_views_of_one_array(%a : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u0 = array.view %a[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %v0 = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t, %p, %q = array.loop %k to %steps carry(%u = %u0 : memref<?xf64, strided<[1]>>, %v = %v0 : memref<?xf64, strided<[1]>>) do {
    %x = memref.load %u[%c0] : memref<?xf64, strided<[1]>>
    memref.store %x, %v[%c1] {tag = "s"} : memref<?xf64, strided<[1]>>
    array.yield %v, %u : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>
  }
  func.return
}

// Scratch memory of an iteration is released at its end, and is other memory the next time.
// CHECK-LABEL: @scratch_is_released
// CHECK:         memref.store %y, %w[%c0] {kill = "write %w[0]: released at the end of the iteration"}
// CHECK:         %z = memref.load %w[%c0] {kill = "read %w[0]: released at the end of the iteration"}
func.func @scratch_is_released(%y : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %t = array.loop %i to %n do {
    %w = array.alloc(%n) : memref<?xf64>
    memref.store %y, %w[%c0] : memref<?xf64>
    %z = memref.load %w[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// Allocated outside, it is overwritten by the next iteration.
// CHECK-LABEL: @scratch_from_outside_is_overwritten
// CHECK:         %z = memref.load %w[%c0] {kill = "read %w[0]: killed by s"}
func.func @scratch_from_outside_is_overwritten(%y : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %w = array.alloc(%n) : memref<?xf64>
  %t = array.loop %i to %n do {
    memref.store %y, %w[%c0] {tag = "s"} : memref<?xf64>
    %z = memref.load %w[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// The branches of one `if` exclude each other within an iteration, and only there.
// CHECK-LABEL: @branches_exclude_each_other_in_one_iteration
// CHECK:         %y = memref.load %x[%i] {kill = "read %x[%i]: kept"}
// CHECK:         %z = memref.load %x[%i1] {kill = "read %x[%i + 1]: killed by s"}
func.func @branches_exclude_each_other_in_one_iteration(%x : memref<?xf64>, %v : f64, %n : index, %p : memref<?xi1>) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %c = memref.load %p[%i] : memref<?xi1>
    scf.if %c {
      %y = memref.load %x[%i] : memref<?xf64>
      %z = memref.load %x[%i1] : memref<?xf64>
    } else {
      memref.store %v, %x[%i] {tag = "s"} : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_condition_on_the_counter_is_used
// CHECK:         %y = memref.load %x[%c0] {kill = "read %x[0]: kept"}
func.func @a_condition_on_the_counter_is_used(%x : memref<?xf64>, %v : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %t = array.loop %i to %n do {
    %y = memref.load %x[%c0] : memref<?xf64>
    %c = arith.cmpi sgt, %i, %c0 : index
    scf.if %c {
      memref.store %v, %x[%i] {tag = "s"} : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// One of two arrays, chosen at run time: killed through either.
// CHECK-LABEL: @killed_through_a_chosen_array
// CHECK:         %y = memref.load %x[%c0] {kill = "read %x[0]: killed by s"}
// CHECK:         %w = memref.load %x[%c1] {kill = "read %x[1]: kept"}
func.func @killed_through_a_chosen_array(%x : memref<?xf64>, %z : memref<?xf64>, %c : i1, %v : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = memref.load %x[%c0] : memref<?xf64>
  %w = memref.load %x[%c1] : memref<?xf64>
  %chosen = scf.if %c -> (memref<?xf64>) {
    scf.yield %x : memref<?xf64>
  } else {
    scf.yield %z : memref<?xf64>
  }
  memref.store %v, %chosen[%c0] {tag = "s"} : memref<?xf64>
  func.return
}

// After a branch that always raises, no adjoint runs.
// CHECK-LABEL: @a_branch_that_raises_kills_nothing
// CHECK:         %y = memref.load %x[%c0] {kill = "read %x[0]: kept"}
func.func @a_branch_that_raises_kills_nothing(%x : memref<?xf64>, %v : f64, %c : i1) {
  %c0 = arith.constant 0 : index
  %y = memref.load %x[%c0] : memref<?xf64>
  scf.if %c {
    memref.store %v, %x[%c0] : memref<?xf64>
    array.raise_if %c, "ValueError", "no"
  } {raises}
  func.return
}
