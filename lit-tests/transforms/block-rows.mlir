// RUN: mutad-opt %s -p block-rows | filecheck %s

// CHECK-LABEL: @all_of_a_loop_runs_for_some_rows
// CHECK:         array.loop %step to %steps
// CHECK:           array.loop %q
// CHECK:             %r_1 = array.view %r[%first, {{.*}}] dims [0, 1] extents(%count, %m)
// CHECK:             %v_1 = array.view %v[%first, {{.*}}] dims [0, 1] extents(%count, %m)
// CHECK:             array.map(%count, %m) ins(%r_1, %v_1
func.func @all_of_a_loop_runs_for_some_rows(%r : memref<?x?xf64>, %f : memref<9x?x?xf64>, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %trips = array.loop %q to %c9 do {
    %v = array.view %f[%q, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<9x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%r, %v : memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>) outs(%r : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.addf %a, %b : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// What is loaded in the loop is a number, and nothing writes it; what stands between runs before.
// CHECK-LABEL: @maps_beside_the_loop_come_along
// CHECK:         %t = array.alloc
// CHECK:         array.loop %step to %steps
// CHECK:           array.map(%count, %m) outs(%r_1
// CHECK:           array.loop %q
// CHECK:             memref.load %w[%q]
// CHECK:             array.map(%count, %m) ins(%r_{{.*}}, %x_1
// CHECK:           array.map(%count, %m) ins(%r_{{.*}} outs(%t_1
// CHECK:           array.yield
// CHECK-NOT:     array.map
func.func @maps_beside_the_loop_come_along(%r : memref<?x?xf64>, %x : memref<?x?xf64>, %w : memref<?xf64>, %k : index, %n : index, %m : index, %z : f64) {
  array.map(%n, %m) outs(%r : memref<?x?xf64>) kinds ["store"] {
    array.yield %z : f64
  }
  %trips = array.loop %q to %k do {
    %f = memref.load %w[%q] : memref<?xf64>
    array.map(%n, %m) ins(%r, %x : memref<?x?xf64>, memref<?x?xf64>) outs(%r : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %p = arith.mulf %f, %b : f64
      %s = arith.addf %a, %p : f64
      array.yield %s : f64
    }
    array.yield
  }
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  array.map(%n, %m) ins(%r : memref<?x?xf64>) outs(%t : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    array.yield %a : f64
  }
  func.return
}

// CHECK-LABEL: @apart_where_a_row_reads_the_next_one
// CHECK-NOT:     %steps
func.func @apart_where_a_row_reads_the_next_one(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %here = array.view %x[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %next = array.view %x[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%next : memref<?x?xf64, strided<[?, 1]>>) outs(%t : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%here : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// The same rows in one iteration, others in the next one.
// CHECK-LABEL: @apart_where_the_loop_moves_along_the_rows
// CHECK-NOT:     %steps
func.func @apart_where_the_loop_moves_along_the_rows(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %k : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %q to %k do {
    %v = array.view %x[%q, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) ins(%v, %y : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>) outs(%v : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.addf %a, %b : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// d = min(d, d[:, k] + d[k, :]): each row reads row k.
// CHECK-LABEL: @apart_where_all_rows_read_one
// CHECK-NOT:     %steps
func.func @apart_where_all_rows_read_one(%d : memref<?x?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %d[%k, %c0] dims [-1, 1] extents(%n, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
    array.map(%n, %n) ins(%d, %row : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) outs(%d : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.minimumf %a, %b : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// A cotangent is added up in another order.
// CHECK-LABEL: @sums_of_adjoint_code
// CHECK:         array.loop %step to %steps
// CHECK:           array.loop %q
// CHECK:             array.map(%count, %m) ins(%x_1 : {{.*}} outs(%all_1 : {{.*}} kinds ["add"]
func.func @sums_of_adjoint_code(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %all = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a {ad.adjoint} : f64
      array.yield %b : f64
    }
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}

// What one iteration has added, the next one reads.
// CHECK-LABEL: @apart_where_a_map_reads_the_sum
// CHECK-NOT:     %steps
func.func @apart_where_a_map_reads_the_sum(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %all = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%all : memref<?x?xf64, strided<[0, 0]>>) outs(%x : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%s : f64):
      array.yield %s : f64
    }
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a {ad.adjoint} : f64
      array.yield %b : f64
    }
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}

// One map adds what the program has written, the other a cotangent.
// CHECK-LABEL: @apart_where_the_program_adds_to_the_sum_too
// CHECK-NOT:     %steps
func.func @apart_where_the_program_adds_to_the_sum_too(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %all = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a {ad.adjoint} : f64
      array.yield %b : f64
    }
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
    ^bb0(%c : f64):
      array.yield %c : f64
    }
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @apart_where_a_sum_has_no_rows
// CHECK-NOT:     %steps
func.func @apart_where_a_sum_has_no_rows(%x : memref<?x?xf64>, %sum : memref<f64>, %k : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %all = array.view %sum[] dims [-1, -1] extents(%n, %m) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%all : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @apart_where_arguments_may_share_memory
// CHECK-NOT:     %steps
func.func @apart_where_arguments_may_share_memory(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %k : index, %n : index, %m : index) attributes {overlaps = [[0, 1]]} {
  %trips = array.loop %q to %k do {
    array.map(%n, %m) ins(%x, %y : memref<?x?xf64>, memref<?x?xf64>) outs(%y : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64, %b : f64):
      %s = arith.addf %a, %b : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @apart_where_an_iteration_may_raise
// CHECK-NOT:     %steps
func.func @apart_where_an_iteration_may_raise(%x : memref<?x?xf64>, %w : memref<?xf64>, %k : index, %l : index, %n : index, %m : index) {
  %trips = array.loop %q to %k do {
    %i = array.index %q, %l axis 0 : i64 sign "nonneg"
    %f = memref.load %w[%i] : memref<?xf64>
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%x : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      %s = arith.mulf %a, %f : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @apart_where_a_number_is_read_that_a_map_writes
// CHECK-NOT:     %steps
func.func @apart_where_a_number_is_read_that_a_map_writes(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %q to %k do {
    %f = memref.load %x[%q, %c0] : memref<?x?xf64>
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%x : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      %s = arith.mulf %a, %f : f64
      array.yield %s : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @apart_where_an_iteration_saves
// CHECK-NOT:     %steps
func.func @apart_where_an_iteration_saves(%x : memref<?x?xf64>, %k : index, %n : index, %m : index) {
  %tape = ad.tape
  %trips = array.loop %q to %k do {
    %saved = ad.push %tape(%n, %m) : memref<?x?xf64>
    array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%x, %saved : memref<?x?xf64>, memref<?x?xf64>) kinds ["store", "store"] {
    ^bb0(%a : f64):
      %s = arith.mulf %a, %a : f64
      array.yield %s, %a : f64, f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_each_iteration_has_elements_of_its_own
// CHECK-NOT:     %steps
func.func @kept_where_each_iteration_has_elements_of_its_own(%f : memref<9x?x?xf64>, %n : index, %m : index, %z : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %trips = array.loop %q to %c9 do {
    %v = array.view %f[%q, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<9x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%n, %m) outs(%v : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}
