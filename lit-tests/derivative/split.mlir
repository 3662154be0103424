// RUN: mutad-opt %s -p "reverse{split=true}" | filecheck %s

// The caller may change %x before the reverse sweep runs: it is saved, though nothing here overwrites it.
// CHECK-LABEL: @saved_for_the_caller_s_sake_forward(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) -> (index,
// CHECK-SAME:    !ad.arena)
// CHECK:         %a = memref.load %x[%i]
// CHECK-NEXT:    memref.store %a, %a_saved[%i]
// CHECK:         [[arena:%\d+]] = ad.detach
// CHECK-NEXT:    func.return %n, %a_saved, [[arena]]
// CHECK-LABEL: @saved_for_the_caller_s_sake_backward(%n: index, %a_saved: memref<?xf64>, %x_shadow: memref<?xf64>, %y_shadow: memref<?xf64>)
// CHECK-SAME:    shadows = array<i64: 0, 1>
// CHECK:         memref.load %a_saved
// CHECK-NOT:     memref.load %x[
func.func @saved_for_the_caller_s_sake(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_linear_function_keeps_numbers_only_forward
// CHECK-NOT:     ad.push
// CHECK:         func.return %n, %{{\d+}} : index, !ad.arena
// CHECK-LABEL: @a_linear_function_keeps_numbers_only_backward(%n: index, %x_shadow
func.func @a_linear_function_keeps_numbers_only(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// An array of the function's own that nobody overwrites is kept where it is: in a segment, for it is to outlive the call.
// CHECK-LABEL: @an_array_of_its_own_is_kept_in_place_forward
// CHECK:         %t = ad.push %{{\d+}}(%n)
// CHECK:         memref.store %b, %t[%i]
// CHECK-NOT:     %b_saved
// CHECK:         func.return %{{.*}}%t
// CHECK-LABEL: @an_array_of_its_own_is_kept_in_place_backward(
// CHECK-SAME:    %t: memref<?xf64>
func.func @an_array_of_its_own_is_kept_in_place(%x : memref<?xf64>, %n : index) {
  %t = array.alloc(%n) : memref<?xf64>
  %first = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = math.exp %a : f64
    memref.store %b, %t[%i] : memref<?xf64>
    array.yield
  }
  %second = array.loop %j to %n do {
    %c = memref.load %t[%j] : memref<?xf64>
    %d = arith.mulf %c, %c : f64
    memref.store %d, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// A stack of segments: the second half reads it with a cursor of its own.
// CHECK-LABEL: @a_tape_is_read_not_popped_forward
// CHECK:         ad.push
// CHECK:         func.return %trips, %{{\d+}}, %i, %{{\d+}} : index, !ad.tape, index, !ad.arena
// CHECK-LABEL: @a_tape_is_read_not_popped_backward(%trips: index, %{{\d+}}: !ad.tape,
// CHECK:         [[tape:%\d+]] = ad.reader %{{\d+}}
// CHECK:         ad.pop [[tape]]()
func.func @a_tape_is_read_not_popped(%x : memref<?xf64>, %i : index, %limit : f64) {
  %trips = array.loop %k while {
  ^bb0(%k1 : index):
    %now = memref.load %x[%i] : memref<?xf64>
    %more = arith.cmpf olt, %now, %limit : f64
    array.condition %more
  } do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
