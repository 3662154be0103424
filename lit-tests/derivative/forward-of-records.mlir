// RUN: mutad-opt %s -p reverse,forward | filecheck %s

// What a forward function keeps with tangents is kept in one record with them: they stand behind it.
// CHECK-LABEL: @call_gradient_tangent(
// CHECK:         %r, %y, %y_dot = activation.call @power_tangent_forward(%x, %n, %x_dot
// CHECK:         activation.call @power_tangent_backward(%r, %{{.*}}, %{{.*}} -> f64, f64
func.func @call(%x : f64, %n : index) -> f64 {
  %r, %y = activation.call @power(%x, %n : f64, index) frames 1 reads [] writes [] -> f64
  func.return %y : f64
}

// CHECK-LABEL: func.func private @power_tangent_forward(%x: f64, %n: index, %x_dot: f64) -> (f64, f64,
// CHECK-SAME:    keeps = 6 : i64
// CHECK:         %r, %q, %q_dot = activation.call @power_tangent_forward(%x, %m, %x_dot
// CHECK-LABEL: func.func private @power_tangent_backward(
// CHECK-SAME:    kept = 6 : i64
// CHECK:         activation.call @power_tangent_backward(
func.func private @power(%x : f64, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %done = arith.cmpi eq, %n, %c0 : index
  %p = scf.if %done -> (f64) {
    %one = arith.constant 1.0 : f64
    scf.yield %one : f64
  } else {
    %c1 = arith.constant 1 : index
    %m = arith.subi %n, %c1 : index
    %r, %q = activation.call @power(%x, %m : f64, index) frames 1 reads [] writes [] -> f64
    %z = arith.mulf %x, %q : f64
    scf.yield %z : f64
  }
  func.return %p : f64
}
