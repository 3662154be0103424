// RUN: mutad-opt %s -p reverse,promote-scalars | filecheck %s
// RUN: mutad-opt %s -p reverse --run --only saved_once_where_it_is_overwritten_gradient --args 'u=[1, 2, 3, 4], n=3, u_shadow=[1, 1, 1, 1]' | filecheck %s --check-prefix ONCE
// RUN: mutad-opt %s -p reverse --run --only a_while_pushes_and_pops_gradient --args 'x=2, limit=100, x_shadow=1' | filecheck %s --check-prefix WHILE

// A shadow argument for each active array, a cotangent for each result, a result for each scalar.
// CHECK-LABEL: @product_gradient(%a: f64, %b: f64, %c_bar: f64) -> (f64, f64, f64)
// CHECK-SAME:    shadows = array<i64>, cotangents = array<i64: 0>, scalars = array<i64: 0, 1>
// CHECK:         %c = arith.mulf %a, %b
// CHECK:         ad.mul %c_bar, %b {ad.adjoint}
// CHECK:         ad.mul %c_bar, %a {ad.adjoint}
// CHECK:         func.return %c, %a_bar, %b_bar : f64, f64, f64
func.func @product(%a : f64, %b : f64) -> f64 {
  %c = arith.mulf %a, %b : f64
  func.return %c : f64
}

// The adjoint of a load adds to the shadow.
// CHECK-LABEL: @load_gradient(%x: memref<?xf64>, %i: index, %x_shadow: memref<?xf64>, %a_bar: f64) -> f64
// CHECK:         %a = memref.load %x[%i]
// CHECK:         [[old:%\d+]] = memref.load %x_shadow[%i]
// CHECK-NEXT:    [[new:%\d+]] = arith.addf [[old]], %a_bar
// CHECK-NEXT:    memref.store [[new]], %x_shadow[%i]
// CHECK-NEXT:    func.return %a
func.func @load(%x : memref<?xf64>, %i : index) -> f64 {
  %a = memref.load %x[%i] : memref<?xf64>
  func.return %a : f64
}

// The adjoint of a store takes the shadow, and zeroes it.
// CHECK-LABEL: @store_gradient(
// CHECK:         memref.store %a, %x[%i]
// CHECK:         %a_bar = memref.load %x_shadow[%i]
// CHECK-NEXT:    [[zero:%\d+]] = arith.constant 0.0
// CHECK-NEXT:    memref.store [[zero]], %x_shadow[%i]
// CHECK-NEXT:    func.return %a_bar
func.func @store(%x : memref<?xf64>, %i : index, %a : f64) {
  memref.store %a, %x[%i] : memref<?xf64>
  func.return
}

