// RUN: mutad-opt %s -p reverse,promote-scalars | filecheck %s

// An interior and an edge: both are filled again from the old contents of %u, which alone are saved.
// CHECK-LABEL: @a_scratch_array_is_filled_again_gradient(
// CHECK:         %u_saved = ad.push
// CHECK-NOT:     ad.push
// CHECK:         [[again:%t_again[_0-9]*]] = array.alloc(
// CHECK:         array.view [[again]][
// CHECK:         memref.store {{%.*}}, [[again]][%c0
func.func @a_scratch_array_is_filled_again(%u : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %less = arith.subi %n, %c1 : index
  %trips = array.loop %i to %steps do {
    %t = array.alloc(%n) : memref<?xf64>
    %left = array.view %u[%c0] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %right = array.view %u[%c1] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %inner = array.view %t[%c1] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%less) ins(%left, %right : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%inner : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %d = arith.subf %a, %b : f64
      array.yield %d : f64
    }
    %edge = memref.load %u[%c0] : memref<?xf64>
    memref.store %edge, %t[%c0] : memref<?xf64>
    array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64, %q : f64):
      %product = arith.mulf %p, %q : f64
      array.yield %product : f64
    }
    array.yield
  }
  func.return
}

// The edge is that before the loop: the array is made there, and each iteration fills its interior.
// CHECK-LABEL: @the_rest_is_as_before_the_loop_gradient(
// CHECK:         %u_saved = ad.push
// CHECK-NOT:     ad.push
// CHECK:         [[again:%t_again[_0-9]*]] = array.alloc(
// CHECK:         [[start:%t_again[_0-9]*]] = array.alloc(
// CHECK:         array.map(%n) outs([[start]] :
// CHECK:         array.map(%n) ins([[start]] : memref<?xf64>) outs([[again]] :
// CHECK:         array.loop
// CHECK-NOT:       array.alloc(
// CHECK:           array.view [[again]][%c1
func.func @the_rest_is_as_before_the_loop(%u : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %less = arith.subi %n, %c1 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips = array.loop %i to %steps do {
    %left = array.view %u[%c0] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %inner = array.view %t[%c1] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%less) ins(%left : memref<?xf64, strided<[1]>>) outs(%inner : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64, %q : f64):
      %product = arith.mulf %p, %q : f64
      array.yield %product : f64
    }
    array.yield
  }
  func.return
}

// An iteration stores to what the next one does not fill: the array is saved.
// CHECK-LABEL: @the_rest_changes_gradient(
// CHECK-DAG:     %q_saved = ad.push
// CHECK-DAG:     %p_saved = ad.push
// CHECK-NOT:     %t_again
// CHECK:         func.return
func.func @the_rest_changes(%u : memref<?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %less = arith.subi %n, %c1 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips = array.loop %i to %steps do {
    %left = array.view %u[%c0] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %inner = array.view %t[%c1] dims [0] extents(%less) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%less) ins(%left : memref<?xf64, strided<[1]>>) outs(%inner : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n) ins(%t, %u : memref<?xf64>, memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64, %q : f64):
      %product = arith.mulf %p, %q : f64
      array.yield %product : f64
    }
    %edge = memref.load %u[%c0] : memref<?xf64>
    memref.store %edge, %t[%c0] : memref<?xf64>
    array.yield
  }
  func.return
}

// The product reads %t as the loop has left it; nobody computes a product again.
// CHECK-LABEL: @a_product_is_not_computed_again_gradient(
// CHECK:         %p_saved = ad.push
func.func @a_product_is_not_computed_again(%a : memref<?x?xf64>, %x : memref<?x1xf64>, %n : index, %steps : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %steps do {
    %y = array.alloc(%n, %c1) : memref<?x1xf64>
    array.matmul %a, %x into %y : memref<?x?xf64>, memref<?x1xf64>, memref<?x1xf64>
    array.map(%n, %c1) ins(%y : memref<?x1xf64>) outs(%x : memref<?x1xf64>) kinds ["add"] {
    ^bb0(%p : f64):
      %square = arith.mulf %p, %p : f64
      array.yield %square : f64
    }
    array.yield
  }
  func.return
}

// What is recorded is read from the record, one row earlier.
// CHECK-LABEL: @a_recorded_state_is_not_saved_gradient(
// CHECK:         %u_saved = ad.push {{%[0-9]+}}({{%[0-9]+}}) : memref<?xf64>
// CHECK-NOT:     ad.push
// CHECK:         array.loop
// CHECK:         array.loop
// CHECK:           [[before:%[0-9]+]] = arith.subi %t{{[_0-9]*}}, {{%[0-9]+}} : index
// CHECK:           array.view %h[[[before]], {{.*}}]
func.func @a_recorded_state_is_not_saved(%u : memref<?xf64>, %h : memref<?x?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64):
      %square = arith.mulf %p, %p : f64
      array.yield %square : f64
    }
    %row = array.view %h[%t, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
    ^bb0(%p : f64):
      array.yield %p : f64
    }
    array.yield
  }
  func.return
}
