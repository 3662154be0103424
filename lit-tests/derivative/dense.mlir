// RUN: mutad-opt %s -p reverse | filecheck %s
// RUN: mutad-opt %s --run --only solution --args 'a=[[0, 2], [4, 1]], b=[[2], [6]]' | filecheck %s --check-prefix SOLUTION
// RUN: mutad-opt %s -p forward --run --only solution_tangent --args 'a=[[0, 2], [4, 1]], b=[[2], [6]], a_dot=[[1, 0], [0, 0]], b_dot=[[0], [0]]' | filecheck %s --check-prefix TANGENT
// RUN: mutad-opt %s --run --only low --args 's=[[0, 9], [2, 2.4494897427831779]]' | filecheck %s --check-prefix LOW

// The cotangent of a solution is solved for with the transposed matrix, by the same factors; that of the
// matrix is in the shadow of its factors, and elimination has no adjoint.
// CHECK-LABEL: @solution_gradient(
// CHECK:         dense.factor %lu, %p
// CHECK:         dense.solve %lu, %p into %b :
// CHECK:         dense.solve %lu, %p into %b_shadow transposed :
// CHECK:         array.matmul %{{.*}}, %{{.*}} into %lu_shadow accumulate
// CHECK-NOT:     dense.
// CHECK:         func.return
// SOLUTION:      result = 0
// SOLUTION:      b = {{\[\[}}1.25],
// SOLUTION-NEXT: [1]]
// TANGENT:       b_dot = {{\[\[}}0.15625],
// TANGENT-NEXT:  [-0.625]]
func.func @solution(%a : memref<2x2xf64>, %b : memref<2x1xf64>) -> index {
  %two = arith.constant 2 : index
  %lu = array.alloc(%two, %two) : memref<2x2xf64>
  %p = array.alloc(%two) : memref<2xi64>
  array.map(%two, %two) ins(%a : memref<2x2xf64>) outs(%lu : memref<2x2xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %info = dense.factor %lu, %p : memref<2x2xf64>, memref<2xi64>
  dense.solve %lu, %p into %b : memref<2x2xf64>, memref<2xi64>, memref<2x1xf64>
  func.return %info : index
}

// A matrix without derivative costs no product.
// CHECK-LABEL: @of_a_constant_matrix_gradient(
// CHECK:         dense.solve_triangle %{{.*}} into %b_shadow upper
// CHECK-NOT:     array.matmul
// CHECK:         func.return
func.func @of_a_constant_matrix(%b : memref<2x1xf64>) {
  %two = arith.constant 2 : index
  %a = array.alloc(%two, %two) : memref<2x2xf64>
  array.map(%two, %two) outs(%a : memref<2x2xf64>) kinds ["store"] {
    %one = arith.constant 1.0 : f64
    array.yield %one : f64
  }
  dense.solve_triangle %a into %b : memref<2x2xf64>, memref<2x1xf64>
  func.return
}

// Of a triangle the shadow has a triangle.
// CHECK-LABEL: @triangle_gradient(
// CHECK:         dense.solve_triangle %{{.*}} into %b_shadow unit
// CHECK:         array.matmul
// CHECK:         dense.lower %{{.*}} times 0.0
func.func @triangle(%t : memref<2x2xf64>, %b : memref<2x3xf64>) {
  dense.solve_triangle %t into %b upper unit : memref<2x2xf64>, memref<2x3xf64>
  func.return
}

// The logarithm of a determinant moves by the transposed inverse.
// CHECK-LABEL: @size_gradient(
// CHECK:         dense.log_determinant
// CHECK:         dense.solve %lu, %p into %{{.*}} transposed
func.func @size(%a : memref<2x2xf64>) -> f64 {
  %two = arith.constant 2 : index
  %lu = array.alloc(%two, %two) : memref<2x2xf64>
  %p = array.alloc(%two) : memref<2xi64>
  array.map(%two, %two) ins(%a : memref<2x2xf64>) outs(%lu : memref<2x2xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %info = dense.factor %lu, %p : memref<2x2xf64>, memref<2xi64>
  %y = dense.log_determinant %lu, %p : memref<2x2xf64>, memref<2xi64>
  func.return %y : f64
}

// Of a symmetric matrix the lower triangle is read, and has the cotangent.
// CHECK-LABEL: @low_gradient(
// CHECK:         dense.cholesky %s
// CHECK:         dense.lower %s_shadow times 1.0
// CHECK:         array.matmul
// CHECK:         dense.lower %{{.*}} times 5.0
// CHECK:         dense.solve_triangle %[[UP:.*]] into %{{.*}} upper
// CHECK:         dense.solve_triangle %[[UP]] into %{{.*}} upper
// CHECK:         dense.lower %s_shadow times 5.0
// LOW:           result = 0
// LOW-NEXT:      s = {{\[\[}}2, 0],
// LOW-NEXT:      [1, 3]]
func.func @low(%s : memref<2x2xf64>) -> index {
  %four = arith.constant 4.0 : f64
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = memref.load %s[%zero, %zero] : memref<2x2xf64>
  %y = memref.load %s[%one, %one] : memref<2x2xf64>
  %xx = arith.mulf %x, %x : f64
  %yy = arith.mulf %y, %y : f64
  %v = arith.addf %xx, %four : f64
  %w = arith.addf %yy, %four : f64
  memref.store %v, %s[%zero, %zero] : memref<2x2xf64>
  memref.store %w, %s[%one, %one] : memref<2x2xf64>
  %info = dense.cholesky %s : memref<2x2xf64>
  func.return %info : index
}
