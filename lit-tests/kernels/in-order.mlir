// RUN: mutad-opt %s -p outline-kernels{deterministic=true} | filecheck %s

// CHECK-LABEL: func.func private @bins_0
// CHECK-NOT:     device.atomic_add
// CHECK:         array.loop
// CHECK:           %[[K:.*]] = memref.load %k[
// CHECK:           %[[OWNER:.*]] = arith.remui %[[K]],
// CHECK:           %[[MINE:.*]] = arith.cmpi eq, %[[OWNER]],
// CHECK:           scf.if %[[MINE]] {
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
