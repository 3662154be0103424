// RUN: mutad-opt %s -p raise-adjoints | filecheck %s
// RUN: mutad-opt %s -p raise-adjoints --run --only downwards --args 'n=3, bar=2, x=[1, 2, 3], s=[10, 20, 30]' | filecheck %s --check-prefix VALUES

// CHECK-LABEL: @downwards
// CHECK-NOT:     array.loop
// CHECK:         array.map
// CHECK-SAME:      kinds ["add"]
// VALUES:        s = [12, 24, 36]
func.func @downwards(%n : index, %bar : f64, %x : memref<?xf64>, %s : memref<?xf64>) {
  %one = arith.constant 1 : index
  %last = arith.subi %n, %one : index
  %trips = array.loop %k to %n do {
    %i = arith.subi %last, %k : index
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %bar, %a : f64
    %old = memref.load %s[%i] : memref<?xf64>
    %new = arith.addf %old, %b : f64
    memref.store %new, %s[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What was there is used twice: the map reads it.
// CHECK-LABEL: @stored_when_what_was_there_is_used_twice
// CHECK:         array.map
// CHECK-SAME:      kinds ["store"]
func.func @stored_when_what_was_there_is_used_twice(%s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %old = memref.load %s[%i] : memref<?xf64>
    %twice = arith.mulf %old, %old : f64
    %new = arith.addf %old, %twice : f64
    memref.store %new, %s[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// An order of loops is not lost.
// CHECK-LABEL: @kept_within_a_loop
// CHECK:         array.loop
// CHECK:         array.loop
func.func @kept_within_a_loop(%n : index, %x : memref<?xf64>, %s : memref<?xf64>) {
  %trips = array.loop %k to %n do {
    %inner = array.loop %i to %n do {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_cell_is_added_to
// CHECK:         array.loop
func.func @kept_when_a_cell_is_added_to(%n : index, %x : memref<?xf64>, %c : memref<f64>) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %old = memref.load %c[] : memref<f64>
    %new = arith.addf %old, %a : f64
    memref.store %new, %c[] : memref<f64>
    array.yield
  }
  func.return
}
