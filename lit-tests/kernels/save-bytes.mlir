// RUN: mutad-opt %s -p save-bytes | filecheck %s

// CHECK-LABEL: func.func @elements
// CHECK:         } {own_bytes}
func.func @elements(%u : memref<?xf64>, %n : index, %x : f64) {
  %trips = array.loop %i to %n do {
    memref.store %x, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_around_whole_arrays
// CHECK-NOT:     own_bytes
func.func @kept_around_whole_arrays(%u : memref<?xf64>, %n : index, %x : f64) {
  %trips = array.loop %i to %n do {
    array.map(%n) outs(%u : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    memref.store %x, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_of_variables
// CHECK-NOT:     own_bytes
func.func @kept_of_variables(%n : index, %x : f64) {
  %c = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %x, %c[] : memref<f64>
    array.yield
  }
  func.return
}
