// RUN: mutad-opt %s -p gather-sums | filecheck %s

// Three rows and eight columns are in registers, each row twice, in the loop over i, which is in blocks; then a
// row that is left over. The nest as it was is left with the last columns.
// CHECK-LABEL: @a_sum_of_outer_products
// CHECK:         array.loop %i to
// CHECK:           array.loop %j to
// CHECK:             array.loop %k to
// CHECK-COUNT-6:       memref.alloca() : memref<vector<8xf64>>
// CHECK:               array.loop %i_1 to
// CHECK:                 vector.load %b[
// CHECK-COUNT-3:         memref.store {{.*}} : memref<vector<8xf64>>
// CHECK:                 vector.load %b[
// CHECK-COUNT-3:         memref.store {{.*}} : memref<vector<8xf64>>
// CHECK-NEXT:            array.yield
// CHECK:               array.loop
// CHECK:                 vector.load %b[
// CHECK-COUNT-3:       vector.store {{.*}}, %c[
// CHECK:             array.loop
// CHECK-COUNT-4:       memref.alloca() : memref<vector<8xf64>>
// CHECK:               vector.store {{.*}}, %c[{{.*}}, vector<8xf64>
// CHECK-NOT:     vector
// CHECK:         memref.store {{.*}}, %c[
func.func @a_sum_of_outer_products(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The adjoint of a convolution: an element of the image gets its terms from a window, and has a sum in each
// lane; those of the kernel get theirs from the whole image. Maps are loops.
// CHECK-LABEL: @both_sums_of_a_convolution
// CHECK:         array.loop %i to
// CHECK:           %[[beyond:.*]] = arith.subi %i, %{{.*}}
// CHECK:           %[[first:.*]] = arith.maxsi %[[beyond]], %{{.*}}
// CHECK:           arith.minsi
// CHECK:             array.loop
// CHECK:               array.loop %a to
// CHECK:                 %[[place:.*]] = arith.addi %[[first]], %a
// CHECK:                 %[[other:.*]] = arith.subi %i, %[[place]]
// CHECK:                 vector.load %o[%[[other]], %{{.*}}]
// CHECK:                 vector.load %w[%[[place]], %{{.*}}]
// CHECK:           vector.extract
// CHECK:           memref.store {{.*}}, %x_bar[%i]
// CHECK:         array.loop %i_1 to
// CHECK:           array.loop %a
// CHECK:             memref.load %x[
// CHECK:             vector.store {{.*}}, %w_bar[
func.func @both_sums_of_a_convolution(%x : memref<?xf64>, %w : memref<?x?xf64>, %o : memref<?x?xf64>, %x_bar : memref<?xf64>, %w_bar : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %row = array.view %o[%i, %c0] dims [1] extents(%l) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %a to %m do {
      %ia = arith.addi %i, %a : index
      %w_row = array.view %w[%a, %c0] dims [1] extents(%l) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %one = array.view %x[%ia] dims [-1] extents(%l) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[0]>>
      %one_bar = array.view %x_bar[%ia] dims [-1] extents(%l) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[0]>>
      %row_bar = array.view %w_bar[%a, %c0] dims [1] extents(%l) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%l) ins(%row, %w_row, %one : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[0]>>) outs(%one_bar, %row_bar : memref<?xf64, strided<[0]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%o_1 : f64, %w_1 : f64, %x_1 : f64):
        %p = arith.mulf %o_1, %w_1 {ad.adjoint} : f64
        %q = arith.mulf %o_1, %x_1 {ad.adjoint} : f64
        array.yield %p, %q : f64, f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The counters that are added up may go down, or one up and one down.
// CHECK-LABEL: @counters_against_each_other
// CHECK:         array.loop
// CHECK:           arith.maxsi
// CHECK:         vector.store {{.*}}, %c[
func.func @counters_against_each_other(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %im = arith.addi %i, %m : index
    %trips_1 = array.loop %k to %m do {
      %at = arith.subi %im, %k : index
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %j] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %c[%at, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%at, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// These are the program's own additions, which keep their order.
// CHECK-LABEL: @kept_when_additions_have_an_order
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_additions_have_an_order(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
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

// A term is made of elements that change on the way.
// CHECK-LABEL: @kept_when_what_is_added_to_is_read
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_what_is_added_to_is_read(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %c[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Element (i, i + k) has one term: there is no window.
// CHECK-LABEL: @kept_when_one_counter_moves_two_axes
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_one_counter_moves_two_axes(%c : memref<?x?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %ik = arith.addi %i, %k : index
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %old = memref.load %c[%i, %ik, %j] : memref<?x?x?xf64>
        %sum = arith.addf %old, %y {ad.adjoint} : f64
        memref.store %sum, %c[%i, %ik, %j] : memref<?x?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Every other element has terms for an even i only.
// CHECK-LABEL: @kept_when_one_of_two_counters_takes_steps
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_one_of_two_counters_takes_steps(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %c2 = arith.constant 2 : index
  %trips = array.loop %i to %n do {
    %i2 = arith.muli %i, %c2 : index
    %trips_1 = array.loop %k to %m do {
      %ik = arith.addi %i2, %k : index
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %old = memref.load %c[%ik, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %y {ad.adjoint} : f64
        memref.store %sum, %c[%ik, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The innermost loop goes down the columns of b.
// CHECK-LABEL: @kept_when_a_factor_is_a_column
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_a_factor_is_a_column(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%j, %i] : memref<?x?xf64>
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %y {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows of a triangle.
// CHECK-LABEL: @kept_when_loops_differ_in_length
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_loops_differ_in_length(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %y {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A term that no arithmetic of vectors makes.
// CHECK-LABEL: @kept_when_a_term_is_chosen
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_a_term_is_chosen(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %zero : f64, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %more = arith.cmpf ogt, %y, %zero : f64
        %z = arith.select %more, %y, %zero : f64
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The loop that adds is the innermost around a row: `tile-registers` takes it.
// CHECK-LABEL: @kept_when_elements_are_summed_in_one_go
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @kept_when_elements_are_summed_in_one_go(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %m : index, %l : index) {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %m do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%k, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %c[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A step that is run again adds up as the gradient that runs none, whose sum it is, did: here that has none.
// CHECK-LABEL: @kept_in_a_step_where_the_gradient_kept_it
// CHECK-NOT:     vector
// CHECK:         func.return
func.func private @kept_in_a_step_where_the_gradient_kept_it(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) attributes {live = array<i64: 0>} {
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %k to %n do {
      %trips_2 = array.loop %j to %l do {
        %x = memref.load %a[%i, %k] : memref<?x?xf64>
        %y = memref.load %b[%i, %j] : memref<?x?xf64>
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        %old = memref.load %c[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %z {ad.adjoint} : f64
        memref.store %sum, %c[%k, %j] : memref<?x?xf64>
        array.yield
      } loc("program.py":99:5)
      array.yield
    }
    array.yield
  }
  func.return
}
