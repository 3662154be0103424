// RUN: mutad-opt %s -p exchange-arrays | filecheck %s

// The next iteration takes what this one has filled, and what follows takes the last one.
// CHECK-LABEL: @exchanged
// CHECK:         %[[D:.*]] = array.alloc
// CHECK:         %[[T:.*]] = array.alloc
// CHECK:         %trips, %[[LAST:.*]], %{{.*}} = array.loop
// CHECK-NEXT:      array.map(%m) ins(%[[FROM:.*]] : memref<?xf64>) outs(%[[TO:.*]] : memref<?xf64>)
// CHECK:           arith.addf
// CHECK-NOT:       array.map
// CHECK:           array.yield %[[TO]], %[[FROM]] : memref<?xf64>, memref<?xf64>
// CHECK:         memref.load %[[LAST]][
func.func @exchanged(%x : memref<?xf64>, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %d = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %e : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  %r = memref.load %d[%c0] : memref<?xf64>
  func.return %r : f64
}

// What is returned is the array that was made for it.
// CHECK-LABEL: @kept_when_the_array_leaves
// CHECK:         %trips = array.loop
// CHECK-COUNT-2: array.map
// CHECK:         func.return
func.func @kept_when_the_array_leaves(%n : index, %m : index) -> memref<?xf64> {
  %one = arith.constant 1.0 : f64
  %d = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %one : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return %d : memref<?xf64>
}

// The caller sees x.
// CHECK-LABEL: @kept_when_it_is_an_argument
// CHECK:         %trips = array.loop
// CHECK-COUNT-2: array.map
func.func @kept_when_it_is_an_argument(%x : memref<?xf64>, %n : index, %m : index) {
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%x : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %e : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// The temporary is filled in part: the rest of it is older.
// CHECK-LABEL: @kept_when_a_part_is_filled
// CHECK:         %trips = array.loop
// CHECK-COUNT-2: array.map
func.func @kept_when_a_part_is_filled(%x : memref<?xf64>, %n : index, %m : index, %l : index) -> f64 {
  %c0 = arith.constant 0 : index
  %d = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%l) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %e : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  %r = memref.load %d[%c0] : memref<?xf64>
  func.return %r : f64
}

// A view that is older than the loop is one of the first array.
// CHECK-LABEL: @kept_when_a_view_is_older
// CHECK:         %trips = array.loop
// CHECK-COUNT-2: array.map
func.func @kept_when_a_view_is_older(%n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  %v = array.view %d[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %e : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  %r = memref.load %v[%c0] : memref<?xf64, strided<[1]>>
  func.return %r : f64
}

// The iteration goes on with the array, which has its elements in both by then.
// CHECK-LABEL: @kept_when_the_iteration_goes_on
// CHECK:         %trips = array.loop
// CHECK-COUNT-2: array.map
func.func @kept_when_the_iteration_goes_on(%n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %d = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %e : f64
      array.yield %sum : f64
    }
    array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %f = memref.load %d[%k] : memref<?xf64>
    memref.store %f, %d[%c0] : memref<?xf64>
    array.yield
  }
  %r = memref.load %d[%c0] : memref<?xf64>
  func.return %r : f64
}
