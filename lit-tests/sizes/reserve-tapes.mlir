// RUN: mutad-opt %s -p reserve-tapes | filecheck %s

// Each iteration pushes a longer row: the sum is computed before the loop.
// CHECK-LABEL: @what_iterations_push_is_added_up(
// CHECK:         array.loop
// CHECK:         %[[SUM:.*]] = memref.load
// CHECK:         %[[BYTES:.*]] = arith.andi
// CHECK-NEXT:    %t = ad.tape reserves %[[BYTES]]
// CHECK-NEXT:    %trips = array.loop
func.func @what_iterations_push_is_added_up(%n : index) {
  %t = ad.tape
  %trips = array.loop %i to %n do {
    %s = ad.push %t(%i) : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @what_is_handed_on_counts(
// CHECK:         %t = ad.tape reserves %{{.*}}
// CHECK-NEXT:    %trips = array.loop
func.func @what_is_handed_on_counts(%a : memref<?xf64>, %n : index) -> !ad.tape {
  %t = ad.tape
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %s = ad.push %t(%m) : memref<?xf64>
    array.yield
  }
  func.return %t : !ad.tape
}

// What is raised before the loop is raised before anything is added up.
// CHECK-LABEL: @checks_stay_before_the_sum(
// CHECK:         array.raise_if
// CHECK:         array.loop
// CHECK:         ad.tape reserves
func.func @checks_stay_before_the_sum(%n : index) {
  %t = ad.tape
  %c0 = arith.constant 0 : index
  %wrong = arith.cmpi slt, %n, %c0 : index
  array.raise_if %wrong, "ValueError", "negative"
  %trips = array.loop %i to %n do {
    %s = ad.push %t(%i) : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_data_decides(
// CHECK-NOT:     reserves
// CHECK:         func.return
func.func @kept_where_data_decides(%n : index, %a : memref<?xf64>, %c : memref<?xi1>) {
  %t = ad.tape
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %taken = memref.load %c[%i] : memref<?xi1>
    scf.if %taken {
      %s = ad.push %t(%m) : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_loop_may_end_early(
// CHECK-NOT:     reserves
// CHECK:         func.return
func.func @kept_where_a_loop_may_end_early(%n : index, %c : memref<?xi1>) {
  %t = ad.tape
  %trips = array.loop %i to %n while {
  ^bb0(%k : index):
    %go = memref.load %c[%k] : memref<?xi1>
    array.condition %go
  } do {
    %s = ad.push %t(%i) : memref<?xf64>
    array.yield
  }
  func.return
}

// One segment is all that its first chunk holds.
// CHECK-LABEL: @kept_with_one_segment(
// CHECK-NOT:     reserves
// CHECK:         func.return
func.func @kept_with_one_segment(%n : index) {
  %t = ad.tape
  %s = ad.push %t(%n) : memref<?xf64>
  func.return
}

// What is raised in an early iteration is raised soon.
// CHECK-LABEL: @few_are_added_up_where_an_iteration_may_raise(
// CHECK:         %[[MOST:.*]] = arith.constant 16777216 : index
// CHECK-NEXT:    %[[COUNT:.*]] = arith.minsi %{{.*}}, %[[MOST]] : index
// CHECK-NEXT:    array.loop %{{.*}} to %[[COUNT]] do
// CHECK:         ad.tape reserves
func.func @few_are_added_up_where_an_iteration_may_raise(%n : index, %c : memref<?xi1>) {
  %t = ad.tape
  %trips = array.loop %i to %n do {
    %wrong = memref.load %c[%i] : memref<?xi1>
    array.raise_if %wrong, "ValueError", "no"
    %s = ad.push %t(%i) : memref<?xf64>
    array.yield
  }
  func.return
}
