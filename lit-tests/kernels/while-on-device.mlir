// RUN: mutad-opt %s -p while-on-device | filecheck %s

// A variable of the condition is the kernel's own, and what it allocates is there before the steps. Checks of
// what is known before decide which way is gone.
// CHECK-LABEL: func.func @decided
// CHECK:         %able = device.has_conditions
// CHECK:         %[[FINE:.*]] = arith.cmpi eq, %bad,
// CHECK:         %[[BOTH:.*]] = arith.andi %able, %[[FINE]]
// CHECK:         scf.if %[[BOTH]] {
// CHECK:           %flag = array.alloc
// CHECK:           %[[S:.*]] = array.alloc(%c1)
// CHECK:           device.while_step "begin" %flag
// CHECK-NEXT:      device.launch @decided_0 {{.*}}%[[S]]
// CHECK-NEXT:      device.launch @decided_2 {{.*}}%[[S]]{{.*}}%flag
// CHECK-NEXT:      device.while_step "body" %flag
// CHECK-NEXT:      device.launch @decided_1
// CHECK-NEXT:      device.launch @decided_0
// CHECK-NEXT:      device.launch @decided_2
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
  func.return
}

// CHECK-LABEL: func.func @kept_where_iterations_are_counted
// CHECK-NOT:     device.while_step
func.func @kept_where_iterations_are_counted(%u : memref<?xf64, 1 : i64>, %x : f64) -> index {
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

// The variable is read behind the loop.
// CHECK-LABEL: func.func @kept_where_the_host_reads_what_decides
// CHECK-NOT:     device.while_step
func.func @kept_where_the_host_reads_what_decides(%u : memref<?xf64, 1 : i64>, %x : f64) -> f64 {
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

// What is fetched is fetched after the last launch that writes it.
// CHECK-LABEL: func.func @kept_where_a_kernel_writes_again_what_was_fetched
// CHECK-NOT:     device.while_step
func.func @kept_where_a_kernel_writes_again_what_was_fetched(%u : memref<?xf64, 1 : i64>, %x : f64) {
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
func.func private @decided_1(%u : memref<?xf64, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64>} {
  func.return
}
// CHECK-LABEL: func.func private @decided_1
