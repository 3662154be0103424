// RUN: mutad-opt %s -p 'shorten-recurrences{fastmath=true}' | filecheck %s
// RUN: mutad-opt %s -p shorten-recurrences | filecheck %s --check-prefix EXACT

// EXACT-NOT: %factor

// CHECK-LABEL: @factors_are_multiplied_beside_the_chain
// CHECK:         %bar = memref.load %cell[]
// CHECK-DAG:     [[both:%factor[_0-9]*]] = arith.mulf %a, %p
// CHECK-DAG:     [[some:%added[_0-9]*]] = arith.mulf %p, %a
// CHECK:         [[added:%added[_0-9]*]] = arith.mulf [[some]], %p
// CHECK:         %product = arith.mulf %bar, [[both]] {ad.adjoint}
// CHECK:         %next = arith.addf %product, [[added]] {ad.adjoint}
// CHECK:         memref.store %next, %cell[]
func.func @factors_are_multiplied_beside_the_chain(%n : index, %x : memref<?xf64>, %a : f64, %cell0 : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %cell0, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %sum = arith.addf %bar, %p {ad.adjoint} : f64
    %once = arith.mulf %sum, %a {ad.adjoint} : f64
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    memref.store %twice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// The value that is stored elsewhere is computed as before.
// CHECK-LABEL: @what_is_read_beside_it_stays
// CHECK:         [[once:%once]] = arith.mulf %bar, %a
// CHECK:         memref.store [[once]], %y[%i]
// CHECK-NOT:     %twice
// CHECK:         [[factor:%factor[_0-9]*]] = arith.addf
// CHECK:         %product = arith.mulf %bar, [[factor]]
// CHECK-NEXT:    memref.store %product, %cell[]
func.func @what_is_read_beside_it_stays(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    memref.store %once, %y[%i] : memref<?xf64>
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    %thrice = arith.addf %twice, %bar {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @divisions_and_fused_products_are_linear
// CHECK:         [[a:%factor[_0-9]*]] = arith.divf %one, %p
// CHECK:         [[b:%factor[_0-9]*]] = math.fma [[a]], %a, %one
// CHECK:         [[c:%factor[_0-9]*]] = arith.mulf [[b]], %a
// CHECK:         arith.mulf %bar, [[c]]
func.func @divisions_and_fused_products_are_linear(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.divf %bar, %p {ad.adjoint} : f64
    %twice = math.fma %once, %a, %bar {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %a {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_in_the_primal
// CHECK:         memref.store %thrice, %cell[]
func.func @kept_in_the_primal(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a : f64
    %twice = arith.mulf %once, %p : f64
    %thrice = arith.mulf %twice, %p : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_is_short
// CHECK:         memref.store %twice, %cell[]
func.func @kept_where_it_is_short(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    %minus = arith.negf %once {ad.adjoint} : f64
    %twice = arith.addf %minus, %p {ad.adjoint} : f64
    memref.store %twice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_a_product_is_guarded
// CHECK:         memref.store %thrice, %cell[]
func.func @kept_where_a_product_is_guarded(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = ad.mul %bar, %a {ad.adjoint} : f64
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_is_not_linear
// CHECK:         memref.store %thrice, %cell[]
func.func @kept_where_it_is_not_linear(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    %twice = arith.mulf %once, %bar {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_waits_for_another_chain
// CHECK:         memref.store %thrice, %cell[]
func.func @kept_where_it_waits_for_another_chain(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %other = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  memref.store %a, %other[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %beside = memref.load %other[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    %twice = arith.addf %once, %beside {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    memref.store %once, %other[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_waits_for_what_the_loop_stores
// CHECK:         memref.store %thrice, %cell[]
func.func @kept_where_it_waits_for_what_the_loop_stores(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    %twice = arith.addf %once, %p {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %a {ad.adjoint} : f64
    memref.store %once, %x[%i] : memref<?xf64>
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}
