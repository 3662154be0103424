// RUN: mutad-opt %s -p drop-guards | filecheck %s

// Guards in a loop, gradients in a number and an array: both are looked at.
// CHECK-LABEL: @in_a_loop(
// CHECK-NOT:     ad.mul
// CHECK:         arith.mulf %{{.*}}, %p {ad.adjoint}
// CHECK:         arith.divf
// CHECK:         %wrong = memref.alloca() : memref<f64>
// CHECK:         array.map(%{{.*}}) ins(%x_shadow : memref<?xf64>) outs(%{{.*}}) kinds ["add"]
// CHECK:           arith.cmpf uno
// CHECK:         arith.cmpf uno, %p_bar, %p_bar
// CHECK:         %[[WRONG:.*]] = arith.cmpf ogt,
// CHECK-NEXT:    ad.retry_if %[[WRONG]]
// CHECK-NEXT:    func.return
func.func @in_a_loop(%x : memref<?xf64>, %p : f64, %n : index, %x_shadow : memref<?xf64>, %bar : f64) -> f64
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xf64>
      %m = ad.mul %b, %p {ad.adjoint} : f64
      %q = ad.div %m, %p : f64
      memref.store %q, %x_shadow[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %p_bar = ad.mul %bar, %p : f64
  func.return %p_bar : f64
}

// One guard for each element: to look at the gradient costs as much.
// CHECK-LABEL: @too_few(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @too_few(%x : memref<?xf64>, %n : index, %x_shadow : memref<?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x_shadow : memref<?xf64>) kinds ["add"] {
  ^bb0(%e : f64):
    %m = ad.mul %bar, %e : f64
    array.yield %m : f64
  }
  func.return
}

