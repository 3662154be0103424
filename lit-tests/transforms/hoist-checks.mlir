// RUN: mutad-opt %s -p hoist-checks | filecheck %s

// CHECK-LABEL: @checked_once
// CHECK:         scf.if
// CHECK:           array.index %i, %n axis 0 : i64 sign "nonneg"{{$}}
// CHECK:         raises
// CHECK:         array.loop
// CHECK:           array.index %{{.*}}, %n axis 0 : i64 sign "nonneg" unchecked
func.func @checked_once(%x : memref<?xf64>, %m : index, %n : index, %v : f64) {
  %trips = array.loop %i to %m do {
    %j = array.index %i, %n axis 0 sign "nonneg"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// The loop runs up to the very extent.
// CHECK-LABEL: @proved
// CHECK-NOT:     scf.if
// CHECK:         array.index %i, %n axis 0 : i64 sign "nonneg" unchecked
func.func @proved(%x : memref<?xf64>, %n : index, %v : f64) {
  %trips = array.loop %i to %n do {
    %j = array.index %i, %n axis 0 sign "nonneg"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_under_a_branch
// CHECK:         scf.if %c
// CHECK-NEXT:      array.index %i, %n axis 0 : i64 sign "nonneg"{{$}}
func.func @kept_under_a_branch(%c : i1, %x : memref<?xf64>, %m : index, %n : index, %v : f64) {
  %trips = array.loop %i to %m do {
    scf.if %c {
      %j = array.index %i, %n axis 0 sign "nonneg"
      memref.store %v, %x[%j] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_subscript_is_loaded
// CHECK:         array.index %k, %n axis 0 : i64 sign "nonneg"{{$}}
func.func @kept_when_the_subscript_is_loaded(%ks : memref<?xindex>, %x : memref<?xf64>, %m : index, %n : index, %v : f64) {
  %trips = array.loop %i to %m do {
    %k = memref.load %ks[%i] : memref<?xindex>
    %j = array.index %k, %n axis 0 sign "nonneg"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_sign_is_not_known
// CHECK:         array.index %{{.*}}, %n axis 0 : i64 sign "any"{{$}}
func.func @kept_when_the_sign_is_not_known(%x : memref<?xf64>, %m : index, %n : index, %o : index, %v : f64) {
  %trips = array.loop %i to %m do {
    %k = arith.addi %i, %o : index
    %j = array.index %k, %n axis 0 sign "any"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_in_a_while
// CHECK:         array.index %i, %n axis 0 : i64 sign "nonneg"{{$}}
func.func @kept_in_a_while(%c : i1, %x : memref<?xf64>, %n : index, %v : f64) {
  %trips = array.loop %i while {
  ^bb0(%k : index):
    array.condition %c
  } do {
    %j = array.index %i, %n axis 0 sign "nonneg"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// Both extents of a rectangular nest, once before the outer loop.
// CHECK-LABEL: @both_loops_of_a_nest
// CHECK:         scf.if %{{.*}} {
// CHECK:           array.index %i, %n axis 0 : i64 sign "nonneg"
// CHECK:         {{\}.*}}{raises}
// CHECK:         array.loop %i_1 to %p do
// CHECK:           array.index %i_1, %n axis 0 : i64 sign "nonneg" unchecked
// CHECK:           array.loop %j_1 to %q do
// CHECK:             array.index %j_1, %m axis 1 : i64 sign "nonneg" unchecked
func.func @both_loops_of_a_nest(%x : memref<?x?xf64>, %p : index, %q : index, %n : index, %m : index, %v : f64) {
  %t = array.loop %i to %p do {
    %k = array.index %i, %n axis 0 sign "nonneg"
    %s = array.loop %j to %q do {
      %l = array.index %j, %m axis 1 sign "nonneg"
      memref.store %v, %x[%k, %l] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The inner count depends on the outer induction: the outer check is hoisted, the inner stays.
// CHECK-LABEL: @kept_in_a_triangular_nest
// CHECK:         {{\}.*}}{raises}
// CHECK:         array.loop %i_1 to %p do
// CHECK:           array.index %i_1, %n axis 0 : i64 sign "nonneg" unchecked
// CHECK:           array.index %j_1, %m axis 1 : i64 sign "nonneg"
// CHECK-NOT:     unchecked
func.func @kept_in_a_triangular_nest(%x : memref<?x?xf64>, %p : index, %n : index, %m : index, %v : f64) {
  %t = array.loop %i to %p do {
    %k = array.index %i, %n axis 0 sign "nonneg"
    %s = array.loop %j to %i do {
      %l = array.index %j, %m axis 1 sign "nonneg"
      memref.store %v, %x[%k, %l] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The nest would be there twice: not worth it for whole-array work.
// CHECK-LABEL: @kept_beside_whole_array_work
// CHECK-NOT:     scf.if
// CHECK-NOT:     unchecked
func.func @kept_beside_whole_array_work(%x : memref<?xf64>, %y : memref<?xf64>, %m : index, %n : index) {
  %t = array.loop %i to %m do {
    %j = array.index %i, %n axis 0 sign "nonneg"
    %v = memref.load %x[%j] : memref<?xf64>
    array.map(%n) outs(%y : memref<?xf64>) kinds ["store"] {
      array.yield %v : f64
    }
    array.yield
  }
  func.return
}

// A factor so large that the greatest subscript could overflow.
// CHECK-LABEL: @kept_when_the_factor_is_large
// CHECK-NOT:     scf.if
// CHECK-NOT:     unchecked
func.func @kept_when_the_factor_is_large(%x : memref<?xf64>, %m : index, %n : index, %v : f64) {
  %c = arith.constant 1000000000 : index
  %t = array.loop %i to %m do {
    %far = arith.muli %i, %c : index
    %j = array.index %far, %n axis 0 sign "nonneg"
    memref.store %v, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// Proved wherever it stands: the loop runs up to the extent, whatever the branch says.
// CHECK-LABEL: @proved_under_a_branch
// CHECK:         scf.if %c
// CHECK-NEXT:      array.index %i, %n axis 0 : i64 sign "nonneg" unchecked
func.func @proved_under_a_branch(%c : i1, %x : memref<?xf64>, %n : index, %v : f64) {
  %trips = array.loop %i to %n do {
    scf.if %c {
      %j = array.index %i, %n axis 0 sign "any"
      memref.store %v, %x[%j] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// A count is never greater than the iterations are many.
// CHECK-LABEL: @a_count_fits
// CHECK:           %[[K:.*]] = memref.load %count
// CHECK-NEXT:      scf.if %c
// CHECK-NEXT:        arith.addi %[[K]], %c1 : index
// CHECK-NOT:     checked_add
func.func @a_count_fits(%c : i1, %n : index) -> index {
  %count = memref.alloca() : memref<index>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %c0, %count[] : memref<index>
  %trips = array.loop %i to %n do {
    %k = memref.load %count[] : memref<index>
    %l = scf.if %c -> (index) {
      %m = array.checked_add %k, %c1
      scf.yield %m : index
    } else {
      scf.yield %k : index
    }
    memref.store %l, %count[] : memref<index>
    array.yield
  }
  %r = memref.load %count[] : memref<index>
  func.return %r : index
}

// Two a time do not fit for so many iterations, nor does one where the count begins with anything.
// CHECK-LABEL: @kept_where_a_count_may_not_fit
// CHECK:           checked_add
// CHECK:           checked_add
func.func @kept_where_a_count_may_not_fit(%first : index, %n : index) {
  %count = memref.alloca() : memref<index>
  %other = memref.alloca() : memref<index>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  memref.store %c0, %count[] : memref<index>
  memref.store %first, %other[] : memref<index>
  %trips = array.loop %i to %n do {
    %k = memref.load %count[] : memref<index>
    %l = array.checked_add %k, %c2
    memref.store %l, %count[] : memref<index>
    %o = memref.load %other[] : memref<index>
    %p = array.checked_add %o, %c1
    memref.store %p, %other[] : memref<index>
    array.yield
  }
  func.return
}

// Somebody else stores to it.
// CHECK-LABEL: @kept_where_a_count_is_set
// CHECK:           checked_add
func.func @kept_where_a_count_is_set(%c : i1, %far : index, %n : index) {
  %count = memref.alloca() : memref<index>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %c0, %count[] : memref<index>
  %trips = array.loop %i to %n do {
    %k = memref.load %count[] : memref<index>
    %l = array.checked_add %k, %c1
    memref.store %l, %count[] : memref<index>
    scf.if %c {
      memref.store %far, %count[] : memref<index>
    }
    array.yield
  }
  func.return
}
