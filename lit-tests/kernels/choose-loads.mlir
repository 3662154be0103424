// RUN: mutad-opt %s -p choose-loads | filecheck %s

!v = memref<f64, strided<[]>>

// CHECK-LABEL: func.func @on_both_sides
// CHECK:         %r = scf.if %c -> (f64)
// CHECK:           memref.load %v[]
// CHECK:           memref.load %x[] : memref<f64>
// CHECK-NOT:     memref.load
func.func @on_both_sides(%c : i1, %u : memref<?xf64>, %i : index, %z : f64) -> f64 {
  %x = memref.alloca() : memref<f64>
  %v = array.view %u[%i] dims [] extents() steps() : memref<?xf64> -> !v
  %y = "memref.cast"(%x) : (memref<f64>) -> !v
  %m = scf.if %c -> (!v) {
    scf.yield %v : !v
  } else {
    scf.yield %y : !v
  }
  memref.store %z, %x[] : memref<f64>
  %r = memref.load %m[] : !v
  func.return %r : f64
}

// CHECK-LABEL: func.func @of_a_choice
// CHECK:         scf.if %d -> (f64)
// CHECK:           scf.if %c -> (f64)
// CHECK:           memref.load %w[]
// CHECK-NOT:     -> (memref
func.func @of_a_choice(%c : i1, %d : i1, %u : !v, %v : !v, %w : !v) -> f64 {
  %m = scf.if %c -> (!v) {
    scf.yield %u : !v
  } else {
    scf.yield %v : !v
  }
  %k = scf.if %d -> (!v) {
    scf.yield %m : !v
  } else {
    scf.yield %w : !v
  }
  %r = memref.load %k[] : !v
  func.return %r : f64
}

// CHECK-LABEL: func.func @kept_where_it_is_stored_to
// CHECK:         %m = scf.if %c -> (memref
// CHECK:         memref.store %z, %m[]
func.func @kept_where_it_is_stored_to(%c : i1, %u : !v, %v : !v, %z : f64) {
  %m = scf.if %c -> (!v) {
    scf.yield %u : !v
  } else {
    scf.yield %v : !v
  }
  memref.store %z, %m[] : !v
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_side_makes_it
// CHECK:         %m = scf.if %c -> (memref
// CHECK:         memref.load %m[]
func.func @kept_where_a_side_makes_it(%c : i1, %u : memref<?xf64>, %i : index, %v : !v) -> f64 {
  %m = scf.if %c -> (!v) {
    %w = array.view %u[%i] dims [] extents() steps() : memref<?xf64> -> !v
    scf.yield %w : !v
  } else {
    scf.yield %v : !v
  }
  %r = memref.load %m[] : !v
  func.return %r : f64
}
