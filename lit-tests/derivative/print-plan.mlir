// RUN: mutad-opt %s --split-input-file -p print-plan | filecheck %s

// CHECK-LABEL: @squares_in_place
// CHECK:         %x = memref.load %a[%i] {plan = ["save %x: killed by memref.store, needed by arith.mulf"]}
func.func @squares_in_place(%a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// -----

// Linear: the adjoint needs no value.
// CHECK-LABEL: @doubles_in_place
// CHECK-NOT:     plan
func.func @doubles_in_place(%a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    %y = arith.addf %x, %x : f64
    memref.store %y, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// -----

// Nothing overwrites what is needed: it is loaded again.
// CHECK-LABEL: @squares_elsewhere
// CHECK-NOT:     plan
func.func @squares_elsewhere(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %b[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// -----

// The two arrays may overlap: the store may kill what a later iteration reads, and what this one read.
// CHECK-LABEL: @squares_elsewhere_perhaps
// CHECK:         plan
func.func @squares_elsewhere_perhaps(%a : memref<?xf64>, %b : memref<?xf64>, %n : index)
    attributes {overlaps = [[0, 1]]} {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %b[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// -----

// An integer array is inert.
// CHECK-LABEL: @integers
// CHECK-NOT:     plan
func.func @integers(%a : memref<?xi64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xi64>
    %y = arith.muli %x, %x : i64
    memref.store %y, %a[%i] : memref<?xi64>
    array.yield
  }
  func.return
}
