// RUN: mutad-opt %s -p drop-restored | filecheck %s

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

// A map that hands on what it has read: the output that puts it back goes, the one that takes it stays.
// CHECK-LABEL: @an_output_that_puts_back
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"]
func.func @an_output_that_puts_back(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  array.map(%n) ins(%a : memref<?xf64>) outs(%a, %b : memref<?xf64>, memref<?xf64>) kinds ["store", "add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %x, %y : f64, f64
  }
  func.return
}

// A later output may add to the same element: the store before it changed nothing.
// CHECK-LABEL: @an_output_before_one_that_adds
// CHECK:         outs(%a : memref<?xf64>) kinds ["add"]
func.func @an_output_before_one_that_adds(%a : memref<?xf64>, %n : index) {
  array.map(%n) ins(%a : memref<?xf64>) outs(%a, %a : memref<?xf64>, memref<?xf64>) kinds ["store", "add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %x, %y : f64, f64
  }
  func.return
}

// What was added before is undone by the store.
// CHECK-LABEL: @kept_behind_an_output_that_adds
// CHECK:         kinds ["add", "store"]
func.func @kept_behind_an_output_that_adds(%a : memref<?xf64>, %n : index) {
  array.map(%n) ins(%a : memref<?xf64>) outs(%a, %a : memref<?xf64>, memref<?xf64>) kinds ["add", "store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y, %x : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_behind_an_output_that_may_be_the_same
// CHECK:         kinds ["store", "store"]
func.func @kept_behind_an_output_that_may_be_the_same(%a : memref<?xf64>, %b : memref<?xf64>, %n : index)
    attributes {overlaps = [[0 : i64, 1 : i64]]} {
  array.map(%n) ins(%a : memref<?xf64>) outs(%b, %a : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y, %x : f64, f64
  }
  func.return
}

// The element of another place, and what is added or multiplied to itself, is none that is put back.
// CHECK-LABEL: @kept_where_it_comes_from_elsewhere
// CHECK:         kinds ["store"]
// CHECK:         kinds ["add"]
func.func @kept_where_it_comes_from_elsewhere(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  array.map(%n) ins(%b : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) ins(%a : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// All is read before anything is stored: what was added at other points is undone.
// CHECK-LABEL: @kept_where_all_is_read_first
// CHECK:         kinds ["store", "add"] {{.*}}reads_first
func.func @kept_where_all_is_read_first(%a : memref<?xf64>, %n : index, %m : index) {
  %one = arith.constant 1 : index
  %b = array.view %a[%one] dims [0] extents(%m) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %c = array.view %a[%n] dims [0] extents(%m) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%b : memref<?xf64, strided<[1]>>) outs(%b, %c : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "add"] attributes {reads_first} {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}
