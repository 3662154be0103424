// RUN: mutad-opt %s -p print-needed | filecheck %s

// CHECK-LABEL: @a_product_needs_its_factors
// CHECK:         arith.mulf %a, %b {needs = ["%b", "%a"]}
func.func @a_product_needs_its_factors(%a : f64, %b : f64) -> f64 {
  %c = arith.mulf %a, %b : f64
  func.return %c : f64
}

// CHECK-LABEL: @a_sum_needs_nothing
// CHECK-NOT:     needs
func.func @a_sum_needs_nothing(%a : f64, %b : f64) -> f64 {
  %c = arith.addf %a, %b : f64
  func.return %c : f64
}

// CHECK-LABEL: @a_root_needs_its_result
// CHECK:         %c = math.sqrt %a {needs = ["%c"]}
func.func @a_root_needs_its_result(%a : f64) -> f64 {
  %c = math.sqrt %a : f64
  func.return %c : f64
}

// The store's adjoint finds the element again by its subscript; what is stored does not matter.
// CHECK-LABEL: @a_store_needs_its_subscript
// CHECK:         memref.store %v, %x[%i] {needs = ["%i"]}
func.func @a_store_needs_its_subscript(%x : memref<?xf64>, %i : index, %v : f64) {
  memref.store %v, %x[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @integers_need_nothing
// CHECK-NOT:     needs
func.func @integers_need_nothing(%i : index, %j : index) -> index {
  %k = arith.muli %i, %j : index
  func.return %k : index
}
