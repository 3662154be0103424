// RUN: mutad-opt %s -p factor-cotangents | filecheck %s

// CHECK-LABEL: @of_lanes_the_factor_is_a_number
// CHECK:           %[[A:.*]] = arith.addf %p, %q {ad.adjoint} : f64
// CHECK-NEXT:      %[[B:.*]] = vector.broadcast %[[A]] {ad.adjoint} : f64 to vector<4xf64>
// CHECK-NEXT:      %e = ad.mul %g, %[[B]] {ad.adjoint, ad.collected} : vector<4xf64>
// CHECK-NEXT:      array.yield %e
func.func @of_lanes_the_factor_is_a_number(%n : index, %v : memref<?xf64>, %b : memref<?xvector<4xf64>>, %s : memref<?xvector<4xf64>>) {
  array.map(%n) ins(%b, %v, %v : memref<?xvector<4xf64>>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xvector<4xf64>>) kinds ["add"] {
  ^bb0(%g : vector<4xf64>, %p : f64, %q : f64):
    %pp = vector.broadcast %p {ad.adjoint} : f64 to vector<4xf64>
    %qq = vector.broadcast %q {ad.adjoint} : f64 to vector<4xf64>
    %c = ad.mul %g, %pp {ad.adjoint} : vector<4xf64>
    %d = ad.mul %g, %qq {ad.adjoint} : vector<4xf64>
    %e = arith.addf %c, %d {ad.adjoint} : vector<4xf64>
    array.yield %e : vector<4xf64>
  }
  func.return
}
