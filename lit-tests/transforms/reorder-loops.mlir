// RUN: mutad-opt %s -p reorder-loops | filecheck %s
// RUN: mutad-opt %s -p 'reorder-loops{fastmath=true}' | filecheck %s --check-prefix FAST

// CHECK-LABEL: @interchanged_when_it_goes_down_a_column
// CHECK:         array.loop %k to %m
// CHECK-NEXT:      array.loop %j to %n
func.func @interchanged_when_it_goes_down_a_column(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A row sum: the other order would go down the columns.
// CHECK-LABEL: @kept_when_it_goes_along_a_row
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_it_goes_along_a_row(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%j, %k] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// One element takes all the numbers, column by column: row by row it would round otherwise.
// CHECK-LABEL: @kept_when_one_element_adds_in_another_order
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
// FAST-LABEL: @kept_when_one_element_adds_in_another_order
// FAST:         array.loop %k to %m
// FAST-NEXT:      array.loop %j to %n
func.func @kept_when_one_element_adds_in_another_order(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%c0] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%c0] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @interchanged_when_the_additions_are_the_adjoints
// CHECK:         array.loop %k to %m
// CHECK-NEXT:      array.loop %j to %n
func.func @interchanged_when_the_additions_are_the_adjoints(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%c0] : memref<?xf64>
      %sum = arith.addf %old, %x {ad.adjoint} : f64
      memref.store %sum, %c[%c0] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// c is read at an expression of k: before the loop over j, where it is seen to stand still.
