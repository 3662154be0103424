// RUN: mutad-opt %s -p while-on-device | filecheck %s

// A variable of the condition is the device's, and what it allocates is there before the steps. Checks of
// what is known before decide which way is gone.
// CHECK-LABEL: func.func @decided
// CHECK:         %able = device.has_conditions
// CHECK:         %[[FINE:.*]] = arith.cmpi eq, %bad,
// CHECK:         %[[BOTH:.*]] = arith.andi %able, %[[FINE]]
// CHECK:         scf.if %[[BOTH]] {
// CHECK:           %flag = array.alloc
// CHECK:           %[[SUM:.*]] = array.alloc
// CHECK-NEXT:      %[[S:.*]] = array.alloc(%c1)
// CHECK:           device.while_step "begin" %flag
// CHECK-NEXT:      device.launch @decided_0 {{.*}}%[[S]]
// CHECK-NEXT:      device.launch @decided_[[D:[0-9]]] {{.*}}(%[[SUM]], %[[S]], {{.*}}%flag
// CHECK-NEXT:      device.while_step "body" %flag
// CHECK-NEXT:      device.launch @decided_1
// CHECK-NEXT:      device.launch @decided_0
// CHECK-NEXT:      device.launch @decided_[[D]] {{.*}}
// CHECK-NEXT:      device.while_step "end" %flag
// CHECK:         } else {
// CHECK:           array.loop
// CHECK:             array.raise_if
func.func @decided(%u : memref<?xf64, 1 : i64>, %x : f64, %bad : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<f64>
  %trips = array.loop %i while {
  ^bb0(%j : index):
    memref.store %zero, %sum[] : memref<f64>
    %s = array.alloc(%c1) : memref<1xf64, 1 : i64>
    device.launch @decided_0 blocks(%c1) (%u, %s : memref<?xf64, 1 : i64>, memref<1xf64, 1 : i64>)
    %y = device.fetch %s[%c0] : memref<1xf64, 1 : i64> -> f64
    %old = memref.load %sum[] : memref<f64>
    %new = arith.addf %old, %y : f64
    memref.store %new, %sum[] : memref<f64>
    %all = memref.load %sum[] : memref<f64>
    %more = arith.cmpf ogt, %all, %x : f64
    array.condition %more
  } do {
    array.raise_if %bad, "ValueError", "bad"
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}
func.func private @decided_0(%u : memref<?xf64, 1 : i64>, %s : memref<1xf64, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %t = device.thread
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    memref.store %zero, %s[%c0] : memref<1xf64, 1 : i64>
  }
  func.return
}

// Iterations are counted there, by the kernel that decides on the next one.
// CHECK-LABEL: func.func @counted
// CHECK:         %[[TRIPS:.*]] = scf.if %able -> (index)
// CHECK:           device.put {{.*}}, %[[N:.*]][
// CHECK:           device.while_step "body"
// CHECK-NEXT:      device.launch @decided_1
// CHECK-NEXT:      device.launch @counted_{{[0-9]+}} blocks({{.*}}) (%[[N]],
// CHECK-NEXT:      device.while_step "end"
// CHECK-NEXT:      device.fetch %[[N]][
// CHECK:         func.return %[[TRIPS]]
func.func @counted(%u : memref<?xf64, 1 : i64>, %x : f64) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return %trips : index
}

// A variable that is read behind the loop is fetched.
// CHECK-LABEL: func.func @read_behind
// CHECK:           %[[LAST:last.*]] = array.alloc
// CHECK:           device.while_step "end"
// CHECK-NEXT:      %[[Y:.*]] = device.fetch %[[LAST]][
// CHECK-NEXT:      memref.store %[[Y]], %last[]
func.func @read_behind(%u : memref<?xf64, 1 : i64>, %x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = memref.alloca() : memref<f64>
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    memref.store %y, %last[] : memref<f64>
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  %z = memref.load %last[] : memref<f64>
  func.return %z : f64
}

// What is fetched before a launch that may write it is kept.
// CHECK-LABEL: func.func @fetched_before
// CHECK:           %[[Y:y.*]] = array.alloc
// CHECK:           device.while_step "begin"
// CHECK-NEXT:      device.launch @fetched_before_[[A:[0-9]+]] {{.*}}%[[Y]]
// CHECK-NEXT:      device.launch @decided_1
// CHECK-NEXT:      device.launch @fetched_before_[[B:[0-9]+]] {{.*}}(%[[Y]],
// CHECK-NEXT:      device.while_step "body"
func.func @fetched_before(%u : memref<?xf64, 1 : i64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// A kernel that is given a number of the iteration loads it.
// CHECK-LABEL: func.func @given_a_number
// CHECK:           device.while_step "body"
// CHECK-NEXT:      device.launch @given_a_number_{{[0-9]+}} {{.*}}(%u, %[[Y:.*]] : {{.*}}, memref<1xf64, 1 : i64>)
// CHECK-NEXT:      device.launch @given_a_number_{{[0-9]+}} {{.*}}(%u, %[[Y]] : {{.*}}, memref<1xf64, 1 : i64>)
func.func @given_a_number(%u : memref<?xf64, 1 : i64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    %y = device.fetch %u[%c1] : memref<?xf64, 1 : i64> -> f64
    device.launch @takes_a_number blocks(%c1) (%u, %y : memref<?xf64, 1 : i64>, f64)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_number_decides_what_is_launched
// CHECK-NOT:     device.while_step
func.func @kept_where_a_number_decides_what_is_launched(%u : memref<?xf64, 1 : i64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    %y = device.fetch %u[%c1] : memref<?xf64, 1 : i64> -> f64
    %small = arith.cmpf olt, %y, %x : f64
    scf.if %small {
      device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_number_is_one_of_blocks
// CHECK-NOT:     device.while_step
func.func @kept_where_a_number_is_one_of_blocks(%u : memref<?xf64, 1 : i64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    %more = arith.cmpf ogt, %y, %x : f64
    array.condition %more
  } do {
    %n = arith.minsi %i, %c2 : index
    device.launch @decided_1 blocks(%n) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_device_rounds_otherwise
// CHECK-NOT:     device.while_step
func.func @kept_where_a_device_rounds_otherwise(%u : memref<?xf64, 1 : i64>, %x : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %y = device.fetch %u[%c0] : memref<?xf64, 1 : i64> -> f64
    %z = math.sin %y : f64
    %more = arith.cmpf ogt, %z, %x : f64
    array.condition %more
  } do {
    device.launch @decided_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}
func.func private @decided_1(%u : memref<?xf64, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64>} {
  func.return
}
func.func private @takes_a_number(%u : memref<?xf64, 1 : i64>, %x : f64) attributes {kernel, overlaps = [], read_only = array<i64>} {
  func.return
}
// CHECK-LABEL: func.func private @decided_1
