// RUN: mutad-opt %s -p tile-loads | filecheck %s

!a = memref<?xf64, 1 : i64>

// Two arrays that all threads go through at the same time: each thread loads one element of each, in range.
// CHECK-LABEL: func.func private @pairs
// CHECK-DAG:     %[[X:a]] = memref.alloca() : memref<256xf64, 3 : i64>
// CHECK-DAG:     %[[Y:b]] = memref.alloca() : memref<256xf64, 3 : i64>
// CHECK:         array.loop %[[TILE:.*]] to
// CHECK:           %[[BEGIN:.*]] = arith.muli %[[TILE]],
// CHECK-NEXT:      %[[OWN:.*]] = arith.addi %[[BEGIN]], %[[T:.*]] : index
// CHECK-NEXT:      %[[THERE:.*]] = arith.cmpi slt, %[[OWN]], %m
// CHECK-NEXT:      scf.if %[[THERE]] {
// CHECK:             memref.store %{{.*}}, %[[X]][%[[T]]]
// CHECK:             memref.store %{{.*}}, %[[Y]][%[[T]]]
// CHECK:           device.barrier
// CHECK:           scf.if %inside {
// CHECK-NEXT:        array.loop %[[K:.*]] to
// CHECK:               memref.load %[[X]][%[[K]]]
// CHECK:               memref.load %[[Y]][%[[K]]]
// CHECK:             } {tile}
// CHECK:           device.barrier
func.func private @pairs(%x : !a, %y : !a, %u : !a, %n : index, %m : index) attributes {kernel, read_only = array<i64: 0, 1>} {
  %zero = arith.constant 0.0 : f64
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %s = memref.alloca() : memref<f64>
    memref.store %zero, %s[] : memref<f64>
    %trips = array.loop %j to %m do {
      %a = memref.load %x[%j] : !a
      %b = memref.load %y[%j] : !a
      %c = arith.mulf %a, %b : f64
      %d = memref.load %s[] : memref<f64>
      %e = arith.addf %c, %d : f64
      memref.store %e, %s[] : memref<f64>
      array.yield
    }
    %f = memref.load %s[] : memref<f64>
    memref.store %f, %u[%i] : !a
  }
  func.return
}

// A subscript is computed for the element that a thread loads.
// CHECK-LABEL: func.func private @backwards
// CHECK:           array.loop
// CHECK:             %[[AT:.*]] = arith.subi %m, %{{.*}} : index
// CHECK-NEXT:        %{{.*}} = memref.load %x[%[[AT]]]
func.func private @backwards(%x : !a, %u : !a, %n : index, %m : index) attributes {kernel, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %k = arith.subi %m, %j : index
      %a = memref.load %x[%k] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_where_a_subscript_is_a_threads_own
// CHECK-NOT:     device.barrier
func.func private @kept_where_a_subscript_is_a_threads_own(%x : !a, %u : !a, %n : index, %m : index) attributes {kernel, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %k = arith.addi %i, %j : index
      %a = memref.load %x[%k] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_where_the_kernel_writes_the_array
// CHECK-NOT:     device.barrier
func.func private @kept_where_the_kernel_writes_the_array(%x : !a, %u : !a, %n : index, %m : index) attributes {kernel, read_only = array<i64>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %a = memref.load %x[%j] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_where_threads_go_through_it_unequally_often
// CHECK-NOT:     device.barrier
func.func private @kept_where_threads_go_through_it_unequally_often(%x : !a, %u : !a, %n : index) attributes {kernel, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %i do {
      %a = memref.load %x[%j] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}

// No thread need come to a load in a branch, so its element need not be there.
// CHECK-LABEL: func.func private @in_a_branch
// CHECK:           scf.if
// CHECK:             %[[N:.*]] = memref.dim %x,
// CHECK:             %[[LOW:.*]] = arith.cmpi sle, %{{.*}}, %[[OWN:.*]] : index
// CHECK-NEXT:        %[[HIGH:.*]] = arith.cmpi slt, %[[OWN]], %[[N]] : index
// CHECK-NEXT:        %[[BOTH:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// CHECK-NEXT:        scf.if %[[BOTH]] {
// CHECK-NEXT:          memref.load %x[%[[OWN]]]
// CHECK:           device.barrier
// CHECK:           scf.if %b {
// CHECK-NEXT:        memref.load %a[
func.func private @in_a_branch(%x : !a, %u : !a, %n : index, %m : index, %b : i1) attributes {kernel, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      scf.if %b {
        %a = memref.load %x[%j] : !a
        memref.store %a, %u[%i] : !a
      }
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_in_inner_loops
// CHECK-NOT:     device.barrier
func.func private @kept_in_inner_loops(%x : !a, %u : !a, %n : index, %m : index) attributes {kernel, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %more = array.loop %k to %m do {
        %a = memref.load %x[%j] : !a
        memref.store %a, %u[%i] : !a
        array.yield
      }
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_where_trips_are_few
// CHECK-NOT:     device.barrier
func.func private @kept_where_trips_are_few(%x : !a, %u : !a, %n : index) attributes {kernel, read_only = array<i64: 0>} {
  %m = arith.constant 8 : index
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %a = memref.load %x[%j] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}

// CHECK-LABEL: func.func private @kept_where_one_thread_runs
// CHECK-NOT:     device.barrier
func.func private @kept_where_one_thread_runs(%x : !a, %u : !a, %n : index, %m : index) attributes {kernel, one_thread, read_only = array<i64: 0>} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %trips = array.loop %j to %m do {
      %a = memref.load %x[%j] : !a
      memref.store %a, %u[%i] : !a
      array.yield
    }
  }
  func.return
}
