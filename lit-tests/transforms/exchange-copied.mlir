// RUN: mutad-opt %s -p exchange-copied | filecheck %s

// The map reads the array as it is, and stores to a second one, which the next iteration takes for it; the
// elements that were not copied are.
// CHECK-LABEL: @exchanged
// CHECK:         %[[X:.*]] = array.alloc(%size)
// CHECK:         %[[T:.*]] = array.alloc(%size)
// CHECK:         %trips, %[[LAST:.*]], %{{.*}} = array.loop %k to %n carry(%[[NOW:.*]] = %[[X]] : memref<?xf64>, %[[THEN:.*]] = %[[T]] : memref<?xf64>)
// CHECK-DAG:       %[[IN:.*]] = array.view %[[NOW]][%c1] dims [0] extents(%m)
// CHECK-DAG:       %[[OUT:.*]] = array.view %[[THEN]][%c0] dims [0] extents(%size)
// CHECK:           %[[LOW:.*]] = arith.minsi %c1, %size
// CHECK:           array.view %[[NOW]]
// CHECK:           array.map(%[[LOW]])
// CHECK:           array.map(%[[HIGH:.*]]) ins
// CHECK:           array.map(%size) ins(%[[IN]], %[[IN]] :
// CHECK-SAME:        outs(%[[OUT]] :
// CHECK-SAME:        fresh [1]
// CHECK:           array.yield %[[THEN]], %[[NOW]] : memref<?xf64>, memref<?xf64>
// CHECK:         memref.load %[[LAST]][%c1]
func.func @exchanged(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// What is added to was not stored anew.
// CHECK-LABEL: @kept_where_all_is_added
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_all_is_added(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// The copy is of other elements than those that are stored anew.
// CHECK-LABEL: @kept_where_another_part_is_stored_anew
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_another_part_is_stored_anew(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// The map has fewer points than were copied: the last elements stay as they are.
// CHECK-LABEL: @kept_where_not_all_is_stored_anew
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_not_all_is_stored_anew(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%m) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// The iteration reads the array otherwise, too.
// CHECK-LABEL: @kept_where_the_iteration_reads_it_again
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_the_iteration_reads_it_again(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    %seen = memref.load %x[%c0] : memref<?xf64>
    memref.store %seen, %a[%c0] : memref<?xf64>
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// The copy is read after the map that it was made for.
// CHECK-LABEL: @kept_where_the_copy_is_read_behind
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_the_copy_is_read_behind(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    %seen = memref.load %t[%c0] : memref<?xf64>
    memref.store %seen, %a[%c0] : memref<?xf64>
    array.yield
  }
  %r = memref.load %x[%c1] : memref<?xf64>
  func.return %r : f64
}

// A view from before the loop would be one of the other array.
// CHECK-LABEL: @kept_where_a_view_from_before_is_read_behind
// CHECK:         %trips = array.loop
// CHECK-NEXT:      array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>)
// CHECK:           array.yield
// CHECK:         func.return
func.func @kept_where_a_view_from_before_is_read_behind(%a : memref<?xf64>, %n : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = arith.subi %size, %c2 : index
  %x = array.alloc(%size) : memref<?xf64>
  array.map(%size) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %inner = array.view %x[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %outer = array.view %x[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %t = array.alloc(%m) : memref<?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m) ins(%inner : memref<?xf64, strided<[1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.map(%size) ins(%t, %t : memref<?xf64>, memref<?xf64>) outs(%outer : memref<?xf64, strided<[1]>>) kinds ["add"] window(%m) shifts [0, 2] zeros [0, 1] fresh [1] {
    ^bb0(%e : f64, %f : f64):
      %sum = arith.addf %e, %f : f64
      array.yield %sum : f64
    }
    array.yield
  }
  %r = memref.load %inner[%c1] : memref<?xf64, strided<[1]>>
  func.return %r : f64
}
