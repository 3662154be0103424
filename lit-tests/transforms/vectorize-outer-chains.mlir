// RUN: mutad-opt %s -p vectorize-outer | filecheck %s
// RUN: mutad-opt %s -p vectorize-outer --run --only lines_are_solved_side_by_side --args 'u=[[1, 2], [3, 5], [0, 1]], n=2, one=1' | filecheck %s --check-prefix SOLVED
// RUN: mutad-opt %s --run --only lines_are_solved_side_by_side --args 'u=[[1, 2], [3, 5], [0, 1]], n=2, one=1' | filecheck %s --check-prefix SOLVED

// `q` gets an axis for the points; what the last point leaves goes back; `p` is the same for all points, and is
// computed once a block.
// CHECK-LABEL: @lines_are_solved_side_by_side
// CHECK:         array.loop %block to
// CHECK:           %q_1 = array.alloc(%rows, %points) : memref<?x?xf64>
// CHECK:           array.loop %k to %m do {
// CHECK:             memref.store %{{.*}}, %p[
// CHECK-NEXT:        array.loop %[[p:.*]] to %points do {
// CHECK:               arith.divf
// CHECK:               memref.store %{{.*}}, %q_1[%{{.*}}, %[[p]]]
// CHECK:             %[[last:.*]] = memref.load %q_1[
// CHECK-NEXT:        memref.store %[[last]], %q[
// CHECK:           array.loop %k_1 to %rows do {
// CHECK:             array.loop %{{.*}} to %points do {
// CHECK:               memref.store %{{.*}}, %out[
// SOLVED: result = 58.5
func.func @lines_are_solved_side_by_side(%u : memref<?x?xf64>, %n : index, %one : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %total = memref.alloca() : memref<f64>
  memref.store %one, %total[] : memref<f64>
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %p = array.alloc(%rows) : memref<?xf64>
  memref.store %one, %p[%c0] : memref<?xf64>
  %out = array.alloc(%rows, %n) : memref<?x?xf64>
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %r = memref.load %p[%k] : memref<?xf64>
      %d = arith.addf %r, %one : f64
      memref.store %d, %p[%k1] : memref<?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %sum, %d : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    %trips_2 = array.loop %k to %rows do {
      %last = arith.subi %m, %k : index
      %at = arith.addi %last, %c0 : index
      %x = memref.load %q[%last] : memref<?xf64>
      memref.store %x, %out[%at, %i] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  %trips_3 = array.loop %k to %rows do {
    %trips_4 = array.loop %i to %n do {
      %v = memref.load %out[%k, %i] : memref<?x?xf64>
      %old = memref.load %total[] : memref<f64>
      %more = arith.mulf %old, %v : f64
      %new = arith.addf %more, %v : f64
      memref.store %new, %total[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %sum = memref.load %total[] : memref<f64>
  %left = memref.load %q[%c1] : memref<?xf64>
  %result = arith.addf %sum, %left : f64
  func.return %result : f64
}

// No point stores the first element: each block begins with it.
// CHECK-LABEL: @first_elements_from_before_are_copied_in
// CHECK:         array.loop %block to
// CHECK:           %q_1 = array.alloc(%rows, %points)
// CHECK:           array.loop %{{.*}} to %rows do {
// CHECK-NEXT:        array.loop %[[p:.*]] to %points do {
// CHECK-NEXT:          %[[x:.*]] = memref.load %q[
// CHECK-NEXT:          memref.store %[[x]], %q_1[%{{.*}}, %[[p]]]
func.func @first_elements_from_before_are_copied_in(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Lines that lie by rows: elements of eight rows side by side are worth it where each waits for a division.
// CHECK-LABEL: @rows_that_wait_for_a_division
// CHECK:         array.floordiv
// CHECK:         array.loop %block to
func.func @rows_that_wait_for_a_division(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%i, %c0] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%i, %k1] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// An addition is no slower than to reach for the rows.
// CHECK-LABEL: @kept_where_rows_wait_for_additions
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_rows_wait_for_additions(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%i, %c0] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%i, %k1] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %root = math.sqrt %a : f64
      %sum = arith.addf %a, %before : f64
      %x = arith.addf %a, %sum : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// `q[k + 1]` is what the point before has stored.
// CHECK-LABEL: @kept_where_a_point_reads_what_the_one_before_has_left
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_a_point_reads_what_the_one_before_has_left(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k1] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The chain begins with what the point before has stored behind its own.
// CHECK-LABEL: @kept_where_the_first_element_is_stored_later
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_the_first_element_is_stored_later(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// Every other element is stored.
// CHECK-LABEL: @kept_where_the_chain_has_gaps
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_the_chain_has_gaps(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %k2 = arith.addi %k1, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k2] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The loop back begins one element further.
// CHECK-LABEL: @kept_where_more_is_read_than_stored
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_more_is_read_than_stored(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %all = memref.dim %u, %c1 : memref<?x?xf64>
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      memref.store %x, %q[%k1] : memref<?xf64>
      array.yield
    }
    %trips_2 = array.loop %k to %all do {
      %last = arith.subi %m, %k : index
      %at = arith.addi %last, %c0 : index
      %x = memref.load %q[%k] : memref<?xf64>
      memref.store %x, %v[%at, %i] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What a branch stores may not be there.
// CHECK-LABEL: @kept_where_a_branch_stores
// CHECK-NOT:     %block
// CHECK:         func.return
func.func @kept_where_a_branch_stores(%u : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %u, %c0 : memref<?x?xf64>
  %q = array.alloc(%rows) : memref<?xf64>
  %m = arith.subi %rows, %c1 : index
  %trips = array.loop %i to %n do {
    %start = memref.load %u[%c0, %i] : memref<?x?xf64>
    memref.store %start, %q[%c0] : memref<?xf64>
    %trips_1 = array.loop %k to %m do {
      %k1 = arith.addi %k, %c1 : index
      %a = memref.load %u[%k1, %i] : memref<?x?xf64>
      %before = memref.load %q[%k] : memref<?xf64>
      %sum = arith.addf %a, %before : f64
      %x = arith.divf %a, %sum : f64
      %c = arith.cmpi slt, %k, %c1 : index
      scf.if %c {
        memref.store %x, %q[%k1] : memref<?xf64>
      }
      array.yield
    }
    array.yield
  }
  func.return
}
