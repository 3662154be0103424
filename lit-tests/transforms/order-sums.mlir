// RUN: mutad-opt %s -p order-sums | filecheck %s

// Sums over the columns of an argument of which only the caller knows how it lies: along %g. The step has a
// contiguous copy of the argument, and would go along its rows.
// CHECK-LABEL: @decides
// CHECK-NOT:     innermost
// CHECK-LABEL: @follows
// CHECK:         array.map(%n, %m) ins(%g, %a {{.*}} attributes {innermost = 0 : i64}
func.func @decides(%n : index, %m : index, %v : memref<?xf64>, %a : memref<?x?xf64, strided<[?, ?]>>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = array.view %v[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %t = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64, strided<[?, ?]>>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y {ad.adjoint} : f64
    array.yield %z : f64
  } loc("program.py":7:5)
  func.return
}
func.func private @follows(%n : index, %m : index, %v : memref<?xf64>, %a : memref<?x?xf64>, %s : memref<?xf64>) attributes {live = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = array.view %v[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %t = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y {ad.adjoint} : f64
    array.yield %z : f64
  } loc("program.py":7:5)
  func.return
}

// A sum of the primal at the same place, and one over the other axis, have other orders; what stands elsewhere, a
// function that is no step, and what sums nothing, decide for themselves.
// CHECK-LABEL: @kept_for_other_sums
// CHECK-NOT:     innermost
// CHECK-LABEL: @kept_where_no_step_runs
// CHECK-NOT:     innermost
func.func private @kept_for_other_sums(%n : index, %m : index, %v : memref<?xf64>, %a : memref<?x?xf64>, %s : memref<?xf64>) attributes {live = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = array.view %v[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %t = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %u = array.view %s[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y : f64
    array.yield %z : f64
  } loc("program.py":7:5)
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64>) outs(%u : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y {ad.adjoint} : f64
    array.yield %z : f64
  } loc("program.py":7:5)
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y {ad.adjoint} : f64
    array.yield %z : f64
  } loc("program.py":8:5)
  array.map(%n, %m) ins(%g : memref<?x?xf64, strided<[1, 0]>>) outs(%a : memref<?x?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  } loc("program.py":7:5)
  func.return
}
func.func @kept_where_no_step_runs(%n : index, %m : index, %v : memref<?xf64>, %a : memref<?x?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = array.view %v[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %t = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%g, %a : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y {ad.adjoint} : f64
    array.yield %z : f64
  } loc("program.py":9:5)
  func.return
}
