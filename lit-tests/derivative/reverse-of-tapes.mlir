// RUN: mutad-opt %s -p reverse | filecheck %s

// The shadow of what is popped is pushed on the shadow tape, as 0; that of what is pushed popped: last first.
// CHECK-LABEL: @pushed_and_popped_gradient(
// CHECK:         %tape_shadow = ad.tape
// CHECK:         array.loop
// CHECK:           ad.push %tape(%n)
// CHECK:         array.loop
// CHECK:           ad.pop %tape(%n)
// CHECK:         array.loop
// CHECK:           %p_shadow = ad.push %tape_shadow(%n)
// CHECK:           array.map(%n) outs(%p_shadow
// CHECK:           memref.store {{.*}}, %p_shadow[%i]
// CHECK:         array.loop
// CHECK:           %s_shadow = ad.pop %tape_shadow(%n)
// CHECK:           memref.load %s_shadow[%i]
func.func @pushed_and_popped(%x : memref<?xf64>, %steps : index, %n : index, %i : index) -> f64 {
  %tape = ad.tape
  %sum = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %sum[] : memref<f64>
  %pushes = array.loop %k to %steps do {
    %s = ad.push %tape(%n) : memref<?xf64>
    %v = memref.load %x[%i] : memref<?xf64>
    memref.store %v, %s[%i] : memref<?xf64>
    array.yield
  }
  %pops = array.loop %k to %steps do {
    %p = ad.pop %tape(%n) : memref<?xf64>
    %w = memref.load %p[%i] : memref<?xf64>
    %old = memref.load %sum[] : memref<f64>
    %new = arith.addf %old, %w : f64
    memref.store %new, %sum[] : memref<f64>
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}

// What is popped is gone when the adjoint asks for it: it is saved once more.
// CHECK-LABEL: @needed_again_gradient(
// CHECK:         %w_saved = ad.push %{{.*}}(%{{.*}}) : memref<?xf64>
// CHECK:         memref.store %w, %w_saved[%k
func.func @needed_again(%x : memref<?xf64>, %steps : index, %i : index) -> f64 {
  %tape = ad.tape
  %sum = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %sum[] : memref<f64>
  %one = arith.constant 1 : index
  %pushes = array.loop %k to %steps do {
    %s = ad.push %tape(%one) : memref<1xf64>
    %v = memref.load %x[%i] : memref<?xf64>
    %c = arith.constant 0 : index
    memref.store %v, %s[%c] : memref<1xf64>
    array.yield
  }
  %pops = array.loop %k to %steps do {
    %p = ad.pop %tape(%one) : memref<1xf64>
    %d = arith.constant 0 : index
    %w = memref.load %p[%d] : memref<1xf64>
    %y = arith.mulf %w, %w : f64
    %old = memref.load %sum[] : memref<f64>
    %new = arith.addf %old, %y : f64
    memref.store %new, %sum[] : memref<f64>
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}

// A segment that stays readable where it was pushed is an array: no shadow tape.
// CHECK-LABEL: @read_where_it_was_pushed_gradient(
// CHECK-NOT:     ad.pop
// CHECK:         %s_shadow = array.alloc(%n)
// CHECK-NOT:     ad.pop
// CHECK:         func.return
func.func @read_where_it_was_pushed(%x : memref<?xf64>, %n : index, %i : index) -> f64 {
  %tape = ad.tape
  %s = ad.push %tape(%n) : memref<?xf64>
  %v = memref.load %x[%i] : memref<?xf64>
  memref.store %v, %s[%i] : memref<?xf64>
  %w = memref.load %s[%i] : memref<?xf64>
  func.return %w : f64
}

// A tape that comes from elsewhere has its shadows beside it.
// CHECK-LABEL: @a_tape_is_given_gradient(%kept: !ad.tape, %n: index, %i: index, %kept_shadow: !ad.tape, %w_bar: f64)
// CHECK:         ad.push %kept_shadow(%n)
func.func @a_tape_is_given(%kept : !ad.tape, %n : index, %i : index) -> f64 {
  %tape = ad.reader %kept
  %p = ad.pop %tape(%n) : memref<?xf64>
  %w = memref.load %p[%i] : memref<?xf64>
  func.return %w : f64
}

// Of a value that a map stores twice, the copy that survives is read.
// CHECK-LABEL: @stored_twice_gradient(
// CHECK:         array.map(%n) ins(%x_shadow, %y_shadow, %y
// CHECK:         func.return
func.func @stored_twice(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %i : index) {
  array.map(%n) ins(%x : memref<?xf64>) outs(%x, %y : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%a : f64):
    %b = math.exp %a : f64
    array.yield %b, %b : f64, f64
  }
  %c = memref.load %x[%i] : memref<?xf64>
  %d = arith.addf %c, %c : f64
  memref.store %d, %x[%i] : memref<?xf64>
  func.return
}
