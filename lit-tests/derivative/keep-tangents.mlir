// RUN: mutad-opt %s -p 'forward{active=0}' | mutad-opt -p keep-tangents | mutad-opt -p remove-dead | filecheck %s

// Of a linear function no primal is left.
// CHECK-LABEL: @linear_tangent
// CHECK-NOT:     memref.load %x[
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         func.return %[[ZERO]], %{{.*}} : f64, f64
func.func @linear(%x : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %k = arith.constant 0.5 : f64
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %h = arith.mulf %k, %e : f64
    array.yield %h : f64
  }
  %a = memref.load %u[%c0] : memref<?xf64>
  func.return %a : f64
}

// What a tangent reads stays, what the caller sees of its arguments too, and numbers that are no floats.
// CHECK-LABEL: @square_tangent
// CHECK:         %a = memref.load %x[%i]
// CHECK:         memref.store {{.*}}, %x[%i]
// CHECK:         func.return %{{.*}}, %i, %{{.*}} : f64, index, f64
func.func @square(%x : memref<?xf64>, %i : index) -> (f64, index) {
  %a = memref.load %x[%i] : memref<?xf64>
  %y = arith.mulf %a, %a : f64
  memref.store %y, %x[%i] : memref<?xf64>
  func.return %y, %i : f64, index
}
