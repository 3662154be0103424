// RUN: mutad-opt %s -p hoist-allocs | filecheck %s
// RUN: mutad-opt %s -p 'hoist-allocs{threads=true}' | filecheck %s --check-prefix THREADS

// CHECK-LABEL: @out_of_two_loops
// CHECK:         %t = array.alloc(%n)
// CHECK-NEXT:    %trips = array.loop
func.func @out_of_two_loops(%x : f64, %a : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      %t = array.alloc(%n) : memref<?xf64>
      memref.store %x, %t[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// An inner loop swaps it with another: it does not leave the iteration of the outer one.
// CHECK-LABEL: @swapped_within_the_iteration
// CHECK:         %t = array.alloc(%n)
// CHECK-NEXT:    %trips = array.loop
func.func @swapped_within_the_iteration(%x : f64, %a : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %t = array.alloc(%n) : memref<?xf64>
    %inner, %u1, %v1 = array.loop %j to %n carry(%u = %t : memref<?xf64>, %v = %a : memref<?xf64>) do {
      memref.store %x, %u[%i] : memref<?xf64>
      array.yield %v, %u : memref<?xf64>, memref<?xf64>
    }
    array.yield
  }
  func.return
}

// Where the loop does not run, Python would not allocate; %n may be negative then, or too large.
// CHECK-LABEL: @of_any_size
// CHECK:         %[[RUNS:.*]] = arith.cmpi sgt, %steps, %{{.*}} : index
// CHECK-NEXT:    %[[N:.*]] = arith.select %[[RUNS]], %n, %{{.*}} : index
// CHECK-NEXT:    %t = array.alloc(%[[N]])
// CHECK-NEXT:    %trips = array.loop
func.func @of_any_size(%x : f64, %steps : index, %n : index) {
  %trips = array.loop %i to %steps do {
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_of_any_size_in_a_while
// CHECK:         array.loop
// CHECK:           array.alloc(%n)
func.func @kept_when_of_any_size_in_a_while(%c : i1, %x : f64, %n : index) {
  %trips = array.loop %i while {
  ^bb0(%k : index):
    array.condition %c
  } do {
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_an_extent_changes
// CHECK:         array.loop
// CHECK-NEXT:      array.alloc(%i)
func.func @kept_when_an_extent_changes(%x : f64, %n : index, %k : index) {
  %trips = array.loop %i to %n do {
    %t = array.alloc(%i) : memref<?xf64>
    memref.store %x, %t[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_carried_to_the_next_iteration
// CHECK:         array.loop
// CHECK-NEXT:      %t = array.alloc
func.func @kept_when_carried_to_the_next_iteration(%x : f64, %n : index, %a : memref<?xf64>) -> memref<?xf64> {
  %trips, %r = array.loop %i to %n carry(%u = %a : memref<?xf64>) do {
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %u[%i] : memref<?xf64>
    array.yield %t : memref<?xf64>
  }
  func.return %r : memref<?xf64>
}

// CHECK-LABEL: @kept_when_a_view_of_it_is_carried
// CHECK:         array.loop
// CHECK-NEXT:      %t = array.alloc
func.func @kept_when_a_view_of_it_is_carried(%x : f64, %n : index, %a : memref<?xf64, strided<[1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips, %r = array.loop %i to %n carry(%u = %a : memref<?xf64, strided<[1]>>) do {
    %t = array.alloc(%n) : memref<?xf64>
    %v = array.view %t[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %x, %u[%i] : memref<?xf64, strided<[1]>>
    array.yield %v : memref<?xf64, strided<[1]>>
  }
  func.return
}

// CHECK-LABEL: @kept_in_a_branch
// CHECK:         scf.if
// CHECK-NEXT:      array.alloc
func.func @kept_in_a_branch(%x : f64, %n : index, %c : i1) {
  %trips = array.loop %i to %n do {
    scf.if %c {
      %t = array.alloc(%n) : memref<?xf64>
      memref.store %x, %t[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// Outside, the elements are those of the iteration before: a store to them is fresh no more.
// CHECK-LABEL: @a_growable_array_is_made_once
// CHECK:         %t = array.alloc(%{{.*}}) {growable}
// CHECK-NEXT:    array.loop
// CHECK-NOT:     fresh
// CHECK:         func.return
func.func @a_growable_array_is_made_once(%x : f64, %n : index) {
  %trips = array.loop %i to %n do {
    %t = array.alloc(%n) {growable} : memref<?xf64>
    memref.store %x, %t[%i] {fresh} : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_is_cleared
// CHECK:         array.loop
// CHECK-NEXT:      %t = array.alloc
func.func @kept_when_it_is_cleared(%x : f64, %n : index) {
  %trips = array.loop %i to %n do {
    %t = array.alloc(%n) {growable, cleared} : memref<?xf64>
    memref.store %x, %t[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// Iterations that threads may run each need their own; of those of an inner loop one is enough.
// CHECK-LABEL:   @of_independent_iterations
// CHECK:           %t = array.alloc(%n)
// CHECK-NEXT:      array.loop
// THREADS-LABEL: @of_independent_iterations
// THREADS:         array.loop %i
// THREADS:           %t = array.alloc(%n)
// THREADS-NEXT:      array.loop
func.func @of_independent_iterations(%x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      %t = array.alloc(%n) : memref<?xf64>
      %a = memref.load %x[%j] : memref<?xf64>
      memref.store %a, %t[%j] : memref<?xf64>
      %b = memref.load %t[%j] : memref<?xf64>
      memref.store %b, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL:   @of_a_recurrence
// THREADS-LABEL: @of_a_recurrence
// THREADS:         %t = array.alloc(%n)
// THREADS-NEXT:    array.loop
func.func @of_a_recurrence(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = arith.subi %n, %c1 : index
  %trips = array.loop %i to %m do {
    %t = array.alloc(%n) : memref<?xf64>
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %t[%i] : memref<?xf64>
    %b = memref.load %t[%i] : memref<?xf64>
    %j = arith.addi %i, %c1 : index
    memref.store %b, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// What a condition needs each time: it is computed once at least.
// CHECK-LABEL: @out_of_a_condition
// CHECK:         %t = array.alloc(%n)
// CHECK-NEXT:    %trips = array.loop
func.func @out_of_a_condition(%x : f64, %a : memref<?xf64>, %more : i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %t = array.alloc(%n) : memref<?xf64>
    memref.store %x, %t[%c0] : memref<?xf64>
    array.condition %more
  } do {
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_in_a_condition_whose_extent_changes
// CHECK:         array.loop
// CHECK:           %t = array.alloc(%size)
func.func @kept_in_a_condition_whose_extent_changes(%x : f64, %more : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %size = arith.addi %j, %c1 : index
    %t = array.alloc(%size) : memref<?xf64>
    memref.store %x, %t[%c0] : memref<?xf64>
    array.condition %more
  } do {
    array.yield
  }
  func.return
}
