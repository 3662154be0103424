// RUN: mutad-opt %s -p running-sums | filecheck %s

// CHECK-LABEL: @a_total_of_sums_is_a_map_of_one_point
// CHECK:         %sum = memref.alloca()
// CHECK-NEXT:    array.loop
// CHECK:           array.map() ins(%total, %sum : memref<f64>, memref<f64>) outs(%total : memref<f64>) kinds ["store"] {
// CHECK-NEXT:      ^bb0(%old: f64, %one: f64):
// CHECK-NEXT:        %scaled = arith.mulf %one, %x : f64
// CHECK-NEXT:        %new = arith.subf %old, %scaled : f64
// CHECK-NEXT:        array.yield %new : f64
// CHECK:         memref.load %total[]
func.func @a_total_of_sums_is_a_map_of_one_point(%n : index, %m : index, %u : memref<?xf64>, %x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %total = memref.alloca() : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %k to %m do {
    %sum = memref.alloca() : memref<f64>
    %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    memref.store %zero, %sum[] : memref<f64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    %old = memref.load %total[] : memref<f64>
    %one = memref.load %sum[] : memref<f64>
    %scaled = arith.mulf %one, %x : f64
    %new = arith.subf %old, %scaled : f64
    memref.store %new, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_the_loop_asks_for_the_sum
// CHECK-NOT:     array.map()
func.func @kept_where_the_loop_asks_for_the_sum(%n : index, %m : index, %u : memref<?xf64>, %x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %total = memref.alloca() : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %k to %m do {
    %sum = memref.alloca() : memref<f64>
    %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    memref.store %zero, %sum[] : memref<f64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    %old = memref.load %total[] : memref<f64>
    %one = memref.load %sum[] : memref<f64>
    %large = arith.cmpf ogt, %one, %x : f64
    array.raise_if %large, "ValueError", "too large"
    %new = arith.addf %old, %one : f64
    memref.store %new, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}

// The total of this iteration is a factor in the next map.
// CHECK-LABEL: @kept_where_the_total_is_read
// CHECK-NOT:     array.map()
func.func @kept_where_the_total_is_read(%n : index, %m : index, %u : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %total = memref.alloca() : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  %trips = array.loop %k to %m do {
    %sum = memref.alloca() : memref<f64>
    %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    memref.store %zero, %sum[] : memref<f64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    %old = memref.load %total[] : memref<f64>
    %one = memref.load %sum[] : memref<f64>
    %new = arith.addf %old, %one : f64
    memref.store %new, %total[] : memref<f64>
    %now = memref.load %total[] : memref<f64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%y2 : f64):
      %z = arith.mulf %y2, %now : f64
      array.yield %z : f64
    }
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}

// Kernels leave nothing in the variable: the host has the number anyway.
// CHECK-LABEL: @kept_where_no_kernel_adds_up
// CHECK-NOT:     array.map()
func.func @kept_where_no_kernel_adds_up(%m : index, %x : f64) -> f64 {
  %zero = arith.constant 0.0 : f64
  %total = memref.alloca() : memref<f64>
  %step = memref.alloca() : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  memref.store %x, %step[] : memref<f64>
  %trips = array.loop %k to %m do {
    %old = memref.load %total[] : memref<f64>
    %one = memref.load %step[] : memref<f64>
    %new = arith.addf %old, %one : f64
    memref.store %new, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}

// What the sum was before the next map adds to it is not what it is at the store.
// CHECK-LABEL: @kept_where_the_sum_changes_before_it_is_added
// CHECK-NOT:     array.map()
func.func @kept_where_the_sum_changes_before_it_is_added(%n : index, %m : index, %u : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %total = memref.alloca() : memref<f64>
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %k to %m do {
    %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    %one = memref.load %sum[] : memref<f64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%y : f64):
      array.yield %y : f64
    }
    %old = memref.load %total[] : memref<f64>
    %new = arith.addf %old, %one : f64
    memref.store %new, %total[] : memref<f64>
    array.yield
  }
  %r = memref.load %total[] : memref<f64>
  func.return %r : f64
}
