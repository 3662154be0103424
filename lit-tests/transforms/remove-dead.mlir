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

// Neither array is read but to compute the other.
// CHECK-LABEL: @two_arrays_that_only_each_other_needs
// CHECK-NEXT:    func.return
func.func @two_arrays_that_only_each_other_needs(%n : index, %steps : index) {
  %a = array.alloc(%n) : memref<?xf64>
  %b = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%n) ins(%b : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["add"] {
    ^bb1(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// Of a map each output lives by itself, and so does what it is computed from.
// CHECK-LABEL: @one_output_of_a_map
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
// CHECK-NEXT:    ^bb{{[0-9]+}}(%e: f64):
// CHECK-NEXT:      array.yield %e : f64
func.func @one_output_of_a_map(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %a = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x, %a : memref<?xf64>, memref<?xf64>) outs(%a, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64, %other : f64):
    %sum = arith.addf %e, %other : f64
    array.yield %sum, %e : f64, f64
  }
  func.return
}

// What nobody pops need not be pushed; what is popped needs its pushes, in their order.
// CHECK-LABEL: @tapes
// CHECK-NOT:     unused
// CHECK:         %used = ad.tape
// CHECK-NEXT:    %p = ad.push %used
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    %q = ad.pop %used
func.func @tapes(%x : f64, %n : index, %i : index) -> f64 {
  %unused = ad.tape
  %used = ad.tape
  %s = ad.push %unused(%n) : memref<?xf64>
  memref.store %x, %s[%i] : memref<?xf64>
  %p = ad.push %used(%n) : memref<?xf64>
  memref.store %x, %p[%i] : memref<?xf64>
  %q = ad.pop %used(%n) : memref<?xf64>
  %y = memref.load %q[%i] : memref<?xf64>
  func.return %y : f64
}

// An output that puts back what the map reads changes nothing.
// CHECK-LABEL: @puts_back
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
func.func @puts_back(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "add"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  func.return
}

// It does where another has written there before.
// CHECK-LABEL: @puts_back_over_another
// CHECK:         outs(%v, %x : {{.*}}) kinds ["add", "store"]
func.func @puts_back_over_another(%x : memref<?xf64>, %n : index, %zero : index, %one : index) {
  %v = array.view %x[%zero] dims [0] extents(%n) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v, %x : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["add", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  func.return
}

// It may where arguments may overlap.
// CHECK-LABEL: @puts_back_where_arguments_overlap
// CHECK:         outs(%y, %x : {{.*}}) kinds ["add", "store"]
func.func @puts_back_where_arguments_overlap(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y, %x : memref<?xf64>, memref<?xf64>) kinds ["add", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  func.return
}
