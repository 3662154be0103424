// RUN: mutad-opt %s -p print-plan | filecheck %s
// RUN: mutad-opt %s -p print-plan{saves="fewest"} | filecheck %s --check-prefix=FEWEST

// A function of elements takes longer than its result on a tape; where bytes alone count, %p serves both.
// CHECK-LABEL: @saved_beside_its_argument
// CHECK:         plan = ["save %e: killed by array.map, needed by math.exp", "save %p: killed by array.map,
// FEWEST-LABEL: @saved_beside_its_argument
// FEWEST-NOT:     save %e
func.func @saved_beside_its_argument(%x : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %t to %m do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64):
      %e = math.exp %p : f64
      %s = arith.mulf %p, %e : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// The same in a loop whose iterations share nothing but a sum.
// CHECK-LABEL: @saved_in_a_loop_like_a_map
// CHECK:           %e = math.exp %p {plan = ["save %e: killed by memref.store, needed by math.exp"]}
// FEWEST-LABEL: @saved_in_a_loop_like_a_map
// FEWEST-NOT:     save %e
func.func @saved_in_a_loop_like_a_map(%x : memref<?xf64>, %n : index, %m : index) -> f64 {
  %total = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %t to %m do {
    %inner = array.loop %i to %n do {
      %p = memref.load %x[%i] : memref<?xf64>
      %e = math.exp %p : f64
      %s = arith.mulf %p, %e : f64
      memref.store %s, %x[%i] : memref<?xf64>
      %a = memref.load %total[] : memref<f64>
      %b = arith.addf %a, %s : f64
      memref.store %b, %total[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %end = memref.load %total[] : memref<f64>
  func.return %end : f64
}

// What survives is read again, and nothing is saved to spare the function.
// CHECK-LABEL: @computed_again_of_what_survives
// CHECK-NOT:     plan
func.func @computed_again_of_what_survives(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %t to %m do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
    ^bb0(%p : f64):
      %e = math.exp %p : f64
      %s = arith.mulf %p, %e : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// A tape over three extents would not stay in the cache.
// CHECK-LABEL: @computed_again_where_the_results_are_many
// CHECK-NOT:     save %e
func.func @computed_again_where_the_results_are_many(%x : memref<?x?xf64>, %n : index, %m : index) {
  %trips = array.loop %t to %m do {
    array.map(%n, %n) ins(%x : memref<?x?xf64>) outs(%x : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%p : f64):
      %e = math.exp %p : f64
      %s = arith.mulf %p, %e : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// An iteration waits for the one before: the forward sweep is bound by that, the reverse sweep is not.
// CHECK-LABEL: @computed_again_in_a_chain
// CHECK-NOT:     save %e
func.func @computed_again_in_a_chain(%x : memref<?xf64>, %n : index) {
  %one = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %j = arith.addi %i, %one : index
    %p = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %p : f64
    %s = arith.mulf %p, %e : f64
    memref.store %s, %x[%i] : memref<?xf64>
    memref.store %s, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// The adjoint of the sine computes the cosine, and that of the cosine the sine: nothing would be spared.
// CHECK-LABEL: @computed_by_the_adjoint_itself
// CHECK:         plan = ["save %p: killed by array.map, needed by math.sin"]
func.func @computed_by_the_adjoint_itself(%x : memref<?xf64>, %n : index, %m : index) {
  %trips = array.loop %t to %m do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
    ^bb0(%p : f64):
      %a = math.sin %p : f64
      %b = math.cos %p : f64
      %s = arith.mulf %a, %b : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}
