// RUN: mutad-opt %s -p print-kills | filecheck %s

// u[:] = u * u: read, then destroyed, point by point.
// CHECK-LABEL: @an_in_place_map_kills_its_own_read
// CHECK:         kill = "read %u[0 : %n]: killed by itself, write %u[0 : %n]: kept"
func.func @an_in_place_map_kills_its_own_read(%u : memref<?xf64>, %n : index) {
  array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  func.return
}

// CHECK-LABEL: @halves_do_not_meet
// CHECK:         kill = "read %u[0 : %n]: kept, write %u[%n : %n]: kept"
func.func @halves_do_not_meet(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %high = array.view %u[%n] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%high : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// CHECK-LABEL: @shifted_by_one_meets
// CHECK:         kill = "read %u[0 : %n]: killed by itself
func.func @shifted_by_one_meets(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %high = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%high : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// CHECK-LABEL: @even_and_odd_elements_do_not_meet
// CHECK:         kill = "read %u[0 : %n : 2]: kept, write %u[1 : %n : 2]: kept"
func.func @even_and_odd_elements_do_not_meet(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %even = array.view %u[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %odd = array.view %u[%c1] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  array.map(%n) ins(%even : memref<?xf64, strided<[2]>>) outs(%odd : memref<?xf64, strided<[2]>>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// A step known only at run time may be 1, or 0, or -1.
// CHECK-LABEL: @killed_when_the_step_is_unknown
// CHECK:         kill = "read %u[0 : %n : 2]: killed by itself, write %u[?]: kept"
func.func @killed_when_the_step_is_unknown(%u : memref<?xf64>, %n : index, %step : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %even = array.view %u[%c0] dims [0] extents(%n) steps(%c2) : memref<?xf64> -> memref<?xf64, strided<[2]>>
  %odd = array.view %u[%c1] dims [0] extents(%n) steps(%step) : memref<?xf64> -> memref<?xf64, strided<[?]>>
  array.map(%n) ins(%even : memref<?xf64, strided<[2]>>) outs(%odd : memref<?xf64, strided<[?]>>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// a[t+1, 1:-1] = f(a[t, ...]), through transposed views of the same array.
// CHECK-LABEL: @rows_of_a_transpose_are_columns
// CHECK:         kill = "read %a[0 : %n, %t]: kept, write %a[0 : %n, %t + 1]: kept"
func.func @rows_of_a_transpose_are_columns(%a : memref<?x?xf64>, %n : index, %m : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at = array.view %a[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  %trips = array.loop %t to %steps do {
    %t1 = arith.addi %t, %c1 : index
    %now = array.view %at[%t, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?xf64, strided<[?]>>
    %next = array.view %at[%t1, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?xf64, strided<[?]>>
    array.map(%n) ins(%now : memref<?xf64, strided<[?]>>) outs(%next : memref<?xf64, strided<[?]>>) kinds ["store"] {
    ^bb0(%x : f64):
      array.yield %x : f64
    }
    array.yield
  }
  func.return
}

// Accumulating reads what it overwrites.
// CHECK-LABEL: @a_reduction_reads_and_kills_its_output
// CHECK:         kill = "read %u[0 : %n]: kept, read %s[]: killed by itself, write %s[]: kept"
func.func @a_reduction_reads_and_kills_its_output(%u : memref<?xf64>, %s : memref<f64>, %n : index) {
  %all = array.view %s[] dims [-1] extents(%n) steps(%n) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// CHECK-LABEL: @a_product_reads_its_factors_only
// CHECK:         kill = "read %a[0 : dim(%a, 0), 0 : dim(%a, 1)]: kept, read %b[{{.*}}]: kept, write %c[{{.*}}]: kept"
func.func @a_product_reads_its_factors_only(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// CHECK-LABEL: @the_end_of_a_branch_releases_what_it_allocates
// CHECK:         kill = "read %t[%i]: killed by scf.yield"
func.func @the_end_of_a_branch_releases_what_it_allocates(%c : i1, %n : index, %i : index) {
  scf.if %c {
    %t = array.alloc(%n) : memref<?xf64>
    %x = memref.load %t[%i] : memref<?xf64>
    scf.yield
  }
  func.return
}

// CHECK-LABEL: @what_is_allocated_before_a_branch_survives_it
// CHECK:         kill = "read %t[%i]: kept"
func.func @what_is_allocated_before_a_branch_survives_it(%c : i1, %n : index, %i : index) {
  %t = array.alloc(%n) : memref<?xf64>
  scf.if %c {
    %x = memref.load %t[%i] : memref<?xf64>
    scf.yield
  }
  func.return
}

// CHECK-LABEL: @a_handover_kills_what_never_runs
// CHECK:         kill = "read %u[%i]: killed by ad.handover"
func.func @a_handover_kills_what_never_runs(%u : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %trips = array.loop %i to %c0 do {
    %x = memref.load %u[%i] : memref<?xf64>
    array.yield
  }
  ad.handover %u : memref<?xf64>
  func.return
}
