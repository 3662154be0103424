// RUN: mutad-opt %s -p keep-bits | filecheck %s

// LLVM may compute several iterations at once.
// CHECK-LABEL: @independent_iterations_are_marked(
// CHECK:         math.sin %e {ad.again}
func.func @independent_iterations_are_marked(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %e = memref.load %x[%i] : memref<?xf64>
    %y = math.sin %e : f64
    memref.store %y, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A branch does not make iterations wait.
// CHECK-LABEL: @branches_are_marked(
// CHECK:         math.sin %e {ad.again}
func.func @branches_are_marked(%x : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %before = arith.cmpi slt, %i, %m : index
    scf.if %before {
      %e = memref.load %x[%i] : memref<?xf64>
      %y = math.sin %e : f64
      memref.store %y, %x[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @maps_are_marked(
// CHECK:         math.exp %{{[0-9a-z]+}} {ad.again}
func.func @maps_are_marked(%x : memref<?xf64>, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %y = math.exp %e : f64
    array.yield %y : f64
  }
  func.return
}

// Each iteration waits for the sine of the one before: the scalar version takes less time.
// CHECK-LABEL: @an_element_is_handed_on(
// CHECK-NOT:     ad.again
// CHECK:         func.return
func.func @an_element_is_handed_on(%x : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %e = memref.load %x[%i] : memref<?xf64>
    %y = math.sin %e : f64
    memref.store %y, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_number_is_handed_on(
// CHECK-NOT:     ad.again
// CHECK:         func.return
func.func @a_number_is_handed_on(%x : memref<?xf64>, %n : index) {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %old = memref.load %cell[] : memref<f64>
    %y = math.sin %old : f64
    memref.store %y, %cell[] : memref<f64>
    memref.store %y, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A sum keeps its order: LLVM takes no vectors there.
// CHECK-LABEL: @a_sum_in_order(
// CHECK-NOT:     ad.again
// CHECK:         func.return
func.func @a_sum_in_order(%x : memref<?xf64>, %n : index) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %old = memref.load %cell[] : memref<f64>
    %e = memref.load %x[%i] : memref<?xf64>
    %y = math.sin %e : f64
    %new = arith.addf %old, %y : f64
    memref.store %new, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @outside_of_loops(
// CHECK-NOT:     ad.again
// CHECK:         func.return
func.func @outside_of_loops(%x : f64) -> f64 {
  %y = math.sin %x : f64
  func.return %y : f64
}
