// RUN: mutad-opt %s -p "forward{lanes=8}" | filecheck %s

// Several tangents are vectors: the number that multiplies them is the same in all lanes.
// CHECK-LABEL: @scaled_tangent(%x: memref<?xf64>, %i: index, %k: f64, %x_dot: memref<?xvector<8xf64>>, %k_dot: vector<8xf64>) -> (f64, vector<8xf64>)
// CHECK:         %v_dot = memref.load %x_dot[%i] : memref<?xvector<8xf64>>
// CHECK:         %[[K:.*]] = vector.broadcast %k {ad.adjoint} : f64 to vector<8xf64>
// CHECK-NEXT:    ad.mul %v_dot, %[[K]] {ad.adjoint} : vector<8xf64>
// CHECK:         memref.store %w_dot, %x_dot[%i] : memref<?xvector<8xf64>>
func.func @scaled(%x : memref<?xf64>, %i : index, %k : f64) -> f64 {
  %v = memref.load %x[%i] : memref<?xf64>
  %w = arith.mulf %v, %k : f64
  memref.store %w, %x[%i] : memref<?xf64>
  func.return %w : f64
}

// Memory of the program has tangents in memory of vectors, which a loop carries as it carries the arrays.
// CHECK-LABEL: @arrays_swap_with_their_tangents_tangent(
// CHECK:         %v_dot = array.alloc(%n) : memref<?xvector<8xf64>>
// CHECK:         array.loop
// CHECK-SAME:    %x_dot = %u_dot : memref<?xvector<8xf64>>, %y_dot = %v_dot : memref<?xvector<8xf64>>
func.func @arrays_swap_with_their_tangents(%u : memref<?xf64>, %n : index, %steps : index) -> f64 {
  %v = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  %trips, %p, %q = array.loop %t to %steps carry(%x = %u : memref<?xf64>, %y = %v : memref<?xf64>) do {
    array.yield %y, %x : memref<?xf64>, memref<?xf64>
  }
  %zero = arith.constant 0 : index
  %last = memref.load %p[%zero] : memref<?xf64>
  func.return %last : f64
}
