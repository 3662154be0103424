// RUN: mutad-opt %s -p step-on-tape | filecheck %s

// The step reads row k and stores to row k + 1; what it leaves as it is comes along, and what follows reads
// the last row.
// CHECK-LABEL: @steps_and_keeps_edges
// CHECK:         %[[ROWS:.*]] = arith.addi %n, %{{.*}}
// CHECK:         %saved = ad.push %t(%[[ROWS]], %m)
// CHECK:         %[[FIRST:.*]] = array.view %saved[%{{.*}}, %{{.*}}]
// CHECK:         %[[LAST:.*]] = array.view %saved[%n, %{{.*}}]
// CHECK:         array.map(%m) ins(%x : {{.*}}) outs(%[[FIRST]] :
// CHECK:         array.loop %k to %n
// CHECK:           %[[NOW:.*]] = array.view %saved[%k, %{{.*}}]
// CHECK:           %[[NEXT:.*]] = arith.addi %k, %{{.*}}
// CHECK:           %[[THEN:.*]] = array.view %saved[%[[NEXT]], %{{.*}}]
// CHECK:           %[[TO:.*]] = array.view %[[THEN]][%c1]
// CHECK:           %[[FROM:.*]] = array.view %[[NOW]][%c1]
// CHECK:           array.map(%inner) ins(%[[FROM]] : {{.*}}) outs(%[[TO]] :
// CHECK:           %[[LOW:.*]] = arith.minsi %c1, %m
// CHECK:           array.map(%[[LOW]])
// CHECK:           %[[HIGH:.*]] = arith.maxsi
// CHECK:           array.map(%[[HIGH]])
// CHECK-NOT:       array.map
// CHECK:         memref.load %[[LAST]][%c0]
func.func @steps_and_keeps_edges(
    %x : memref<?xf64>, %n : index, %m : index, %inner : index, %t : !ad.tape) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %mid = array.view %u[%c1] dims [0] extents(%inner) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
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
  %r = memref.load %u[%c0] : memref<?xf64>
  func.return %r : f64
}

// What is read behind the store is of the next row.
// CHECK-LABEL: @reads_behind_the_store
// CHECK:         array.loop %k to %n
// CHECK:           %[[THEN:.*]] = array.view %saved[%{{[0-9]+}}, %{{.*}}]
// CHECK:           array.map(%m) ins(%{{.*}}) outs(%[[THEN]] :
// CHECK:           memref.load %[[THEN]][%c0]
func.func @reads_behind_the_store(%cell : memref<f64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    %r = memref.load %u[%c0] : memref<?xf64>
    memref.store %r, %cell[] : memref<f64>
    array.yield
  }
  func.return
}

// An argument lies where its owner has it.
// CHECK-LABEL: @kept_when_the_array_is_an_argument
// CHECK:         ad.push %t(%n, %m)
// CHECK-COUNT-2: array.map(%m)
func.func @kept_when_the_array_is_an_argument(%u : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
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

// Where an iteration may leave the array as it is, the next row would have nothing.
// CHECK-LABEL: @kept_when_the_store_is_conditional
// CHECK:         ad.push %t(%n, %m)
// CHECK:         scf.if
func.func @kept_when_the_store_is_conditional(%n : index, %m : index, %if : i1, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    scf.if %if {
      array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square : f64
      }
    }
    array.yield
  }
  func.return
}

// A store of every second element has no edges.
// CHECK-LABEL: @kept_when_every_second_element_is_stored
// CHECK:         ad.push %t(%n, %m)
func.func @kept_when_every_second_element_is_stored(%n : index, %m : index, %half : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %u = array.alloc(%m) : memref<?xf64>
  %even = array.view %u[%c0] dims [0] extents(%half) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%half) ins(%even : memref<?xf64, strided<[2]>>) outs(%even : memref<?xf64, strided<[2]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}

// Nor has the store of a column: its view has an axis less than the array.
// CHECK-LABEL: @kept_when_a_column_is_stored
// CHECK:         ad.push %t(%n, %m, %m)
func.func @kept_when_a_column_is_stored(%n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m, %m) : memref<?x?xf64>
  %column = array.view %u[%c0, %c0] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  %saved = ad.push %t(%n, %m, %m) : memref<?x?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0, %c0] dims [1, 2] extents(%m, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%m, %m) ins(%u : memref<?x?xf64>) outs(%row : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%column : memref<?xf64, strided<[?]>>) outs(%column : memref<?xf64, strided<[?]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}

// Who reads the tape later takes segments of the extents that it knows.
// CHECK-LABEL: @kept_when_the_tape_outlives_the_call
// CHECK:         ad.push %t(%n, %m)
func.func @kept_when_the_tape_outlives_the_call(%n : index, %m : index, %t : !ad.tape) -> !ad.arena {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
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
  %arena = ad.detach
  func.return %arena : !ad.arena
}

// What reads the saved version goes on to read it.
// CHECK-LABEL: @reads_what_is_saved
// CHECK:         array.loop %k to %n
// CHECK:           %row = array.view %saved[%k, %c0]
// CHECK-NEXT:      array.map(%m) ins(%row : {{.*}}) outs(%{{.*}} : {{.*}}) kinds ["store"]
func.func @reads_what_is_saved(%n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}

