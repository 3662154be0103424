// RUN: mutad-opt %s -p check-claims | filecheck %s

// CHECK-LABEL: @independent
// CHECK:         {claimed}
func.func @independent(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  } {claimed}
  func.return
}

// Nobody knows.
// CHECK-LABEL: @places_from_memory
// CHECK:         {claimed}
func.func @places_from_memory(%k : memref<?xindex>, %y : memref<?xf64>, %v : f64, %n : index) {
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    memref.store %v, %y[%at] : memref<?xf64>
    array.yield
  } {claimed}
  func.return
}

// An iteration alone meets no other.
// CHECK-LABEL: @one_iteration
// CHECK:         {claimed}
func.func @one_iteration(%y : memref<1xf64>, %v : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %c1 do {
    memref.store %v, %y[%c0] : memref<1xf64>
    array.yield
  } {claimed}
  func.return
}

// CHECK-LABEL: @sums
// CHECK:         {claimed}
func.func @sums(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<f64>, %n : index, %c : i1) {
  %t = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %t[] : memref<f64>
    %d = arith.addf %b, %a : f64
    %e = arith.select %c, %d, %b : f64
    memref.store %e, %t[] : memref<f64>
    %f = memref.load %y[%c0] : memref<?xf64>
    %g = arith.addf %f, %a : f64
    memref.store %g, %y[%c0] : memref<?xf64>
    array.yield
  } {claimed}
  func.return
}

// A program that claims nothing is asked nothing.
// CHECK-LABEL: @a_recurrence
// CHECK:         array.loop
func.func @a_recurrence(%x : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %j = arith.addi %i, %c1 : index
    memref.store %a, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}