// CHECK-LABEL: @subscripts_that_stand_still_are_computed_before_the_innermost_loop
// CHECK:         array.loop %k to %m
// CHECK-NEXT:      %k1 = arith.addi %k, %c1
// CHECK-NEXT:      array.loop %j to %n
// CHECK-NEXT:        memref.load %c[%k1]
func.func @subscripts_that_stand_still_are_computed_before_the_innermost_loop(%c : memref<?xf64>, %b : memref<?x?xf64>, %e : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %y = memref.load %c[%k1] : memref<?xf64>
      %x = memref.load %b[%k1, %j] : memref<?x?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %e[%j] : memref<?xf64>
      %sum = arith.addf %old, %z : f64
      memref.store %sum, %e[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// c may be a column of b.
// CHECK-LABEL: @kept_when_arguments_may_overlap
// CHECK:         array.loop %j to %n
func.func @kept_when_arguments_may_overlap(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index)
    attributes {overlaps = [[0, 1]]} {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// (j, k) loads what (j - 1, k + 1) stored; with k outside that would be stored later.
// CHECK-LABEL: @kept_when_an_iteration_reads_what_would_come_later
// CHECK:         array.loop %j to %n
func.func @kept_when_an_iteration_reads_what_would_come_later(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %j to %n do {
    %j1 = arith.addi %j, %c1 : index
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %x = memref.load %a[%k1, %j] : memref<?x?xf64>
      memref.store %x, %a[%k, %j1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The other diagonal: (j - 1, k - 1) comes before (j, k) in both orders.
// CHECK-LABEL: @interchanged_when_it_has_come_before
// CHECK:         array.loop %k to %m
// CHECK:           array.loop %j to %n
func.func @interchanged_when_it_has_come_before(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %j to %n do {
    %j1 = arith.addi %j, %c1 : index
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %x = memref.load %a[%k, %j] : memref<?x?xf64>
      memref.store %x, %a[%k1, %j1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What stands beside the inner loop has loops of its own.
// CHECK-LABEL: @what_stands_before_and_after
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      memref.store %z
// CHECK:         array.loop %k to %m
// CHECK-NEXT:      array.loop %j_{{.}} to %n
// CHECK:         array.loop %j_{{.}} to %n
// CHECK-NEXT:      memref.load %c
// CHECK-NEXT:      arith.mulf
func.func @what_stands_before_and_after(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %z : f64) {
  %trips = array.loop %j to %n do {
    memref.store %z, %c[%j] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    %y = memref.load %c[%j] : memref<?xf64>
    %half = arith.mulf %y, %z : f64
    memref.store %half, %c[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// What j stores after its loop, the loop of the next j reads.
// CHECK-LABEL: @kept_when_the_next_iteration_reads_what_stands_after
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_the_next_iteration_reads_what_stands_after(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index, %z : f64) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %f = memref.load %v[%c0] : memref<?xf64>
      %xf = arith.mulf %x, %f : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %xf : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    memref.store %z, %v[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// LU: row k divides when its last update is done, which is where the step k begins.
// CHECK-LABEL: @aligned_with_the_step_that_reads_it
// CHECK:         array.loop %k to %i
// CHECK-NEXT:      memref.load %a[%k, %k]
// CHECK:           arith.divf
// CHECK-NEXT:      memref.store
// CHECK:           array.loop %j to
func.func @aligned_with_the_step_that_reads_it(%a : memref<?x?xf64>, %i : index) {
  %trips = array.loop %j to %i do {
    %trips_1 = array.loop %k to %j do {
      %x = memref.load %a[%i, %k] : memref<?x?xf64>
      %y = memref.load %a[%k, %j] : memref<?x?xf64>
      %xy = arith.mulf %x, %y : f64
      %old = memref.load %a[%i, %j] : memref<?x?xf64>
      %new = arith.subf %old, %xy : f64
      memref.store %new, %a[%i, %j] : memref<?x?xf64>
      array.yield
    }
    %d = memref.load %a[%j, %j] : memref<?x?xf64>
    %u = memref.load %a[%i, %j] : memref<?x?xf64>
    %q = arith.divf %u, %d : f64
    memref.store %q, %a[%i, %j] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// With k up to j included, (j, j) reads what stands after the loop of j, of its own iteration.
// CHECK-LABEL: @kept_when_the_step_would_come_before_its_reader
// CHECK:         array.loop %j to %i
func.func @kept_when_the_step_would_come_before_its_reader(%a : memref<?x?xf64>, %i : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %j to %i do {
    %j1 = arith.addi %j, %c1 : index
    %trips_1 = array.loop %k to %j1 do {
      %x = memref.load %a[%i, %k] : memref<?x?xf64>
      %y = memref.load %a[%k, %j] : memref<?x?xf64>
      %xy = arith.mulf %x, %y : f64
      %old = memref.load %a[%i, %j] : memref<?x?xf64>
      %new = arith.subf %old, %xy : f64
      memref.store %new, %a[%i, %j] : memref<?x?xf64>
      array.yield
    }
    %d = memref.load %a[%j, %j] : memref<?x?xf64>
    %u = memref.load %a[%i, %j] : memref<?x?xf64>
    %q = arith.divf %u, %d : f64
    memref.store %q, %a[%i, %j] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// Its checks are made before the nest; where they fail the nest is as it was, and raises in its order.
// CHECK-LABEL: @in_two_versions_when_subscripts_are_checked
// CHECK:         scf.if
// CHECK-NEXT:      array.loop %k to %m
// CHECK:             unchecked
// CHECK:         } else {
// CHECK-NEXT:      array.loop %j_{{.}} to %n
// CHECK-NEXT:        array.loop %k_{{.}} to %m
// CHECK-NOT:         unchecked
// CHECK:         } {small}
func.func @in_two_versions_when_subscripts_are_checked(%c : memref<?xf64>, %b : memref<?x?xf64>, %p : index, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %kk = array.index %k, %p axis 0 sign "nonneg"
      %x = memref.load %b[%kk, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Which subscript is out of range is known when it is loaded.
// CHECK-LABEL: @kept_when_a_subscript_is_loaded
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_a_subscript_is_loaded(%c : memref<?xf64>, %b : memref<?x?xf64>, %at : memref<?xindex>, %p : index, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %s = memref.load %at[%k] : memref<?xindex>
      %kk = array.index %s, %p axis 0 sign "any"
      %x = memref.load %b[%kk, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_something_else_raises
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_something_else_raises(%c : memref<?xf64>, %b : memref<?x?xf64>, %bad : i1, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      array.raise_if %bad, "ZeroDivisionError", "division by zero"
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_there_is_a_branch
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_there_is_a_branch(%c : memref<?xf64>, %b : memref<?x?xf64>, %some : i1, %z : f64, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    scf.if %some {
      memref.store %z, %c[%j] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_threads_may_run_the_outer_loop
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_threads_may_run_the_outer_loop(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  } {claimed}
  func.return
}

// CHECK-LABEL: @kept_when_a_scalar_is_carried
// CHECK:         array.loop %j to %n
// CHECK-NEXT:      array.loop %k to %m
func.func @kept_when_a_scalar_is_carried(%b : memref<?x?xf64>, %n : index, %m : index) -> f64 {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %j to %n do {
    %trips_1 = array.loop %k to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %s[] : memref<f64>
      %sum = arith.addf %old, %x : f64
      memref.store %sum, %s[] : memref<f64>
      memref.store %sum, %b[%k, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @upwards_when_iterations_are_independent
// CHECK:         array.loop %i to %n
// CHECK-NEXT:      memref.load %x[%i]
// CHECK:           memref.store %{{.*}}, %y[%i]
func.func @upwards_when_iterations_are_independent(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %a = memref.load %x[%j] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %y[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @downwards_when_an_iteration_reads_the_last_one
// CHECK:         arith.subi %last, %i
func.func @downwards_when_an_iteration_reads_the_last_one(%x : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %k = arith.addi %j, %c1 : index
    %a = memref.load %x[%k] : memref<?xf64>
    memref.store %a, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @downwards_when_a_scalar_is_carried
// CHECK:         arith.subi %last, %i
func.func @downwards_when_a_scalar_is_carried(%x : memref<?xf64>, %s : memref<f64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %n do {
    %j = arith.subi %last, %i : index
    %a = memref.load %x[%j] : memref<?xf64>
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %a : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// The adjoint of LU: the cotangent of row k is whole when the step k ends, and is divided there.
// CHECK-LABEL: @aligned_with_the_step_that_ends_it
// CHECK:         array.loop %kk to %n
// CHECK:           array.loop %jj to
// CHECK:             array.yield
// CHECK-NEXT:      }
// CHECK:           ad.div
// CHECK-NEXT:      memref.store
func.func @aligned_with_the_step_that_ends_it(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %i : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.maxsi %i, %c0 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %jj to %n do {
    %j = arith.subi %last, %jj : index
    %d = memref.load %a[%j, %j] : memref<?x?xf64>
    %v = memref.load %s[%i, %j] : memref<?x?xf64>
    %q = ad.div %v, %d {ad.adjoint} : f64
    memref.store %q, %s[%i, %j] : memref<?x?xf64>
    %m = arith.maxsi %j, %c0 : index
    %end = arith.subi %m, %c1 : index
    %trips_1 = array.loop %kk to %m do {
      %k = arith.subi %end, %kk : index
      %x = memref.load %a[%k, %j] : memref<?x?xf64>
      %w = memref.load %s[%i, %j] : memref<?x?xf64>
      %p = ad.mul %w, %x {ad.adjoint} : f64
      %old = memref.load %s[%i, %k] : memref<?x?xf64>
      %new = arith.addf %old, %p {ad.adjoint} : f64
      memref.store %new, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Of pairs of two arrays it is known at once that they do not meet.
// CHECK-LABEL: @upwards_when_many_pairs_are_of_two_arrays
// CHECK:         array.loop %[[I:.*]] to %n do {
// CHECK-NEXT:      memref.load %s0[%[[I]]]
func.func @upwards_when_many_pairs_are_of_two_arrays(%n : index, %s0 : memref<?xf64>, %s1 : memref<?xf64>, %s2 : memref<?xf64>, %s3 : memref<?xf64>, %s4 : memref<?xf64>, %s5 : memref<?xf64>, %s6 : memref<?xf64>, %s7 : memref<?xf64>, %s8 : memref<?xf64>, %s9 : memref<?xf64>, %s10 : memref<?xf64>, %s11 : memref<?xf64>, %s12 : memref<?xf64>, %s13 : memref<?xf64>, %s14 : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %i = arith.subi %last, %k : index
    %a0_0 = memref.load %s0[%i] : memref<?xf64>
    %b0_0 = arith.addf %a0_0, %a0_0 : f64
    memref.store %b0_0, %s0[%i] : memref<?xf64>
    %a1_0 = memref.load %s1[%i] : memref<?xf64>
    %b1_0 = arith.addf %a1_0, %a1_0 : f64
    memref.store %b1_0, %s1[%i] : memref<?xf64>
    %a2_0 = memref.load %s2[%i] : memref<?xf64>
    %b2_0 = arith.addf %a2_0, %a2_0 : f64
    memref.store %b2_0, %s2[%i] : memref<?xf64>
    %a3_0 = memref.load %s3[%i] : memref<?xf64>
    %b3_0 = arith.addf %a3_0, %a3_0 : f64
    memref.store %b3_0, %s3[%i] : memref<?xf64>
    %a4_0 = memref.load %s4[%i] : memref<?xf64>
    %b4_0 = arith.addf %a4_0, %a4_0 : f64
    memref.store %b4_0, %s4[%i] : memref<?xf64>
    %a5_0 = memref.load %s5[%i] : memref<?xf64>
    %b5_0 = arith.addf %a5_0, %a5_0 : f64
    memref.store %b5_0, %s5[%i] : memref<?xf64>
    %a6_0 = memref.load %s6[%i] : memref<?xf64>
    %b6_0 = arith.addf %a6_0, %a6_0 : f64
    memref.store %b6_0, %s6[%i] : memref<?xf64>
    %a7_0 = memref.load %s7[%i] : memref<?xf64>
    %b7_0 = arith.addf %a7_0, %a7_0 : f64
    memref.store %b7_0, %s7[%i] : memref<?xf64>
    %a8_0 = memref.load %s8[%i] : memref<?xf64>
    %b8_0 = arith.addf %a8_0, %a8_0 : f64
    memref.store %b8_0, %s8[%i] : memref<?xf64>
    %a9_0 = memref.load %s9[%i] : memref<?xf64>
    %b9_0 = arith.addf %a9_0, %a9_0 : f64
    memref.store %b9_0, %s9[%i] : memref<?xf64>
    %a10_0 = memref.load %s10[%i] : memref<?xf64>
    %b10_0 = arith.addf %a10_0, %a10_0 : f64
    memref.store %b10_0, %s10[%i] : memref<?xf64>
    %a11_0 = memref.load %s11[%i] : memref<?xf64>
    %b11_0 = arith.addf %a11_0, %a11_0 : f64
    memref.store %b11_0, %s11[%i] : memref<?xf64>
    %a12_0 = memref.load %s12[%i] : memref<?xf64>
    %b12_0 = arith.addf %a12_0, %a12_0 : f64
    memref.store %b12_0, %s12[%i] : memref<?xf64>
    %a13_0 = memref.load %s13[%i] : memref<?xf64>
    %b13_0 = arith.addf %a13_0, %a13_0 : f64
    memref.store %b13_0, %s13[%i] : memref<?xf64>
    %a14_0 = memref.load %s14[%i] : memref<?xf64>
    %b14_0 = arith.addf %a14_0, %a14_0 : f64
    memref.store %b14_0, %s14[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @downwards_when_many_pairs_are_of_one_array
// CHECK:         array.loop
// CHECK-NEXT:      %i = arith.subi %last
func.func @downwards_when_many_pairs_are_of_one_array(%n : index, %s0 : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %i = arith.subi %last, %k : index
    %a0_0 = memref.load %s0[%i] : memref<?xf64>
    %b0_0 = arith.addf %a0_0, %a0_0 : f64
    memref.store %b0_0, %s0[%i] : memref<?xf64>
    %a0_1 = memref.load %s0[%i] : memref<?xf64>
    %b0_1 = arith.addf %a0_1, %a0_1 : f64
    memref.store %b0_1, %s0[%i] : memref<?xf64>
    %a0_2 = memref.load %s0[%i] : memref<?xf64>
    %b0_2 = arith.addf %a0_2, %a0_2 : f64
    memref.store %b0_2, %s0[%i] : memref<?xf64>
    %a0_3 = memref.load %s0[%i] : memref<?xf64>
    %b0_3 = arith.addf %a0_3, %a0_3 : f64
    memref.store %b0_3, %s0[%i] : memref<?xf64>
    %a0_4 = memref.load %s0[%i] : memref<?xf64>
    %b0_4 = arith.addf %a0_4, %a0_4 : f64
    memref.store %b0_4, %s0[%i] : memref<?xf64>
    %a0_5 = memref.load %s0[%i] : memref<?xf64>
    %b0_5 = arith.addf %a0_5, %a0_5 : f64
    memref.store %b0_5, %s0[%i] : memref<?xf64>
    %a0_6 = memref.load %s0[%i] : memref<?xf64>
    %b0_6 = arith.addf %a0_6, %a0_6 : f64
    memref.store %b0_6, %s0[%i] : memref<?xf64>
    %a0_7 = memref.load %s0[%i] : memref<?xf64>
    %b0_7 = arith.addf %a0_7, %a0_7 : f64
    memref.store %b0_7, %s0[%i] : memref<?xf64>
    %a0_8 = memref.load %s0[%i] : memref<?xf64>
    %b0_8 = arith.addf %a0_8, %a0_8 : f64
    memref.store %b0_8, %s0[%i] : memref<?xf64>
    %a0_9 = memref.load %s0[%i] : memref<?xf64>
    %b0_9 = arith.addf %a0_9, %a0_9 : f64
    memref.store %b0_9, %s0[%i] : memref<?xf64>
    %a0_10 = memref.load %s0[%i] : memref<?xf64>
    %b0_10 = arith.addf %a0_10, %a0_10 : f64
    memref.store %b0_10, %s0[%i] : memref<?xf64>
    %a0_11 = memref.load %s0[%i] : memref<?xf64>
    %b0_11 = arith.addf %a0_11, %a0_11 : f64
    memref.store %b0_11, %s0[%i] : memref<?xf64>
    %a0_12 = memref.load %s0[%i] : memref<?xf64>
    %b0_12 = arith.addf %a0_12, %a0_12 : f64
    memref.store %b0_12, %s0[%i] : memref<?xf64>
    %a0_13 = memref.load %s0[%i] : memref<?xf64>
    %b0_13 = arith.addf %a0_13, %a0_13 : f64
    memref.store %b0_13, %s0[%i] : memref<?xf64>
    %a0_14 = memref.load %s0[%i] : memref<?xf64>
    %b0_14 = arith.addf %a0_14, %a0_14 : f64
    memref.store %b0_14, %s0[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
