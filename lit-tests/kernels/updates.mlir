// RUN: mutad-opt %s -p outline-kernels | filecheck %s

// Integers add up in any order.
// (Kernels come behind all functions.)
func.func @bins(%n : index, %k : memref<?xindex>, %h : memref<?xi64>) {
  %one = arith.constant 1 : i64
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %old = memref.load %h[%at] : memref<?xi64>
    %new = arith.addi %old, %one : i64
    memref.store %new, %h[%at] : memref<?xi64>
    array.yield
  }
  func.return
}

// The program's own sums of floating-point numbers keep their order; many iterations are sorted.
// CHECK-LABEL: func.func @in_order(
// CHECK:         scf.if %[[MANY:.*]] {
// CHECK:           device.launch @in_order_0
// CHECK:           array.loop
// CHECK:             device.launch @in_order_1
// CHECK:             device.launch @in_order_1
// CHECK:         scf.if
// CHECK:           device.launch @in_order_2
// CHECK:         scf.if %[[MANY]] {
// CHECK:           device.launch @in_order_3
func.func @in_order(%n : index, %k : memref<?xindex>, %v : memref<?xf64>, %u : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %x = memref.load %v[%i] : memref<?xf64>
    %old = memref.load %u[%at] : memref<?xf64>
    %new = arith.addf %old, %x : f64
    memref.store %new, %u[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// They are sorted once where no loop around stores to the subscripts, and elements are read where there are any.
// CHECK-LABEL: func.func @sorted_once(
// CHECK:         scf.if
// CHECK:           device.launch @sorted_once_1
// CHECK:         array.loop %t to %steps do {
// CHECK-NOT:       array.alloc
// CHECK:           device.launch @sorted_once_0
// CHECK:           scf.if
// CHECK:             device.launch @sorted_once_3
// CHECK:           scf.if
// CHECK:             device.launch @sorted_once_4
func.func @sorted_once(%n : index, %steps : index, %k : memref<?xindex>, %v : memref<?xf64>, %u : memref<?xf64>, %w : memref<?xf64>, %x0 : f64) {
  %turns = array.loop %t to %steps do {
    array.map(%n) outs(%w : memref<?xf64>) kinds ["store"] {
      array.yield %x0 : f64
    }
    %trips = array.loop %i to %n do {
      %at = memref.load %k[%i] : memref<?xindex>
      %x = memref.load %v[%i] : memref<?xf64>
      %old = memref.load %u[%at] : memref<?xf64>
      %new = arith.addf %old, %x : f64
      memref.store %new, %u[%at] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @sorted_each_time(
// CHECK:         array.loop %t to %steps do {
// CHECK:           scf.if
// CHECK:             device.launch @sorted_each_time_1
// CHECK:             array.loop
// CHECK:               device.launch @sorted_each_time_2
func.func @sorted_each_time(%n : index, %steps : index, %k : memref<?xindex>, %v : memref<?xf64>, %u : memref<?xf64>, %w : memref<?xf64>, %x0 : f64) {
  %zero = arith.constant 0 : index
  %turns = array.loop %t to %steps do {
    array.map(%n) outs(%w : memref<?xf64>) kinds ["store"] {
      array.yield %x0 : f64
    }
    %trips = array.loop %i to %n do {
      %at = memref.load %k[%i] : memref<?xindex>
      %x = memref.load %v[%i] : memref<?xf64>
      %old = memref.load %u[%at] : memref<?xf64>
      %new = arith.addf %old, %x : f64
      memref.store %new, %u[%at] : memref<?xf64>
      array.yield
    }
    memref.store %t, %k[%zero] : memref<?xindex>
    array.yield
  }
  func.return
}

// One element of all iterations: threads add up, and meet in shared memory.
// CHECK-LABEL: func.func @uniform
// CHECK:         %[[V:.*]] = array.view %s[%j] dims []
// CHECK:         device.launch @uniform_0
// CHECK:         device.launch @uniform_1 blocks(%{{.*}}) (%{{.*}}, %{{.*}}, %[[V]] :
func.func @uniform(%n : index, %j : index, %v : memref<?xf64>, %s : memref<?xf64>, %w : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %x = memref.load %v[%i] : memref<?xf64>
    memref.store %x, %w[%i] : memref<?xf64>
    %old = memref.load %s[%j] : memref<?xf64>
    %new = arith.subf %old, %x {ad.adjoint} : f64
    memref.store %new, %s[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// Iterations that meet have one owner, which does all that they do.
func.func @two_arrays_at_one_subscript(%n : index, %k : memref<?xindex>, %u : memref<?xf64>, %w : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %at = memref.load %k[%i] : memref<?xindex>
    %x = memref.load %w[%at] : memref<?xf64>
    memref.store %x, %u[%at] : memref<?xf64>
    %y = math.sin %x : f64
    memref.store %y, %w[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// A block for each element that an inner loop owns: first, for the rest overwrites what it reads. The rest has
// a thread for each row.
// CHECK-LABEL: func.func @weights
// CHECK:         device.launch @weights_0
// CHECK:         device.launch @weights_1
func.func @weights(%n : index, %m : index, %s : memref<?xf64>, %x : memref<?x?xf64>, %w : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %bar = memref.load %s[%i] : memref<?xf64>
    memref.store %zero, %s[%i] : memref<?xf64>
    %inner = array.loop %j to %m do {
      %a = memref.load %x[%i, %j] : memref<?x?xf64>
      %t = arith.mulf %bar, %a : f64
      %old = memref.load %w[%j] : memref<?xf64>
      %new = arith.addf %old, %t {ad.adjoint} : f64
      memref.store %new, %w[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Kept: the term is read from what the nest has stored before.
// CHECK-LABEL: func.func @kept_for_what_is_stored
// CHECK:         device.launch @kept_for_what_is_stored_0
// CHECK-NOT:     device.launch
// CHECK:         func.return
func.func @kept_for_what_is_stored(%n : index, %m : index, %s : memref<?xf64>, %w : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    memref.store %zero, %s[%i] : memref<?xf64>
    %inner = array.loop %j to %m do {
      %bar = memref.load %s[%i] : memref<?xf64>
      %old = memref.load %w[%j] : memref<?xf64>
      %new = arith.addf %old, %bar {ad.adjoint} : f64
      memref.store %new, %w[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Kept: rows of a triangle have trips of their own.
// CHECK-LABEL: func.func @kept_for_triangles
// CHECK:         device.launch @kept_for_triangles_0
// CHECK-NOT:     device.launch
// CHECK:         func.return
func.func @kept_for_triangles(%n : index, %s : memref<?xf64>, %w : memref<?xf64>) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %i do {
      %bar = memref.load %s[%i] : memref<?xf64>
      %old = memref.load %w[%j] : memref<?xf64>
      %new = arith.addf %old, %bar {ad.adjoint} : f64
      memref.store %new, %w[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func private @bins_0
// CHECK:         device.atomic_add %{{.*}}, %h[%{{.*}}] : i64, memref<?xi64, 1 : i64>
// CHECK-LABEL: func.func private @in_order_0
// CHECK-NOT:     device.atomic_add
// CHECK:         arith.remui
// CHECK-LABEL: func.func private @uniform_0
// CHECK-NOT:     device.atomic_add
// CHECK:         memref<256xf64, 3 : i64>
// CHECK-LABEL: func.func private @two_arrays_at_one_subscript_0
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %u[
// CHECK:           memref.store %{{.*}}, %w[
// CHECK-LABEL: func.func private @weights_0
// CHECK-NOT:     device.atomic_add
// CHECK:         memref<256xf64, 3 : i64>
// CHECK-LABEL: func.func private @weights_1
// CHECK-NOT:     %w
// CHECK-LABEL: func.func private @kept_for_what_is_stored_0
// CHECK:         device.atomic_add
// CHECK-LABEL: func.func private @kept_for_triangles_0
// CHECK:         device.atomic_add
