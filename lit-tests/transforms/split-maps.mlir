// RUN: mutad-opt %s -p split-maps | filecheck %s

// What is stored into memory that the others read comes last.
// CHECK-LABEL: @the_store_to_an_input_last
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%m : memref<?xf64, strided<[0]>>) kinds ["max"]
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%x, %s : memref<?xf64>, memref<?xf64>) kinds ["store", "add"]
func.func @the_store_to_an_input_last(%n : index, %x : memref<?xf64>, %m : memref<?xf64, strided<[0]>>, %s : memref<?xf64>) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x, %m, %s : memref<?xf64>, memref<?xf64, strided<[0]>>, memref<?xf64>) kinds ["store", "max", "add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %a : f64
    array.yield %b, %a, %a : f64, f64, f64
  }
  func.return
}

// CHECK-LABEL: @the_product_last_where_it_is_read
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["mul"]
func.func @the_product_last_where_it_is_read(%n : index, %x : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x, %s : memref<?xf64>, memref<?xf64>) kinds ["mul", "store"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_outputs_may_share_memory
// CHECK:         kinds ["max", "store"]
func.func @kept_where_outputs_may_share_memory(%n : index, %x : memref<?xf64>, %m : memref<?xf64>, %s : memref<?xf64>) attributes {overlaps = [[2, 3]]} {
  array.map(%n) ins(%x : memref<?xf64>) outs(%m, %s : memref<?xf64>, memref<?xf64>) kinds ["max", "store"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  func.return
}

// CHECK-LABEL: @sums_stay_together
// CHECK:         kinds ["add", "store"]
func.func @sums_stay_together(%n : index, %x : memref<?xf64>, %m : memref<?xf64>, %s : memref<?xf64>) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%m, %s : memref<?xf64>, memref<?xf64>) kinds ["add", "store"] {
  ^bb0(%a : f64):
    array.yield %a, %a : f64, f64
  }
  func.return
}
