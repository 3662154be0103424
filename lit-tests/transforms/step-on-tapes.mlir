// RUN: mutad-opt %s -p step-on-tapes | filecheck %s

// An iteration of the inner loop finds in its row of the tape what the one before has stored there.
// CHECK-LABEL: @saved_along_with_the_step
// CHECK:        %[[LONGER:.*]] = arith.addi %n, %{{.*}} : index
// CHECK:        %tapes = array.alloc(%c4, %[[LONGER]], %m)
// CHECK:        array.loop %j to %c4
// CHECK:          %row = array.view %a[%j, %c0]
// CHECK:          %[[FIRST:.*]] = array.view %tapes[%j, %0, %0] dims [2]
// CHECK:          array.map(%m) ins(%row : {{.*}}) outs(%[[FIRST]] :
// CHECK:          array.loop %k to %j
// CHECK:            %[[NOW:.*]] = array.view %tapes[%j, %k, %0] dims [2]
// CHECK:            %[[NEXT:.*]] = arith.addi %k, %1
// CHECK:            %[[THEN:.*]] = array.view %tapes[%j, %[[NEXT]], %0] dims [2]
// CHECK:            array.map(%m) ins(%[[NOW]] : {{.*}}) outs(%[[THEN]] : memref<?xf64, strided<[1]>>) kinds ["store"]
// CHECK-NOT:         array.map
// CHECK:            array.yield
func.func @saved_along_with_the_step(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What is saved by a map of its own is not saved at all; what is done to the row later is done to the next one.
// CHECK-LABEL: @several_stores
// CHECK:          array.loop %k to %j
// CHECK:            %[[NOW:.*]] = array.view %tapes[%j, %k, %0]
// CHECK:            %[[THEN:.*]] = array.view %tapes[%j, %{{[0-9]+}}, %0]
// CHECK:            array.map(%m) ins(%[[NOW]] : {{.*}}) outs(%[[THEN]] :
// CHECK:            array.map(%m) ins(%[[THEN]] : {{.*}}) outs(%[[THEN]] :
// CHECK-NOT:         array.map
// CHECK:            array.yield
func.func @several_stores(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%saved : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square : f64
      }
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        %twice = arith.addf %e, %e : f64
        array.yield %twice : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The first row of the tape is what the inner loop begins with.
// CHECK-LABEL: @a_store_before_the_inner_loop
// CHECK:          %[[FIRST:.*]] = array.view %tapes[%j, %0, %0]
// CHECK:          array.map(%m) ins(%row : {{.*}}) outs(%[[FIRST]] :
// CHECK:          array.map(%m) ins(%[[FIRST]] : {{.*}}) outs(%[[FIRST]] :
// CHECK:          array.loop %k to %j
func.func @a_store_before_the_inner_loop(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %twice = arith.addf %e, %e : f64
      array.yield %twice : f64
    }
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Another iteration might touch the row.
// CHECK-LABEL: @refused_of_arrays_of_the_program
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_of_arrays_of_the_program(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What the last step leaves is in the row behind the last that was saved.
// CHECK-LABEL: @a_use_behind_the_inner_loop
// CHECK:          %[[TRIPS:.*]] = array.loop %k to %j
// CHECK:            array.map(%m)
// CHECK:          %[[LAST:.*]] = array.view %tapes[%j, %[[TRIPS]], %0]
// CHECK:          memref.load %[[LAST]][%c0]
func.func @a_use_behind_the_inner_loop(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    %last = memref.load %row[%c0] : memref<?xf64, strided<[1]>>
    memref.store %last, %x[%c0, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// What the rows are in the end is read.
// CHECK-LABEL: @refused_when_the_array_is_read_afterwards
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_the_array_is_read_afterwards(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  %last = memref.load %a[%c0, %c0] : memref<?x?xf64>
  memref.store %last, %x[%c0, %c0] : memref<?x?xf64>
  func.return
}

// An element has another name, by which it may be read between two steps.
// CHECK-LABEL: @refused_when_the_row_has_another_name
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_the_row_has_another_name(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %one = memref.load %a[%j, %k] : memref<?x?xf64>
      memref.store %one, %x[%c0, %c0] : memref<?x?xf64>
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The rows hold nothing when the loop begins: what the first row of a tape would be copied from.
// CHECK-LABEL: @refused_when_nothing_fills_the_array
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_nothing_fills_the_array(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows would be filled one behind the one that the next iteration reads.
// CHECK-LABEL: @refused_when_tapes_do_not_begin_at_the_first_row
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_tapes_do_not_begin_at_the_first_row(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %k1 = arith.addi %k, %c1 : index
      %saved = array.view %tape[%k1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The row is stored to before it is saved: the tape has not what the store reads.
// CHECK-LABEL: @refused_when_the_store_comes_first
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:            array.map(%m) ins(%row : {{.*}}) outs(%saved :
func.func @refused_when_the_store_comes_first(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square : f64
      }
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%saved : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Where the condition does not hold, the row would have to be copied.
// CHECK-LABEL: @refused_when_the_store_is_conditional
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:            array.map(%m) ins(%row : {{.*}}) outs(%saved :
func.func @refused_when_the_store_is_conditional(%x : memref<?x?xf64>, %n : index, %m : index, %p : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%saved : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      scf.if %p {
        array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
        ^bb0(%e : f64):
          %square = arith.mulf %e, %e : f64
          array.yield %square : f64
        }
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The rest of the row would have to come along.
// CHECK-LABEL: @refused_when_the_step_stores_to_a_part
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:            array.map(%m) ins(%row : {{.*}}) outs(%saved :
func.func @refused_when_the_step_stores_to_a_part(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%saved : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %part = array.view %row[%c1] dims [0] extents(%j) steps(%c1) : memref<?xf64, strided<[1]>> -> memref<?xf64, strided<[1]>>
      array.map(%j) ins(%part : memref<?xf64, strided<[1]>>) outs(%part : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Another map of the loop fills rows of the tape.
// CHECK-LABEL: @refused_when_tapes_have_two_names_in_the_loop
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_tapes_have_two_names_in_the_loop(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<4x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %other = array.view %tapes[%j, %c1, %c0] dims [2] extents(%m) steps(%c1) : memref<4x?x?xf64> -> memref<?xf64, strided<[1]>>
    %y = memref.load %other[%c0] : memref<?xf64, strided<[1]>>
    memref.store %y, %x[%c0, %c0] : memref<?x?xf64>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A row more would be behind the last row that strides know of.
// CHECK-LABEL: @refused_when_their_type_says_how_many_rows_there_are
// CHECK-NOT:     array.view %tapes[%j, %k
// CHECK:      array.map(%m) ins(%row : {{.*}}) outs(%row, %saved :
func.func @refused_when_their_type_says_how_many_rows_there_are(%x : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %tapes = array.alloc(%c4, %c4, %m) {ad.tapes} : memref<4x4x?xf64>
  %trips = array.loop %j to %c4 do {
    %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%c4, %m) steps(%c1, %c1) : memref<4x4x?xf64> -> memref<4x?xf64, strided<[?, 1]>>
    %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<4x?xf64, strided<[?, 1]>> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row, %saved : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square, %e : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