// A tangent is saved by the map that saves its primal: both go from row to row, each of its own tape.
// CHECK-LABEL: @steps_with_its_tangent
// CHECK:         array.loop %k to %n
// CHECK:           %[[DOT:.*]] = array.view %saved_dot[%k
// CHECK:           %[[DOT_THEN:.*]] = array.view %saved_dot[%{{[0-9]+}}
// CHECK:           %[[NOW:.*]] = array.view %saved[%k
// CHECK:           %[[THEN:.*]] = array.view %saved[%{{[0-9]+}}
// CHECK-NEXT:      array.map(%m) ins(%[[NOW]], %[[DOT]] : {{.*}}) outs(%[[THEN]], %[[DOT_THEN]] :
// CHECK-NOT:       array.map
// CHECK:           array.yield
func.func @steps_with_its_tangent(%n : index, %m : index, %t : !ad.tape, %t_dot : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %u_dot = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %saved_dot = ad.push %t_dot(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %row_dot = array.view %saved_dot[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u, %u_dot : memref<?xf64>, memref<?xf64>) outs(%row, %row_dot : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb0(%e : f64, %e_dot : f64):
      array.yield %e, %e_dot : f64, f64
    }
    array.map(%m) ins(%u, %u_dot : memref<?xf64>, memref<?xf64>) outs(%u, %u_dot : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
    ^bb0(%e : f64, %e_dot : f64):
      %square = arith.mulf %e, %e : f64
      %square_dot = arith.mulf %e_dot, %e : f64
      array.yield %square, %square_dot : f64, f64
    }
    array.yield
  }
  func.return
}

// The map that saves the elements stores to them, too: the same is a step.
// CHECK-LABEL: @steps_where_it_saves
// CHECK:         array.loop %k to %n
// CHECK:           %[[NOW:.*]] = array.view %saved[%k
// CHECK:           %[[THEN:.*]] = array.view %saved[%{{[0-9]+}}
// CHECK-NEXT:      array.map(%m) ins(%[[NOW]] : {{.*}}) outs(%[[THEN]] : {{.*}}) kinds ["store"]
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        %square = arith.mulf %e, %e : f64
// CHECK-NEXT:        array.yield %square : f64
func.func @steps_where_it_saves(%n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row, %u : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %e, %square : f64, f64
    }
    array.yield
  }
  func.return
}

// What is saved is computed: the tape has no version of the array.
// CHECK-LABEL: @kept_when_something_else_is_saved_beside
// CHECK:         array.alloc
// CHECK:         ad.push %t(%n, %m)
func.func @kept_when_something_else_is_saved_beside(%x : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = array.alloc(%m) : memref<?xf64>
  %saved = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%u : memref<?xf64>) outs(%row, %x : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
    ^bb0(%e : f64):
      %square = arith.mulf %e, %e : f64
      array.yield %square, %e : f64, f64
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

// Rows that are filled again and again, from an array that is filled each time: there is no row more, and the
// last row needs no step behind it.
// CHECK-LABEL: @fills_rows_again
// CHECK:         %saved = ad.push %t(%most, %m) {refilled}
// CHECK:         %[[FIRST:.*]] = array.view %saved[
// CHECK:         array.loop
// CHECK:           array.map(%m) ins(%x : {{.*}}) outs(%[[FIRST]] :
// CHECK:           arith.subi %n
// CHECK:           %[[FEWER:.*]] = arith.maxsi
// CHECK:           array.loop %k to %[[FEWER]]
// CHECK:             %[[NOW:.*]] = array.view %saved[%k
// CHECK:             %[[THEN:.*]] = array.view %saved[%{{[0-9]+}}
// CHECK-NEXT:        array.map(%m) ins(%[[NOW]] : {{.*}}) outs(%[[THEN]] :
// CHECK-NOT:         array.map
// CHECK:             array.yield
func.func @fills_rows_again(%x : memref<?xf64>, %times : index, %most : index, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%most, %m) {refilled} : memref<?x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  %often = array.loop %s to %times do {
    array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %trips = array.loop %k to %n do {
      %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
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
    %last = array.view %saved[%c0, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%last : memref<?xf64, strided<[1]>>) outs(%x : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// What else the iteration stores, its last one does, too.
// CHECK-LABEL: @fills_rows_again_and_counts
// CHECK:         %[[ROWS:.*]] = arith.addi %most
// CHECK:         %saved = ad.push %t(%[[ROWS]], %m) {refilled, versions}
// CHECK:           array.loop %k to %n
// CHECK:             memref.store %{{.*}}, %cell[]
func.func @fills_rows_again_and_counts(%x : memref<?xf64>, %cell : memref<f64>, %times : index, %most : index, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%most, %m) {refilled} : memref<?x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  %often = array.loop %s to %times do {
    array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %trips = array.loop %k to %n do {
      %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        %square = arith.mulf %e, %e : f64
        array.yield %square : f64
      }
      %one = memref.load %u[%c0] : memref<?xf64>
      memref.store %one, %cell[] : memref<f64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The array goes on from what the last filling left.
// CHECK-LABEL: @kept_when_the_array_is_not_filled_each_time
// CHECK:         ad.push %t(%most, %m) {refilled}
// CHECK:         array.alloc
func.func @kept_when_the_array_is_not_filled_each_time(%x : memref<?xf64>, %times : index, %most : index, %n : index, %m : index, %t : !ad.tape) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %saved = ad.push %t(%most, %m) {refilled} : memref<?x?xf64>
  %u = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %often = array.loop %s to %times do {
    %trips = array.loop %k to %n do {
      %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
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
    array.yield
  }
  func.return
}
