// RUN: mutad-opt %s -p outline-kernels | filecheck %s

// CHECK-LABEL: func.func @recurrence
// CHECK:         %[[S:.*]] = memref.load %s[]
// CHECK:         %[[LEFT:.*]] = array.alloc
// CHECK:         device.launch @recurrence_0 blocks(%{{.*}}) ({{.*}}%[[S]]
// CHECK:         %[[NEW:.*]] = device.fetch %[[LEFT]]
// CHECK:         memref.store %[[NEW]], %s[]
func.func @recurrence(%n : index, %u : memref<?xf64>) -> f64 {
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  memref.store %zero, %s[] : memref<f64>
  %trips = array.loop %i to %n do {
    %old = memref.load %s[] : memref<f64>
    %x = memref.load %u[%i] : memref<?xf64>
    %y = arith.mulf %old, %x : f64
    %new = arith.addf %y, %x : f64
    memref.store %new, %s[] : memref<f64>
    memref.store %new, %u[%i] : memref<?xf64>
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// Of nested loops the outermost one is the kernel, and no variable comes back that nobody reads.
// CHECK-LABEL: func.func @nested
// CHECK-NOT:     array.loop
// CHECK:         device.launch @nested_0
// CHECK-NOT:     device.fetch
// CHECK:         func.return
func.func @nested(%n : index, %m : index, %u : memref<?xf64>) {
  %one = arith.constant 1 : index
  %trips = array.loop %t to %m do {
    %inner = array.loop %i to %n do {
      %next = arith.addi %i, %one : index
      %x = memref.load %u[%i] : memref<?xf64>
      %y = arith.mulf %x, %x : f64
      memref.store %y, %u[%next] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func private @recurrence_0
// CHECK-SAME:    one_thread
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK:         scf.if %[[FIRST]] {
// CHECK:           array.loop
