// RUN: mutad-opt %s -p resolve-overlap | filecheck %s

// CHECK-LABEL: @in_place_into_other_memory
// CHECK-NOT:     array.alloc
// CHECK-NOT:     reads_first
func.func @in_place_into_other_memory(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Two views, made apart, of the same elements.
// CHECK-LABEL: @in_place_at_the_very_same_elements
// CHECK-NOT:     array.alloc
func.func @in_place_at_the_very_same_elements(%n : index, %x : memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %a = array.view %x[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %x[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%a : memref<?xf64, strided<[1]>>) outs(%b : memref<?xf64, strided<[1]>>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    %f = arith.addf %e, %e : f64
    array.yield %f : f64
  }
  func.return
}

// x[::2] = x[1::2]
// CHECK-LABEL: @in_place_where_elements_take_turns
// CHECK-NOT:     array.alloc
func.func @in_place_where_elements_take_turns(%n : index, %x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %even = array.view %x[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %odd = array.view %x[%c1] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  array.map(%n) ins(%odd : memref<?xf64, strided<[2]>>) outs(%even : memref<?xf64, strided<[2]>>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// a[k + 1:, :] -= a[k]: the row of an iteration is above the rows that it changes.
// CHECK-LABEL: @in_place_below_the_row_that_is_read
// CHECK-NOT:     array.alloc
func.func @in_place_below_the_row_that_is_read(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %next = arith.addi %k, %c1 : index
    %left = arith.subi %n, %next : index
    %row = array.view %a[%k, %c0] dims [-1, 1] extents(%left, %m) steps(%c0, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[0, 1]>>
    %rows = array.view %a[%next, %c0] dims [0, 1] extents(%left, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
    array.map(%left, %m) ins(%rows, %row : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[0, 1]>>) outs(%rows : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] attributes {reads_first} {
    ^bb0(%x : f64, %y : f64):
      %z = arith.subf %x, %y : f64
      array.yield %z : f64
    }
    array.yield
  }
  func.return
}

// Each iteration writes the array that the last one read.
// CHECK-LABEL: @in_place_where_a_loop_swaps
// CHECK-NOT:     array.alloc
func.func @in_place_where_a_loop_swaps(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
  %trips, %p, %q = array.loop %i to %n carry(%u = %x : memref<?xf64>, %v = %y : memref<?xf64>) do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] attributes {reads_first} {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// u[1:-1] = u[:-2] + u[2:]
// CHECK-LABEL: @through_a_temporary_where_a_point_reads_its_neighbours
// CHECK:         %temporary = array.alloc(%n)
// CHECK-NEXT:    array.map(%n) ins(%left, %right : {{.*}}) outs(%temporary :
// CHECK:         array.map(%n) ins(%temporary : {{.*}}) outs(%mid :
// CHECK-NOT:     reads_first
func.func @through_a_temporary_where_a_point_reads_its_neighbours(%n : index, %u : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %left = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %mid = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %right = array.view %u[%c2] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%left, %right : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%mid : memref<?xf64, strided<[1]>>) kinds ["store"] attributes {reads_first} {
  ^bb0(%a : f64, %b : f64):
    %s = arith.addf %a, %b : f64
    array.yield %s : f64
  }
  func.return
}

// CHECK-LABEL: @through_a_temporary_where_the_source_is_reversed
// CHECK:         array.alloc
func.func @through_a_temporary_where_the_source_is_reversed(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %last = arith.addi %n, %cm1 : index
  %back = array.view %x[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> memref<?xf64, strided<[-1]>>
  array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%x : memref<?xf64>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @through_a_temporary_where_arguments_may_overlap
// CHECK:         array.alloc
func.func @through_a_temporary_where_arguments_may_overlap(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) attributes {overlaps = [[1, 2]]} {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// CHECK-LABEL: @through_a_temporary_where_a_loop_may_carry_one_array_twice
// CHECK:         array.alloc
func.func @through_a_temporary_where_a_loop_may_carry_one_array_twice(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
  %trips, %p, %q = array.loop %i to %n carry(%u = %x : memref<?xf64>, %v = %y : memref<?xf64>) do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] attributes {reads_first} {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield %v, %v : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// a[:] = a.T in column order: the temporary lies as the destination does.
// CHECK-LABEL: @the_temporary_is_laid_out_as_the_destination
// CHECK:         %temporary = array.alloc(%m, %n)
// CHECK:         array.view %temporary[{{.*}}] dims [1, 0] extents(%n, %m)
func.func @the_temporary_is_laid_out_as_the_destination(%n : index, %m : index, %x : memref<?x?xf64, strided<[1, ?]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %up = array.view %x[%c1, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%n, %m) ins(%up : memref<?x?xf64, strided<[1, ?]>>) outs(%x : memref<?x?xf64, strided<[1, ?]>>) kinds ["store"] attributes {reads_first} {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}
