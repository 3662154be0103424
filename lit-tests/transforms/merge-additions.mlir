// RUN: mutad-opt %s -p merge-additions | filecheck %s

// The later map adds both terms: it touches what the first one is made of.
// CHECK-LABEL: @merged
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%sum : {{.*}}) kinds ["add"] {
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y, %x : {{.*}}) kinds ["add", "add"] {
// CHECK:           [[both:%[0-9]+]] = arith.addf %b, %c {ad.adjoint}
// CHECK-NEXT:      array.yield [[both]], %t
// CHECK:         func.return
func.func @merged(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<f64>, %r : f64, %n : index) {
  %c0 = arith.constant 0 : index
  %sum = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%y, %sum : memref<?xf64>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b, %a : f64, f64
  }
  %t = memref.load %s[] : memref<f64>
  array.map(%n) outs(%y, %x : memref<?xf64>, memref<?xf64>) kinds ["add", "add"] {
    %c = arith.mulf %t, %r {ad.adjoint} : f64
    array.yield %c, %t : f64, f64
  }
  func.return
}

// A map that did nothing else is gone.
// CHECK-LABEL: @nothing_is_left
// CHECK-NEXT:    array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
// CHECK-NOT:     array.map
// CHECK:         func.return
func.func @nothing_is_left(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_sums_have_an_order
// CHECK-COUNT-2: outs(%y : memref<?xf64>) kinds ["add"]
// CHECK:         func.return
func.func @kept_where_sums_have_an_order(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r : f64
    array.yield %b : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_term_is_of_another_array
// CHECK-COUNT-2: outs(%y : memref<?xf64>) kinds ["add"]
// CHECK:         func.return
func.func @kept_where_the_term_is_of_another_array(%x : memref<?xf64>, %z : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  array.map(%n) ins(%z : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_the_sum_is_read_in_between
// CHECK-COUNT-2: outs(%y : memref<?xf64>) kinds ["add"]
// CHECK:         func.return
func.func @kept_where_the_sum_is_read_in_between(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b : f64
  }
  %seen = memref.load %y[%c0] : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return %seen : f64
}

// CHECK-LABEL: @kept_where_what_it_is_made_of_changes
// CHECK-COUNT-2: outs(%y : memref<?xf64>) kinds ["add"]
// CHECK:         func.return
func.func @kept_where_what_it_is_made_of_changes(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  %c0 = arith.constant 0 : index
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b : f64
  }
  memref.store %r, %x[%c0] : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}

// The first map itself changes what the term is made of, behind it.
// CHECK-LABEL: @kept_where_the_map_changes_what_it_reads
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y, %x :
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y :
// CHECK:         func.return
func.func @kept_where_the_map_changes_what_it_reads(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y, %x : memref<?xf64>, memref<?xf64>) kinds ["add", "store"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b, %r : f64, f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}

// The later map stores to what the term is made of by another view: to another element than it reads.
// CHECK-LABEL: @kept_where_views_meet
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y :
// CHECK:         array.map(%n) ins(%x : memref<?xf64>) outs(%y, %behind :
// CHECK:         func.return
func.func @kept_where_views_meet(%x : memref<?xf64>, %y : memref<?xf64>, %r : f64, %n : index) {
  %c1 = arith.constant 1 : index
  %behind = array.view %x[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %b = arith.mulf %a, %r {ad.adjoint} : f64
    array.yield %b : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y, %behind : memref<?xf64>, memref<?xf64, strided<[1]>>) kinds ["add", "store"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d, %c : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_functions_take_long
// CHECK-COUNT-2: outs(%y : memref<?xf64>) kinds ["add"]
// CHECK:         func.return
func.func @kept_where_functions_take_long(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%a : f64):
    %e = math.exp %a : f64
    %b = arith.mulf %a, %e {ad.adjoint} : f64
    array.yield %b : f64
  }
  array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
  ^bb0(%c : f64):
    %d = arith.negf %c {ad.adjoint} : f64
    array.yield %d : f64
  }
  func.return
}
