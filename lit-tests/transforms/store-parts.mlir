// RUN: mutad-opt %s -p store-parts | filecheck %s
// RUN: mutad-opt %s -p store-parts --run --only rolled --args 's=[5, 5, 5], v=[1, 2, 3], k=1' | filecheck %s --check-prefix ROLLED
// RUN: mutad-opt %s -p store-parts --run --only kept_where_parts_overlap --args 's=[5, 5, 5], v=[1, 2, 3], k=1' | filecheck %s --check-prefix OVERLAP

// CHECK-LABEL: @rolled
// CHECK-NOT:     array.map(%n)
// CHECK:         array.map(%k) {{.*}} outs(%head : {{.*}}) kinds ["store"]
// CHECK:         array.map(%rest) {{.*}} outs(%tail : {{.*}}) kinds ["store"]
// ROLLED: s = [3, 1, 2]
func.func @rolled(%s : memref<?xf64>, %v : memref<?xf64>, %k : index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %rest = arith.subi %n, %k : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %end = array.view %v[%rest] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%end : memref<?xf64, strided<[1]>>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%rest) ins(%v : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// Of a map that goes on in parts the other outputs stay; the parts may be of a transposed view of a row of grids.
// CHECK-LABEL: @columns_of_a_grid_that_a_map_took
// CHECK:         array.map(%n, %m) ins(%s : {{.*}}) outs(%t : {{.*}}) kinds ["store"]
// CHECK:         array.map(%rest, %n) {{.*}} kinds ["store"]
// CHECK:         array.map(%k, %n) {{.*}} kinds ["store"]
func.func @columns_of_a_grid_that_a_map_took(%q : index, %n : index, %m : index, %k : index, %f : memref<?x?x?xf64>,
    %t : memref<?x?xf64>, %v : memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rest = arith.subi %m, %k : index
  %own = array.alloc(%q, %n, %m) : memref<?x?x?xf64>
  %s = array.view %own[%k, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1) : memref<?x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  array.map(%n, %m) ins(%s : memref<?x?xf64, strided<[?, 1]>>) outs(%s, %t : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>) kinds ["store", "store"] {
  ^bb0(%z : f64):
    array.yield %zero, %z : f64, f64
  }
  %turned = array.view %s[%c0, %c0] dims [1, 0] extents(%m, %n) steps(%c1, %c1) : memref<?x?xf64, strided<[?, 1]>> -> memref<?x?xf64, strided<[1, ?]>>
  %tail = array.view %turned[%k, %c0] dims [0, 1] extents(%rest, %n) steps(%c1, %c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?x?xf64, strided<[1, ?]>>
  %head = array.view %turned[%c0, %c0] dims [0, 1] extents(%k, %n) steps(%c1, %c1) : memref<?x?xf64, strided<[1, ?]>> -> memref<?x?xf64, strided<[1, ?]>>
  array.map(%rest, %n) ins(%v : memref<?x?xf64>) outs(%tail : memref<?x?xf64, strided<[1, ?]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%k, %n) ins(%v : memref<?x?xf64>) outs(%head : memref<?x?xf64, strided<[1, ?]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  array.map(%q, %n, %m) ins(%own : memref<?x?x?xf64>) outs(%f : memref<?x?x?xf64>) kinds ["store"] {
  ^bb0(%w : f64):
    array.yield %w : f64
  }
  func.return
}

// The last element of the first part is the first of the second.
// CHECK-LABEL: @kept_where_parts_overlap
// CHECK:         array.map(%n)
// CHECK:         array.map(%more) {{.*}} kinds ["add"]
// CHECK:         array.map(%rest) {{.*}} kinds ["add"]
// OVERLAP: s = [1, 3, 2]
func.func @kept_where_parts_overlap(%s : memref<?xf64>, %v : memref<?xf64>, %k : index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %rest = arith.subi %n, %k : index
  %more = arith.addi %k, %c1 : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%more) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%more) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%rest) ins(%v : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// Who reads between the parts sees the zeros.
// CHECK-LABEL: @kept_where_zeros_are_read
// CHECK:         array.map(%n)
// CHECK-COUNT-2: kinds ["add"]
func.func @kept_where_zeros_are_read(%s : memref<?xf64>, %v : memref<?xf64>, %k : index) -> f64 {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %rest = arith.subi %n, %k : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %seen = memref.load %s[%k] : memref<?xf64>
  array.map(%rest) ins(%v : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return %seen : f64
}

// The element between the parts stays zero.
// CHECK-LABEL: @kept_where_parts_leave_a_gap
// CHECK:         array.map(%n)
// CHECK-COUNT-2: kinds ["add"]
func.func @kept_where_parts_leave_a_gap(%s : memref<?xf64>, %v : memref<?xf64>, %k : index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %next = arith.addi %k, %c1 : index
  %rest = arith.subi %n, %next : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%next] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%rest) ins(%v : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// What the second part adds is read from the first.
// CHECK-LABEL: @kept_where_a_sum_reads_the_memory
// CHECK:         array.map(%n)
// CHECK-COUNT-2: kinds ["add"]
func.func @kept_where_a_sum_reads_the_memory(%s : memref<?xf64>, %v : memref<?xf64>, %k : index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %rest = arith.subi %n, %k : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%k) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %again = array.view %s[%c0] dims [0] extents(%rest) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%rest) ins(%again : memref<?xf64, strided<[1]>>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}

// A part with steps of 0 is one element, which is added to again and again.
// CHECK-LABEL: @kept_where_a_step_is_zero
// CHECK:         kinds ["store"]
// CHECK:         array.map(%n) {{.*}} outs(%head : {{.*}}) kinds ["add"]
// CHECK:         array.map(%m) {{.*}} outs(%tail : {{.*}}) kinds ["add"]
func.func @kept_where_a_step_is_zero(%s : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %m = arith.subi %n, %c1 : index
  array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %head = array.view %s[%c0] dims [0] extents(%n) steps(%c0) : memref<?xf64> -> memref<?xf64, strided<[?]>>
  %tail = array.view %s[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%n) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[?]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%m) ins(%v : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
  ^bb0(%y : f64):
    array.yield %y : f64
  }
  func.return
}
