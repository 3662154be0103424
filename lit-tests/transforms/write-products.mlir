// RUN: mutad-opt %s -p write-products | filecheck %s

// A vector is a view of one column.
// CHECK-LABEL: @a_vector
// CHECK:         %y_1 = array.view %y
// CHECK-NEXT:    array.matmul %a, %x into %y_1
// CHECK-NEXT:    func.return
func.func @a_vector(%a : memref<?x?xf64>, %x : memref<?x1xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n) : memref<?xf64>
  %v = array.view %t[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
  array.matmul %a, %x into %v : memref<?x?xf64>, memref<?x1xf64>, memref<?x1xf64, strided<[1, 0]>>
  array.map(%n) ins(%t : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_it_overwrites_a_factor
// CHECK:         array.matmul %a, %b into %t
func.func @kept_where_it_overwrites_a_factor(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index) {
  %t = array.alloc(%n, %n) : memref<?x?xf64>
  array.matmul %a, %b into %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.map(%n, %n) ins(%t : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_arguments_may_share_memory
// CHECK:         array.matmul %a, %b into %t
func.func @kept_where_arguments_may_share_memory(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index) attributes {overlaps = [[1, 2]]} {
  %t = array.alloc(%n, %n) : memref<?x?xf64>
  array.matmul %a, %b into %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.map(%n, %n) ins(%t : memref<?x?xf64>) outs(%c : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_factor_changes_before_the_copy
// CHECK:         array.matmul %a, %b into %t
func.func @kept_where_a_factor_changes_before_the_copy(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %i : index, %x : f64) {
  %t = array.alloc(%n, %n) : memref<?x?xf64>
  array.matmul %a, %b into %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  memref.store %x, %a[%i, %i] : memref<?x?xf64>
  array.map(%n, %n) ins(%t : memref<?x?xf64>) outs(%c : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_product_is_read_again
// CHECK:         array.matmul %a, %b into %t
func.func @kept_where_the_product_is_read_again(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %i : index) -> f64 {
  %t = array.alloc(%n, %n) : memref<?x?xf64>
  array.matmul %a, %b into %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.map(%n, %n) ins(%t : memref<?x?xf64>) outs(%c : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %s = memref.load %t[%i, %i] : memref<?x?xf64>
  func.return %s : f64
}
