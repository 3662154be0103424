// RUN: mutad-opt %s -p step-on-rows | filecheck %s

// What an iteration saves is the row that the one before has stored: nothing is copied.
// CHECK-LABEL: @whole_rows
// CHECK:         %rows = array.alloc(%c17, %m)
// CHECK:         %[[FIRST:.*]] = array.view %rows[%{{.*}}, %{{.*}}]
// CHECK:         array.map(%m) ins(%x : {{.*}}) outs(%[[FIRST]] :
// CHECK:         array.loop %k to %n
// CHECK:           %[[NOW:.*]] = array.view %rows[%k, %{{.*}}]
// CHECK:           %[[NEXT:.*]] = arith.addi %k, %{{.*}}
// CHECK:           %[[THEN:.*]] = array.view %rows[%[[NEXT]], %{{.*}}]
// CHECK:           array.map(%m) ins(%[[NOW]] : {{.*}}) outs(%[[THEN]] :
// CHECK-NOT:       array.map
// CHECK:           array.yield
func.func @whole_rows(%x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}

// The map that saves what it reads stores to the next row alone.
// CHECK-LABEL: @saved_along_with_the_step
// CHECK:         array.loop %k to %n
// CHECK:           array.map(%m) ins(%[[NOW:.*]] : {{.*}}) outs(%[[THEN:.*]] : memref<?xf64, strided<[1]>>) kinds ["store"] {
func.func @saved_along_with_the_step(%x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square, %e : f64, f64
    }
    array.yield
  }
  func.return
}

// Rows grow by the element that the iteration stores behind them.
// CHECK-LABEL: @growing_rows
// CHECK:         array.loop %k to %n
// CHECK:           %[[THEN:.*]] = array.view %rows[%{{[0-9]+}}, %{{.*}}]
// CHECK:           array.map(%k1) ins(%{{.*}}, %back{{.*}} : {{.*}}) outs(%[[TO:.*]] : memref<?xf64, strided<[1]>>)
// CHECK-NOT:       array.map
// CHECK:           memref.store %a, %[[THEN]][%k1]
func.func @growing_rows(%x : memref<?xf64>, %n : index, %m : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %part = array.view %u[%c0] dims [0] extents(%k1) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %row = array.view %rows[%k, %c0] dims [1] extents(%k1) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%k1) ins(%part : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %back = array.view %u[%k] dims [0] extents(%k1) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
    array.map(%k1) ins(%part, %back : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[-1]>>) outs(%part : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    memref.store %a, %u[%k1] : memref<?xf64>
    array.yield
  }
  func.return
}

// The next iteration would read an element that this one has not stored.
// CHECK-LABEL: @refused_when_rows_grow_by_what_nothing_stores
// CHECK:         %u = array.alloc
func.func @refused_when_rows_grow_by_what_nothing_stores(%x : memref<?xf64>, %n : index, %m : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %part = array.view %u[%c0] dims [0] extents(%k1) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %row = array.view %rows[%k, %c0] dims [1] extents(%k1) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%k1) ins(%part : memref<?xf64, strided<[1]>>) outs(%part, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %a : f64
      array.yield %sum, %e : f64, f64
    }
    array.yield
  }
  func.return
}

// How long rows are is loaded in each iteration: they may grow by any number.
// CHECK-LABEL: @refused_when_rows_have_an_unknown_length
// CHECK:         %u = array.alloc
func.func @refused_when_rows_have_an_unknown_length(%x : memref<?xf64>, %n : index, %m : index, %sizes : memref<?xindex>, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %k1 = memref.load %sizes[%k] : memref<?xindex>
    %part = array.view %u[%c0] dims [0] extents(%k1) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %row = array.view %rows[%k, %c0] dims [1] extents(%k1) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%k1) ins(%part : memref<?xf64, strided<[1]>>) outs(%part, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %sum = arith.addf %e, %a : f64
      array.yield %sum, %e : f64, f64
    }
    memref.store %a, %u[%k1] : memref<?xf64>
    array.yield
  }
  func.return
}

// The last row may be read: the array says nothing else.
// CHECK-LABEL: @refused_of_rows_of_the_program
// CHECK:         %u = array.alloc
func.func @refused_of_rows_of_the_program(%x : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square, %e : f64, f64
    }
    array.yield
  }
  func.return
}

// The array is read once more behind the loop.
// CHECK-LABEL: @refused_when_the_array_is_used_afterwards
// CHECK:         %u = array.alloc
func.func @refused_when_the_array_is_used_afterwards(%x : memref<?xf64>, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square, %e : f64, f64
    }
    array.yield
  }
  %r = memref.load %u[%c0] : memref<?xf64>
  func.return %r : f64
}

// Not all of the array is filled: the next stretch would find in the first row what another one left there.
// CHECK-LABEL: @refused_when_nothing_fills_the_array
// CHECK:         %u = array.alloc
func.func @refused_when_nothing_fills_the_array(%n : index, %m : index, %a : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  memref.store %a, %u[%c0] : memref<?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%u, %row : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square, %e : f64, f64
    }
    array.yield
  }
  func.return
}

// The edges would have to come along.
// CHECK-LABEL: @refused_when_the_step_stores_to_a_part
// CHECK:         %u = array.alloc
func.func @refused_when_the_step_stores_to_a_part(%x : memref<?xf64>, %n : index, %m : index, %inner : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c17 = arith.constant 17 : index
  %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %mid = array.view %u[%c1] dims [0] extents(%inner) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %k to %n do {
    %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%inner) ins(%mid : memref<?xf64, strided<[1]>>) outs(%mid : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}
