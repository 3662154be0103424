// RUN: mutad-opt %s -p factor-cotangents | filecheck %s

// What of the factor is the same for all points is computed before the map; one guard is left of two.
// CHECK-LABEL: @one_product_for_each_cotangent
// CHECK:         %{{.*}} = arith.mulf %nu, %{{.*}} {ad.adjoint} : f64
// CHECK-NEXT:    %[[FIXED:.*]] = arith.subf %{{.*}}, %{{.*}} {ad.adjoint} : f64
// CHECK:         ^bb0(%g: f64, %p: f64):
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[FIXED]], %p {ad.adjoint} : f64
// CHECK-NEXT:      %e = ad.mul %g, %[[SUM]] {ad.adjoint, ad.collected} : f64
// CHECK-NEXT:      array.yield %e : f64
func.func @one_product_for_each_cotangent(%n : index, %nu : f64, %v : memref<?xf64>, %s : memref<?xf64>) {
  %two = arith.constant 2.0 : f64
  array.map(%n) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64):
    %a = ad.mul %g, %nu {ad.adjoint} : f64
    %b = arith.mulf %a, %two {ad.adjoint} : f64
    %c = arith.subf %g, %b {ad.adjoint} : f64
    %d = ad.mul %g, %p {ad.adjoint} : f64
    %e = arith.addf %c, %d {ad.adjoint} : f64
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @two_cotangents_have_a_factor_each
// CHECK:         ^bb0(%g: f64, %h: f64, %p: f64, %q: f64):
// CHECK-NEXT:      %[[A:.*]] = arith.addf %p, %q {ad.adjoint} : f64
// CHECK-NEXT:      %[[B:.*]] = ad.mul %g, %[[A]] {ad.adjoint} : f64
// CHECK-NEXT:      %[[C:.*]] = arith.subf %q, %p {ad.adjoint} : f64
// CHECK-NEXT:      %[[D:.*]] = ad.mul %h, %[[C]] {ad.adjoint} : f64
// CHECK-NEXT:      %t = arith.addf %[[B]], %[[D]] {ad.adjoint} : f64
// CHECK-NEXT:      array.yield %t : f64
func.func @two_cotangents_have_a_factor_each(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %h : f64, %p : f64, %q : f64):
    %minus = arith.negf %h {ad.adjoint} : f64
    %a = ad.mul %g, %p {ad.adjoint} : f64
    %b = ad.mul %minus, %p {ad.adjoint} : f64
    %c = ad.mul %g, %q {ad.adjoint} : f64
    %d = ad.mul %h, %q {ad.adjoint} : f64
    %e = arith.addf %a, %b {ad.adjoint} : f64
    %f = arith.addf %c, %d {ad.adjoint} : f64
    %t = arith.addf %e, %f {ad.adjoint} : f64
    array.yield %t : f64
  }
  func.return
}

// The inner sum is the cotangent of the outer one, whose second partial it does not take in.
// CHECK-LABEL: @a_sum_is_the_cotangent_of_another
// CHECK:         ^bb0(%g: f64, %p: f64, %q: f64):
// CHECK-NEXT:      %[[A:.*]] = arith.addf %p, %q {ad.adjoint} : f64
// CHECK-NEXT:      %c = ad.mul %g, %[[A]] {ad.adjoint, ad.collected} : f64
// CHECK-NEXT:      %[[B:.*]] = arith.subf %p, %q {ad.adjoint} : f64
// CHECK-NEXT:      %f = ad.mul %c, %[[B]] {ad.adjoint, ad.collected} : f64
// CHECK-NEXT:      array.yield %f : f64
func.func @a_sum_is_the_cotangent_of_another(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %a = ad.mul %g, %p {ad.adjoint} : f64
    %b = ad.mul %g, %q {ad.adjoint} : f64
    %c = arith.addf %a, %b {ad.adjoint} : f64
    %d = ad.mul %c, %p {ad.adjoint} : f64
    %e = ad.mul %c, %q {ad.adjoint} : f64
    %f = arith.subf %d, %e {ad.adjoint} : f64
    array.yield %f : f64
  }
  func.return
}

// Both products are another output's, too.
// CHECK-LABEL: @kept_where_it_saves_no_op
// CHECK:           %c = ad.mul %g, %p {ad.adjoint} : f64
// CHECK-NEXT:      %d = ad.mul %g, %q {ad.adjoint} : f64
// CHECK-NEXT:      %e = arith.addf %c, %d {ad.adjoint} : f64
// CHECK-NEXT:      array.yield %c, %d, %e
func.func @kept_where_it_saves_no_op(%n : index, %v : memref<?xf64>, %s : memref<?xf64>, %t : memref<?xf64>, %r : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s, %t, %r : memref<?xf64>, memref<?xf64>, memref<?xf64>) kinds ["add", "add", "add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %c = ad.mul %g, %p {ad.adjoint} : f64
    %d = ad.mul %g, %q {ad.adjoint} : f64
    %e = arith.addf %c, %d {ad.adjoint} : f64
    array.yield %c, %d, %e : f64, f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_cotangent_is_doubled
// CHECK:           %c = arith.addf %g, %g {ad.adjoint} : f64
func.func @kept_where_a_cotangent_is_doubled(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64):
    %c = arith.addf %g, %g {ad.adjoint} : f64
    array.yield %c : f64
  }
  func.return
}

