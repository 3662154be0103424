// RUN: mutad-opt %s -p 'reverse{fresh=true active=0,1}' | filecheck %s
// RUN: mutad-opt %s -p 'reverse{fresh=true active=0,1},forward{active=0 finals=3}' | filecheck %s --check-prefix=TWICE

// Shadows that may hold anything are set to zero behind the forward sweep, before all that adds to them.
// CHECK-LABEL: @squares_gradient
// CHECK-SAME:    filled = array<i64: 3, 4>
// CHECK:         memref.load %x[%i]
// CHECK:         array.map(%{{.*}}) outs(%x_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
// CHECK:         array.map(%{{.*}}) outs(%a_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
// CHECK:         memref.store %{{.*}}, %x_shadow[%i]

// So are their tangents, each in a map of its own.
// TWICE-LABEL: @squares_gradient_tangent
// TWICE-SAME:    filled = array<i64: 3, 4, 7>
// TWICE:         array.map(%{{.*}}) outs(%x_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
// TWICE:         array.map(%{{.*}}) outs(%x_shadow_dot : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
func.func @squares(%x : memref<?xf64>, %a : memref<?xf64>, %i : index) -> f64 {
  %u = memref.load %x[%i] : memref<?xf64>
  %v = memref.load %a[%i] : memref<?xf64>
  %uu = arith.mulf %u, %u : f64
  %y = arith.addf %uu, %v : f64
  func.return %y : f64
}

// Arguments that share memory have shadows that do: who makes those sets them to zero.
// CHECK-LABEL: @shared_gradient
// CHECK-SAME:    filled = array<i64>
// CHECK-NOT:     ad.unseen
// CHECK:         func.return
func.func @shared(%x : memref<?xf64>, %a : memref<?xf64>, %i : index) -> f64 attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %u = memref.load %x[%i] : memref<?xf64>
  %v = memref.load %a[%i] : memref<?xf64>
  %y = arith.mulf %u, %v : f64
  func.return %y : f64
}
