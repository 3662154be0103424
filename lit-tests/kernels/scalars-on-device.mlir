// RUN: mutad-opt %s -p scalars-on-device | filecheck %s

!u = memref<?xf64, 1 : i64>
!one = memref<1xf64, 1 : i64>

// Elements that move within the device's memory are one kernel, behind what wrote them.
// CHECK-LABEL: func.func @boundary_values
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      device.launch @steps blocks(%c1) (%u
// CHECK-NEXT:      device.launch @boundary_values_[[K:[0-9]+]] blocks(%{{.*}}) (%u :
// CHECK-NEXT:      array.yield
func.func @boundary_values(%u : !u, %n : index, %last : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    device.launch @steps blocks(%c1) (%u : !u)
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    %y = device.fetch %u[%c0] : !u -> f64
    %z = arith.mulf %x, %y : f64
    device.put %z, %u[%c1] : f64, !u
    array.yield
  }
  func.return
}

// A check may raise: what was put before it is there then, and not launched twice otherwise.
// CHECK-LABEL: func.func @checked_between
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      device.launch @steps
// CHECK:           scf.if %{{.*}} {
// CHECK-NEXT:        device.launch @checked_between_{{.*}} (%u :
// CHECK-NEXT:      }
// CHECK-NEXT:      %at = array.index %k, %m axis 0 : i64 sign "any"
// CHECK-NEXT:      device.launch @checked_between_{{.*}}%at
// CHECK-NEXT:      array.yield
func.func @checked_between(%u : !u, %n : index, %k : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    device.launch @steps blocks(%c1) (%u : !u)
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    %at = array.index %k, %m axis 0 : i64 sign "any"
    device.put %x, %u[%at] : f64, !u
    array.yield
  }
  func.return
}

// A variable is there before the loop, a kernel reads the number, and the host fetches what is left.
// CHECK-LABEL: func.func @variables_are_the_devices
// CHECK:         %[[T:.*]] = array.alloc(%{{.*}}) : memref<1xf64, 1 : i64>
// CHECK:         device.put %{{.*}}, %[[T]]
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      device.launch @sums
// CHECK-NEXT:      device.launch @variables_are_the_devices_
// CHECK-NEXT:      device.launch @variables_are_the_devices_
// CHECK-NEXT:      array.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %{{.*}} = arith.constant 0 : index
// CHECK-NEXT:    %[[LEFT:.*]] = device.fetch %[[T]]
// CHECK-NEXT:    memref.store %[[LEFT]], %t[]
func.func @variables_are_the_devices(%u : !u, %s : !one, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %t = memref.alloca() : memref<f64>
  memref.store %zero, %t[] : memref<f64>
  %trips = array.loop %i to %n do {
    device.launch @sums blocks(%c1) (%u, %s : !u, !one)
    %x = device.fetch %s[%c0] : !one -> f64
    %old = memref.load %t[] : memref<f64>
    %new = arith.addf %old, %x : f64
    memref.store %new, %t[] : memref<f64>
    device.launch @scales blocks(%c1) (%x, %u : f64, !u)
    array.yield
  }
  %r = memref.load %t[] : memref<f64>
  func.return %r : f64
}

// What is saved of such numbers is the device's, as the other sweep reads it there.
// CHECK-LABEL: func.func @saved_scalars_move
// CHECK:         %saved = ad.push %tape(%n) : memref<?xf64, 1 : i64>
// CHECK:         array.loop %i to %n do {
// CHECK-NOT:       device.fetch
// CHECK-NOT:       memref.store
// CHECK:         array.loop %j to %n do {
// CHECK-NOT:       device.fetch
// CHECK-NOT:       memref.load
// CHECK:         func.return
func.func @saved_scalars_move(%u : !u, %s : !one, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tape = ad.tape
  %saved = ad.push %tape(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    device.launch @sums blocks(%c1) (%u, %s : !u, !one)
    %x = device.fetch %s[%c0] : !one -> f64
    memref.store %x, %saved[%i] : memref<?xf64>
    array.yield
  }
  %more = array.loop %j to %n do {
    %y = memref.load %saved[%j] : memref<?xf64>
    device.launch @scales blocks(%c1) (%y, %u : f64, !u)
    array.yield
  }
  func.return
}

// The host would wait for each of them here.
// CHECK-LABEL: func.func @saved_scalars_stay_that_decide
// CHECK:         %saved = ad.push %tape(%n) : memref<?xf64>
// CHECK:         memref.store %x, %saved[%i] : memref<?xf64>
// CHECK:         memref.load %saved[%j] : memref<?xf64>
func.func @saved_scalars_stay_that_decide(%u : !u, %s : !one, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %tape = ad.tape
  %saved = ad.push %tape(%n) : memref<?xf64>
  %trips = array.loop %i to %n do {
    device.launch @sums blocks(%c1) (%u, %s : !u, !one)
    %x = device.fetch %s[%c0] : !one -> f64
    memref.store %x, %saved[%i] : memref<?xf64>
    array.yield
  }
  %more = array.loop %j to %n do {
    %y = memref.load %saved[%j] : memref<?xf64>
    %is = arith.cmpf ogt, %y, %zero : f64
    scf.if %is {
      device.launch @scales blocks(%c1) (%y, %u : f64, !u)
    }
    array.yield
  }
  func.return
}

