// RUN: mutad-opt %s -p 'reverse{tape=1000 long=true}' | filecheck %s
// RUN: mutad-opt %s -p 'reverse{tape=1000}' | filecheck %s --check-prefix SHORT

// Without `long` the gradient only says that there is another one, where there is.
// SHORT-LABEL: @updates_run_again_gradient(
// SHORT-SAME:    longest = 1000
// SHORT-NOT:   _in_steps

// The gradient for short tapes keeps y of each iteration, that for long ones of every 16th.
// CHECK-LABEL: @updates_run_again_gradient(
// CHECK-NOT:     scf.if
// CHECK-LABEL: @updates_run_again_gradient_in_steps(
// CHECK-SAME:    checkpointed = 1000
// CHECK:         [[states:%y_saved]] = ad.push
// CHECK:         array.loop [[k:%k[_0-9]*]] to %n do {
// CHECK:           arith.andi [[k]]
// CHECK:           scf.if
// CHECK:             array.map({{.*}}) ins(%y : memref<?xf64>) outs({{.*}}) kinds ["store"]
// CHECK:         arith.minsi %trips
// CHECK-NEXT:    [[rows:%a_saved]] = ad.push {{.*}} {refilled} : memref<?x?xf64>
// CHECK:         %y_again = array.alloc
// CHECK:         array.loop
// CHECK:           scf.if
// CHECK:             array.map({{.*}}) outs(%y_again : memref<?xf64>) kinds ["store"]
// CHECK:             array.loop [[i:%[0-9]+]] to
// CHECK:               [[s:%t[_0-9]*]] = memref.load %s[
// CHECK:               [[tape:%a_saved[_0-9]*]] = array.view [[rows]][[[i]]
// CHECK-NOT:           kinds ["add"]
// CHECK:               array.map({{.*}}) ins({{.*}}) outs(%y_again, [[tape]] : {{.*}}) kinds ["store", "store"]
// CHECK:                 arith.mulf {{%[a-z]+[_0-9]*}}, [[s]]
// CHECK:           %a_saved{{[_0-9]*}} = array.view [[rows]][
// CHECK-NOT:     ad.pop
func.func @updates_run_again(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    memref.store %t, %s[%k] : memref<?xf64>
    array.map(%m) ins(%y, %x : memref<?xf64>, memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64, %d : f64):
      %e = arith.mulf %d, %t : f64
      %f = arith.subf %c, %e : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}

// The state of a matrix that the loop goes through column by column has each column in one piece.
// CHECK-LABEL: @columns_lie_in_one_piece_gradient_in_steps(
// CHECK:         ad.push {{.*}} : memref<?x?x?xf64>
// CHECK:         scf.if
// CHECK:           array.view {{.*}} dims [1, 0]
// CHECK-NEXT:      array.map({{.*}}) ins(%a : memref<?x?xf64>) outs({{.*}} : memref<?x?xf64, strided<[1, ?]>>)
// CHECK:         array.view %a_again{{.*}} dims [1, 0]
func.func @columns_lie_in_one_piece(%x : memref<?xf64>, %a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %w = memref.dim %a, %c1 : memref<?x?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    %trips_1 = array.loop %j to %w do {
      %column = array.view %a[%c0, %j] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      memref.store %zero, %add[] : memref<f64>
      array.map(%m) ins(%column : memref<?xf64, strided<[?]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%b : f64):
        %c = arith.mulf %b, %b : f64
        array.yield %c : f64
      }
      %t = memref.load %add[] : memref<f64>
      memref.store %t, %s[%k, %j] : memref<?x?xf64>
      array.map(%m) ins(%column, %x : memref<?xf64, strided<[?]>>, memref<?xf64>) outs(%column : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%d : f64, %e : f64):
        %f = arith.mulf %e, %t : f64
        %g = arith.subf %d, %f : f64
        array.yield %g : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Where no sum is left out, every 4th iteration is kept, and tapes must be longer.
// CHECK-LABEL: @nothing_is_left_out_gradient_in_steps(
// CHECK-SAME:    checkpointed = 4000
// CHECK:         array.loop [[k:%k[_0-9]*]] to %n do {
// CHECK:           [[rest:%[0-9]+]] = arith.constant 3 : index
// CHECK:           arith.andi [[k]], [[rest]]
// CHECK:         [[rows:%a_saved[_0-9]*]] = ad.push {{.*}} {refilled}
// CHECK:           scf.if
// CHECK:             array.map({{.*}}) outs(%y_again : memref<?xf64>) kinds ["store"]
// CHECK:             array.loop
// CHECK:               array.map({{.*}}) ins(%y_again, %x : {{.*}}) outs(%y_again, {{.*}}) kinds ["store", "store"]
// CHECK:                 arith.mulf
// CHECK-NEXT:            arith.subf
func.func @nothing_is_left_out(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%y, %x : memref<?xf64>, memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %c = arith.mulf %a, %a : f64
      %d = arith.subf %c, %b : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @functions_are_not_run_again_gradient(
// CHECK-NOT:   @functions_are_not_run_again_gradient_in_steps(
func.func @functions_are_not_run_again(%y : memref<?xf64>, %s : memref<?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    memref.store %t, %s[%k] : memref<?xf64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64):
      %e = math.sin %c : f64
      %f = arith.subf %e, %t : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}

// Nothing needs the sum but the update, whose adjoint does not: it is nowhere at hand.
// CHECK-LABEL: @the_sum_is_gone_gradient(
// CHECK-NOT:   @the_sum_is_gone_gradient_in_steps(
func.func @the_sum_is_gone(%y : memref<?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64):
      %f = arith.subf %c, %t : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @states_would_be_as_large_gradient(
// CHECK-NOT:   @states_would_be_as_large_gradient_in_steps(
func.func @states_would_be_as_large(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<?xf64>) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %c3 do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    memref.store %t, %s[%k] : memref<?xf64>
    array.map(%m) ins(%y, %x : memref<?xf64>, memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64, %d : f64):
      %e = arith.mulf %d, %t : f64
      %f = arith.subf %c, %e : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_loop_that_ends_early_keeps_all_gradient(
// CHECK-NOT:   @a_loop_that_ends_early_keeps_all_gradient_in_steps(
func.func @a_loop_that_ends_early_keeps_all(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<?xf64>, %n : index) {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  memref.store %zero, %add[] : memref<f64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n while {
  ^bb0(%j : index):
    %last = memref.load %add[] : memref<f64>
    %more = arith.cmpf ole, %last, %zero : f64
    array.condition %more
  } do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    memref.store %t, %s[%k] : memref<?xf64>
    array.map(%m) ins(%y, %x : memref<?xf64>, memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64, %d : f64):
      %e = arith.mulf %d, %t : f64
      %f = arith.subf %c, %e : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}

// Arrays that may share memory: an update of one may be one of the other.
// CHECK-LABEL: @arrays_that_overlap_are_kept_gradient(
// CHECK-NOT:   @arrays_that_overlap_are_kept_gradient_in_steps(
func.func @arrays_that_overlap_are_kept(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<?xf64>, %n : index)
    attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %add = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %m = memref.dim %y, %c0 : memref<?xf64>
  %sum = array.view %add[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %k to %n do {
    memref.store %zero, %add[] : memref<f64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    %t = memref.load %add[] : memref<f64>
    memref.store %t, %s[%k] : memref<?xf64>
    array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%c : f64):
      %e = arith.mulf %c, %t : f64
      %f = arith.subf %c, %e : f64
      array.yield %f : f64
    }
    array.yield
  }
  func.return
}
