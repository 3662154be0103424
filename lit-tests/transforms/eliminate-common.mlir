// RUN: mutad-opt %s -p eliminate-common | filecheck %s

// CHECK-LABEL: @equal_dims
// CHECK:         %n = memref.dim
// CHECK-NOT:     memref.dim
// CHECK:         func.return %n, %n
func.func @equal_dims(%a : memref<?xf64>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %m = memref.dim %a, %zero : memref<?xf64>
  func.return %n, %m : index, index
}

// CHECK-LABEL: @in_a_nested_region
// CHECK:         scf.if %c
// CHECK-NEXT:      memref.store %y, %a[%i]
func.func @in_a_nested_region(%x : f64, %a : memref<?xf64>, %i : index, %c : i1) -> f64 {
  %y = arith.mulf %x, %x : f64
  scf.if %c {
    %z = arith.mulf %x, %x : f64
    memref.store %z, %a[%i] : memref<?xf64>
  }
  func.return %y : f64
}

// The second check cannot raise: the first one did.
// CHECK-LABEL: @a_check_made_before
// CHECK:         %j = array.index %i, %n
// CHECK-NOT:     array.index
// CHECK:         func.return %j, %j
func.func @a_check_made_before(%i : index, %n : index) -> (index, index) {
  %j = array.index %i, %n axis 0 sign "any"
  %k = array.index %i, %n axis 0 sign "any"
  func.return %j, %k : index, index
}

// CHECK-LABEL: @equal_views
// CHECK:         %v = array.view
// CHECK-NOT:     array.view
func.func @equal_views(%a : memref<?xf64>, %n : index, %x : f64) {
  %c1 = arith.constant 1 : index
  %v = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %w = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  memref.store %x, %v[%n] : memref<?xf64, strided<[1]>>
  memref.store %x, %w[%c1] : memref<?xf64, strided<[1]>>
  func.return
}

// CHECK-LABEL: @kept_when_in_the_other_branch
// CHECK:         %y = arith.mulf
// CHECK:         %z = arith.mulf
func.func @kept_when_in_the_other_branch(%x : f64, %c : i1) -> f64 {
  %r = scf.if %c -> (f64) {
    %y = arith.mulf %x, %x : f64
    scf.yield %y : f64
  } else {
    %z = arith.mulf %x, %x : f64
    scf.yield %z : f64
  }
  func.return %r : f64
}

// CHECK-LABEL: @kept_when_the_sign_of_zero_differs
// CHECK:         %x = arith.constant 0.000000e+00
// CHECK:         %y = arith.constant -0.000000e+00
func.func @kept_when_the_sign_of_zero_differs() -> (f64, f64) {
  %x = arith.constant 0.0 : f64
  %y = arith.constant -0.0 : f64
  func.return %x, %y : f64, f64
}

// Two fresh arrays are two arrays.
// CHECK-LABEL: @kept_allocations
// CHECK:         %a = array.alloc
// CHECK:         %b = array.alloc
func.func @kept_allocations(%n : index) -> (memref<?xf64>, memref<?xf64>) {
  %a = array.alloc(%n) : memref<?xf64>
  %b = array.alloc(%n) : memref<?xf64>
  func.return %a, %b : memref<?xf64>, memref<?xf64>
}

// CHECK-LABEL: @kept_loads
// CHECK:         %x = memref.load
// CHECK:         %y = memref.load
func.func @kept_loads(%a : memref<?xf64>, %i : index) -> (f64, f64) {
  %x = memref.load %a[%i] : memref<?xf64>
  %y = memref.load %a[%i] : memref<?xf64>
  func.return %x, %y : f64, f64
}
