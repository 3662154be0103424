// RUN: mutad-opt %s -p scalar-replace-carried | filecheck %s

// CHECK-LABEL: @each_adds_to_the_next
// CHECK:         %s_ahead = memref.alloca() : memref<f64>
// CHECK:         scf.if
// CHECK-NEXT:      memref.load %s[%{{.*}}]
// CHECK-NEXT:      memref.store %{{.*}}, %s_ahead[]
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      %a = memref.load %s_ahead[]
// CHECK-NOT:       memref.load %s[%i]
// CHECK:           memref.store %{{.*}}, %s_ahead[]
// CHECK-NEXT:      memref.store %{{.*}}, %s[%i]
// CHECK-NEXT:      array.yield
// CHECK:         scf.if
// CHECK-NEXT:      %[[LEFT:.*]] = memref.load %s_ahead[]
// CHECK:           memref.store %[[LEFT]], %s[%{{.*}}]
func.func @each_adds_to_the_next(%n : index, %x : f64, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %s[%i] : memref<?xf64>
    %b = arith.mulf %a, %x : f64
    memref.store %b, %s[%i] : memref<?xf64>
    %c = memref.load %s[%j] : memref<?xf64>
    %d = arith.addf %c, %a : f64
    memref.store %d, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// What is stored twice in an iteration is stored once, and what is loaded again is at hand.
// CHECK-LABEL: @downwards
// CHECK:         array.loop %k to %n
// CHECK:           %[[BEFORE:.*]] = memref.load %s_ahead
// CHECK:           %v = memref.load %s[
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[BEFORE]], %v
// CHECK-NEXT:      %[[ZERO_SUM:.*]] = arith.addf %zero, %v
// CHECK-NEXT:      memref.store %[[ZERO_SUM]], %s_ahead
// CHECK-NEXT:      memref.store %[[SUM]], %s[
// CHECK-NEXT:      array.yield
func.func @downwards(%n : index, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %i = arith.subi %last, %k : index
    %j = arith.addi %i, %c1 : index
    %v = memref.load %s[%i] : memref<?xf64>
    memref.store %zero, %s[%i] : memref<?xf64>
    %a = memref.load %s[%j] : memref<?xf64>
    %b = arith.addf %a, %v : f64
    memref.store %b, %s[%j] : memref<?xf64>
    %c = memref.load %s[%i] : memref<?xf64>
    %d = arith.addf %c, %v : f64
    memref.store %d, %s[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The next iteration overwrites it: nothing is loaded before the loop.
// CHECK-LABEL: @only_stored
// CHECK:         %s_ahead = memref.alloca() : memref<f64>
// CHECK-NEXT:    array.loop
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %s[%{{.*}}]
func.func @only_stored(%n : index, %x : f64, %y : f64, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    memref.store %x, %s[%i] : memref<?xf64>
    memref.store %y, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_places_are_two_iterations_apart
// CHECK-NOT:     memref.alloca
func.func @kept_where_places_are_two_iterations_apart(%n : index, %x : f64, %s : memref<?xf64>) {
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c2 : index
    memref.store %x, %s[%i] : memref<?xf64>
    memref.store %x, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_there_is_a_third_place
// CHECK-NOT:     memref.alloca
func.func @kept_where_there_is_a_third_place(%n : index, %x : f64, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %k = arith.addi %i, %c2 : index
    %a = memref.load %s[%k] : memref<?xf64>
    memref.store %a, %s[%i] : memref<?xf64>
    memref.store %x, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// The other subscript is of the iteration, too: nothing that it leaves is found by the next one.
// CHECK-LABEL: @kept_where_rows_are_of_the_iteration
// CHECK-NOT:     memref.alloca
func.func @kept_where_rows_are_of_the_iteration(%n : index, %x : f64, %s : memref<?x?xf64>, %k : memref<?xindex>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %row = memref.load %k[%i] : memref<?xindex>
    %j = arith.addi %i, %c1 : index
    memref.store %x, %s[%row, %i] : memref<?x?xf64>
    memref.store %x, %s[%row, %j] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_rows_may_count_from_the_end
// CHECK-NOT:     memref.alloca
func.func @kept_where_rows_may_count_from_the_end(%n : index, %x : f64, %s : memref<?x?xf64>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %down = arith.subi %n, %i : index
    %row = array.index %down, %n axis 0 : i64 sign "any" unchecked
    %j = arith.addi %i, %c1 : index
    memref.store %x, %s[%row, %i] : memref<?x?xf64>
    memref.store %x, %s[%row, %j] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// The element ahead would be stored after the loop alone.
// CHECK-LABEL: @kept_where_one_place_is_only_read
// CHECK-NOT:     memref.alloca
func.func @kept_where_one_place_is_only_read(%n : index, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %s[%i] : memref<?xf64>
    %b = memref.load %s[%j] : memref<?xf64>
    %c = arith.addf %a, %b : f64
    memref.store %a, %s[%j] : memref<?xf64>
    memref.store %c, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_view_is_of_the_same_memory
// CHECK-NOT:     memref.alloca
func.func @kept_where_a_view_is_of_the_same_memory(%n : index, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %t[%i] : memref<?xf64, strided<[1]>>
    memref.store %a, %s[%i] : memref<?xf64>
    memref.store %a, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_iteration_may_raise
// CHECK-NOT:     memref.alloca
func.func @kept_where_an_iteration_may_raise(%n : index, %x : f64, %bad : i1, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    memref.store %x, %s[%i] : memref<?xf64>
    array.raise_if %bad, "ValueError", "bad"
    memref.store %x, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_places_do_not_move
// CHECK-NOT:     memref.alloca
func.func @kept_where_the_places_do_not_move(%n : index, %k : index, %x : f64, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %j = arith.addi %k, %c1 : index
  %trips = array.loop %i to %n do {
    memref.store %x, %s[%k] : memref<?xf64>
    memref.store %x, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}
