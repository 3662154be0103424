// RUN: mutad-opt %s -p hoist-loads | filecheck %s
// RUN: mutad-opt %s -p hoist-loads --run --only not_looked_up_without_an_iteration --args 's=[1, 2], index=[1], w=[3, 4], i=7, n=0' | filecheck %s --check-prefix NONE
// RUN: mutad-opt %s -p hoist-loads --run --only not_looked_up_without_an_iteration --args 's=[1, 2], index=[1], w=[3, 4], i=0, n=2' | filecheck %s --check-prefix SOME

// NONE: s = [1, 2]
// SOME: s = [1, 9]
// CHECK-LABEL: @not_looked_up_without_an_iteration
// CHECK:         %k = scf.if %{{.*}} -> (i64) {
// CHECK-NEXT:      memref.load %index[%i]
// CHECK:         %at = array.cast %k
// CHECK-NEXT:    array.loop %j to %n do {
// CHECK-NOT:       %index
// CHECK:         func.return
func.func @not_looked_up_without_an_iteration(%s : memref<?xf64>, %index : memref<?xi64>, %w : memref<?xf64>, %i : index, %n : index) {
  %trips = array.loop %j to %n do {
    %k = memref.load %index[%i] : memref<?xi64>
    %at = array.cast %k : i64 -> index
    %x = memref.load %w[%j] : memref<?xf64>
    %a = memref.load %s[%at] : memref<?xf64>
    %b = arith.addf %a, %x : f64
    memref.store %b, %s[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// Both loops have an iteration where it is looked up, and what was looked up says where to look next.
// CHECK-LABEL: @looked_up_before_nests
// CHECK:         arith.cmpi sgt, %m
// CHECK:         arith.cmpi sgt, %n
// CHECK:         %[[BOTH:.*]] = arith.andi
// CHECK:         %k = scf.if %[[BOTH]] -> (i64) {
// CHECK:         %l = scf.if
// CHECK:           memref.load %index[%at]
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %j to %m do {
// CHECK-NEXT:        memref.store %x, %s[%there]
func.func @looked_up_before_nests(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %q : index, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %m do {
      %k = memref.load %index[%q] : memref<?xi64>
      %at = array.cast %k : i64 -> index
      %l = memref.load %index[%at] : memref<?xi64>
      %there = array.cast %l : i64 -> index
      memref.store %x, %s[%there] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @plain_where_there_are_iterations
// CHECK-NOT:     scf.if
// CHECK:         %k = memref.load
// CHECK:         array.loop
func.func @plain_where_there_are_iterations(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %i : index) {
  %c4 = arith.constant 4 : index
  %trips = array.loop %j to %c4 do {
    %k = memref.load %index[%i] : memref<?xi64>
    %at = array.cast %k : i64 -> index
    memref.store %x, %s[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_loop_writes
// CHECK:         array.loop
// CHECK-NEXT:      %k = memref.load
func.func @kept_where_the_loop_writes(%index : memref<?xi64>, %i : index, %n : index) {
  %trips = array.loop %j to %n do {
    %k = memref.load %index[%i] : memref<?xi64>
    memref.store %k, %index[%j] : memref<?xi64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_in_branches
// CHECK:         array.loop
// CHECK-NEXT:      scf.if %c
// CHECK-NEXT:        %k = memref.load
func.func @kept_in_branches(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %c : i1, %i : index, %n : index) {
  %trips = array.loop %j to %n do {
    scf.if %c {
      %k = memref.load %index[%i] : memref<?xi64>
      %at = array.cast %k : i64 -> index
      memref.store %x, %s[%at] : memref<?xf64>
    } else {
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_iterations_ask_first
// CHECK:         array.loop
// CHECK-NEXT:      array.raise_if
// CHECK-NEXT:      %k = memref.load
func.func @kept_where_iterations_ask_first(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %c : i1, %i : index, %n : index) {
  %trips = array.loop %j to %n do {
    array.raise_if %c, "IndexError", "no such element"
    %k = memref.load %index[%i] : memref<?xi64>
    %at = array.cast %k : i64 -> index
    memref.store %x, %s[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// Each iteration of the outer loop asks anew whether the inner one has any.
// CHECK-LABEL: @as_far_as_its_condition
// CHECK:         array.loop %i to %n do {
// CHECK:           %[[RUNS:.*]] = arith.cmpi sgt, %i
// CHECK-NEXT:      %k = scf.if %[[RUNS]] -> (i64) {
// CHECK:           array.loop %j to %i do {
// CHECK-NOT:         memref.load
func.func @as_far_as_its_condition(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %q : index, %n : index) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %i do {
      %k = memref.load %index[%q] : memref<?xi64>
      %at = array.cast %k : i64 -> index
      memref.store %x, %s[%at] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_with_what_else_a_branch_does
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      scf.if %c -> (i64) {
func.func @kept_with_what_else_a_branch_does(%s : memref<?xf64>, %index : memref<?xi64>, %x : f64, %q : index, %n : index, %c : i1) {
  %trips = array.loop %i to %n do {
    %k = scf.if %c -> (i64) {
      %0 = memref.load %index[%q] : memref<?xi64>
      scf.yield %0 : i64
    } else {
      %1 = arith.constant 1 : i64
      %2 = array.cast %i : index -> i64
      %3 = arith.addi %1, %2 : i64
      scf.yield %3 : i64
    }
    %at = array.cast %k : i64 -> index
    memref.store %x, %s[%at] : memref<?xf64>
    array.yield
  }
  func.return
}
