// RUN: mutad-opt %s -p privatize-cells | filecheck %s
// RUN: mutad-opt %s -p 'privatize-cells{unset=true}' | filecheck %s --check-prefix UNSET

// CHECK-LABEL: @stored_before_it_is_read
// CHECK-NOT:     memref.alloca
// CHECK:         array.loop
// CHECK-NEXT:      %s = memref.alloca()
func.func @stored_before_it_is_read(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %s[] : memref<f64>
    %b = memref.load %s[] : memref<f64>
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// Each of two loops has its own; so has a view.
// CHECK-LABEL: @in_two_loops
// CHECK:         array.loop
// CHECK-NEXT:      %s = memref.alloca()
// CHECK:         array.loop
// CHECK-NEXT:      %s_1 = memref.alloca()
// CHECK-NEXT:      array.view %s_1
func.func @in_two_loops(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  %v = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %s[] : memref<f64>
    array.yield
  }
  %trips2 = array.loop %i to %n do {
    memref.store %zero, %s[] : memref<f64>
    array.map(%n) ins(%x : memref<?xf64>) outs(%v : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %b = memref.load %s[] : memref<f64>
    memref.store %b, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_it_is_read_afterwards
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
func.func @kept_where_it_is_read_afterwards(%x : memref<?xf64>, %n : index) -> f64 {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %a, %s[] : memref<f64>
    array.yield
  }
  %b = memref.load %s[] : memref<f64>
  func.return %b : f64
}

// CHECK-LABEL: @kept_where_an_iteration_may_read_first
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
func.func @kept_where_an_iteration_may_read_first(%x : memref<?xf64>, %n : index, %c : i1) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    scf.if %c {
      memref.store %a, %s[] : memref<f64>
    }
    %b = memref.load %s[] : memref<f64>
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_an_inner_loop_may_not_run
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
func.func @kept_where_an_inner_loop_may_not_run(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %i do {
      %a = memref.load %x[%j] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
      array.yield
    }
    %b = memref.load %s[] : memref<f64>
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @of_an_iteration_whose_while_stores_in_its_condition
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      %s = memref.alloca()
func.func @of_an_iteration_whose_while_stores_in_its_condition(%x : memref<?xf64>, %n : index) {
  %one = arith.constant 1.0 : f64
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j while {
    ^bb0(%k : index):
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
      %b = memref.load %s[] : memref<f64>
      %go = arith.cmpf olt, %b, %one : f64
      array.condition %go
    } do {
      %c = memref.load %s[] : memref<f64>
      memref.store %c, %x[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @of_a_branch_whose_while_stores_in_its_condition
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      %s = memref.alloca()
func.func @of_a_branch_whose_while_stores_in_its_condition(%x : memref<?xf64>, %n : index, %c : i1) {
  %one = arith.constant 1.0 : f64
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    scf.if %c {
      %inner = array.loop %j while {
      ^bb0(%k : index):
        %a = memref.load %x[%i] : memref<?xf64>
        memref.store %a, %s[] : memref<f64>
        %b = memref.load %s[] : memref<f64>
        %go = arith.cmpf olt, %b, %one : f64
        array.condition %go
      } do {
        %c2 = memref.load %s[] : memref<f64>
        memref.store %c2, %x[%j] : memref<?xf64>
        array.yield
      }
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_branch_stores_before_it_reads
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
// UNSET-LABEL: @kept_where_a_branch_stores_before_it_reads
// UNSET:         array.loop %i to %n do {
// UNSET-NEXT:      %s = memref.alloca()
func.func @kept_where_a_branch_stores_before_it_reads(%x : memref<?xf64>, %n : index, %c : i1) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    scf.if %c {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
      %b = memref.load %s[] : memref<f64>
      memref.store %b, %x[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_while_reads_what_its_body_has_stored
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
func.func @kept_where_a_while_reads_what_its_body_has_stored(%x : memref<?xf64>, %n : index) {
  %one = arith.constant 1.0 : f64
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %inner = array.loop %j while {
    ^bb0(%k : index):
      %b = memref.load %s[] : memref<f64>
      %go = arith.cmpf olt, %b, %one : f64
      array.condition %go
    } do {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_branch_stores_and_the_code_behind_it_reads_in_another_loop
// CHECK:         %s = memref.alloca()
// CHECK-NEXT:    array.loop
// UNSET-LABEL: @kept_where_a_branch_stores_and_the_code_behind_it_reads_in_another_loop
// UNSET:         %s = memref.alloca()
// UNSET-NEXT:    array.loop
func.func @kept_where_a_branch_stores_and_the_code_behind_it_reads_in_another_loop(%x : memref<?xf64>, %n : index, %c : i1) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    scf.if %c {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
    }
    array.yield
  }
  %trips_1 = array.loop %i to %n do {
    %b = memref.load %s[] : memref<f64>
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// UNSET-LABEL: @of_the_inner_loop_that_stores_before_it_reads
// UNSET:         array.loop %j to %n do {
// UNSET-NEXT:      %s = memref.alloca()
func.func @of_the_inner_loop_that_stores_before_it_reads(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %trips_1 = array.loop %j to %n do {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %s[] : memref<f64>
      %b = memref.load %s[] : memref<f64>
      memref.store %b, %x[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}