// The product of two partials may overflow, and 0 times infinity has an order.
// CHECK-LABEL: @kept_where_a_term_has_two_partials
// CHECK:           %a = ad.mul %g, %p {ad.adjoint} : f64
// CHECK-NEXT:      %b = ad.mul %a, %q {ad.adjoint} : f64
// CHECK-NEXT:      %c = ad.mul %g, %q {ad.adjoint} : f64
// CHECK-NEXT:      %d = ad.mul %c, %p {ad.adjoint} : f64
// CHECK-NEXT:      %e = arith.addf %b, %d {ad.adjoint} : f64
func.func @kept_where_a_term_has_two_partials(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %a = ad.mul %g, %p {ad.adjoint} : f64
    %b = ad.mul %a, %q {ad.adjoint} : f64
    %c = ad.mul %g, %q {ad.adjoint} : f64
    %d = ad.mul %c, %p {ad.adjoint} : f64
    %e = arith.addf %b, %d {ad.adjoint} : f64
    array.yield %e : f64
  }
  func.return
}

// A partial times it may overflow where the product does not.
// CHECK-LABEL: @kept_where_a_constant_is_large
// CHECK:           %a = arith.mulf %g, %large {ad.adjoint} : f64
// CHECK-NEXT:      %b = ad.mul %a, %p {ad.adjoint} : f64
// CHECK-NEXT:      %c = ad.mul %g, %q {ad.adjoint} : f64
// CHECK-NEXT:      %d = arith.addf %b, %c {ad.adjoint} : f64
func.func @kept_where_a_constant_is_large(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %large = arith.constant 1.0e+10 : f64
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %a = arith.mulf %g, %large {ad.adjoint} : f64
    %b = ad.mul %a, %p {ad.adjoint} : f64
    %c = ad.mul %g, %q {ad.adjoint} : f64
    %d = arith.addf %b, %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}

// Equal products are one later: that is as few ops.
// CHECK-LABEL: @kept_where_a_square_is_differentiated
// CHECK:           %a = ad.mul %g, %p {ad.adjoint} : f64
// CHECK-NEXT:      %b = ad.mul %g, %p {ad.adjoint} : f64
// CHECK-NEXT:      %c = arith.addf %a, %b {ad.adjoint} : f64
func.func @kept_where_a_square_is_differentiated(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64):
    %a = ad.mul %g, %p {ad.adjoint} : f64
    %b = ad.mul %g, %p {ad.adjoint} : f64
    %c = arith.addf %a, %b {ad.adjoint} : f64
    array.yield %c : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_zero_partial_is_strong
// CHECK:           %c = ad.mul %g, %p both {ad.adjoint} : f64
// CHECK-NEXT:      %d = ad.mul %g, %q both {ad.adjoint} : f64
func.func @kept_where_a_zero_partial_is_strong(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %c = ad.mul %g, %p both {ad.adjoint} : f64
    %d = ad.mul %g, %q both {ad.adjoint} : f64
    %e = arith.addf %c, %d {ad.adjoint} : f64
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @sums_of_the_primal_are_kept
// CHECK:           %c = arith.mulf %g, %p : f64
// CHECK-NEXT:      %d = arith.mulf %g, %q : f64
func.func @sums_of_the_primal_are_kept(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %c = arith.mulf %g, %p : f64
    %d = arith.mulf %g, %q : f64
    %e = arith.addf %c, %d : f64
    array.yield %e : f64
  }
  func.return
}

// `p - p * p` is a partial: where `p` is infinite, it is not what `p * (1 - p)` is.
// CHECK-LABEL: @partials_are_kept
// CHECK:           %c = arith.mulf %p, %p {ad.adjoint} : f64
// CHECK-NEXT:      %d = arith.mulf %p, %q {ad.adjoint} : f64
// CHECK-NEXT:      %e = arith.subf %c, %d {ad.adjoint} : f64
// CHECK-NEXT:      %f = ad.mul %g, %e {ad.adjoint} : f64
func.func @partials_are_kept(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %c = arith.mulf %p, %p {ad.adjoint} : f64
    %d = arith.mulf %p, %q {ad.adjoint} : f64
    %e = arith.subf %c, %d {ad.adjoint} : f64
    %f = ad.mul %g, %e {ad.adjoint} : f64
    array.yield %f : f64
  }
  func.return
}

// CHECK-LABEL: @what_is_stored_may_be_no_cotangent
// CHECK:           %c = arith.mulf %g, %p {ad.adjoint} : f64
// CHECK-NEXT:      %d = arith.mulf %g, %q {ad.adjoint} : f64
func.func @what_is_stored_may_be_no_cotangent(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%v, %v, %v : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb0(%g : f64, %p : f64, %q : f64):
    %c = arith.mulf %g, %p {ad.adjoint} : f64
    %d = arith.mulf %g, %q {ad.adjoint} : f64
    %e = arith.addf %c, %d {ad.adjoint} : f64
    array.yield %e : f64
  }
  func.return
}
