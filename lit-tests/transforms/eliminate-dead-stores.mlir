// RUN: mutad-opt %s -p eliminate-dead-stores | filecheck %s

// CHECK-LABEL: @what_is_put_back
// CHECK:         memref.load %a
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @what_is_put_back(%a : memref<?xf64>, %i : index) -> f64 {
  %zero = arith.constant 0.0 : f64
  %x = memref.load %a[%i] : memref<?xf64>
  memref.store %zero, %a[%i] : memref<?xf64>
  %y = arith.addf %zero, %x {ad.adjoint} : f64
  memref.store %y, %a[%i] : memref<?xf64>
  func.return %x : f64
}

// Constants, comparisons and the like look at nothing.
// CHECK-LABEL: @what_is_put_back_after_a_comparison
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @what_is_put_back_after_a_comparison(%a : memref<?xf64>, %i : index) -> f64 {
  %zero = arith.constant 0.0 : f64
  %x = memref.load %a[%i] : memref<?xf64>
  memref.store %zero, %a[%i] : memref<?xf64>
  %two = arith.constant 2.0 : f64
  %t = arith.mulf %x, %two : f64
  %c = arith.cmpf oeq, %t, %zero : f64
  %z = arith.select %c, %zero, %t : f64
  %y = arith.addf %zero, %x {ad.adjoint} : f64
  memref.store %y, %a[%i] : memref<?xf64>
  func.return %z : f64
}

// CHECK-LABEL: @the_first_of_two_stores
// CHECK-NOT:     memref.store %x
// CHECK:         memref.store %y
func.func @the_first_of_two_stores(%a : memref<?xf64>, %i : index, %x : f64, %y : f64) {
  memref.store %x, %a[%i] : memref<?xf64>
  memref.store %y, %a[%i] : memref<?xf64>
  func.return
}

// In the program's own arithmetic 0.0 + -0.0 is 0.0.
// CHECK-LABEL: @kept_when_the_sum_is_the_programs
// CHECK:         arith.addf
// CHECK:         memref.store
func.func @kept_when_the_sum_is_the_programs(%a : memref<?xf64>, %i : index) {
  %zero = arith.constant 0.0 : f64
  %x = memref.load %a[%i] : memref<?xf64>
  %y = arith.addf %zero, %x : f64
  memref.store %y, %a[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_when_something_reads_it
// CHECK:         memref.store %x
// CHECK:         memref.load
// CHECK:         memref.store %y
func.func @kept_when_something_reads_it(%a : memref<?xf64>, %i : index, %j : index, %x : f64, %y : f64) -> f64 {
  memref.store %x, %a[%i] : memref<?xf64>
  %z = memref.load %a[%j] : memref<?xf64>
  memref.store %y, %a[%i] : memref<?xf64>
  func.return %z : f64
}

// Whoever catches the exception finds x in a[i].
// CHECK-LABEL: @kept_when_something_raises
// CHECK:         memref.store %x
// CHECK:         array.index
// CHECK:         memref.store %y
func.func @kept_when_something_raises(%a : memref<?xf64>, %i : index, %j : index, %n : index, %x : f64, %y : f64) -> index {
  memref.store %x, %a[%i] : memref<?xf64>
  %k = array.index %j, %n axis 0 sign "any"
  memref.store %y, %a[%i] : memref<?xf64>
  func.return %k : index
}

// b may be a: what a[i] holds in the end is not what was loaded.
// CHECK-LABEL: @kept_when_another_store_may_be_to_it
// CHECK:         memref.store %y
// CHECK:         memref.store %x
func.func @kept_when_another_store_may_be_to_it(%a : memref<?xf64>, %i : index, %j : index, %y : f64) {
  %x = memref.load %a[%i] : memref<?xf64>
  memref.store %y, %a[%j] : memref<?xf64>
  memref.store %x, %a[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_when_a_loop_stores_in_between
// CHECK:         array.loop
// CHECK:         memref.store %x
func.func @kept_when_a_loop_stores_in_between(%a : memref<?xf64>, %i : index, %n : index, %y : f64) {
  %x = memref.load %a[%i] : memref<?xf64>
  %trips = array.loop %k to %n do {
    memref.store %y, %a[%k] : memref<?xf64>
    array.yield
  }
  memref.store %x, %a[%i] : memref<?xf64>
  func.return
}
