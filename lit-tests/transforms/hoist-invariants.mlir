// RUN: mutad-opt %s -p hoist-invariants | filecheck %s

// CHECK-LABEL: @out_of_two_loops
// CHECK-NEXT:    %y = arith.mulf %x, %x
// CHECK-NEXT:    %trips = array.loop
func.func @out_of_two_loops(%x : f64, %a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      %y = arith.mulf %x, %x : f64
      memref.store %y, %a[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @out_of_the_inner_loop_only
// CHECK-NEXT:    %trips = array.loop
// CHECK-NEXT:      %k = arith.addi %i, %n
// CHECK-NEXT:      %inner = array.loop
func.func @out_of_the_inner_loop_only(%x : f64, %a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %n do {
      %k = arith.addi %i, %n : index
      memref.store %x, %a[%k] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_loads
// CHECK:         array.loop
// CHECK-NEXT:      %y = memref.load
func.func @kept_loads(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %y = memref.load %a[%n] : memref<?xf64>
    memref.store %y, %b[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The loop may not run at all; then nothing is raised.
// CHECK-LABEL: @kept_checks
// CHECK:         array.loop
// CHECK-NEXT:      array.raise_if
// CHECK-NEXT:      %j = array.index
func.func @kept_checks(%c : i1, %x : f64, %a : memref<?xf64>, %n : index, %k : index) {
  %trips = array.loop %i to %n do {
    array.raise_if %c, "ValueError", "no"
    %j = array.index %k, %n axis 0 sign "any"
    memref.store %x, %a[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_may_trap
// CHECK:         array.loop
// CHECK-NEXT:      %q = arith.divsi
func.func @kept_when_it_may_trap(%x : f64, %a : memref<?xf64>, %n : index, %k : index) {
  %trips = array.loop %i to %n do {
    %q = arith.divsi %n, %k : index
    memref.store %x, %a[%q] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_uses_the_induction_variable
// CHECK:         array.loop
// CHECK-NEXT:      %k = arith.addi
func.func @kept_when_it_uses_the_induction_variable(%x : f64, %a : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %k = arith.addi %i, %i : index
    memref.store %x, %a[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_view_is_of_a_carried_memref
// CHECK:         array.loop
// CHECK-NEXT:      %v = array.view
func.func @kept_when_a_view_is_of_a_carried_memref(%x : f64, %a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips, %a1, %b1 = array.loop %i to %n carry(%u = %a : memref<?xf64>, %w = %b : memref<?xf64>) do {
    %v = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %x, %v[%i] : memref<?xf64, strided<[1]>>
    array.yield %w, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// A check that the entry has made never raises.
// CHECK-LABEL: @what_the_entry_has_found_is_known_before_the_loop
// CHECK:         array.raise_if %differ
// CHECK-NEXT:    array.loop
func.func @what_the_entry_has_found_is_known_before_the_loop(%x : f64, %a : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %differ = arith.cmpi ne, %n, %m : index
    array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
    memref.store %x, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The loop may not run at all.
// CHECK-LABEL: @kept_where_another_exception_is_raised
// CHECK:         array.loop
// CHECK-NEXT:      array.raise_if %differ
func.func @kept_where_another_exception_is_raised(%x : f64, %a : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %differ = arith.cmpi ne, %n, %m : index
    array.raise_if %differ, "ValueError", "operands could not be broadcast together"
    memref.store %x, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What holds in iterations alone is asked where there are any: `n - 1` is no extent where `n` is 0.
// CHECK-LABEL: @checks_of_iterations_ask_whether_there_are_any
// CHECK:         %differ = arith.cmpi ne, %less, %m
// CHECK:         [[RUNS:%.*]] = arith.cmpi sgt, %n, {{.*}}
// CHECK-NEXT:    [[BOTH:%.*]] = arith.andi %differ, [[RUNS]]
// CHECK-NEXT:    array.raise_if [[BOTH]]
// CHECK:         array.loop
func.func @checks_of_iterations_ask_whether_there_are_any(%x : f64, %a : memref<?xf64>, %n : index, %m : index) {
  %cm1 = arith.constant -1 : index
  %trips = array.loop %i to %n do {
    %less = arith.addi %n, %cm1 : index
    %differ = arith.cmpi ne, %less, %m : index
    array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal" {in_iterations}
    memref.store %x, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
