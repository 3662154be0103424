// RUN: mutad-opt %s -p unroll-and-jam | filecheck %s

// Four rows update c at once: it is loaded and stored once. What is left over runs as it was.
// CHECK-LABEL: @rows_that_share_what_they_update
// CHECK:         arith.floordivsi %n
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:             memref.load %b[
// CHECK-NEXT:        memref.load %v[
// CHECK-NEXT:        arith.mulf
// CHECK-NEXT:        memref.load %c[%j]
// CHECK-NEXT:        arith.subf
// CHECK-NEXT:        memref.load %b[
// CHECK:             arith.subf
// CHECK-NEXT:        memref.load %b[
// CHECK:             arith.subf
// CHECK-NEXT:        memref.load %b[
// CHECK:             arith.subf
// CHECK-NEXT:        memref.store
// CHECK-NEXT:        array.yield
// CHECK:         array.loop %k
// CHECK:           array.loop %j
// CHECK:             memref.load %c[
// CHECK:             memref.store
func.func @rows_that_share_what_they_update(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%k] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %z : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows of their own: there is nothing to share.
// CHECK-LABEL: @kept_when_iterations_share_nothing
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_iterations_share_nothing(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = arith.mulf %x, %x : f64
      memref.store %y, %b[%k, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Row k + 1 is read where row k has stored it one column ahead, which the jammed loop has not done yet.
// CHECK-LABEL: @kept_when_a_row_reads_what_the_one_before_stores_ahead
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_a_row_reads_what_the_one_before_stores_ahead(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %trips_1 = array.loop %j to %m do {
      %j1 = arith.addi %j, %c1 : index
      %x = memref.load %b[%k, %j1] : memref<?x?xf64>
      %y = memref.load %v[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      memref.store %z, %b[%k1, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// One column behind, it has.
// CHECK-LABEL: @rows_that_read_what_has_been_stored
// CHECK:         arith.floordivsi
func.func @rows_that_read_what_has_been_stored(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %trips_1 = array.loop %j to %m do {
      %j1 = arith.addi %j, %c1 : index
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      memref.store %z, %b[%k1, %j1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The rows of v may be those of c.
// CHECK-LABEL: @kept_when_arguments_may_overlap
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_arguments_may_overlap(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) attributes {overlaps = [[0, 2]]} {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%k] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %z : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Four sums at once, each in its own order.
// CHECK-LABEL: @ordered_sums_side_by_side
// CHECK:         arith.floordivsi
func.func @ordered_sums_side_by_side(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%k] : memref<?xf64>
      %sum = arith.addf %old, %z : f64
      memref.store %sum, %c[%k] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A short sum runs while the one before it ends.
// CHECK-LABEL: @kept_when_ordered_sums_differ_in_length
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_ordered_sums_differ_in_length(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %k do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%k] : memref<?xf64>
      %sum = arith.addf %old, %z : f64
      memref.store %sum, %c[%k] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What is loaded is little beside an exponential.
// CHECK-LABEL: @kept_when_an_iteration_is_dear
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_an_iteration_is_dear(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%k] : memref<?xf64>
      %z = math.exp %x : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %z : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Elimination: what four rows do to the columns between them goes first, with their divisions, the rest is one loop.
// CHECK-LABEL: @triangles_have_ragged_ends_ahead
// CHECK:         array.loop %i to %n
// CHECK:           array.loop %k to
// CHECK:             array.loop %k
// CHECK:               arith.divf
// CHECK:               memref.store
// CHECK:               array.loop %j
// CHECK:                 memref.store
// CHECK:             array.loop %j
// CHECK:               arith.subf
// CHECK:               arith.subf
// CHECK:               arith.subf
// CHECK:               arith.subf
// CHECK-NEXT:          memref.store
// CHECK:           array.loop %k
// CHECK:             arith.divf
func.func @triangles_have_ragged_ends_ahead(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips_2 = array.loop %i to %n do {
    %trips = array.loop %k to %i do {
      %k1 = arith.addi %k, %c1 : index
      %count = arith.subi %i, %k1 : index
      %p = memref.load %b[%k, %k] : memref<?x?xf64>
      %q = memref.load %b[%i, %k] : memref<?x?xf64>
      %r = arith.divf %q, %p : f64
      memref.store %r, %b[%i, %k] : memref<?x?xf64>
      %trips_1 = array.loop %j to %count do {
        %j1 = arith.addi %k1, %j : index
        %x = memref.load %b[%k, %j1] : memref<?x?xf64>
        %y = memref.load %b[%i, %k] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %b[%i, %j1] : memref<?x?xf64>
        %sum = arith.subf %old, %z : f64
        memref.store %sum, %b[%i, %j1] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The row below is divided by what this one has not stored in all columns yet.
// CHECK-LABEL: @kept_when_what_stands_before_needs_the_whole_row
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_what_stands_before_needs_the_whole_row(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %last = arith.subi %m, %c1 : index
    %p = memref.load %c[%last] : memref<?xf64>
    memref.store %p, %v[%k] : memref<?xf64>
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%k] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %z : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows that grow: what they have in common comes first, the ends after it.
// CHECK-LABEL: @triangles_have_ragged_ends_behind
// CHECK:         array.loop %k to
// CHECK:           array.loop %j to
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:           array.loop %k
// CHECK:             array.loop %j
// CHECK:               arith.addf
// CHECK:         array.loop %k
func.func @triangles_have_ragged_ends_behind(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %k do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %y = memref.load %v[%k] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %z {ad.adjoint} : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Backwards over a triangle, as the adjoint of an elimination goes: the last iterations come first, for they
// read no element that one of the four rows makes.
// CHECK-LABEL: @adjoints_of_triangles_come_to_the_diagonal_last
// CHECK:         array.loop %k to
// CHECK:           array.loop %p to
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:             arith.addf
// CHECK:           array.loop %k
// CHECK:             array.loop %p
// CHECK:               arith.addf
// CHECK:             arith.divf
// CHECK:         array.loop %k
// CHECK:           array.loop %p
// CHECK:           arith.divf
func.func @adjoints_of_triangles_come_to_the_diagonal_last(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %x = memref.load %b[%row, %j] : memref<?x?xf64>
      %y = memref.load %c[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%row] : memref<?xf64>
      %sum = arith.addf %old, %z {ad.adjoint} : f64
      memref.store %sum, %c[%row] : memref<?xf64>
      array.yield
    }
    %d = memref.load %b[%row, %row] : memref<?x?xf64>
    %s = memref.load %c[%row] : memref<?xf64>
    %q = arith.divf %s, %d : f64
    memref.store %q, %c[%row] : memref<?xf64>
    array.yield
  }
  func.return
}

// Each iteration reads what the row before has made.
// CHECK-LABEL: @kept_when_the_last_iterations_need_the_row_before
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_the_last_iterations_need_the_row_before(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %x = memref.load %b[%row, %j] : memref<?x?xf64>
      %y = memref.load %c[%j] : memref<?xf64>
      %f = memref.load %c[%first] : memref<?xf64>
      %g = arith.mulf %x, %f : f64
      %z = arith.mulf %g, %y : f64
      %old = memref.load %c[%row] : memref<?xf64>
      %sum = arith.addf %old, %z {ad.adjoint} : f64
      memref.store %sum, %c[%row] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What stands before the inner loop reads the row before.
// CHECK-LABEL: @kept_when_what_stands_before_reads_the_row_before
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_what_stands_before_reads_the_row_before(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %f = memref.load %c[%first] : memref<?xf64>
    memref.store %f, %v[%row] : memref<?xf64>
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %x = memref.load %b[%row, %j] : memref<?x?xf64>
      %y = memref.load %c[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%row] : memref<?xf64>
      %sum = arith.addf %old, %z {ad.adjoint} : f64
      memref.store %sum, %c[%row] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Iterations of one row that depend on each other keep their order.
// CHECK-LABEL: @kept_when_a_row_goes_on_from_element_to_element
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_a_row_goes_on_from_element_to_element(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %before = arith.subi %j, %c1 : index
      %x = memref.load %b[%row, %before] : memref<?x?xf64>
      %y = memref.load %c[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      memref.store %z, %b[%row, %j] : memref<?x?xf64>
      array.yield
    }
    %end = memref.load %b[%row, %last] : memref<?x?xf64>
    memref.store %end, %c[%row] : memref<?xf64>
    array.yield
  }
  func.return
}

// A row reads what the one before has stored one column further on, which common iterations come to later.
// CHECK-LABEL: @kept_when_a_row_reads_further_on_what_the_one_before_stores
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_a_row_reads_further_on_what_the_one_before_stores(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %right = arith.addi %j, %c1 : index
      %x = memref.load %b[%first, %right] : memref<?x?xf64>
      %y = memref.load %c[%j] : memref<?xf64>
      %z = arith.mulf %x, %y : f64
      memref.store %z, %b[%row, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What stands after the inner loop is for the next row, all of it.
// CHECK-LABEL: @kept_when_the_next_row_reads_what_stands_after
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_the_next_row_reads_what_stands_after(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %row = arith.subi %last, %k : index
    %first = arith.subi %n, %k : index
    %trips_1 = array.loop %p to %k do {
      %j = arith.addi %first, %p : index
      %y = memref.load %c[%j] : memref<?xf64>
      %f = memref.load %v[%c0] : memref<?xf64>
      %z = arith.mulf %f, %y : f64
      memref.store %z, %b[%row, %j] : memref<?x?xf64>
      array.yield
    }
    %s = memref.load %b[%row, %row] : memref<?x?xf64>
    memref.store %s, %v[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// What is loaded ahead of the inner loop and used behind it is loaded there: the inner loop changes none of it.
// CHECK-LABEL: @loaded_ahead_and_used_behind
// CHECK:         arith.floordivsi
// CHECK:           array.loop %j to
// CHECK:             memref.store {{.*}}, %c[
// CHECK:           array.loop
// CHECK:             memref.load %v[
// CHECK:             memref.store {{.*}}, %w[
// CHECK:         } {small}
func.func @loaded_ahead_and_used_behind(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %y = memref.load %v[%k] : memref<?xf64>
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %z = arith.mulf %x, %y : f64
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %z : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    %s = arith.addf %y, %y : f64
    memref.store %s, %w[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// Behind the inner loop it would be another value.
// CHECK-LABEL: @kept_when_the_inner_loop_changes_what_was_loaded
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_the_inner_loop_changes_what_was_loaded(%c : memref<?xf64>, %b : memref<?x?xf64>, %w : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %y = memref.load %c[%k] : memref<?xf64>
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    memref.store %y, %w[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// Nor may additions, whose order is free, come in between.
// CHECK-LABEL: @kept_when_the_inner_loop_adds_to_what_was_loaded
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_the_inner_loop_adds_to_what_was_loaded(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %k to %n do {
    %y = memref.load %c[%k] : memref<?xf64>
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.addf %old, %x {ad.adjoint} : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    %more = arith.addf %y, %y {ad.adjoint} : f64
    memref.store %more, %c[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// What stands ahead of the inner loop has stored over it.
// CHECK-LABEL: @kept_when_a_store_ahead_changes_what_was_loaded
// CHECK-NOT:     arith.floordivsi
// CHECK:         func.return
func.func @kept_when_a_store_ahead_changes_what_was_loaded(%c : memref<?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %n : index, %m : index) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %k to %n do {
    %y = memref.load %v[%k] : memref<?xf64>
    memref.store %zero, %v[%k] : memref<?xf64>
    %trips_1 = array.loop %j to %m do {
      %x = memref.load %b[%k, %j] : memref<?x?xf64>
      %old = memref.load %c[%j] : memref<?xf64>
      %sum = arith.subf %old, %x : f64
      memref.store %sum, %c[%j] : memref<?xf64>
      array.yield
    }
    memref.store %y, %w[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// The adjoint of a rank-1 update: all rows add to one row, so four of them share it.
// CHECK-LABEL: @rows_of_a_map_that_add_to_one_row
// CHECK-NOT:     array.map
// CHECK:         arith.floordivsi %n
// CHECK:           array.loop
// CHECK:             array.loop
// CHECK-COUNT-4:       memref.load %bar[
// CHECK:               memref.store {{.*}}, %row[
// CHECK-NOT:           memref.store {{.*}}, %row[
// CHECK:               array.yield
// CHECK:         func.return
func.func @rows_of_a_map_that_add_to_one_row(%bar : memref<?x?xf64>, %a : memref<?xf64>, %b : memref<?xf64>, %row : memref<?xf64>, %column : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = array.view %a[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  %side = array.view %b[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  %to = array.view %row[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  %beside = array.view %column[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%bar, %top, %side : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[1, 0]>>) outs(%to, %beside : memref<?x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[1, 0]>>) kinds ["add", "add"] {
  ^bb0(%x : f64, %p : f64, %q : f64):
    %y = arith.mulf %x, %q {ad.adjoint} : f64
    %z = arith.mulf %x, %p {ad.adjoint} : f64
    array.yield %y, %z : f64, f64
  }
  func.return
}

// Loops keep the order of the additions of the program, and maps need not: its own maps stay.
// CHECK-LABEL: @a_map_of_the_program_stays
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_of_the_program_stays(%bar : memref<?x?xf64>, %row : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %to = array.view %row[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%bar : memref<?x?xf64>) outs(%to : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  func.return
}

// Columns that add to one column share nothing along a row.
// CHECK-LABEL: @a_map_that_adds_to_a_column_stays
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_that_adds_to_a_column_stays(%bar : memref<?x?xf64>, %column : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %to = array.view %column[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%bar : memref<?x?xf64>) outs(%to : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x {ad.adjoint} : f64
    array.yield %y : f64
  }
  func.return
}

// A row may read further on what the row before it has added.
// CHECK-LABEL: @a_map_that_may_read_the_row_further_on_stays
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_that_may_read_the_row_further_on_stays(%bar : memref<?x?xf64>, %k : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %next = array.view %bar[%c0, %c1] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %to = array.view %bar[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%next : memref<?x?xf64, strided<[?, 1]>>) outs(%to : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x {ad.adjoint} : f64
    array.yield %y : f64
  }
  func.return
}

// Two matrices and a row: little of it is shared.
// CHECK-LABEL: @a_map_that_shares_little_stays
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_that_shares_little_stays(%bar : memref<?x?xf64>, %x : memref<?x?xf64>, %z : memref<?x?xf64>, %row : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %to = array.view %row[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%bar, %x : memref<?x?xf64>, memref<?x?xf64>) outs(%z, %to : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) kinds ["add", "add"] {
  ^bb0(%p : f64, %q : f64):
    %y = arith.mulf %p, %q {ad.adjoint} : f64
    array.yield %y, %y : f64, f64
  }
  func.return
}

// What lies apart along a row is better turned first.
// CHECK-LABEL: @a_map_over_columns_stays
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_over_columns_stays(%bar : memref<?x?xf64>, %row : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turned = array.view %bar[%c0, %c0] dims [1, 0] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  %to = array.view %row[%c0] dims [-1, 0] extents(%n, %m) steps(%c0, %c1) : memref<?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%turned : memref<?x?xf64, strided<[1, ?]>>) outs(%to : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x {ad.adjoint} : f64
    array.yield %y : f64
  }
  func.return
}

// Each iteration adds a row of `b` to one row: four are added at once, in their order.
// CHECK-LABEL: @a_map_that_updates_one_row_is_an_inner_loop
// CHECK:         arith.floordivsi %n
// CHECK:         array.loop
// CHECK:           array.loop
// CHECK:             %[[OLD:.*]] = memref.load %row[
// CHECK:             %[[ONE:.*]] = arith.addf %[[OLD]],
// CHECK:             %[[TWO:.*]] = arith.addf %[[ONE]],
// CHECK:             %[[THREE:.*]] = arith.addf %[[TWO]],
// CHECK:             %[[FOUR:.*]] = arith.addf %[[THREE]],
// CHECK-NEXT:        memref.store %[[FOUR]], %row[
// CHECK-NEXT:        array.yield
func.func @a_map_that_updates_one_row_is_an_inner_loop(%row : memref<?xf64>, %a : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %f = memref.load %a[%k] : memref<?xf64>
    %v = array.view %b[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row, %v : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %f, %y : f64
      %s = arith.addf %x, %p : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_map_stays_where_the_factor_is_in_the_row
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_stays_where_the_factor_is_in_the_row(%row : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %f = memref.load %row[%k] : memref<?xf64>
    %v = array.view %b[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row, %v : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %f, %y : f64
      %s = arith.addf %x, %p : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_map_stays_where_what_it_adds_may_share_memory_with_the_row
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_stays_where_what_it_adds_may_share_memory_with_the_row(%row : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %v = array.view %b[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row, %v : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %s = arith.addf %x, %y : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_map_stays_where_each_iteration_has_a_row
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_stays_where_each_iteration_has_a_row(%c : memref<?x?xf64>, %b : memref<?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %v = array.view %c[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%v, %b : memref<?xf64, strided<[1]>>, memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %s = arith.addf %x, %y : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_map_stays_where_an_iteration_may_raise
// CHECK:         array.map
// CHECK:         func.return
func.func @a_map_stays_where_an_iteration_may_raise(%row : memref<?xf64>, %a : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %k to %n do {
    %f = memref.load %a[%k] : memref<?xf64>
    %bad = arith.cmpf oeq, %f, %zero : f64
    array.raise_if %bad, "ZeroDivisionError", "float division by zero"
    %v = array.view %b[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%row, %v : memref<?xf64>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %f, %y : f64
      %s = arith.addf %x, %p : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}
