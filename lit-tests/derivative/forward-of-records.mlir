// RUN: mutad-opt %s -p reverse,forward | filecheck %s
// RUN: mutad-opt %s -p "reverse,forward{lanes=3}" | filecheck %s --check-prefix=LANES

// What a forward function keeps with tangents is kept in one record with them: they stand behind it.
// CHECK-LABEL: @call_gradient_tangent(
// CHECK:         %r, %y, %y_dot = activation.call @power_tangent_forward(%x, %n, %x_dot
// CHECK:         activation.call @power_tangent_backward(%r, %{{.*}}, %{{.*}} -> f64, f64
func.func @call(%x : f64, %n : index) -> f64 {
  %r, %y = activation.call @power(%x, %n : f64, index) frames 1 reads [] writes [] -> f64
  func.return %y : f64
}

// CHECK-LABEL: func.func private @power_tangent_forward(%x: f64, %n: index, %x_dot: f64) -> (f64, f64,
// CHECK-SAME:    keeps = 6 : i64
// CHECK:         %r, %q, %q_dot = activation.call @power_tangent_forward(%x, %m, %x_dot
// CHECK-LABEL: func.func private @power_tangent_backward(
// CHECK-SAME:    kept = 6 : i64
// CHECK:         activation.call @power_tangent_backward(
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

// A tape in a record has its tangents on one tape, however many there are of each value.
// LANES-LABEL: func.func private @walk_tangent_backward(
// LANES-SAME:    %[[TAPE:[a-z_0-9]+]]: !ad.tape, {{.*}} %[[DOT:[a-z_0-9]+]]: !ad.tape, %x_dot:
// LANES:         ad.reader %[[TAPE]]
// LANES:         %[[READER:[a-z_0-9]+]] = ad.reader %[[DOT]]
// LANES:         ad.pop %[[READER]]({{.*}}) : memref<?xvector<3xf64>>
func.func @call_walk(%x : memref<?xf64>, %n : index) -> f64 {
  %r, %y = activation.call @walk(%x, %n : memref<?xf64>, index) frames 1 reads [0] writes [] -> f64
  func.return %y : f64
}

func.func private @walk(%x : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %done = arith.cmpi eq, %n, %c0 : index
  %p = scf.if %done -> (f64) {
    %one = arith.constant 1.0 : f64
    scf.yield %one : f64
  } else {
    %c1 = arith.constant 1 : index
    %m = arith.subi %n, %c1 : index
    %r, %q = activation.call @walk(%x, %m : memref<?xf64>, index) frames 1 reads [0] writes [] -> f64
    %z = memref.alloca() : memref<f64>
    memref.store %q, %z[] : memref<f64>
    %trips = array.loop %k to %n do {
      %s = memref.load %z[] : memref<f64>
      %v = memref.load %x[%k] : memref<?xf64>
      %t = arith.mulf %v, %s : f64
      %u = arith.mulf %t, %s : f64
      memref.store %u, %z[] : memref<f64>
      array.yield
    }
    %w = memref.load %z[] : memref<f64>
    scf.yield %w : f64
  }
  func.return %p : f64
}
