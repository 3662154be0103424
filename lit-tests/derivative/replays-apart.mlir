// RUN: mutad-opt %s -p 'reverse{tape=1000}' | filecheck %s

// Each row starts from what was there before the loop: it is saved once, and the tapes of four rows are filled.
// There is no other gradient for long tapes.
// CHECK-LABEL: @rows_run_again_gradient(
// CHECK:         %y_saved = ad.push
// CHECK:         array.map({{.*}}) ins(%y : memref<?x?xf64>) outs(%y_saved : memref<?x?xf64>)
// CHECK:         array.loop %j to %n do {
// CHECK-NOT:       ad.push
// CHECK:         %y_again = array.alloc
// CHECK-NOT:     ad.pop
// CHECK:         array.map({{.*}}) outs(%y_again : memref<?x?xf64>) kinds ["store"]
// CHECK:         %a_tapes = array.alloc({{.*}}) {ad.tapes} : memref<4x?x?xf64>
// CHECK:         array.loop
// CHECK:           [[some:%[0-9]+]] = arith.minsi
// CHECK:           array.loop [[place:%[0-9]+]] to [[some]] do {
// CHECK:             array.view %a_tapes[[[place]],
// CHECK:             array.loop
// CHECK-NOT:           kinds ["add"]
// CHECK:               array.map({{.*}}) outs(%row_1, {{.*}}) kinds ["store", "store"]
// CHECK:           array.loop [[back:%[0-9]+]] to [[some]] do {
// CHECK:             array.view %a_tapes[
// CHECK:         func.return
// CHECK-NOT:   _in_steps
func.func @rows_run_again(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %y, %c1 : memref<?x?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %row = array.view %y[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %trips_1 = array.loop %k to %j do {
      %by = array.view %x[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %add[] : memref<f64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%a : f64, %b : f64):
        %p = arith.mulf %a, %b : f64
        array.yield %p : f64
      }
      %t = memref.load %add[] : memref<f64>
      memref.store %t, %s[%k, %j] : memref<?x?xf64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%c : f64, %d : f64):
        %e = arith.mulf %d, %t : f64
        %f = arith.subf %c, %e : f64
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// What a step finds in its row the steps before it have left.
// CHECK-LABEL: @kept_where_a_step_changes_all_rows_gradient(
// CHECK:         array.loop %j to %n do {
// CHECK:           ad.push
// CHECK-NOT:     _tapes
// CHECK:         func.return
func.func @kept_where_a_step_changes_all_rows(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %y, %c1 : memref<?x?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %row = array.view %y[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n, %m) ins(%y : memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%old : f64):
      %new = arith.addf %old, %old : f64
      array.yield %new : f64
    }
    %trips_1 = array.loop %k to %j do {
      %by = array.view %x[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %add[] : memref<f64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%a : f64, %b : f64):
        %p = arith.mulf %a, %b : f64
        array.yield %p : f64
      }
      %t = memref.load %add[] : memref<f64>
      memref.store %t, %s[%k, %j] : memref<?x?xf64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%c : f64, %d : f64):
        %e = arith.mulf %d, %t : f64
        %f = arith.subf %c, %e : f64
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// How many updates a row has is in memory.
// CHECK-LABEL: @kept_where_the_longest_tape_is_unknown_gradient(
// CHECK:         array.loop %j to %n do {
// CHECK:           ad.push
// CHECK-NOT:     _tapes
// CHECK:         func.return
func.func @kept_where_the_longest_tape_is_unknown(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index, %lengths : memref<?xindex>) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %y, %c1 : memref<?x?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %j to %n do {
    %row = array.view %y[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    %at = memref.load %lengths[%j] : memref<?xindex>
    %long = arith.minsi %at, %n : index
    %trips_1 = array.loop %k to %long do {
      %by = array.view %x[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      memref.store %zero, %add[] : memref<f64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%a : f64, %b : f64):
        %p = arith.mulf %a, %b : f64
        array.yield %p : f64
      }
      %t = memref.load %add[] : memref<f64>
      memref.store %t, %s[%k, %j] : memref<?x?xf64>
      array.map(%m) ins(%row, %by : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%c : f64, %d : f64):
        %e = arith.mulf %d, %t : f64
        %f = arith.subf %c, %e : f64
        array.yield %f : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
