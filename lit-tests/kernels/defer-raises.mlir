// RUN: mutad-opt %s -p defer-raises | filecheck %s

// The thread stops at a check that fails, and leaves what the exception shows; the host raises.
// CHECK-LABEL: @where_another_iteration_stores_a_subscript
// CHECK:         %[[SHOWN:.*]] = array.alloc(%{{.*}}) : memref<1xindex>
// CHECK:         array.loop
// CHECK:           array.index %a, %c4 axis 0 : i64 sign "any" unchecked
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %failed[]
// CHECK:             memref.store %a, %[[SHOWN]][
// CHECK:           scf.if
// CHECK:             memref.store %i, %k[%b]
// CHECK:         %[[A:.*]] = memref.load %[[SHOWN]][
// CHECK:         array.index %[[A]], %c4 axis 0 : i64 sign "any"
// CHECK-NOT:     unchecked
// CHECK:         {raises}
func.func @where_another_iteration_stores_a_subscript(%k : memref<4xindex>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = array.loop %i to %c4 do {
    %a = memref.load %k[%i] : memref<4xindex>
    %b = array.index %a, %c4 axis 0 sign "any"
    memref.store %i, %k[%b] : memref<4xindex>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @integers_that_do_not_fit
// CHECK:         array.loop
// CHECK:           arith.muli
// CHECK-NOT:       array.checked
// CHECK:           array.yield
// CHECK:         array.checked_mul
// CHECK:         array.checked_sub
// CHECK:         {raises}
func.func @integers_that_do_not_fit(%u : memref<?xf64>, %n : index) {
  %c3 = arith.constant 3 : index
  %s = memref.alloca() : memref<index>
  memref.store %n, %s[] : memref<index>
  %trips = array.loop %i to %n do {
    %old = memref.load %s[] : memref<index>
    %a = array.checked_mul %old, %c3
    %b = array.checked_sub %a, %i
    memref.store %b, %s[] : memref<index>
    %v = array.cast %b : index -> f64
    memref.store %v, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What the condition of a `while` checks ends it.
// CHECK-LABEL: @until
// CHECK:         array.loop
// CHECK:           array.index %{{.*}} sign "nonneg" unchecked
// CHECK:           %[[MORE:.*]] = scf.if
// CHECK:             arith.cmpf olt
// CHECK:           %[[FINE:.*]] = arith.cmpi eq,
// CHECK:           %[[BOTH:.*]] = arith.andi %[[MORE]], %[[FINE]]
// CHECK:           array.condition %[[BOTH]]
// CHECK-NOT:       array.checked_add
// CHECK:           array.yield
// CHECK:         array.index
// CHECK:         array.checked_add
// CHECK:         {raises}
func.func @until(%u : memref<?xf64>, %x : f64) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = memref.alloca() : memref<index>
  %n = memref.dim %u, %c0 : memref<?xf64>
  memref.store %c0, %i[] : memref<index>
  %trips = array.loop %k while {
  ^bb0(%l: index):
    %at = memref.load %i[] : memref<index>
    %j = array.index %at, %n axis 0 sign "nonneg"
    %y = memref.load %u[%j] : memref<?xf64>
    %more = arith.cmpf olt, %y, %x : f64
    array.condition %more
  } do {
    %old = memref.load %i[] : memref<index>
    %new = array.checked_add %old, %c1
    memref.store %new, %i[] : memref<index>
    array.yield
  }
  %r = memref.load %i[] : memref<index>
  func.return %r : index
}

// Many threads run it, or whole arrays are in it: then the host makes the checks.
// CHECK-LABEL: @kept_around_whole_arrays
// CHECK-NOT:     %failed
// CHECK:         array.raise_if
func.func @kept_around_whole_arrays(%u : memref<?xf64>, %n : index, %x : f64) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %y = memref.load %u[%c0] : memref<?xf64>
    %bad = arith.cmpf olt, %y, %x : f64
    array.raise_if %bad, "ValueError", "small"
    array.map(%m) outs(%u : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield
  }
  func.return
}

// Memory of the host: the host runs the loop.
// CHECK-LABEL: @kept_where_no_array_is_the_devices
// CHECK-NOT:     %failed
// CHECK:         array.checked_mul
func.func @kept_where_no_array_is_the_devices(%n : index) -> index {
  %s = memref.alloca() : memref<index>
  memref.store %n, %s[] : memref<index>
  %trips = array.loop %i to %n do {
    %old = memref.load %s[] : memref<index>
    %a = array.checked_mul %old, %n
    memref.store %a, %s[] : memref<index>
    array.yield
  }
  %r = memref.load %s[] : memref<index>
  func.return %r : index
}
