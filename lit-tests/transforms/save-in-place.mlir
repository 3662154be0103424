// RUN: mutad-opt %s -p save-in-place | filecheck %s

// The row is there before the array is filled, and what it is computed of comes along.
// CHECK-LABEL: @filled_on_the_tape
// CHECK:         array.loop %k to %n
// CHECK-NOT:       array.alloc
// CHECK:           %[[AT:.*]] = arith.subi %last, %k
// CHECK:           %row = array.view %saved[%[[AT]], %c0]
// CHECK:           %part = array.view %row[%c1]
// CHECK:           array.map(%m) ins(%u : {{.*}}) outs(%row :
// CHECK:           memref.store %x, %part[%c0]
// CHECK-NOT:       array.map
// CHECK:           memref.load %row[%c0]
func.func @filled_on_the_tape(%u : memref<?xf64>, %x : f64, %cell : memref<f64>, %n : index, %m : index, %last : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %v = array.alloc(%m) : memref<?xf64>
    %part = array.view %v[%c1] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<1xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    memref.store %x, %part[%c0] : memref<1xf64, strided<[1]>>
    %at = arith.subi %last, %k : index
    %row = array.view %saved[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %r = memref.load %v[%c0] : memref<?xf64>
    memref.store %r, %cell[] : memref<f64>
    array.yield
  }
  func.return
}

// The adjoint needs what the array was when it was saved.
// CHECK-LABEL: @kept_when_it_changes_later
// CHECK:           array.alloc
func.func @kept_when_it_changes_later(%u : memref<?xf64>, %x : f64, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %v = array.alloc(%m) : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    memref.store %x, %v[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// An array of before the loop is more than one row.
// CHECK-LABEL: @kept_when_it_is_made_before_the_loop
// CHECK:           array.alloc
func.func @kept_when_it_is_made_before_the_loop(%u : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %v = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// A row of several is stored to in the order of the program.
// CHECK-LABEL: @kept_when_the_row_is_stored_to_twice
// CHECK:           array.alloc
func.func @kept_when_the_row_is_stored_to_twice(%u : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %v = array.alloc(%m) : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%v : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// What the same map stores besides is stored on.
// CHECK-LABEL: @filled_on_the_tape_beside_another_copy
// CHECK:         array.loop %k to %n
// CHECK-NOT:       array.alloc
// CHECK:           array.map(%m) ins(%u : {{.*}}) outs(%row :
// CHECK:           array.map(%m) ins(%row : {{.*}}) outs(%y : {{.*}}) kinds ["add"]
func.func @filled_on_the_tape_beside_another_copy(%u : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %v = array.alloc(%m) : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v : memref<?xf64>) outs(%row, %y : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "add"] {
    ^bb0(%e : f64):
      array.yield %e, %e : f64, f64
    }
    array.yield
  }
  func.return
}

// The adjoint needs what it was.
// CHECK-LABEL: @kept_when_the_same_map_changes_it
// CHECK:           array.alloc
func.func @kept_when_the_same_map_changes_it(%u : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %v = array.alloc(%m) : memref<?xf64>
    array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v : memref<?xf64>) outs(%row, %v : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %e, %square : f64, f64
    }
    array.map(%m) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}
