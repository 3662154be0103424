// RUN: mutad-opt %s -p promote-scalars | filecheck %s

// CHECK-LABEL: @stored_once
// CHECK-NEXT:    func.return %x
func.func @stored_once(%x : f64) -> f64 {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  %y = memref.load %s[] : memref<f64>
  func.return %y : f64
}

// CHECK-LABEL: @read_inside_a_loop
// CHECK-NOT:     memref.alloca
// CHECK:         memref.store %x, %a[%i]
func.func @read_inside_a_loop(%x : f64, %a : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  %trips = array.loop %i to %n do {
    %y = memref.load %s[] : memref<f64>
    memref.store %y, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A variable of the loop body: stored before it is read, in each iteration.
// CHECK-LABEL: @local_to_an_iteration
// CHECK-NOT:     memref.alloca
func.func @local_to_an_iteration(%a : memref<?xf64>, %b : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    memref.store %x, %s[] : memref<f64>
    %y = memref.load %s[] : memref<f64>
    memref.store %y, %b[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @stored_in_one_branch
// CHECK-NEXT:    %s = scf.if %c -> (f64) {
// CHECK-NEXT:      scf.yield %y
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %x
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %s
func.func @stored_in_one_branch(%c : i1, %x : f64, %y : f64) -> f64 {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  scf.if %c {
    memref.store %y, %s[] : memref<f64>
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @stored_in_nested_branches
// CHECK-NEXT:    %s = scf.if %c -> (f64) {
// CHECK-NEXT:      %s_1 = scf.if %d -> (f64) {
// CHECK-NEXT:        scf.yield %y
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %x
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %s_1
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %x
func.func @stored_in_nested_branches(%c : i1, %d : i1, %x : f64, %y : f64) -> f64 {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  scf.if %c {
    scf.if %d {
      memref.store %y, %s[] : memref<f64>
    }
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @never_read
// CHECK-NEXT:    func.return
func.func @never_read(%x : f64) {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  func.return
}

// An accumulator: the load reads the store before the loop, or that of the iteration before.
// CHECK-LABEL: @kept_when_a_loop_carries_it
// CHECK:         memref.alloca
// CHECK:         %old = memref.load
func.func @kept_when_a_loop_carries_it(%x : f64, %n : index) -> f64 {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  %trips = array.loop %i to %n do {
    %old = memref.load %s[] : memref<f64>
    %next = arith.addf %old, %x : f64
    memref.store %next, %s[] : memref<f64>
    array.yield
  }
  %s1 = memref.load %s[] : memref<f64>
  func.return %s1 : f64
}

// CHECK-LABEL: @kept_when_a_map_writes_it
// CHECK:         memref.alloca
// CHECK:         memref.load
func.func @kept_when_a_map_writes_it(%x : f64, %a : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  %v = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%a : memref<?xf64>) outs(%v : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_when_it_may_be_read_before_it_is_stored
// CHECK:         memref.alloca
func.func @kept_when_it_may_be_read_before_it_is_stored(%c : i1, %x : f64) -> f64 {
  %s = memref.alloca() : memref<f64>
  scf.if %c {
    memref.store %x, %s[] : memref<f64>
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// One load of the cell is certain, the other is not: the cell stays, and both loads with it.
// CHECK-LABEL: @kept_when_one_load_is_uncertain
// CHECK:         memref.alloca
// CHECK:         memref.load
// CHECK:         memref.load
func.func @kept_when_one_load_is_uncertain(%x : f64, %n : index) -> f64 {
  %s = memref.alloca() : memref<f64>
  memref.store %x, %s[] : memref<f64>
  %first = memref.load %s[] : memref<f64>
  %trips = array.loop %i to %n do {
    memref.store %first, %s[] : memref<f64>
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}
