// RUN: mutad-opt %s -p fold-constants,remove-dead | filecheck %s

// CHECK-LABEL: @neutral_operands
// CHECK-NEXT:    func.return %n, %n, %n
func.func @neutral_operands(%n : index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = arith.addi %n, %c0 : index
  %b = arith.muli %c1, %n : index
  %c = array.checked_sub %n, %c0
  func.return %a, %b, %c : index, index, index
}

// (n - 1) - 1 + 2 is n.
// CHECK-LABEL: @offsets_are_summed
// CHECK-NEXT:    func.return %n
func.func @offsets_are_summed(%n : index) -> index {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = arith.subi %n, %c1 : index
  %b = arith.subi %a, %c1 : index
  %c = arith.addi %b, %c2 : index
  func.return %c : index
}

// CHECK-LABEL: @a_slice_bound
// CHECK:         %n = memref.dim
// CHECK-NEXT:    func.return %n
func.func @a_slice_bound(%a : memref<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %positive = arith.maxsi %n, %c0 : index
  %stop = arith.minsi %positive, %n : index
  func.return %stop : index
}

// CHECK-LABEL: @extents_of_views_and_fresh_arrays
// CHECK:         func.return %n, %m
func.func @extents_of_views_and_fresh_arrays(%n : index, %m : index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.alloc(%n) : memref<?xf64>
  %v = array.view %a[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %i = memref.dim %a, %c0 : memref<?xf64>
  %j = memref.dim %v, %c0 : memref<?xf64, strided<[1]>>
  func.return %i, %j : index, index
}

// CHECK-LABEL: @a_check_that_never_fails
// CHECK-NEXT:    func.return
func.func @a_check_that_never_fails() {
  %c3 = arith.constant 3 : index
  %differ = arith.cmpi ne, %c3, %c3 : index
  array.raise_if %differ, "ValueError", "never"
  func.return
}

// CHECK-LABEL: @a_branch_never_taken
// CHECK-NEXT:    func.return
func.func @a_branch_never_taken(%x : f64, %a : memref<?xf64>, %i : index) {
  %never = arith.constant false
  scf.if %never {
    memref.store %x, %a[%i] : memref<?xf64>
  }
  func.return
}

// The induction variable counts up from 0.
// CHECK-LABEL: @a_subscript_of_known_sign
// CHECK:         array.index %i, %n axis 0 : i64 sign "nonneg"
func.func @a_subscript_of_known_sign(%x : f64, %a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %j = array.index %i, %n axis 0 sign "any"
    memref.store %x, %a[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_sum_overflows
// CHECK:         array.checked_add
func.func @kept_when_the_sum_overflows() -> index {
  %max = arith.constant 9223372036854775807 : index
  %c1 = arith.constant 1 : index
  %s = array.checked_add %max, %c1
  func.return %s : index
}

// CHECK-LABEL: @kept_when_the_number_may_be_negative
// CHECK:         arith.maxsi
func.func @kept_when_the_number_may_be_negative(%n : index) -> index {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  func.return %m : index
}

// What the first half of a gradient hands over, it knew.
// CHECK-LABEL: @handed_over
// CHECK-SAME:    %[[N:.*]]: index
// CHECK-NOT:     arith.maxsi
// CHECK:         func.return %[[N]]
func.func @handed_over(%n : index) -> index attributes {nonnegative = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %m = arith.maxsi %n, %c0 : index
  func.return %m : index
}

// n - 1 may be less than n only if n is no minimum of its type; n here is any integer.
// CHECK-LABEL: @kept_when_an_offset_may_wrap
// CHECK:         arith.minsi
func.func @kept_when_an_offset_may_wrap(%n : index) -> index {
  %c1 = arith.constant 1 : index
  %a = arith.subi %n, %c1 : index
  %m = arith.minsi %a, %n : index
  func.return %m : index
}

// A subscript that is out of range raises when it is reached, not before.
// CHECK-LABEL: @kept_when_the_subscript_is_out_of_range
// CHECK:         array.index %c5, %c3 axis 0 : i64 sign "nonneg"
func.func @kept_when_the_subscript_is_out_of_range(%c : i1) {
  %c5 = arith.constant 5 : index
  %c3 = arith.constant 3 : index
  %i = array.index %c5, %c3 axis 0 sign "any"
  func.return
}

// CHECK-LABEL: @kept_float_arithmetic
// CHECK:         arith.addf
func.func @kept_float_arithmetic(%x : f64) -> f64 {
  %zero = arith.constant 0.0 : f64
  %y = arith.addf %x, %zero : f64
  func.return %y : f64
}

// CHECK-LABEL: @a_condition_is_known_in_its_branches
// CHECK-NEXT:    %r = scf.if %c -> (f64) {
// CHECK-NEXT:      scf.yield %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %y
// CHECK-NEXT:    }
func.func @a_condition_is_known_in_its_branches(%c : i1, %x : f64, %y : f64) -> f64 {
  %r = scf.if %c -> (f64) {
    %a = scf.if %c -> (f64) {
      scf.yield %x : f64
    } else {
      scf.yield %y : f64
    }
    scf.yield %a : f64
  } else {
    %b = scf.if %c -> (f64) {
      scf.yield %x : f64
    } else {
      scf.yield %y : f64
    }
    scf.yield %b : f64
  }
  func.return %r : f64
}

// CHECK-LABEL: @a_flag_that_a_branch_sets_is_its_condition
// CHECK:         func.return %c, %c, %[[NEVER:.*]], %is_zero
func.func @a_flag_that_a_branch_sets_is_its_condition(%c : i1) -> (i1, i1, i1, i1) {
  %zero = arith.constant 0 : index
  %seven = arith.constant 7 : index
  %nine = arith.constant 9 : index
  %flag = scf.if %c -> (index) {
    scf.yield %seven : index
  } else {
    scf.yield %zero : index
  }
  %other = arith.select %c, %nine, %zero : index
  %is_set = arith.cmpi ne, %flag, %zero : index
  %is_seven = arith.cmpi sgt, %other, %seven : index
  %never = arith.cmpi sgt, %flag, %seven : index
  %is_zero = arith.cmpi eq, %flag, %zero : index
  func.return %is_set, %is_seven, %never, %is_zero : i1, i1, i1, i1
}

// What a division by the extent leaves is not below 0; by another number it may be.
// CHECK-LABEL: @a_wrapped_subscript_is_not_negative
// CHECK:         array.index %wrapped, %n axis 0 : i64 sign "nonneg"
// CHECK-NEXT:    array.index %other, %n axis 0 : i64 sign "any"
func.func @a_wrapped_subscript_is_not_negative(%i : index, %n : index, %m : index) -> (index, index) {
  %wrapped = array.floormod %i, %n : index
  %other = array.floormod %i, %m : index
  %a = array.index %wrapped, %n axis 0 : i64 sign "any"
  %b = array.index %other, %n axis 0 : i64 sign "any"
  func.return %a, %b : index, index
}

// Extents are far from where integers end: what is less than one is less, whatever it is.
// CHECK-LABEL: @extents_compare_with_themselves
// CHECK:         arith.constant false
// CHECK:         arith.constant false
// CHECK-NOT:     arith.cmpi
// CHECK:         func.return
func.func @extents_compare_with_themselves(%x : memref<?xf64>) -> (i1, i1) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %n : index
  %huge = arith.constant 1125899906842624 : index
  %long = arith.cmpi sgt, %n, %huge : index
  func.return %short, %long : i1, i1
}

// CHECK-LABEL: @numbers_may_wrap
// CHECK:         arith.cmpi
func.func @numbers_may_wrap(%n : index) -> i1 {
  %one = arith.constant 1 : index
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %n : index
  func.return %short : i1
}

// A cotangent that is left out has as many elements as it takes.
// CHECK-LABEL: @cotangents_may_be_as_long_as_integers
// CHECK:         arith.cmpi
func.func @cotangents_may_be_as_long_as_integers(%x : memref<?xf64>, %bar : memref<?xf64>) -> i1
    attributes {shadows = array<i64>, cotangents = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %bar, %c0 : memref<?xf64>
  %any = arith.constant 9223372036854775807 : index
  %left_out = arith.cmpi eq, %n, %any : index
  func.return %left_out : i1
}
