// RUN: mutad-opt %s -p outline-kernels | filecheck %s

// One thread for each point; the arrays that are only read are known.
// CHECK-LABEL: func.func @points(%n: index, %u: memref<?xf64, 1 : i64>, %v: memref<?xf64, 1 : i64>)
// CHECK:         device.launch @points_0 blocks(%{{.*}}) (%n, %u, %v : index, memref<?xf64, 1 : i64>, memref<?xf64, 1 : i64>)
// CHECK-NEXT:    func.return
func.func @points(%n : index, %u : memref<?xf64>, %v : memref<?xf64>) {
  array.map(%n) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  func.return
}

// What stands still along an axis is added up by the thread of its element.
// CHECK-LABEL: func.func @rows
// CHECK:         device.launch @rows_0
// CHECK-NEXT:    func.return
func.func @rows(%n : index, %m : index, %u : memref<?x?xf64>, %s : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = array.view %s[%c0] dims [0, -1] extents(%n, %m) steps(%c1, %c0) : memref<?xf64> -> memref<?x?xf64, strided<[1, 0]>>
  array.map(%n, %m) ins(%u : memref<?x?xf64>) outs(%t : memref<?x?xf64, strided<[1, 0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  func.return
}

// A variable of the program is on the host: blocks leave what they have, one block adds that up.
// CHECK-LABEL: func.func @total
// CHECK:         %s = memref.alloca() : memref<f64>
// CHECK:         device.launch @total_0 blocks(%[[COUNT:[0-9]+]]) (%n, %[[COUNT]], %u, %[[PARTIAL:[0-9]+]] :
// CHECK:         device.launch @total_1 blocks({{.*}}) (%[[PARTIAL]], %[[COUNT]], %[[RESULT:[0-9]+]] :
// CHECK-NEXT:    %[[SUM:.*]] = device.fetch %[[RESULT]]
// CHECK-NEXT:    %[[OLD:.*]] = memref.load %s[]
// CHECK-NEXT:    %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUM]]
// CHECK-NEXT:    memref.store %[[NEW]], %s[]
func.func @total(%n : index, %u : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  memref.store %zero, %s[] : memref<f64>
  %t = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// Outputs that meet are written one after the other.
// CHECK-LABEL: func.func @meeting_outputs
// CHECK:         device.launch @meeting_outputs_0 {{.*}}%a
// CHECK:         device.launch @meeting_outputs_0 {{.*}}%b
func.func @meeting_outputs(%u : memref<?xf64>, %v : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %less = arith.addi %n, %cm1 : index
  %m = arith.maxsi %less, %c0 : index
  %a = array.view %u[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %b = array.view %u[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  array.map(%m) ins(%v : memref<?xf64>) outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  func.return
}

// A recurrence along each row is a thread a row.
// CHECK-LABEL: func.func @rows_in_order
// CHECK-NOT:     array.loop
// CHECK:         device.launch @rows_in_order_0
// CHECK:         func.return
func.func @rows_in_order(%n : index, %m : index, %u : memref<?x?xf64>) {
  %c1 = arith.constant 1 : index
  %t0 = array.loop %i to %n do {
    %t1 = array.loop %j to %m do {
      %k = arith.addi %j, %c1 : index
      %x = memref.load %u[%i, %j] : memref<?x?xf64>
      memref.store %x, %u[%i, %k] : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Single elements between kernels are fetched and put.
// CHECK-LABEL: func.func @boundary
// CHECK:         array.loop
// CHECK:           device.launch @boundary_0
// CHECK:           %x = device.fetch %u[%c1]
// CHECK:           device.put %x, %u[%c0]
func.func @boundary(%u : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %some = arith.cmpi sgt, %n, %c1 : index
  scf.if %some {
    %t = array.loop %i to %steps do {
      array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%y : f64):
        %z = arith.addf %y, %y : f64
        array.yield %z : f64
      }
      %x = memref.load %u[%c1] : memref<?xf64>
      memref.store %x, %u[%c0] : memref<?xf64>
      array.yield
    }
  }
  func.return
}

// Memory that no kernel touches stays with the host.
// CHECK-LABEL: func.func @kept_where_no_kernel_touches_it
// CHECK:         %a = array.alloc(%c8) : memref<8xf64>
// CHECK-NOT:     device
// CHECK:         func.return
func.func @kept_where_no_kernel_touches_it(%x : f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = array.alloc(%c8) : memref<8xf64>
  memref.store %x, %a[%c0] : memref<8xf64>
  %y = memref.load %a[%c0] : memref<8xf64>
  func.return %y : f64
}

// A loop that ends in an exception runs in its order, on the host.
// CHECK-LABEL: func.func @kept_where_it_raises
// CHECK:         scf.if %bad {
// CHECK:           array.loop
// CHECK:             array.index
// CHECK:             device.put
// CHECK:         {raises}
// CHECK:         device.launch @kept_where_it_raises_0
func.func @kept_where_it_raises(%u : memref<?xf64>, %n : index, %x : f64) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %u, %c0 : memref<?xf64>
  %bad = arith.cmpi sgt, %n, %m : index
  scf.if %bad {
    %t = array.loop %i to %n do {
      %k = array.index %i, %m axis 0 sign "nonneg"
      memref.store %x, %u[%k] : memref<?xf64>
      array.yield
    }
  } else {
  } {raises}
  %t1 = array.loop %i to %n do {
    memref.store %x, %u[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// What maps of a loop add up, and nothing else there reads, is fetched once.
// CHECK-LABEL: func.func @a_sum_of_a_loop_is_fetched_once
// CHECK:         %s = memref.alloca() : memref<f64, 1 : i64>
// CHECK:         device.put %zero, %s[]
// CHECK:         array.loop
// CHECK-NOT:       device.fetch
// CHECK:           array.yield
// CHECK:         device.fetch %s[]
func.func @a_sum_of_a_loop_is_fetched_once(%u : memref<?xf64>, %n : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %s = memref.alloca() : memref<f64>
  memref.store %zero, %s[] : memref<f64>
  %all = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %t = array.loop %k to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64):
      array.yield %x : f64
    }
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// CHECK-LABEL: func.func @kept_on_the_host_where_the_loop_reads_the_sum
// CHECK:         %s = memref.alloca() : memref<f64>
// CHECK:         array.loop
// CHECK:           device.fetch
func.func @kept_on_the_host_where_the_loop_reads_the_sum(%u : memref<?xf64>, %n : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %half = arith.constant 0.5 : f64
  %s = memref.alloca() : memref<f64>
  memref.store %zero, %s[] : memref<f64>
  %all = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  %t = array.loop %k to %steps do {
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64):
      array.yield %x : f64
    }
    %so_far = memref.load %s[] : memref<f64>
    %less = arith.mulf %so_far, %half : f64
    memref.store %less, %s[] : memref<f64>
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}

// A variable that is born in each iteration is the host's: it is read there.
// CHECK-LABEL: func.func @kept_on_the_host_where_each_iteration_has_its_own
// CHECK:         array.loop
// CHECK:           %s = memref.alloca() : memref<f64>
// CHECK:           device.fetch
func.func @kept_on_the_host_where_each_iteration_has_its_own(%u : memref<?xf64>, %n : index, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %r = memref.alloca() : memref<f64>
  memref.store %zero, %r[] : memref<f64>
  %t = array.loop %k to %steps do {
    %s = memref.alloca() : memref<f64>
    memref.store %zero, %s[] : memref<f64>
    %all = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%x : f64):
      array.yield %x : f64
    }
    %sum = memref.load %s[] : memref<f64>
    %before = memref.load %r[] : memref<f64>
    %after = arith.addf %before, %sum : f64
    memref.store %after, %r[] : memref<f64>
    array.yield
  }
  %found = memref.load %r[] : memref<f64>
  func.return %found : f64
}

// What does the same is one kernel, whatever it is given; another number makes another.
// CHECK-LABEL: func.func @filled_twice
// CHECK:         device.launch @filled_twice_0 {{.*}}%u
// CHECK:         device.launch @filled_twice_0 {{.*}}%v
// CHECK:         device.launch @filled_twice_1 {{.*}}%v
// CHECK:       func.func private @filled_twice_0
// CHECK:       func.func private @filled_twice_1
// CHECK-NOT:   func.func private @filled_twice_2
func.func @filled_twice(%n : index, %u : memref<?xf64>, %v : memref<?xf64>) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  array.map(%n) outs(%u : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) outs(%v : memref<?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  array.map(%n) outs(%v : memref<?xf64>) kinds ["store"] {
    array.yield %one : f64
  }
  func.return
}
