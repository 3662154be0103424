// RUN: mutad-opt %s -p outline-kernels | filecheck %s
// RUN: mutad-opt %s -p outline-kernels{deterministic=true} | filecheck %s --check-prefix=FIXED

// Integers add up in any order.
// (Kernels come behind all functions.)
func.func @bins(%n : index, %k : memref<?xindex>, %h : memref<?xi64>) {
  %one = arith.constant 1 : i64
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %old = memref.load %h[%at] : memref<?xi64>
    %new = arith.addi %old, %one : i64
    memref.store %new, %h[%at] : memref<?xi64>
    array.yield
  }
  func.return
}

// The program's own sums of floating-point numbers keep their order.
func.func @in_order(%n : index, %k : memref<?xindex>, %v : memref<?xf64>, %u : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %x = memref.load %v[%i] : memref<?xf64>
    %old = memref.load %u[%at] : memref<?xf64>
    %new = arith.addf %old, %x : f64
    memref.store %new, %u[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// One element of all iterations: threads add up, and meet in shared memory.
// CHECK-LABEL: func.func @uniform
// CHECK:         %[[V:.*]] = array.view %s[%j] dims []
// CHECK:         device.launch @uniform_0
// CHECK:         device.launch @uniform_1 blocks(%{{.*}}) (%{{.*}}, %{{.*}}, %[[V]] :
func.func @uniform(%n : index, %j : index, %v : memref<?xf64>, %s : memref<?xf64>, %w : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %x = memref.load %v[%i] : memref<?xf64>
    memref.store %x, %w[%i] : memref<?xf64>
    %old = memref.load %s[%j] : memref<?xf64>
    %new = arith.subf %old, %x {ad.adjoint} : f64
    memref.store %new, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// Iterations that meet have one owner, which does all that they do.
func.func @two_arrays_at_one_subscript(%n : index, %k : memref<?xindex>, %u : memref<?xf64>, %w : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %x = memref.load %w[%at] : memref<?xf64>
    memref.store %x, %u[%at] : memref<?xf64>
    %y = math.sin %x : f64
    memref.store %y, %w[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func private @bins_0
// CHECK:         device.atomic_add %{{.*}}, %h[%{{.*}}] : i64, memref<?xi64, 1 : i64>
// CHECK-LABEL: func.func private @in_order_0
// CHECK-NOT:     device.atomic_add
// CHECK:         arith.remui
// CHECK-LABEL: func.func private @uniform_0
// CHECK-NOT:     device.atomic_add
// CHECK:         memref<256xf64, 3 : i64>
// CHECK-LABEL: func.func private @two_arrays_at_one_subscript_0
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %u[
// CHECK:           memref.store %{{.*}}, %w[

// FIXED-LABEL: func.func private @bins_0
// FIXED-NOT:     device.atomic_add
// FIXED:         array.loop
// FIXED:           %[[K:.*]] = memref.load %k[
// FIXED:           %[[OWNER:.*]] = arith.remui %[[K]],
// FIXED:           %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]],
// FIXED:           scf.if %[[MINE]] {
