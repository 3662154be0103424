// RUN: mutad-opt %s -p reuse-allocs | filecheck %s

// CHECK-LABEL: @after_the_last_use
// CHECK:         %t = array.alloc(%n)
// CHECK-NOT:     array.alloc
// CHECK:         memref.store %x, %t[%i]
func.func @after_the_last_use(%n : index, %a : f64, %i : index) -> f64 {
  %t = array.alloc(%n) : memref<?xf64>
  memref.store %a, %t[%i] : memref<?xf64>
  %x = memref.load %t[%i] : memref<?xf64>
  %s = array.alloc(%n) : memref<?xf64>
  memref.store %x, %s[%i] : memref<?xf64>
  %y = memref.load %s[%i] : memref<?xf64>
  func.return %y : f64
}

// One that took over is taken over in its turn; two that are used at once are two.
// CHECK-LABEL: @one_after_another
// CHECK:         %t = array.alloc(%n)
// CHECK:         %u = array.alloc(%n)
// CHECK-NOT:     array.alloc
// CHECK:         memref.store %a, %t[%i]
func.func @one_after_another(%n : index, %a : f64, %i : index) {
  %t = array.alloc(%n) : memref<?xf64>
  %u = array.alloc(%n) : memref<?xf64>
  memref.store %a, %t[%i] : memref<?xf64>
  memref.store %a, %u[%i] : memref<?xf64>
  %v = array.alloc(%n) : memref<?xf64>
  memref.store %a, %v[%i] : memref<?xf64>
  %w = array.alloc(%n) : memref<?xf64>
  memref.store %a, %w[%i] : memref<?xf64>
  memref.store %a, %v[%i] : memref<?xf64>
  func.return
}

// A view, or a name that a loop carries, is a use as well.
// CHECK-LABEL: @kept_while_a_view_is_used
// CHECK:         %t = array.alloc(%n)
// CHECK:         %s = array.alloc(%n)
func.func @kept_while_a_view_is_used(%n : index, %a : f64, %i : index, %c0 : index, %c1 : index) -> f64 {
  %t = array.alloc(%n) : memref<?xf64>
  %view = array.view %t[%c1] dims [0] extents(%i) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %s = array.alloc(%n) : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  %y = memref.load %view[%i] : memref<?xf64, strided<[1]>>
  func.return %y : f64
}

// CHECK-LABEL: @kept_while_a_loop_uses_it
// CHECK:         %t = array.alloc(%n)
// CHECK:         %s = array.alloc(%n)
func.func @kept_while_a_loop_uses_it(%n : index, %a : f64, %i : index) {
  %t = array.alloc(%n) : memref<?xf64>
  %r = array.alloc(%n) : memref<?xf64>
  %s = array.alloc(%n) : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  %trips, %p1, %q1 = array.loop %k to %n carry(%p = %t : memref<?xf64>, %q = %r : memref<?xf64>) do {
    memref.store %a, %p[%k] : memref<?xf64>
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_when_returned
// CHECK:         %t = array.alloc(%n)
// CHECK:         %s = array.alloc(%n)
func.func @kept_when_returned(%n : index, %a : f64, %i : index) -> memref<?xf64> {
  %t = array.alloc(%n) : memref<?xf64>
  memref.store %a, %t[%i] : memref<?xf64>
  %s = array.alloc(%n) : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  func.return %s : memref<?xf64>
}

// CHECK-LABEL: @kept_when_of_another_size
// CHECK:         %t = array.alloc(%n)
// CHECK:         %s = array.alloc(%m)
func.func @kept_when_of_another_size(%n : index, %m : index, %a : f64, %i : index) {
  %t = array.alloc(%n) : memref<?xf64>
  memref.store %a, %t[%i] : memref<?xf64>
  %s = array.alloc(%m) : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  func.return
}

// Growable arrays are ranges of addresses of their own, their shadows zero from the start.
// CHECK-LABEL: @kept_when_growable
// CHECK:         %t = array.alloc(%n) {growable}
// CHECK:         %s = array.alloc(%n) {growable, zero}
func.func @kept_when_growable(%n : index, %a : f64, %i : index) {
  %t = array.alloc(%n) {growable} : memref<?xf64>
  memref.store %a, %t[%i] : memref<?xf64>
  %s = array.alloc(%n) {growable, zero} : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  func.return
}
