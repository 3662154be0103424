// RUN: mutad-opt %s -p transpose-columns | filecheck %s

// CHECK-LABEL: @read_from_a_copy_when_a_loop_comes_back
// CHECK:         %a_columns = array.alloc
// CHECK:         array.map
// CHECK:         array.loop %i
// CHECK:           array.loop %k
// CHECK:             array.view %a_columns[%k, %{{.*}}] dims [1]
func.func @read_from_a_copy_when_a_loop_comes_back(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %row = array.view %x[%i, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %m do {
      %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_each_column_is_read_once
// CHECK-NOT:     array.alloc
func.func @kept_when_each_column_is_read_once(%a : memref<?x?xf64>, %x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips_1 = array.loop %k to %m do {
    %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%x : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_nest_stores_to_the_matrix
// CHECK-NOT:     array.alloc
func.func @kept_when_the_nest_stores_to_the_matrix(%a : memref<?x?xf64>, %x : memref<?xf64>, %n : index, %m : index, %e : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    memref.store %e, %a[%i, %c0] : memref<?x?xf64>
    %trips_1 = array.loop %k to %m do {
      %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%x : memref<?xf64>) kinds ["add"] {
      ^bb0(%f : f64):
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_what_is_stored_to_may_be_the_matrix
// CHECK-NOT:     array.alloc
func.func @kept_when_what_is_stored_to_may_be_the_matrix(%a : memref<?x?xf64>, %x : memref<?xf64>, %n : index, %m : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%x : memref<?xf64>) kinds ["add"] {
      ^bb0(%f : f64):
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_loop_comes_back_twice
// CHECK-NOT:     array.alloc
func.func @kept_when_a_loop_comes_back_twice(%a : memref<?x?xf64>, %x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %c2 do {
    %trips_1 = array.loop %k to %m do {
      %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%x : memref<?xf64>) kinds ["add"] {
      ^bb0(%f : f64):
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_matrix_does_not_lie_by_rows
// CHECK-NOT:     array.alloc
func.func @kept_when_the_matrix_does_not_lie_by_rows(%a : memref<?x?xf64, strided<[1, ?]>>, %x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?xf64, strided<[1]>>
      array.map(%n) ins(%column : memref<?xf64, strided<[1]>>) outs(%x : memref<?xf64>) kinds ["add"] {
      ^bb0(%f : f64):
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
