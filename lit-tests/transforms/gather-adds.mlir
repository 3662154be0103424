// RUN: mutad-opt %s -p gather-adds | filecheck %s

// CHECK-LABEL: @two_grids
// CHECK:         %s_1 = array.view %s[%c0, %c0] dims [0, 1] extents(%{{.*}}, %{{.*}}) steps(%c1, %c1)
// CHECK-NEXT:    array.map(%{{.*}}, %{{.*}}) ins(%v, %v, %v
// CHECK-SAME:      outs(%s_1 : memref<?x?xf64, strided<[?, 1]>>) kinds ["add"] window(%n, %m) shifts [0, 1, 2, 1, 1, 0] zeros [0, 1, 2]
// CHECK-NEXT:    ^bb0(%bar: f64, %bar_1: f64, %bar_2: f64):
// CHECK-NEXT:      %s_2 = arith.addf %bar, %bar_1 {ad.adjoint} : f64
// CHECK-NEXT:      %s_3 = arith.addf %s_2, %bar_2 {ad.adjoint} : f64
// CHECK-NEXT:      %half = arith.mulf %s_3, %c : f64
// CHECK-NEXT:      array.yield %half : f64
// CHECK:         array.map(%n, %m) outs(%v : memref<?x?xf64>) kinds ["store"]
func.func @two_grids(%n : index, %m : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c = arith.constant 0.5 : f64
  %zero = arith.constant 0.0 : f64
  %up = array.view %s[%c0, %c1] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %down = array.view %s[%c2, %c1] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %left = array.view %s[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%v, %up, %down, %left : memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) kinds ["store", "add", "add", "add"] {
  ^bb0(%bar : f64):
    %half = arith.mulf %bar, %c : f64
    array.yield %zero, %half, %half, %half : f64, f64, f64, f64
  }
  func.return
}

// Only the cotangent is 0 where there is no point; the partial is read at the nearest.
// CHECK-LABEL: @partials_are_read_at_the_nearest_point
// CHECK:         array.map({{.*}}) ins(%v, %u, %v {{.*}} window(%n) shifts [0, 0, 1] zeros [0, 2]
func.func @partials_are_read_at_the_nearest_point(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v, %u : memref<?xf64>, memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64, %x : f64):
    %p = ad.mul %bar, %x : f64
    array.yield %p, %bar : f64, f64
  }
  func.return
}

// Each step of two elements is one of the view; the view in between is of other elements.
// CHECK-LABEL: @every_other_element
// CHECK:         array.map({{.*}} kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1]
// CHECK:         array.map(%n) ins(%v : memref<?xf64>) outs(%b : memref<?xf64, strided<[2]>>) kinds ["add"]
func.func @every_other_element(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %d = array.view %s[%c2] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b, %d : memref<?xf64, strided<[2]>>, memref<?xf64, strided<[2]>>, memref<?xf64, strided<[2]>>) kinds ["add", "add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar, %bar : f64, f64, f64
  }
  func.return
}

// A factor that is known only at run time may be infinite: each product has a strong zero of its own.
// CHECK-LABEL: @only_known_numbers_are_factored_out
// CHECK:         ^bb0(%bar: f64, %bar_1: f64):
// CHECK-NEXT:      %p = ad.mul %bar, %k : f64
// CHECK-NEXT:      %p_1 = ad.mul %bar_1, %k : f64
// CHECK-NEXT:      arith.addf %p, %p_1
func.func @only_known_numbers_are_factored_out(%n : index, %k : f64, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    %p = ad.mul %bar, %k : f64
    array.yield %p, %p : f64, f64
  }
  func.return
}

// CHECK-LABEL: @what_is_put_back_is_not_stored
// CHECK:         window(%n)
// CHECK-NOT:     array.map(%n)
func.func @what_is_put_back_is_not_stored(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%v, %a, %b : memref<?xf64>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar, %bar : f64, f64, f64
  }
  func.return
}

// A checkerboard in place: what is read, and cleared, lies between what is added to.
// CHECK-LABEL: @red_and_black
// CHECK:         array.map({{.*}}) ins(%red, %red {{.*}} kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1]
// CHECK:         array.map(%n) outs(%red : memref<?xf64, strided<[2]>>) kinds ["store"]
func.func @red_and_black(%n : index, %s : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %red = array.view %s[%c1] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %b = array.view %s[%c2] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  array.map(%n) ins(%red : memref<?xf64, strided<[2]>>) outs(%red, %a, %b : memref<?xf64, strided<[2]>>, memref<?xf64, strided<[2]>>, memref<?xf64, strided<[2]>>) kinds ["store", "add", "add"] {
  ^bb0(%bar : f64):
    array.yield %zero, %bar, %bar : f64, f64, f64
  }
  func.return
}

