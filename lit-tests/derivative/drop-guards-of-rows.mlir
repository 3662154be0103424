// RUN: mutad-opt %s -p drop-guards | filecheck %s

// The rest of the shadow holds what it came with. A row that is not there is not looked at.
// CHECK-LABEL: @rows_that_are_known(
// CHECK-NOT:     ad.mul
// CHECK:         %[[ROWS:.*]] = memref.dim %w_shadow
// CHECK:         %[[BEHIND:.*]] = arith.minsi %[[ROWS]],
// CHECK-NEXT:    %[[MORE:.*]] = arith.subi %[[BEHIND]], %[[FIRST:.*]] : index
// CHECK-NEXT:    %[[COUNT:.*]] = arith.maxsi %[[MORE]],
// CHECK:         %[[PART:.*]] = array.view %w_shadow[%[[FIRST]], %{{.*}}] dims [0, 1] extents(%[[COUNT]], %[[N:.*]]) steps
// CHECK:         array.map(%[[COUNT]], %[[N]]) ins(%[[PART]] :
// CHECK:         ad.retry_if
func.func @rows_that_are_known(%p : f64, %n : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = array.loop %i to %n do {
    %m = ad.mul %bar, %p {ad.adjoint} : f64
    memref.store %m, %w_shadow[%c1, %i] : memref<?x?xf64>
    memref.store %m, %w_shadow[%c2, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_row_as_a_view_that_was_filled(
// CHECK-NOT:     ad.mul
// CHECK:         ad.retry_if
func.func @a_row_as_a_view_that_was_filled(%p : f64, %n : index, %m : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  array.map(%n, %m) outs(%w_shadow : memref<?x?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %row = array.view %w_shadow[%c1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.loop %i to %n do {
    array.map(%m) outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
      %q = ad.mul %bar, %p {ad.adjoint} : f64
      array.yield %q : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_row_is_not_known(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @kept_where_the_row_is_not_known(%p : f64, %k : index, %n : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %t = array.loop %i to %n do {
    %m = ad.mul %bar, %p {ad.adjoint} : f64
    memref.store %m, %w_shadow[%k, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_one_of_them_is_any_row(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @kept_where_one_of_them_is_any_row(%p : f64, %n : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %m = ad.mul %bar, %p {ad.adjoint} : f64
    memref.store %m, %w_shadow[%c1, %i] : memref<?x?xf64>
    memref.store %m, %w_shadow[%i, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_rows_are_far_apart(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @kept_where_rows_are_far_apart(%p : f64, %n : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %c1 = arith.constant 1 : index
  %c99 = arith.constant 99 : index
  %t = array.loop %i to %n do {
    %m = ad.mul %bar, %p {ad.adjoint} : f64
    memref.store %m, %w_shadow[%c1, %i] : memref<?x?xf64>
    memref.store %m, %w_shadow[%c99, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// What it is filled with comes from the adjoint: it may be a NaN.
// CHECK-LABEL: @kept_where_all_is_filled_with_a_cotangent(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @kept_where_all_is_filled_with_a_cotangent(%p : f64, %n : index, %w_shadow : memref<?x?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %m = ad.mul %bar, %p {ad.adjoint} : f64
  array.map(%n, %n) outs(%w_shadow : memref<?x?xf64>) kinds ["add"] {
    array.yield %m : f64
  }
  func.return
}
