// RUN: mutad-opt %s -p drop-argument-fills | filecheck %s

// What is filled and then added to here and there may come as zeros.
// CHECK-LABEL: @filled_for_single_elements
// CHECK-SAME:    filled = array<i64: 1>
// CHECK-NOT:     array.map
// CHECK:         func.return
func.func @filled_for_single_elements(%a_shadow : memref<?xf64>, %b_shadow : memref<?xf64>, %x : f64, %i : index)
    attributes {filled = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a_shadow, %c0 : memref<?xf64>
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%a_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  %old = memref.load %a_shadow[%i] : memref<?xf64>
  %new = arith.addf %old, %x : f64
  memref.store %new, %a_shadow[%i] : memref<?xf64>
  func.return
}

// A library's caller hands in whatever there is: nothing is listed, and the fill stays.
// CHECK-LABEL: @kept_where_nobody_hands_in_zeros
// CHECK:         array.map(%n) outs(%a_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
func.func @kept_where_nobody_hands_in_zeros(%n : index, %a_shadow : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%a_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  func.return
}

// The program's own zeros, which somebody may have asked for.
// CHECK-LABEL: @kept_where_the_contents_were_seen
// CHECK-SAME:    filled = array<i64: 1>
// CHECK:         array.map(%n) outs(%a_shadow : memref<?xf64>) kinds ["store"] {
func.func @kept_where_the_contents_were_seen(%n : index, %a_shadow : memref<?xf64>) attributes {filled = array<i64: 1>} {
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%a_shadow : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  func.return
}
