// RUN: mutad-opt %s -p raise-loops | filecheck %s

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
