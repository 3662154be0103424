// RUN: mutad-opt %s -p separate-sums | filecheck %s

// CHECK-LABEL: @a_row_of_what_is_added_to
// CHECK:         %row_sum = array.alloc(%m)
// CHECK:         array.map(%m) outs(%row_sum : memref<?xf64>) kinds ["store"]
// CHECK-NEXT:      array.yield %[[ZERO:.*]] : f64
// CHECK:         %[[SUM:.*]] = array.view %row_sum[%{{.*}}] dims [-1, 0] extents(%n, %m)
// CHECK-NEXT:    array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %[[SUM]] :
// CHECK:         %row_1 = array.view %s[%k, %c0] dims [1] extents(%m)
// CHECK-NEXT:    array.map(%m) ins(%row_sum : memref<?xf64>) outs(%row_1 :
func.func @a_row_of_what_is_added_to(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %row : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// The column keeps its place among the axes; the sums begin with -0.0.
// CHECK-LABEL: @a_column
// CHECK:         %column_sum = array.alloc(%n)
// CHECK:         arith.constant -0.000000e+00
// CHECK:         array.view %column_sum[%{{.*}}] dims [0, -1] extents(%n, %m)
// CHECK:         %column_1 = array.view %s[%c0, %k] dims [0] extents(%n)
func.func @a_column(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %s[%c0, %k] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 0]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %column : memref<?x?xf64>, memref<?x?xf64, strided<[?, 0]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// CHECK-LABEL: @a_cell
// CHECK:         %cell_sum = memref.alloca() : memref<f64>
// CHECK:         memref.store %{{.*}}, %cell_sum[]
// CHECK:         %[[SUM:.*]] = array.view %cell_sum[] dims [-1] extents(%n)
// CHECK:         array.map(%n) ins(%v : memref<?xf64>) outs(%s, %[[SUM]] :
// CHECK:         %cell_1 = array.view %s[%k] dims [] extents() steps()
// CHECK:         %[[OLD:.*]] = memref.load %cell_1[]
// CHECK:         %[[ADDED:.*]] = memref.load %cell_sum[]
// CHECK:         %[[NEW:.*]] = arith.addf %[[OLD]], %[[ADDED]]
// CHECK:         memref.store %[[NEW]], %cell_1[]
func.func @a_cell(%n : index, %k : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %cell = array.view %s[%k] dims [-1] extents(%n) steps(%c0) : memref<?xf64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%s, %cell : memref<?xf64>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// The first has memory of its own by then.
// CHECK-LABEL: @of_two_sums_that_meet_one
// CHECK-COUNT-1: array.alloc
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @of_two_sums_that_meet_one(%n : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %column = array.view %s[%c0, %k] dims [0, -1] extents(%n, %n) steps(%c1, %c0) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 0]>>
  %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %n) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %n) ins(%v : memref<?x?xf64>) outs(%column, %row : memref<?x?xf64, strided<[?, 0]>>, memref<?x?xf64, strided<[0, 1]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_no_output_meets_it
// CHECK-NOT:     _sum
// CHECK:         outs(%t, %row :
func.func @kept_where_no_output_meets_it(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n, %m) : memref<?x?xf64>
  %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%t, %row : memref<?x?xf64>, memref<?x?xf64, strided<[0, 1]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// Shifts are for `gather-adds`.
// CHECK-LABEL: @kept_where_views_walk_all_axes
// CHECK-NOT:     array.alloc
// CHECK:         outs(%a, %b :
func.func @kept_where_views_walk_all_axes(%n : index, %j : index, %k : index, %v : memref<?xf64>, %s : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %a = array.view %s[%j] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %s[%k] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_axis_is_walked_in_steps_of_nothing
// CHECK-NOT:     array.alloc
// CHECK:         outs(%s, %still :
func.func @kept_where_an_axis_is_walked_in_steps_of_nothing(%n : index, %m : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %still = array.view %s[%c0, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c0) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 0]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %still : memref<?x?xf64>, memref<?x?xf64, strided<[0, 0]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_it_is_the_only_output
// CHECK-NOT:     _sum
// CHECK:         outs(%row :
func.func @kept_where_it_is_the_only_output(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%row : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// Two maps: each has its order.
// CHECK-LABEL: @kept_where_another_map_adds_to_the_elements
// CHECK-NOT:     _sum
// CHECK:         outs(%s :
// CHECK:         outs(%row :
func.func @kept_where_another_map_adds_to_the_elements(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s : memref<?x?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%row : memref<?x?xf64, strided<[0, 1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}
