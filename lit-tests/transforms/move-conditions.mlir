// RUN: mutad-opt %s -p move-conditions | filecheck %s

// CHECK-LABEL: @moved_where_it_stores_to_an_argument
// CHECK:         array.loop %i while {
// CHECK:           %goes_on = memref.load %more_flag[]
// CHECK-NEXT:      array.condition %goes_on
// CHECK-NEXT:    } do {
// CHECK:           memref.store %v, %x[%i]
// CHECK-NEXT:      memref.store %c, %more_flag[]
// CHECK-NEXT:      scf.if %c {
func.func @moved_where_it_stores_to_an_argument(%x : memref<?xf64>, %v : f64, %c : i1) {
  %trips = array.loop %i while {
  ^bb0(%j : index):
    memref.store %v, %x[%j] : memref<?xf64>
    array.condition %c
  } do {
    array.print "again"
    array.yield
  }
  func.return
}

// CHECK-LABEL: @trips_that_only_find_out_are_not_counted
// CHECK:         %[[EXTRA:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %trips_1 = arith.subi %trips, %[[EXTRA]] : index
// CHECK-NEXT:    func.return %trips_1
func.func @trips_that_only_find_out_are_not_counted(%x : memref<?xf64>, %v : f64, %c : i1, %n : index) -> index {
  %trips = array.loop %i to %n while {
  ^bb0(%j : index):
    memref.store %v, %x[%j] : memref<?xf64>
    array.condition %c
  } do {
    array.yield
  }
  func.return %trips : index
}

// A temporary of the condition alone is no reason.
// CHECK-LABEL: @kept_where_it_stores_to_its_own
// CHECK:         array.loop %i while {
// CHECK:           memref.store %v, %t[]
func.func @kept_where_it_stores_to_its_own(%v : f64, %c : i1) {
  %t = memref.alloca() : memref<f64>
  %trips = array.loop %i while {
  ^bb0(%j : index):
    memref.store %v, %t[] : memref<f64>
    array.condition %c
  } do {
    array.yield
  }
  func.return
}
