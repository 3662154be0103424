// RUN: mutad-opt %s -p localize-cells | filecheck %s

// The number is loaded on entry, and put back at the end.
// CHECK-LABEL: @in_step_backward
// CHECK-NEXT:    %[[OWN:.*]] = memref.alloca() : memref<f64>
// CHECK-NEXT:    %[[GIVEN:.*]] = memref.load %s_shadow[]
// CHECK-NEXT:    memref.store %[[GIVEN]], %[[OWN]][]
// CHECK-NEXT:    %s_bar = memref.load %[[OWN]][]
// CHECK:         memref.store %u_bar, %[[OWN]][]
// CHECK-NEXT:    %[[LEFT:.*]] = memref.load %[[OWN]][]
// CHECK-NEXT:    memref.store %[[LEFT]], %s_shadow[]
// CHECK-NEXT:    func.return
func.func private @in_step_backward(%i : index, %s_shadow : memref<f64>)
    attributes {live = array<i64>} {
  %s_bar = memref.load %s_shadow[] : memref<f64>
  %u_bar = arith.addf %s_bar, %s_bar {ad.adjoint} : f64
  memref.store %u_bar, %s_shadow[] : memref<f64>
  func.return
}

// Steps within the step are handed what it was: it lives longer.
// CHECK-LABEL: @around_steps_step_backward
// CHECK:         %s_bar = memref.load %[[OWN:.*]][]
// CHECK-NEXT:    %[[BEFORE:.*]] = memref.load %[[OWN]][]
// CHECK-NEXT:    memref.store %[[BEFORE]], %s_shadow[]
// CHECK-NEXT:    activation.call @in_step_backward(%i, %s_shadow
// CHECK-NEXT:    %[[AFTER:.*]] = memref.load %s_shadow[]
// CHECK-NEXT:    memref.store %[[AFTER]], %[[OWN]][]
func.func private @around_steps_step_backward(%i : index, %s_shadow : memref<f64>)
    attributes {live = array<i64>} {
  %s_bar = memref.load %s_shadow[] : memref<f64>
  %r = activation.call @in_step_backward(%i, %s_shadow : index, memref<f64>) frames 0
  func.return
}

// CHECK-LABEL: @kept_where_the_step_only_hands_it_on_backward
// CHECK-NEXT:    activation.call
func.func private @kept_where_the_step_only_hands_it_on_backward(%i : index, %s_shadow : memref<f64>)
    attributes {live = array<i64>} {
  %r = activation.call @in_step_backward(%i, %s_shadow : index, memref<f64>) frames 0
  func.return
}

// Something may raise in the sweep that runs forwards: memory is as Python leaves it.
// CHECK-LABEL: @kept_in_step_forward
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
func.func private @kept_in_step_forward(%i : index, %s : memref<f64>) attributes {live = array<i64>} {
  %a = memref.load %s[] : memref<f64>
  memref.store %a, %s[] : memref<f64>
  func.return
}

// CHECK-LABEL: @kept_integers_and_arrays_backward
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
func.func private @kept_integers_and_arrays_backward(%i : index, %k : memref<i64>, %u : memref<?xf64>)
    attributes {live = array<i64>} {
  %n = memref.load %k[] : memref<i64>
  %a = memref.load %u[%i] : memref<?xf64>
  memref.store %a, %u[%i] : memref<?xf64>
  memref.store %n, %k[] : memref<i64>
  func.return
}

// CHECK-LABEL: @kept_where_no_loop_is_run_in_steps_backward
// CHECK-NOT:     memref.alloca
// CHECK:         func.return
func.func private @kept_where_no_loop_is_run_in_steps_backward(%s_shadow : memref<f64>) {
  %a = memref.load %s_shadow[] : memref<f64>
  memref.store %a, %s_shadow[] : memref<f64>
  func.return
}
