// RUN: mutad-opt %s -p collect-step-products | filecheck %s

// The gradient without a budget: it has collected one product, and another one is left.
// CHECK-LABEL: func.func @whole(
func.func @whole(%w_shadow : memref<?x?xf64>, %v_shadow : memref<?x?xf64>, %rows : memref<?x?xf64>, %turned : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %v_shadow, %c0 : memref<?x?xf64>
  %m = memref.dim %v_shadow, %c1 : memref<?x?xf64>
  %column = array.view %rows[%c0, %c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x1xf64, strided<[?, 0]>>
  %row = array.view %rows[%c0, %c0] dims [-1, 1] extents(%c1, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
  array.matmul %turned, %rows into %w_shadow accumulate {in_order} : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.matmul %column, %row into %v_shadow accumulate : memref<?x1xf64, strided<[?, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  func.return
}

// Steps keep the vectors of 32 products, and the last of them adds the product of all.
// CHECK-LABEL: func.func @outer_products(
// CHECK:         %total = memref.alloca() : memref<index>
// CHECK:         %done = memref.alloca() : memref<index>
// CHECK:         memref.store {{.*}}, %done[]
// CHECK:         %column_kept = array.alloc
// CHECK:         activation.reverse_steps @outer_products_step {{.*}} shared(%total, %done, %column_kept, %row_kept :
func.func @outer_products(%h : memref<?xf64>, %h_shadow : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant 35 : index
  %zero = arith.constant 0.0 : f64
  %n = memref.dim %h, %c0 : memref<?xf64>
  %w = array.alloc(%n, %n) : memref<?x?xf64>
  %w_shadow = array.alloc(%n, %n) : memref<?x?xf64>
  array.map(%n, %n) outs(%w, %w_shadow : memref<?x?xf64>, memref<?x?xf64>) kinds ["store", "store"] {
    array.yield %zero, %zero : f64, f64
  }
  %kept, %trips = activation.steps @outer_products_step %count state %c0 saved %c0 to %c0 around %c0 %c0 %c0 %c0 (%w, %h : memref<?x?xf64>, memref<?xf64>) within 4000 moves [0, 1] reads [1] writes [1] live [1]
  activation.reverse_steps @outer_products_step %kept (%w, %h : memref<?x?xf64>, memref<?xf64>) shadows (%w_shadow, %h_shadow : memref<?x?xf64>, memref<?xf64>) of [0, 1] moves [0, 1] reads [1] writes [1] live [1]
  %row = array.view %w_shadow[%c0, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%row : memref<?xf64, strided<[1]>>) outs(%h_shadow : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: func.func private @outer_products_step_backward(
// CHECK-SAME:    %total: memref<index>, %done: memref<index>, %[[G:.*]]: memref<?x?xf64>, %[[H:.*]]: memref<?x?xf64>)
// CHECK:         memref.load %done[]
// CHECK:         memref.store {{.*}}, %done[]
// CHECK-NOT:     array.matmul
// CHECK:         array.map
// CHECK:         scf.if
// CHECK-NEXT:      array.matmul {{.*}} into %w_shadow accumulate {in_order}
// CHECK-NOT:     array.matmul
// CHECK:         func.return
func.func private @outer_products_step(%i : index, %w : memref<?x?xf64>, %h : memref<?xf64>) attributes {overlaps = [], changing = array<i64: 2>} {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f64
  %n = memref.dim %h, %c0 : memref<?xf64>
  array.map(%n) ins(%h : memref<?xf64>) outs(%h : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    %less = arith.mulf %e, %half : f64
    array.yield %less : f64
  }
  func.return
}
func.func private @outer_products_step_forward(%i : index, %w : memref<?x?xf64>, %h : memref<?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 2>, keeps = 2 : i64, chained} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f64
  %n = memref.dim %h, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  array.map(%n) ins(%h : memref<?xf64>) outs(%h, %saved : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%e : f64):
    %less = arith.mulf %e, %half : f64
    array.yield %less, %e : f64, f64
  }
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @outer_products_step_backward(%saved : memref<?xf64>, %n : index, %w_shadow : memref<?x?xf64>, %h_shadow : memref<?xf64>) attributes {overlaps = [], kept = 2 : i64, chained} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %h_shadow[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
  %row = array.view %saved[%c0] dims [-1, 0] extents(%c1, %n) steps(%c0, %c1) : memref<?xf64> -> memref<1x?xf64, strided<[0, 1]>>
  array.matmul %column, %row into %w_shadow accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  array.map(%n) ins(%saved : memref<?xf64>) outs(%h_shadow : memref<?xf64>) kinds ["store"] {
  ^bb0(%e: f64):
    array.yield %e : f64
  }
  func.return
}

// The shadow is another one in each step.
// CHECK-LABEL: func.func @shadows_that_change_places(
// CHECK-NOT:     shared
// CHECK:         func.return
func.func @shadows_that_change_places(%x : memref<?x?xf64>, %h : memref<?x?xf64>, %x_shadow : memref<?x?xf64>, %h_shadow : memref<?x?xf64>, %kept : index) {
  activation.reverse_steps @shadows_that_change_places_step %kept (%x, %h : memref<?x?xf64>, memref<?x?xf64>) shadows (%x_shadow, %h_shadow : memref<?x?xf64>, memref<?x?xf64>) of [0, 1] moves [1, 0] reads [0, 1] writes [1] live [1]
  func.return
}

// CHECK-LABEL: func.func private @shadows_that_change_places_step_backward(
// CHECK-NOT:     %total
// CHECK:         array.matmul %column, %row into %x_shadow accumulate :
func.func private @shadows_that_change_places_step_forward(%i : index, %x : memref<?x?xf64>, %h : memref<?x?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 1, 2>, keeps = 2 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %h, %c0 : memref<?x?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @shadows_that_change_places_step_backward(%saved : memref<?xf64>, %n : index, %x_shadow : memref<?x?xf64>, %h_shadow : memref<?x?xf64>) attributes {overlaps = [], kept = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %saved[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
  %row = array.view %saved[%c0] dims [-1, 0] extents(%c1, %n) steps(%c0, %c1) : memref<?xf64> -> memref<1x?xf64, strided<[0, 1]>>
  array.matmul %column, %row into %x_shadow accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  func.return
}

// A step reads what the steps before it have added.
// CHECK-LABEL: func.func @steps_that_read_the_sum(
// CHECK-NOT:     shared
// CHECK:         func.return
func.func @steps_that_read_the_sum(%x : memref<?x?xf64>, %h : memref<?xf64>, %w_shadow : memref<?x?xf64>, %h_shadow : memref<?xf64>, %kept : index) {
  activation.reverse_steps @steps_that_read_the_sum_step %kept (%x, %h : memref<?x?xf64>, memref<?xf64>) shadows (%w_shadow, %h_shadow : memref<?x?xf64>, memref<?xf64>) of [0, 1] moves [0, 1] reads [0, 1] writes [1] live [1]
  func.return
}

// CHECK-LABEL: func.func private @steps_that_read_the_sum_step_backward(
// CHECK:         array.matmul %column, %row into %w_shadow accumulate :
func.func private @steps_that_read_the_sum_step_forward(%i : index, %x : memref<?x?xf64>, %h : memref<?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 2>, keeps = 2 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %h, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @steps_that_read_the_sum_step_backward(%saved : memref<?xf64>, %n : index, %w_shadow : memref<?x?xf64>, %h_shadow : memref<?xf64>) attributes {overlaps = [], kept = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %h_shadow[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
  %row = array.view %saved[%c0] dims [-1, 0] extents(%c1, %n) steps(%c0, %c1) : memref<?xf64> -> memref<1x?xf64, strided<[0, 1]>>
  array.matmul %column, %row into %w_shadow accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  %e = memref.load %w_shadow[%c0, %c1] : memref<?x?xf64>
  memref.store %e, %h_shadow[%c0] : memref<?xf64>
  func.return
}

// Steps would collect two products, and the gradient without a budget collects one of them.
// CHECK-LABEL: func.func @products_that_the_gradient_does_not_collect(
// CHECK-NOT:     shared
// CHECK:         func.return
func.func @products_that_the_gradient_does_not_collect(%x : memref<?x?xf64>, %h : memref<?xf64>, %w_shadow : memref<?x?xf64>, %v_shadow : memref<?x?xf64>, %kept : index) {
  activation.reverse_steps @products_that_the_gradient_does_not_collect_step %kept (%x, %h : memref<?x?xf64>, memref<?xf64>) shadows (%w_shadow, %v_shadow : memref<?x?xf64>, memref<?x?xf64>) of [0, 1] moves [0, 1] reads [0, 1] writes [1] live [1]
  func.return
}

// CHECK-LABEL: func.func private @products_that_the_gradient_does_not_collect_step_backward(
// CHECK:         array.matmul %column, %row into %w_shadow accumulate :
// CHECK:         array.matmul %column, %row into %v_shadow accumulate :
func.func private @products_that_the_gradient_does_not_collect_step_forward(%i : index, %x : memref<?x?xf64>, %h : memref<?xf64>) -> (memref<?xf64>, index) attributes {overlaps = [], changing = array<i64: 2>, keeps = 2 : i64} {
  %0 = ad.tape
  %c0 = arith.constant 0 : index
  %n = memref.dim %h, %c0 : memref<?xf64>
  %saved = ad.push %0(%n) : memref<?xf64>
  func.return %saved, %n : memref<?xf64>, index
}
func.func private @products_that_the_gradient_does_not_collect_step_backward(%saved : memref<?xf64>, %n : index, %w_shadow : memref<?x?xf64>, %v_shadow : memref<?x?xf64>) attributes {overlaps = [], kept = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %saved[%c0] dims [0, -1] extents(%n, %c1) steps(%c1, %c0) : memref<?xf64> -> memref<?x1xf64, strided<[1, 0]>>
  %row = array.view %saved[%c0] dims [-1, 0] extents(%c1, %n) steps(%c0, %c1) : memref<?xf64> -> memref<1x?xf64, strided<[0, 1]>>
  array.matmul %column, %row into %w_shadow accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  array.matmul %column, %row into %v_shadow accumulate : memref<?x1xf64, strided<[1, 0]>>, memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>
  func.return
}
