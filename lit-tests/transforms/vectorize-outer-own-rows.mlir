// RUN: mutad-opt %s -p vectorize-outer | filecheck %s
// RUN: mutad-opt %s -p vectorize-outer --run --only own_rows_are_read_before_the_inner_loop --args 'x=[[1, 2], [3, 5], [0, 1]], v=[1, 2, 3], n=3, zero=0' | filecheck %s --check-prefix VALUES

// What a point reads in each inner iteration is read once, and what it adds to in place is no obstacle.
// CHECK-LABEL: @own_rows_are_read_before_the_inner_loop
// CHECK:         array.loop %block
// CHECK:           %points = arith.maxsi
// CHECK:           %[[OWN:.*]] = memref.load %x[%{{.*}}, %c0]
// CHECK:           memref.store %[[OWN]], %{{.*}}[%point
// CHECK:           array.loop %j to %n do {
// CHECK:             array.loop %point{{.*}} to %points do {
// CHECK:               math.sqrt
// CHECK:           memref.load %v[
// VALUES: v = [4, 7, 7
func.func @own_rows_are_read_before_the_inner_loop(
    %x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %zero : f64
) {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %own = memref.load %x[%i, %c0] : memref<?x?xf64>
      %b = arith.subf %a, %own : f64
      %c = arith.mulf %b, %b : f64
      %d = math.sqrt %c : f64
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %d : f64
      memref.store %sum, %s[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    %before = memref.load %v[%i] : memref<?xf64>
    %after = arith.addf %before, %r : f64
    memref.store %after, %v[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The inner loop may have no iteration: then the row need not exist.
// CHECK-LABEL: @kept_where_the_inner_loop_may_not_run
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_the_inner_loop_may_not_run(
    %x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index, %zero : f64
) {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %j to %m do {
      %own = memref.load %x[%i, %c0] : memref<?x?xf64>
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = arith.subf %a, %own : f64
      %d = math.sqrt %b : f64
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %d : f64
      memref.store %sum, %s[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    memref.store %r, %v[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// Something may be raised before the row is read.
// CHECK-LABEL: @kept_behind_a_check
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_behind_a_check(
    %x : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index, %zero : f64
) {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    %trips_1 = array.loop %j to %n do {
      %k = array.index %j, %m axis 0 : index sign "nonneg"
      %own = memref.load %x[%i, %c0] : memref<?x?xf64>
      %a = memref.load %x[%k, %c0] : memref<?x?xf64>
      %b = arith.subf %a, %own : f64
      %d = math.sqrt %b : f64
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %d : f64
      memref.store %sum, %s[] : memref<f64>
      array.yield
    }
    %r = memref.load %s[] : memref<f64>
    memref.store %r, %v[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
