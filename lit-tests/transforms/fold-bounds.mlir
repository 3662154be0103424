// RUN: mutad-opt %s -p fold-bounds | filecheck %s
// RUN: mutad-opt %s -p fold-bounds --run --only ends_within_an_array --args 'a=[1, 2, 3], i=0' | filecheck %s --check-prefix WITHIN
// RUN: mutad-opt %s -p fold-bounds --run --only kept_where_a_counter_goes_beyond --args 'a=[1, 2, 3], i=0' | filecheck %s --check-prefix BEYOND
// RUN: mutad-opt %s -p fold-bounds --run --only remainders --args 'a=[1, 2, 3], by=-2' | filecheck %s --check-prefix ROLLED

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

// A remainder is from 0 to below its divisor: of `out[k:] = a[:n - k]; out[:k] = a[n - k:]` no bound needs a clamp.
// CHECK-LABEL: @remainders
// CHECK:         %k = array.floormod %by, %some : index
// CHECK-NEXT:    %rest = arith.subi %n, %k : index
// CHECK-NOT:     arith.select %below
// CHECK-NOT:     arith.minsi
// CHECK:         array.view %a[%c0] dims [0] extents(%rest)
// CHECK:         array.view %a[%rest] dims [0] extents(%k)
// ROLLED: a = [7, 7, 8]
func.func @remainders(%a : memref<?xf64>, %by : index) {
  %seven = arith.constant 7.0 : f64
  %eight = arith.constant 8.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %none = arith.cmpi sgt, %c1, %n : index
  %some = arith.select %none, %c1, %n : index
  %k = array.floormod %by, %some : index
  %rest = arith.subi %n, %k : index
  %below = arith.cmpi slt, %rest, %c0 : index
  %wrapped = arith.addi %n, %rest : index
  %from = arith.select %below, %wrapped, %rest : index
  %end = arith.minsi %from, %n : index
  %head = array.view %a[%c0] dims [0] extents(%end) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%end) outs(%head : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %seven : f64
  }
  %left = arith.subi %n, %end : index
  %count = arith.maxsi %left, %c0 : index
  %tail = array.view %a[%end] dims [0] extents(%count) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%count) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %eight : f64
  }
  func.return
}

// By what may be negative the remainder may be, too.
// CHECK-LABEL: @kept_where_the_divisor_may_be_negative
// CHECK:         arith.cmpi slt, %k, %c0
// CHECK:         arith.select
// CHECK:         arith.minsi
func.func @kept_where_the_divisor_may_be_negative(%a : memref<?xf64>, %by : index, %m : index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %k = array.floormod %by, %m : index
  %below = arith.cmpi slt, %k, %c0 : index
  %wrapped = arith.addi %n, %k : index
  %from = arith.select %below, %wrapped, %k : index
  %end = arith.minsi %from, %n : index
  %head = array.view %a[%c0] dims [0] extents(%end) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%end) outs(%head : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %zero : f64
  }
  func.return
}

// In a loop a slice that counts from an end does so in no iteration, or it may.
// CHECK-LABEL: @signs_of_counters
// CHECK:         %{{.*}} = array.loop %k to %n do {
// CHECK-NEXT:      %left = arith.subi %last, %k
// CHECK-NEXT:      %before = arith.addi %k, %cm1
// CHECK-NEXT:      arith.cmpi slt, %before, %c0
// CHECK-NOT:       arith.cmpi slt, %left
// CHECK:           memref.load %b[%left]
func.func @signs_of_counters(%a : memref<?xf64>, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %cm1 = arith.constant -1 : index
  %last = arith.addi %n, %cm1 : index
  %trips = array.loop %k to %n do {
    %left = arith.subi %last, %k : index
    %before = arith.addi %k, %cm1 : index
    %is_below = arith.cmpi slt, %before, %c0 : index
    %wrapped = arith.addi %n, %before : index
    %from = arith.select %is_below, %wrapped, %before : index
    %least = arith.minsi %from, %n : index
    %is_left = arith.cmpi slt, %left, %c0 : index
    %turned = arith.addi %n, %left : index
    %to = arith.select %is_left, %turned, %left : index
    %x = memref.load %a[%least] : memref<?xf64>
    %y = memref.load %b[%to] : memref<?xf64>
    %z = arith.addf %x, %y : f64
    memref.store %z, %a[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// `max(n - 1, 0)` is `n - 1` in iterations alone: a check of it holds there, and says so.
// CHECK-LABEL: @checks_of_narrowed_numbers_hold_in_iterations
// CHECK:         array.loop
// CHECK-NEXT:      %less = arith.addi %n, %cm1
// CHECK-NEXT:      %differ = arith.cmpi ne, %less, %m
// CHECK-NEXT:      array.raise_if %differ, {{.*}} {in_iterations}
// CHECK-NEXT:      %other = arith.cmpi ne, %n, %m
// CHECK-NEXT:      array.raise_if %other, "SystemError", "mutad: extents differ that the entry has found equal"{{$}}
func.func @checks_of_narrowed_numbers_hold_in_iterations(%x : f64, %a : memref<?xf64>, %m : index) {
  %c0 = arith.constant 0 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %less = arith.addi %n, %cm1 : index
    %extent = arith.maxsi %less, %c0 : index
    %differ = arith.cmpi ne, %extent, %m : index
    array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
    %other = arith.cmpi ne, %n, %m : index
    array.raise_if %other, "SystemError", "mutad: extents differ that the entry has found equal"
    memref.store %x, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
