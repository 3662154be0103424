// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000}' | filecheck %s
// RUN: mutad-opt %s -p 'checkpoint-loops{memory=1000 block=4},reverse' --run --only powers_gradient --args 'u=[1.0,2.0,1.0,1.0,3.0,1.0], n=5, u_shadow=[0.0,0.0,0.0,0.0,0.0,1.0]' | filecheck %s --check-prefix VALUES

// A step is a block of iterations, counted from the last one on: the first block is the short one.
// CHECK-LABEL: @powers
// CHECK:         %[[TRIPS:.*]] = arith.maxsi %n, %{{.*}} : index
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivsi %[[TRIPS]], %{{.*}} : index
// CHECK:         array.loop %block to %[[BLOCKS]] do {
// CHECK-NEXT:      activation.call @powers_step(%block, %u
// CHECK-NEXT:      array.yield
// CHECK-NEXT:    } {checkpointed = 1000 : i64, overwritten = array<i64>}
// CHECK-LABEL: func.func private @powers_step(%block: index, %u: memref<?xf64>
// CHECK:         array.loop %i to
// u[5] is the product of all: 6, whose derivatives are 6 / u[i].
// VALUES:        u_shadow = [6, 3, 6, 6, 2, 6]
func.func @powers(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %x = memref.load %u[%i] : memref<?xf64>
    %old = memref.load %u[%j] : memref<?xf64>
    %y = arith.mulf %x, %old : f64
    memref.store %y, %u[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// What may be one block stays as it is.
// CHECK-LABEL: @few_iterations
// CHECK:         array.loop %i to %{{.*}} do {
// CHECK-NEXT:      activation.call @few_iterations_step(%i, %u
func.func @few_iterations(%u : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = arith.constant 100 : index
  %trips = array.loop %i to %n do {
    %x = memref.load %u[%c0] : memref<?xf64>
    %y = math.sin %x : f64
    memref.store %y, %u[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// So does a loop of arrays.
// CHECK-LABEL: @of_arrays
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      activation.call @of_arrays_step(%i, %u
func.func @of_arrays(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %m = memref.dim %u, %c0 : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %y : f64
    }
    array.yield
  }
  func.return
}
