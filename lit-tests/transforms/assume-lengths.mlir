// RUN: mutad-opt %s -p assume-lengths,fold-constants,remove-dead | filecheck %s
// RUN: mutad-opt %s -p assume-lengths --run --only equal_or_longer --args 'x=[1, 2], y=[10, 20, 30]' | filecheck %s --check-prefix LONGER
// RUN: mutad-opt %s -p assume-lengths --run --only equal_or_longer --args 'x=[1, 2], y=[10, 20]' | filecheck %s --check-prefix EQUAL

// Where both are as long there is one length, and nothing to check.
// CHECK-LABEL: @equal_or_longer
// CHECK:         %[[N:.*]] = memref.dim %x
// CHECK:         %[[M:.*]] = memref.dim %y
// CHECK:         arith.cmpi eq, %[[N]], %[[M]]
// CHECK:         scf.if
// CHECK-NOT:     array.raise_if
// CHECK:         array.map(%[[N]])
// CHECK:         array.map(%[[N]])
// CHECK:         } else {
// CHECK:         array.raise_if
// CHECK:         array.map
// CHECK:         array.map
// LONGER:        y = [22, 44, 60]
// EQUAL:         y = [22, 44]
func.func @equal_or_longer(%x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    %d = arith.addf %b, %b : f64
    array.yield %d : f64
  }
  func.return
}

// Nothing is gained where the maps have no array in common.
// CHECK-LABEL: @kept_when_maps_do_not_meet
// CHECK-NOT:     scf.if
func.func @kept_when_maps_do_not_meet(%x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  array.map(%n) ins(%x : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return
}

// A number that is no array's length may be anything.
// CHECK-LABEL: @kept_when_a_number_is_compared
// CHECK-NOT:     scf.if
func.func @kept_when_a_number_is_compared(%n : index, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64, strided<[1]>>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_an_array_is_returned
// CHECK-NOT:     scf.if
func.func @kept_when_an_array_is_returned(%x : memref<?xf64>, %y : memref<?xf64>) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return %y : memref<?xf64>
}

// The points of a matrix are no row's.
// CHECK-LABEL: @kept_when_points_are_others
// CHECK-NOT:     scf.if
func.func @kept_when_points_are_others(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %one : memref<?x?xf64>
  %last = arith.subi %n, %one : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  array.map(%n, %m) ins(%a : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %row = array.view %a[%c0, %c0] dims [1] extents(%n) steps(%one)
      : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb1(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// A bound that no pass has folded yet says the same.
// CHECK-LABEL: @bound_not_folded_yet
// CHECK:         %[[N:.*]] = memref.dim %x
// CHECK:         %[[M:.*]] = memref.dim %y
// CHECK:         arith.cmpi eq, %[[N]], %[[M]]
func.func @bound_not_folded_yet(%x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %before = arith.subi %n, %one : index
  %last = arith.addi %c0, %before : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    %d = arith.addf %b, %b : f64
    array.yield %d : f64
  }
  func.return
}

// Lengths that differ by more than the last index are not meant to be equal.
// CHECK-LABEL: @kept_when_one_more_is_compared
// CHECK-NOT:     scf.if
func.func @kept_when_one_more_is_compared(%x : memref<?xf64>, %y : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %before = arith.subi %n, %one : index
  %last = arith.addi %one, %before : index
  %short = arith.cmpi sge, %last, %m : index
  array.raise_if %short, "IndexError", "{}" (%last : index)
  %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return
}

// The second half of a split gradient: a view tells what the first half checked.
// CHECK-LABEL: @second_half
// CHECK-SAME:    %[[N:.*]]: index, %[[M:.*]]: index
// CHECK:         arith.cmpi eq, %[[N]], %[[M]]
// CHECK:         scf.if
// CHECK:         array.map(%[[N]])
// CHECK:         array.map(%[[N]])
// CHECK:         } else {
// CHECK:         array.map(%[[N]])
// CHECK:         array.map(%[[M]])
func.func @second_half(%n : index, %m : index, %x : memref<?xf64>, %y : memref<?xf64>) attributes {nonnegative = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = array.alloc(%m) : memref<?xf64>
  %v = array.view %t[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return
}

// Numbers that may be below 0 are no extents.
// CHECK-LABEL: @kept_when_numbers_may_be_negative
// CHECK-NOT:     scf.if
func.func @kept_when_numbers_may_be_negative(%n : index, %m : index, %x : memref<?xf64>, %y : memref<?xf64>) attributes {nonnegative = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = array.alloc(%m) : memref<?xf64>
  %v = array.view %t[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  array.map(%m) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb1(%b : f64):
    array.yield %b : f64
  }
  func.return
}