// CHECK-LABEL: @reversed_views
// CHECK:         %s_1 = array.view %s[%last] dims [0]
// CHECK:         window(%n) shifts [1, 0] zeros [0, 1]
func.func @reversed_views(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %one = arith.constant 1 : index
  %back = arith.constant -1 : index
  %last = arith.addi %n, %one : index
  %a = array.view %s[%n] dims [0] extents(%n) steps(%back) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  %b = array.view %s[%last] dims [0] extents(%n) steps(%back) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[-1]>>, memref<?xf64, strided<[-1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_shift_is_known_only_at_run_time
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_the_shift_is_known_only_at_run_time(%n : index, %by : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%by] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_strides_differ
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_strides_differ(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c2] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[2]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_view_stands_still
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_a_view_stands_still(%n : index, %m : index, %v : memref<?x?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %b = array.view %s[%c1] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%a, %b : memref<?x?xf64, strided<[1, 0]>>, memref<?x?xf64, strided<[1, 0]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar : f64, f64
  }
  func.return
}

// exp(0) is no 0: what is added where there is no point would not be nothing.
// CHECK-LABEL: @kept_when_what_is_added_does_not_vanish
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_what_is_added_does_not_vanish(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    %e = math.exp %bar : f64
    array.yield %e, %bar : f64, f64
  }
  func.return
}

// Guards were dropped: the partial is that of a point that there is, and the gradients are looked at.
// CHECK-LABEL: @products_of_an_adjoint_without_guards
// CHECK:         window(%n) shifts [0, 0, 1] zeros [0, 2]
func.func @products_of_an_adjoint_without_guards(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v, %u : memref<?xf64>, memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64, %x : f64):
    %p = arith.mulf %bar, %x {ad.adjoint} : f64
    array.yield %p, %bar : f64, f64
  }
  func.return
}

// A product that is not strong, with a number that may be infinite.
// CHECK-LABEL: @kept_when_a_factor_may_be_infinite
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_a_factor_may_be_infinite(%n : index, %k : f64, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    %p = arith.mulf %bar, %k : f64
    array.yield %p, %bar : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_map_reads_what_it_adds_to
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_the_map_reads_what_it_adds_to(%n : index, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %next = arith.addi %n, %c1 : index
  %far = arith.addi %next, %n : index
  %v = array.view %s[%far] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64, strided<[1]>>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : f64):
    array.yield %bar, %bar : f64, f64
  }
  func.return
}

// Two exponentials for one are dearer than two sweeps.
// CHECK-LABEL: @kept_when_it_is_dear_to_compute_for_each_view
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add", "add"]
func.func @kept_when_it_is_dear_to_compute_for_each_view(%n : index, %x : memref<?xf64>, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %d = array.view %s[%c2] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v, %x : memref<?xf64>, memref<?xf64>) outs(%a, %b, %d : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add", "add"] {
  ^bb0(%bar : f64, %y : f64):
    %e = math.exp %y : f64
    %t = math.sin %y : f64
    %p = ad.mul %bar, %e : f64
    %q = ad.mul %p, %t : f64
    array.yield %q, %q, %q : f64, f64, f64
  }
  func.return
}

// Several tangents go along: what an element collects is a vector, the factor is spread over it once.
// CHECK-LABEL: @gathers_vectors_of_tangents
// CHECK:         array.map
// CHECK-SAME:      window(%n) shifts [0, 1] zeros [0, 1]
// CHECK:           arith.addf
// CHECK-NEXT:      vector.broadcast %h
// CHECK-NEXT:      arith.mulf
func.func @gathers_vectors_of_tangents(%n : index, %v : memref<?xvector<8xf64>>, %s : memref<?xvector<8xf64>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = arith.constant 0.5 : f64
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xvector<8xf64>> -> memref<?xvector<8xf64>, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xvector<8xf64>> -> memref<?xvector<8xf64>, strided<[1]>>
  array.map(%n) ins(%v : memref<?xvector<8xf64>>) outs(%a, %b : memref<?xvector<8xf64>, strided<[1]>>, memref<?xvector<8xf64>, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : vector<8xf64>):
    %w = vector.broadcast %h : f64 to vector<8xf64>
    %p = arith.mulf %bar, %w : vector<8xf64>
    array.yield %p, %p : vector<8xf64>, vector<8xf64>
  }
  func.return
}

// The exponential of each point is computed eight points at a time in a sweep, and for each view in a gather.
// CHECK-LABEL: @kept_when_numbers_beside_vectors_are_dear
// CHECK-NOT:     window
// CHECK:         kinds ["add", "add"]
func.func @kept_when_numbers_beside_vectors_are_dear(%n : index, %x : memref<?xf64>, %v : memref<?xvector<8xf64>>, %s : memref<?xvector<8xf64>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1) : memref<?xvector<8xf64>> -> memref<?xvector<8xf64>, strided<[1]>>
  %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1) : memref<?xvector<8xf64>> -> memref<?xvector<8xf64>, strided<[1]>>
  array.map(%n) ins(%v, %x : memref<?xvector<8xf64>>, memref<?xf64>) outs(%a, %b : memref<?xvector<8xf64>, strided<[1]>>, memref<?xvector<8xf64>, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%bar : vector<8xf64>, %y : f64):
    %e = math.exp %y : f64
    %w = vector.broadcast %e : f64 to vector<8xf64>
    %p = ad.mul %bar, %w : vector<8xf64>
    array.yield %p, %p : vector<8xf64>, vector<8xf64>
  }
  func.return
}
