// RUN: mutad-opt %s -p carried-extents | filecheck %s

// CHECK-LABEL: @one_number_for_arrays_that_are_swapped
// CHECK:         %i = memref.dim %u, %c0 : memref<?xf64>
// CHECK:         %a = arith.addi %i, %cm2 : index
// CHECK:         %trips, %l, %r = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
// CHECK-NOT:       raise_if
// CHECK:           array.view %p[%c0] dims [0] extents(%a)
// CHECK-NEXT:      array.view %q[%c0] dims [0] extents(%a)
func.func @one_number_for_arrays_that_are_swapped(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm2 = arith.constant -2 : index
  %trips, %l, %r = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
    %i = memref.dim %p, %c0 : memref<?xf64>
    %a = arith.addi %i, %cm2 : index
    %j = memref.dim %q, %c0 : memref<?xf64>
    %b = arith.addi %j, %cm2 : index
    %s = array.view %p[%c0] dims [0] extents(%a) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %t = array.view %q[%c0] dims [0] extents(%b) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %differ = arith.cmpi ne, %a, %b : index
    array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
    array.map(%a) ins(%s : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// The first two are equal, and the last two: so all are.
// CHECK-LABEL: @three_in_a_row
// CHECK:         %i = memref.dim %u, %c0 : memref<?xf64>
// CHECK:         array.loop
// CHECK-NOT:       raise_if
// CHECK:           array.map(%i) outs(%r : memref<?xf64>)
func.func @three_in_a_row(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %trips, %a, %b, %c = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>, %r = %w : memref<?xf64>) do {
    %i = memref.dim %p, %c0 : memref<?xf64>
    %j = memref.dim %q, %c0 : memref<?xf64>
    %m = memref.dim %r, %c0 : memref<?xf64>
    %one = arith.cmpi ne, %i, %j : index
    %two = arith.cmpi ne, %j, %m : index
    %wrong = arith.ori %one, %two : i1
    array.raise_if %wrong, "SystemError", "mutad: extents differ that the entry has found equal"
    array.map(%m) outs(%r : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield %q, %r, %p : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_where_one_of_three_is_not_known
// CHECK:         array.loop
// CHECK:           raise_if
// CHECK:           array.map(%m) outs(%r : memref<?xf64>)
func.func @kept_where_one_of_three_is_not_known(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %trips, %a, %b, %c = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>, %r = %w : memref<?xf64>) do {
    %i = memref.dim %p, %c0 : memref<?xf64>
    %j = memref.dim %q, %c0 : memref<?xf64>
    %m = memref.dim %r, %c0 : memref<?xf64>
    %one = arith.cmpi ne, %i, %j : index
    array.raise_if %one, "SystemError", "mutad: extents differ that the entry has found equal"
    array.map(%m) outs(%r : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield %q, %r, %p : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_program_checks
// CHECK:         array.loop
// CHECK:           %i = memref.dim %p, %c0
// CHECK:           raise_if
func.func @kept_where_the_program_checks(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %trips, %a, %b = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
    %i = memref.dim %p, %c0 : memref<?xf64>
    %j = memref.dim %q, %c0 : memref<?xf64>
    %differ = arith.cmpi ne, %i, %j : index
    array.raise_if %differ, "ValueError", "shapes differ"
    array.map(%j) outs(%q : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield %q, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_iteration_makes_an_array
// CHECK:         array.loop
// CHECK:           %i = memref.dim %p, %c0
// CHECK:           raise_if
func.func @kept_where_an_iteration_makes_an_array(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %trips, %a, %b = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
    %i = memref.dim %p, %c0 : memref<?xf64>
    %j = memref.dim %q, %c0 : memref<?xf64>
    %differ = arith.cmpi ne, %i, %j : index
    array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
    %t = array.alloc(%k) : memref<?xf64>
    array.map(%j) outs(%q : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield %t, %p : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// It is said before all loops that whole arrays are as long as each other.
// CHECK-LABEL: @said_before_all_loops
// CHECK:         [[ONE:%.*]] = memref.dim %u, %{{.*}} : memref<?xf64>
// CHECK-NEXT:    %{{.*}} = arith.constant 0 : index
// CHECK-NEXT:    [[OTHER:%.*]] = memref.dim %v, %{{.*}} : memref<?xf64>
// CHECK-NEXT:    [[DIFFER:%.*]] = arith.cmpi ne, [[ONE]], [[OTHER]] : index
// CHECK-NEXT:    array.raise_if [[DIFFER]], "SystemError", "mutad: extents differ that the entry has found equal"
// CHECK-NEXT:    %outer = array.loop
// CHECK-NOT:       raise_if
// CHECK:           array.map(%i) outs(%q : memref<?xf64>)
func.func @said_before_all_loops(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %outer = array.loop %l to %n do {
    %trips, %c, %d = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
      %i = memref.dim %p, %c0 : memref<?xf64>
      %j = memref.dim %q, %c0 : memref<?xf64>
      %differ = arith.cmpi ne, %i, %j : index
      array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
      array.map(%j) outs(%q : memref<?xf64>) kinds ["store"] {
        array.yield %x : f64
      }
      array.yield %q, %p : memref<?xf64>, memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @not_said_in_each_iteration_of_a_loop_around_it
// CHECK-NOT:     raise_if
func.func @not_said_in_each_iteration_of_a_loop_around_it(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %outer, %a, %b = array.loop %l to %n carry(%f = %u : memref<?xf64>, %g = %v : memref<?xf64>) do {
    %trips, %c, %d = array.loop %k to %n carry(%p = %f : memref<?xf64>, %q = %g : memref<?xf64>) do {
      %i = memref.dim %p, %c0 : memref<?xf64>
      %j = memref.dim %q, %c0 : memref<?xf64>
      %differ = arith.cmpi ne, %i, %j : index
      array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
      array.map(%j) outs(%q : memref<?xf64>) kinds ["store"] {
        array.yield %x : f64
      }
      array.yield %q, %p : memref<?xf64>, memref<?xf64>
    }
    array.yield %d, %c : memref<?xf64>, memref<?xf64>
  }
  func.return
}
