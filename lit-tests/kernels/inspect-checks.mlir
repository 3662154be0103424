// RUN: mutad-opt %s -p inspect-checks | filecheck %s

// A copy that stores nothing looks; the loop as it was written runs where it raises.
// CHECK-LABEL: @looked_at_before
// CHECK:         array.loop
// CHECK:           array.index %{{.*}} sign "any" unchecked
// CHECK-NOT:       memref.load %x
// CHECK-NOT:       memref.store %{{.*}}, %y
// CHECK:         scf.if
// CHECK:           array.index %{{.*}} sign "any"
// CHECK-NOT:       unchecked
// CHECK:           memref.store %{{.*}}, %y
// CHECK:         {raises}
// CHECK:         array.index %{{.*}} sign "any" unchecked
// CHECK:         memref.store %{{.*}}, %y
func.func @looked_at_before(%k : memref<?xindex>, %x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?xf64>
  %p = memref.dim %y, %c0 : memref<?xf64>
  %q = memref.dim %k, %c0 : memref<?xindex>
  %least = arith.minsi %p, %q : index
  %count = arith.minsi %n, %least : index
  %t = array.loop %i to %count do {
    %at = memref.load %k[%i] : memref<?xindex>
    %j = array.index %at, %m axis 0 sign "any"
    %v = memref.load %x[%j] : memref<?xf64>
    memref.store %v, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What a subscript reads at another is read only where that is in range.
// CHECK-LABEL: @twice
// CHECK:         array.loop
// CHECK:           array.index
// CHECK:           scf.if
// CHECK:           memref.load %l[
// CHECK:           array.index
// CHECK:         {raises}
func.func @twice(%k : memref<4xindex>, %l : memref<?xindex>, %x : memref<?xf64>, %y : memref<4xf64>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %x, %c0 : memref<?xf64>
  %n = memref.dim %l, %c0 : memref<?xindex>
  %t = array.loop %i to %c4 do {
    %a = memref.load %k[%i] : memref<4xindex>
    %b = array.index %a, %n axis 0 sign "any"
    %c = memref.load %l[%b] : memref<?xindex>
    %d = array.index %c, %m axis 0 sign "any"
    %v = memref.load %x[%d] : memref<?xf64>
    memref.store %v, %y[%i] : memref<4xf64>
    array.yield
  }
  func.return
}

// An element is looked at as it was before its iteration.
// CHECK-LABEL: @raises_before_it_stores
// CHECK:         array.loop
// CHECK-NOT:       memref.store %{{.*}}, %x
// CHECK:         scf.if
// CHECK:           array.raise_if
// CHECK:         {raises}
// CHECK-NOT:     array.raise_if
func.func @raises_before_it_stores(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  %t = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %bad = arith.cmpf olt, %v, %zero : f64
    array.raise_if %bad, "ValueError", "negative"
    %w = math.sqrt %v : f64
    memref.store %w, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_check_sees_what_is_stored
// CHECK-NOT:     {raises}
// CHECK:         array.raise_if
func.func @kept_where_a_check_sees_what_is_stored(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %big = arith.constant 100.0 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  %t = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %w = arith.mulf %v, %v : f64
    memref.store %w, %x[%i] : memref<?xf64>
    %u = memref.load %x[%i] : memref<?xf64>
    %bad = arith.cmpf ogt, %u, %big : f64
    array.raise_if %bad, "ValueError", "large"
    array.yield
  }
  func.return
}

// Iterations with one subscript have one owner.
// CHECK-LABEL: @where_iterations_meet_in_one_element
// CHECK:         {raises}
// CHECK:         array.index %{{.*}} sign "any" unchecked
func.func @where_iterations_meet_in_one_element(%k : memref<4xindex>, %x : memref<?xf64>, %v : f64) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %x, %c0 : memref<?xf64>
  %t = array.loop %i to %c4 do {
    %a = memref.load %k[%i] : memref<4xindex>
    %b = array.index %a, %m axis 0 sign "any"
    memref.store %v, %x[%b] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_another_iteration_stores_a_subscript
// CHECK-NOT:     {raises}
// CHECK:         array.index %{{.*}} sign "any"
// CHECK-NOT:     unchecked
func.func @kept_where_another_iteration_stores_a_subscript(%k : memref<4xindex>) {
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

// Products of Python's integers, too; what follows a check that fails is not looked at.
// CHECK-LABEL: @products
// CHECK:         array.loop
// CHECK:           arith.muli
// CHECK:           arith.divsi
// CHECK:           scf.if %{{.*}} {
// CHECK:             memref.store %{{.*}}, %[[FAILED:.*]][]
// CHECK:           %[[F:.*]] = memref.load %[[FAILED]][]
// CHECK:           %[[FINE:.*]] = arith.cmpi eq, %[[F]]
// CHECK:           scf.if %[[FINE]] {
// CHECK:             memref.load %k[%
// CHECK:         scf.if
// CHECK:           array.checked_mul
// CHECK:         {raises}
// CHECK-NOT:     array.checked_mul
func.func @products(%k : memref<?xindex>, %x : memref<4xf64>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %k, %c0 : memref<?xindex>
  %t = array.loop %i to %c4 do {
    %a = array.checked_mul %i, %m
    %b = array.index %a, %m axis 0 sign "any"
    %c = memref.load %k[%b] : memref<?xindex>
    %d = array.checked_mul %c, %c
    %v = array.cast %d : index -> f64
    memref.store %v, %x[%i] : memref<4xf64>
    array.yield
  }
  func.return
}

// Nothing around changes what it sees: it looks once, where there are elements. A branch that only stores is
// nothing to look at.
// CHECK-LABEL: @looked_at_once
// CHECK:         array.loop %i
// CHECK-NOT:       memref.load %y
// CHECK:           scf.if
// CHECK:             memref.load %k[
// CHECK:         %[[BAD:.*]] = arith.cmpi ne
// CHECK-NEXT:    array.loop %t to %steps do {
// CHECK-NEXT:      array.map
// CHECK:           scf.if %[[BAD]]
// CHECK:           {raises}
// CHECK:           array.index %{{.*}} sign "any" unchecked
func.func @looked_at_once(%k : memref<?xindex>, %x : f64, %y : memref<?xf64>, %z : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %p = memref.dim %y, %c0 : memref<?xf64>
  %q = memref.dim %k, %c0 : memref<?xindex>
  %turns = array.loop %t to %steps do {
    array.map(%p) outs(%z : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    %trips = array.loop %i to %q do {
      %at = memref.load %k[%i] : memref<?xindex>
      %j = array.index %at, %p axis 0 sign "any"
      %v = memref.load %y[%j] : memref<?xf64>
      %high = arith.cmpf ogt, %v, %x : f64
      scf.if %high {
        memref.store %x, %y[%j] : memref<?xf64>
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @looked_at_again_where_subscripts_change
// CHECK:         array.loop %t to %steps do {
// CHECK:           array.loop %i
// CHECK:             array.index %{{.*}} sign "any" unchecked
// CHECK:           arith.cmpi ne
// CHECK-NEXT:      scf.if
func.func @looked_at_again_where_subscripts_change(%k : memref<?xindex>, %x : f64, %y : memref<?xf64>, %z : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %p = memref.dim %y, %c0 : memref<?xf64>
  %q = memref.dim %k, %c0 : memref<?xindex>
  %turns = array.loop %t to %steps do {
    array.map(%p) outs(%z : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    %trips = array.loop %i to %q do {
      %at = memref.load %k[%i] : memref<?xindex>
      %j = array.index %at, %p axis 0 sign "any"
      memref.store %x, %y[%j] : memref<?xf64>
      array.yield
    }
    memref.store %t, %k[%c0] : memref<?xindex>
    array.yield
  }
  func.return
}
