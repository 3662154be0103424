// RUN: mutad-opt %s -p forward-stores | filecheck %s

// CHECK-LABEL: @same_element
// CHECK-NEXT:    memref.store %x, %a[%i]
// CHECK-NEXT:    func.return %x
func.func @same_element(%x : f64, %a : memref<4xf64>, %i : index) -> f64 {
  memref.store %x, %a[%i] : memref<4xf64>
  %y = memref.load %a[%i] : memref<4xf64>
  func.return %y : f64
}

// A second load reads what the first one read.
// CHECK-LABEL: @loaded_twice
// CHECK-NEXT:    %y = memref.load %a[%i]
// CHECK-NEXT:    func.return %y, %y
func.func @loaded_twice(%a : memref<4xf64>, %i : index) -> (f64, f64) {
  %y = memref.load %a[%i] : memref<4xf64>
  %z = memref.load %a[%i] : memref<4xf64>
  func.return %y, %z : f64, f64
}

// Function arguments are disjoint unless `overlaps` lists them.
// CHECK-LABEL: @past_a_store_to_another_argument
// CHECK:         func.return %x
func.func @past_a_store_to_another_argument(%x : f64, %a : memref<4xf64>, %b : memref<4xf64>, %i : index) -> f64 {
  memref.store %x, %a[%i] : memref<4xf64>
  memref.store %x, %b[%i] : memref<4xf64>
  %y = memref.load %a[%i] : memref<4xf64>
  func.return %y : f64
}

// CHECK-LABEL: @past_a_store_to_another_constant_index
// CHECK:         func.return %x
func.func @past_a_store_to_another_constant_index(%x : f64, %z : f64, %a : memref<4xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %x, %a[%c0] : memref<4xf64>
  memref.store %z, %a[%c1] : memref<4xf64>
  %y = memref.load %a[%c0] : memref<4xf64>
  func.return %y : f64
}

