// RUN: mutad-opt %s -p 'reverse,forward{active=0,2}' | mutad-opt -p keep-product | mutad-opt -p remove-dead | filecheck %s

// The gradient of a quadratic is gone; its product with a direction is left.
// CHECK-LABEL: @square_gradient_tangent
// CHECK-NOT:     memref.load %x[
// CHECK:         array.map({{.*}}) outs(%x_shadow_dot : {{.*}}ad.unseen
// CHECK:         %a_dot = memref.load %x_dot[%i]
// CHECK:         memref.load %x_shadow_dot[%i]
// CHECK:         memref.store %{{.*}}, %x_shadow_dot[%i]
// CHECK-NEXT:    func.return
func.func @square(%x : memref<?xf64>, %i : index) -> f64 {
  %a = memref.load %x[%i] : memref<?xf64>
  %y = arith.mulf %a, %a : f64
  func.return %y : f64
}
