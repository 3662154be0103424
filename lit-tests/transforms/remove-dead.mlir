// RUN: mutad-opt %s -p remove-dead | filecheck %s

// CHECK-LABEL: @unused_values
// CHECK-NEXT:    func.return
func.func @unused_values(%x : f64, %a : memref<?xf64>, %i : index) {
  %y = memref.load %a[%i] : memref<?xf64>
  %z = arith.mulf %y, %x : f64
  func.return
}

// CHECK-LABEL: @a_local_array_that_is_only_written
// CHECK-NEXT:    func.return
func.func @a_local_array_that_is_only_written(%x : f64, %n : index, %i : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n) : memref<?xf64>
  %v = array.view %t[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  memref.store %x, %t[%i] : memref<?xf64>
  memref.store %x, %v[%i] : memref<?xf64, strided<[1]>>
  func.return
}

// What only a dead array needed is dead too.
// CHECK-LABEL: @a_chain_of_dead_arrays
// CHECK-NEXT:    func.return
func.func @a_chain_of_dead_arrays(%x : f64, %n : index) {
  %s = array.alloc(%n) : memref<?xf64>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  array.map(%n) ins(%s : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @a_loop_without_effects
// CHECK-NEXT:    func.return
func.func @a_loop_without_effects(%a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_stores_to_an_argument
// CHECK:         memref.store %x, %a[%i]
func.func @kept_stores_to_an_argument(%x : f64, %a : memref<?xf64>, %i : index) {
  memref.store %x, %a[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_when_a_view_is_read
// CHECK:         memref.store
func.func @kept_when_a_view_is_read(%x : f64, %n : index, %i : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n) : memref<?xf64>
  %v = array.view %t[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  memref.store %x, %t[%i] : memref<?xf64>
  %y = memref.load %v[%i] : memref<?xf64, strided<[1]>>
  func.return %y : f64
}

// CHECK-LABEL: @kept_when_it_is_returned
// CHECK:         memref.store
func.func @kept_when_it_is_returned(%x : f64, %n : index, %i : index) -> memref<?xf64> {
  %t = array.alloc(%n) : memref<?xf64>
  memref.store %x, %t[%i] : memref<?xf64>
  func.return %t : memref<?xf64>
}

// CHECK-LABEL: @kept_when_a_loop_carries_it
// CHECK:         memref.store
func.func @kept_when_a_loop_carries_it(%x : f64, %n : index, %i : index, %a : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  memref.store %x, %t[%i] : memref<?xf64>
  %trips, %u1, %v1 = array.loop %k to %n carry(%u = %t : memref<?xf64>, %v = %a : memref<?xf64>) do {
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  %y = memref.load %u1[%i] : memref<?xf64>
  memref.store %y, %a[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_checks
// CHECK:         array.index
// CHECK:         array.checked_add
// CHECK:         array.raise_if
func.func @kept_checks(%i : index, %n : index, %c : i1) {
  %j = array.index %i, %n axis 0 sign "any"
  %s = array.checked_add %i, %n
  array.raise_if %c, "ValueError", "no"
  func.return
}

// It may never end, and Python would not return either.
// CHECK-LABEL: @kept_when_a_loop_may_not_end
// CHECK:         array.loop
func.func @kept_when_a_loop_may_not_end(%c : i1) {
  %trips = array.loop %i while {
  ^bb0(%k : index):
    array.condition %c
  } do {
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_call_is_kept_though_nobody_wants_its_result
// CHECK:         foreign.call "c" "f"
func.func @a_call_is_kept_though_nobody_wants_its_result(%x : f64) {
  %y = foreign.call "c" "f" of "constant:0"(%x : f64) types ["f64"] effects ["none"] returns "py_float" trailing 0 -> f64
  func.return
}
