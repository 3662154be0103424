// RUN: mutad-opt %s -p outline-kernels | mutad-opt -p emulate-launches | filecheck %s

// Threads run in an order that no program may depend on.
// CHECK-LABEL: func.func @shuffled(%n: index, %u: memref<?xf64>)
// CHECK-NOT:     device
// CHECK:         array.loop %[[B:.*]] to
// CHECK:           array.loop %[[T:.*]] to
// CHECK:             arith.muli %[[T]]
// CHECK:             memref.store
// CHECK-NOT:     func.func private
func.func @shuffled(%n : index, %u : memref<?xf64>) {
  array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  func.return
}

// Between barriers all threads of a block come to the same place: 9 loops, and those of the second kernel.
// CHECK-LABEL: func.func @split_at_barriers
// CHECK-COUNT-2: array.alloc({{.*}}) {stack} : memref<256xf64>
// CHECK-NOT:     device
func.func @split_at_barriers(%n : index, %u : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  memref.store %zero, %s[] : memref<f64>
  %t = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}