// A variable that the host needs stays there; the rest need not.
// CHECK-LABEL: func.func @counters_that_decide_stay
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      device.launch @steps
// CHECK-NEXT:      device.launch @counters_that_decide_stay_
// CHECK-NEXT:      %old = memref.load %k[]
// CHECK:           scf.if %is {
// CHECK-NEXT:        device.launch @steps
func.func @counters_that_decide_stay(%u : !u, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloca() : memref<index>
  memref.store %c0, %k[] : memref<index>
  %trips = array.loop %i to %n do {
    device.launch @steps blocks(%c1) (%u : !u)
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    %old = memref.load %k[] : memref<index>
    %new = arith.addi %old, %c1 : index
    memref.store %new, %k[] : memref<index>
    %is = arith.cmpi slt, %old, %c1 : index
    scf.if %is {
      device.launch @steps blocks(%c1) (%u : !u)
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_number_decides_on_launches
// CHECK:         %x = device.fetch
// CHECK:         scf.if %is {
func.func @kept_where_a_number_decides_on_launches(%u : !u, %n : index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %x = device.fetch %u[%c1] : !u -> f64
    %is = arith.cmpf ogt, %x, %zero : f64
    scf.if %is {
      device.launch @steps blocks(%c1) (%u : !u)
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_number_decides_on_an_array
// CHECK:         %x = device.fetch
// CHECK:         %w = scf.if %is -> (memref<?xf64, 1 : i64>) {
// CHECK:         device.launch @steps blocks(%c1) (%w : memref<?xf64, 1 : i64>)
func.func @kept_where_a_number_decides_on_an_array(%u : !u, %v : !u, %n : index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %x = device.fetch %u[%c1] : !u -> f64
    %is = arith.cmpf ogt, %x, %zero : f64
    %w = scf.if %is -> (!u) {
      scf.yield %u : !u
    } else {
      scf.yield %v : !u
    }
    device.launch @steps blocks(%c1) (%w : !u)
    array.yield
  }
  func.return
}

// Other numbers of such a loop need not be known.
// CHECK-LABEL: func.func @only_what_decides_is_fetched
// CHECK:         array.loop %i to %n do {
// CHECK-NEXT:      device.launch @only_what_decides_is_fetched_{{.*}} (%u :
// CHECK-NEXT:      %y = device.fetch %u[%c1]
// CHECK-NOT:       device.fetch
// CHECK:           scf.if %is {
func.func @only_what_decides_is_fetched(%u : !u, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    %y = device.fetch %u[%c1] : !u -> f64
    %is = arith.cmpf ogt, %y, %zero : f64
    scf.if %is {
      device.launch @steps blocks(%c1) (%u : !u)
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @what_ends_a_loop_is_fetched
// CHECK:         array.loop %i while {
// CHECK:           %y = device.fetch
// CHECK:         } do {
// CHECK-NEXT:      device.launch @steps
// CHECK-NEXT:      device.launch @what_ends_a_loop_is_fetched_
// CHECK-NEXT:      array.yield
func.func @what_ends_a_loop_is_fetched(%u : !u) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c1] : !u -> f64
    %is = arith.cmpf ogt, %y, %zero : f64
    array.condition %is
  } do {
    device.launch @steps blocks(%c1) (%u : !u)
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_number_may_raise
// CHECK:         %x = device.fetch
// CHECK:         array.raise_if %is
func.func @kept_where_a_number_may_raise(%u : !u, %n : index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %n do {
    device.launch @steps blocks(%c1) (%u : !u)
    %x = device.fetch %u[%c1] : !u -> f64
    %is = arith.cmpf oeq, %x, %zero : f64
    array.raise_if %is, "ZeroDivisionError", "division by zero"
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_device_rounds_otherwise
// CHECK:         %x = device.fetch
// CHECK:         math.exp %x
func.func @kept_where_a_device_rounds_otherwise(%u : !u, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %x = device.fetch %u[%c1] : !u -> f64
    %y = math.exp %x : f64
    device.launch @scales blocks(%c1) (%y, %u : f64, !u)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_nothing_is_launched
// CHECK:         %x = device.fetch
func.func @kept_where_nothing_is_launched(%u : !u, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i to %n do {
    %x = device.fetch %u[%c1] : !u -> f64
    device.put %x, %u[%c0] : f64, !u
    array.yield
  }
  func.return
}

func.func private @steps(%u : !u) attributes {kernel, overlaps = [], read_only = array<i64>} {
  func.return
}
func.func private @sums(%u : !u, %s : !one) attributes {kernel, overlaps = [], read_only = array<i64: 0>} {
  func.return
}
func.func private @scales(%x : f64, %u : !u) attributes {kernel, overlaps = [], read_only = array<i64>} {
  func.return
}
