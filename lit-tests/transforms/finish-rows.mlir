// RUN: mutad-opt %s -p finish-rows | filecheck %s

// Each row is finished before the next one begins: all that was updated by rows before it, then itself.
// CHECK-LABEL: @rows
// CHECK:         %{{.*}} = array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK-NEXT:        %row = array.view %a[%k, %c0]
// CHECK-NEXT:        %later = array.view %a[%j, %c0]
// CHECK-NEXT:        array.map(%m) ins(%row, %later
// CHECK:           %row_1 = array.view %a[%j, %c0]
// CHECK-NEXT:      array.map(%m) ins(%row_1
// CHECK:             math.sqrt
// CHECK:         func.return
func.func @rows(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// So is each column.
// CHECK-LABEL: @columns
// CHECK:         array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK:             array.view %a[%c0, %j]
// CHECK:         func.return
func.func @columns(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[?]>>) outs(%row : memref<?xf64, strided<[?]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%c0, %at] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%later : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A variable that each iteration sets anew is no obstacle, and neither are elements that one iteration stores.
// CHECK-LABEL: @sums
// CHECK:         array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK:             memref.store %s, %r[%k, %j]
// CHECK:         func.return
func.func @sums(%a : memref<?x?xf64>, %r : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %cell[] : memref<f64>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %y : f64
        array.yield %p : f64
      }
      %s = memref.load %cell[] : memref<f64>
      memref.store %s, %r[%k, %at] : memref<?x?xf64>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %s : f64
        %w = arith.subf %y, %p : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What is read of another array may be that of any row.
// CHECK-LABEL: @of_another_array
// CHECK:         array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK:         func.return
func.func @of_another_array(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows go one after the other as it is.
// CHECK-LABEL: @kept_where_rows_are_finished
// CHECK:         array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK-NEXT:        %row
// CHECK:         func.return
func.func @kept_where_rows_are_finished(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %j do {
      %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %later = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The row that a step begins with is updated from the row behind it.
// CHECK-LABEL: @kept_where_a_step_changes_later_rows
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_a_step_changes_later_rows(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next_1 = arith.addi %k, %c1 : index
    %behind = array.view %a[%next_1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%behind : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What a row is updated by is another row that is being updated.
// CHECK-LABEL: @kept_where_updates_read_later_rows
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_updates_read_later_rows(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %at_1 = arith.addi %at, %c1 : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %behind = array.view %a[%at_1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later, %behind : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64, %z : f64):
        %w = arith.subf %y, %x : f64
        %v = arith.mulf %w, %z : f64
        array.yield %v : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// All rows add to one number: their order would be another one.
// CHECK-LABEL: @kept_where_rows_share_a_sum
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_rows_share_a_sum(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.map(%m) ins(%later : memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The number by which a row is updated was stored for the row before it.
// CHECK-LABEL: @kept_where_rows_read_what_others_stored
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_rows_read_what_others_stored(%a : memref<?x?xf64>, %r : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %before = arith.subi %at, %c1 : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %s = memref.load %r[%k, %before] : memref<?x?xf64>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %p = arith.mulf %x, %s : f64
        %w = arith.subf %y, %p : f64
        array.yield %w : f64
      }
      memref.store %s, %r[%k, %at] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What a step does to its row when it has updated the others is done when all are updated.
// CHECK-LABEL: @steps_that_end_with_more
// CHECK:         array.loop %j to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %k to %j do {
// CHECK:         array.loop %{{.*}} to %n do {
// CHECK:             math.sqrt
// CHECK:         func.return
func.func @steps_that_end_with_more(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    array.yield
  }
  func.return
}

// What a step does last changes a row that the next one updates.
// CHECK-LABEL: @kept_where_a_step_ends_with_another_row
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_a_step_ends_with_another_row(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    %last = arith.subi %n, %c1 : index
    %end = array.view %a[%last, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%end : memref<?xf64, strided<[1]>>) outs(%end : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    array.yield
  }
  func.return
}

// Rows of a step are shorter than those of the one before.
// CHECK-LABEL: @kept_where_rows_shrink
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_rows_shrink(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %length = arith.subi %m, %k : index
    %row = array.view %a[%k, %c0] dims [1] extents(%length) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%length) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%length) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// An exception must find the rows as Python leaves them.
// CHECK-LABEL: @kept_where_a_row_may_raise
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_a_row_may_raise(%a : memref<?x?xf64>, %r : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %k to %n do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %s = memref.load %r[%at, %k] : memref<?x?xf64>
      %bad = arith.cmpf olt, %s, %zero : f64
      array.raise_if %bad, "ValueError", "negative"
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The last rows are updated by some steps only: no iteration is the last of a row.
// CHECK-LABEL: @kept_where_steps_are_fewer
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_steps_are_fewer(%a : memref<?x?xf64>, %n : index, %m : index, %few : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %few do {
    %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %root = math.sqrt %x : f64
      array.yield %root : f64
    }
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The arrays may be one.
// CHECK-LABEL: @kept_where_arrays_may_overlap
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:         func.return
func.func @kept_where_arrays_may_overlap(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %next = arith.addi %k, %c1 : index
    %count = arith.subi %n, %next : index
    %trips_1 = array.loop %j to %count do {
      %at = arith.addi %next, %j : index
      %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %w = arith.subf %y, %x : f64
        array.yield %w : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
