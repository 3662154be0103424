// RUN: mutad-opt %s -p sanitize-derivatives | filecheck %s

// What is told: the program's expression, what it is a derivative of, and how it was computed.
// CHECK-LABEL: @a_quotient_is_checked
// CHECK:         %x_bar = ad.div %y_bar, %x {ad.adjoint} : f64
// CHECK:         arith.cmpf uge
// CHECK-NEXT:    array.raise_if {{.*}} "FloatingPointError", "np.log(x): the cotangent of x is {}: {} / {}"(%x_bar, %y_bar, %x : f64, f64, f64)
// CHECK-NEXT:    func.return %x_bar : f64
func.func @a_quotient_is_checked(%x : f64, %y_bar : f64) -> f64 {
  %x_bar = ad.div %y_bar, %x {ad.adjoint, ad.made = ["cotangent", "x", "np.log(x)"]} : f64
  func.return %x_bar : f64
}

// CHECK-LABEL: @what_is_not_marked_is_not_checked
// CHECK-NEXT:    ad.div
// CHECK-NEXT:    func.return
func.func @what_is_not_marked_is_not_checked(%x : f64, %y_bar : f64) -> f64 {
  %x_bar = ad.div %y_bar, %x {ad.adjoint} : f64
  func.return %x_bar : f64
}

// A map becomes loops; the subscripts are those of the whole array, not of the slice.
// CHECK-LABEL: @maps_become_loops
// CHECK:         array.loop {{.*}} to %n do
// CHECK:           %u_bar = ad.mul
// CHECK:           arith.addi %c1
// CHECK:           array.raise_if {{.*}} "u * v: the cotangent of u[{}] is {}: {} * {}"
// CHECK:           array.raise_if {{.*}} "the cotangent of u[{}], a sum, is {}: {} + {}"
// CHECK:           memref.store
// CHECK-NOT:     array.map
func.func @maps_become_loops(%n : index, %v : memref<?xf64>, %y_shadow : memref<?xf64>, %u_shadow : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %w = array.view %u_shadow[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1], offset: ?>>
  array.map(%n) ins(%y_shadow, %v : memref<?xf64>, memref<?xf64>) outs(%w : memref<?xf64, strided<[1], offset: ?>>) kinds ["add"] attributes {ad.sums = ["cotangent", 0 : i64]} {
  ^bb0(%y_bar : f64, %e : f64):
    %u_bar = ad.mul %y_bar, %e {ad.adjoint, ad.made = ["cotangent", "u", "u * v"]} : f64
    array.yield %u_bar : f64
  }
  func.return
}

// CHECK-LABEL: @maps_without_marks_stay
// CHECK:         array.map
func.func @maps_without_marks_stay(%n : index, %v : memref<?xf64>, %u : memref<?xf64>) {
  array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @iterations_are_the_primal_s
// CHECK:           array.raise_if {{.*}} "f: the tangent of y is {}: {} * {} (iteration {} of line 7, counted from 0)"({{.*}}, %i : f64, f64, f64, index)
func.func @iterations_are_the_primal_s(%n : index, %x : f64) {
  %trips = array.loop %j to %n do {
    %i = arith.subi %n, %j {ad.iteration} : index
    %y_dot = ad.mul %x, %x {ad.adjoint, ad.made = ["tangent", "y", "f"]} : f64
    array.yield
  } loc("model.py":7:5)
  func.return
}

// CHECK-LABEL: @braces_of_the_program_are_no_places
// CHECK:         "f[{{[{][{]}}1}}]: the cotangent of x is {}: -{}"
func.func @braces_of_the_program_are_no_places(%y_bar : f64) -> f64 {
  %x_bar = arith.negf %y_bar {ad.adjoint, ad.made = ["cotangent", "x", "f[{1}]"]} : f64
  func.return %x_bar : f64
}
