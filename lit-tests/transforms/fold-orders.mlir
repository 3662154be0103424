// RUN: mutad-opt %s -p fold-orders | filecheck %s

// CHECK-LABEL: func.func @sum_of_squares
// CHECK: %bad = arith.constant false
func.func @sum_of_squares(%x : f64, %y : f64) {
  %zero = arith.constant 0.0 : f64
  %a = arith.mulf %x, %x : f64
  %b = arith.mulf %y, %y : f64
  %sum = arith.addf %a, %b : f64
  %bad = arith.cmpf olt, %sum, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// CHECK-LABEL: func.func @above_one
// CHECK: %bad = arith.constant false
func.func @above_one(%x : f64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %a = math.exp %x : f64
  %sum = arith.addf %a, %one : f64
  %bad = arith.cmpf ole, %sum, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// CHECK-LABEL: func.func @not_below_a_constant
// CHECK: %bad = arith.constant false
func.func @not_below_a_constant(%x : f64) {
  %zero = arith.constant 0.0 : f64
  %more = arith.cmpf ogt, %zero, %x : f64
  %greatest = arith.select %more, %zero, %x : f64
  %bad = arith.cmpf olt, %greatest, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// The least of three, less one of them: at most 0.
// CHECK-LABEL: func.func @less_the_least
// CHECK-COUNT-3: arith.constant false
func.func @less_the_least(%a : f64, %b : f64, %c : f64) {
  %limit = arith.constant 709.782712893384 : f64
  %0 = arith.cmpf olt, %b, %a : f64
  %1 = arith.select %0, %b, %a : f64
  %2 = arith.cmpf olt, %c, %1 : f64
  %least = arith.select %2, %c, %1 : f64
  %da = arith.subf %least, %a : f64
  %bad_a = arith.cmpf ogt, %da, %limit : f64
  array.raise_if %bad_a, "OverflowError", "math range error"
  %db = arith.subf %least, %b : f64
  %bad_b = arith.cmpf ogt, %db, %limit : f64
  array.raise_if %bad_b, "OverflowError", "math range error"
  %dc = arith.subf %least, %c : f64
  %bad_c = arith.cmpf ogt, %dc, %limit : f64
  array.raise_if %bad_c, "OverflowError", "math range error"
  func.return
}

// CHECK-LABEL: func.func @less_a_maximum
// CHECK: %bad = arith.constant false
func.func @less_a_maximum(%a : f32, %b : f32) {
  %limit = arith.constant 88.0 : f32
  %greatest = arith.maximumf %a, %b : f32
  %d = arith.subf %a, %greatest : f32
  %bad = arith.cmpf ogt, %d, %limit : f32
  array.raise_if %bad, "OverflowError", "math range error"
  func.return
}

// If `c` is NaN so is the lesser of `a` and `c`, and the second select takes `b`, which may be any number.
// CHECK-LABEL: func.func @kept_where_the_minimum_forgets_nan
// CHECK: %bad = arith.cmpf ogt
func.func @kept_where_the_minimum_forgets_nan(%a : f64, %b : f64, %c : f64) {
  %limit = arith.constant 709.0 : f64
  %0 = arith.cmpf olt, %a, %c : f64
  %1 = arith.select %0, %a, %c : f64
  %2 = arith.cmpf olt, %1, %b : f64
  %least = arith.select %2, %1, %b : f64
  %d = arith.subf %least, %a : f64
  %bad = arith.cmpf ogt, %d, %limit : f64
  array.raise_if %bad, "OverflowError", "math range error"
  func.return
}

// `x` is at least `y`, or `y` is NaN and `x` any number.
// CHECK-LABEL: func.func @kept_where_the_bound_may_be_nan
// CHECK: %bad = arith.cmpf olt
func.func @kept_where_the_bound_may_be_nan(%x : f64, %z : f64) {
  %zero = arith.constant 0.0 : f64
  %y = math.sqrt %z : f64
  %more = arith.cmpf ogt, %y, %x : f64
  %greatest = arith.select %more, %y, %x : f64
  %bad = arith.cmpf olt, %greatest, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// -0.0 is not below 0, and 1 / -0.0 is.
// CHECK-LABEL: func.func @kept_where_the_divisor_may_be_zero
// CHECK: %bad = arith.cmpf olt
func.func @kept_where_the_divisor_may_be_zero(%x : f64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %root = math.sqrt %x : f64
  %inverse = arith.divf %one, %root : f64
  %bad = arith.cmpf olt, %inverse, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// CHECK-LABEL: func.func @kept_where_nan_satisfies_it
// CHECK: %bad = arith.cmpf ult
func.func @kept_where_nan_satisfies_it(%x : f64) {
  %zero = arith.constant 0.0 : f64
  %square = arith.mulf %x, %x : f64
  %bad = arith.cmpf ult, %square, %zero : f64
  array.raise_if %bad, "ValueError", "not a number"
  func.return
}

// Exponentials may underflow: their sum may be 0.
// CHECK-LABEL: func.func @kept_where_a_sum_may_be_zero
// CHECK: %bad = arith.cmpf ole
func.func @kept_where_a_sum_may_be_zero(%x : f64, %y : f64) {
  %zero = arith.constant 0.0 : f64
  %a = math.exp %x : f64
  %b = math.exp %y : f64
  %sum = arith.addf %a, %b : f64
  %bad = arith.cmpf ole, %sum, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}

// CHECK-LABEL: func.func @kept_where_a_difference_may_have_any_sign
// CHECK: %bad = arith.cmpf olt
func.func @kept_where_a_difference_may_have_any_sign(%x : f64, %y : f64) {
  %zero = arith.constant 0.0 : f64
  %a = arith.mulf %x, %x : f64
  %b = arith.mulf %y, %y : f64
  %difference = arith.subf %a, %b : f64
  %bad = arith.cmpf olt, %difference, %zero : f64
  array.raise_if %bad, "ValueError", "math domain error"
  func.return
}
