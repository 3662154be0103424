// RUN: mutad-opt %s -p pack-columns | filecheck %s

// The sum is known by its place: the function of a step copies the column, out of its loop.
// CHECK-LABEL: @decides
// CHECK-NOT:     by_columns
// CHECK-NOT:     _packed
// CHECK-LABEL: @follows
// CHECK:         %p_packed = array.alloc(%m)
// CHECK:         array.loop
// CHECK:           array.map(%m) ins(%p {{.*}} outs(%p_packed
// CHECK:           array.map(%m) ins(%p_packed {{.*}} outs(%p_packed, %t
// CHECK:           array.map(%m) ins(%p_packed {{.*}} outs(%p :
func.func @decides(%a : memref<?x?xf64>, %s : memref<f64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %t = array.view %s[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%m) ins(%p : memref<?xf64, strided<[1]>>) outs(%p, %t : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[0]>>) kinds ["store", "add"] attributes {by_columns} {
    ^bb0(%x : f64):
      array.yield %x, %x : f64, f64
    } loc("program.py":7:5)
    array.yield
  }
  func.return
}
func.func private @follows(%a : memref<?x?xf64>, %s : memref<f64>, %n : index) attributes {live = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %t = array.view %s[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p, %t : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[0]>>) kinds ["store", "add"] {
    ^bb0(%x : f64):
      array.yield %x, %x : f64, f64
    } loc("program.py":7:5)
    array.yield
  }
  func.return
}

// The same sum elsewhere in the source, one in a function that decides for itself, and a map that sums nothing.
// CHECK-LABEL: @kept_where_no_such_sum_was_of_a_copy
// CHECK-NOT:     _packed
// CHECK-LABEL: @kept_in_a_function_of_no_step
// CHECK-NOT:     _packed
// CHECK-LABEL: @kept_without_a_sum
// CHECK-NOT:     _packed
func.func private @kept_where_no_such_sum_was_of_a_copy(%p : memref<?xf64, strided<[?]>>, %a : memref<?x?xf64>, %s : memref<f64>, %k : index) attributes {live = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %q = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  %t = array.view %s[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%m) ins(%q : memref<?xf64, strided<[?]>>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  } loc("program.py":8:5)
  func.return
}
func.func @kept_in_a_function_of_no_step(%a : memref<?x?xf64>, %s : memref<f64>, %k : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %q = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  %t = array.view %s[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%m) ins(%q : memref<?xf64, strided<[?]>>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  } loc("program.py":7:5)
  func.return
}
func.func private @kept_without_a_sum(%a : memref<?x?xf64>, %s : memref<?xf64>, %k : index) attributes {live = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %q = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  array.map(%m) ins(%q : memref<?xf64, strided<[?]>>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  } loc("program.py":7:5)
  func.return
}
