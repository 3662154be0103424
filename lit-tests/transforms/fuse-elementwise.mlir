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

// What an assignment overwrites is read before: it may be given anything.
// CHECK-LABEL: @fused_into_what_reads_first
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%m) ins(%lo {{.*}}) outs(%hi {{.*}}) kinds ["store"] attributes {reads_first} {
func.func @fused_into_what_reads_first(%m : index, %x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lo = array.view %x[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %hi = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%lo : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %y = arith.mulf %e, %e : f64
    array.yield %y : f64
  }
  array.map(%m) ins(%t : memref<?xf64>) outs(%hi : memref<?xf64, strided<[1]>>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Past the check there is one index space.
// CHECK-LABEL: @fused_where_a_check_has_compared_the_index_spaces
// CHECK-NOT:     array.alloc
func.func @fused_where_a_check_has_compared_the_index_spaces(%n : index, %m : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  %differ = arith.cmpi ne, %n, %m : index
  array.raise_if %differ, "ValueError", "{} is not {}" (%n, %m : index, index)
  array.map(%n) ins(%t, %b : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %z : f64):
    %s = arith.addf %e, %z : f64
    array.yield %s : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_check_is_of_something_else
// CHECK:         array.alloc
func.func @kept_when_the_check_is_of_something_else(%n : index, %m : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %c1 = arith.constant 1 : index
  %differ = arith.cmpi ne, %n, %c1 : index
  array.raise_if %differ, "ValueError", "{} is not 1" (%n : index)
  array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// What only one side of a branch wants is evaluated there.
// CHECK-LABEL: @fused_into_a_branch
// CHECK-NEXT:    scf.if %p {
// CHECK-NEXT:      array.map(%n) ins(%a
func.func @fused_into_a_branch(%p : i1, %n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  scf.if %p {
    array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
    ^bb1(%e : f64):
      array.yield %e : f64
    }
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_branch_overwrites_an_input
// CHECK:         array.alloc
func.func @kept_when_the_branch_overwrites_an_input(%p : i1, %n : index, %v : f64, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  scf.if %p {
    memref.store %v, %a[%n] : memref<?xf64>
    array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
    ^bb1(%e : f64):
      array.yield %e : f64
    }
  }
  func.return
}

// A temporary in Fortran's order is filled and read through one view of it.
// CHECK-LABEL: @fused_through_the_one_view_of_a_temporary
// CHECK-NOT:     array.alloc
// CHECK-NOT:     array.view
func.func @fused_through_the_one_view_of_a_temporary(%n : index, %m : index, %a : memref<?x?xf64>, %b : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%m, %n) : memref<?x?xf64>
  %v = array.view %t[%c0, %c0] dims [1, 0] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%n, %m) ins(%a : memref<?x?xf64>) outs(%v : memref<?x?xf64, strided<[1, ?]>>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  array.map(%n, %m) ins(%v : memref<?x?xf64, strided<[1, ?]>>) outs(%b : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Two readers are one by the end, but what both read was made for two: the next run evaluates it there.
// CHECK-LABEL: @kept_when_read_twice_until_the_next_run
// CHECK-COUNT-1: array.alloc
// CHECK-NOT:     array.alloc
func.func @kept_when_read_twice_until_the_next_run(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = math.exp %x : f64
    array.yield %y : f64
  }
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %z = arith.mulf %e, %e : f64
    array.yield %z : f64
  }
  array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %z : f64):
    %s = arith.addf %e, %z : f64
    array.yield %s : f64
  }
  func.return
}

// An input that the map reads twice is read once by what it is fused with.
// CHECK-LABEL: @an_input_read_twice
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%b
func.func @an_input_read_twice(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a, %a : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64, %w : f64):
    %y = arith.mulf %x, %w : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t, %t, %a : memref<?xf64>, memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64, %z : f64, %x : f64):
    %s = arith.addf %e, %z : f64
    %r = arith.subf %s, %x : f64
    array.yield %r : f64
  }
  func.return
}

// What a map gathers it does not read point by point.
// CHECK-LABEL: @kept_when_it_is_gathered
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%t
// CHECK:         array.map(%n) ins(%t
func.func @kept_when_it_is_gathered(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] window(%n) shifts [1] zeros [0] {
  ^bb0(%e : f64):
    %s = arith.addf %e, %e : f64
    array.yield %s : f64
  }
  func.return
}

// A value and its tangent go to temporaries, and from there to their arrays.
// CHECK-LABEL: @two_temporaries_of_one_map
// CHECK-NOT:     array.alloc
// CHECK:         array.map(%n) ins(%a, %b : {{.*}}) outs(%b, %a : {{.*}}) kinds ["store", "store"] {
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      %z = arith.mulf %x, %y : f64
// CHECK-NEXT:      array.yield %z, %x : f64, f64
// CHECK-NOT:     array.map
func.func @two_temporaries_of_one_map(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %s = array.alloc(%n) : memref<?xf64>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a, %b : memref<?xf64>, memref<?xf64>) outs(%s, %t : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.mulf %x, %y : f64
    array.yield %z, %x : f64, f64
  }
  array.map(%n) ins(%s, %t : memref<?xf64>, memref<?xf64>) outs(%b, %a : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64, %y : f64):
    array.yield %x, %y : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_other_result_is_read_elsewhere
// CHECK:         array.alloc
// CHECK:         array.alloc
func.func @kept_when_the_other_result_is_read_elsewhere(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %s = array.alloc(%n) : memref<?xf64>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%s, %t : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    %z = arith.mulf %x, %x : f64
    array.yield %z, %x : f64, f64
  }
  array.map(%n) ins(%s : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_other_result_is_the_callers
// CHECK:         array.alloc
func.func @kept_when_the_other_result_is_the_callers(%n : index, %a : memref<?xf64>, %b : memref<?xf64>, %c : memref<?xf64>) {
  %s = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%s, %c : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    %z = arith.mulf %x, %x : f64
    array.yield %z, %x : f64, f64
  }
  array.map(%n) ins(%s, %c : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.addf %x, %y : f64
    array.yield %z : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_one_result_is_added
// CHECK:         array.alloc
func.func @kept_when_one_result_is_added(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
  %s = array.alloc(%n) : memref<?xf64>
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%s, %t : memref<?xf64>, memref<?xf64>) kinds ["store", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  array.map(%n) ins(%s, %t : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.addf %x, %y : f64
    array.yield %z : f64
  }
  func.return
}