// CHECK-LABEL: @into_a_loop_that_does_not_write_it
// CHECK-NOT:     memref.load
func.func @into_a_loop_that_does_not_write_it(%x : f64, %a : memref<4xf64>, %b : memref<4xf64>, %n : index) {
  memref.store %x, %a[%n] : memref<4xf64>
  %trips = array.loop %i to %n do {
    %y = memref.load %a[%n] : memref<4xf64>
    memref.store %y, %b[%i] : memref<4xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_arguments_may_overlap
// CHECK:         %y = memref.load %a[%i]
func.func @kept_when_arguments_may_overlap(%x : f64, %a : memref<4xf64>, %b : memref<4xf64>, %i : index) -> f64
    attributes {overlaps = [[1, 2]]} {
  memref.store %x, %a[%i] : memref<4xf64>
  memref.store %x, %b[%i] : memref<4xf64>
  %y = memref.load %a[%i] : memref<4xf64>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_the_index_differs
// CHECK:         %y = memref.load %a[%j]
func.func @kept_when_the_index_differs(%x : f64, %a : memref<4xf64>, %i : index, %j : index) -> f64 {
  memref.store %x, %a[%i] : memref<4xf64>
  %y = memref.load %a[%j] : memref<4xf64>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_a_view_is_stored_through
// CHECK:         %y = memref.load %a[%i]
func.func @kept_when_a_view_is_stored_through(%x : f64, %z : f64, %a : memref<?xf64>, %i : index, %n : index) -> f64 {
  %c1 = arith.constant 1 : index
  %v = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  memref.store %x, %a[%i] : memref<?xf64>
  memref.store %z, %v[%i] : memref<?xf64, strided<[1]>>
  %y = memref.load %a[%i] : memref<?xf64>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_a_map_writes_the_array
// CHECK:         %y = memref.load %a[%i]
func.func @kept_when_a_map_writes_the_array(%x : f64, %a : memref<?xf64>, %i : index, %n : index) -> f64 {
  memref.store %x, %a[%i] : memref<?xf64>
  array.map(%n) outs(%a : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  %y = memref.load %a[%i] : memref<?xf64>
  func.return %y : f64
}

// The store of one iteration comes before the load of the next.
// CHECK-LABEL: @kept_when_the_loop_stores_it_later
// CHECK:         %y = memref.load %a[%n]
func.func @kept_when_the_loop_stores_it_later(%x : f64, %a : memref<?xf64>, %n : index) {
  memref.store %x, %a[%n] : memref<?xf64>
  %trips = array.loop %i to %n do {
    %y = memref.load %a[%n] : memref<?xf64>
    %z = arith.addf %y, %y : f64
    memref.store %z, %a[%n] : memref<?xf64>
    array.yield
  }
  func.return
}

// Swapped memrefs: %u may be either array.
// CHECK-LABEL: @kept_when_a_carried_memref_may_be_the_array
// CHECK:         %y = memref.load %a[%n]
func.func @kept_when_a_carried_memref_may_be_the_array(%x : f64, %z : f64, %a : memref<?xf64>, %b : memref<?xf64>, %n : index) -> f64 {
  memref.store %x, %a[%n] : memref<?xf64>
  %trips, %a1, %b1 = array.loop %i to %n carry(%u = %b : memref<?xf64>, %v = %a : memref<?xf64>) do {
    memref.store %z, %u[%n] : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  %y = memref.load %a[%n] : memref<?xf64>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_a_branch_stores_it
// CHECK:         %y = memref.load %a[%i]
func.func @kept_when_a_branch_stores_it(%x : f64, %z : f64, %a : memref<4xf64>, %i : index, %c : i1) -> f64 {
  memref.store %x, %a[%i] : memref<4xf64>
  scf.if %c {
    memref.store %z, %a[%i] : memref<4xf64>
  }
  %y = memref.load %a[%i] : memref<4xf64>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_a_call_stands_between
// CHECK:         foreign.call
// CHECK-NEXT:    %y = memref.load %a[%i]
func.func @kept_when_a_call_stands_between(%a : memref<?xf64>, %x : f64, %i : index) -> f64 {
  memref.store %x, %a[%i] : memref<?xf64>
  foreign.call "c" "f" of "constant:0"(%x : f64) types ["f64"] effects ["none"] returns "" trailing 0
  %y = memref.load %a[%i] : memref<?xf64>
  func.return %y : f64
}

// What takes the cotangents of a sum is zero when an iteration begins: the first, and all behind one.
// CHECK-LABEL: @loops_that_leave_a_variable_as_it_was
// CHECK:         array.loop %i to
// CHECK-NEXT:      array.loop %j to
// CHECK-NEXT:        arith.addf %zero, %y
// CHECK:         func.return %zero
func.func @loops_that_leave_a_variable_as_it_was(%y : f64, %x : memref<f64>, %n : index) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      %0 = memref.load %cell[] : memref<f64>
      %1 = arith.addf %0, %y : f64
      memref.store %1, %cell[] : memref<f64>
      %2 = memref.load %cell[] : memref<f64>
      memref.store %2, %x[] : memref<f64>
      memref.store %zero, %cell[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %3 = memref.load %cell[] : memref<f64>
  func.return %3 : f64
}

// One way through an iteration leaves something else.
// CHECK-LABEL: @loads_where_a_branch_leaves_something_else
// CHECK:         array.loop %i to
// CHECK-NEXT:      memref.load %cell[]
// CHECK:         memref.load %cell[]
// CHECK-NEXT:    func.return
func.func @loads_where_a_branch_leaves_something_else(%y : f64, %x : memref<f64>, %n : index, %c : i1) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %0 = memref.load %cell[] : memref<f64>
    memref.store %0, %x[] : memref<f64>
    memref.store %zero, %cell[] : memref<f64>
    scf.if %c {
      memref.store %y, %cell[] : memref<f64>
    }
    array.yield
  }
  %1 = memref.load %cell[] : memref<f64>
  func.return %1 : f64
}

// A map adds to it, and nothing makes it zero again.
// CHECK-LABEL: @loads_where_a_map_adds
// CHECK:         array.loop %i to
// CHECK-NEXT:      memref.load %cell[]
// CHECK:         memref.load %cell[]
// CHECK-NEXT:    func.return
func.func @loads_where_a_map_adds(%a : memref<?xf64>, %x : memref<f64>, %n : index) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %sum = array.view %cell[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %0 = memref.load %cell[] : memref<f64>
    memref.store %0, %x[] : memref<f64>
    array.map(%n) ins(%a : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  %1 = memref.load %cell[] : memref<f64>
  func.return %1 : f64
}

// Another value is left than the one before the loop.
// CHECK-LABEL: @loads_where_another_value_is_left
// CHECK:         array.loop %i to
// CHECK-NEXT:      memref.load %cell[]
// CHECK:         memref.load %cell[]
// CHECK-NEXT:    func.return
func.func @loads_where_another_value_is_left(%y : f64, %x : memref<f64>, %n : index) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %0 = memref.load %cell[] : memref<f64>
    memref.store %0, %x[] : memref<f64>
    memref.store %y, %cell[] : memref<f64>
    array.yield
  }
  %1 = memref.load %cell[] : memref<f64>
  func.return %1 : f64
}
