// RUN: mutad-opt %s -p 'hoist-invariants{divisions=true}' | filecheck %s

// Divisions trap, but by a number that is known and above 0 they do not.
// CHECK-LABEL: func.func @divisions_by_known_numbers_move
// CHECK:         %q = arith.divui %n, %c4 : index
// CHECK-NEXT:    array.loop
// CHECK:           %r = arith.divui %n, %m : index
func.func @divisions_by_known_numbers_move(%a : memref<?xindex>, %n : index, %m : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %trips = array.loop %k to %steps do {
    %q = arith.divui %n, %c4 : index
    %r = arith.divui %n, %m : index
    %s = arith.addi %q, %r : index
    memref.store %s, %a[%c0] : memref<?xindex>
    array.yield
  }
  func.return
}
