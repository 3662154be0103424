// RUN: mutad-opt %s -p store-first | filecheck %s

// CHECK-LABEL: @within_a_block
// CHECK:         array.map(%n) outs(%t : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"]
func.func @within_a_block(%n : index, %s : memref<?xf64>, %t : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  array.map(%n) outs(%s, %t : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
    array.yield %zero, %one : f64, f64
  }
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @a_gathering_map_stores_where_zeros_were
// CHECK:         %s_1 = array.view %s[%c1]
// CHECK-NEXT:    %more = arith.addi
// CHECK-NEXT:    %s_2 = array.view
// CHECK-NEXT:    array.map(%more) ins(%v, %v {{.*}} kinds ["add"] window(%n) shifts [0, 2] zeros [0, 1] fresh [1]
func.func @a_gathering_map_stores_where_zeros_were(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s_1 = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) outs(%s_1 : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %zero : f64
  }
  %more = arith.addi %n, %c2 : index
  %s_2 = array.view %s[%c0] dims [0] extents(%more) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%more) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%s_2 : memref<?xf64, strided<[1]>>) kinds ["add"] window(%n) shifts [0, 2] zeros [0, 1] {
  ^bb0(%x : f64, %y : f64):
    %z = arith.addf %x, %y : f64
    array.yield %z : f64
  }
  func.return
}

// The grid that an iteration leaves full of zeros is what the next one adds to.
// CHECK-LABEL: @grids_that_are_swapped
// CHECK:         %{{.*}}, %a_1, %b_1 = array.loop %i to %steps carry(%v = %a : memref<?xf64>, %u = %b : memref<?xf64>) do {
// CHECK:           array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"]
// CHECK-NOT:       array.map
// CHECK:           array.yield %u, %v
// CHECK:         array.map(%n) outs(%b_1 : memref<?xf64>) kinds ["store"]
func.func @grids_that_are_swapped(%n : index, %steps : index, %x : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %a = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%a : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %b = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%b : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips, %a_1, %b_1 = array.loop %i to %steps carry(%v = %a : memref<?xf64>, %u = %b : memref<?xf64>) do {
    array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["add"] {
    ^bb1(%bar : f64):
      array.yield %bar : f64
    }
    array.map(%n) outs(%v : memref<?xf64>) kinds ["store"] {
      array.yield %zero : f64
    }
    array.yield %u, %v : memref<?xf64>, memref<?xf64>
  }
  array.map(%n) ins(%a_1, %b_1 : memref<?xf64>, memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb2(%e : f64, %f : f64):
    %g = arith.addf %e, %f : f64
    array.yield %g : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_loop_is_entered_with_other_numbers
// CHECK:           kinds ["add"]
// CHECK:           kinds ["store"]
func.func @kept_when_the_loop_is_entered_with_other_numbers(%n : index, %steps : index, %b : memref<?xf64>, %x : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %steps do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
    ^bb1(%bar : f64):
      array.yield %bar : f64
    }
    array.map(%n) outs(%b : memref<?xf64>) kinds ["store"] {
      array.yield %zero : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_somebody_reads_in_between
// CHECK:         kinds ["add"]
func.func @kept_when_somebody_reads_in_between(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) -> f64 {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %e = memref.load %s[%c0] : memref<?xf64>
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return %e : f64
}

// CHECK-LABEL: @kept_when_a_loop_in_between_touches_it
// CHECK:         kinds ["add"]
func.func @kept_when_a_loop_in_between_touches_it(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips, %r = array.loop %i to %n carry(%t = %s : memref<?xf64>) do {
    memref.store %one, %t[%i] : memref<?xf64>
    array.yield %t : memref<?xf64>
  }
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_only_a_part_is_zero
// CHECK:         kinds ["add"]
func.func @kept_when_only_a_part_is_zero(%n : index, %m : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = array.view %s[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) outs(%part : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_zeros_begin_elsewhere
// CHECK:         kinds ["add"]
func.func @kept_when_the_zeros_begin_elsewhere(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) ins(%v : memref<?xf64>) outs(%b : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_is_not_zero
// CHECK:         kinds ["add"]
func.func @kept_when_it_is_not_zero(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %one = arith.constant 1.0 : f64
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %one : f64
  }
  array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_part_changes_from_iteration_to_iteration
// CHECK:           kinds ["add"]
func.func @kept_when_the_part_changes_from_iteration_to_iteration(%n : index, %steps : index, %x : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : index
  %s = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips = array.loop %i to %steps do {
    %part = array.view %s[%i] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<1xf64, strided<[1]>>
    %from = array.view %x[%i] dims [0] extents(%c1) steps(%c1) : memref<?xf64> -> memref<1xf64, strided<[1]>>
    array.map(%c1) ins(%from : memref<1xf64, strided<[1]>>) outs(%part : memref<1xf64, strided<[1]>>) kinds ["add"] {
    ^bb1(%bar : f64):
      array.yield %bar : f64
    }
    array.map(%c1) ins(%part : memref<1xf64, strided<[1]>>) outs(%x, %part : memref<?xf64>, memref<1xf64, strided<[1]>>) kinds ["store", "store"] {
    ^bb1(%e : f64):
      array.yield %e, %zero : f64, f64
    }
    array.yield
  }
  func.return
}

// An argument that held nothing is zero where the loop begins; one that is only set to zero in it may not be.
// CHECK-LABEL: @an_unseen_argument_in_turn
// CHECK:         array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
// CHECK:         array.loop
// CHECK-NEXT:      array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"]
// CHECK:         array.loop
// CHECK-NEXT:      array.map(%n) ins(%v : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"]
func.func @an_unseen_argument_in_turn(%n : index, %k : index, %s : memref<?xf64>, %t : memref<?xf64>, %v : memref<?xf64>, %w : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  %trips = array.loop %i to %k do {
    array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    array.map(%n) ins(%s : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
      array.yield %zero : f64
    }
    array.yield
  }
  %trips_1 = array.loop %i to %k do {
    array.map(%n) ins(%v : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    array.map(%n) ins(%t : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
      array.yield %zero : f64
    }
    array.yield
  }
  func.return
}

// A view of all elements is what was filled.
// CHECK-LABEL: @whole_array_by_a_view
// CHECK:         array.map
// CHECK-SAME:      kinds ["store"]
// CHECK-NOT:     array.map
func.func @whole_array_by_a_view(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %all = array.view %s[%c0] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%all : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_view_is_of_other_elements
// CHECK:         kinds ["store"]
// CHECK:         kinds ["add"]
func.func @kept_when_the_view_is_of_other_elements(%n : index, %s : memref<?xf64>, %v : memref<?xf64>) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %all = array.view %s[%one] dims [0] extents(%n) steps(%one)
      : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%all : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @vectors_of_tangents
// CHECK:         array.map
// CHECK-SAME:      kinds ["store"]
// CHECK-NOT:     array.map
func.func @vectors_of_tangents(%n : index, %s : memref<?xvector<8xf64>>, %v : memref<?xvector<8xf64>>) {
  %zero = arith.constant dense<0.0> : vector<8xf64>
  array.map(%n) outs(%s : memref<?xvector<8xf64>>) kinds ["store"] {
    array.yield %zero : vector<8xf64>
  }
  array.map(%n) ins(%v : memref<?xvector<8xf64>>) outs(%s : memref<?xvector<8xf64>>) kinds ["add"] {
  ^bb0(%y : vector<8xf64>):
    array.yield %y : vector<8xf64>
  }
  func.return
}
