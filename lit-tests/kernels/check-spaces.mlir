// RUN: mutad-opt %s -p outline-kernels | mutad-opt -p check-spaces | filecheck %s

// A kernel of the second half reads what the host of the first has saved: both have it on the device.
// CHECK-LABEL: func.func @saved_forward
// CHECK:         %s = ad.push %t(%n) : memref<?xf64, 1 : i64>
// CHECK:         device.put %x, %s[%c0] : f64, memref<?xf64, 1 : i64>
// CHECK:         %here = ad.push %own(%n) : memref<?xf64>
// CHECK:         memref.store %x, %here[%c0] : memref<?xf64>
func.func @saved_forward(%n : index, %x : f64) -> (!ad.tape, !ad.tape, !ad.arena) {
  %c0 = arith.constant 0 : index
  %t = ad.tape
  %own = ad.tape
  %s = ad.push %t(%n) : memref<?xf64>
  memref.store %x, %s[%c0] : memref<?xf64>
  %here = ad.push %own(%n) : memref<?xf64>
  memref.store %x, %here[%c0] : memref<?xf64>
  %arena = ad.detach
  func.return %t, %own, %arena : !ad.tape, !ad.tape, !ad.arena
}

// CHECK-LABEL: func.func @saved_backward
// CHECK:         %s = ad.pop %{{.*}}(%n) : memref<?xf64, 1 : i64>
// CHECK:         %here = ad.pop %{{.*}}(%n) : memref<?xf64>
// CHECK:         memref.load %here[%c0] : memref<?xf64>
// CHECK:         device.launch
func.func @saved_backward(%kept : !ad.tape, %kept_too : !ad.tape, %n : index, %u : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %t = ad.reader %kept
  %own = ad.reader %kept_too
  %s = ad.pop %t(%n) : memref<?xf64>
  %here = ad.pop %own(%n) : memref<?xf64>
  %y = memref.load %here[%c0] : memref<?xf64>
  array.map(%n) ins(%s : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    %z = arith.mulf %x, %y : f64
    array.yield %z : f64
  }
  func.return
}
