// RUN: mutad-opt %s -p reverse | filecheck %s
// RUN: mutad-opt %s -p reverse --run --only square_and_call_gradient --args 'x=2, n=3' | filecheck %s --check-prefix VALUES

// RUN: mutad-opt %s -p reverse,reverse | filecheck %s --check-prefix TWICE
// RUN: mutad-opt %s -p reverse,reverse --run --only square_and_call_gradient_gradient --args 'x=2, n=3, y_bar=1, result_0_bar=0, result_1_bar=1' | filecheck %s --check-prefix SECOND

// Reversed once more, both calls keep records; the adjoint of what was the backward call is given both.
// TWICE-LABEL: @square_and_call_gradient_gradient
// TWICE:         %[[R:[a-z_0-9]+]], %y = activation.call @power_forward_forward(%s, %n
// TWICE:         %[[S:[a-z_0-9]+]], %{{.*}} = activation.call @power_backward_forward(%[[R]],
// TWICE:         activation.call @power_backward_backward(%[[S]], %[[R]],
// TWICE:         activation.call @power_forward_backward(%[[R]],
// TWICE-LABEL: func.func private @power_backward_backward(
// TWICE-SAME:    records = array<i64:
// 30 x**4 at 2.
// SECOND:        x_bar = 480

// The call keeps a record, which the adjoint is called with.
// CHECK-LABEL: @square_and_call_gradient
// CHECK:         %r, %y = activation.call @power_forward(%s, %n
// CHECK:         activation.call @power_backward(%r, {{.*}} -> f64
// (x**2)**3 at 2.
// VALUES:        result = 64
// VALUES-NEXT:   x_bar = 192
func.func @square_and_call(%x : f64, %n : index) -> f64 {
  %s = arith.mulf %x, %x : f64
  %r, %y = activation.call @power(%s, %n : f64, index) frames 1 reads [] writes [] -> f64
  func.return %y : f64
}

// What is saved in the branch crosses in the record; so does what the branch depends on.
// CHECK-LABEL: func.func private @power_forward(%x: f64, %n: index) -> (f64,
// CHECK:         activation.call @power_forward(%x, %m
// CHECK-LABEL: func.func private @power_backward(
// CHECK-SAME:    kept = 4 : i64
// CHECK:         scf.if
// CHECK:           activation.call @power_backward(%{{.*}} -> f64
// CHECK-LABEL: func.func private @power(
// CHECK:         activation.call @power(
func.func private @power(%x : f64, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %done = arith.cmpi eq, %n, %c0 : index
  %p = scf.if %done -> (f64) {
    %one = arith.constant 1.0 : f64
    scf.yield %one : f64
  } else {
    %c1 = arith.constant 1 : index
    %m = arith.subi %n, %c1 : index
    %r, %q = activation.call @power(%x, %m : f64, index) frames 1 reads [] writes [] -> f64
    %z = arith.mulf %x, %q : f64
    scf.yield %z : f64
  }
  func.return %p : f64
}

// An array that something writes may have changed when the adjoint runs: what it needs of it is kept.
// CHECK-LABEL: func.func private @dot_forward(
// CHECK:         memref.load %a
// CHECK:         func.return %s, {{.*}} : f64,
// CHECK-LABEL: func.func private @dot_backward(
// CHECK-NOT:     memref.load %a[
// CHECK-LABEL: func.func private @dot(
func.func @dot_and_store(%a : memref<?xf64>, %b : memref<?xf64>, %v : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %r, %y = activation.call @dot(%a, %b, %c0 : memref<?xf64>, memref<?xf64>, index) frames 1 reads [0, 1] writes [] -> f64
  memref.store %v, %a[%c0] : memref<?xf64>
  memref.store %v, %b[%c0] : memref<?xf64>
  func.return %y : f64
}

func.func private @dot(%a : memref<?xf64>, %b : memref<?xf64>, %i : index) -> f64 {
  %x = memref.load %a[%i] : memref<?xf64>
  %y = memref.load %b[%i] : memref<?xf64>
  %s = arith.mulf %x, %y : f64
  func.return %s : f64
}
