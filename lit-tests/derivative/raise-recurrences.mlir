// RUN: mutad-opt %s -p raise-recurrences | filecheck %s

// The scalar is u[i] as it was before the loop.
// CHECK-LABEL: @a_handed_on_element_is_read(
// CHECK:         array.loop %t
// CHECK-NOT:       memref.store
// CHECK:           [[lefts:%u_view[_0-9]*]] = array.view %u[%{{[0-9]+}}]
// CHECK:           array.map(%count) ins([[lefts]], %u_view{{[_0-9]*}} :
// CHECK-SAME:        outs(%temporary
// CHECK:           arith.mulf %mid{{[_0-9]*}}, %old
// CHECK-NOT:       array.loop %i
// CHECK:         func.return
func.func @a_handed_on_element_is_read(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @two_scalars_hand_on_two_elements(
// CHECK:         array.loop %t
// CHECK:           array.map(%count) ins(%u_view{{[_0-9]*}}, %u_view{{[_0-9]*}}, %u_view{{[_0-9]*}} :
// CHECK-NOT:       array.loop %i
// CHECK:         func.return
func.func @two_scalars_hand_on_two_elements(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %second[] : memref<f64>
    %next = memref.load %u[%c1] : memref<?xf64>
    memref.store %next, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %oldest = memref.load %second[] : memref<f64>
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%h] : memref<?xf64>
      %both = arith.mulf %old, %oldest : f64
      %product = arith.mulf %mid, %both : f64
      memref.store %product, %u[%h] : memref<?xf64>
      memref.store %old, %second[] : memref<f64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @elements_are_read_ahead(
// CHECK:         array.loop %t
// CHECK:           array.map(%count) ins(%u_view{{[_0-9]*}}, %u_view{{[_0-9]*}} :
// CHECK-NOT:       array.loop %i
// CHECK:         func.return
func.func @elements_are_read_ahead(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %mid = memref.load %u[%i] : memref<?xf64>
      %right = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %right : f64
      memref.store %product, %u[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// u[m - i]: the views begin at 1, and go up.
// CHECK-LABEL: @a_loop_downwards_goes_upwards(
// CHECK:         array.loop %t
// CHECK:           [[one:%[0-9]+]] = arith.constant 1 : index
// CHECK:           [[two:%[0-9]+]] = arith.constant 2 : index
// CHECK:           array.view %u{{\[}}[[two]]] dims [0] extents(%count) steps([[one]])
// CHECK:           array.view %u{{\[}}[[one]]] dims [0] extents(%count) steps([[one]])
// CHECK-NOT:       array.loop %i
// CHECK:         func.return
func.func @a_loop_downwards_goes_upwards(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%last] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %down = arith.subi %m, %i : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%down] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%down] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @an_edge_is_set_behind_the_loop(
// CHECK:         array.loop %t
// CHECK:           array.map(%count)
// CHECK-NOT:       array.loop %i
// CHECK:         func.return
func.func @an_edge_is_set_behind_the_loop(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    memref.store %k, %u[%c0] : memref<?xf64>
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_begins_with_another_element(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_it_begins_with_another_element(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%last] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_begins_with_a_number(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_it_begins_with_a_number(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    memref.store %k, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// The scalar is what u[0] was.
// CHECK-LABEL: @kept_where_the_first_element_changes(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_the_first_element_changes(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    memref.store %k, %u[%c0] : memref<?xf64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_the_scalar_is_read_later(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_the_scalar_is_read_later(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    %end = memref.load %left[] : memref<f64>
    memref.store %end, %second[] : memref<f64>
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_the_next_step_reads_the_scalar(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_the_next_step_reads_the_scalar(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %ended = memref.load %left[] : memref<f64>
    memref.store %ended, %second[] : memref<f64>
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %begin = memref.load %second[] : memref<f64>
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_what_is_computed_is_handed_on(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_what_is_computed_is_handed_on(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %product, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_scalars_change_places(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_scalars_change_places(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    memref.store %k, %second[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %a = memref.load %left[] : memref<f64>
      %b = memref.load %second[] : memref<f64>
      %mid = memref.load %u[%h] : memref<?xf64>
      %product = arith.mulf %mid, %a : f64
      memref.store %product, %u[%h] : memref<?xf64>
      memref.store %b, %left[] : memref<f64>
      memref.store %a, %second[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// u[i] is new.
// CHECK-LABEL: @kept_where_an_earlier_iteration_has_stored(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_an_earlier_iteration_has_stored(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %new = memref.load %u[%i] : memref<?xf64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %new : f64
      memref.store %product, %u[%j] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_it_reads_what_it_has_stored(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_it_reads_what_it_has_stored(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %right = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %right, %right : f64
      memref.store %product, %u[%i] : memref<?xf64>
      %new = memref.load %u[%i] : memref<?xf64>
      %square = arith.mulf %new, %new : f64
      memref.store %square, %u[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_elements_are_set_before(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_elements_are_set_before(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    memref.store %k, %u[%last] : memref<?xf64>
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// An argument does not lie on the tape.
// CHECK-LABEL: @kept_of_arguments(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_of_arguments(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %x[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %x[%j] : memref<?xf64>
      %product = arith.mulf %mid, %old : f64
      memref.store %product, %x[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %x[%m] : memref<?xf64>
  func.return %r : f64
}

// The adjoint of a sum needs no element.
// CHECK-LABEL: @kept_where_nothing_is_saved(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_nothing_is_saved(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %product = arith.addf %mid, %old : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_cotangents_go_to_another_array(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_cotangents_go_to_another_array(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %first = memref.load %u[%c0] : memref<?xf64>
    memref.store %first, %left[] : memref<f64>
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %old = memref.load %left[] : memref<f64>
      %mid = memref.load %u[%j] : memref<?xf64>
      %factor = memref.load %y[%j] : memref<?xf64>
      %both = arith.mulf %mid, %old : f64
      %product = arith.mulf %both, %factor : f64
      memref.store %product, %u[%j] : memref<?xf64>
      memref.store %mid, %left[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}

// CHECK-LABEL: @kept_where_every_second_element_is_stored_to(
// CHECK:         array.loop %t
// CHECK:           array.loop %i
func.func @kept_where_every_second_element_is_stored_to(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = arith.constant 0.5 : f64
  %left = memref.alloca() : memref<f64>
  %second = memref.alloca() : memref<f64>
  %u = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %count = arith.maxsi %m, %c0 : index
  %last = arith.addi %m, %c1 : index
  %trips = array.loop %t to %steps do {
    %trips_1 = array.loop %i to %count do {
      %j = arith.addi %i, %c1 : index
      %h = arith.addi %i, %c2 : index
      %twice = arith.muli %i, %c2 : index
      %mid = memref.load %u[%twice] : memref<?xf64>
      %product = arith.mulf %mid, %mid : f64
      memref.store %product, %u[%twice] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %u[%m] : memref<?xf64>
  func.return %r : f64
}
