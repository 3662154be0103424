// RUN: mutad-opt %s -p assume-extents | filecheck %s

// CHECK-LABEL: @rows_of_three_are_assumed_where_three_are_read
// CHECK:         %[[long:.*]] = memref.dim %x
// CHECK:         %[[three:.*]] = arith.constant 3
// CHECK:         %[[is:.*]] = arith.cmpi eq, %[[long]], %[[three]]
// CHECK:         scf.if %[[is]] {
// CHECK:           %[[rows:.*]] = array.view %x{{.*}} -> memref<?x3xf64, strided<[3, 1]>>
// CHECK:           array.loop
// CHECK-COUNT-3:     memref.load %[[rows]]
// CHECK:         } else {
// CHECK:           array.loop
// CHECK-COUNT-3:     memref.load %x[
func.func @rows_of_three_are_assumed_where_three_are_read(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64>
    %b = memref.load %x[%i, %c1] : memref<?x?xf64>
    %c = memref.load %x[%i, %c2] : memref<?x?xf64>
    %d = arith.addf %a, %b : f64
    %e = arith.addf %d, %c : f64
    memref.store %e, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @stored_rows_count_as_well
// CHECK:         scf.if
// CHECK:           array.view %x
// CHECK:           memref.store %{{.*}}, %x_1[
func.func @stored_rows_count_as_well(%x : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64>
    memref.store %a, %x[%i, %c1] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_one_column_is_read
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_when_one_column_is_read(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_column_is_left_out
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_when_a_column_is_left_out(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64>
    %b = memref.load %x[%i, %c2] : memref<?x?xf64>
    %c = arith.addf %a, %b : f64
    memref.store %c, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_column_is_computed
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_when_a_column_is_computed(%x : memref<?x?xf64>, %y : memref<?xf64>, %j : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64>
    %b = memref.load %x[%i, %c1] : memref<?x?xf64>
    %d = memref.load %x[%i, %j] : memref<?x?xf64>
    %c = arith.addf %a, %b : f64
    %e = arith.addf %c, %d : f64
    memref.store %e, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_row_stands_still
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_when_the_row_stands_still(%x : memref<?x?xf64>, %y : memref<?xf64>, %j : index, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%j, %c0] : memref<?x?xf64>
    %b = memref.load %x[%j, %c1] : memref<?x?xf64>
    %c = arith.addf %a, %b : f64
    memref.store %c, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_strides_are_not_the_array_s_own
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_when_strides_are_not_the_array_s_own(%x : memref<?x?xf64, strided<[?, ?]>>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i, %c0] : memref<?x?xf64, strided<[?, ?]>>
    %b = memref.load %x[%i, %c1] : memref<?x?xf64, strided<[?, ?]>>
    %c = arith.addf %a, %b : f64
    memref.store %c, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
