// RUN: mutad-opt %s -p lift-choices | filecheck %s

// The test of the inner branch becomes a result of the outer one.
// CHECK-LABEL: @in_a_branch
// CHECK:         %[[R:.*]] = scf.if %p -> (i1) {
// CHECK:           %[[C:.*]] = arith.cmpf ogt, %{{.*}}, %v : f64
// CHECK-NEXT:      scf.yield %[[C]] : i1
// CHECK:           %[[NO:.*]] = arith.constant false
// CHECK-NEXT:      scf.yield %[[NO]] : i1
// CHECK:         %[[Z:.*]] = scf.if %p -> (memref<?xf64>) {
// CHECK-NEXT:      %[[T:.*]] = scf.if %[[R]] -> (memref<?xf64>) {
// CHECK-NEXT:        scf.yield %x : memref<?xf64>
// CHECK:             scf.yield %y : memref<?xf64>
// CHECK:           scf.yield %[[T]] : memref<?xf64>
// CHECK:           scf.yield %y : memref<?xf64>
// CHECK:         memref.store %v, %[[Z]][%i]
func.func @in_a_branch(%p : i1, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
  %z = scf.if %p -> (memref<?xf64>) {
    %a = memref.load %x[%i] : memref<?xf64>
    %r = arith.cmpf ogt, %a, %v : f64
    %t = scf.if %r -> (memref<?xf64>) {
      scf.yield %x : memref<?xf64>
    } else {
      scf.yield %y : memref<?xf64>
    }
    scf.yield %t : memref<?xf64>
  } else {
    scf.yield %y : memref<?xf64>
  }
  memref.store %v, %z[%i] : memref<?xf64>
  func.return
}

// Where a view begins is a number that only the branch knows.
// CHECK-LABEL: @views
// CHECK:         %[[R:.*]], %[[N:.*]] = scf.if %p -> (i1, index)
// CHECK:         scf.if %p
// CHECK-NEXT:      scf.if %[[R]]
// CHECK-NEXT:        array.view %x[%[[N]]]
func.func @views(%p : i1, %x : memref<?xf64>, %k : memref<index>, %q : memref<i1>, %v : f64, %i : index) {
  %one = arith.constant 1 : index
  %z = scf.if %p -> (memref<?xf64, strided<[?], offset: ?>>) {
    %r = memref.load %q[] : memref<i1>
    %n = memref.load %k[] : memref<index>
    %t = scf.if %r -> (memref<?xf64, strided<[?], offset: ?>>) {
      %w = array.view %x[%n] dims [0] extents(%i) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[?], offset: ?>>
      scf.yield %w : memref<?xf64, strided<[?], offset: ?>>
    } else {
      %w = array.view %x[%one] dims [0] extents(%i) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[?], offset: ?>>
      scf.yield %w : memref<?xf64, strided<[?], offset: ?>>
    }
    scf.yield %t : memref<?xf64, strided<[?], offset: ?>>
  } else {
    %w = array.view %x[%i] dims [0] extents(%i) steps(%one) : memref<?xf64> -> memref<?xf64, strided<[?], offset: ?>>
    scf.yield %w : memref<?xf64, strided<[?], offset: ?>>
  }
  memref.store %v, %z[%i] : memref<?xf64, strided<[?], offset: ?>>
  func.return
}

// Three branches deep, the test comes up twice; numbers among the results stay.
// CHECK-LABEL: @three_deep
// CHECK:         scf.if %p -> (f64, i1, i1)
// CHECK:         scf.if %p -> (memref<?xf64>)
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        scf.if
func.func @three_deep(%p : i1, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
  %s, %z = scf.if %p -> (f64, memref<?xf64>) {
    %a = memref.load %x[%i] : memref<?xf64>
    %r = arith.cmpf ogt, %a, %v : f64
    %t = scf.if %r -> (memref<?xf64>) {
      %b = memref.load %y[%i] : memref<?xf64>
      %q = arith.cmpf ogt, %b, %v : f64
      %u = scf.if %q -> (memref<?xf64>) {
        scf.yield %x : memref<?xf64>
      } else {
        scf.yield %y : memref<?xf64>
      }
      scf.yield %u : memref<?xf64>
    } else {
      scf.yield %y : memref<?xf64>
    }
    scf.yield %a, %t : f64, memref<?xf64>
  } else {
    scf.yield %v, %y : f64, memref<?xf64>
  }
  memref.store %s, %z[%i] : memref<?xf64>
  func.return
}

// An array of the branch's own has no place behind it.
// CHECK-LABEL: @kept
// CHECK:         %z = scf.if %p -> (memref<?xf64>)
// CHECK:           array.alloc
func.func @kept(%p : i1, %q : memref<i1>, %y : memref<?xf64>, %v : f64, %i : index) {
  %z = scf.if %p -> (memref<?xf64>) {
    %r = memref.load %q[] : memref<i1>
    %x = array.alloc(%i) : memref<?xf64>
    %t = scf.if %r -> (memref<?xf64>) {
      scf.yield %x : memref<?xf64>
    } else {
      scf.yield %y : memref<?xf64>
    }
    scf.yield %t : memref<?xf64>
  } else {
    scf.yield %y : memref<?xf64>
  }
  memref.store %v, %z[%i] : memref<?xf64>
  func.return
}
