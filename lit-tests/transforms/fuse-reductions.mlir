// RUN: mutad-opt %s -p fuse-reductions | filecheck %s

// What is computed of the sum comes behind the later map; checks stay where they are.
// CHECK-LABEL: @what_is_returned_moves_behind
// CHECK-NOT:     array.map
// CHECK:         array.raise_if %bad
// CHECK-NEXT:    array.map(%n) ins(%u, %v : memref<?xf64>, memref<?xf64>) outs(%s, %sum {{.*}} kinds ["store", "add"] {
// CHECK-NEXT:    ^bb0(%x1: f64, %y1: f64):
// CHECK-NEXT:      %y = arith.mulf %x1, %x1 : f64
// CHECK-NEXT:      %p = arith.mulf %x1, %y1 : f64
// CHECK-NEXT:      array.yield %p, %y : f64, f64
// CHECK-NEXT:    }
// CHECK-NEXT:    %value = memref.load %total[] : memref<f64>
// CHECK-NEXT:    %half = arith.mulf %value, %c : f64
// CHECK-NEXT:    func.return %half : f64
func.func @what_is_returned_moves_behind(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %s : memref<?xf64>, %bad : i1) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %c = arith.constant 0.5 : f64
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %x : f64
    array.yield %y : f64
  }
  %value = memref.load %total[] : memref<f64>
  %half = arith.mulf %value, %c : f64
  array.raise_if %bad, "ValueError", "bad"
  array.map(%n) ins(%u, %v : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64, %y1 : f64):
    %p = arith.mulf %x1, %y1 : f64
    array.yield %p : f64
  }
  func.return %half : f64
}

// Steps that are run again must have its bits.
// CHECK-LABEL: @kept_when_the_sum_is_used
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%sum
// CHECK:         memref.load
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>)
func.func @kept_when_the_sum_is_used(%n : index, %u : memref<?xf64>, %s : memref<?xf64>) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %value = memref.load %total[] : memref<f64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    %p = arith.mulf %x1, %value : f64
    array.yield %p : f64
  }
  func.return %value : f64
}

// CHECK-LABEL: @kept_when_what_it_reads_is_overwritten_in_between
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%sum
// CHECK:         memref.store
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>)
func.func @kept_when_what_it_reads_is_overwritten_in_between(%n : index, %u : memref<?xf64>, %s : memref<?xf64>, %new : f64) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  memref.store %new, %u[%c0] : memref<?xf64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %value = memref.load %total[] : memref<f64>
  func.return %value : f64
}

// The cell is set anew: the first sum was read before.
// CHECK-LABEL: @kept_when_the_cell_is_written_in_between
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%sum
// CHECK:         memref.store
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>)
func.func @kept_when_the_cell_is_written_in_between(%n : index, %u : memref<?xf64>, %s : memref<?xf64>) -> (f64, f64) {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %value = memref.load %total[] : memref<f64>
  memref.store %zero, %total[] : memref<f64>
  array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %later = memref.load %total[] : memref<f64>
  func.return %value, %later : f64, f64
}

// CHECK-LABEL: @kept_when_the_later_map_overwrites_what_it_reads
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%sum
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>)
func.func @kept_when_the_later_map_overwrites_what_it_reads(%n : index, %u : memref<?xf64>) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %value = memref.load %total[] : memref<f64>
  func.return %value : f64
}

// CHECK-LABEL: @kept_when_it_reads_more
// CHECK:         array.map(%n) ins(%u, %v : memref<?xf64>, memref<?xf64>) outs(%sum
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>)
func.func @kept_when_it_reads_more(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %s : memref<?xf64>) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u, %v : memref<?xf64>, memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64, %y : f64):
    %p = arith.mulf %x, %y : f64
    array.yield %p : f64
  }
  array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %value = memref.load %total[] : memref<f64>
  func.return %value : f64
}

// CHECK-LABEL: @kept_when_there_are_fewer_points
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%sum
// CHECK:         array.map(%m) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>)
func.func @kept_when_there_are_fewer_points(%n : index, %m : index, %u : memref<?xf64>, %s : memref<?xf64>) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%m) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %value = memref.load %total[] : memref<f64>
  func.return %value : f64
}

// CHECK-LABEL: @kept_when_the_later_map_reads_the_cell
// CHECK:         array.map(%n) ins(%u : memref<?xf64>) outs(%most : memref<?xf64, strided<[0]>>) kinds ["max"]
// CHECK:         array.map(%n) ins(%u, %each
func.func @kept_when_the_later_map_reads_the_cell(%n : index, %u : memref<?xf64>, %s : memref<?xf64>) -> f64 {
  %cell = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %most = array.view %cell[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64>) outs(%most : memref<?xf64, strided<[0]>>) kinds ["max"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  %each = array.view %cell[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u, %each : memref<?xf64>, memref<?xf64, strided<[0]>>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64, %m : f64):
    %away = arith.subf %x1, %m : f64
    array.yield %away : f64
  }
  %value = memref.load %cell[] : memref<f64>
  func.return %value : f64
}

// CHECK-LABEL: @kept_when_the_elements_lie_apart
// CHECK:         array.map(%n) ins(%u : memref<?xf64, strided<[?]>>) outs(%sum
// CHECK:         array.map(%n) ins(%u : memref<?xf64, strided<[?]>>) outs(%s : memref<?xf64>)
func.func @kept_when_the_elements_lie_apart(%n : index, %u : memref<?xf64, strided<[?]>>, %s : memref<?xf64>) -> f64 {
  %total = memref.alloca() : memref<f64>
  %c0 = arith.constant 0 : index
  %sum = array.view %total[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%u : memref<?xf64, strided<[?]>>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
  ^bb0(%x : f64):
    array.yield %x : f64
  }
  array.map(%n) ins(%u : memref<?xf64, strided<[?]>>) outs(%s : memref<?xf64>) kinds ["store"] {
  ^bb1(%x1 : f64):
    array.yield %x1 : f64
  }
  %value = memref.load %total[] : memref<f64>
  func.return %value : f64
}
