// RUN: mutad-opt %s -p count-on-device | filecheck %s

!u = memref<?x?xf64, 1 : i64>
!row = memref<?xf64, strided<[1]>, 1 : i64>

// What iteration k has at place k: kernels read k on the device, one adds 1 to it.
// CHECK-LABEL: func.func @moving_rows_are_computed_by_kernels
// CHECK:         %replayed = device.is_replayed %n period 1
// CHECK-NEXT:    scf.if %replayed
// CHECK:           %counter = array.alloc(%{{.*}}) : memref<1xi64, 1 : i64>
// CHECK:           device.put %{{.*}}, %counter
// CHECK-NEXT:      %{{.*}} = array.loop %k to %n do {
// CHECK-NEXT:        device.launch @[[READS:.*]] blocks(%c1) (%counter, %last, %u, %m
// CHECK-NEXT:        device.launch @[[COUNTS:.*]] blocks(%{{.*}}) (%counter
// CHECK-NEXT:        array.yield
// CHECK:         } else {
// CHECK:           array.loop %[[K:.*]] to %n do {
// CHECK:             device.launch @doubles blocks(%c1) (%row
func.func @moving_rows_are_computed_by_kernels(%u : !u, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %back = arith.subi %last, %k : index
    %row = array.view %u[%back, %c0] dims [1] extents(%m) steps(%c1) : !u -> !row
    device.launch @doubles blocks(%c1) (%row : !row)
    array.yield
  }
  func.return
}

// Numbers, and what an inner loop counts, too.
// CHECK-LABEL: func.func @numbers_come_from_the_counter
// CHECK:         %trips = scf.if %replayed
// CHECK:           array.loop %k to %n do {
// CHECK-NEXT:        %{{.*}} = array.loop %j to %m do {
// CHECK-NEXT:          device.launch @[[ADDS:.*]] blocks(%c1) (%counter, %j, %x
// CHECK:         func.return %trips
func.func @numbers_come_from_the_counter(%x : memref<?xf64, 1 : i64>, %n : index, %m : index) -> index {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %inner = array.loop %j to %m do {
      %both = arith.addi %k, %j : index
      %wide = arith.index_cast %both : index to i64
      %t = arith.sitofp %wide : i64 to f64
      device.launch @adds blocks(%c1) (%t, %x : f64, memref<?xf64, 1 : i64>)
      array.yield
    }
    array.yield
  }
  func.return %trips : index
}

// Arrays that change places come out of whichever loop ran.
// CHECK-LABEL: func.func @exchanged_arrays_come_out
// CHECK:         %replayed = device.is_replayed %n period 2
// CHECK:         %trips, %p2, %q2 = scf.if %replayed -> (index, memref<?xf64, 1 : i64>, memref<?xf64, 1 : i64>)
// CHECK:         device.launch @once blocks(%c1) (%p2
func.func @exchanged_arrays_come_out(%p : memref<?xf64, 1 : i64>, %q : memref<?xf64, 1 : i64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips, %p2, %q2 = array.loop %k to %n carry(%a = %p : memref<?xf64, 1 : i64>, %b = %q : memref<?xf64, 1 : i64>) do {
    %wide = arith.index_cast %k : index to i64
    %t = arith.sitofp %wide : i64 to f64
    device.launch @adds blocks(%c1) (%t, %a : f64, memref<?xf64, 1 : i64>)
    array.yield %b, %a : memref<?xf64, 1 : i64>, memref<?xf64, 1 : i64>
  }
  device.launch @once blocks(%c1) (%p2 : memref<?xf64, 1 : i64>)
  func.return
}

