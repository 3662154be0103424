// RUN: mutad-opt %s -p hoist-raises | filecheck %s
// RUN: mutad-opt %s -p hoist-raises --run --only asked_once_before_a_nest --args 'x=[[4, 9], [-1, 1]], y=[[0, 0], [0, 0]], n=2, m=2, zero=0, scale=1' | filecheck %s --check-prefix VALUES

// One question for the whole nest, of conditions alone.
// CHECK-LABEL: @asked_once_before_a_nest
// CHECK:         %raises = memref.alloca() : memref<i1>
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      %{{.*}} = array.loop %j to %m do {
// CHECK-NEXT:        %v = memref.load %x[%i, %j]
// CHECK-NEXT:        %w = arith.mulf %v, %scale
// CHECK-NEXT:        %negative = arith.cmpf olt, %w, %zero
// CHECK-NEXT:        memref.load %raises[]
// CHECK-NEXT:        arith.ori
// CHECK-NEXT:        memref.store %{{.*}}, %raises[]
// CHECK-NEXT:        array.yield
// CHECK:         scf.if
// CHECK:           array.raise_if
// CHECK:         }{raises}
// CHECK-NOT:     array.raise_if
// CHECK:           memref.store %r{{.*}}, %y[
// CHECK-NOT:     array.raise_if
// What was stored before the exception, stays.
// VALUES:      raises ValueError: math domain error
// VALUES:      y = {{\[\[}}2, 3],
// VALUES-NEXT:      [0, 0]]
func.func @asked_once_before_a_nest(%x : memref<?x?xf64>, %y : memref<?x?xf64>, %n : index, %m : index, %zero : f64, %scale : f64) {
  %trips = array.loop %i to %n do {
    %inner = array.loop %j to %m do {
      %v = memref.load %x[%i, %j] : memref<?x?xf64>
      %w = arith.mulf %v, %scale : f64
      %negative = arith.cmpf olt, %w, %zero : f64
      array.raise_if %negative, "ValueError", "math domain error"
      %r = math.sqrt %w : f64
      memref.store %r, %y[%i, %j] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_nest_overwrites_what_is_asked
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_where_the_nest_overwrites_what_is_asked(%x : memref<?xf64>, %n : index, %zero : f64) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %negative = arith.cmpf olt, %v, %zero : f64
    array.raise_if %negative, "ValueError", "math domain error"
    %r = math.sqrt %v : f64
    memref.store %r, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_arguments_may_share_memory
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_where_the_arguments_may_share_memory(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %zero : f64) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %negative = arith.cmpf olt, %v, %zero : f64
    array.raise_if %negative, "ValueError", "math domain error"
    %r = math.sqrt %v : f64
    memref.store %r, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_variable_of_the_nest_is_asked
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_where_a_variable_of_the_nest_is_asked(%x : memref<?xf64>, %n : index, %zero : f64) {
  %sum = memref.alloca() : memref<f64>
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %n do {
    %s = memref.load %sum[] : memref<f64>
    %negative = arith.cmpf olt, %s, %zero : f64
    array.raise_if %negative, "ValueError", "math domain error"
    %v = memref.load %x[%i] : memref<?xf64>
    %t = arith.addf %s, %v : f64
    memref.store %t, %sum[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_condition_takes_long
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @kept_where_the_condition_takes_long(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %inf : f64) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %v : f64
    %over = arith.cmpf oeq, %e, %inf : f64
    array.raise_if %over, "OverflowError", "math range error"
    memref.store %e, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_subscript_may_raise_first
// CHECK-NOT:     {raises}
// CHECK:         func.return
func.func @kept_where_a_subscript_may_raise_first(%x : memref<?xf64>, %n : index, %m : index, %zero : f64) {
  %trips = array.loop %i to %n do {
    %k = array.index %i, %m axis 0 : i64 sign "nonneg"
    %v = memref.load %x[%k] : memref<?xf64>
    %negative = arith.cmpf olt, %v, %zero : f64
    array.raise_if %negative, "ValueError", "math domain error"
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_under_a_condition_and_in_a_while
// CHECK-NOT:     {raises}
// CHECK:         func.return
func.func @kept_under_a_condition_and_in_a_while(%x : memref<?xf64>, %n : index, %zero : f64, %c : i1) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    scf.if %c {
      %negative = arith.cmpf olt, %v, %zero : f64
      array.raise_if %negative, "ValueError", "math domain error"
    } else {
    }
    array.yield
  }
  %more = array.loop %i while {
  ^bb0(%k : index):
    array.condition %c
  } do {
    %v = memref.load %x[%i] : memref<?xf64>
    %negative = arith.cmpf olt, %v, %zero : f64
    array.raise_if %negative, "ValueError", "math domain error"
    array.yield
  }
  func.return
}