// A store of what is not active zeroes the shadow as well.
// CHECK-LABEL: @store_of_a_constant_gradient(
// CHECK:         memref.store %one, %x[%i]
// CHECK-NOT:     memref.load
// CHECK:         memref.store {{%\d+}}, %x_shadow[%i]
func.func @store_of_a_constant(%x : memref<?xf64>, %i : index) {
  %one = arith.constant 1.0 : f64
  memref.store %one, %x[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @integers_have_no_shadow_gradient(%k: memref<?xi64>, %i: index, %a: f64, %b_bar: f64)
// CHECK-NOT:     k_shadow
// CHECK:         func.return
func.func @integers_have_no_shadow(%k : memref<?xi64>, %i : index, %a : f64) -> f64 {
  %n = memref.load %k[%i] : memref<?xi64>
  memref.store %n, %k[%i] : memref<?xi64>
  %b = arith.addf %a, %a : f64
  func.return %b : f64
}

// The iterations that ran, the last one first.
// CHECK-LABEL: @a_loop_runs_backwards_gradient(
// CHECK:         %trips = array.loop %i to %n do
// CHECK:         array.loop [[k:%\d+]] to %trips do
// CHECK:           [[last:%\d+]] = arith.subi %trips
// CHECK-NEXT:      [[i:%\w+]] = arith.subi [[last]], [[k]]
// CHECK:           memref.load %x_shadow[[[i]]]
func.func @a_loop_runs_backwards(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// One segment before the loop, indexed by its induction in both sweeps.
// CHECK-LABEL: @a_save_is_an_array_of_the_iterations_gradient(
// CHECK:         [[count:%\d+]] = arith.maxsi %n, {{%\d+}} : index
// CHECK-NEXT:    %a_saved = ad.push {{%\d+}}([[count]]) : memref<?xf64>
// CHECK-NEXT:    %trips = array.loop %i to %n do
// CHECK:           memref.store %a, %a_saved[%i]
// CHECK:         array.loop
// CHECK-NOT:     ad.pop
// CHECK:           memref.load %a_saved[%i_1]
func.func @a_save_is_an_array_of_the_iterations(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// In a `while` each iteration pushes, and its adjoint pops.
// CHECK-LABEL: @a_while_pushes_and_pops_gradient(
// CHECK:         [[tape:%\d+]] = ad.tape
// CHECK-NEXT:    %trips = array.loop
// CHECK:           %b_saved = ad.push [[tape]]() : memref<f64>
// CHECK:         array.loop {{%\d+}} to %trips do
// CHECK:           %b_saved_1 = ad.pop [[tape]]() : memref<f64>
// CHECK:           memref.load %b_saved_1[]
// Squared three times from 2 on: x**8 is 256, its slope 8 * x**7.
// WHILE:         x = 256
// WHILE-NEXT:    x_shadow = 1024
func.func @a_while_pushes_and_pops(%x : memref<f64>, %limit : f64) {
  %trips = array.loop %k while {
  ^bb0(%kc : index):
    %a = memref.load %x[] : memref<f64>
    %more = arith.cmpf olt, %a, %limit : f64
    array.condition %more
  } do {
    %b = memref.load %x[] : memref<f64>
    %c = arith.mulf %b, %b : f64
    memref.store %c, %x[] : memref<f64>
    array.yield
  }
  func.return
}

// The branch that was taken is taken again, by its condition: one bit an iteration.
// CHECK-LABEL: @the_branch_taken_is_taken_again_gradient(
// CHECK:         %positive_byte = memref.alloca() : memref<i8>
// CHECK:         %[[EIGHTH:.*]] = arith.shrui
// CHECK:         %positive_saved = ad.push {{%\d+}}(%[[EIGHTH]]) : memref<?xi8>
// CHECK:         memref.store {{.*}}, %positive_saved[
// CHECK:         memref.load %positive_saved[
// CHECK:         %positive_1 = arith.trunci
// CHECK:         scf.if %positive_1
func.func @the_branch_taken_is_taken_again(%x : memref<?xf64>, %n : index) {
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %positive = arith.cmpf ogt, %a, %zero : f64
    scf.if %positive {
      %b = arith.addf %a, %a : f64
      memref.store %b, %x[%i] : memref<?xf64>
    }
    array.yield
  }
  func.return
}

// The adjoint of a map is a map over the same points.
// CHECK-LABEL: @a_map_stays_a_map_gradient(
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>)
// CHECK:         array.map(%n) ins(%y_shadow, %x : memref<?xf64>, memref<?xf64>) outs(%y_shadow, %x_shadow : memref<?xf64>, memref<?xf64>) kinds ["store", "add"]
// CHECK-NOT:     array.loop
func.func @a_map_stays_a_map(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
  ^bb0(%a : f64):
    %b = math.sin %a : f64
    array.yield %b : f64
  }
  func.return
}

// The shadow of a view is the view of the shadow.
// CHECK-LABEL: @shadows_of_views_gradient(
// CHECK:         array.view %x[%k] {{.*}}: memref<?xf64> ->
// CHECK:         %w_shadow = array.view %x_shadow[%k]
// CHECK:         memref.store {{%\d+}}, %w_shadow[%i]
!shifted = memref<?xf64, strided<[1]>>
func.func @shadows_of_views(%x : memref<?xf64>, %n : index, %k : index, %i : index) -> f64 {
  %c1 = arith.constant 1 : index
  %w = array.view %x[%k] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> !shifted
  %a = memref.load %w[%i] : !shifted
  func.return %a : f64
}

// c += a b: a_bar += c_bar b^T, b_bar += a^T c_bar, and c_bar stays.
// CHECK-LABEL: @an_accumulating_product_keeps_its_cotangent_gradient(
// CHECK:         [[bt:%\d+]] = array.view %b[{{.*}}] dims [1, 0]
// CHECK:         array.matmul %c_shadow, [[bt]] into %a_shadow accumulate
// CHECK:         [[at:%\d+]] = array.view %a[{{.*}}] dims [1, 0]
// CHECK:         array.matmul [[at]], %c_shadow into %b_shadow accumulate
// CHECK-NEXT:    func.return
func.func @an_accumulating_product_keeps_its_cotangent(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// CHECK-LABEL: @a_product_zeroes_the_shadow_it_overwrites_gradient(
// CHECK:         array.matmul {{.*}} into %b_shadow accumulate
// CHECK:         array.map({{.*}}) outs(%c_shadow : memref<?x?xf64>) kinds ["store"]
func.func @a_product_zeroes_the_shadow_it_overwrites(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// u, v = v, u backwards: what is u after the swap was v before it.
// CHECK-LABEL: @a_swap_is_swapped_back_gradient(
// CHECK:         array.loop {{%\d+}} to %trips carry(%v_1 = %u1 : memref<?xf64>, %u_1 = %v1 : memref<?xf64>, %v_shadow = {{.*}}, %u_shadow = {{.*}}) do
// CHECK:           %b_bar = memref.load %v_shadow[%i]
// CHECK:           memref.store {{%\d+}}, %u_shadow[%i]
// CHECK-NEXT:      array.yield %u_1, %v_1, %u_shadow, %v_shadow
func.func @a_swap_is_swapped_back(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %i : index, %steps : index) {
  %trips, %u1, %v1 = array.loop %k to %steps carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %a = memref.load %u[%i] : memref<?xf64>
    %b = arith.mulf %a, %a : f64
    memref.store %b, %v[%i] : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// Shadows share memory where their primals do: 0 and 1, so 3 and 4.
// CHECK-LABEL: @shadows_overlap_as_primals_do_gradient(
// CHECK-SAME:    overlaps = {{\[\[}}0 : i64, 1 : i64], [3 : i64, 4 : i64]]
func.func @shadows_overlap_as_primals_do(%x : memref<?xf64>, %y : memref<?xf64>, %i : index) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %a = memref.load %x[%i] : memref<?xf64>
  memref.store %a, %y[%i] : memref<?xf64>
  func.return
}

// A branch that always raises has no adjoint.
// CHECK-LABEL: @raising_branches_are_not_reversed_gradient(
// CHECK:         scf.if %c
// CHECK:           memref.store %a, %x[%i]
// CHECK-NOT:     scf.if
// CHECK:         func.return
func.func @raising_branches_are_not_reversed(%x : memref<?xf64>, %c : i1, %i : index, %a : f64) {
  scf.if %c {
    memref.store %a, %x[%i] : memref<?xf64>
    array.raise_if %c, "ValueError", "no"
  } {raises}
  func.return
}

// u[k] = u[k-1] * u[k], downwards: each element is read twice, overwritten once, and the first one never.
// CHECK-LABEL: @saved_once_where_it_is_overwritten_gradient(
// CHECK:         %u_saved = ad.push %{{.*}}({{%\d+}})
// CHECK:           %c = arith.mulf
// CHECK-NEXT:      %u_1 = memref.load %u[%k]
// CHECK-NEXT:      memref.store %u_1, %u_saved[%i]
// CHECK-NEXT:      memref.store %c, %u[%k]
// CHECK:           %b_1 = memref.load %u_saved[%i_1]
// CHECK:           %a_1 = scf.if %{{.*}} -> (f64) {
// CHECK-NEXT:        {{.*}}memref.load %u_saved[
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      } else {
// CHECK-NEXT:        {{.*}}memref.load %u[%j_1]
// CHECK-NEXT:        scf.yield
// Of 1, 2, 3, 4: u becomes 1, 1*2, 2*3, 3*4, and the sum of these has the slopes 2 + 1, 1 + 3, 2 + 4, 3.
// ONCE:          u = [1, 2, 6, 12]
// ONCE-NEXT:     u_shadow = [3, 4, 6, 3]
func.func @saved_once_where_it_is_overwritten(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %k = arith.subi %n, %i : index
    %j = arith.subi %k, %c1 : index
    %a = memref.load %u[%j] : memref<?xf64>
    %b = memref.load %u[%k] : memref<?xf64>
    %c = arith.mulf %a, %b : f64
    memref.store %c, %u[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// The same from an array that a branch may overwrite in between: the reads are saved.
// CHECK-LABEL: @saved_at_the_reads_where_a_branch_may_come_first_gradient(
// CHECK-DAG:     %a_saved = ad.push
// CHECK-DAG:     %b_saved = ad.push
// CHECK-NOT:     %u_saved
func.func @saved_at_the_reads_where_a_branch_may_come_first(%u : memref<?xf64>, %n : index, %p : index, %q : i1) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %k = arith.subi %n, %i : index
    %j = arith.subi %k, %c1 : index
    %a = memref.load %u[%j] : memref<?xf64>
    %b = memref.load %u[%k] : memref<?xf64>
    %c = arith.mulf %a, %b : f64
    scf.if %q {
      memref.store %c, %u[%p] : memref<?xf64>
    } else {
    }
    memref.store %c, %u[%k] : memref<?xf64>
    array.yield
  }
  func.return
}

// A map that reads what it overwrites has the segment as one more output: nothing is copied.
// CHECK-LABEL: @a_map_keeps_what_it_overwrites_gradient(
// CHECK:         %u_saved = ad.push %{{.*}}({{%\d+}}, %n)
// CHECK-NEXT:    array.loop %t to %steps do {
// CHECK:           %[[SLOT:.*]] = array.view %u_saved[%t,
// CHECK-NEXT:      array.map(%n) ins(%u : memref<?xf64>) outs(%u, %[[SLOT]] : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["store", "store"]
// CHECK-NEXT:      ^bb{{.*}}(%a: f64):
// CHECK-NEXT:        %b = arith.mulf %a, %a
// CHECK-NEXT:        array.yield %b, %a
func.func @a_map_keeps_what_it_overwrites(%u : memref<?xf64>, %w : memref<?xf64>, %n : index, %steps : index) {
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    array.map(%n) ins(%u : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%c : f64):
      %d = arith.mulf %c, %c : f64
      array.yield %d : f64
    }
    array.yield
  }
  func.return
}

// What two maps read is kept by the first of them.
// CHECK-LABEL: @the_first_map_keeps_what_two_read_gradient(
// CHECK:         %[[SAVED:.*]] = ad.push %{{.*}}({{%\d+}}, %n)
// CHECK-NOT:     ad.push
// CHECK:           %[[SLOT:.*]] = array.view %[[SAVED]][%t,
// CHECK-NEXT:      array.map(%n) ins(%u : memref<?xf64>) outs(%w, %[[SLOT]] : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["add", "store"]
// CHECK:             math.sin
// CHECK:           array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"]
func.func @the_first_map_keeps_what_two_read(%u : memref<?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %n : index, %steps : index) {
  %trips = array.loop %t to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = arith.mulf %a, %a : f64
      array.yield %b : f64
    }
    array.map(%n) ins(%u : memref<?xf64>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%a : f64):
      %b = math.sin %a : f64
      array.yield %b : f64
    }
    array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// Where maps read parts of it, a map that does not read it is preceded by a copy.