// What ends in an exception does so in the first iterations, which run on the host: it has the counter there.
// CHECK-LABEL: func.func @exceptions_have_the_hosts_counter
// CHECK:         %replayed = device.is_replayed %n period 1
// CHECK:         array.loop %k to %n do {
// CHECK-NEXT:      scf.if %bad {
// CHECK-NEXT:        device.put %x, %u[%k]
// CHECK:           {raises}
// CHECK-NEXT:      device.launch @{{.*}} (%counter,
func.func @exceptions_have_the_hosts_counter(%u : memref<?xf64, 1 : i64>, %x : f64, %n : index, %bad : i1) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    scf.if %bad {
      device.put %x, %u[%k] : f64, memref<?xf64, 1 : i64>
      array.raise_if %bad, "ValueError", "bad"
    } {raises}
    %wide = arith.index_cast %k : index to i64
    %t = arith.sitofp %wide : i64 to f64
    device.launch @adds blocks(%c1) (%t, %u : f64, memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_when_blocks_are_counted
// CHECK-NOT:     device.is_replayed
func.func @kept_when_blocks_are_counted(%x : memref<?xf64, 1 : i64>, %n : index) {
  %trips = array.loop %k to %n do {
    device.launch @once blocks(%k) (%x : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_when_an_inner_loop_has_other_trips
// CHECK-NOT:     device.is_replayed
func.func @kept_when_an_inner_loop_has_other_trips(%x : memref<?xf64, 1 : i64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %inner = array.loop %j to %k do {
      device.launch @once blocks(%c1) (%x : memref<?xf64, 1 : i64>)
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_when_the_host_puts_what_moves
// CHECK-NOT:     device.is_replayed
func.func @kept_when_the_host_puts_what_moves(%x : memref<?xf64, 1 : i64>, %n : index, %v : f64) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    device.put %v, %x[%k] : f64, memref<?xf64, 1 : i64>
    device.launch @once blocks(%c1) (%x : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_when_an_exception_depends_on_it
// CHECK-NOT:     device.is_replayed
func.func @kept_when_an_exception_depends_on_it(%x : memref<?xf64, 1 : i64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %out = arith.cmpi sge, %k, %m : index
    array.raise_if %out, "IndexError", "out of range"
    device.launch @once blocks(%c1) (%x : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// cuBLAS is called by the host.
// CHECK-LABEL: func.func @kept_when_a_library_may_multiply
// CHECK-NOT:     device.is_replayed
func.func @kept_when_a_library_may_multiply(%u : !u, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %row = array.view %u[%k, %c0] dims [1] extents(%m) steps(%c1) : !u -> !row
    device.launch @doubles blocks(%c1) (%row : !row) {product = array<i64: 0, 0, 0, 0>}
    array.yield
  }
  func.return
}

// A graph has it as it is.
// CHECK-LABEL: func.func @kept_when_nothing_moves
// CHECK-NOT:     device.is_replayed
func.func @kept_when_nothing_moves(%x : memref<?xf64, 1 : i64>, %n : index) {
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    device.launch @once blocks(%c1) (%x : memref<?xf64, 1 : i64>)
    array.yield
  }
  func.return
}

// CHECK-LABEL: func.func @kept_when_a_number_is_fetched
// CHECK-NOT:     device.is_replayed
func.func @kept_when_a_number_is_fetched(%u : !u, %n : index, %m : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = array.loop %k to %n do {
    %v = device.fetch %u[%k, %c0] : !u -> f64
    %row = array.view %u[%k, %c0] dims [1] extents(%m) steps(%c1) : !u -> !row
    device.launch @doubles blocks(%c1) (%row : !row)
    array.yield
  }
  func.return
}

func.func private @doubles(%row : !row) attributes {kernel, overlaps = [], read_only = array<i64>} {
  %zero = arith.constant 0 : index
  %i = device.thread
  %extent = memref.dim %row, %zero : !row
  %inside = arith.cmpi slt, %i, %extent : index
  scf.if %inside {
    %x = memref.load %row[%i] : !row
    %y = arith.addf %x, %x : f64
    memref.store %y, %row[%i] : !row
  }
  func.return
}
func.func private @adds(%t : f64, %x : memref<?xf64, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64>} {
  %zero = arith.constant 0 : index
  %i = device.thread
  %extent = memref.dim %x, %zero : memref<?xf64, 1 : i64>
  %inside = arith.cmpi slt, %i, %extent : index
  scf.if %inside {
    %old = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %new = arith.addf %old, %t : f64
    memref.store %new, %x[%i] : memref<?xf64, 1 : i64>
  }
  func.return
}
func.func private @once(%x : memref<?xf64, 1 : i64>) attributes {kernel, overlaps = [], read_only = array<i64>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f64
  %thread = device.thread
  %block = device.block
  %i = arith.addi %thread, %block : index
  %extent = memref.dim %x, %zero : memref<?xf64, 1 : i64>
  %in = arith.cmpi slt, %thread, %extent : index
  %first = arith.cmpi eq, %block, %zero : index
  %inside = arith.andi %in, %first : i1
  scf.if %inside {
    memref.store %one, %x[%i] : memref<?xf64, 1 : i64>
  }
  func.return
}

// The kernel that reads the counter has the old one's body behind the view.
// CHECK:       func.func private @[[READS]](%counter: memref<1xi64, 1 : i64>, %last: index, %u: memref<?x?xf64, 1 : i64>, %m: index)
// CHECK-SAME:    read_only = array<i64: 0>
// CHECK:         %[[N:.*]] = memref.load %counter
// CHECK:         %k = arith.index_cast %[[N]] : i64 to index
// CHECK:         %back = arith.subi %last, %k : index
// CHECK:         %row = array.view %u[%back, %c0]
// CHECK:         memref.dim %row
// CHECK:         memref.store %y, %row[%i]
