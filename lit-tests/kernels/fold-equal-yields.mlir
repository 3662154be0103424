// RUN: mutad-opt %s -p fold-equal-yields | filecheck %s

// CHECK-LABEL: func.func @both
// CHECK:         func.return %x, %r
func.func @both(%c : i1, %x : f64, %y : f64) -> (f64, f64) {
  %q, %r = scf.if %c -> (f64, f64) {
    scf.yield %x, %x : f64, f64
  } else {
    scf.yield %x, %y : f64, f64
  }
  func.return %q, %r : f64, f64
}

// CHECK-LABEL: func.func @kept_where_a_side_computes_it
// CHECK:         func.return %q
func.func @kept_where_a_side_computes_it(%c : i1, %x : f64) -> f64 {
  %q = scf.if %c -> (f64) {
    %y = arith.addf %x, %x : f64
    scf.yield %y : f64
  } else {
    %z = arith.addf %x, %x : f64
    scf.yield %z : f64
  }
  func.return %q : f64
}
