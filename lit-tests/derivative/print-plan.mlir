// RUN: mutad-opt %s -p print-plan | filecheck %s

// x[i] = x[i] ** 2: the adjoint needs the old x.
// CHECK-LABEL: @saved_when_overwritten_by_its_own_square
// CHECK:         %a = memref.load %x[%i] {plan = ["save %a: killed by memref.store, needed by arith.mulf"]}
func.func @saved_when_overwritten_by_its_own_square(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @reloaded_when_nothing_overwrites_it
// CHECK-NOT:     plan
func.func @reloaded_when_nothing_overwrites_it(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_linear_op_needs_nothing
// CHECK-NOT:     plan
func.func @a_linear_op_needs_nothing(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A root needs its result, and that is where it was stored.
// CHECK-LABEL: @a_result_is_reloaded_from_where_it_was_stored
// CHECK-NOT:     plan
func.func @a_result_is_reloaded_from_where_it_was_stored(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = math.sqrt %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_result_is_saved_when_its_store_is_overwritten
// CHECK:         %b = math.sqrt %a {plan = ["save %b: killed by memref.store, needed by math.sqrt"]}
func.func @a_result_is_saved_when_its_store_is_overwritten(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = math.sqrt %a : f64
    %c = arith.addf %b, %b : f64
    memref.store %c, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// u[i] = u[i+1] ** 2, upwards: killed one iteration later, all but the last.
// CHECK-LABEL: @saved_when_a_sweep_reads_ahead
// CHECK:         %a = memref.load %u[%j] :
// CHECK:         memref.store %b, %u[%i] {plan = ["save the old contents of %u: killed by memref.store, needed by arith.mulf"]}
func.func @saved_when_a_sweep_reads_ahead(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %u[%j] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// u[i+1] = u[i] ** 2, upwards: what is read stays.
// CHECK-LABEL: @reloaded_when_a_sweep_reads_behind
// CHECK-NOT:     plan
func.func @reloaded_when_a_sweep_reads_behind(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %u[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %u[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_condition_on_the_counter_is_computed_again
// CHECK-NOT:     plan
func.func @a_condition_on_the_counter_is_computed_again(%x : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      %b = arith.addf %a, %a : f64
      memref.store %b, %x[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// Two sines of one read cost one value.
// CHECK-LABEL: @one_save_serves_all_that_is_computed_from_it
// CHECK:         %a = memref.load %x[%i] {plan = ["save %a: killed by memref.store, needed by math.sin"]}
// CHECK-NOT:     plan
func.func @one_save_serves_all_that_is_computed_from_it(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %s = math.sin %a : f64
    %c = math.cos %a : f64
    %b = arith.mulf %s, %c : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// exp(a * b * c), and what it is computed from is gone: its result alone is needed.
// CHECK-LABEL: @one_result_instead_of_three_operands
// CHECK:         %e = math.exp %s {plan = ["save %e: killed by memref.store, needed by math.exp"]}
// CHECK-NOT:     plan
func.func @one_result_instead_of_three_operands(%x : memref<?xf64>, %y : memref<?xf64>, %z : memref<?xf64>, %r : memref<f64>, %n : index) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %y[%i] : memref<?xf64>
    %c = memref.load %z[%i] : memref<?xf64>
    %ab = arith.addf %a, %b : f64
    %s = arith.addf %ab, %c : f64
    %e = math.exp %s : f64
    %old = memref.load %r[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %r[] : memref<f64>
    memref.store %zero, %x[%i] : memref<?xf64>
    memref.store %zero, %y[%i] : memref<?xf64>
    memref.store %zero, %z[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// Five shifted reads of one grid: one copy of the grid, not five values a point.
// CHECK-LABEL: @reads_of_one_array_are_saved_as_one_copy
// CHECK:         array.map{{.*}}"store"
// CHECK:         plan = ["save the contents of %u: killed by array.map, needed by arith.mulf"]
!shifted = memref<?xf64, strided<[1]>>
func.func @reads_of_one_array_are_saved_as_one_copy(%u : memref<?xf64>, %v : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %t to %steps do {
    %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> !shifted
    %here = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> !shifted
    %right = array.view %u[%c2] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> !shifted
    array.map(%n) ins(%left, %here, %right : !shifted, !shifted, !shifted) outs(%here : !shifted) kinds ["store"] {
    ^bb0(%l : f64, %h : f64, %r : f64):
      %lh = arith.mulf %l, %h : f64
      %hr = arith.mulf %h, %r : f64
      %y = arith.mulf %lh, %hr : f64
      array.yield %y : f64
    }
    array.yield
  }
  func.return
}

// Scratch that one map fills from inputs is filled again.
// CHECK-LABEL: @scratch_is_computed_again
// CHECK-NOT:     plan
func.func @scratch_is_computed_again(%x : memref<?xf64>, %r : memref<f64>, %n : index, %steps : index) {
  %tmp = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%tmp : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %inner = array.loop %i to %n do {
      %c = memref.load %tmp[%i] : memref<?xf64>
      %d = math.sin %c : f64
      %old = memref.load %r[] : memref<f64>
      %new = arith.addf %old, %d : f64
      memref.store %new, %r[] : memref<f64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Values of the function's top level are still there in the reverse sweep.
// CHECK-LABEL: @nothing_is_saved_of_the_top_level
// CHECK-NOT:     plan
func.func @nothing_is_saved_of_the_top_level(%x : memref<f64>) {
  %a = memref.load %x[] : memref<f64>
  %b = arith.mulf %a, %a : f64
  memref.store %b, %x[] : memref<f64>
  func.return
}

// How often a `while` ran is a value of the level around it.
// CHECK-LABEL: @saved_trips_of_an_inner_while
// CHECK:         plan = ["save %trips: needed by array.loop"]
func.func @saved_trips_of_an_inner_while(%x : memref<f64>, %n : index, %limit : f64) {
  %t = array.loop %i to %n do {
    %trips = array.loop %k while {
    ^bb0(%kc : index):
      %a = memref.load %x[] : memref<f64>
      %more = arith.cmpf olt, %a, %limit : f64
      array.condition %more
    } do {
      %b = memref.load %x[] : memref<f64>
      %c = arith.addf %b, %b : f64
      memref.store %c, %x[] : memref<f64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The two arrays may overlap: the store may kill what this or a later iteration reads.
// CHECK-LABEL: @saved_when_the_arguments_may_overlap
// CHECK:         %a = memref.load %x[%i] {plan = ["save %a: killed by memref.store, needed by arith.mulf"]}
func.func @saved_when_the_arguments_may_overlap(%x : memref<?xf64>, %y : memref<?xf64>, %n : index)
    attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A growable array is mostly addresses: of its item, a copy is kept.
// CHECK-LABEL: @a_killed_item_of_a_growable_array_is_copied_for_a_product
// CHECK:         %copied = array.alloc(
// CHECK:         ins(%v : memref<?x1xf64, strided<[1, 0]>>) outs(%copied : memref<?x1xf64>) kinds ["store"]
// CHECK:         array.matmul %A, %copied into %w {plan = ["save the contents of %copied:
func.func @a_killed_item_of_a_growable_array_is_copied_for_a_product(%A : memref<?x?xf64>, %n : index, %m : index, %w : memref<?x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %items = array.alloc(%m, %n) {growable} : memref<?x?xf64>
  %trips = array.loop %i to %m do {
    %v = array.view %items[%c0, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    array.matmul %A, %v into %w : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    %s = memref.load %w[%c0, %c0] : memref<?x1xf64>
    memref.store %s, %items[%c0, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// What is added to %u is stored to %h as well: %h does not hold the sum, which is saved.
// CHECK-LABEL: @added_and_recorded
// CHECK:         plan = ["save %e: killed by array.map, needed by arith.mulf"]
func.func @added_and_recorded(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %x : memref<?x?xf64>, %h : memref<?x?xf64>, %y : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf64>
  %m = memref.dim %x, %c1 : memref<?x?xf64>
  %u = array.alloc(%n, %m) : memref<?x?xf64>
  array.matmul %a, %b into %u : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%u, %h : memref<?x?xf64>, memref<?x?xf64>) kinds ["add", "store"] {
  ^bb0(%e : f64):
    array.yield %e, %e : f64, f64
  }
  array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["store"] {
  ^bb1(%e : f64):
    %s = arith.mulf %e, %e : f64
    array.yield %s : f64
  }
  %z = arith.constant 0.0 : f64
  array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%u : memref<?x?xf64>) kinds ["store"] {
  ^bb2(%e : f64):
    %t = arith.addf %e, %z : f64
    array.yield %t : f64
  }
  array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["add"] {
  ^bb3(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// The tape of %x is popped in front of the loop in which the count of the inner loop is known: there the count
// is computed again, of what the step overwrites.
// CHECK-LABEL: @saved_where_the_size_of_a_tape_is_computed_of_it
// CHECK:         %a = memref.load %size[] {plan = ["save %a: killed by memref.store, needed by arith.mulf"]}
// CHECK:         %d = memref.load %other[] {plan = ["save %d: killed by memref.store, needed by arith.mulf"]}
// CHECK:         %count = arith.muli %a, %d : index
func.func @saved_where_the_size_of_a_tape_is_computed_of_it(%x : memref<?xf64>, %steps : index) {
  %c1 = arith.constant 1 : index
  %size = memref.alloca() : memref<index>
  %other = memref.alloca() : memref<index>
  memref.store %c1, %size[] : memref<index>
  memref.store %c1, %other[] : memref<index>
  %trips = array.loop %q to %steps do {
    %a = memref.load %size[] : memref<index>
    %d = memref.load %other[] : memref<index>
    %trips_1 = array.loop %i to %c1 do {
      %count = arith.muli %a, %d : index
      %trips_2 = array.loop %k to %count do {
        %b = memref.load %x[%k] : memref<?xf64>
        %e = memref.load %x[%i] : memref<?xf64>
        %c = arith.mulf %b, %e : f64
        memref.store %c, %x[%i] : memref<?xf64>
        array.yield
      }
      array.yield
    }
    %more = arith.muli %a, %a : index
    memref.store %more, %size[] : memref<index>
    %most = arith.muli %d, %d : index
    memref.store %most, %other[] : memref<index>
    array.yield
  }
  func.return
}

// A product reads a row that an op behind a branch overwrites: the row is saved, not the whole array.
// CHECK-LABEL: @a_row_is_saved_of_what_a_product_reads
// CHECK:         array.matmul %A, %v into %w {plan = ["save what array.matmul reads of %b: killed by memref.store, needed by array.matmul"]}
// CHECK-NOT:     plan
func.func @a_row_is_saved_of_what_a_product_reads(%A : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %w : memref<?x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %v = array.view %b[%i, %c0] dims [1, -1] extents(%m, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    array.matmul %A, %v into %w : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    %s = memref.load %w[%c0, %c0] : memref<?x1xf64>
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      memref.store %s, %b[%i, %c0] : memref<?x?xf64>
    }
    %next = arith.addi %i, %c1 : index
    memref.store %s, %b[%next, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// Two products read the same row: it is saved once.
// CHECK-LABEL: @one_row_serves_two_products
// CHECK:         array.matmul %A, %v into %w {plan = ["save what array.matmul reads of %b:
// CHECK-NOT:     plan
func.func @one_row_serves_two_products(%A : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %w : memref<?x1xf64>, %z : memref<?x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %v = array.view %b[%i, %c0] dims [1, -1] extents(%m, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    array.matmul %A, %v into %w : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    array.matmul %A, %v into %z : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    %s = memref.load %w[%c0, %c0] : memref<?x1xf64>
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      memref.store %s, %b[%i, %c0] : memref<?x?xf64>
    }
    %next = arith.addi %i, %c1 : index
    memref.store %s, %b[%next, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// Between the two the row may have changed: both are saved.
// CHECK-LABEL: @two_rows_where_a_store_stands_between
// CHECK:         array.matmul %A, %v into %w {plan = ["save what array.matmul reads of %b:
// CHECK:         array.matmul %A, %v into %z {plan = ["save what array.matmul reads of %b:
func.func @two_rows_where_a_store_stands_between(%A : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %w : memref<?x1xf64>, %z : memref<?x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %v = array.view %b[%i, %c0] dims [1, -1] extents(%m, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    array.matmul %A, %v into %w : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    %s = memref.load %w[%c0, %c0] : memref<?x1xf64>
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      memref.store %s, %b[%i, %c0] : memref<?x?xf64>
    }
    %next = arith.addi %i, %c1 : index
    memref.store %s, %b[%next, %c0] : memref<?x?xf64>
    array.matmul %A, %v into %z : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64>
    %t = memref.load %z[%c0, %c0] : memref<?x1xf64>
    memref.store %t, %b[%i, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// A product that reads all of an array: a copy of the array serves whatever else reads it.
// CHECK-LABEL: @the_array_is_saved_where_a_product_reads_all_of_it
// CHECK:         array.matmul %A, %b into %w {plan = ["save the contents of %b:
// CHECK-NOT:     plan
func.func @the_array_is_saved_where_a_product_reads_all_of_it(%A : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %w : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    array.matmul %A, %b into %w : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
    %s = memref.load %w[%i, %c0] : memref<?x?xf64>
    %first = arith.cmpi slt, %i, %n : index
    scf.if %first {
      memref.store %s, %b[%i, %c0] : memref<?x?xf64>
    }
    %next = arith.addi %i, %c1 : index
    memref.store %s, %b[%next, %c0] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// Two shifted parts are more than the array.
// CHECK-LABEL: @the_array_is_saved_where_its_parts_are_more
// CHECK:         {plan = ["save the contents of %b:
// CHECK-NOT:     plan
func.func @the_array_is_saved_where_its_parts_are_more(%A : memref<?x?xf64>, %b : memref<?x1xf64>, %n : index, %w : memref<?x1xf64>, %z : memref<?x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %all = memref.dim %b, %c0 : memref<?x1xf64>
  %m = arith.subi %all, %c1 : index
  %trips = array.loop %i to %n do {
    %u = array.view %b[%c0, %c0] dims [0, 1] extents(%m, %c1) steps(%c1, %c1) : memref<?x1xf64> -> memref<?x1xf64, strided<[?, ?], offset: ?>>
    %v = array.view %b[%c1, %c0] dims [0, 1] extents(%m, %c1) steps(%c1, %c1) : memref<?x1xf64> -> memref<?x1xf64, strided<[?, ?], offset: ?>>
    array.matmul %A, %u into %w : memref<?x?xf64>, memref<?x1xf64, strided<[?, ?], offset: ?>>, memref<?x1xf64>
    array.matmul %A, %v into %z : memref<?x?xf64>, memref<?x1xf64, strided<[?, ?], offset: ?>>, memref<?x1xf64>
    %s = memref.load %w[%c0, %c0] : memref<?x1xf64>
    %t = memref.load %z[%c0, %c0] : memref<?x1xf64>
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      memref.store %s, %b[%c0, %c0] : memref<?x1xf64>
    }
    memref.store %t, %b[%i, %c0] : memref<?x1xf64>
    array.yield
  }
  func.return
}
