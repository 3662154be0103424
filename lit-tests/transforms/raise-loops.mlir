// RUN: mutad-opt %s -p raise-loops | filecheck %s
// RUN: mutad-opt %s -p raise-loops --run --only the_last_of_two_stores --args 'x=[1, 2, 3], n=2' | filecheck %s --check-prefix VALUES

// CHECK-LABEL: @elementwise
// CHECK-NOT:     array.loop
// CHECK:         array.map(%m)
func.func @elementwise(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @in_place
// CHECK:         array.map(%m)
func.func @in_place(%x : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// x[i + 1] is what iteration i + 1 overwrites: as a map it might be read after that.
// CHECK-LABEL: @kept_when_it_reads_ahead
// CHECK:         array.loop
func.func @kept_when_it_reads_ahead(%x : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_arguments_may_overlap
// CHECK:         array.loop
func.func @kept_when_arguments_may_overlap(%x : memref<?xf64>, %y : memref<?xf64>, %n : index)
    attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_subscript_may_raise
// CHECK:         array.loop
func.func @kept_when_a_subscript_may_raise(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %j = array.index %i, %n axis 0 sign "nonneg"
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %y[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_all_iterations_store_one_element
// CHECK:         array.loop
func.func @kept_when_all_iterations_store_one_element(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %k : index) {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %y[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_while
// CHECK:         array.loop
func.func @kept_while(%c : i1, %x : memref<?xf64>, %y : memref<?xf64>) {
  %trips = array.loop %i while {
  ^bb0(%k : index):
    array.condition %c
  } do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_nest_of_two
// CHECK:         array.map(%p, %q)
// CHECK-NOT:     array.loop
func.func @a_nest_of_two(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %n : index, %m : index) {
  %zero = arith.constant 0 : index
  %p = arith.maxsi %n, %zero : index
  %q = arith.maxsi %m, %zero : index
  %t = array.loop %i to %p do {
    %s = array.loop %j to %q do {
      %a = memref.load %x[%j, %i] : memref<?x?xf64>
      %b = arith.mulf %a, %a : f64
      memref.store %b, %y[%i, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The outer loop carries from row to row; the inner is raised alone.
// CHECK-LABEL: @the_inner_loop_alone
// CHECK:         array.loop %i to %p do
// CHECK:           array.map(%q)
// CHECK-NOT:       array.loop
func.func @the_inner_loop_alone(%x : memref<?x?xf64>, %n : index, %m : index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %p = arith.maxsi %n, %zero : index
  %q = arith.maxsi %m, %zero : index
  %t = array.loop %i to %p do {
    %next = arith.addi %i, %one : index
    %s = array.loop %j to %q do {
      %a = memref.load %x[%i, %j] : memref<?x?xf64>
      %b = arith.mulf %a, %a : f64
      memref.store %b, %x[%next, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// x[2 * i] and x[2 * i + 1] never meet.
// CHECK-LABEL: @even_elements_from_odd_ones
// CHECK:         array.map
// CHECK-NOT:     array.loop
func.func @even_elements_from_odd_ones(%x : memref<?xf64>, %n : index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %m = arith.maxsi %n, %zero : index
  %t = array.loop %i to %m do {
    %even = arith.muli %i, %two : index
    %odd = arith.addi %even, %one : index
    %a = memref.load %x[%odd] : memref<?xf64>
    memref.store %a, %x[%even] : memref<?xf64>
    array.yield
  }
  func.return
}

// What is loaded after the store is what was stored.
// CHECK-LABEL: @kept_when_it_loads_what_it_stored
// CHECK-NOT:     array.map
func.func @kept_when_it_loads_what_it_stored(%x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %n : index) {
  %t = array.loop %i to %n do {
    memref.store %v, %x[%i] : memref<?xf64>
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_induction_is_computed_with
// CHECK-NOT:     array.map
func.func @kept_when_the_induction_is_computed_with(%x : memref<?xf64>, %n : index) {
  %t = array.loop %i to %n do {
    %k = arith.index_cast %i : index to i64
    %v = arith.sitofp %k : i64 to f64
    memref.store %v, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_accumulates_in_a_cell
// CHECK-NOT:     array.map
func.func @kept_when_it_accumulates_in_a_cell(%x : memref<?xf64>, %s : memref<f64>, %n : index) {
  %t = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %old = memref.load %s[] : memref<f64>
    %new = arith.addf %old, %a : f64
    memref.store %new, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// The diagonal: two subscripts move with one induction.
// CHECK-LABEL: @kept_along_a_diagonal
// CHECK-NOT:     array.map
func.func @kept_along_a_diagonal(%x : memref<?x?xf64>, %v : f64, %n : index) {
  %t = array.loop %i to %n do {
    memref.store %v, %x[%i, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_branches
// CHECK-NOT:     array.map
func.func @kept_when_it_branches(%x : memref<?xf64>, %c : i1, %v : f64, %n : index) {
  %t = array.loop %i to %n do {
    scf.if %c {
      memref.store %v, %x[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// A map stores to an element once: its adjoint takes the cotangent of each output where it stands.
// CHECK-LABEL: @the_last_of_two_stores
// CHECK:         array.map(%m) ins(%x_view : {{.*}}) outs(%x_view_1 : {{.*}}) kinds ["store"]
// CHECK-NEXT:    ^{{.*}}(%a: f64):
// CHECK-NEXT:      %c = math.sin %a : f64
// CHECK-NEXT:      array.yield %c : f64
// Two sines; the third element is none of the loop's.
// VALUES: x = [0.8414709848, 0.9092974268, 3]
func.func @the_last_of_two_stores(%x : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  %trips = array.loop %i to %m do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    %c = math.sin %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    memref.store %c, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
