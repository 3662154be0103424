// RUN: mutad-opt %s -p hoist-branch-allocs | filecheck %s

// Where the branch is not taken the array is empty.
// CHECK-LABEL: @out_of_a_branch
// CHECK:         %[[N:.*]] = arith.select %c, %n, %{{.*}} : index
// CHECK-NEXT:    %t = array.alloc(%[[N]])
// CHECK-NEXT:    scf.if %c
func.func @out_of_a_branch(%c : i1, %n : index, %x : f64) {
  scf.if %c {
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%n] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @out_of_an_else
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[N:.*]] = arith.select %c, %[[ZERO]], %n : index
// CHECK-NEXT:    %t = array.alloc(%[[N]])
func.func @out_of_an_else(%c : i1, %n : index, %x : f64) {
  scf.if %c {
  } else {
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%n] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @of_known_size
// CHECK:         %t = array.alloc(%c3) : memref<3xf64>
// CHECK-NEXT:    scf.if %c
func.func @of_known_size(%c : i1, %n : index, %x : f64) {
  %c3 = arith.constant 3 : index
  scf.if %c {
    %t = array.alloc(%c3) : memref<3xf64>
    memref.store %x, %t[%n] : memref<3xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_branch_loads_the_extent
// CHECK:         scf.if %c
// CHECK:           array.alloc
func.func @kept_when_the_branch_loads_the_extent(%c : i1, %cell : memref<index>, %x : f64) {
  scf.if %c {
    %n = memref.load %cell[] : memref<index>
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%n] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_branch_checks_the_extent
// CHECK:         scf.if %c
// CHECK:           array.alloc
func.func @kept_when_the_branch_checks_the_extent(%c : i1, %n : index, %x : f64) {
  scf.if %c {
    %m = array.checked_add %n, %n
    %t = array.alloc(%m) : memref<?xf64>
    memref.store %x, %t[%n] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @out_of_two_branches
// CHECK:         arith.select %d, %n,
// CHECK:         %a = array.alloc(
// CHECK-NEXT:    scf.if %c
func.func @out_of_two_branches(%c : i1, %d : i1, %n : index, %i : index, %v : f64) {
  scf.if %c {
    scf.if %d {
      %a = array.alloc(%n) : memref<?xf64>
      memref.store %v, %a[%i] : memref<?xf64>
    }
  }
  func.return
}

// Of a loop's body, not out of the loop: each iteration has its own.
// CHECK-LABEL: @kept_in_the_loop_around_the_branch
// CHECK-NEXT:    array.loop
// CHECK:           %a = array.alloc(
// CHECK-NEXT:      scf.if %c
func.func @kept_in_the_loop_around_the_branch(%c : i1, %n : index, %i : index, %v : f64) {
  %t = array.loop %k to %n do {
    scf.if %c {
      %a = array.alloc(%n) : memref<?xf64>
      memref.store %v, %a[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_in_a_loop_within_the_branch
// CHECK-NEXT:    scf.if %c
// CHECK-NEXT:      array.loop
// CHECK-NEXT:        %a = array.alloc(%n)
func.func @kept_in_a_loop_within_the_branch(%c : i1, %n : index, %i : index, %v : f64) {
  scf.if %c {
    %t = array.loop %k to %n do {
      %a = array.alloc(%n) : memref<?xf64>
      memref.store %v, %a[%i] : memref<?xf64>
      array.yield
    }
  }
  func.return
}

// The condition of the inner branch is computed in the outer one, from memory: the array moves without it.
// CHECK-LABEL: @moved_without_a_condition_that_cannot_move
// CHECK:         %a = array.alloc(
// CHECK-NEXT:    scf.if %c
// CHECK-NEXT:      %d = memref.load
func.func @moved_without_a_condition_that_cannot_move(%c : i1, %b : memref<i1>, %x : memref<?xf64>, %i : index, %v : f64) {
  scf.if %c {
    %d = memref.load %b[] : memref<i1>
    scf.if %d {
      %zero = arith.constant 0 : index
      %n = memref.dim %x, %zero : memref<?xf64>
      %a = array.alloc(%n) : memref<?xf64>
      memref.store %v, %a[%i] : memref<?xf64>
    }
  }
  func.return
}

// As large as a number that means nothing where the inner branch is not taken.
// CHECK-LABEL: @kept_where_its_size_hangs_on_the_condition
// CHECK:         scf.if %c
// CHECK:           array.alloc(
func.func @kept_where_its_size_hangs_on_the_condition(%c : i1, %b : memref<i1>, %n : index, %i : index, %v : f64) {
  scf.if %c {
    %d = memref.load %b[] : memref<i1>
    scf.if %d {
      %a = array.alloc(%n) : memref<?xf64>
      memref.store %v, %a[%i] : memref<?xf64>
    }
  }
  func.return
}

// A view of an array is made again behind the cut.
// CHECK-LABEL: @cut_where_the_branch_computes_the_extent
// CHECK:         %n = scf.if %c -> (index) {
// CHECK:           %{{.*}} = memref.load %m[] : memref<index>
// CHECK:         %t = array.alloc(
// CHECK-NEXT:    %r = scf.if %c -> (memref<?xf64>) {
// CHECK-NEXT:      %{{.*}} = array.view %a
func.func @cut_where_the_branch_computes_the_extent(%c : i1, %a : memref<?xf64>, %m : memref<index>, %x : f64) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.if %c -> (memref<?xf64>) {
    %n = memref.load %m[] : memref<index>
    %v = array.view %a[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %v[%c0] : memref<?xf64, strided<[1]>>
    scf.yield %t : memref<?xf64>
  } else {
    scf.yield %a : memref<?xf64>
  }
  func.return %r : memref<?xf64>
}

// CHECK-LABEL: @cut_behind_a_choice_of_arrays
// CHECK:         %[[NONE:.*]] = "memref.cast"
// CHECK:         %n, %e = scf.if %c -> (index, memref<?xf64>) {
// CHECK:           scf.yield %n_1, %e_1
// CHECK:         } else {
// CHECK:           scf.yield %{{.*}}, %[[NONE]]
// CHECK:         %t = array.alloc(
// CHECK-NEXT:    %r = scf.if %c
// CHECK-NEXT:      %x = memref.load %e[
func.func @cut_behind_a_choice_of_arrays(%c : i1, %d : i1, %a : memref<?xf64>, %b : memref<?xf64>, %m : memref<index>) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %r = scf.if %c -> (memref<?xf64>) {
    %n = memref.load %m[] : memref<index>
    %e = scf.if %d -> (memref<?xf64>) {
      scf.yield %a : memref<?xf64>
    } else {
      scf.yield %b : memref<?xf64>
    }
    %t = array.alloc(%n) : memref<?xf64>
    %x = memref.load %e[%c0] : memref<?xf64>
    memref.store %x, %t[%c0] : memref<?xf64>
    scf.yield %t : memref<?xf64>
  } else {
    scf.yield %a : memref<?xf64>
  }
  func.return %r : memref<?xf64>
}

// CHECK-LABEL: @kept_where_an_array_of_a_loop_is_in_the_way
// CHECK:         %r = scf.if %c
// CHECK:           %t = array.alloc(
func.func @kept_where_an_array_of_a_loop_is_in_the_way(%c : i1, %a : memref<?xf64>, %b : memref<?xf64>, %m : memref<index>) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %r = scf.if %c -> (memref<?xf64>) {
    %n = memref.load %m[] : memref<index>
    %trips, %e, %f = array.loop %k to %n carry(%u = %a : memref<?xf64>, %v = %b : memref<?xf64>) do {
      array.yield %v, %u : memref<?xf64>, memref<?xf64>
    }
    %t = array.alloc(%n) : memref<?xf64>
    %x = memref.load %e[%c0] : memref<?xf64>
    memref.store %x, %t[%c0] : memref<?xf64>
    scf.yield %t : memref<?xf64>
  } else {
    scf.yield %a : memref<?xf64>
  }
  func.return %r : memref<?xf64>
}
