// RUN: mutad-opt %s -p fold-bounds | filecheck %s
// RUN: mutad-opt %s -p fold-bounds --run --only ends_within_an_array --args 'a=[1, 2, 3], i=0' | filecheck %s --check-prefix WITHIN
// RUN: mutad-opt %s -p fold-bounds --run --only kept_where_a_counter_goes_beyond --args 'a=[1, 2, 3], i=0' | filecheck %s --check-prefix BEYOND

// `min(k + 1, n)` and `max(k + 1, 0)` are `k + 1`.
// CHECK-LABEL: @ends_within_an_array
// CHECK-NOT:     arith.minsi
// CHECK-NOT:     arith.maxsi
// CHECK:         %k_1 = arith.addi %c1, %k
// CHECK-NEXT:    array.view %a[%c0] dims [0] extents(%k_1)
// WITHIN: result = 6
func.func @ends_within_an_array(%a : memref<?xf64>, %i : index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %sum = memref.alloca() : memref<index>
  memref.store %i, %sum[] : memref<index>
  %trips = array.loop %k to %n do {
    %k_1 = arith.addi %c1, %k : index
    %end = arith.minsi %k_1, %n : index
    %count = arith.maxsi %end, %c0 : index
    %v = array.view %a[%c0] dims [0] extents(%count) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %m = memref.dim %v, %c0 : memref<?xf64, strided<[1]>>
    %old = memref.load %sum[] : memref<index>
    %new = arith.addi %old, %m : index
    memref.store %new, %sum[] : memref<index>
    array.yield
  }
  %r = memref.load %sum[] : memref<index>
  func.return %r : index
}

// Two slices of as many elements have one extent.
// CHECK-LABEL: @equal_lengths_are_one_number
// CHECK:         %long = arith.subi %n, %k
// CHECK-NEXT:    array.view %b[%k] dims [0] extents(%long)
// CHECK:         array.view %a[%c0] dims [0] extents(%long)
func.func @equal_lengths_are_one_number(%a : memref<?xf64>, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %k to %n do {
    %long = arith.subi %n, %k : index
    %v = array.view %b[%k] dims [0] extents(%long) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %minus = arith.muli %k, %cm1 : index
    %again = arith.addi %minus, %n : index
    %end = arith.minsi %again, %n : index
    %w = array.view %a[%c0] dims [0] extents(%end) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%long) ins(%w : memref<?xf64, strided<[1]>>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// The step of an axis of one element is nobody's.
// CHECK-LABEL: @steps_of_many
// CHECK:         array.view %a[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
func.func @steps_of_many(%a : memref<?xf64>, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %k to %n do {
    %j = arith.minsi %k, %n : index
    %one = arith.cmpi eq, %k, %c1 : index
    %step = arith.select %one, %c0, %c1 : index
    %v = array.view %a[%c0] dims [0] extents(%k) steps(%step) : memref<?xf64> -> memref<?xf64, strided<[?]>>
    array.map(%k) ins(%v : memref<?xf64, strided<[?]>>) outs(%b : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// `k + 2` may be beyond the end.
// CHECK-LABEL: @kept_where_a_counter_goes_beyond
// CHECK:         arith.minsi
// BEYOND: result = 8
func.func @kept_where_a_counter_goes_beyond(%a : memref<?xf64>, %i : index) -> index {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %sum = memref.alloca() : memref<index>
  memref.store %i, %sum[] : memref<index>
  %trips = array.loop %k to %n do {
    %k_1 = arith.addi %c2, %k : index
    %end = arith.minsi %k_1, %n : index
    %old = memref.load %sum[] : memref<index>
    %new = arith.addi %old, %end : index
    memref.store %new, %sum[] : memref<index>
    array.yield
  }
  %r = memref.load %sum[] : memref<index>
  func.return %r : index
}

// A number that is no counter and no extent may be near the last one of 64 bits.
// CHECK-LABEL: @kept_where_numbers_may_wrap
// CHECK:         arith.minsi
func.func @kept_where_numbers_may_wrap(%a : memref<?xf64>, %i : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %k to %n do {
    %far = arith.addi %i, %c1 : index
    %end = arith.minsi %i, %far : index
    %x = memref.load %a[%end] : memref<?xf64>
    memref.store %x, %a[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// Outside of loops there are no ranges; other passes fold what constants tell.
// CHECK-LABEL: @kept_outside_of_loops
// CHECK:         arith.maxsi
func.func @kept_outside_of_loops(%a : memref<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %m = arith.maxsi %n, %cm1 : index
  func.return %m : index
}

// The step is asked for another number than the extent.
// CHECK-LABEL: @kept_where_a_step_depends_on_something_else
// CHECK:         steps(%step)
func.func @kept_where_a_step_depends_on_something_else(%a : memref<?xf64>, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %k to %n do {
    %j = arith.minsi %k, %n : index
    %one = arith.cmpi eq, %n, %c1 : index
    %step = arith.select %one, %c0, %c1 : index
    %v = array.view %a[%c0] dims [0] extents(%k) steps(%step) : memref<?xf64> -> memref<?xf64, strided<[?]>>
    array.map(%k) ins(%v : memref<?xf64, strided<[?]>>) outs(%b : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}
