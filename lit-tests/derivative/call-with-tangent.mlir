// RUN: mutad-opt %s -p forward | filecheck %s
// RUN: mutad-opt %s -p reverse | filecheck %s --check-prefix REVERSE

func.func private @scale_primal(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call "python" "scale" of "constant:0"(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) types ["py_float", "array", "array"] effects ["none", "read", "readwrite"] returns "" trailing 0
  func.return
}

func.func private @scale_adjoint(%k : f64, %y_shadow : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %b = memref.load %y_shadow[%c0] : memref<?xf64>
  %p = arith.mulf %k, %b : f64
  memref.store %p, %y_shadow[%c0] : memref<?xf64>
  func.return
}

func.func private @scale_tangent(%k_dot : f64, %y : memref<?xf64>, %y_dot : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %y[%c0] : memref<?xf64>
  %p = arith.mulf %k_dot, %a : f64
  memref.store %p, %y_dot[%c0] : memref<?xf64>
  func.return
}

// The primal runs first; what the rule reads of an array that it overwrites is copied before.
// CHECK-LABEL: @copied_before_the_call_overwrites_it_tangent(
// CHECK:         %y_before = array.alloc
// CHECK-NEXT:    array.map({{.*}}) ins(%y : memref<?xf64>) outs(%y_before : memref<?xf64>) kinds ["store"]
// CHECK:         foreign.call "python" "scale" of "constant:0"(%k, %x, %y
// CHECK:         %a = memref.load %y_before[
// CHECK-NEXT:    %p = arith.mulf %k_dot, %a : f64
// CHECK-NEXT:    memref.store %p, %y_dot[
// CHECK:         func.return

// A gradient whose own tangents nobody takes has the primal's code.
// REVERSE-LABEL: @copied_before_the_call_overwrites_it_gradient(
// REVERSE-NOT:     foreign.call_with_rule
// REVERSE:         foreign.call "python" "scale" of "constant:0"(%k, %x, %y
func.func @copied_before_the_call_overwrites_it(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call_with_rule @scale_primal @scale_adjoint(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) takes ["value 0", "shadow 2"] effects ["none", "read", "readwrite"] outside 3 names ["k", "x", "y"] tangent @scale_tangent moves ["tangent 0", "value 2", "tangent 2"]
  func.return
}

// What it holds afterwards needs no copy.
// CHECK-LABEL: @not_copied_where_the_new_contents_are_read_tangent(
// CHECK-NOT:     y_before
// CHECK:         foreign.call "python" "scale"
// CHECK:         %a = memref.load %y[
func.func @not_copied_where_the_new_contents_are_read(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call_with_rule @scale_primal @scale_adjoint(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) takes ["value 0", "shadow 2"] effects ["none", "read", "readwrite"] outside 3 names ["k", "x", "y"] tangent @scale_tangent moves ["tangent 0", "after 2", "tangent 2"]
  func.return
}
