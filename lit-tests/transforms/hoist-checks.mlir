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
