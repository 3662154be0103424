// RUN: mutad-opt %s -p expand-derivatives | filecheck %s
// RUN: mutad-opt %s -p reverse | filecheck %s --check-prefix ADJOINT
// RUN: mutad-opt %s -p forward | filecheck %s --check-prefix TANGENT

func.func private @cube_primal(%x : f64) -> f64 {
  %y = arith.mulf %x, %x : f64
  %z = arith.mulf %y, %x : f64
  func.return %z : f64
}

// The code of the derivative is in the place of the op; the function, which nobody calls any more, is gone.
// CHECK-NOT:   func.func private
// CHECK-LABEL: @code_in_place_of_the_op
// CHECK-NOT:     ad.derivative
// CHECK:         ad.mul
// CHECK:         func.return
// The adjoint is the tangent of the gradient, in the direction that is the cotangent of the slope.
// ADJOINT-LABEL: @code_in_place_of_the_op_gradient(%x: f64, %slope_bar: f64)
// ADJOINT:         ad.derivative @cube_primal reverse order 0 : i64(%x, %one
// ADJOINT:         %{{.*}} = ad.derivative @cube_primal silent reverse order 1 : i64(%x, %one, %slope_bar :
// ADJOINT-SAME:      takes ["argument 0", "cotangent 0", "argument 0 1"]
// ADJOINT-SAME:      gives ["gradient 0 1"]
// TANGENT-LABEL: @code_in_place_of_the_op_tangent(%x: f64, %x_dot: f64)
// TANGENT:         ad.derivative @cube_primal reverse order 1 : i64(%x, %one, %x_dot :
// TANGENT-SAME:      gives ["result 0", "gradient 0", "gradient 0 1"]
func.func @code_in_place_of_the_op(%x : f64) -> f64 {
  %one = arith.constant 1.0 : f64
  %y, %slope = ad.derivative @cube_primal reverse order 0 (%x, %one : f64, f64) takes ["argument 0", "cotangent 0"] effects ["none", "none"] gives ["result 0", "gradient 0"] -> f64, f64
  func.return %slope : f64
}
