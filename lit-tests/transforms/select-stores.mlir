// RUN: mutad-opt %s -p select-stores | filecheck %s

// CHECK-LABEL: @after_a_store_to_the_element
// CHECK-NOT:     scf.if
// CHECK:         %b = arith.negf %a
// CHECK-NEXT:    %[[CHOICE:.*]] = arith.select %outside, %b, %a
// CHECK-NEXT:    memref.store %[[CHOICE]], %v[%i]
// CHECK-NEXT:    func.return
func.func @after_a_store_to_the_element(%v : memref<?xf64>, %i : index, %a : f64, %outside : i1) {
  memref.store %a, %v[%i] : memref<?xf64>
  scf.if %outside {
    %b = arith.negf %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
  }
  func.return
}

// What the program would not have stored is not stored, not even as it was.
// CHECK-LABEL: @kept_without_a_store_before
// CHECK:         scf.if
func.func @kept_without_a_store_before(%v : memref<?xf64>, %i : index, %outside : i1) {
  %a = memref.load %v[%i] : memref<?xf64>
  scf.if %outside {
    %b = arith.negf %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_element_may_be_read_between
// CHECK:         memref.store %a, %v[%i]
// CHECK:         scf.if
func.func @kept_where_the_element_may_be_read_between(%v : memref<?xf64>, %i : index, %j : index, %a : f64, %outside : i1) -> f64 {
  memref.store %a, %v[%i] : memref<?xf64>
  %r = memref.load %v[%j] : memref<?xf64>
  scf.if %outside {
    memref.store %r, %v[%i] : memref<?xf64>
  }
  func.return %r : f64
}

// Another array is not in the way.
// CHECK-LABEL: @past_stores_to_other_arrays
// CHECK-NOT:     scf.if
// CHECK:         memref.store %a, %w[%i]
// CHECK:         memref.store %{{.*}}, %v[%i]
func.func @past_stores_to_other_arrays(%v : memref<?xf64>, %w : memref<?xf64>, %i : index, %a : f64, %outside : i1) {
  memref.store %a, %v[%i] : memref<?xf64>
  memref.store %a, %w[%i] : memref<?xf64>
  scf.if %outside {
    %b = arith.negf %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
  }
  func.return
}

// An exception in between would show the first store.
// CHECK-LABEL: @kept_where_an_exception_would_show_it
// CHECK:         memref.store %a, %v[%i]
// CHECK:         scf.if
func.func @kept_where_an_exception_would_show_it(%v : memref<?xf64>, %i : index, %n : index, %a : f64, %outside : i1) {
  memref.store %a, %v[%i] : memref<?xf64>
  %k = array.index %i, %n axis 0 : i64 sign "nonneg"
  scf.if %outside {
    %b = arith.negf %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_branch_does_more
// CHECK:         scf.if
func.func @kept_where_the_branch_does_more(%v : memref<?xf64>, %i : index, %a : f64, %outside : i1) {
  memref.store %a, %v[%i] : memref<?xf64>
  scf.if %outside {
    %b = math.exp %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
  }
  func.return
}
