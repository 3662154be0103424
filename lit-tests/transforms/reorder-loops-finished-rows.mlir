// RUN: mutad-opt %s -p reorder-loops | filecheck %s

// Each row takes those before it: with k outside, these are read from a matrix that lies the other way.
// CHECK-LABEL: @rows_that_are_finished
// CHECK:         %[[MANY:.*]] = arith.cmpi sle
// CHECK:         scf.if %{{.*}} {
// CHECK:           %a_columns = array.alloc
// CHECK:           array.loop %i to %n
// CHECK:             array.loop %k to
// CHECK:               array.loop %j to
// CHECK:                 memref.load %a_columns[%k,
// CHECK:             %[[ROW:.*]] = array.loop
// CHECK-NEXT:          %[[E:.*]] = memref.load %a[%i, %{{.*}}]
// CHECK-NEXT:          memref.store %[[E]], %a_columns[%{{.*}}, %i]
// CHECK:         } else {
// CHECK-NEXT:      array.loop %i_1 to %n
// CHECK-NEXT:        array.loop %j_1 to %i_1
// CHECK-NEXT:          array.loop %k_1 to %j_1
// CHECK-NEXT:            memref.load
// CHECK-NEXT:            memref.load %a[%j_1, %k_1]
func.func @rows_that_are_finished(%a : memref<?x?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %i do {
      %trips_2 = array.loop %k to %j do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %a[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %a[%i, %j] : memref<?x?xf64>
        %new = arith.subf %old, %z : f64
        memref.store %new, %a[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The row of the iteration itself is not finished.
// CHECK-LABEL: @kept_where_the_row_may_be_its_own
// CHECK-NOT:     _columns
func.func @kept_where_the_row_may_be_its_own(%a : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %m = arith.addi %i, %c1 : index
    %trips_1 = array.loop %j to %m do {
      %trips_2 = array.loop %k to %j do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %a[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %a[%i, %j] : memref<?x?xf64>
        %new = arith.subf %old, %z : f64
        memref.store %new, %a[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Another store goes to a row that was finished.
// CHECK-LABEL: @kept_where_a_finished_row_changes
// CHECK-NOT:     _columns
func.func @kept_where_a_finished_row_changes(%a : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %i do {
      %trips_2 = array.loop %k to %j do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %a[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %a[%i, %j] : memref<?x?xf64>
        %new = arith.subf %old, %z : f64
        memref.store %new, %a[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    memref.store %zero, %a[%c0, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// Rows from 2 on are finished, and row 1 is read, which was there before.
// CHECK-LABEL: @kept_where_a_row_is_none_of_the_loops
// CHECK-NOT:     _columns
func.func @kept_where_a_row_is_none_of_the_loops(%a : memref<?x?xf64>, %n : index) {
  %c2 = arith.constant 2 : index
  %m = arith.subi %n, %c2 : index
  %trips = array.loop %i to %m do {
    %i2 = arith.addi %i, %c2 : index
    %trips_1 = array.loop %j to %i do {
      %trips_2 = array.loop %k to %j do {
        %x = memref.load %a[%i2, %k] : memref<?x?xf64>
        %y = memref.load %a[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %a[%i2, %j] : memref<?x?xf64>
        %new = arith.subf %old, %z : f64
        memref.store %new, %a[%i2, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Few rows, as is known.
// CHECK-LABEL: @kept_where_rows_are_few
// CHECK-NOT:     _columns
func.func @kept_where_rows_are_few(%a : memref<?x?xf64>) {
  %n = arith.constant 5 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %i do {
      %trips_2 = array.loop %k to %j do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %a[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %a[%i, %j] : memref<?x?xf64>
        %new = arith.subf %old, %z : f64
        memref.store %new, %a[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}
