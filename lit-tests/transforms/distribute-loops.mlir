// RUN: mutad-opt %s -p distribute-loops | filecheck %s

// CHECK-LABEL: @exponentials_are_apart_from_their_sum
// CHECK:         %[[terms:.*]] = array.alloc(%{{.*}}) {stack} : memref<128xf64>
// CHECK:         } else {
// CHECK:           array.loop
// CHECK:             %[[e:.*]] = math.exp
// CHECK-NEXT:        memref.store %[[e]], %[[terms]]
// CHECK-NOT:         arith.addf
// CHECK:           array.loop
// CHECK:             memref.load %[[terms]]
// CHECK:             arith.addf
// CHECK:             memref.store %{{.*}}, %s[]
func.func @exponentials_are_apart_from_their_sum(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// The block is looked at first: where something raises, it runs as it was.
// CHECK-LABEL: @what_raises_is_found_before_anything_is_stored
// CHECK:         %[[failed:.*]] = memref.alloca() : memref<i64>
// CHECK:         array.loop
// CHECK:           %[[bad:.*]] = arith.cmpf
// CHECK-NOT:       array.raise_if
// CHECK-NOT:       %y[
// CHECK:           arith.extui %[[bad]] : i1 to i64
// CHECK:           memref.store %{{.*}}, %[[failed]][]
// CHECK:         scf.if
// CHECK:           array.raise_if
// CHECK:         } else {
// CHECK-NOT:       array.raise_if
// CHECK:           math.log
// CHECK:           memref.store %{{.*}}, %y[
// CHECK:         func.return
func.func @what_raises_is_found_before_anything_is_stored(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %bad = arith.cmpf ole, %a, %zero : f64
    array.raise_if %bad, "ValueError", "math domain error"
    %l = math.log %a : f64
    memref.store %l, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What follows from the recurrence alone comes in a third loop.
// CHECK-LABEL: @before_and_after_a_recurrence
// CHECK:         } else {
// CHECK:           array.loop
// CHECK:             math.sin
// CHECK:           array.loop
// CHECK-NOT:         math
// CHECK:             arith.mulf
// CHECK:             memref.store %{{.*}}, %s[]
// CHECK:           array.loop
// CHECK:             math.exp
// CHECK:             memref.store %{{.*}}, %y[
func.func @before_and_after_a_recurrence(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %factor = math.sin %a : f64
    %old = memref.load %s[] : memref<f64>
    %new = arith.mulf %old, %factor : f64
    memref.store %new, %s[] : memref<f64>
    %e = math.exp %new : f64
    memref.store %e, %y[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// The shadow of the neighbour in the same row recurs; the rows above and below are vectors.
// CHECK-LABEL: @one_addition_recurs_and_others_are_apart
// CHECK:         } else {
// CHECK:           array.loop
// CHECK-NOT:         %down
// CHECK:             memref.store %{{.*}}, %row[
// CHECK-NOT:         %down
// CHECK:           array.loop
// CHECK:             memref.load %down[
// CHECK:             memref.store %{{.*}}, %down[
func.func @one_addition_recurs_and_others_are_apart(%row : memref<?xf64>, %down : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %nine = arith.constant 9.0 : f64
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %last do {
    %j = arith.addi %i, %c1 : index
    %bar = memref.load %row[%i] : memref<?xf64>
    %root = math.exp %bar : f64
    %w = arith.divf %bar, %nine {ad.adjoint} : f64
    %next = memref.load %row[%j] : memref<?xf64>
    %more = arith.addf %next, %w {ad.adjoint} : f64
    memref.store %more, %row[%j] : memref<?xf64>
    %under = memref.load %down[%i] : memref<?xf64>
    %far = arith.mulf %w, %root {ad.adjoint} : f64
    %added = arith.addf %under, %far {ad.adjoint} : f64
    memref.store %added, %down[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// A cell that hands its value on, and a store that reads of later iterations meet.
// CHECK-LABEL: @what_is_added_to_a_later_store_is_apart_from_it
// CHECK:         } else {
// CHECK:           array.loop
// CHECK:             memref.store %{{.*}}, %a[
// CHECK:           array.loop
// CHECK:             arith.addf
// CHECK:             memref.store %{{.*}}, %a[
func.func @what_is_added_to_a_later_store_is_apart_from_it(%a : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %first = arith.subi %last, %c1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %k to %last do {
    %i = arith.subi %first, %k : index
    %j = arith.addi %i, %c1 : index
    %bar = memref.load %a[%i] : memref<?xf64>
    %e = math.exp %bar : f64
    memref.store %zero, %a[%i] : memref<?xf64>
    %next = memref.load %a[%j] : memref<?xf64>
    %more = arith.addf %next, %e {ad.adjoint} : f64
    memref.store %more, %a[%j] : memref<?xf64>
    array.yield
  }
  func.return
}

// Two factors go to the sum, which codegen contracts with their product, as in blocks of few iterations.
// CHECK-LABEL: @products_stay_with_the_sums_of_adjoints
// CHECK:         } else {
// CHECK:           %[[a:.*]] = math.exp
// CHECK-NEXT:      memref.store %[[a]]
// CHECK-NOT:       arith.mulf
// CHECK:           array.loop
// CHECK:             %[[factor:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<128xf64>
// CHECK:             %[[product:.*]] = arith.mulf %[[factor]]
// CHECK:             arith.addf %{{.*}}, %[[product]] {ad.adjoint}
func.func @products_stay_with_the_sums_of_adjoints(%x : memref<?xf64>, %s : memref<?xf64>, %index : memref<?xindex>, %k : f64, %n : index) {
  %trips = array.loop %i to %n do {
    %v = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %v : f64
    %p = arith.mulf %e, %k {ad.adjoint} : f64
    %at = memref.load %index[%i] : memref<?xindex>
    %old = memref.load %s[%at] : memref<?xf64>
    %sum = arith.addf %old, %p {ad.adjoint} : f64
    memref.store %sum, %s[%at] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_terms_are_cheap
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_the_terms_are_cheap(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %square = arith.mulf %a, %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %square : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_all_waits_for_the_recurrence
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_all_waits_for_the_recurrence(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %a : f64
    %e = math.sin %sum : f64
    memref.store %e, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// What the loop stores decides whether it raises: which stores are made before, only the loop knows.
// CHECK-LABEL: @kept_when_what_raises_is_stored_before
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_what_raises_is_stored_before(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %i to %last do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    memref.store %e, %x[%j] : memref<?xf64>
    %bad = arith.cmpf ole, %a, %zero : f64
    array.raise_if %bad, "ValueError", "math domain error"
    %l = math.log %e : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %l : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// A subscript from an array is checked before the next one is looked at.
// CHECK-LABEL: @kept_when_a_subscript_may_raise
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_a_subscript_may_raise(%x : memref<?xf64>, %n : index, %m : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %j = array.index %i, %m axis 0 : i64 sign "any"
    %a = memref.load %x[%j] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @apart_when_the_arrays_are_apart
// CHECK:         array.alloc
// CHECK-LABEL: @kept_when_the_arrays_may_be_one
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @apart_when_the_arrays_are_apart(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    memref.store %e, %y[%i] : memref<?xf64>
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}
func.func @kept_when_the_arrays_may_be_one(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) attributes {overlaps = [[0, 1]]} {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    memref.store %e, %y[%i] : memref<?xf64>
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_loop_is_short
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_a_loop_is_short(%x : memref<?xf64>) {
  %n = arith.constant 3 : index
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_program_claims_independence
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_the_program_claims_independence(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  } {claimed}
  func.return
}

// CHECK-LABEL: @kept_when_something_is_printed
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_something_is_printed(%x : memref<?xf64>, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %e : f64
    array.print "{}" (%sum : f64)
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_an_array_is_chosen
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_an_array_is_chosen(%x : memref<?xf64>, %y : memref<?xf64>, %c : f64, %n : index) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %more = arith.cmpf ogt, %a, %c : f64
    %z = scf.if %more -> (memref<?xf64>) {
      scf.yield %x : memref<?xf64>
    } else {
      scf.yield %y : memref<?xf64>
    }
    %b = memref.load %z[%i] : memref<?xf64>
    %term = arith.mulf %e, %b : f64
    %old = memref.load %s[] : memref<f64>
    %sum = arith.addf %old, %term : f64
    memref.store %sum, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// Several tangents are a vector: what they are multiplied by is computed first, for many iterations at once.
// CHECK-LABEL: @numbers_go_before_several_tangents
// CHECK:         %[[partials:.*]] = array.alloc(%{{.*}}) {stack} : memref<128xf64>
// CHECK:         } else {
// CHECK:           array.loop
// CHECK:             %[[p:.*]] = arith.divf
// CHECK-NEXT:        memref.store %[[p]], %[[partials]]
// CHECK-NOT:         vector
// CHECK:           array.loop
// CHECK:             %[[q:.*]] = memref.load %[[partials]]
// CHECK-NOT:         math
// CHECK:             vector.broadcast %[[q]] {ad.adjoint} : f64 to vector<8xf64>
func.func @numbers_go_before_several_tangents(%x : memref<?xf64>, %x_dot : memref<?xvector<8xf64>>, %s_dot : memref<vector<8xf64>>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %a_dot = memref.load %x_dot[%i] : memref<?xvector<8xf64>>
    %r = math.sqrt %a : f64
    %p = arith.divf %a, %r : f64
    %wide = vector.broadcast %p {ad.adjoint} : f64 to vector<8xf64>
    %t = arith.mulf %a_dot, %wide {ad.adjoint} : vector<8xf64>
    %old = memref.load %s_dot[] : memref<vector<8xf64>>
    %sum = arith.addf %old, %t {ad.adjoint} : vector<8xf64>
    memref.store %sum, %s_dot[] : memref<vector<8xf64>>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_tangents_are_nearly_all_of_the_work
// CHECK-NOT:     {stack}
// CHECK:         func.return
func.func @kept_when_tangents_are_nearly_all_of_the_work(%x : memref<?xf64>, %x_dot : memref<?xvector<8xf64>>, %s_dot : memref<vector<8xf64>>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    %a_dot = memref.load %x_dot[%i] : memref<?xvector<8xf64>>
    %wide = vector.broadcast %b {ad.adjoint} : f64 to vector<8xf64>
    %t = arith.mulf %a_dot, %wide {ad.adjoint} : vector<8xf64>
    memref.store %t, %x_dot[%i] : memref<?xvector<8xf64>>
    %old = memref.load %s_dot[] : memref<vector<8xf64>>
    %sum = arith.addf %old, %t {ad.adjoint} : vector<8xf64>
    memref.store %sum, %s_dot[] : memref<vector<8xf64>>
    array.yield
  }
  func.return
}

// A chain that is shortened is the program's in blocks of few iterations; beside vectors, that is what it does
// where numbers are lost.
// CHECK-LABEL: @shortened_in_blocks
// CHECK:         scf.if
// CHECK:           array.loop
// CHECK-NOT:         scf.if
// CHECK:             %[[own:.*]] = arith.mulf %{{.*}}, %{{.*}}
// CHECK:             memref.store
// CHECK:         } else {
// CHECK:           math.exp
// CHECK:           scf.if
func.func @shortened_in_blocks(%x : memref<?xf64>, %n : index, %y : memref<?xf64>) {
  %s = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %factor = arith.mulf %e, %a : f64
    %old = memref.load %s[] : memref<f64>
    %product = arith.mulf %old, %factor : f64
    %c = arith.cmpf ord, %product, %product : f64
    %next = scf.if %c -> (f64) {
      scf.yield %product : f64
    } else {
      %once = arith.mulf %old, %e : f64
      %twice = arith.mulf %once, %a : f64
      scf.yield %twice : f64
    } {shortened = 3 : i64}
    memref.store %next, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// Nothing is beside this one, which does more than to wait.
// CHECK-LABEL: @undone_in_one_loop
// CHECK-NOT:     scf.if
// CHECK:         %once = arith.mulf %old, %a
// CHECK-NEXT:    %twice = arith.mulf %once, %a
// CHECK-NEXT:    memref.store %twice, %s[]
func.func @undone_in_one_loop(%x : memref<?xf64>, %s : memref<f64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %factor = arith.mulf %a, %a : f64
    %old = memref.load %s[] : memref<f64>
    %product = arith.mulf %old, %factor : f64
    %c = arith.cmpf ord, %product, %product : f64
    %next = scf.if %c -> (f64) {
      scf.yield %product : f64
    } else {
      %once = arith.mulf %old, %a : f64
      %twice = arith.mulf %once, %a : f64
      scf.yield %twice : f64
    } {shortened = 0 : i64}
    memref.store %next, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// This one waits for its chain longer than for all else.
// CHECK-LABEL: @shortened_in_one_loop
// CHECK:         scf.if
func.func @shortened_in_one_loop(%x : memref<?xf64>, %s : memref<f64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %factor = arith.mulf %a, %a : f64
    %old = memref.load %s[] : memref<f64>
    %product = arith.mulf %old, %factor : f64
    %c = arith.cmpf ord, %product, %product : f64
    %next = scf.if %c -> (f64) {
      scf.yield %product : f64
    } else {
      %once = arith.mulf %old, %a : f64
      %twice = arith.mulf %once, %a : f64
      scf.yield %twice : f64
    } {shortened = 5 : i64}
    memref.store %next, %s[] : memref<f64>
    array.yield
  }
  func.return
}

// Steps of a budget add up as the gradient that runs no step again: what it splits, they split.
func.func @split_in_the_gradient(%x : memref<?xf64>, %n : index, %v : memref<f64>, %s : memref<?xf64>, %zero : index) {
  %v_bar = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %v_bar[] : memref<f64>
    %next = arith.mulf %old, %e {ad.adjoint} : f64
    memref.store %next, %v_bar[] : memref<f64>
    %before = memref.load %s[%zero] : memref<?xf64>
    %sum = arith.addf %before, %next {ad.adjoint} : f64
    memref.store %sum, %s[%zero] : memref<?xf64>
    array.yield
  } loc("program.py":7:5)
  %end = memref.load %v_bar[] : memref<f64>
  memref.store %end, %v[] : memref<f64>
  func.return
}

// CHECK-LABEL: @follows_though_it_has_saved_the_function
// CHECK:         {stack}
// CHECK:         func.return
func.func private @follows_though_it_has_saved_the_function(%e_saved : memref<?xf64>, %n : index, %v : memref<f64>, %s : memref<?xf64>, %zero : index) attributes {live = array<i64: 0>} {
  %v_bar = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %e = memref.load %e_saved[%i] : memref<?xf64>
    %old = memref.load %v_bar[] : memref<f64>
    %next = arith.mulf %old, %e {ad.adjoint} : f64
    memref.store %next, %v_bar[] : memref<f64>
    %before = memref.load %s[%zero] : memref<?xf64>
    %sum = arith.addf %before, %next {ad.adjoint} : f64
    memref.store %sum, %s[%zero] : memref<?xf64>
    array.yield
  } loc("program.py":7:5)
  %end = memref.load %v_bar[] : memref<f64>
  memref.store %end, %v[] : memref<f64>
  func.return
}

// CHECK-LABEL: @kept_in_a_step_where_the_gradient_kept_it
// CHECK-NOT:     {stack}
// CHECK:         func.return
func.func private @kept_in_a_step_where_the_gradient_kept_it(%x : memref<?xf64>, %n : index, %v : memref<f64>, %s : memref<?xf64>, %zero : index) attributes {live = array<i64: 0>} {
  %v_bar = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %v_bar[] : memref<f64>
    %next = arith.mulf %old, %e {ad.adjoint} : f64
    memref.store %next, %v_bar[] : memref<f64>
    %before = memref.load %s[%zero] : memref<?xf64>
    %sum = arith.addf %before, %next {ad.adjoint} : f64
    memref.store %sum, %s[%zero] : memref<?xf64>
    array.yield
  } loc("program.py":99:5)
  %end = memref.load %v_bar[] : memref<f64>
  memref.store %end, %v[] : memref<f64>
  func.return
}

// Chains alone come in the order that they have, whatever is beside them.
// CHECK-LABEL: @a_step_without_sums_does_what_pays
// CHECK:         {stack}
// CHECK:         func.return
func.func private @a_step_without_sums_does_what_pays(%x : memref<?xf64>, %n : index, %v : memref<f64>) attributes {live = array<i64: 0>} {
  %v_bar = memref.alloca() : memref<f64>
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %e = math.exp %a : f64
    %old = memref.load %v_bar[] : memref<f64>
    %product = arith.mulf %old, %e {ad.adjoint} : f64
    %next = arith.addf %product, %a {ad.adjoint} : f64
    memref.store %next, %v_bar[] : memref<f64>
    array.yield
  } loc("program.py":101:5)
  %end = memref.load %v_bar[] : memref<f64>
  memref.store %end, %v[] : memref<f64>
  func.return
}

// Nor does a step give a chain back that the gradient has left shortened, or the other way round.
// CHECK-LABEL: @undone_as_in_the_gradient
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func private @undone_as_in_the_gradient(%x : memref<?xf64>, %s : memref<f64>, %n : index) attributes {live = array<i64: 0>} {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %factor = arith.mulf %a, %a : f64
    %old = memref.load %s[] : memref<f64>
    %product = arith.mulf %old, %factor : f64
    %c = arith.cmpf ord, %product, %product : f64
    %next = scf.if %c -> (f64) {
      scf.yield %product : f64
    } else {
      %once = arith.mulf %old, %a : f64
      %twice = arith.mulf %once, %a : f64
      scf.yield %twice : f64
    } {shortened = 5 : i64}
    memref.store %next, %s[] : memref<f64>
    array.yield
  } loc("program.py":102:5)
  func.return
}
