// RUN: mutad-opt %s -p rotate-sums | filecheck %s

// The last iteration takes its own row once more; where there is none, nothing is read before the loop.
// CHECK-LABEL: @rotated
// CHECK:        memref.store %zero, %cell_1[]
// CHECK:        %[[SOME:.*]] = arith.cmpi sgt, %n
// CHECK:        scf.if %[[SOME]] {
// CHECK:          %by = array.view %q[%{{[0-9]+}}, %c0]
// CHECK:          array.map(%m) ins(%by, %a : {{.*}}) outs(%sum_1 :
// CHECK:        array.loop %k to %n do {
// CHECK:          %[[FOUND:.*]] = memref.load %cell_1[]
// CHECK:          memref.store %[[FOUND]], %cell[]
// CHECK:          memref.store %zero, %cell_1[]
// CHECK:          %[[NEXT:.*]] = arith.addi %k, %
// CHECK:          %[[LAST:.*]] = arith.minsi %[[NEXT]], %
// CHECK:          %by_2 = array.view %q[%[[LAST]], %c0]
// CHECK:          array.map(%m) ins(%by_1, %a, %by_2 : {{.*}}) outs(%a, %sum_1 : {{.*}}) kinds ["store", "add"] attributes {own_order} {
// CHECK:            %d = arith.subf
// CHECK:            %p_{{.*}} = arith.mulf %x_2, %d
// CHECK-NOT:       array.map(
// CHECK:        func.return
func.func @rotated(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// The number of the row is computed in the loop, and comes to the same each time.
// CHECK-LABEL: @a_row_that_stands
// CHECK:        scf.if
// CHECK:        array.loop %k to %n do {
// CHECK:          array.map(%m) ins(%by_{{.*}}, %row_{{.*}}, %by_{{.*}} : {{.*}}) outs(%row_{{.*}}, %sum_1 :
// CHECK:        func.return
func.func @a_row_that_stands(%q : memref<?x?xf64>, %w : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %behind = arith.subi %n, %k : index
    %j = arith.addi %behind, %k : index
    %row = array.view %w[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// What is added to the row is added before the sum reads it.
// CHECK-LABEL: @an_update_that_adds
// CHECK:        scf.if
// CHECK:        array.loop %k to %n do {
// CHECK:          array.map(%m) ins({{.*}}) outs(%a, %sum_1 : {{.*}}) kinds ["store", "add"] attributes {own_order} {
// CHECK:            %[[TERM:.*]] = arith.mulf %x_{{.*}}, %dot
// CHECK:            %[[NEW:.*]] = arith.addf %{{.*}}, %[[TERM]]
// CHECK:            %{{.*}} = arith.mulf %{{.*}}, %[[NEW]]
// CHECK:            array.yield %[[NEW]], %
// CHECK:        func.return
func.func @an_update_that_adds(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by : memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%x : f64):
      %t = arith.mulf %x, %dot : f64
      array.yield %t : f64
    }
    array.yield
  }
  func.return
}

// Two cells, and what is done between.
// CHECK-LABEL: @several_sums
// CHECK:        scf.if
// CHECK:        array.loop %k to %n do {
// CHECK:          memref.store %dot, %t[%k]
// CHECK:          array.map(%m) ins({{.*}}) outs(%a, %sum_1, %squares_1 : {{.*}}) kinds ["store", "add", "add"] attributes {own_order} {
// CHECK:        func.return
func.func @several_sums(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %t : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %cell2 = memref.alloca() : memref<f64>
  %squares = array.view %cell2[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    memref.store %zero, %cell2[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum, %squares : memref<?xf64, strided<[0]>>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      %s = arith.mulf %y, %y : f64
      array.yield %p, %s : f64, f64
    }
    %dot = memref.load %cell[] : memref<f64>
    memref.store %dot, %t[%k] : memref<?xf64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// There is nothing to take along: the update is of another row.
// CHECK-LABEL: @kept_when_the_sum_reads_no_update
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_sum_reads_no_update(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %b : memref<?xf64, strided<[1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%b : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// An element changes behind the update.
// CHECK-LABEL: @kept_when_the_row_is_stored_to_twice
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_row_is_stored_to_twice(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    memref.store %dot, %a[%c0] : memref<?xf64, strided<[1]>>
    array.yield
  }
  func.return
}

// The sum reads a row of the matrix to which the row may belong: its next row may be stored to.
// CHECK-LABEL: @kept_when_rows_may_be_of_one_matrix
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %row :
// CHECK:        func.return
func.func @kept_when_rows_may_be_of_one_matrix(%q : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %row = array.view %q[%n, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// Arguments may share memory.
// CHECK-LABEL: @kept_when_arguments_may_overlap
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_arguments_may_overlap(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// Which row comes next is stored in a table, that has no more entries than there are rows.
// CHECK-LABEL: @kept_when_the_row_is_named_by_data
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_row_is_named_by_data(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %rows : memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %at = memref.load %rows[%k] : memref<?xindex>
    %by = array.view %q[%at, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// Each iteration updates a row of its own: the next one reads another.
// CHECK-LABEL: @kept_when_the_updated_row_moves
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %row :
// CHECK:        func.return
func.func @kept_when_the_updated_row_moves(%q : memref<?x?xf64>, %w : memref<?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %row = array.view %w[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// The sum goes on from what the iteration before has found.
// CHECK-LABEL: @kept_when_the_sum_goes_on
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_sum_goes_on(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// The sum begins with a number of the iteration.
// CHECK-LABEL: @kept_when_the_sum_begins_with_a_number_of_the_iteration
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_sum_begins_with_a_number_of_the_iteration(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %t : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %begin = memref.load %t[%k] : memref<?xf64>
    memref.store %begin, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// A term is scaled by a number of the iteration.
// CHECK-LABEL: @kept_when_terms_have_a_number_of_the_iteration
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_terms_have_a_number_of_the_iteration(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %t : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %scale = memref.load %t[%k] : memref<?xf64>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %s = arith.mulf %x, %y : f64
      %p = arith.mulf %s, %scale : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// Maxima are not sums.
// CHECK-LABEL: @kept_when_it_is_a_maximum
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_it_is_a_maximum(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["max"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// The update goes over a part of the row.
// CHECK-LABEL: @kept_when_the_update_is_shorter
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_the_update_is_shorter(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index, %m1 : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %part = array.view %a[%c0] dims [0] extents(%m1) steps(%c1) : memref<?xf64, strided<[1]>> -> memref<?xf64, strided<[1]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      array.yield %p : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m1) ins(%part, %part : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%part : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// A term of many operations needs the registers for itself.
// CHECK-LABEL: @kept_when_terms_are_long
// CHECK-NOT:     scf.if
// CHECK:        array.loop
// CHECK:          array.map(%m) ins(%by, %a :
// CHECK:        func.return
func.func @kept_when_terms_are_long(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %cell = memref.alloca() : memref<f64>
  %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    memref.store %zero, %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %y : f64
      %p1 = arith.mulf %p, %y : f64
      %p2 = arith.mulf %p1, %y : f64
      %p3 = arith.mulf %p2, %y : f64
      array.yield %p3 : f64
    }
    %dot = memref.load %cell[] : memref<f64>
    array.map(%m) ins(%by, %a : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%a : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%x : f64, %y : f64):
      %p = arith.mulf %x, %dot : f64
      %d = arith.subf %y, %p : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}
