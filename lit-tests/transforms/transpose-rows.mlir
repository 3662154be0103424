// RUN: mutad-opt %s -p transpose-rows | filecheck %s

// CHECK-LABEL: @rows_that_are_come_back_to_are_read_from_columns
// CHECK:         %[[often:.*]] = arith.cmpi sge, %n, %
// CHECK:         scf.if %[[often]] {
// CHECK:           %x_columns = array.alloc
// CHECK:           array.map{{.*}} outs(%x_columns
// CHECK:           array.loop
// CHECK-COUNT-2:     memref.load %x_columns[
// CHECK:         } else {
// CHECK-COUNT-2:     memref.load %x[
// CHECK:           } {small}
func.func @rows_that_are_come_back_to_are_read_from_columns(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @there_is_no_branch_where_it_is_known_how_often
// CHECK-NOT:     scf.if
// CHECK:         %x_columns = array.alloc
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @there_is_no_branch_where_it_is_known_how_often(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %trips = array.loop %i to %c100 do {
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows are gone through downwards: the columns begin at the last one.
// CHECK-LABEL: @what_the_adjoint_adds_goes_to_columns_from_zeros
// CHECK:         %s_columns = array.alloc
// CHECK:         array.map{{.*}} outs(%s_columns
// CHECK:           arith.constant 0.000000e+00
// CHECK:         array.loop
// CHECK:           memref.load %s[%i,
// CHECK:           memref.store %{{.*}}, %s[%i,
// CHECK:           memref.load %s_columns[
// CHECK:           memref.store %{{.*}}, %s_columns[
// CHECK:         array.view %s_columns[{{.*}}] dims [1, 0]
// CHECK:         array.map{{.*}} kinds ["add"]
func.func @what_the_adjoint_adds_goes_to_columns_from_zeros(%s : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %c100 do {
    %trips_1 = array.loop %k to %n do {
      %j = arith.subi %last, %k : index
      %g = memref.load %y[%j] : memref<?xf64>
      %p = memref.load %s[%i, %c0] : memref<?x?xf64>
      %q = arith.addf %p, %g {ad.adjoint} : f64
      memref.store %q, %s[%i, %c0] : memref<?x?xf64>
      %a = memref.load %s[%j, %c0] : memref<?x?xf64>
      %b = arith.addf %a, %g {ad.adjoint} : f64
      memref.store %b, %s[%j, %c0] : memref<?x?xf64>
      %c = memref.load %s[%j, %c1] : memref<?x?xf64>
      %d = arith.addf %c, %g {ad.adjoint} : f64
      memref.store %d, %s[%j, %c1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_programs_own_additions_would_come_in_another_order
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_the_programs_own_additions_would_come_in_another_order(%s : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %g = memref.load %y[%i] : memref<?xf64>
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %s[%j, %c0] : memref<?x?xf64>
      %b = arith.addf %a, %g : f64
      memref.store %b, %s[%j, %c0] : memref<?x?xf64>
      %c = memref.load %s[%j, %c1] : memref<?x?xf64>
      %d = arith.addf %c, %g : f64
      memref.store %d, %s[%j, %c1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_what_is_added_to_is_read_as_well
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_what_is_added_to_is_read_as_well(%s : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %g = memref.load %s[%i, %c0] : memref<?x?xf64>
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %s[%j, %c0] : memref<?x?xf64>
      %b = arith.addf %a, %g {ad.adjoint} : f64
      memref.store %b, %s[%j, %c0] : memref<?x?xf64>
      %c = memref.load %s[%j, %c1] : memref<?x?xf64>
      %d = arith.addf %c, %g {ad.adjoint} : f64
      memref.store %d, %s[%j, %c1] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_nest_stores_to_the_rows
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_the_nest_stores_to_the_rows(%x : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %x[%i, %c0] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_row_may_not_exist
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_a_row_may_not_exist(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index, %some : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      scf.if %some {
        %a = memref.load %x[%j, %c0] : memref<?x?xf64>
        %b = memref.load %x[%j, %c1] : memref<?x?xf64>
        %c = arith.mulf %a, %b : f64
        memref.store %c, %y[%i] : memref<?xf64>
      } else {
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_nest_may_raise
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_the_nest_may_raise(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index, %wrong : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    array.raise_if %wrong, "ValueError", "no"
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_rows_differ_from_one_iteration_to_the_next
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_rows_differ_from_one_iteration_to_the_next(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %i do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_few_iterations_come_back
// CHECK-NOT:     columns
// CHECK:         func.return
func.func @kept_when_few_iterations_come_back(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %trips = array.loop %i to %c3 do {
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%j, %c0] : memref<?x?xf64>
      %b = memref.load %x[%j, %c1] : memref<?x?xf64>
      %c = arith.mulf %a, %b : f64
      memref.store %c, %y[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}
