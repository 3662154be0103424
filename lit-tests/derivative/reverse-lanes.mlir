// RUN: mutad-opt %s -p "reverse{lanes=8}" | filecheck %s

// Several cotangents are vectors: the number that multiplies them is the same in all lanes, and saved once.
// CHECK-LABEL: @scaled_gradient(%x: memref<?xf64>, %i: index, %k: f64, %x_shadow: memref<?xvector<8xf64>>, %w_bar: vector<8xf64>) -> (f64, vector<8xf64>)
// CHECK:         %v = memref.load %x[%i] : memref<?xf64>
// CHECK:         memref.load %x_shadow[%i] : memref<?xvector<8xf64>>
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf64>
// CHECK:         memref.store %[[ZERO]], %x_shadow[%i] : memref<?xvector<8xf64>>
// CHECK:         vector.broadcast %k {ad.adjoint} : f64 to vector<8xf64>
func.func @scaled(%x : memref<?xf64>, %i : index, %k : f64) -> f64 {
  %v = memref.load %x[%i] : memref<?xf64>
  %w = arith.mulf %v, %k : f64
  memref.store %w, %x[%i] : memref<?xf64>
  func.return %w : f64
}

// A number that a loop reads has a cell of vectors, and memory of the program a shadow of vectors.
// CHECK-LABEL: @summed_gradient(
// CHECK:         %k_bar = memref.alloca() : memref<vector<8xf64>>
// CHECK:         %v_shadow = array.alloc(%n) : memref<?xvector<8xf64>>
// CHECK:         array.loop
func.func @summed(%x : memref<?xf64>, %n : index, %k : f64) -> f64 {
  %v = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %k : f64
    memref.store %b, %v[%i] : memref<?xf64>
    array.yield
  }
  %zero = arith.constant 0 : index
  %last = memref.load %v[%zero] : memref<?xf64>
  func.return %last : f64
}

// A cast, under another type, of an array has a shadow of vectors as well.
// CHECK-LABEL: @cast_gradient(
// CHECK:         "memref.cast"(%x_shadow) : (memref<4xvector<8xf64>>) -> memref<?xvector<8xf64>>
func.func @cast(%x : memref<4xf64>, %i : index) -> f64 {
  %y = "memref.cast"(%x) : (memref<4xf64>) -> memref<?xf64>
  %v = memref.load %y[%i] : memref<?xf64>
  func.return %v : f64
}
