// RUN: mutad-opt %s -p 'rotate-sums{most=1}' | filecheck %s

// Two sums would not stay in registers.
// CHECK-LABEL: @kept_when_there_are_few_registers
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:        func.return
func.func @kept_when_there_are_few_registers(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %cell2 = memref.alloca() : memref<f64>
  %squares = array.view %cell2[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    memref.store %zero, %cell2[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum, %squares : memref<?xf64, strided<[0]>>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      %s = arith.mulf %y, %y : f64
      array.yield %p, %s : f64, f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// One does.
// CHECK-LABEL: @one_sum_stays_in_registers
// CHECK:        scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins({{.*}}) outs(%a, %sum_1 :
// CHECK:        func.return
func.func @one_sum_stays_in_registers(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}
