// RUN: mutad-opt %s -p block-sums | filecheck %s

// CHECK-LABEL: func.func private @by_rows
// CHECK:         %[[TERM:.*]] = memref.alloca() : memref<f64>
// CHECK:         %[[Y:.*]] = memref.alloca() : memref<f64>
// CHECK:         scf.if %inside {
// CHECK:           memref.store %{{.*}}, %[[Y]][]
// CHECK:         array.loop %t to %m do
// CHECK:           memref.store %{{.*}}, %[[TERM]][]
// CHECK:           scf.if %inside {
// CHECK:             memref.load %[[Y]][]
// CHECK:             memref.store %{{.*}}, %[[TERM]][]
// CHECK-COUNT-8:   device.barrier
// CHECK:           device.atomic_add %{{.*}}, %w[%t] {of_block}
// CHECK:           device.barrier
// CHECK:         scf.if %inside {
// CHECK:           memref.store %last, %x[%i]
func.func private @by_rows(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %n : index, %m : index)
    attributes {kernel, overlaps = [], read_only = array<i64: 0>} {
  %c256 = arith.constant 256 : index
  %h = memref.alloca() : memref<f64>
  %thread = device.thread
  %block = device.block
  %first = arith.muli %block, %c256 : index
  %i = arith.addi %first, %thread : index
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    memref.store %y, %h[] : memref<f64>
    %trips = array.loop %t to %m do {
      %old = memref.load %h[] : memref<f64>
      %new = arith.mulf %old, %y : f64
      memref.store %new, %h[] : memref<f64>
      device.atomic_add %new, %w[%t] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
    %last = memref.load %h[] : memref<f64>
    memref.store %last, %x[%i] : memref<?xf64, 1 : i64>
  }
  func.return
}

// Threads are at elements of their own.
// CHECK-LABEL: func.func private @kept_at_subscripts_of_a_thread
// CHECK-NOT:     device.barrier
// CHECK:         device.atomic_add
// CHECK-NOT:     of_block
func.func private @kept_at_subscripts_of_a_thread(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %k : memref<?xindex, 1 : i64>, %n : index, %m : index)
    attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %trips = array.loop %t to %m do {
      %at = arith.addi %t, %i : index
      device.atomic_add %y, %w[%at] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
  }
  func.return
}

// Nobody knows whether threads read the same subscript.
// CHECK-LABEL: func.func private @kept_at_subscripts_that_are_read
// CHECK-NOT:     device.barrier
// CHECK:         device.atomic_add
// CHECK-NOT:     of_block
func.func private @kept_at_subscripts_that_are_read(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %k : memref<?xindex, 1 : i64>, %n : index, %m : index)
    attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %trips = array.loop %t to %m do {
      %at = memref.load %k[%t] : memref<?xindex, 1 : i64>
      device.atomic_add %y, %w[%at] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
  }
  func.return
}

// Some threads would wait at a barrier that others never come to.
// CHECK-LABEL: func.func private @kept_where_threads_go_through_it_differently_often
// CHECK-NOT:     device.barrier
// CHECK:         device.atomic_add
// CHECK-NOT:     of_block
func.func private @kept_where_threads_go_through_it_differently_often(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %k : memref<?xindex, 1 : i64>, %n : index, %m : index)
    attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %trips = array.loop %t to %i do {
      device.atomic_add %y, %w[%t] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
  }
  func.return
}

// Only some threads come to the loop.
// CHECK-LABEL: func.func private @kept_in_a_branch
// CHECK-NOT:     device.barrier
// CHECK:         device.atomic_add
// CHECK-NOT:     of_block
func.func private @kept_in_a_branch(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %k : memref<?xindex, 1 : i64>, %n : index, %m : index)
    attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %some = arith.cmpf olt, %y, %y : f64
    scf.if %some {
    %trips = array.loop %t to %m do {
      device.atomic_add %y, %w[%t] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
    }
  }
  func.return
}

// An array of the thread is no register.
// CHECK-LABEL: func.func private @kept_with_memory_of_a_thread
// CHECK-NOT:     device.barrier
// CHECK:         device.atomic_add
// CHECK-NOT:     of_block
func.func private @kept_with_memory_of_a_thread(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %k : memref<?xindex, 1 : i64>, %n : index, %m : index)
    attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %own = memref.alloca() : memref<4xf64>
    %trips = array.loop %t to %m do {
      %z = memref.load %own[%t] : memref<4xf64>
      device.atomic_add %y, %w[%t] : f64, memref<?xf64, 1 : i64>
      array.yield
    }
  }
  func.return
}

// In a branch: perhaps no thread of a block takes it, and there is no such element.
// CHECK-LABEL: func.func private @in_a_branch
// CHECK:           %[[N:.*]] = memref.dim %w,
// CHECK:           %[[LOW:.*]] = arith.cmpi sle, %{{.*}}, %[[J:.*]] : index
// CHECK-NEXT:      %[[HIGH:.*]] = arith.cmpi slt, %[[J]], %[[N]] : index
// CHECK-NEXT:      %[[BOTH:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// CHECK-NEXT:      scf.if %[[BOTH]] {
// CHECK-NEXT:        device.atomic_add %{{.*}}, %w[%[[J]]] {of_block}
func.func private @in_a_branch(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %n : index, %m : index, %k : index) attributes {kernel} {
  %i = device.thread
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
    %trips = array.loop %t to %m do {
      %there = arith.cmpi slt, %t, %k : index
      scf.if %there {
        device.atomic_add %y, %w[%t] : f64, memref<?xf64, 1 : i64>
      }
      array.yield
    }
  }
  func.return
}
