// RUN: mutad-opt %s -p print-plan | filecheck %s

// Rows below %i are read before they are stored to: all reads see what the array held before the loops.
// CHECK-LABEL: @one_copy_before_the_loops_serves_all_reads(
// CHECK-NOT:     = memref.load {{.*}} {plan
// CHECK:         } {plan = ["save the contents of %b: killed by memref.store, needed by arith.mulf"]}
func.func @one_copy_before_the_loops_serves_all_reads(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %outer = array.loop %i to %n do {
    %below = arith.addi %i, %c1 : index
    %rest = arith.subi %n, %below : index
    %middle = array.loop %j to %n do {
      %inner = array.loop %q to %rest do {
        %k = arith.addi %below, %q : index
        %x = memref.load %a[%k, %i] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %xy = arith.mulf %x, %y : f64
        %z = memref.load %b[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %z, %xy : f64
        memref.store %sum, %b[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows above %i have been stored to when they are read.
// CHECK-LABEL: @what_the_loop_has_stored_meanwhile_is_not_that_copy(
// CHECK-NOT:     } {plan
// CHECK:         memref.load %b[%k, %j] {plan = ["save %y
// CHECK-NOT:     } {plan
func.func @what_the_loop_has_stored_meanwhile_is_not_that_copy(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %again = array.loop %t to %m do {
    %outer = array.loop %i to %n do {
      %middle = array.loop %j to %n do {
        %inner = array.loop %k to %i do {
          %x = memref.load %a[%k, %i] : memref<?x?xf64>
          %y = memref.load %b[%k, %j] : memref<?x?xf64>
          %xy = arith.mulf %x, %y : f64
          memref.store %xy, %b[%i, %j] : memref<?x?xf64>
          array.yield
        }
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}
