// RUN: mutad-opt %s -p size-tapes | filecheck %s

// A copy that stores nothing counts; what is pushed is in columns of an array, under its iteration.
// CHECK-LABEL: @counted_before
// CHECK:         array.loop
// CHECK-NOT:       memref.store %{{.*}}, %o
// CHECK:           arith.maxsi
// CHECK:         %[[SAVED:.*]] = ad.push %{{.*}}(%{{.*}}, %{{.*}}) : memref<?x?xf64>
// CHECK:         array.loop %[[I:.*]] to
// CHECK-NOT:       ad.push
// CHECK:           memref.store %{{.*}}, %[[SAVED]][%{{.*}}, %[[I]]]
// CHECK:           memref.store %{{.*}}, %o
// CHECK:         %[[BACK:.*]] = ad.pop %{{.*}}(%{{.*}}, %{{.*}}) : memref<?x?xf64>
// CHECK:         array.loop
// CHECK:           %[[COLUMN:.*]] = arith.subi
// CHECK-NOT:       ad.pop
// CHECK:           memref.load %[[BACK]][%{{.*}}, %[[COLUMN]]]
func.func @counted_before(%x : memref<?xf64>, %o : memref<?xf64>, %n : index, %most : f64) {
  %t = ad.tape
  %y = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %first = memref.load %x[%i] : memref<?xf64>
    memref.store %first, %y[] : memref<f64>
    %inner = array.loop %j while {
    ^bb0(%k : index):
      %a = memref.load %y[] : memref<f64>
      %more = arith.cmpf olt, %a, %most : f64
      array.condition %more
    } do {
      %saved = ad.push %t() : memref<f64>
      %b = memref.load %y[] : memref<f64>
      memref.store %b, %saved[] : memref<f64>
      %c = arith.mulf %b, %b : f64
      memref.store %c, %y[] : memref<f64>
      array.yield
    }
    %last = memref.load %y[] : memref<f64>
    memref.store %last, %o[%i] : memref<?xf64>
    array.yield
  }
  %back = array.loop %r to %n do {
    %m = memref.load %x[%r] : memref<?xf64>
    %inner = array.loop %j to %n do {
      %saved = ad.pop %t() : memref<f64>
      %v = memref.load %saved[] : memref<f64>
      %w = arith.mulf %v, %m : f64
      memref.store %w, %o[%r] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A loop that ends early has as many columns as it has iterations, not as many as it may have.
// CHECK-LABEL: @columns_of_what_has_run
// CHECK:         %[[TRIPS:.*]] = array.loop %{{.*}} to %n while
// CHECK:         ad.push %{{.*}}(%[[TRIPS]]) : memref<?xindex>
// CHECK:         %[[SAVED:.*]] = ad.push %{{.*}}(%{{.*}}, %[[TRIPS]]) : memref<?x?xf64>
// CHECK:         array.loop %[[I:.*]] to %n while
// CHECK:           memref.store %{{.*}}, %[[SAVED]][%{{.*}}, %[[I]]]
func.func @columns_of_what_has_run(%x : memref<?xf64>, %o : memref<?xf64>, %n : index, %most : index) {
  %t = ad.tape
  %trips = array.loop %i to %n while {
  ^bb0(%k : index):
    %more = arith.cmpi slt, %k, %most : index
    array.condition %more
  } do {
    %v = memref.load %x[%i] : memref<?xf64>
    %inner = array.loop %j to %i do {
      %saved = ad.push %t() : memref<f64>
      memref.store %v, %saved[] : memref<f64>
      array.yield
    }
    memref.store %v, %o[%i] : memref<?xf64>
    array.yield
  }
  %back = array.loop %r to %trips do {
    %inner = array.loop %j to %n do {
      %saved = ad.pop %t() : memref<f64>
      %v = memref.load %saved[] : memref<f64>
      memref.store %v, %o[%r] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// How often it pushes depends on what the iteration before has stored.
// CHECK-LABEL: @kept_where_the_count_is_of_what_is_stored
// CHECK-NOT:     memref<?x?xf64>
// CHECK:         ad.push %t() : memref<f64>
func.func @kept_where_the_count_is_of_what_is_stored(%x : memref<?xf64>, %n : index, %most : f64) {
  %t = ad.tape
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %large = arith.cmpf ogt, %v, %most : f64
    scf.if %large {
      %saved = ad.push %t() : memref<f64>
      memref.store %v, %saved[] : memref<f64>
    }
    %next = arith.addi %i, %c1 : index
    memref.store %v, %x[%next] : memref<?xf64>
    array.yield
  }
  %back = array.loop %r to %n do {
    %saved = ad.pop %t() : memref<f64>
    %v = memref.load %saved[] : memref<f64>
    memref.store %v, %x[%r] : memref<?xf64>
    array.yield
  }
  func.return
}

// Nobody knows how many iterations there are.
// CHECK-LABEL: @kept_in_a_while
// CHECK-NOT:     memref<?x?xf64>
// CHECK:         ad.push %t() : memref<f64>
func.func @kept_in_a_while(%x : memref<?xf64>, %n : index, %most : f64) {
  %t = ad.tape
  %trips = array.loop %i while {
  ^bb0(%k : index):
    %a = memref.load %x[%k] : memref<?xf64>
    %more = arith.cmpf olt, %a, %most : f64
    array.condition %more
  } do {
    %v = memref.load %x[%i] : memref<?xf64>
    %saved = ad.push %t() : memref<f64>
    memref.store %v, %saved[] : memref<f64>
    array.yield
  }
  %back = array.loop %r to %trips do {
    %saved = ad.pop %t() : memref<f64>
    %v = memref.load %saved[] : memref<f64>
    memref.store %v, %x[%r] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_where_another_half_pops
// CHECK-NOT:     memref<?x?xf64>
// CHECK:         ad.push %t() : memref<f64>
func.func @kept_where_another_half_pops(%x : memref<?xf64>, %n : index) -> !ad.tape {
  %t = ad.tape
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %saved = ad.push %t() : memref<f64>
    memref.store %v, %saved[] : memref<f64>
    array.yield
  }
  func.return %t : !ad.tape
}