// CHECK-LABEL: @a_map_that_only_overwrites_copies_before_gradient(
// CHECK:         %u_saved = ad.push %{{.*}}({{%\d+}}, {{%\d+}})
// CHECK:           %[[SLOT:.*]] = array.view %u_saved[%t,
// CHECK-NEXT:      array.map({{%\d+}}) ins(%u : memref<?xf64>) outs(%[[SLOT]] : memref<?xf64, strided<[1]>>) kinds ["store"]
// CHECK:           array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"]
func.func @a_map_that_only_overwrites_copies_before(%u : memref<?xf64>, %v : memref<?xf64>, %w : memref<?xf64>, %n : index, %m : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %t to %steps do {
    %left = array.view %u[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    %right = array.view %u[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%m) ins(%left, %right : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%w : memref<?xf64>) kinds ["add"] {
    ^bb0(%a : f64, %b : f64):
      %c = arith.mulf %a, %b : f64
      array.yield %c : f64
    }
    array.map(%n) ins(%v : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
    ^bb0(%a : f64):
      array.yield %a : f64
    }
    array.yield
  }
  func.return
}

// The derivative of the logarithm of gamma is an op too, which has a rule in turn.
// CHECK-LABEL: @log_gamma_gradient(
// CHECK:         %y = special.log_gamma %x : f64
// CHECK:         [[slope:%\d+]] = special.digamma %x {ad.adjoint} : f64
// CHECK:         ad.mul %y_bar, [[slope]]
func.func @log_gamma(%x : f64) -> f64 {
  %y = special.log_gamma %x : f64
  func.return %y : f64
}
