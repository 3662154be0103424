// RUN: mutad-opt %s -p fuse-gathers | filecheck %s

// CHECK-LABEL: @read_once
// CHECK:         array.map(%m) ins(%v, %p : {{.*}}) outs(%s, %t : {{.*}}) kinds ["add", "add"] window(%n) shifts [0, 1] zeros [0, 1]
// CHECK-NOT:     array.map
func.func @read_once(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// `p` is the nearest for one, and 0 for the other: a product with it is finite at 0.
// CHECK-LABEL: @zero_for_both_where_it_is_a_factor
// CHECK:         array.map(%m) ins(%v, %p : {{.*}}) outs(%s, %t : {{.*}}) kinds ["add", "add"] window(%n) shifts [0, 1] zeros [0, 1]
// CHECK-NOT:     array.map
func.func @zero_for_both_where_it_is_a_factor(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// A quotient by `v` would not be.
// CHECK-LABEL: @read_twice_where_it_divides
// CHECK:         array.map(%m) ins(%v, %p, %v : {{.*}}) outs(%s, %t : {{.*}}) kinds ["add", "add"] window(%n) shifts [0, 1, 0] zeros [1, 2]
func.func @read_twice_where_it_divides(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.divf %e1, %e0 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// Nor where the later one is the quotient.
// CHECK-LABEL: @joined_where_the_first_divides_not
// CHECK:         array.map(%m) ins(%v, %p, %v : {{.*}}) outs(%s, %t : {{.*}}) kinds ["add", "add"] window(%n) shifts [0, 1, 0] zeros [0, 1]
func.func @joined_where_the_first_divides_not(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.divf %e1, %e0 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_over_other_points
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_over_other_points(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%n) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_with_another_window
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_with_another_window(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%m) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_only_one_stores_first
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_when_only_one_stores_first(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] fresh [0] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// Two streams more, and no number less.
// CHECK-LABEL: @kept_when_nothing_is_shared
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_when_nothing_is_shared(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%p, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_later_reads_the_first
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_when_the_later_reads_the_first(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %s : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_later_stores_what_the_first_reads
// CHECK:         outs(%s :
// CHECK:         outs(%p :
func.func @kept_when_the_later_stores_what_the_first_reads(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%p : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_arguments_may_be_one
// CHECK:         outs(%p :
// CHECK:         outs(%q :
func.func @kept_when_arguments_may_be_one(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>, %q : memref<?xf64>) attributes {overlaps = [[3, 4]]} {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%p : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%q : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}

// CHECK-LABEL: @kept_when_something_stores_between
// CHECK:         outs(%s :
// CHECK:         outs(%t :
func.func @kept_when_something_stores_between(%n : index, %m : index, %v : memref<?xf64>, %p : memref<?xf64>) {
  %s = array.alloc(%m) : memref<?xf64>
  %t = array.alloc(%m) : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.addf %e0, %e1 : f64
    array.yield %0 : f64
  }
  %c0 = arith.constant 0 : index
  %x = memref.load %s[%c0] : memref<?xf64>
  memref.store %x, %v[%c0] : memref<?xf64>
  array.map(%m) ins(%v, %p : memref<?xf64>, memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
  ^bb0(%e0 : f64, %e1 : f64):
    %0 = arith.mulf %e0, %e1 : f64
    array.yield %0 : f64
  }
  func.return
}
