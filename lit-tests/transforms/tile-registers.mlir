// RUN: mutad-opt %s -p tile-registers | filecheck %s

// Six rows and eight columns are in registers in the loop over k; then one row, then four columns, and what is
// left as it was.
// CHECK-LABEL: @a_product
// CHECK:         array.loop %i to
// CHECK:           array.loop %k to
// CHECK:             array.loop %j to
// CHECK:               array.loop
// CHECK-COUNT-6:         vector.load %c[
// CHECK:                 array.loop %k_1 to
// CHECK-COUNT-6:           memref.load %a[
// CHECK-NEXT:              vector.load %b[
// CHECK-NOT:               vector.load
// CHECK:                   array.yield
// CHECK-COUNT-6:         vector.store {{.*}}, %c[{{.*}}, vector<8xf64>
// CHECK:               array.loop
// CHECK:                 vector.load %c[
// CHECK:                 vector.store {{.*}}, %c[{{.*}}, vector<8xf64>
// CHECK-NOT:             vector.store {{.*}}vector<8xf64>
// CHECK-COUNT-7:         vector.store {{.*}}, %c[{{.*}}, vector<4xf64>
// CHECK-NOT:     vector
// CHECK:         memref.store {{.*}}, %c[
func.func @a_product(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// So is a map over a row, between views of it.
// CHECK-LABEL: @rows_as_maps
// CHECK-COUNT-6: vector.load %row
// CHECK:         vector.load %other
// CHECK-NOT:     array.map
// CHECK:         func.return
func.func @rows_as_maps(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %row = array.view %c[%i, %c0] dims [1] extents(%l) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %a[%i, %k] : memref<?x?xf64>
      %other = array.view %b[%k, %c0] dims [1] extents(%l) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%l) ins(%other, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%y : f64, %old : f64):
        %z = arith.mulf %x, %y : f64
        %sum = arith.subf %old, %z : f64
        array.yield %sum : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Row i reads row i - 1, which is done before.
// CHECK-LABEL: @kept_when_rows_read_each_other
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_rows_read_each_other(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %next = arith.addi %i, %c1 : index
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %c[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%next, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%next, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The factor is an element of the row, which changes on the way.
// CHECK-LABEL: @kept_when_a_factor_is_in_the_row
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_a_factor_is_in_the_row(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %c[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows of different lengths have no tile in common.
// CHECK-LABEL: @kept_when_rows_differ_in_length
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_rows_differ_in_length(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %i do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What is added is another vector in each row: there is nothing to share.
// CHECK-LABEL: @kept_when_rows_share_nothing
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_rows_share_nothing(%c : memref<?x?xf64>, %b : memref<?x?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%i, %k, %j] : memref<?x?x?xf64>
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %y : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Nothing adds to a row again and again: k is outside of the rows.
// CHECK-LABEL: @kept_when_the_loop_that_adds_is_outside
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_the_loop_that_adds_is_outside(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %k to %m do {
    %trips_1 = array.loop %i to %n do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Columns lie apart.
// CHECK-LABEL: @kept_when_rows_are_columns
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_rows_are_columns(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%j, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%j, %i] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%j, %i] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A counter is added, not only what lies in memory.
// CHECK-LABEL: @kept_when_a_number_is_made_of_the_counter
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_a_number_is_made_of_the_counter(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = array.cast %j : index -> f64
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}
