// RUN: mutad-opt %s -p read-originals | filecheck %s

// Parts of the copy are parts of the array, also within a loop.
// CHECK-LABEL: @parts_of_a_copy
// CHECK-NOT:     array.alloc
// CHECK:         %[[PART:.*]] = array.view %u[%c1] dims [0] extents(%m)
// CHECK:         %[[OF:.*]] = array.view %[[PART]][%c1] dims [0] extents(%m)
// CHECK:         array.map(%m) ins(%[[OF]], %[[PART]] :
// CHECK:         array.loop
// CHECK:           memref.load %u[%k]
func.func @parts_of_a_copy(%u : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %cell : memref<f64>) {
  %c1 = arith.constant 1 : index
  %un = array.alloc(%n) : memref<?xf64>
  %part = array.view %un[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %of = array.view %part[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64, strided<[1]>> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%m) ins(%of, %part : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64):
    %s = arith.addf %a, %b : f64
    array.yield %s : f64
  }
  %trips = array.loop %k to %n do {
    %r = memref.load %un[%k] : memref<?xf64>
    memref.store %r, %cell[] : memref<f64>
    array.yield
  }
  func.return
}

// Another row of the same tape is another memory.
// CHECK-LABEL: @copy_of_a_row
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%m) ins(%[[NOW:.*]] : {{.*}}) outs(%[[THEN:.*]] : {{.*}}) kinds ["store"]
func.func @copy_of_a_row(%t : !ad.tape, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = ad.push %t(%n, %m) : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %next = arith.addi %k, %c1 : index
    %now = array.view %s[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %then = array.view %s[%next, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %un = array.alloc(%m) : memref<?xf64>
    array.map(%m) ins(%now : memref<?xf64, strided<[1]>>) outs(%un : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%un : memref<?xf64>) outs(%then : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      %s2 = arith.mulf %e, %e : f64
      array.yield %s2 : f64
    }
    array.yield
  }
  func.return
}

// The program copies what it is about to overwrite.
// CHECK-LABEL: @kept_when_the_original_is_stored_to
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_the_original_is_stored_to(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.subi %n, %c1 : index
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %from = array.view %un[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %to = array.view %u[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%from : memref<?xf64, strided<[1]>>) outs(%to : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// So does a loop that stores an element at a time.
// CHECK-LABEL: @kept_when_a_loop_stores_to_the_original
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_a_loop_stores_to_the_original(%u : memref<?xf64>, %n : index, %x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    memref.store %x, %u[%k] : memref<?xf64>
    array.yield
  }
  %r = memref.load %un[%c0] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_when_another_argument_may_be_the_original
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_another_argument_may_be_the_original(%u : memref<?xf64>, %v : memref<?xf64>, %n : index) attributes {overlaps = [[0, 1]]} {
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%un : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// What the program changes is its own.
// CHECK-LABEL: @kept_when_the_copy_is_stored_to
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_the_copy_is_stored_to(%u : memref<?xf64>, %n : index, %x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  memref.store %x, %un[%c0] : memref<?xf64>
  %r = memref.load %un[%c0] : memref<?xf64>
  func.return %r : f64
}

// A column is copied to lie closer.
// CHECK-LABEL: @kept_when_it_is_a_column
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_it_is_a_column(%u : memref<?x?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %u[%c0, %c1] dims [0] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %r = memref.load %un[%c0] : memref<?xf64>
  func.return %r : f64
}

// Who gets the copy may do with it what he likes.
// CHECK-LABEL: @kept_when_the_copy_leaves
// CHECK:         %un = array.alloc(%n)
func.func @kept_when_the_copy_leaves(%u : memref<?xf64>, %n : index) -> memref<?xf64> {
  %un = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return %un : memref<?xf64>
}

// The copy lies by columns, as the original does, in longer rows.
// CHECK-LABEL: @copy_in_longer_rows
// CHECK-NOT:     array.alloc
// CHECK:         %row = array.view %columns[%c0, %j]
// CHECK:         array.map(%m) ins(%row :
func.func @copy_in_longer_rows(%u : memref<?x?xf64>, %y : memref<?xf64>, %n : index, %m : index, %longer : index, %j : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %columns = array.view %u[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  %made = array.alloc(%n, %longer) : memref<?x?xf64>
  %copy = array.view %made[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%m, %n) ins(%columns : memref<?x?xf64, strided<[1, ?]>>) outs(%copy : memref<?x?xf64, strided<[1, ?]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %row = array.view %copy[%c0, %j] dims [0] extents(%m) steps(%c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Columns are copied to lie closer.
// CHECK-LABEL: @kept_when_the_copy_lies_by_columns
// CHECK:         %made = array.alloc
func.func @kept_when_the_copy_lies_by_columns(%u : memref<?x?xf64>, %y : memref<?xf64>, %n : index, %m : index, %longer : index, %j : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %made = array.alloc(%n, %longer) : memref<?x?xf64>
  %copy = array.view %made[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%m, %n) ins(%u : memref<?x?xf64>) outs(%copy : memref<?x?xf64, strided<[1, ?]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %row = array.view %copy[%c0, %j] dims [0] extents(%m) steps(%c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%row : memref<?xf64, strided<[1]>>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// What lies behind the copy's rows is not in the original.
// CHECK-LABEL: @kept_when_the_longer_rows_have_another_name
// CHECK:         %made = array.alloc
func.func @kept_when_the_longer_rows_have_another_name(%u : memref<?x?xf64>, %n : index, %m : index, %longer : index, %j : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %made = array.alloc(%n, %longer) : memref<?x?xf64>
  %copy = array.view %made[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%copy : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %x = memref.load %made[%j, %j] : memref<?x?xf64>
  func.return %x : f64
}
