// RUN: mutad-opt %s -p select-values | filecheck %s

// Both sides add to the sum: what is added is selected.
// CHECK-LABEL: @what_is_added_is_selected
// CHECK:         %s = memref.load %sum[]
// CHECK-NOT:     scf.if
// CHECK:         %r = math.sqrt %v
// CHECK-NEXT:    %h = arith.mulf %v, %half
// CHECK-NEXT:    %[[ADDED:.*]] = arith.select %negative, %r, %h
// CHECK-NEXT:    %t = arith.addf %s, %[[ADDED]]
// CHECK-NEXT:    memref.store %t, %sum[]
func.func @what_is_added_is_selected(%x : memref<?xf64>, %n : index, %zero : f64, %half : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %v = memref.load %x[%i] : memref<?xf64>
    %negative = arith.cmpf olt, %v, %zero : f64
    %t = scf.if %negative -> (f64) {
      %r = math.sqrt %v : f64
      %a = arith.addf %s, %r : f64
      scf.yield %a : f64
    } else {
      %h = arith.mulf %v, %half : f64
      %b = arith.addf %h, %s : f64
      scf.yield %b : f64
    }
    memref.store %t, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// One side adds nothing, which is -0.0 to the bit.
// CHECK-LABEL: @nothing_is_added
// CHECK-NOT:     scf.if
// CHECK:         %[[NOTHING:.*]] = arith.constant -0.000000e+00
// CHECK-NEXT:    %[[ADDED:.*]] = arith.select %positive, %v, %[[NOTHING]]
// CHECK-NEXT:    %t = arith.addf %s, %[[ADDED]]
func.func @nothing_is_added(%x : memref<?xf64>, %n : index, %zero : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %v = memref.load %x[%i] : memref<?xf64>
    %positive = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %positive -> (f64) {
      %a = arith.addf %s, %v : f64
      scf.yield %a : f64
    } else {
      scf.yield %s : f64
    }
    memref.store %t, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// What the first branch chose is known in the second one, on the same condition.
// CHECK-LABEL: @branches_on_one_condition_are_one
// CHECK-NOT:     scf.if
// CHECK:         %[[ADDED:.*]] = arith.select %c, %h, %v
// CHECK-NEXT:    %u = arith.addf %s, %[[ADDED]]
// CHECK-NEXT:    memref.store %u, %sum[]
func.func @branches_on_one_condition_are_one(%x : memref<?xf64>, %n : index, %zero : f64, %half : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %c -> (f64) {
      scf.yield %s : f64
    } else {
      %a = arith.addf %s, %v : f64
      scf.yield %a : f64
    }
    %u = scf.if %c -> (f64) {
      %h = arith.mulf %v, %half : f64
      %b = arith.addf %t, %h : f64
      scf.yield %b : f64
    } else {
      scf.yield %t : f64
    }
    memref.store %u, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_value_of_its_own_is_selected
// CHECK-NOT:     scf.if
// CHECK:         %w = arith.select %c, %d, %v
// CHECK-NEXT:    memref.store %w, %y[%i]
func.func @a_value_of_its_own_is_selected(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %zero : f64) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %w = scf.if %c -> (f64) {
      %d = arith.mulf %v, %v : f64
      scf.yield %d : f64
    } else {
      scf.yield %v : f64
    }
    memref.store %w, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The next iteration would wait for both sides.
// CHECK-LABEL: @kept_where_the_value_is_the_next_iteration_s
// CHECK:         scf.if
func.func @kept_where_the_value_is_the_next_iteration_s(%x : memref<?xf64>, %n : index, %zero : f64) {
  %product = memref.alloca() : memref<f64>
  memref.store %zero, %product[] : memref<f64>
  %trips = array.loop %i to %n do {
    %p = memref.load %product[] : memref<f64>
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %c -> (f64) {
      %a = arith.mulf %p, %v : f64
      scf.yield %a : f64
    } else {
      scf.yield %p : f64
    }
    memref.store %t, %product[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_condition_is_the_last_iteration_s
// CHECK:         scf.if
func.func @kept_where_the_condition_is_the_last_iteration_s(%x : memref<?xf64>, %n : index, %zero : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %s, %zero : f64
    %t = scf.if %c -> (f64) {
      %a = arith.addf %s, %v : f64
      scf.yield %a : f64
    } else {
      scf.yield %s : f64
    }
    memref.store %t, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_loop_changes_what_is_asked
// CHECK:         scf.if
func.func @kept_where_the_loop_changes_what_is_asked(%x : memref<?xf64>, %n : index, %k : index, %zero : f64) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%k] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %c -> (f64) {
      %a = arith.addf %zero, %v : f64
      scf.yield %a : f64
    } else {
      scf.yield %v : f64
    }
    memref.store %t, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// An element that is not there may not be loaded, and a sine costs.
// CHECK-LABEL: @kept_where_a_side_loads_or_is_not_cheap
// CHECK:         scf.if
// CHECK:           memref.load %y[%i]
// CHECK:         scf.if
// CHECK:           math.sin
func.func @kept_where_a_side_loads_or_is_not_cheap(%x : memref<?xf64>, %y : memref<?xf64>, %z : memref<?xf64>, %n : index, %zero : f64) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %c -> (f64) {
      %a = memref.load %y[%i] : memref<?xf64>
      scf.yield %a : f64
    } else {
      scf.yield %v : f64
    }
    memref.store %t, %z[%i] : memref<?xf64>
    array.yield
  }
  %more = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t = scf.if %c -> (f64) {
      %a = math.sin %v : f64
      scf.yield %a : f64
    } else {
      scf.yield %v : f64
    }
    memref.store %t, %z[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// An array that is chosen stays chosen by a branch: no selection is of arrays.
// CHECK-LABEL: @kept_where_an_array_is_chosen
// CHECK-NOT:     arith.select
func.func @kept_where_an_array_is_chosen(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %one : index, %v : f64) {
  %trips = array.loop %i to %n do {
    %c = arith.cmpi eq, %i, %one : index
    %w = scf.if %c -> (memref<?xf64>) {
      scf.yield %x : memref<?xf64>
    } else {
      scf.yield %y : memref<?xf64>
    }
    memref.store %v, %w[%one] : memref<?xf64>
    array.yield
  }
  func.return
}

// A count, and an element whose subscript is in range in every iteration.
// CHECK-LABEL: @a_count_and_an_element
// CHECK-NOT:     scf.if
// CHECK:         %[[DATA:.*]] = memref.load %y[%{{.*}}]
// CHECK:         %[[TERM:.*]] = arith.select %c, %[[DATA]], %{{.*}} : f64
// CHECK-NEXT:    arith.addf %s, %[[TERM]]
// CHECK:         %[[ONE:.*]] = arith.select %c, %one, %{{.*}} : index
// CHECK-NEXT:    arith.addi %k, %[[ONE]] : index
// CHECK-NOT:     scf.if
func.func @a_count_and_an_element(%x : memref<?xf64>, %y : memref<?xf64>, %zero : f64, %one : index) {
  %sum = memref.alloca() : memref<f64>
  %count = memref.alloca() : memref<index>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %k = memref.load %count[] : memref<index>
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.cmpf ogt, %v, %zero : f64
    %t, %m = scf.if %c -> (f64, index) {
      %j = array.index %i, %n axis 0 sign "nonneg" unchecked
      %w = memref.load %y[%j] : memref<?xf64>
      %b = arith.addf %s, %w : f64
      %l = arith.addi %k, %one : index
      scf.yield %b, %l : f64, index
    } else {
      scf.yield %s, %k : f64, index
    }
    memref.store %t, %sum[] : memref<f64>
    memref.store %m, %count[] : memref<index>
    array.yield
  }
  func.return
}

// The branch is what keeps the subscript in range.
// CHECK-LABEL: @kept_where_the_branch_is_the_bound
// CHECK:         scf.if
// CHECK:           memref.load %y
func.func @kept_where_the_branch_is_the_bound(%y : memref<?xf64>, %n : index, %m : index) {
  %sum = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %c = arith.cmpi slt, %i, %m : index
    %t = scf.if %c -> (f64) {
      %j = array.index %i, %m axis 0 sign "nonneg" unchecked
      %w = memref.load %y[%j] : memref<?xf64>
      %b = arith.addf %s, %w : f64
      scf.yield %b : f64
    } else {
      scf.yield %s : f64
    }
    memref.store %t, %sum[] : memref<f64>
    array.yield
  }
  func.return
}
