// RUN: mutad-opt %s -p close-counters | filecheck %s

// An inner loop adds %m in each iteration of the outer one.
// CHECK-LABEL: @in_a_nest
// CHECK:         array.loop %i to %n
// CHECK:           %[[ROW:.*]] = arith.muli %i, %{{.*}}
// CHECK-NEXT:      %[[START:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK:           array.loop %j to %m
// CHECK-NEXT:        %at = arith.addi %[[START]], %j
func.func @in_a_nest(%l : memref<?xf64>, %n : index, %m : index, %v : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = memref.alloca() : memref<index>
  memref.store %c0, %length[] : memref<index>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %m do {
      %at = memref.load %length[] : memref<index>
      memref.store %v, %l[%at] : memref<?xf64>
      %more = arith.addi %at, %c1 : index
      memref.store %more, %length[] : memref<index>
      array.yield
    }
    array.yield
  }
  func.return
}

// The condition of a `while` is asked before anything is added.
// CHECK-LABEL: @asked_by_a_condition
// CHECK:         while {
// CHECK:           %now = arith.addi %{{.*}}, %k
// CHECK-NEXT:      arith.cmpi slt, %now, %n
func.func @asked_by_a_condition(%n : index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = memref.alloca() : memref<index>
  memref.store %c0, %length[] : memref<index>
  %trips = array.loop %i while {
  ^bb0(%k : index):
    %now = memref.load %length[] : memref<index>
    %less = arith.cmpi slt, %now, %n : index
    array.condition %less
  } do {
    %at = memref.load %length[] : memref<index>
    %more = arith.addi %at, %c1 : index
    memref.store %more, %length[] : memref<index>
    array.yield
  }
  %r = memref.load %length[] : memref<index>
  func.return %r : index
}

// CHECK-LABEL: @kept_where_a_branch_adds
// CHECK:         memref.store %more, %length[]
func.func @kept_where_a_branch_adds(%n : index, %c : i1) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = memref.alloca() : memref<index>
  memref.store %c0, %length[] : memref<index>
  %trips = array.loop %i to %n do {
    scf.if %c {
      %at = memref.load %length[] : memref<index>
      %more = arith.addi %at, %c1 : index
      memref.store %more, %length[] : memref<index>
    }
    array.yield
  }
  %r = memref.load %length[] : memref<index>
  func.return %r : index
}

// CHECK-LABEL: @kept_where_the_amount_changes
// CHECK:         memref.store %more, %length[]
func.func @kept_where_the_amount_changes(%n : index) -> index {
  %c0 = arith.constant 0 : index
  %length = memref.alloca() : memref<index>
  memref.store %c0, %length[] : memref<index>
  %trips = array.loop %i to %n do {
    %at = memref.load %length[] : memref<index>
    %more = arith.addi %at, %i : index
    memref.store %more, %length[] : memref<index>
    array.yield
  }
  %r = memref.load %length[] : memref<index>
  func.return %r : index
}

// Checked arithmetic raises where the sum does not fit.
// CHECK-LABEL: @kept_where_it_may_overflow
// CHECK:         memref.store %more, %length[]
func.func @kept_where_it_may_overflow(%n : index, %k : index) -> index {
  %length = memref.alloca() : memref<index>
  memref.store %k, %length[] : memref<index>
  %trips = array.loop %i to %n do {
    %at = memref.load %length[] : memref<index>
    %more = array.checked_add %at, %k
    memref.store %more, %length[] : memref<index>
    array.yield
  }
  %r = memref.load %length[] : memref<index>
  func.return %r : index
}
