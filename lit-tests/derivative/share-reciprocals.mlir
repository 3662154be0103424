// RUN: mutad-opt %s -p drop-guards{fused=true} | filecheck %s

// A quotient that the adjoint computes again, and its adjoint: one division, two products, both corrected.
// CHECK-LABEL: @again_and_its_adjoint(
// CHECK:         %[[ONE:.*]] = arith.constant {{.*}}1.000000e+00 : f64
// CHECK:         %[[OVER:.*]] = arith.divf %[[ONE]], %t
// CHECK:         arith.cmpf olt
// CHECK:         %over = arith.select
// CHECK:         %[[Q:.*]] = arith.mulf %m, %over
// CHECK:         %[[MINUS:.*]] = arith.negf %[[Q]]
// CHECK:         %[[LEFT:.*]] = math.fma %[[MINUS]], %t, %m
// CHECK:         %w = math.fma %[[LEFT]], %over, %[[Q]]
// CHECK:         arith.mulf %b, %w
// CHECK:         arith.mulf %b, %over
// CHECK-NOT:     arith.divf
// CHECK:         func.return
func.func @again_and_its_adjoint(%x : memref<?xf64>, %m : f64, %t : f64, %n : index, %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %w = arith.divf %m, %t : f64
      %p = ad.mul %b, %w : f64
      %q = ad.div %b, %t : f64
      %s = arith.addf %p, %q : f64
      memref.store %s, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The primal stores it: it is divided as it was, and nothing is shared.
// CHECK-LABEL: @kept_where_the_primal_reads_it(
// CHECK:         %w = arith.divf %m, %t
// CHECK:         %q = arith.divf %b, %t
// CHECK-NOT:     math.fma
// CHECK:         func.return
func.func @kept_where_the_primal_reads_it(%x : memref<?xf64>, %m : f64, %t : f64, %n : index,
    %y : memref<?xf64>, %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %own = array.alloc(%n) : memref<?xf64>
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %w = arith.divf %m, %t : f64
      memref.store %w, %own[%j] : memref<?xf64>
      %p = ad.mul %b, %w : f64
      %q = ad.div %b, %t : f64
      %s = arith.addf %p, %q : f64
      memref.store %s, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// One division is one division.
// CHECK-LABEL: @kept_where_nothing_else_divides(
// CHECK:         %q = arith.divf %b, %t
// CHECK-NOT:     math.fma
// CHECK:         func.return
func.func @kept_where_nothing_else_divides(%x : memref<?xf64>, %t : f64, %n : index, %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %q = ad.div %b, %t : f64
      memref.store %q, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Nor are several that are the same one.
// CHECK-LABEL: @kept_where_one_quotient_is_there_twice
// CHECK:         %p = arith.divf %b, %t
// CHECK-NOT:     math.fma
// CHECK:         func.return
func.func @kept_where_one_quotient_is_there_twice(%x : memref<?xf64>, %t : f64, %n : index, %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %p = ad.div %b, %t : f64
      %q = ad.div %b, %t : f64
      %s = arith.addf %p, %q : f64
      memref.store %s, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_number_by_its_root(
// CHECK:         %root = math.sqrt %r
// CHECK:         arith.cmpf olt
// CHECK:         %[[KEPT:.*]] = arith.select
// CHECK:         %[[HALF:.*]] = arith.mulf %[[KEPT]], %{{.*}}
// CHECK:         arith.mulf %b, %[[HALF]]
// CHECK-NOT:     arith.divf
// CHECK:         func.return
func.func @a_number_by_its_root(%x : memref<?xf64>, %r : f64, %n : index, %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %two = arith.constant 2.0 : f64
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %root = math.sqrt %r : f64
      %twice = arith.mulf %root, %two : f64
      %d = ad.mul %b, %r : f64
      %q = ad.div %d, %twice : f64
      memref.store %q, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_root_is_of_another(
// CHECK:         arith.divf
// CHECK:         func.return
func.func @kept_where_the_root_is_of_another(%x : memref<?xf64>, %r : f64, %s : f64, %n : index,
    %x_shadow : memref<?xf64>)
    attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %two = arith.constant 2.0 : f64
  %t1 = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %root = math.sqrt %s : f64
      %twice = arith.mulf %root, %two : f64
      %d = ad.mul %b, %r : f64
      %q = ad.div %d, %twice : f64
      memref.store %q, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}
