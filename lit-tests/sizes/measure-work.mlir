// RUN: mutad-opt %s -p measure-work | filecheck %s

// A closed form: so many segments of so many bytes.
// CHECK-LABEL: @a_tape_reserves_all_of_its_segments_work_size
// CHECK-NOT:     array.loop
// CHECK:         %[[N:.*]] = memref.dim %a
// CHECK:         %[[ROW:.*]] = array.checked_mul %{{.*}}, %[[N]]
// CHECK:         array.checked_mul %{{.*}}, %[[ROW]]
// CHECK:         func.return
// CHECK-LABEL: func.func @a_tape_reserves_all_of_its_segments(
// CHECK:         %t = ad.tape reserves %{{.*}}
func.func @a_tape_reserves_all_of_its_segments(%a : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %t = ad.tape
  %trips = array.loop %i to %steps do {
    %s = ad.push %t(%n) : memref<?xf64>
    array.yield
  }
  func.return
}

// An iteration gives back what it takes.
// CHECK-LABEL: @scratch_of_an_iteration_counts_once_work_size
// CHECK-NOT:     array.loop
// CHECK:         %[[RUNS:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : index
// CHECK:         %[[BYTES:.*]] = arith.select %[[RUNS]], %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    func.return %[[BYTES]]
func.func @scratch_of_an_iteration_counts_once(%a : memref<?xf64>, %steps : index, %x : f64, %k : index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %trips = array.loop %i to %steps do {
    %s = array.alloc(%n) : memref<?xf64>
    memref.store %x, %s[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_loop_stays_where_sizes_depend_on_the_iteration_work_size
// CHECK:         array.loop %i to %{{.*}} do {
// CHECK:           array.checked_mul %{{.*}}, %i
// CHECK:           arith.maxsi
func.func @a_loop_stays_where_sizes_depend_on_the_iteration(%steps : index, %x : f64, %k : index) {
  %trips = array.loop %i to %steps do {
    %s = array.alloc(%i) : memref<?xf64>
    memref.store %x, %s[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_branch_stays_where_its_condition_is_known_on_entry_work_size
// CHECK:         scf.if %c
func.func @a_branch_stays_where_its_condition_is_known_on_entry(%n : index, %c : i1, %x : f64, %k : index) {
  scf.if %c {
    %s = array.alloc(%n) : memref<?xf64>
    memref.store %x, %s[%k] : memref<?xf64>
  }
  func.return
}

// CHECK-NOT:   at_most_the_larger_branch_where_data_decides_work_size{{.*}}scf.if
// CHECK-LABEL: func.func @at_most_the_larger_branch_where_data_decides(
// CHECK-SAME:    work_bound = "an element of an array"
func.func @at_most_the_larger_branch_where_data_decides(%a : memref<?xf64>, %n : index, %x : f64, %k : index) {
  %e = memref.load %a[%k] : memref<?xf64>
  %c = arith.cmpf olt, %e, %x : f64
  scf.if %c {
    %s = array.alloc(%n) : memref<?xf64>
    memref.store %x, %s[%k] : memref<?xf64>
  }
  func.return
}

// CHECK-NOT:   @none_for_a_size_in_memory_work_size
// CHECK-LABEL: func.func @none_for_a_size_in_memory(
// CHECK-SAME:    work_unknown = "an element of an array"
func.func @none_for_a_size_in_memory(%a : memref<?xindex>, %x : f64, %k : index) {
  %n = memref.load %a[%k] : memref<?xindex>
  %s = array.alloc(%n) : memref<?xf64>
  memref.store %x, %s[%k] : memref<?xf64>
  func.return
}

// CHECK-NOT:   @none_for_a_tape_of_a_while_loop_work_size
// CHECK-LABEL: func.func @none_for_a_tape_of_a_while_loop(
// CHECK-SAME:    work_unknown = "how often a loop runs that may end early"
// CHECK:         %t = ad.tape{{$}}
func.func @none_for_a_tape_of_a_while_loop(%a : memref<?xi1>) {
  %t = ad.tape
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %c = memref.load %a[%j] : memref<?xi1>
    array.condition %c
  } do {
    %s = ad.push %t() : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-NOT:   @none_for_an_array_that_grows_work_size
// CHECK-LABEL: func.func @none_for_an_array_that_grows(
// CHECK-SAME:    work_unknown = "a list, or an array that grows"
func.func @none_for_an_array_that_grows(%x : f64, %k : index) {
  %room = arith.constant 8589934592 : index
  %s = array.alloc(%room) {growable} : memref<8589934592xf64>
  memref.store %x, %s[%k] : memref<8589934592xf64>
  func.return
}

// CHECK-LABEL: @a_product_copies_what_blas_cannot_walk_work_size
// CHECK:         arith.select
// CHECK:         func.return
func.func @a_product_copies_what_blas_cannot_walk(%a : memref<?x?xf64>, %n : index, %m : index, %two : index) {
  %c0 = arith.constant 0 : index
  %v = array.view %a[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%two, %two) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, ?]>>
  %w = array.view %a[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%two, %two) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, ?]>>
  %p = array.alloc(%n, %n) : memref<?x?xf64>
  array.matmul %v, %w into %p : memref<?x?xf64, strided<[?, ?]>>, memref<?x?xf64, strided<[?, ?]>>, memref<?x?xf64>
  func.return
}

// CHECK-NOT:   @none_for_a_condition_that_takes_more_and_more_work_size
// CHECK-LABEL: func.func @none_for_a_condition_that_takes_more_and_more(
// CHECK-SAME:    work_unknown = "memory of a condition that is another size in each iteration"
func.func @none_for_a_condition_that_takes_more_and_more(%n : index, %x : f64, %k : index) {
  %trips = array.loop %i to %n while {
  ^bb0(%j : index):
    %s = array.alloc(%j) : memref<?xf64>
    memref.store %x, %s[%k] : memref<?xf64>
    %y = memref.load %s[%k] : memref<?xf64>
    %c = arith.cmpf olt, %y, %x : f64
    array.condition %c
  } do {
    array.yield
  }
  func.return
}
