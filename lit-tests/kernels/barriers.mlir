// RUN: mutad-opt %s -p emulate-launches | filecheck %s

// A loop with barriers goes around the threads, which keep what they have added up in memory of the host.
// CHECK-LABEL: func.func @loop_with_a_barrier
// CHECK:         %slots = array.alloc({{.*}}) {stack} : memref<256xf64>
// CHECK:         %sum = array.alloc({{.*}}) : memref<256xf64>
// CHECK:         array.loop %{{.*}} to %blocks do
// CHECK:           array.loop %{{.*}} to %{{.*}} do
// CHECK:             %[[MINE:.*]] = array.view %sum[%{{.*}}] dims []
// CHECK:             memref.store %{{.*}}, %[[MINE]][]
// CHECK:           array.loop %[[K:.*]] to %n do
// CHECK:             array.loop %{{.*}} to %{{.*}} do
// CHECK:               memref.load %u[%[[K]]]
// CHECK:               memref.store %{{.*}}, %slots[
// CHECK:             array.loop %{{.*}} to %{{.*}} do
// CHECK:               %[[AGAIN:.*]] = array.view %sum[%{{.*}}] dims []
// CHECK:               memref.load %slots[
// CHECK:               memref.store %{{.*}}, %[[AGAIN]][]
// CHECK-NOT:     device
func.func @loop_with_a_barrier(%u : memref<?xf64, 1 : i64>, %n : index, %blocks : index) {
  device.launch @k blocks(%blocks) (%u, %n : memref<?xf64, 1 : i64>, index)
  func.return
}
func.func private @k(%u : memref<?xf64, 1 : i64>, %n : index) attributes {kernel} {
  %slots = memref.alloca() : memref<256xf64, 3 : i64>
  %sum = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %t = device.thread
  %c0 = arith.constant 0 : index
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %k to %n do {
    %x = memref.load %u[%k] : memref<?xf64, 1 : i64>
    memref.store %x, %slots[%t] : memref<256xf64, 3 : i64>
    device.barrier
    %y = memref.load %slots[%c0] : memref<256xf64, 3 : i64>
    %old = memref.load %sum[] : memref<f64>
    %new = arith.addf %old, %y : f64
    memref.store %new, %sum[] : memref<f64>
    device.barrier
    array.yield
  }
  func.return
}

// A number of an array that nobody writes is loaded again behind the barrier.
// CHECK-LABEL: func.func @counted
// CHECK:         array.loop
// CHECK:           array.loop
// CHECK:             memref.load %at[
// CHECK:           array.loop
// CHECK:             %[[K:.*]] = memref.load %at[
// CHECK:             memref.store %{{.*}}, %v[%[[K]]]
func.func @counted(%at : memref<1xindex>, %v : memref<?xindex>, %n : index) {
  device.launch @counted_0 blocks(%n) (%at, %v : memref<1xindex>, memref<?xindex>)
  func.return
}
func.func private @counted_0(%at : memref<1xindex, 1 : i64>, %v : memref<?xindex, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<256xindex, 3 : i64>
  %k = memref.load %at[%c0] : memref<1xindex, 1 : i64>
  %t = device.thread
  memref.store %k, %s[%t] : memref<256xindex, 3 : i64>
  device.barrier
  %x = memref.load %s[%c0] : memref<256xindex, 3 : i64>
  memref.store %x, %v[%k] : memref<?xindex, 1 : i64>
  func.return
}
