// RUN: mutad-opt %s -p drop-overwritten | filecheck %s

// CHECK-LABEL: @zeroed_at_the_end
// CHECK:         outs(%b : memref<?xf64>) kinds ["add"]
// CHECK:           array.yield %y : f64
func.func @zeroed_at_the_end(%n : index, %x : f64, %b : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  array.map(%n) ins(%t : memref<?xf64>) outs(%t, %b : memref<?xf64>, memref<?xf64>) kinds ["store", "add"] {
  ^bb0(%y : f64):
    array.yield %zero, %y : f64, f64
  }
  func.return
}

// CHECK-LABEL: @the_first_sum_is_a_store
// CHECK-NOT:     arith.constant 1.0
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%n) ins(%b : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"]
func.func @the_first_sum_is_a_store(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) -> memref<?xf64> {
  %zero = arith.constant 0.0 : f64
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) ins(%b : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %c0 = arith.constant 0 : index
  %y = memref.load %t[%c0] : memref<?xf64>
  memref.store %y, %a[%c0] : memref<?xf64>
  func.return %a : memref<?xf64>
}

// CHECK-LABEL: @kept_when_the_sum_is_of_a_part
// CHECK:         kinds ["store"]
// CHECK:         kinds ["add"]
func.func @kept_when_the_sum_is_of_a_part(%n : index, %m : index, %x : f64, %b : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %v = array.view %t[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) outs(%v : memref<?xf64, strided<[1]>>) kinds ["add"] {
    array.yield %x : f64
  }
  %y = memref.load %t[%c0] : memref<?xf64>
  memref.store %y, %b[%c0] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_when_it_is_not_zero
// CHECK:         kinds ["store"]
// CHECK:         kinds ["add"]
func.func @kept_when_it_is_not_zero(%n : index, %x : f64, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  array.map(%n) outs(%t : memref<?xf64>) kinds ["add"] {
    array.yield %x : f64
  }
  %y = memref.load %t[%c0] : memref<?xf64>
  memref.store %y, %b[%c0] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @kept_in_an_argument
// CHECK:         kinds ["store"]
func.func @kept_in_an_argument(%n : index, %x : f64, %b : memref<?xf64>) {
  array.map(%n) outs(%b : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  func.return
}

// The array is of the block around the loop: the next iteration reads it.
// CHECK-LABEL: @kept_when_the_next_iteration_reads_it
// CHECK:         array.loop
// CHECK:           kinds ["store"]
func.func @kept_when_the_next_iteration_reads_it(%n : index, %x : f64, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    %y = memref.load %t[%i] : memref<?xf64>
    memref.store %y, %b[%i] : memref<?xf64>
    array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
      array.yield %x : f64
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_it_is_carried
// CHECK:         kinds ["store"]
func.func @kept_when_it_is_carried(%n : index, %x : f64, %b : memref<?xf64>) {
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  %trips, %p, %q = array.loop %i to %n carry(%u = %t : memref<?xf64>, %v = %b : memref<?xf64>) do {
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @kept_when_a_branch_reads_it
// CHECK:         kinds ["store"]
// CHECK:         kinds ["store"]
func.func @kept_when_a_branch_reads_it(%c : i1, %n : index, %x : f64, %y : f64, %b : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %x : f64
  }
  scf.if %c {
    %z = memref.load %t[%c0] : memref<?xf64>
    memref.store %z, %b[%c0] : memref<?xf64>
  }
  array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
    array.yield %y : f64
  }
  %z = memref.load %t[%c0] : memref<?xf64>
  memref.store %z, %b[%c0] : memref<?xf64>
  func.return
}

// An argument of which nobody sees what it held: its first sum is stored. Without the mark it keeps its fill.
// CHECK-LABEL: @first_sum_of_an_unseen_argument
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    array.map(%n) ins(%a : memref<?xf64>) outs(%p : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%n) outs(%q : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%q : memref<?xf64>) kinds ["add"]
func.func @first_sum_of_an_unseen_argument(%n : index, %a : memref<?xf64>, %p : memref<?xf64>, %q : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  array.map(%n) outs(%p : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  array.map(%n) ins(%a : memref<?xf64>) outs(%p : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) outs(%q : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) ins(%a : memref<?xf64>) outs(%q : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// A whole store after the fill: the fill has done nothing. A store to a part of it needs the rest.
// CHECK-LABEL: @stores_to_unseen_arguments
// CHECK-NOT:     outs(%p : memref<?xf64>) kinds ["store"] attributes
// CHECK:         array.map(%n) ins(%a : memref<?xf64>) outs(%p : memref<?xf64>) kinds ["store"] {
// CHECK:         array.map(%n) outs(%q : memref<?xf64>) kinds ["store"] attributes {ad.unseen}
func.func @stores_to_unseen_arguments(%n : index, %m : index, %a : memref<?xf64>, %p : memref<?xf64>, %q : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  array.map(%n) outs(%p : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  array.map(%n) ins(%a : memref<?xf64>) outs(%p : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) outs(%q : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  %v = array.view %q[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%a : memref<?xf64>) outs(%v : memref<?xf64, strided<[1]>>) kinds ["store"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// The first product is stored, also to all of the array with its axes in the other order; not to a part of it,
// and not where it is a second one.
// CHECK-LABEL: @first_products
// CHECK-NOT:     outs(%p
// CHECK:         array.matmul %a, %b into %p :
// CHECK:         array.matmul %a, %b into %p accumulate
// CHECK-NOT:     outs(%q
// CHECK:         array.matmul %a, %b into %turned :
// CHECK:         array.map(%n, %n) outs(%r : {{.*}} attributes {ad.unseen}
// CHECK:         array.matmul %a, %b into %part accumulate
func.func @first_products(%n : index, %m : index, %a : memref<?x?xf64>, %b : memref<?x?xf64>,
    %p : memref<?x?xf64>, %q : memref<?x?xf64>, %r : memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  array.map(%n, %n) outs(%p : memref<?x?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  array.matmul %a, %b into %p accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.matmul %a, %b into %p accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.map(%n, %m) outs(%q : memref<?x?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  %turned = array.view %q[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
  array.matmul %a, %b into %turned accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64, strided<[1, ?]>>
  array.map(%n, %n) outs(%r : memref<?x?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  %part = array.view %r[%c0, %c0] dims [0, 1] extents(%n, %m) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.matmul %a, %b into %part accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>
  func.return
}

// A product of which the array is a factor reads the zeros.
// CHECK-LABEL: @kept_where_a_product_reads_it
// CHECK:         array.map(%n, %n) outs(%p
// CHECK:         array.matmul %a, %p into %q accumulate
// CHECK:         array.matmul %a, %a into %p accumulate
func.func @kept_where_a_product_reads_it(%n : index, %a : memref<?x?xf64>, %p : memref<?x?xf64>, %q : memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  array.map(%n, %n) outs(%p : memref<?x?xf64>) kinds ["store"] attributes {ad.unseen} {
    array.yield %zero : f64
  }
  array.matmul %a, %p into %q accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  array.matmul %a, %a into %p accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// What is set to zero when it was read is not read again, where another part is.
// CHECK-LABEL: @zeros_of_parts_that_were_read
// CHECK:         array.map(%k) ins(%head : {{.*}}) outs(%u : memref<?xf64>) kinds ["store"]
// CHECK:         array.map(%rest) ins(%tail : {{.*}}) outs(%v : memref<?xf64>) kinds ["store"]
func.func @zeros_of_parts_that_were_read(%n : index, %k : index, %a : memref<?xf64>, %u : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rest = arith.subi %n, %k : index
  %s = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb0(%w : f64):
    array.yield %w : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%head : memref<?xf64, strided<[1]>>) outs(%head, %u : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    array.yield %zero, %x : f64, f64
  }
  array.map(%rest) ins(%tail : memref<?xf64, strided<[1]>>) outs(%tail, %v : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%y : f64):
    array.yield %zero, %y : f64, f64
  }
  func.return
}

// CHECK-LABEL: @kept_where_a_part_that_is_read_may_meet_it
// CHECK:         array.map(%k) ins(%head : {{.*}}) outs(%head, %u : {{.*}}) kinds ["store", "store"]
// CHECK:         array.map(%rest) ins(%tail : {{.*}}) outs(%v : memref<?xf64>) kinds ["store"]
func.func @kept_where_a_part_that_is_read_may_meet_it(%n : index, %k : index, %from : index, %rest : index,
    %a : memref<?xf64>, %u : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb0(%w : f64):
    array.yield %w : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%from] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%head : memref<?xf64, strided<[1]>>) outs(%head, %u : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    array.yield %zero, %x : f64, f64
  }
  array.map(%rest) ins(%tail : memref<?xf64, strided<[1]>>) outs(%tail, %v : memref<?xf64, strided<[1]>>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%y : f64):
    array.yield %zero, %y : f64, f64
  }
  func.return
}
