// RUN: mutad-opt %s --split-input-file -p reverse,remove-dead | filecheck %s

// CHECK-LABEL: @product_gradient
// CHECK-SAME:    %x: f64, %y: f64, %{{.*}}_bar: f64) -> (f64, f64, f64)
// CHECK:         arith.mulf %{{.*}}_bar, %y {ad.adjoint}
// CHECK:         arith.mulf %{{.*}}_bar, %x {ad.adjoint}
func.func @product(%x : f64, %y : f64) -> f64 {
  %z = arith.mulf %x, %y : f64
  func.return %z : f64
}

// -----

// The adjoint of a store reads the shadow of the element, zeroes it, and propagates.
// CHECK-LABEL: @store_gradient
// CHECK-SAME:    %a_shadow: memref<?xf64>
// CHECK:         memref.store %x, %a[%i]
// CHECK:         %[[BAR:.*]] = memref.load %a_shadow[%i]
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         memref.store %[[ZERO]], %a_shadow[%i]
func.func @store(%x : f64, %a : memref<?xf64>, %i : index) {
  memref.store %x, %a[%i] : memref<?xf64>
  func.return
}

// -----

// The adjoint of a load adds to the shadow.
// CHECK-LABEL: @load_gradient
// CHECK:         %[[OLD:.*]] = memref.load %a_shadow[%i]
// CHECK:         %[[NEW:.*]] = arith.addf %[[OLD]], %x_bar {ad.adjoint}
// CHECK:         memref.store %[[NEW]], %a_shadow[%i]
func.func @load(%a : memref<?xf64>, %i : index) -> f64 {
  %x = memref.load %a[%i] : memref<?xf64>
  func.return %x : f64
}

// -----

// Loops run their iterations in the opposite order, those that ran; what was killed comes from the tape.
// CHECK-LABEL: @loop_gradient
// CHECK:         %[[SAVED:.*]] = ad.push %{{.*}}(%n) : memref<?xf64>
// CHECK:         %trips = array.loop %i to %n
// CHECK:           memref.store %x, %[[SAVED]][%i]
// CHECK:         array.loop %[[K:.*]] to %trips
// CHECK:           memref.load %[[SAVED]]
func.func @loop(%a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    %y = arith.mulf %x, %x : f64
    memref.store %y, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// -----

// The adjoint of an elementwise map is one map.
// CHECK-LABEL: @map_gradient
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>)
// CHECK:         array.map(%n)
// CHECK-SAME:      kinds ["store", "add"]
// CHECK-NOT:     array.map
func.func @map(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = math.exp %x : f64
    array.yield %y : f64
  }
  func.return
}

// -----

// The branch that was taken.
// CHECK-LABEL: @branch_gradient
// CHECK:         scf.if %c
// CHECK:         scf.if %c
func.func @branch(%c : i1, %x : f64, %a : memref<?xf64>, %i : index) {
  scf.if %c {
    memref.store %x, %a[%i] : memref<?xf64>
  }
  func.return
}
