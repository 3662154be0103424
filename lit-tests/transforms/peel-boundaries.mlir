// RUN: mutad-opt %s -p peel-boundaries | filecheck %s

// CHECK-LABEL: @first_iteration_is_apart
// CHECK:         array.loop
// CHECK:           arith.maxsi
// CHECK:         } {small}
// CHECK:         array.loop
// CHECK-NOT:       arith.maxsi
// CHECK:         func.return
func.func @first_iteration_is_apart(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %before = arith.subi %i, %c1 : index
    %j = arith.maxsi %before, %c0 : index
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @both_ends_are_apart
// CHECK:         array.loop
// CHECK:           scf.if
// CHECK:         } {small}
// CHECK:         array.loop
// CHECK-NOT:       scf.if
// CHECK:           memref.load %x
// CHECK-NOT:       memref.load %edge
// CHECK:           memref.store
// CHECK:         array.loop
// CHECK:           scf.if
// CHECK:         } {small}
func.func @both_ends_are_apart(%x : memref<?xf64>, %edge : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %next = arith.addi %i, %c1 : index
    %first = arith.cmpi eq, %i, %c0 : index
    %inside = arith.cmpi slt, %next, %n : index
    %a = scf.if %inside -> (f64) {
      %b = memref.load %x[%next] : memref<?xf64>
      scf.yield %b : f64
    } else {
      %b = memref.load %edge[%i] : memref<?xf64>
      scf.yield %b : f64
    }
    %c = arith.addf %a, %a : f64
    %d = arith.select %first, %a, %c : f64
    memref.store %d, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A reverse sweep counts down: its first iteration is the program's last.
// CHECK-LABEL: @last_iteration_is_apart_in_a_loop_that_counts_down
// CHECK:         array.loop
// CHECK-NOT:       arith.select
// CHECK:         }
// CHECK:         array.loop
// CHECK:           arith.select
// CHECK:         } {small}
func.func @last_iteration_is_apart_in_a_loop_that_counts_down(%x : memref<?xf64>, %y : memref<?xf64>, %e : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %i = arith.subi %last, %k : index
    %a = memref.load %x[%i] : memref<?xf64>
    %inside = arith.cmpi sgt, %i, %c0 : index
    %b = arith.select %inside, %a, %e : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_data_decide
// CHECK-COUNT-1: array.loop
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_when_the_data_decide(%x : memref<?xf64>, %p : memref<?xindex>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %q = memref.load %p[%i] : memref<?xindex>
    %j = arith.maxsi %q, %c0 : index
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_nobody_knows_how_many
// CHECK-COUNT-1: array.loop
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_when_nobody_knows_how_many(%x : memref<?xf64>, %y : memref<?xf64>, %m : index, %n : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %n do {
    %before = arith.subi %i, %m : index
    %j = arith.maxsi %before, %c0 : index
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_they_are_many
// CHECK-COUNT-1: array.loop
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_when_they_are_many(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %trips = array.loop %i to %n do {
    %before = arith.subi %i, %c5 : index
    %j = arith.maxsi %before, %c0 : index
    %a = memref.load %x[%j] : memref<?xf64>
    memref.store %a, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_every_second_iteration_is_asked
// CHECK-COUNT-1: array.loop
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @kept_when_every_second_iteration_is_asked(%x : memref<?xf64>, %y : memref<?xf64>, %e : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %odd = arith.andi %i, %c1 : index
    %is = arith.cmpi eq, %odd, %c0 : index
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.select %is, %a, %e : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
