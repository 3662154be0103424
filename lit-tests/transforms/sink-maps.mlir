// RUN: mutad-opt %s -p sink-maps | filecheck %s

// The second map's point is at the head of the loop, the first one's before it; neither array is stored to.
// CHECK-LABEL: @both_maps_of_a_chain
// CHECK-NOT:     array.map
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      %[[Y:.*]] = memref.load %y[%i]
// CHECK-NEXT:      %[[X:.*]] = memref.load %x[%i]
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[Y]], %[[X]]
// CHECK-NEXT:      %[[OLD:.*]] = memref.load %total[]
// CHECK-NEXT:      arith.addf %[[OLD]], %[[Z]]
func.func @both_maps_of_a_chain(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %total : memref<f64>) {
  %z = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%y : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%z, %x : memref<?xf64>, memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %d : f64):
    %sum = arith.addf %e, %d : f64
    array.yield %sum : f64
  }
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    %old = memref.load %total[] : memref<f64>
    %new = arith.addf %old, %v : f64
    memref.store %new, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// What ends with an exception gets a copy, and the array; of two such branches the second never runs.
// CHECK-LABEL: @a_branch_that_raises_has_its_own
// CHECK-NOT:     array.map
// CHECK:         scf.if %c {
// CHECK-NEXT:      %[[Z:.*]] = array.alloc(%n)
// CHECK-NEXT:      array.map(%n) ins(%x : memref<?xf64>) outs(%[[Z]] :
// CHECK:           array.raise_if
// CHECK:         {raises}
// CHECK-NOT:     scf.if
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      memref.load %x[%i]
func.func @a_branch_that_raises_has_its_own(%x : memref<?xf64>, %n : index, %c : i1, %total : memref<f64>) {
  %c0 = arith.constant 0 : index
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  scf.if %c {
    %first = memref.load %z[%c0] : memref<?xf64>
    memref.store %first, %x[%c0] : memref<?xf64>
    array.raise_if %c, "ValueError", "no"
  } else {
  } {raises}
  scf.if %c {
    array.raise_if %c, "ValueError", "never"
  } else {
  } {raises}
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_branch_that_reads_a_part_has_its_own
// CHECK:         scf.if %c {
// CHECK-NEXT:      array.map(%n) ins(%x
// CHECK:         {raises}
// CHECK-NEXT:    array.loop %i to %n do {
func.func @a_branch_that_reads_a_part_has_its_own(%x : memref<?xf64>, %n : index, %c : i1, %total : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = array.alloc(%n) : memref<?xf64>
  %part = array.view %z[%c1] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  scf.if %c {
    %first = memref.load %part[%c0] : memref<?xf64, strided<[1]>>
    memref.store %first, %x[%c0] : memref<?xf64>
    array.raise_if %c, "ValueError", "no"
  } else {
  } {raises}
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_array_is_read_afterwards
// CHECK:         array.map
func.func @kept_when_the_array_is_read_afterwards(%x : memref<?xf64>, %n : index, %total : memref<f64>) -> f64 {
  %c0 = arith.constant 0 : index
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %z[%c0] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_when_another_element_is_read
// CHECK:         array.map
func.func @kept_when_another_element_is_read(%x : memref<?xf64>, %n : index, %total : memref<f64>) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %v = memref.load %z[%j] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_map_is_shorter_and_fills_a_part
// CHECK:         array.map
func.func @kept_when_the_map_is_shorter_and_fills_a_part(%x : memref<?xf64>, %n : index, %m : index, %total : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = array.alloc(%n) : memref<?xf64>
  %some = array.view %z[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%x : memref<?xf64>) outs(%some : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_loop_stores_to_what_the_map_reads
// CHECK:         array.map
func.func @kept_when_the_loop_stores_to_what_the_map_reads(%x : memref<?xf64>, %n : index, %c : index) {
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %x[%c] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_something_between_stores_to_what_the_map_reads
// CHECK:         array.map
func.func @kept_when_something_between_stores_to_what_the_map_reads(%x : memref<?xf64>, %n : index, %v : f64, %total : memref<f64>) {
  %c0 = arith.constant 0 : index
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  memref.store %v, %x[%c0] : memref<?xf64>
  %trips = array.loop %i to %n do {
    %w = memref.load %z[%i] : memref<?xf64>
    memref.store %w, %total[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_takes_long
// CHECK:         array.map
func.func @kept_when_it_takes_long(%x : memref<?xf64>, %n : index, %total : memref<f64>) {
  %z = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %r = math.exp %e : f64
    array.yield %r : f64
  }
  %trips = array.loop %i to %n do {
    %v = memref.load %z[%i] : memref<?xf64>
    memref.store %v, %total[] : memref<f64>
    array.yield
  }
  func.return
}
