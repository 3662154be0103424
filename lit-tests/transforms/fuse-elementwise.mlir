// RUN: mutad-opt %s -p fuse-elementwise | filecheck %s

// CHECK-LABEL: @a_chain
// CHECK-NEXT:    array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
// CHECK-NEXT:    ^bb0(%x
// CHECK-NEXT:      %y = arith.mulf %x, %x
// CHECK-NEXT:      %z = arith.addf %y, %y
// CHECK-NEXT:      array.yield %z
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @a_chain(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %z = arith.addf %e, %e : f64
    array.yield %z : f64
  }
  func.return
}

// The consumer overwrites the very elements that the producer read.
// CHECK-LABEL: @in_place
// CHECK-NOT:     array.alloc
func.func @in_place(%n : index, %a : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// x[1:] = x[:-1] as if copied: the copy stays.
// CHECK-LABEL: @kept_when_the_consumer_writes_a_shifted_input
// CHECK:         array.alloc
func.func @kept_when_the_consumer_writes_a_shifted_input(%m : index, %x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lo = array.view %x[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %hi = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%lo : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%m) ins(%t : memref<?xf64>) outs(%hi : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_an_input_is_overwritten_in_between
// CHECK:         array.alloc
func.func @kept_when_an_input_is_overwritten_in_between(%n : index, %x : f64, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  memref.store %x, %a[%n] : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_read_twice
// CHECK:         array.alloc
func.func @kept_when_read_twice(%n : index, %a : memref<?xf64>, %b : memref<?xf64>, %c : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%c : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_index_space_differs
// CHECK:         array.alloc
func.func @kept_when_the_index_space_differs(%n : index, %m : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%m) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Computed once before the loop, read in each iteration.
// CHECK-LABEL: @kept_when_the_consumer_is_in_a_loop
// CHECK:         array.alloc
func.func @kept_when_the_consumer_is_in_a_loop(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %i to %n do {
    array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// Every point adds to one element: the producer must have read it before.
// CHECK-LABEL: @kept_when_the_consumer_reduces_onto_an_input
// CHECK:         array.alloc
func.func @kept_when_the_consumer_reduces_onto_an_input(%n : index, %a : memref<?xf64>, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %v = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a, %v : memref<?xf64>, memref<?xf64, strided<[0]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y : f64
    array.yield %z : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%v : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// The consumer writes the other elements of what the producer reads: x[::2] = f(x[1::2]).
// CHECK-LABEL: @fused_where_elements_take_turns
// CHECK-NOT:     array.alloc
func.func @fused_where_elements_take_turns(%n : index, %x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %even = array.view %x[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %odd = array.view %x[%c1] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%odd : memref<?xf64, strided<[2]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%even : memref<?xf64, strided<[2]>>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}
