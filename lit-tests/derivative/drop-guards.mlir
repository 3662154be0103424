// RUN: mutad-opt %s -p drop-guards | filecheck %s

// Guards in a loop, gradients in a number and an array: both are looked at.
// CHECK-LABEL: @in_a_loop(
// CHECK-NOT:     ad.mul
// CHECK:         arith.mulf %{{.*}}, %p {ad.adjoint}
// CHECK:         arith.divf
// CHECK:         %wrong = memref.alloca() : memref<f64>
// CHECK:         array.map(%{{.*}}) ins(%x_shadow : memref<?xf64>) outs(%{{.*}}) kinds ["add"]
// CHECK:           arith.cmpf uno
// CHECK:         arith.cmpf uno, %p_bar, %p_bar
// CHECK:         %[[WRONG:.*]] = arith.cmpf ogt,
// CHECK-NEXT:    ad.retry_if %[[WRONG]]
// CHECK-NEXT:    func.return
func.func @in_a_loop(%x : memref<?xf64>, %p : f64, %n : index, %x_shadow : memref<?xf64>, %bar : f64) -> f64
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %m = ad.mul %b, %p {ad.adjoint} : f64
      %q = ad.div %m, %p : f64
      memref.store %q, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %p_bar = ad.mul %bar, %p : f64
  func.return %p_bar : f64
}

// One guard for each element: to look at the gradient costs as much.
// CHECK-LABEL: @too_few(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @too_few(%x : memref<?xf64>, %n : index, %x_shadow : memref<?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x_shadow : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    %m = ad.mul %bar, %e : f64
    array.yield %m : f64
  }
  func.return
}

// The call could not be made again: it stores to an argument.
// CHECK-LABEL: @argument_is_changed(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @argument_is_changed(%x : memref<?xf64>, %p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    memref.store %p, %x[%i] : memref<?xf64>
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    memref.store %m, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// A comparison makes a truth of a NaN, and a branch of that: nobody would see the NaN.
// CHECK-LABEL: @cotangent_is_compared(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @cotangent_is_compared(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    %large = arith.cmpf ogt, %m, %p : f64
    %c = arith.select %large, %p, %m : f64
    memref.store %c, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// The minimum drops a NaN.
// CHECK-LABEL: @least_of_a_map(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @least_of_a_map(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %c0 = arith.constant 0 : index
  %view = array.view %cell[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) outs(%view : memref<?xf64, strided<[0]>>) kinds ["min"] {
    %m = ad.mul %bar, %p : f64
    array.yield %m : f64
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @printed(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @printed(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    memref.store %m, %cell[] : memref<f64>
    array.print "{}"(%p : f64)
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// A result that is a gradient itself is none of those that are looked at.
// CHECK-LABEL: @returned(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @returned(%p : f64, %n : index, %bar : f64) -> (memref<?xf64>, f64)
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %made = array.alloc(%n) : memref<?xf64>
  %t = array.loop %i to %n do {
    %m = ad.mul %bar, %p : f64
    memref.store %m, %made[%i] : memref<?xf64>
    array.yield
  }
  func.return %made, %p : memref<?xf64>, f64
}
