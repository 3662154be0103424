// RUN: mutad-opt %s -p "print-activity{wrt=x,u}" | filecheck %s

// CHECK-LABEL: @varied_and_useful
// CHECK-SAME:    attributes {activity = "%x: active, %k: useful"}
// CHECK:         %y = arith.mulf %x, %k {activity = "%y: active"}
// CHECK:         %unused = arith.addf %x, %k {activity = "%unused: varied"}
// CHECK:         %fixed = arith.mulf %k, %k {activity = "%fixed: useful"}
func.func @varied_and_useful(%x : f64, %k : f64) -> f64 {
  %y = arith.mulf %x, %k : f64
  %unused = arith.addf %x, %k : f64
  %fixed = arith.mulf %k, %k : f64
  %z = arith.addf %y, %fixed : f64
  func.return %z : f64
}

// CHECK-LABEL: @through_a_buffer
// CHECK:         %w = array.alloc(%n) {activity = "%w: active"}
// CHECK:         %z = memref.load %w[%c0] {activity = "%z: active"}
func.func @through_a_buffer(%x : f64, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %w = array.alloc(%n) : memref<?xf64>
  memref.store %x, %w[%c0] : memref<?xf64>
  %z = memref.load %w[%c0] : memref<?xf64>
  func.return %z : f64
}

// What is stored and never read back into an output carries no derivative.
// CHECK-LABEL: @a_buffer_that_nothing_reads_is_not_active
// CHECK:         %w = array.alloc(%n) {activity = "%w: varied"}
func.func @a_buffer_that_nothing_reads_is_not_active(%x : f64, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %w = array.alloc(%n) : memref<?xf64>
  memref.store %x, %w[%c0] : memref<?xf64>
  func.return %x : f64
}

// The final contents of an active argument are an output.
// CHECK-LABEL: @an_active_argument_is_an_output
// CHECK-SAME:    attributes {activity = "%u: active, %k: useful"}
func.func @an_active_argument_is_an_output(%u : memref<?xf64>, %k : f64) {
  %c0 = arith.constant 0 : index
  memref.store %k, %u[%c0] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @an_argument_that_was_not_asked_for_is_scratch
// CHECK-SAME:    attributes {activity = "%x: active, %s: active, %t: varied"}
func.func @an_argument_that_was_not_asked_for_is_scratch(%x : f64, %s : memref<f64>, %t : memref<f64>) -> f64 {
  memref.store %x, %s[] : memref<f64>
  memref.store %x, %t[] : memref<f64>
  %y = memref.load %s[] : memref<f64>
  func.return %y : f64
}

// Integers end the flow.
// CHECK-LABEL: @integers_are_never_active
// CHECK:         %k = arith.fptosi %x : f64 to i64
// CHECK-NEXT:    %y = arith.sitofp %k {activity = "%y: useful"}
func.func @integers_are_never_active(%x : f64) -> f64 {
  %k = arith.fptosi %x : f64 to i64
  %y = arith.sitofp %k : i64 to f64
  func.return %y : f64
}

// CHECK-LABEL: @a_swap_is_active_as_one
// CHECK:         %v0 = array.alloc(%n) {activity = "%v0: active"}
func.func @a_swap_is_active_as_one(%u : memref<?xf64>, %n : index) {
  %v0 = array.alloc(%n) : memref<?xf64>
  %t, %a, %b = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v0 : memref<?xf64>) do {
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @arguments_that_share_memory_are_active_together
// CHECK-SAME:    activity = "%u: active, %w: active"
func.func @arguments_that_share_memory_are_active_together(%u : memref<?xf64>, %w : memref<?xf64>, %z : memref<?xf64>) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  func.return
}

// CHECK-LABEL: @through_a_map
// CHECK:         array.map(%n) {{.*}}activity = "%e: active, %f: useful"
// CHECK:         %g = arith.mulf %e, %f {activity = "%g: active"}
func.func @through_a_map(%u : memref<?xf64>, %k : memref<?xf64>, %n : index) {
  array.map(%n) ins(%u, %k : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %f : f64):
    %g = arith.mulf %e, %f : f64
    array.yield %g : f64
  }
  func.return
}
