// RUN: mutad-opt %s -p describe-calls | filecheck %s

// CHECK-LABEL: @calls_touch_what_their_functions_touch
// CHECK:         activation.call @scan(%a, %b, %i {{.*}} reads [0 : i64, 1 : i64] writes [0 : i64]
// CHECK:         activation.call @scan(%b, %b, %i {{.*}} reads [0 : i64, 1 : i64] writes [0 : i64]
func.func @calls_touch_what_their_functions_touch(%a : memref<?xf64>, %b : memref<?xf64>, %i : index) {
  %r = activation.call @scan(%a, %b, %i : memref<?xf64>, memref<?xf64>, index) frames 1
  %s = activation.call @scan(%b, %b, %i : memref<?xf64>, memref<?xf64>, index) frames 1
  func.return
}

// What a call within writes, the function writes. Two arguments may share memory where those of a call may.
// CHECK-LABEL: func.func private @scan
// CHECK-SAME:    overlaps = {{\[\[}}0 : i64, 1 : i64]]
func.func private @scan(%x : memref<?xf64>, %y : memref<?xf64>, %i : index) {
  %v = memref.load %y[%i] : memref<?xf64>
  %r, %w = activation.call @store_one(%x, %v, %i : memref<?xf64>, f64, index) frames 1 -> f64
  %s = activation.call @scan(%x, %y, %i : memref<?xf64>, memref<?xf64>, index) frames 1
  func.return
}

// CHECK-LABEL: func.func private @store_one
// CHECK-SAME:    overlaps = []
func.func private @store_one(%x : memref<?xf64>, %v : f64, %i : index) -> f64 {
  %old = memref.load %x[%i] : memref<?xf64>
  memref.store %v, %x[%i] : memref<?xf64>
  func.return %old : f64
}

// What other ops call (a derivative that the program asks for) keeps what they say of it.
// CHECK-LABEL: func.func private @asked_for_by_another_op
// CHECK-SAME:    overlaps = {{\[\[}}0 : i64, 1 : i64]]
func.func private @asked_for_by_another_op(%x : memref<?xf64>, %y : memref<?xf64>) attributes {overlaps = [[0, 1]]} {
  func.return
}
