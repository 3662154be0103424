// RUN: mutad-opt %s -p print-plan | filecheck %s
// RUN: mutad-opt %s -p reverse | filecheck %s --check-prefix REVERSED
// RUN: mutad-opt %s -p reverse --run --only truths_of_what_is_overwritten_gradient --args 'u=[1, 2, 5], w=[3, 2, 4], n=3, u_shadow=[0, 0, 0], w_shadow=[0, 0, 0], result_bar=1' | filecheck %s --check-prefix VALUES

// Which side is less is saved, in two bits, not the two numbers.
// CHECK-LABEL: @truths_of_what_is_overwritten
// CHECK-NOT:     plan = ["save %a
// CHECK:         arith.cmpf ole, %a, %b
// CHECK-NEXT:    arith.cmpf oge, %a, %b
// CHECK-NEXT:    arith.minimumf %a, %b
// CHECK-NOT:     ad.minimum
// REVERSED-LABEL: @truths_of_what_is_overwritten_gradient
// REVERSED:      %least_saved = ad.push %{{.*}} : memref<?xi8>
// REVERSED:      %least_saved_1 = ad.push %{{.*}} : memref<?xi8>
// REVERSED-NOT:  ad.push
// REVERSED-NOT:  ad.minimum
// 1 < 3, 2 = 2, 5 > 4.
// VALUES:        u_shadow = [1, 0.5, 0]
// VALUES-NEXT:   w_shadow = [0, 0.5, 1]
func.func @truths_of_what_is_overwritten(%u : memref<?xf64>, %w : memref<?xf64>, %n : index) -> f64 {
  %total = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %u[%i] : memref<?xf64>
    %b = memref.load %w[%i] : memref<?xf64>
    %least = arith.minimumf %a, %b : f64
    memref.store %zero, %u[%i] : memref<?xf64>
    memref.store %zero, %w[%i] : memref<?xf64>
    %before = memref.load %total[] : memref<f64>
    %sum = arith.addf %before, %least : f64
    memref.store %sum, %total[] : memref<f64>
    array.yield
  }
  %result = memref.load %total[] : memref<f64>
  func.return %result : f64
}

// CHECK-LABEL: @nothing_where_operands_are_had
// CHECK:         arith.maximumf %a, %b
// REVERSED-LABEL: @nothing_where_operands_are_had_gradient
// REVERSED-NOT:  ad.push
func.func @nothing_where_operands_are_had(%u : memref<?xf64>, %w : memref<?xf64>, %n : index) -> f64 {
  %total = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %u[%i] : memref<?xf64>
    %b = memref.load %w[%i] : memref<?xf64>
    %most = arith.maximumf %a, %b : f64
    %before = memref.load %total[] : memref<f64>
    %sum = arith.addf %before, %most : f64
    memref.store %sum, %total[] : memref<f64>
    array.yield
  }
  %result = memref.load %total[] : memref<f64>
  func.return %result : f64
}

// Integers have no cotangents.
// CHECK-LABEL: @nothing_of_integers
// CHECK-NOT:     arith.cmpf
// CHECK:         func.return
// REVERSED-LABEL: @nothing_of_integers
func.func @nothing_of_integers(%u : memref<?xf64>, %n : index, %m : index) {
  %least = arith.minsi %n, %m : index
  %trips = array.loop %i to %least do {
    %a = memref.load %u[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    memref.store %b, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
