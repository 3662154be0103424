// RUN: mutad-opt %s -p drop-carried | filecheck %s

// CHECK-LABEL: @swapped_but_never_used
// CHECK:         %trips = array.loop %k to %n do {
// CHECK:           array.yield
// CHECK-NEXT:    }
func.func @swapped_but_never_used(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
  %trips, %a, %b = array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>) do {
    memref.store %v, %x[%i] : memref<?xf64>
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// One of them is read, and either takes its place in turn.
// CHECK-LABEL: @kept_because_its_partner_is_read
// CHECK:         array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>)
func.func @kept_because_its_partner_is_read(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %i : index) {
  %trips, %a, %b = array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>) do {
    %v = memref.load %p[%i] : memref<?xf64>
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_because_it_is_used_after_the_loop
// CHECK:         array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>)
func.func @kept_because_it_is_used_after_the_loop(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) -> memref<?xf64> {
  %trips, %a, %b = array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>) do {
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return %a : memref<?xf64>
}

// The inner loop hands it on only; without that, so does the outer one.
// CHECK-LABEL: @dropped_from_nested_loops
// CHECK:         %trips = array.loop %k to %n do {
// CHECK-NEXT:      %inner = array.loop %j to %n do {
func.func @dropped_from_nested_loops(%n : index, %x : memref<?xf64>) {
  %trips, %a = array.loop %k to %n carry(%p = %x : memref<?xf64>) do {
    %inner, %b = array.loop %j to %n carry(%q = %p : memref<?xf64>) do {
      array.yield %q : memref<?xf64>
    }
    array.yield %p : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_because_the_condition_reads_it
// CHECK:         carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>)
func.func @kept_because_the_condition_reads_it(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %zero : f64) {
  %c0 = arith.constant 0 : index
  %trips, %a, %b = array.loop %k carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>) while {
  ^bb0(%k1 : index, %p1 : memref<?xf64>, %q1 : memref<?xf64>):
    %v = memref.load %p1[%c0] : memref<?xf64>
    %more = arith.cmpf olt, %v, %zero : f64
    array.condition %more
  } do {
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @used_by_its_own_name_where_it_keeps_its_place
// CHECK:         %trips = array.loop %k to %n do {
// CHECK-NEXT:      memref.load %x[%k]
// CHECK:         func.return %x
func.func @used_by_its_own_name_where_it_keeps_its_place(%n : index, %x : memref<?xf64>) -> memref<?xf64> {
  %trips, %a = array.loop %k to %n carry(%p = %x : memref<?xf64>) do {
    %v = memref.load %p[%k] : memref<?xf64>
    array.yield %p : memref<?xf64>
  }
  func.return %a : memref<?xf64>
}
