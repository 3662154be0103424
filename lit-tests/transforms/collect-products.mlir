// RUN: mutad-opt %s -p collect-products | filecheck %s
// RUN: mutad-opt %s -p 'collect-products{fastmath=true}' | filecheck %s --check-prefix FAST

// Rows of one matrix times another: one product of matrices.
// CHECK-LABEL: @rows_are_one_product
// CHECK-NOT:     -> memref<1x?xf64
// CHECK:         array.matmul {{.*}}, %b into
func.func @rows_are_one_product(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %k : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %x = array.view %a[%i, %c0] dims [-1, 1] extents(%c1, %k) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    %y = array.view %c[%i, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %x, %b into %y : memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>, memref<1x?xf64, strided<[0, 1]>>
    array.yield
  }
  func.return
}

// Outer products are added up; what changes in each iteration is kept, a row of the block's matrix.
// CHECK-LABEL: @outer_products_are_kept_and_added_at_once
// CHECK:         %column_kept = array.alloc
// CHECK:         array.loop %t to
// CHECK:           array.loop %t{{.*}} to
// CHECK-NOT:         array.matmul
// CHECK:             array.map({{.*}}) ins({{.*}}) outs
// CHECK:           array.matmul {{.*}} into {{.*}} accumulate {in_order}
func.func @outer_products_are_kept_and_added_at_once(%w : memref<?x?xf64>, %g : memref<?xf64>, %x : memref<?x?xf64>, %n : index, %m : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f64
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%g : memref<?xf64>) outs(%g : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %f = arith.mulf %e, %two : f64
      array.yield %f : f64
    }
    %column = array.view %g[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    %row = array.view %x[%t, %c0] dims [-1, 1] extents(%c1, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    %all = array.view %w[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.matmul %column, %row into %all accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[?, 1]>>
    array.yield
  }
  func.return
}

// The sum is read in each iteration.
// CHECK-LABEL: @kept_when_the_loop_reads_what_is_added_to
// CHECK:         array.loop %t to %steps
// CHECK:           array.matmul {{.*}} accumulate
// CHECK-NOT:     array.loop
func.func @kept_when_the_loop_reads_what_is_added_to(%w : memref<?x?xf64>, %g : memref<?x1xf64>, %s : memref<?xf64>, %x : memref<?x?xf64>, %m : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %t to %steps do {
    %row = array.view %x[%t, %c0] dims [-1, 1] extents(%c1, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %g, %row into %w accumulate : memref<?x1xf64>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
    %e = memref.load %w[%c0, %c1] : memref<?x?xf64>
    memref.store %e, %s[%t] : memref<?xf64>
    array.yield
  }
  func.return
}

// An iteration multiplies what the one before has made.
// CHECK-LABEL: @kept_when_a_step_needs_the_one_before
// CHECK:         array.loop %t to %steps
// CHECK:           array.matmul %w, {{.*}} into
func.func @kept_when_a_step_needs_the_one_before(%w : memref<?x?xf64>, %h : memref<?x?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %t to %steps do {
    %next = arith.addi %t, %c1 : index
    %x = array.view %h[%t, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    %y = array.view %h[%next, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    array.matmul %w, %x into %y : memref<?x?xf64>, memref<?x1xf64, strided<[1, 0]>>, memref<?x1xf64, strided<[1, 0]>>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_matrix_changes
// CHECK:         array.loop %i to %n
// CHECK:           array.matmul %x, %b into
// CHECK:           memref.store
func.func @kept_when_the_matrix_changes(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %k : index, %e : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %x = array.view %a[%i, %c0] dims [-1, 1] extents(%c1, %k) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    %y = array.view %c[%i, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %x, %b into %y : memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>, memref<1x?xf64, strided<[0, 1]>>
    memref.store %e, %b[%i, %i] : memref<?x?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_an_iteration_may_raise
// CHECK:         array.loop %i to %n
// CHECK:           array.matmul
// CHECK-NOT:     array.matmul
func.func @kept_when_an_iteration_may_raise(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %k : index, %bad : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    array.raise_if %bad, "ValueError", "bad"
    %x = array.view %a[%i, %c0] dims [-1, 1] extents(%c1, %k) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    %y = array.view %c[%i, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %x, %b into %y : memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>, memref<1x?xf64, strided<[0, 1]>>
    array.yield
  }
  func.return
}

// A triangle: rows beyond the block are one product, those at the diagonal stay in the loop.
// CHECK-LABEL: @triangles_are_blocks_and_what_is_at_the_diagonal
// CHECK:         array.loop %i to
// CHECK:           array.matmul {{.*}} accumulate
// CHECK:           array.loop %i{{.*}} to
// CHECK:             array.matmul {{.*}} accumulate
func.func @triangles_are_blocks_and_what_is_at_the_diagonal(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %g : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %next = arith.addi %i, %c1 : index
    %rest = arith.subi %n, %next : index
    %left = arith.maxsi %rest, %c0 : index
    %x = array.view %a[%c0, %i] dims [0, -1] extents(%m, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[?, 0]>>
    %row = array.view %g[%i, %next] dims [-1, 1] extents(%c1, %left) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    %y = array.view %c[%c0, %next] dims [0, 1] extents(%m, %left) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.matmul %x, %row into %y accumulate : memref<?x1xf64, strided<[?, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[?, 1]>>
    array.yield
  }
  func.return
}

// The adjoint of `c += a @ b` in loops: what is added to `b_shadow` in each row are outer products.
// CHECK-LABEL: @nests_of_the_adjoint_are_products
// CHECK-NOT:     array.loop
// CHECK:         array.matmul {{.*}} accumulate {in_order}
// CHECK-NOT:     memref.store
func.func @nests_of_the_adjoint_are_products(%a : memref<?x?xf64>, %g : memref<?x?xf64>, %b_shadow : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      %trips_2 = array.loop %j to %m do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %g[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %b_shadow[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %b_shadow[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Each element takes its terms in the program's order; under `fastmath` in any.
// CHECK-LABEL: @kept_when_the_program_adds
// CHECK-NOT:     array.matmul
// FAST-LABEL: @kept_when_the_program_adds
// FAST:         array.matmul
func.func @kept_when_the_program_adds(%a : memref<?x?xf64>, %g : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      %trips_2 = array.loop %j to %m do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %g[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y : f64
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_factor_is_added_to
// CHECK-NOT:     array.matmul
func.func @kept_when_a_factor_is_added_to(%a : memref<?x?xf64>, %g : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      %trips_2 = array.loop %j to %m do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %g[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %g[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %g[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A sum that goes through a cell is the product of a matrix with a vector.
// CHECK-LABEL: @sums_in_a_cell_are_products
// CHECK-NOT:     array.loop
// CHECK:         array.matmul {{.*}} accumulate
func.func @sums_in_a_cell_are_products(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %start = arith.constant 0.0 : f64
  %t = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      memref.store %start, %t[] : memref<f64>
      %trips_2 = array.loop %j to %m do {
        %e = memref.load %a[%j, %k] : memref<?x?xf64>
        %f = memref.load %x[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %e, %f {ad.adjoint} : f64
        %old = memref.load %t[] : memref<f64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %t[] : memref<f64>
        array.yield
      }
      %total = memref.load %t[] : memref<f64>
      %before = memref.load %c[%i, %k] : memref<?x?xf64>
      %after = arith.addf %before, %total {ad.adjoint} : f64
      memref.store %after, %c[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_sum_begins_with_a_number
// CHECK-NOT:     array.matmul
func.func @kept_when_the_sum_begins_with_a_number(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %start = arith.constant 10.0 : f64
  %t = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      memref.store %start, %t[] : memref<f64>
      %trips_2 = array.loop %j to %m do {
        %e = memref.load %a[%j, %k] : memref<?x?xf64>
        %f = memref.load %x[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %e, %f {ad.adjoint} : f64
        %old = memref.load %t[] : memref<f64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %t[] : memref<f64>
        array.yield
      }
      %total = memref.load %t[] : memref<f64>
      %before = memref.load %c[%i, %k] : memref<?x?xf64>
      %after = arith.addf %before, %total {ad.adjoint} : f64
      memref.store %after, %c[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// (t + 1) t is no multiple of t.
// CHECK-LABEL: @kept_when_the_sum_is_read_twice
// CHECK-NOT:     array.matmul
func.func @kept_when_the_sum_is_read_twice(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %start = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %t = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      memref.store %start, %t[] : memref<f64>
      %trips_2 = array.loop %j to %m do {
        %e = memref.load %a[%j, %k] : memref<?x?xf64>
        %f = memref.load %x[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %e, %f {ad.adjoint} : f64
        %old = memref.load %t[] : memref<f64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %t[] : memref<f64>
        array.yield
      }
      %total = memref.load %t[] : memref<f64>
      %more = arith.addf %total, %one {ad.adjoint} : f64
      %both = arith.mulf %more, %total {ad.adjoint} : f64
      %before = memref.load %c[%i, %k] : memref<?x?xf64>
      %after = arith.addf %before, %both {ad.adjoint} : f64
      memref.store %after, %c[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The product of two sums is not the sum of the products.
// CHECK-LABEL: @kept_when_two_sums_are_multiplied
// CHECK-NOT:     array.matmul
func.func @kept_when_two_sums_are_multiplied(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %start = arith.constant 0.0 : f64
  %t = memref.alloca() : memref<f64>
  %u = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      memref.store %start, %t[] : memref<f64>
      memref.store %start, %u[] : memref<f64>
      %trips_2 = array.loop %j to %m do {
        %e = memref.load %a[%j, %k] : memref<?x?xf64>
        %old = memref.load %t[] : memref<f64>
        %sum = arith.addf %old, %e {ad.adjoint} : f64
        memref.store %sum, %t[] : memref<f64>
        %f = memref.load %x[%i, %j] : memref<?x?xf64>
        %old_1 = memref.load %u[] : memref<f64>
        %sum_1 = arith.addf %old_1, %f {ad.adjoint} : f64
        memref.store %sum_1, %u[] : memref<f64>
        array.yield
      }
      %total = memref.load %t[] : memref<f64>
      %total_1 = memref.load %u[] : memref<f64>
      %both = arith.mulf %total, %total_1 {ad.adjoint} : f64
      %before = memref.load %c[%i, %k] : memref<?x?xf64>
      %after = arith.addf %before, %both {ad.adjoint} : f64
      memref.store %after, %c[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// What is computed for each k, and each j, is read only where the nest would read it.
// CHECK-LABEL: @vectors_are_computed_where_the_nest_runs
// CHECK:         %[[ANY:.*]] = arith.cmpi sgt
// CHECK:         %[[TIMES:.*]] = arith.select %[[ANY]]
// CHECK:         array.loop %{{.*}} to %[[TIMES]] do
// CHECK:           memref.load %x
// CHECK:         array.matmul
func.func @vectors_are_computed_where_the_nest_runs(%x : memref<?x?xf64>, %g : memref<?x?xf64>, %w : memref<?x?xf64>, %n : index, %p : index, %m : index) {
  %two = arith.constant 2.0 : f64
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %p do {
      %trips_2 = array.loop %j to %m do {
        %e = memref.load %x[%i, %k] : memref<?x?xf64>
        %f = memref.load %g[%i, %j] : memref<?x?xf64>
        %more = arith.addf %e, %two : f64
        %z = arith.mulf %more, %f {ad.adjoint} : f64
        %old = memref.load %w[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %w[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Two products of an iteration add to one matrix, one of them to its transpose: their vectors alternate.
// CHECK-LABEL: @two_products_that_add_to_one_matrix_are_one
// CHECK:         %[[TWICE:.*]] = arith.muli
// CHECK-NEXT:    %column_kept = array.alloc(%[[TWICE]], {{.*}})
// CHECK:         array.loop %t to
// CHECK:           array.loop %t{{.*}} to
// CHECK-NOT:         array.matmul
// CHECK:             array.yield
// CHECK:           array.matmul {{.*}} into %all accumulate {in_order}
// CHECK-NOT:     array.matmul
// CHECK:         func.return
func.func @two_products_that_add_to_one_matrix_are_one(%w : memref<?x?xf64>, %x : memref<?x?xf64>, %y : memref<?x?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %all = array.view %w[%c0, %c0] dims [0, 1] extents(%n, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %turned = array.view %w[%c0, %c0] dims [1, 0] extents(%n, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  %trips = array.loop %t to %steps do {
    %column = array.view %y[%t, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    %row = array.view %x[%t, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %column, %row into %all accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[?, 1]>>
    array.matmul %column, %row into %turned accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[1, ?]>>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @two_products_stay_when_the_loop_reads_the_matrix
// CHECK:         array.loop %t to %steps
// CHECK:           array.matmul %column, %row into %w accumulate :
// CHECK:           array.matmul %column, %row into %turned accumulate :
// CHECK-NOT:     array.matmul
// CHECK:         func.return
func.func @two_products_stay_when_the_loop_reads_the_matrix(%w : memref<?x?xf64>, %x : memref<?x?xf64>, %s : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turned = array.view %w[%c0, %c0] dims [1, 0] extents(%n, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  %trips = array.loop %t to %steps do {
    %column = array.view %x[%t, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    %row = array.view %x[%t, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %column, %row into %w accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
    array.matmul %column, %row into %turned accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64, strided<[1, ?]>>
    %e = memref.load %w[%c0, %c1] : memref<?x?xf64>
    memref.store %e, %s[%t] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @products_that_add_to_two_matrices_are_two
// CHECK:         array.matmul {{.*}} into %w{{.*}} accumulate {in_order}
// CHECK:         array.matmul {{.*}} into %v{{.*}} accumulate {in_order}
// CHECK-NOT:     array.matmul
// CHECK:         func.return
func.func @products_that_add_to_two_matrices_are_two(%w : memref<?x?xf64>, %v : memref<?x?xf64>, %x : memref<?x?xf64>, %n : index, %steps : index) attributes {overlaps = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %t to %steps do {
    %column = array.view %x[%t, %c0] dims [1, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[1, 0]>>
    %row = array.view %x[%t, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
    array.matmul %column, %row into %w accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
    array.matmul %column, %row into %v accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
    array.yield
  }
  func.return
}
