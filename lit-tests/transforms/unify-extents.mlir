// RUN: mutad-opt %s -p unify-extents | filecheck %s

// CHECK-LABEL: @in_the_same_block_and_below
// CHECK:         array.raise_if
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      memref.store %x, %a[%n]
func.func @in_the_same_block_and_below(%n : index, %m : index, %x : f64, %a : memref<?xf64>) {
  %differ = arith.cmpi ne, %n, %m : index
  array.raise_if %differ, "ValueError", "no"
  %trips = array.loop %i to %m do {
    memref.store %x, %a[%m] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @every_part_of_an_or
// CHECK:         func.return %n, %k
func.func @every_part_of_an_or(%n : index, %m : index, %k : index, %l : index) -> (index, index) {
  %p = arith.cmpi ne, %n, %m : index
  %q = arith.cmpi ne, %k, %l : index
  %r = arith.ori %p, %q : i1
  array.raise_if %r, "ValueError", "no"
  func.return %m, %l : index, index
}

// CHECK-LABEL: @a_constant_is_preferred
// CHECK:         func.return %c3
func.func @a_constant_is_preferred(%n : index) -> index {
  %c3 = arith.constant 3 : index
  %differ = arith.cmpi ne, %n, %c3 : index
  array.raise_if %differ, "ValueError", "no"
  func.return %n : index
}

// Rows of an array of these extents are seen to lie one behind the other.
// CHECK-LABEL: @of_one_array_the_later_axis_is_preferred
// CHECK:         func.return %m
func.func @of_one_array_the_later_axis_is_preferred(%a : memref<?x?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %differ = arith.cmpi ne, %n, %m : index
  array.raise_if %differ, "ValueError", "no"
  func.return %n : index
}

// CHECK-LABEL: @of_two_arrays_the_first_is_preferred
// CHECK:         func.return %n
func.func @of_two_arrays_the_first_is_preferred(%a : memref<?x?xf64>, %b : memref<?x?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %b, %c1 : memref<?x?xf64>
  %differ = arith.cmpi ne, %n, %m : index
  array.raise_if %differ, "ValueError", "no"
  func.return %m : index
}

// CHECK-LABEL: @kept_before_the_check
// CHECK:         %s = arith.addi %m, %m
func.func @kept_before_the_check(%n : index, %m : index) -> index {
  %s = arith.addi %m, %m : index
  %differ = arith.cmpi ne, %n, %m : index
  array.raise_if %differ, "ValueError", "no"
  func.return %s : index
}

// n or m, or both, may be 1.
// CHECK-LABEL: @kept_when_only_an_and_is_false
// CHECK:         func.return %m
func.func @kept_when_only_an_and_is_false(%n : index, %m : index) -> index {
  %c1 = arith.constant 1 : index
  %differ = arith.cmpi ne, %n, %m : index
  %long = arith.cmpi ne, %m, %c1 : index
  %both = arith.andi %differ, %long : i1
  array.raise_if %both, "ValueError", "no"
  func.return %m : index
}

// CHECK-LABEL: @kept_after_the_block_of_the_check
// CHECK:         func.return %m
func.func @kept_after_the_block_of_the_check(%c : i1, %n : index, %m : index) -> index {
  scf.if %c {
    %differ = arith.cmpi ne, %n, %m : index
    array.raise_if %differ, "ValueError", "no"
  }
  func.return %m : index
}

// CHECK-LABEL: @kept_when_the_check_is_for_less
// CHECK:         func.return %m
func.func @kept_when_the_check_is_for_less(%n : index, %m : index) -> index {
  %less = arith.cmpi slt, %n, %m : index
  array.raise_if %less, "ValueError", "no"
  func.return %m : index
}

// CHECK-LABEL: @all_that_are_equal_have_one_name
// CHECK:         func.return %n, %n, %n
func.func @all_that_are_equal_have_one_name(%n : index, %m : index, %k : index, %a : memref<?xf64>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %view = array.view %a[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %p = arith.cmpi ne, %m, %n : index
  array.raise_if %p, "ValueError", "no"
  %q = arith.cmpi ne, %k, %m : index
  array.raise_if %q, "ValueError", "no"
  func.return %n, %m, %k : index, index, index
}

// CHECK-LABEL: @two_groups_become_one
// CHECK:         func.return %n, %n, %n, %n
func.func @two_groups_become_one(%n : index, %m : index, %k : index, %l : index) -> (index, index, index, index) {
  %p = arith.cmpi ne, %n, %m : index
  array.raise_if %p, "ValueError", "no"
  %q = arith.cmpi ne, %k, %l : index
  array.raise_if %q, "ValueError", "no"
  %r = arith.cmpi ne, %m, %l : index
  array.raise_if %r, "ValueError", "no"
  func.return %n, %m, %k, %l : index, index, index, index
}

// CHECK-LABEL: @a_constant_is_preferred_to_what_an_array_has
// CHECK:         func.return %c3
func.func @a_constant_is_preferred_to_what_an_array_has(%n : index) -> index {
  %c3 = arith.constant 3 : index
  %a = array.alloc(%n) : memref<?xf64>
  %differ = arith.cmpi ne, %n, %c3 : index
  array.raise_if %differ, "ValueError", "no"
  func.return %n : index
}

// Behind the inner block only the first check has been.
// CHECK-LABEL: @kept_after_the_block_of_the_second_check
// CHECK:           func.return %n, %k
func.func @kept_after_the_block_of_the_second_check(%c : i1, %n : index, %m : index, %k : index) -> (index, index) {
  %p = arith.cmpi ne, %n, %m : index
  array.raise_if %p, "ValueError", "no"
  scf.if %c {
    %q = arith.cmpi ne, %k, %m : index
    array.raise_if %q, "ValueError", "no"
    scf.yield
  } else {
    scf.yield
  }
  func.return %m, %k : index, index
}

// Of two that are used alike the first one's name is kept, whichever the check names first: others are made of it.
// CHECK-LABEL: @the_first_one_keeps_its_name
// CHECK:         arith.subi %n, %one
// CHECK:         array.raise_if
// CHECK:         arith.addi %n, %n
func.func @the_first_one_keeps_its_name(%x : memref<?xf64>, %y : memref<?xf64>) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?xf64>
  %m = memref.dim %y, %zero : memref<?xf64>
  %last = arith.subi %n, %one : index
  %differ = arith.cmpi ne, %m, %n : index
  array.raise_if %differ, "ValueError", "{} is not {}" (%m, %n : index, index)
  %s = arith.addi %m, %n : index
  %t = arith.addi %s, %last : index
  func.return %t : index
}
