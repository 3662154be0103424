// RUN: mutad-opt %s -p 'shorten-recurrences{fastmath=true}' | filecheck %s
// RUN: mutad-opt %s -p shorten-recurrences | filecheck %s --check-prefix EXACT

// Where a budget may run single iterations, only `fastmath` changes anything.
// EXACT-LABEL: @factors_are_multiplied_beside_the_chain
// EXACT-NOT:     %factor

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

// A product that is too small, and not 0, makes the factor NaN; where the sum is not finite, the chain is the
// program's.
// CHECK-LABEL: @products_are_checked
// CHECK-NOT:     scf.if
// EXACT-LABEL: @products_are_checked
// EXACT:         [[both:%factor]] = arith.mulf %a, %p
// EXACT:         %factor_1 = arith.addf
// EXACT:         arith.constant 2.2250738585072014e-308
// EXACT:         math.absf [[both]]
// EXACT:         [[a:%nonzero]] = arith.cmpf one, %a
// EXACT:         [[p:%nonzero_1]] = arith.cmpf one, %p
// EXACT:         [[checked:%factor_2]] = arith.select %{{.*}}, %no_number, %factor_1
// EXACT:         %product = arith.mulf %bar, [[checked]]
// EXACT:         [[finite:%finite]] = arith.cmpf olt
// EXACT:         [[next:%next]] = scf.if [[finite]] -> (f64) {
// EXACT-NEXT:      scf.yield %product
// EXACT-NEXT:    } else {
// EXACT:           arith.mulf %bar, %a
// EXACT:           arith.mulf
// EXACT:           [[own:%thrice]] = arith.negf
// EXACT:           [[last:%last]] = arith.addf [[own]], %bar
// EXACT-NEXT:      scf.yield [[last]]
// EXACT-NEXT:    }{{.*}}shortened = 3
// EXACT:         memref.store [[next]], %cell[]
func.func @products_are_checked(%n : index, %x : memref<?xf64>, %a : f64) -> f64 {
  %cell = memref.alloca() : memref<f64>
  memref.store %a, %cell[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %a {ad.adjoint} : f64
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    %thrice = arith.negf %twice {ad.adjoint} : f64
    %last = arith.addf %thrice, %bar {ad.adjoint} : f64
    memref.store %last, %cell[] : memref<f64>
    array.yield
  } {of_numbers}
  %r = memref.load %cell[] : memref<f64>
  func.return %r : f64
}

// Single precision has a larger least number.
// EXACT-LABEL: @of_single_precision
// EXACT:         arith.constant 1.17549{{.*}}e-38 : f32
func.func @of_single_precision(%n : index, %x : memref<?xf32>, %a : f32) -> f32 {
  %cell = memref.alloca() : memref<f32>
  memref.store %a, %cell[] : memref<f32>
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf32>
    %bar = memref.load %cell[] : memref<f32>
    %once = arith.mulf %bar, %a {ad.adjoint} : f32
    %twice = arith.mulf %once, %p {ad.adjoint} : f32
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f32
    memref.store %thrice, %cell[] : memref<f32>
    array.yield
  } {of_numbers}
  %r = memref.load %cell[] : memref<f32>
  func.return %r : f32
}

// A step of a loop is handed its variable.
// EXACT-LABEL: @of_a_variable_that_is_handed_in
// EXACT:         scf.if
func.func private @of_a_variable_that_is_handed_in(%n : index, %x : memref<?xf64>, %cell : memref<f64>) attributes {overlaps = []} {
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %p {ad.adjoint} : f64
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  } {of_numbers}
  func.return
}

// What the loop loads may be the variable.
// EXACT-LABEL: @kept_where_the_variable_may_be_an_element
// EXACT-NOT:     scf.if
// EXACT:         func.return
func.func @kept_where_the_variable_may_be_an_element(%n : index, %x : memref<?xf64>, %cell : memref<f64>) attributes {overlaps = [[1 : i64, 2 : i64]]} {
  %trips = array.loop %i to %n do {
    %p = memref.load %x[%i] : memref<?xf64>
    %bar = memref.load %cell[] : memref<f64>
    %once = arith.mulf %bar, %p {ad.adjoint} : f64
    %twice = arith.mulf %once, %p {ad.adjoint} : f64
    %thrice = arith.mulf %twice, %p {ad.adjoint} : f64
    memref.store %thrice, %cell[] : memref<f64>
    array.yield
  } {of_numbers}
  func.return
}
