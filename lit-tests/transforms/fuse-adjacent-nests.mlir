// RUN: mutad-opt %s -p fuse-adjacent-nests | filecheck %s

// Columns outside, then the rows below: one innermost loop from behind the diagonal to the end.
// CHECK-LABEL: @joined
// CHECK:         array.loop %d to
// CHECK:           array.loop %r to
// CHECK:             array.loop %t to
// CHECK:               arith.mulf
// CHECK-NOT:         array.loop
// CHECK:             arith.divf
// CHECK-NOT:     array.loop
// CHECK:         func.return
func.func @joined(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %n do {
    %i = arith.subi %last, %r : index
    %right = arith.subi %n, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %j = arith.addi %i, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// No innermost loop has the column of the diagonal.
// CHECK-LABEL: @kept_with_a_gap_between_the_ranges
// CHECK:         array.loop %r to
// CHECK:           array.loop %k to
// CHECK:             array.loop
// CHECK:           array.loop %d to
// CHECK:             array.loop
// CHECK:         func.return
func.func @kept_with_a_gap_between_the_ranges(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %n do {
    %i = arith.subi %last, %r : index
    %right = arith.subi %last, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %0 = arith.addi %i, %t : index
        %j = arith.addi %0, %c1 : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The other range is computed in another way.
// CHECK-LABEL: @kept_when_the_bodies_differ
// CHECK:         array.loop %r to
// CHECK:           array.loop %k to
// CHECK:             array.loop
// CHECK:           array.loop %d to
// CHECK:             array.loop
// CHECK:         func.return
func.func @kept_when_the_bodies_differ(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %n do {
    %i = arith.subi %last, %r : index
    %right = arith.subi %n, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %j = arith.addi %i, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.addf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Rows above would be added to with the last element as it is after a division.
// CHECK-LABEL: @kept_when_the_second_changes_what_the_first_reads
// CHECK:         array.loop %r to
// CHECK:           array.loop %k to
// CHECK:             array.loop
// CHECK:           array.loop %d to
// CHECK:             array.loop
// CHECK:         func.return
func.func @kept_when_the_second_changes_what_the_first_reads(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %n do {
    %i = arith.subi %last, %r : index
    %right = arith.subi %n, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %j = arith.addi %i, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %last] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A row adds to itself, once for each k: two accesses that all k share, one that all rows share.
// CHECK-LABEL: @kept_when_the_loop_outside_shares_less
// CHECK:         array.loop %r to
// CHECK:           array.loop %k to
// CHECK:             array.loop
// CHECK:           array.loop %d to
// CHECK:             array.loop
// CHECK:         func.return
func.func @kept_when_the_loop_outside_shares_less(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %n do {
    %i = arith.subi %last, %r : index
    %right = arith.subi %n, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %j = arith.addi %i, %t : index
        %x = memref.load %a[%k, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %a[%k, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%i, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%i, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// From the first row to the last one a row is divided before all is added to those below.
// CHECK-LABEL: @kept_when_rows_need_those_above
// CHECK:         array.loop %r to
// CHECK:           array.loop %k to
// CHECK:             array.loop
// CHECK:           array.loop %d to
// CHECK:             array.loop
// CHECK:         func.return
func.func @kept_when_rows_need_those_above(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %r to %last do {
    %i = arith.addi %r, %c1 : index
    %right = arith.subi %n, %i : index
    %trips_1 = array.loop %k to %i do {
      %trips_2 = array.loop %t to %right do {
        %j = arith.addi %i, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    %before = arith.subi %i, %c1 : index
    %trips_3 = array.loop %d to %i do {
      %k = arith.subi %before, %d : index
      %first = arith.addi %k, %c1 : index
      %left = arith.subi %i, %first : index
      %trips_4 = array.loop %t to %left do {
        %j = arith.addi %first, %t : index
        %x = memref.load %s[%i, %j] : memref<?x?xf64>
        %f = memref.load %a[%i, %k] : memref<?x?xf64>
        %p = arith.mulf %x, %f : f64
        %old = memref.load %s[%k, %j] : memref<?x?xf64>
        %sum = arith.addf %old, %p {ad.adjoint} : f64
        memref.store %sum, %s[%k, %j] : memref<?x?xf64>
        array.yield
      }
      %y = memref.load %s[%i, %k] : memref<?x?xf64>
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %y, %pivot : f64
      memref.store %q, %s[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}
