// RUN: mutad-opt %s -p print-plan | filecheck %s --check-prefix PLAN
// RUN: mutad-opt %s -p reverse,promote-scalars | filecheck %s

func.func private @scale_primal(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call "python" "scale" of "constant:0"(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) types ["py_float", "array", "array"] effects ["none", "read", "readwrite"] returns "" trailing 0
  func.return
}

func.func private @scale_adjoint(%k_bar : memref<f64>, %y : memref<?xf64>, %y_shadow : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %y[%c0] : memref<?xf64>
  %b = memref.load %y_shadow[%c0] : memref<?xf64>
  %p = arith.mulf %a, %b : f64
  memref.store %p, %y_shadow[%c0] : memref<?xf64>
  %old = memref.load %k_bar[] : memref<f64>
  %new = arith.addf %old, %p : f64
  memref.store %new, %k_bar[] : memref<f64>
  func.return
}

// The call overwrites what its own rule needs: that is saved. In the place of the call there is the code of its
// primal, in the reverse sweep that of its adjoint; the adjoint's own functions are gone.
// PLAN-LABEL: @saved_when_the_call_overwrites_what_its_rule_needs
// PLAN:         foreign.call_with_rule @scale_primal @scale_adjoint
// PLAN-SAME:    {plan = ["save the contents of %y: killed by foreign.call_with_rule, needed by foreign.call_with_rule"]}
// CHECK-LABEL: @saved_when_the_call_overwrites_what_its_rule_needs_gradient(
// CHECK:         %y_saved = ad.push
// CHECK:         array.map({{.*}}) ins(%y : memref<?xf64>) outs(%y_saved : memref<?xf64>) kinds ["store"]
// CHECK:         foreign.call "python" "scale" of "constant:0"(%k, %x, %y
// CHECK:         %a = memref.load %y_saved[
// CHECK-NEXT:    %b = memref.load %y_shadow[
// CHECK-NEXT:    %p = arith.mulf %a, %b {ad.adjoint} : f64
// CHECK-NEXT:    memref.store %p, %y_shadow[
// CHECK:         func.return
func.func @saved_when_the_call_overwrites_what_its_rule_needs(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call_with_rule @scale_primal @scale_adjoint(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) takes ["cotangent 0", "value 2", "shadow 2"] effects ["none", "read", "readwrite"] outside 3 names ["k", "x", "y"]
  func.return
}

// Nothing overwrites what argument 1 holds, and what argument 2 holds afterwards.
// PLAN-LABEL: @reloaded_when_it_survives
// PLAN-NOT:     plan
// CHECK-LABEL: @reloaded_when_it_survives_gradient(
// CHECK-NOT:     ad.push
// CHECK:         %a = memref.load %y[
func.func @reloaded_when_it_survives(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>) {
  foreign.call_with_rule @scale_primal @scale_adjoint(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) takes ["cotangent 0", "after 2", "shadow 2"] effects ["none", "read", "readwrite"] outside 3 names ["k", "x", "y"]
  func.return
}

// PLAN-LABEL: @saved_when_a_later_store_kills_it
// PLAN:         memref.store %k, %y[%i] {plan = ["save the old contents of %y: killed by memref.store, needed by foreign.call_with_rule"]}
func.func @saved_when_a_later_store_kills_it(%k : f64, %x : memref<?xf64>, %y : memref<?xf64>, %i : index) {
  foreign.call_with_rule @scale_primal @scale_adjoint(%k, %x, %y : f64, memref<?xf64>, memref<?xf64>) takes ["cotangent 0", "after 2", "shadow 2"] effects ["none", "read", "readwrite"] outside 3 names ["k", "x", "y"]
  memref.store %k, %y[%i] : memref<?xf64>
  func.return
}
