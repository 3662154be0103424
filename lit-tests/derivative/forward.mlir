// RUN: mutad-opt %s -p forward | filecheck %s
// RUN: mutad-opt %s -p forward --run --only scaled_tangent --args 'x=[2, 3], i=1, k=5, x_dot=[0, 1], k_dot=0.5' | filecheck %s --check-prefix VALUES

// Tangents of arrays stand behind the arguments, then those of numbers; tangents of results behind the results.
// CHECK-LABEL: @scaled_tangent(%x: memref<?xf64>, %i: index, %k: f64, %x_dot: memref<?xf64>, %k_dot: f64) -> (f64, f64)
// CHECK:         %v_dot = memref.load %x_dot[%i]
// CHECK:         ad.mul %v_dot, %k
// CHECK:         ad.mul %k_dot, %v
// CHECK:         memref.store %w_dot, %x_dot[%i]
// CHECK:         func.return %w, %w_dot : f64, f64
// VALUES:        result = 15
// VALUES-NEXT:   result_dot = 6.5
// VALUES-NEXT:   x = [2, 15]
// VALUES-NEXT:   x_dot = [0, 6.5]
func.func @scaled(%x : memref<?xf64>, %i : index, %k : f64) -> f64 {
  %v = memref.load %x[%i] : memref<?xf64>
  %w = arith.mulf %v, %k : f64
  memref.store %w, %x[%i] : memref<?xf64>
  func.return %w : f64
}

// A store of what has no tangent stores 0 beside it.
// CHECK-LABEL: @store_of_a_constant_tangent(
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT:    memref.store %[[ZERO]], %x_dot[%i]
func.func @store_of_a_constant(%x : memref<?xf64>, %i : index) {
  %one = arith.constant 1.0 : f64
  memref.store %one, %x[%i] : memref<?xf64>
  func.return
}

// A map computes its tangents at the same points.
// CHECK-LABEL: @a_map_stays_one_map_tangent(
// CHECK:         array.map(%n) ins(%x, %x_dot : memref<?xf64>, memref<?xf64>) outs(%y, %y_dot : memref<?xf64>, memref<?xf64>) kinds ["store", "store"]
// CHECK-NOT:     array.map
// CHECK:         func.return
func.func @a_map_stays_one_map(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    %b = math.sin %a : f64
    array.yield %b : f64
  }
  func.return
}

// A loop carries the tangents of what it carries, and swaps them as it swaps their arrays.
// CHECK-LABEL: @a_swap_swaps_tangents_tangent(
// CHECK:         array.loop %k to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>, %u_dot = %u0_dot : memref<?xf64>, %v_dot = %v0_dot : memref<?xf64>) do
// CHECK:           array.yield %v, %u, %v_dot, %u_dot
func.func @a_swap_swaps_tangents(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %i : index, %steps : index) {
  %trips, %u1, %v1 = array.loop %k to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %a = memref.load %u[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// A branch yields the tangents of what it yields; integers have none.
// CHECK-LABEL: @a_branch_yields_tangents_tangent(
// CHECK:         %r, %j, %r_dot = scf.if %c -> (f64, index, f64)
func.func @a_branch_yields_tangents(%c : i1, %a : f64, %i : index) -> f64 {
  %r, %j = scf.if %c -> (f64, index) {
    %b = arith.mulf %a, %a : f64
    scf.yield %b, %i : f64, index
  } else {
    scf.yield %a, %i : f64, index
  }
  func.return %r : f64
}

// c = a b: a_dot b, then a b_dot is added.
// CHECK-LABEL: @a_product_is_two_products_tangent(
// CHECK:         array.matmul %a, %b into %c :
// CHECK-NEXT:    array.matmul %a_dot, %b into %c_dot :
// CHECK-NEXT:    array.matmul %a, %b_dot into %c_dot accumulate
func.func @a_product_is_two_products(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// The tangent of a view is the view of the tangents.
// CHECK-LABEL: @tangents_of_views_tangent(
// CHECK:         %w_dot = array.view %x_dot[%k]
!shifted = memref<?xf64, strided<[1]>>
func.func @tangents_of_views(%x : memref<?xf64>, %n : index, %k : index, %i : index) -> f64 {
  %c1 = arith.constant 1 : index
  %w = array.view %x[%k] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> !shifted
  %a = memref.load %w[%i] : !shifted
  func.return %a : f64
}

// The tangents of a tape's segments lie on a tape of their own.
// CHECK-LABEL: @tapes_have_tangents_tangent(
// CHECK:         %[[TAPE:.*]] = ad.tape
// CHECK-NEXT:    %[[DOTS:.*]] = ad.tape
// CHECK-NEXT:    %s = ad.push %[[TAPE]](%n)
// CHECK-NEXT:    %s_dot = ad.push %[[DOTS]](%n)
// CHECK:         %p_dot = ad.pop %[[DOTS]](%n)
func.func @tapes_have_tangents(%x : memref<?xf64>, %n : index, %i : index) -> f64 {
  %t = ad.tape
  %s = ad.push %t(%n) : memref<?xf64>
  %a = memref.load %x[%i] : memref<?xf64>
  memref.store %a, %s[%i] : memref<?xf64>
  %p = ad.pop %t(%n) : memref<?xf64>
  %b = memref.load %p[%i] : memref<?xf64>
  func.return %b : f64
}

// Arguments that share memory have tangents that do.
// CHECK-LABEL: @shared_arguments_tangent(
// CHECK-SAME:    overlaps = {{\[\[}}0 : i64, 1 : i64], [3 : i64, 4 : i64]]
func.func @shared_arguments(%x : memref<?xf64>, %y : memref<?xf64>, %i : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %a = memref.load %x[%i] : memref<?xf64>
  memref.store %a, %y[%i] : memref<?xf64>
  func.return
}
