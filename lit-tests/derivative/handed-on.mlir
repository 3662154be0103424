// RUN: mutad-opt %s -p reverse,promote-scalars | filecheck %s

// %l is what the iteration before has saved.
// CHECK-LABEL: @a_variable_is_read_from_the_tape_of_the_iteration_before_gradient(
// CHECK:         [[tape:%x_saved]] = ad.push
// CHECK-NOT:     ad.push
// CHECK:         array.loop
// CHECK:         array.loop
// CHECK:           [[last:%[0-9]+]] = arith.subi %i{{[_0-9]*}}, {{%[0-9]+}}
// CHECK:           [[before:%[0-9]+]] = arith.maxsi [[last]], {{%[0-9]+}}
// CHECK:           memref.load [[tape]][[[before]]]
// CHECK:           arith.cmpi sgt, %i{{[_0-9]*}}, {{%[0-9]+}}
// CHECK:           arith.select
func.func @a_variable_is_read_from_the_tape_of_the_iteration_before(%u : memref<?xf64>, %n : index, %first : f64) {
  %left = memref.alloca() : memref<f64>
  memref.store %first, %left[] : memref<f64>
  %trips = array.loop %i to %n do {
    %l = memref.load %left[] : memref<f64>
    %x = memref.load %u[%i] : memref<?xf64>
    %d = arith.subf %x, %l : f64
    %y = arith.mulf %x, %d : f64
    memref.store %y, %u[%i] : memref<?xf64>
    memref.store %x, %left[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_variable_that_a_branch_assigns_is_saved_gradient(
// CHECK:         ad.push
// CHECK:         ad.push
func.func @a_variable_that_a_branch_assigns_is_saved(%u : memref<?xf64>, %n : index, %m : index, %first : f64) {
  %left = memref.alloca() : memref<f64>
  memref.store %first, %left[] : memref<f64>
  %trips = array.loop %i to %n do {
    %l = memref.load %left[] : memref<f64>
    %x = memref.load %u[%i] : memref<?xf64>
    %d = arith.subf %x, %l : f64
    %y = arith.mulf %x, %d : f64
    memref.store %y, %u[%i] : memref<?xf64>
    %few = arith.cmpi slt, %i, %m : index
    scf.if %few {
      memref.store %x, %left[] : memref<f64>
      scf.yield
    }
    array.yield
  }
  func.return
}

// Its tape is pushed in each iteration: that of the one before is not at hand.
// CHECK-LABEL: @a_variable_of_a_loop_that_may_leave_early_is_saved_gradient(
// CHECK:         ad.push
// CHECK:         ad.push
func.func @a_variable_of_a_loop_that_may_leave_early_is_saved(%u : memref<?xf64>, %n : index, %first : f64) {
  %left = memref.alloca() : memref<f64>
  memref.store %first, %left[] : memref<f64>
  %trips = array.loop %i to %n while {
  ^bb0(%p : index):
    %v = memref.load %u[%p] : memref<?xf64>
    %positive = arith.cmpf ogt, %v, %first : f64
    array.condition %positive
  } do {
    %l = memref.load %left[] : memref<f64>
    %x = memref.load %u[%i] : memref<?xf64>
    %d = arith.subf %x, %l : f64
    %y = arith.mulf %x, %d : f64
    memref.store %y, %u[%i] : memref<?xf64>
    memref.store %x, %left[] : memref<f64>
    array.yield
  }
  func.return
}

// Nothing breaks the circle but a tape.
// CHECK-LABEL: @a_variable_that_is_computed_of_itself_is_saved_gradient(
// CHECK:         %s_saved = ad.push
func.func @a_variable_that_is_computed_of_itself_is_saved(%u : memref<?xf64>, %n : index, %first : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %first, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %x = memref.load %u[%i] : memref<?xf64>
    %y = arith.mulf %x, %s : f64
    memref.store %y, %sum[] : memref<f64>
    array.yield
  }
  %last = memref.load %sum[] : memref<f64>
  %c0 = arith.constant 0 : index
  memref.store %last, %u[%c0] : memref<?xf64>
  func.return
}
