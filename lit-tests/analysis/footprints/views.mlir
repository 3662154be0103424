// RUN: mutad-opt %s -p print-footprints | filecheck %s

// CHECK-LABEL: @views_compose
// CHECK:         %x = memref.load %w[%i] {footprint = "read %a[2 * %i + 5, %j]"}
func.func @views_compose(%a : memref<?x?xf64>, %i : index, %j : index, %n : index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = array.view %a[%c3, %j] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  %w = array.view %v[%c2] dims [0] extents(%n) steps(%c2) : memref<?xf64, strided<[?]>> -> memref<?xf64, strided<[?]>>
  %x = memref.load %w[%i] : memref<?xf64, strided<[?]>>
  func.return
}

// CHECK-LABEL: @reversed_and_transposed
// CHECK:         footprint = "read %a[%n - 1 : %n : -1, 0 : %m], write %b[0 : %m, 0 : %n]"
func.func @reversed_and_transposed(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %last = arith.subi %n, %c1 : index
  %v = array.view %a[%last, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %cm1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%m, %n) ins(%v : memref<?x?xf64, strided<[1, ?]>>) outs(%b : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// A step of 0, a broadcast, walks nowhere.
// CHECK-LABEL: @broadcast
// CHECK:         footprint = "read %a[0], write %b[0 : %n]"
func.func @broadcast(%a : memref<1xf64>, %b : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %v = array.view %a[%c0] dims [-1] extents(%n) steps(%c0) : memref<1xf64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%v : memref<?xf64, strided<[0]>>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// One symbol for one extent, through whatever views it is asked; a wrapped subscript is a symbol too.
// CHECK-LABEL: @subscripts
// CHECK:         %x = memref.load %a[%last] {footprint = "read %a[dim(%a, 0) - 1]"}
// CHECK:         %y = memref.load %a[%from_end] {footprint = "read %a[dim(%a, 0) - 2]"}
// CHECK:         %z = memref.load %a[%unknown] {footprint = "read %a[%unknown]"}
func.func @subscripts(%a : memref<?xf64>, %i : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm2 = arith.constant -2 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %v = array.view %a[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %m = memref.dim %v, %c0 : memref<?xf64, strided<[1]>>
  %last = arith.subi %m, %c1 : index
  %from_end = array.index %cm2, %n axis 0 sign "negative"
  %unknown = array.index %i, %n axis 0 sign "any"
  %x = memref.load %a[%last] : memref<?xf64>
  %y = memref.load %a[%from_end] : memref<?xf64>
  %z = memref.load %a[%unknown] : memref<?xf64>
  func.return
}

// A vector of all the rows: all of it is all of the matrix, a part of it any part, and the last axis is what it was.
// CHECK-LABEL: @collapsed
// CHECK:         footprint = "write %a[0 : dim(%a, 0), 0 : dim(%a, 1), 0 : 4]"
// CHECK:         %x = memref.load %v[%i, %j] {footprint = "read %a[?, ?, %j]"}
func.func @collapsed(%a : memref<?x?x4xf64>, %i : index, %j : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %a, %c0 : memref<?x?x4xf64>
  %m = memref.dim %a, %c1 : memref<?x?x4xf64>
  %nm = arith.muli %n, %m : index
  %v = array.collapse %a dims [0, 2] extents(%nm, %c4) : memref<?x?x4xf64> -> memref<?x4xf64>
  %zero = arith.constant 0.0 : f64
  array.map(%nm, %c4) outs(%v : memref<?x4xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %x = memref.load %v[%i, %j] : memref<?x4xf64>
  func.return
}

// A vector seen as a matrix: steps that nest.
// CHECK-LABEL: @vector_as_matrix
// CHECK:         footprint = "write %a[0 : 4 * %n]"
func.func @vector_as_matrix(%a : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = array.view %a[%c0] dims [0, 0] extents(%n, %c4) steps(%c4, %c1) : memref<?xf64> -> memref<?x4xf64, strided<[4, 1]>>
  %zero = arith.constant 0.0 : f64
  array.map(%n, %c4) outs(%v : memref<?x4xf64, strided<[4, 1]>>) kinds ["store"] {
    array.yield %zero : f64
  }
  func.return
}
