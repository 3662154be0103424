// RUN: mutad-opt %s -p print-kills | filecheck %s

// u[i] = u[i+1]**2: the store of the next iteration kills what this one read.
// CHECK-LABEL: @reading_ahead_is_killed_one_iteration_later
// CHECK:         %x = memref.load %u[%i1] {kill = "read %u[%i + 1]: killed by s"}
// CHECK:         memref.store %x, %u[%i] {{.*}} kill = "write %u[%i]: kept"
func.func @reading_ahead_is_killed_one_iteration_later(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %x = memref.load %u[%i1] : memref<?xf64>
    memref.store %x, %u[%i] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// u[i+1] = u[i]**2: what was read is never written again.
// CHECK-LABEL: @reading_behind_is_kept
// CHECK:         %x = memref.load %u[%i] {kill = "read %u[%i]: kept"}
// CHECK:         memref.store %x, %u[%i1] {{.*}} kill = "write %u[%i + 1]: kept"
func.func @reading_behind_is_kept(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %x = memref.load %u[%i] : memref<?xf64>
    memref.store %x, %u[%i1] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// u[i] = u[i-1] * u[i] * u[i+1].
// CHECK-LABEL: @reading_both_ways
// CHECK:         %x = memref.load %u[%i] {kill = "read %u[%i]: kept"}
// CHECK:         %y = memref.load %u[%i1] {kill = "read %u[%i + 1]: killed by s"}
// CHECK:         %z = memref.load %u[%i2] {kill = "read %u[%i + 2]: killed by s"}
func.func @reading_both_ways(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %i2 = arith.addi %i1, %c1 : index
    %x = memref.load %u[%i] : memref<?xf64>
    %y = memref.load %u[%i1] : memref<?xf64>
    %z = memref.load %u[%i2] : memref<?xf64>
    %xy = arith.mulf %x, %y : f64
    %xyz = arith.mulf %xy, %z : f64
    memref.store %xyz, %u[%i1] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// Downwards, j = n - 1 - i: reading ahead is now what is kept.
// CHECK-LABEL: @descending_turns_the_answers_around
// CHECK:         %x = memref.load %u[%j1] {kill = "read %u[%n - %i]: kept"}
// CHECK:         %y = memref.load %u[%j0] {kill = "read %u[%n - %i - 2]: killed by s"}
func.func @descending_turns_the_answers_around(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %n1 = arith.subi %n, %c1 : index
  %t = array.loop %i to %n1 do {
    %j = arith.subi %n1, %i : index
    %j1 = arith.addi %j, %c1 : index
    %j0 = arith.subi %j, %c1 : index
    %x = memref.load %u[%j1] : memref<?xf64>
    %y = memref.load %u[%j0] : memref<?xf64>
    memref.store %y, %u[%j] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// Another sweep comes: now reading behind is killed as well, and so is every store.
// CHECK-LABEL: @repeated_sweeps_kill_what_one_sweep_keeps
// CHECK:         %x = memref.load %u[%i] {kill = "read %u[%i]: killed by s"}
// CHECK:         memref.store %x, %u[%i1] {{.*}} kill = "write %u[%i + 1]: killed by itself"
func.func @repeated_sweeps_kill_what_one_sweep_keeps(%u : memref<?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %sweeps = array.loop %k to %m do {
    %t = array.loop %i to %n do {
      %i1 = arith.addi %i, %c1 : index
      %x = memref.load %u[%i] : memref<?xf64>
      memref.store %x, %u[%i1] {tag = "s"} : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// u[i,j] = u[i-1,j] * u[i,j+1]: the row before is final, the right neighbour is not.
// CHECK-LABEL: @two_dimensional_sweep
// CHECK:         %x = memref.load %u[%i, %j] {kill = "read %u[%i, %j]: kept"}
// CHECK:         %y = memref.load %u[%i1, %j1] {kill = "read %u[%i + 1, %j + 1]: killed by s"}
// CHECK:         %z = memref.load %u[%i1, %j] {kill = "read %u[%i + 1, %j]: killed by s"}
func.func @two_dimensional_sweep(%u : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %ti = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %tj = array.loop %j to %m do {
      %j1 = arith.addi %j, %c1 : index
      %x = memref.load %u[%i, %j] : memref<?x?xf64>
      %y = memref.load %u[%i1, %j1] : memref<?x?xf64>
      %z = memref.load %u[%i1, %j] : memref<?x?xf64>
      %w = arith.mulf %x, %y : f64
      memref.store %w, %u[%i1, %j] {tag = "s"} : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// for k: for i in k+1..n: x[i] -= x[k]: x[k] is final when it is read; x[i] is not.
// CHECK-LABEL: @triangular_loops_keep_the_pivot
// CHECK:         %p = memref.load %x[%k] {kill = "read %x[%k]: kept"}
// CHECK:         %q = memref.load %x[%i] {kill = "read %x[%k + %d + 1]: killed by s"}
func.func @triangular_loops_keep_the_pivot(%x : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %tk = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %below = arith.subi %n, %k1 : index
    %ti = array.loop %d to %below do {
      %i = arith.addi %k1, %d : index
      %p = memref.load %x[%k] : memref<?xf64>
      %q = memref.load %x[%i] : memref<?xf64>
      %r = arith.subf %q, %p : f64
      memref.store %r, %x[%i] {tag = "s"} : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The inner loop runs over 0..k instead: now the pivots of later k are above, and x[i] is hit again.
// CHECK-LABEL: @the_other_triangle_kills
// CHECK:         %p = memref.load %x[%k] {kill = "read %x[%k]: killed by s"}
func.func @the_other_triangle_kills(%x : memref<?xf64>, %n : index) {
  %tk = array.loop %k to %n do {
    %ti = array.loop %i to %k do {
      %p = memref.load %x[%k] : memref<?xf64>
      memref.store %p, %x[%i] {tag = "s"} : memref<?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// A[t+1, i] = f(A[t, i]): time-expanded storage is never overwritten.
// CHECK-LABEL: @time_expanded_storage_is_kept
// CHECK:         %x = memref.load %a[%t, %i1] {kill = "read %a[%t, %i + 1]: kept"}
// CHECK:         memref.store %x, %a[%t1, %i] {kill = "write %a[%t + 1, %i]: kept"}
func.func @time_expanded_storage_is_kept(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %tt = array.loop %t to %n do {
    %t1 = arith.addi %t, %c1 : index
    %ti = array.loop %i to %m do {
      %i1 = arith.addi %i, %c1 : index
      %x = memref.load %a[%t, %i1] : memref<?x?xf64>
      memref.store %x, %a[%t1, %i] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// The same with the time steps in a ring of two: killed.
// CHECK-LABEL: @a_ring_of_two_time_steps_is_killed
// CHECK:         %x = memref.load %a[%now, %i] {{.*}}: killed by s"}
func.func @a_ring_of_two_time_steps_is_killed(%a : memref<?x?xf64>, %n : index, %m : index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %tt = array.loop %t to %n do {
    %t1 = arith.addi %t, %c1 : index
    %now = array.floormod %t, %c2 : index
    %next = array.floormod %t1, %c2 : index
    %ti = array.loop %i to %m do {
      %x = memref.load %a[%now, %i] : memref<?x?xf64>
      memref.store %x, %a[%next, %i] {tag = "s"} : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Red points 2i are updated from black ones 2i + 1, then black from red: each colour is killed by its own sweep.
// CHECK-LABEL: @red_black_in_one_sweep
// CHECK:         %x = memref.load %u[%b] {kill = "read %u[2 * %i + 1]: killed by black"}
// CHECK:         memref.store %x, %u[%r] {{.*}} kill = "write %u[2 * %i]: kept"
// CHECK:         %y = memref.load %u[%r2] {kill = "read %u[2 * %j]: kept"}
// CHECK:         memref.store %y, %u[%b2] {{.*}} kill = "write %u[2 * %j + 1]: kept"
func.func @red_black_in_one_sweep(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ti = array.loop %i to %n do {
    %r = arith.muli %i, %c2 : index
    %b = arith.addi %r, %c1 : index
    %x = memref.load %u[%b] : memref<?xf64>
    memref.store %x, %u[%r] {tag = "red"} : memref<?xf64>
    array.yield
  }
  %tj = array.loop %j to %n do {
    %r2 = arith.muli %j, %c2 : index
    %b2 = arith.addi %r2, %c1 : index
    %y = memref.load %u[%r2] : memref<?xf64>
    memref.store %y, %u[%b2] {tag = "black"} : memref<?xf64>
    array.yield
  }
  func.return
}

// Nothing is known of a subscript that was loaded.
// CHECK-LABEL: @killed_when_the_subscript_is_loaded
// CHECK:         %x = memref.load %u[%i] {{.*}}: killed by s"}
func.func @killed_when_the_subscript_is_loaded(%u : memref<?xf64>, %idx : memref<?xi64>, %n : index) {
  %t = array.loop %i to %n do {
    %x = memref.load %u[%i] : memref<?xf64>
    %j = memref.load %idx[%i] : memref<?xi64>
    %k = arith.index_cast %j : i64 to index
    memref.store %x, %u[%k] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// NumPy's 64-bit integers wrap: 2 * j says nothing.
// CHECK-LABEL: @killed_when_the_arithmetic_may_wrap
// CHECK:         %x = memref.load %u[%r] {{.*}}: killed by s"}
func.func @killed_when_the_arithmetic_may_wrap(%u : memref<?xf64>, %j : i64, %k : i64, %v : f64) {
  %c2 = arith.constant 2 : i64
  %c1 = arith.constant 1 : i64
  %jj = arith.muli %j, %c2 : i64
  %kk = arith.muli %k, %c2 : i64
  %kk1 = arith.addi %kk, %c1 : i64
  %r = arith.index_cast %jj : i64 to index
  %s = arith.index_cast %kk1 : i64 to index
  %x = memref.load %u[%r] : memref<?xf64>
  memref.store %v, %u[%s] {tag = "s"} : memref<?xf64>
  func.return
}

// The count is max(n - 1, 0), the subscript i + 1 < n: the last element is never stored.
// CHECK-LABEL: @kept_beyond_the_last_iteration
// CHECK:         %x = memref.load %u[%last] {kill = "read %u[%n - 1]: kept"}
func.func @kept_beyond_the_last_iteration(%u : memref<?xf64>, %n : index, %v : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.subi %n, %c1 : index
  %trips = arith.maxsi %last, %c0 : index
  %x = memref.load %u[%last] : memref<?xf64>
  %t = array.loop %i to %trips do {
    memref.store %v, %u[%i] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}

// A condition region runs before the body of its iteration, and again after it.
// CHECK-LABEL: @while_condition_reads_what_the_body_kills
// CHECK:         %x = memref.load %u[] {kill = "read %u[]: killed by s"}
// CHECK:         memref.store %y, %u[] {{.*}} kill = "write %u[]: killed by itself"
func.func @while_condition_reads_what_the_body_kills(%u : memref<f64>, %eps : f64) {
  %t = array.loop %i while {
  ^bb0(%ic : index):
    %x = memref.load %u[] : memref<f64>
    %c = arith.cmpf ogt, %x, %eps : f64
    array.condition %c
  } do {
    %y = memref.load %u[] : memref<f64>
    memref.store %y, %u[] {tag = "s"} : memref<f64>
    array.yield
  }
  func.return
}

// k is not 0, so k - 1 is a row before k, not one from the end.
// CHECK-LABEL: @the_row_before_is_kept_where_there_is_one
// CHECK:         memref.load {{.*}} {kill = "read {{.*}}: kept"}
func.func @the_row_before_is_kept_where_there_is_one(%u : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.loop %k to %n do {
    %first = arith.cmpi eq, %k, %c0 : index
    scf.if %first {
      scf.yield
    } else {
      %before = arith.subi %k, %c1 : index
      %at = array.index %before, %n axis 0 sign "any"
      %x = memref.load %u[%at] : memref<?xf64>
      memref.store %x, %u[%k] : memref<?xf64>
      scf.yield
    }
    array.yield
  }
  func.return
}

// In the first iteration it is the last row, which a later iteration stores to.
// CHECK-LABEL: @the_row_before_the_first_is_the_last
// CHECK:         memref.load {{.*}} {kill = "read {{.*}}: killed by s"}
func.func @the_row_before_the_first_is_the_last(%u : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %k to %n do {
    %before = arith.subi %k, %c1 : index
    %at = array.index %before, %n axis 0 sign "any"
    %x = memref.load %u[%at] : memref<?xf64>
    memref.store %x, %u[%k] {tag = "s"} : memref<?xf64>
    array.yield
  }
  func.return
}