// What the call stores to an argument is undone before the call is made again.
// CHECK-LABEL: @argument_is_changed(
// CHECK:         %x_before = array.alloc(%[[N:.*]]) : memref<?xf64>
// CHECK-NEXT:    array.map(%[[N]]) ins(%x : memref<?xf64>) outs(%x_before : memref<?xf64>) kinds ["store"]
// CHECK-NOT:     ad.mul
// CHECK:         %[[WRONG:.*]] = arith.cmpf ogt,
// CHECK-NEXT:    scf.if %[[WRONG]] {
// CHECK-NEXT:      array.map(%[[N]]) ins(%x_before : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"]
// CHECK:         ad.retry_if %[[WRONG]]
func.func @argument_is_changed(%x : memref<?xf64>, %p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      memref.store %p, %x[%i] : memref<?xf64>
      %b = memref.load %cell[] : memref<f64>
      %m = ad.mul %b, %p : f64
      memref.store %m, %cell[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// One guard for each element that would have to be copied.
// CHECK-LABEL: @copies_would_cost_more(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @copies_would_cost_more(%x : memref<?xf64>, %p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    memref.store %p, %x[%i] : memref<?xf64>
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    memref.store %m, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// A private function follows its caller: the shadow that it is handed is looked at there.
// CHECK-LABEL: @calls(
// CHECK:         array.map(%{{.*}}) ins(%x_shadow : memref<?xf64>) outs(%{{.*}}) kinds ["add"]
// CHECK:         ad.retry_if
// CHECK-LABEL: private @called(
// CHECK-NOT:     ad.mul
// CHECK:         arith.mulf
func.func @calls(%x : memref<?xf64>, %p : f64, %n : index, %x_shadow : memref<?xf64>, %bar : f64)
    attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64>} {
  %record = activation.call @called(%n, %x_shadow, %p : index, memref<?xf64>, f64) frames 1
      reads [1 : i64] writes [1 : i64]
  func.return
}
func.func private @called(%n : index, %a : memref<?xf64>, %p : f64) {
  %b = memref.load %a[%n] : memref<?xf64>
  %m = ad.mul %b, %p : f64
  memref.store %m, %a[%n] : memref<?xf64>
  func.return
}

// What it returns is compared by its caller.
// CHECK-LABEL: @compares_what_is_returned(
// CHECK-NOT:     ad.retry_if
// CHECK-LABEL: private @returns_a_cotangent(
// CHECK:         ad.mul
func.func @compares_what_is_returned(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %record, %m = activation.call @returns_a_cotangent(%bar, %p : f64, f64) frames 1 reads [] writes [] -> f64
  %large = arith.cmpf ogt, %m, %p : f64
  %c = arith.select %large, %p, %m : f64
  func.return %c : f64
}
func.func private @returns_a_cotangent(%b : f64, %p : f64) -> f64 {
  %m = ad.mul %b, %p : f64
  func.return %m : f64
}

// Tangents that are results are looked at like gradients.
// CHECK-LABEL: @tangent(
// CHECK-NOT:     ad.mul
// CHECK:         array.map(%{{.*}}) ins(%made : memref<?xf64>) outs(%{{.*}}) kinds ["add"]
// CHECK:         ad.retry_if
func.func @tangent(%p : f64, %n : index, %p_dot : f64) -> (memref<?xf64>, memref<?xf64>)
    attributes {moving = array<i64: 0>, moved = array<i64: 0>} {
  %whole = array.alloc(%n) : memref<?xf64>
  %made = array.alloc(%n) : memref<?xf64>
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %m = ad.mul %p_dot, %p : f64
      memref.store %m, %made[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return %whole, %made : memref<?xf64>, memref<?xf64>
}

// Where the primal raises, the caller sees the tangents that are stored by then.
// CHECK-LABEL: @raises_halfway(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @raises_halfway(%x : memref<?xf64>, %p : f64, %n : index, %bad : i1, %x_dot : memref<?xf64>)
    attributes {moving = array<i64: 0>, moved = array<i64>} {
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      array.raise_if %bad, "ValueError", "no"
      %b = memref.load %x_dot[%i] : memref<?xf64>
      %m = ad.mul %b, %p : f64
      memref.store %m, %x_dot[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A comparison makes a truth of a NaN, and a branch of that: nobody would see the NaN.
// CHECK-LABEL: @cotangent_is_compared(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @cotangent_is_compared(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    %large = arith.cmpf ogt, %m, %p : f64
    %c = arith.select %large, %p, %m : f64
    memref.store %c, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// The minimum drops a NaN.
// CHECK-LABEL: @least_of_a_map(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @least_of_a_map(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %c0 = arith.constant 0 : index
  %view = array.view %cell[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) outs(%view : memref<?xf64, strided<[0]>>) kinds ["min"] {
    %m = ad.mul %bar, %p : f64
    array.yield %m : f64
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @printed(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @printed(%p : f64, %n : index, %bar : f64) -> f64
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %cell = memref.alloca() : memref<f64>
  memref.store %bar, %cell[] : memref<f64>
  %t = array.loop %i to %n do {
    %b = memref.load %cell[] : memref<f64>
    %m = ad.mul %b, %p : f64
    memref.store %m, %cell[] : memref<f64>
    array.print "{}"(%p : f64)
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// A result that is a gradient itself is looked at, too.
// CHECK-LABEL: @returned(
// CHECK-NOT:     ad.mul
// CHECK:         array.map(%{{.*}}) ins(%made : memref<?xf64>) outs(%{{.*}}) kinds ["add"]
// CHECK:         ad.retry_if
func.func @returned(%p : f64, %n : index, %bar : f64) -> (memref<?xf64>, f64)
    attributes {shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0>} {
  %made = array.alloc(%n) : memref<?xf64>
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %m = ad.mul %bar, %p : f64
      memref.store %m, %made[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return %made, %p : memref<?xf64>, f64
}

// Several cotangents at once: of arrays zeros are added up, in which a NaN stays one, then the lanes.
// CHECK-LABEL: @in_lanes(
// CHECK-NOT:     ad.mul
// CHECK:         arith.mulf %{{.*}}, %{{.*}} {ad.adjoint} : vector<2xf64>
// CHECK:         array.map(%{{.*}}) ins(%x_shadow : memref<?xvector<2xf64>>) outs(%{{.*}}) kinds ["add"]
// CHECK:           arith.mulf %{{.*}}, %{{.*}} : vector<2xf64>
// CHECK:         vector.extract %{{.*}} : f64 from vector<2xf64>
// CHECK:         vector.extract %{{.*}} : f64 from vector<2xf64>
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK:         arith.cmpf uno, %[[SUM]], %[[SUM]]
// CHECK:         ad.retry_if
func.func @in_lanes(%x : memref<?xf64>, %p : f64, %n : index, %x_shadow : memref<?xvector<2xf64>>, %bar : vector<2xf64>)
    -> vector<2xf64> attributes {shadows = array<i64: 0>, cotangents = array<i64: 0>, scalars = array<i64: 1>} {
  %t = array.loop %i to %n do {
    %t2 = array.loop %j to %n do {
      %b = memref.load %x_shadow[%j] : memref<?xvector<2xf64>>
      %f = vector.broadcast %p : f64 to vector<2xf64>
      %m = ad.mul %b, %f {ad.adjoint} : vector<2xf64>
      memref.store %m, %x_shadow[%j] : memref<?xvector<2xf64>>
      array.yield
    }
    array.yield
  }
  func.return %bar : vector<2xf64>
}

// A tangent that is saved comes back from the tape, and from there to what is looked at.
// CHECK-LABEL: @saved_tangents(
// CHECK-NOT:     ad.mul
// CHECK:         ad.retry_if
func.func @saved_tangents(%p : f64, %n : index, %p_dot : f64) -> (f64, f64)
    attributes {moving = array<i64: 0>, moved = array<i64: 0>} {
  %tape = ad.tape
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %one = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %saved = ad.push %tape(%one) : memref<1xf64>
    %m = ad.mul %p_dot, %p : f64
    %c0 = arith.constant 0 : index
    memref.store %m, %saved[%c0] : memref<1xf64>
    array.yield
  }
  %t2 = array.loop %j to %n do {
    %read = ad.pop %tape(%one) : memref<1xf64>
    %c0 = arith.constant 0 : index
    %m = memref.load %read[%c0] : memref<1xf64>
    %old = memref.load %cell[] : memref<f64>
    %new = arith.addf %old, %m : f64
    memref.store %new, %cell[] : memref<f64>
    array.yield
  }
  %sum = memref.load %cell[] : memref<f64>
  func.return %p, %sum : f64, f64
}

// CHECK-LABEL: @saved_tangent_is_compared(
// CHECK:         ad.mul
// CHECK-NOT:     ad.retry_if
func.func @saved_tangent_is_compared(%p : f64, %n : index, %p_dot : f64) -> (f64, f64)
    attributes {moving = array<i64: 0>, moved = array<i64: 0>} {
  %tape = ad.tape
  %cell = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %cell[] : memref<f64>
  %one = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %saved = ad.push %tape(%one) : memref<1xf64>
    %m = ad.mul %p_dot, %p : f64
    %c0 = arith.constant 0 : index
    memref.store %m, %saved[%c0] : memref<1xf64>
    array.yield
  }
  %t2 = array.loop %j to %n do {
    %read = ad.pop %tape(%one) : memref<1xf64>
    %c0 = arith.constant 0 : index
    %m = memref.load %read[%c0] : memref<1xf64>
    %above = arith.cmpf ogt, %m, %zero : f64
    %chosen = arith.select %above, %p, %zero : f64
    memref.store %chosen, %cell[] : memref<f64>
    array.yield
  }
  %last = memref.load %cell[] : memref<f64>
  func.return %p, %last : f64, f64
}

// Vectors over a number are products with its reciprocal; one that is infinite is NaN, which is seen.
// CHECK-LABEL: @one_reciprocal_for_all_lanes(
// CHECK:         %[[R:.*]] = arith.divf %{{.*}}, %p {ad.adjoint} : f64
// CHECK:         %[[FINITE:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}} : f64
// CHECK-NEXT:    %[[KEPT:.*]] = arith.select %[[FINITE]], %[[R]], %{{.*}} {ad.adjoint} : f64
// CHECK-NEXT:    %over = vector.broadcast %[[KEPT]] {ad.adjoint} : f64 to vector<8xf64>
// CHECK-NOT:     arith.divf {{.*}} : vector<8xf64>
// CHECK:         arith.mulf %x_dot_1, %over : vector<8xf64>
// CHECK-NEXT:    arith.mulf %{{.*}}, %over : vector<8xf64>
// CHECK:         ad.retry_if
func.func @one_reciprocal_for_all_lanes(%x : memref<?xf64>, %p : f64, %n : index, %x_dot : memref<?xvector<8xf64>>)
    -> (f64, vector<8xf64>) attributes {moving = array<i64: 0>, moved = array<i64: 0>} {
  %cell = memref.alloca() : memref<vector<8xf64>>
  %zero = arith.constant dense<0.000000e+00> : vector<8xf64>
  memref.store %zero, %cell[] : memref<vector<8xf64>>
  %d = vector.broadcast %p : f64 to vector<8xf64>
  %t = array.loop %i to %n do {
    %x_dot_1 = memref.load %x_dot[%i] : memref<?xvector<8xf64>>
    %m = ad.div %x_dot_1, %d : vector<8xf64>
    %q = ad.div %m, %d : vector<8xf64>
    memref.store %q, %cell[] : memref<vector<8xf64>>
    array.yield
  }
  %dot = memref.load %cell[] : memref<vector<8xf64>>
  func.return %p, %dot : f64, vector<8xf64>
}
