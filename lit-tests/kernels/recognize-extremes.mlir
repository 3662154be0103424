// RUN: mutad-opt %s -p recognize-extremes | filecheck %s

// CHECK-LABEL: func.func @integers
// CHECK:         arith.maxsi %a, %b : i64
// CHECK:         arith.minsi %b, %a : i64
// CHECK:         arith.minsi %a, %b : i64
func.func @integers(%a : i64, %b : i64) -> (i64, i64, i64) {
  %c = arith.cmpi sgt, %a, %b : i64
  %r = arith.select %c, %a, %b : i64
  %s = arith.select %c, %b, %a : i64
  %d = arith.cmpi sle, %a, %b : i64
  %t = arith.select %d, %a, %b : i64
  func.return %r, %s, %t : i64, i64, i64
}

// CHECK-LABEL: func.func @kept_of_floats_and_of_other_values
// CHECK-NOT:     arith.max
// CHECK-NOT:     arith.min
// CHECK:         func.return
func.func @kept_of_floats_and_of_other_values(%a : f64, %b : f64, %i : i64, %j : i64, %k : i64) -> (f64, i64, i64) {
  %c = arith.cmpf ogt, %a, %b : f64
  %r = arith.select %c, %a, %b : f64
  %d = arith.cmpi sgt, %i, %j : i64
  %s = arith.select %d, %i, %k : i64
  %e = arith.cmpi ugt, %i, %j : i64
  %t = arith.select %e, %i, %j : i64
  func.return %r, %s, %t : f64, i64, i64
}
