// RUN: mutad-opt %s -p print-kills | filecheck %s

// LU in place. The multiplier is read back after its store, and the pivot row after its last update:
// whatever the adjoint reads is final, but the two values that the update itself destroys.
// CHECK-LABEL: @lu
// CHECK:         %pivot = memref.load %a[%k, %k] {kill = "read %a[%k, %k]: kept"}
// CHECK:         %old = memref.load %a[%i, %k] {kill = "read %a[%k + %di + 1, %k]: killed by scale"}
// CHECK:         memref.store %l, %a[%i, %k] {{.*}} kill = "write %a[%k + %di + 1, %k]: kept"
// CHECK:         %lik = memref.load %a[%i, %k] {kill = "read %a[%k + %di + 1, %k]: kept"}
// CHECK:         %ukj = memref.load %a[%k, %j] {kill = "read %a[%k, %k + %dj + 1]: kept"}
// CHECK:         %aij = memref.load %a[%i, %j] {kill = "read %a[%k + %di + 1, %k + %dj + 1]: killed by update"}
func.func @lu(%a : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %tk = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %below = arith.subi %n, %k1 : index
    %ti = array.loop %di to %below do {
      %i = arith.addi %k1, %di : index
      %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
      %old = memref.load %a[%i, %k] : memref<?x?xf64>
      %l = arith.divf %old, %pivot : f64
      memref.store %l, %a[%i, %k] {tag = "scale"} : memref<?x?xf64>
      %tj = array.loop %dj to %below do {
        %j = arith.addi %k1, %dj : index
        %lik = memref.load %a[%i, %k] : memref<?x?xf64>
        %ukj = memref.load %a[%k, %j] : memref<?x?xf64>
        %aij = memref.load %a[%i, %j] : memref<?x?xf64>
        %p = arith.mulf %lik, %ukj : f64
        %new = arith.subf %aij, %p : f64
        memref.store %new, %a[%i, %j] {tag = "update"} : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// LU by rows: a[i, k+1:] -= a[i, k] * a[k, k+1:].
// CHECK-LABEL: @lu_by_rows
// CHECK:         %l = memref.load %a[%i, %k] {kill = "read %a[%k + %di + 1, %k]: kept"}
// CHECK:         array.map(%below) {{.*}}kill = "read %a[%k, %k + 1 : %n - %k - 1]: kept,
// CHECK-SAME:      read %a[%k + %di + 1, %k + 1 : %n - %k - 1]: killed by itself,
// CHECK-SAME:      write %a[%k + %di + 1, %k + 1 : %n - %k - 1]: killed by itself"
func.func @lu_by_rows(%a : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %tk = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %below = arith.subi %n, %k1 : index
    %ti = array.loop %di to %below do {
      %i = arith.addi %k1, %di : index
      %l = memref.load %a[%i, %k] : memref<?x?xf64>
      %pivot = array.view %a[%k, %k1] dims [1] extents(%below) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      %row = array.view %a[%i, %k1] dims [1] extents(%below) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%below) ins(%pivot, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%p : f64, %r : f64):
        %m = arith.mulf %l, %p : f64
        %s = arith.subf %r, %m : f64
        array.yield %s : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Cholesky, left looking: rows and columns before j are final.
// CHECK-LABEL: @cholesky
// CHECK:         %x = memref.load %a[%j, %k] {kill = "read %a[%j, %k]: kept"}
// CHECK:         %d = memref.load %a[%j, %j] {kill = "read %a[%j, %j]: killed by root"}
// CHECK:         memref.store %r, %a[%j, %j] {{.*}} kill = "write %a[%j, %j]: kept"
// CHECK:         %y = memref.load %a[%i, %k2] {kill = "read %a[%j + %di + 1, %k2]: kept"}
// CHECK:         %z = memref.load %a[%i, %j] {kill = "read %a[%j + %di + 1, %j]: killed by scale"}
// CHECK:         memref.store %q, %a[%i, %j] {{.*}} kill = "write %a[%j + %di + 1, %j]: kept"
func.func @cholesky(%a : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %tj = array.loop %j to %n do {
    %sum = memref.alloca() : memref<f64>
    %tk = array.loop %k to %j do {
      %x = memref.load %a[%j, %k] : memref<?x?xf64>
      %xx = arith.mulf %x, %x : f64
      memref.store %xx, %sum[] : memref<f64>
      array.yield
    }
    %d = memref.load %a[%j, %j] : memref<?x?xf64>
    %r = math.sqrt %d : f64
    memref.store %r, %a[%j, %j] {tag = "root"} : memref<?x?xf64>
    %j1 = arith.addi %j, %c1 : index
    %below = arith.subi %n, %j1 : index
    %ti = array.loop %di to %below do {
      %i = arith.addi %j1, %di : index
      %tk2 = array.loop %k2 to %j do {
        %y = memref.load %a[%i, %k2] : memref<?x?xf64>
        array.yield
      }
      %z = memref.load %a[%i, %j] : memref<?x?xf64>
      %q = arith.divf %z, %r : f64
      memref.store %q, %a[%i, %j] {tag = "scale"} : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// LDL^T that scales a column inside the update: the unscaled value is needed and killed.
// CHECK-LABEL: @ldlt_scaled_inside_the_update
// CHECK:         %lik = memref.load %a[%i, %k] {kill = "read %a[%k + %di + 1, %k]: killed by scale"}
// CHECK:         %d = memref.load %a[%k, %k] {kill = "read %a[%k, %k]: kept"}
func.func @ldlt_scaled_inside_the_update(%a : memref<?x?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %tk = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %below = arith.subi %n, %k1 : index
    %ti = array.loop %di to %below do {
      %i = arith.addi %k1, %di : index
      %lik = memref.load %a[%i, %k] : memref<?x?xf64>
      %d = memref.load %a[%k, %k] : memref<?x?xf64>
      %q = arith.divf %lik, %d : f64
      memref.store %q, %a[%i, %k] {tag = "scale"} : memref<?x?xf64>
      array.yield
    }
    array.yield
  }
  func.return
}

// Thomas: the right-hand side that back substitution overwrites is killed, the factors are not.
// CHECK-LABEL: @thomas
// CHECK:         %di = memref.load %d[%i] {kill = "read %d[%i]: killed by back"}
// CHECK:         %di1 = memref.load %d[%i1] {kill = "read %d[%i + 1]: killed by forward"}
// CHECK:         memref.store %w, %d[%i1] {{.*}} kill = "write %d[%i + 1]: killed by back"
// CHECK:         %dj = memref.load %d[%j] {kill = "read %d[%n - %b - 1]: killed by back"}
// CHECK:         %dj1 = memref.load %d[%j1] {kill = "read %d[%n - %b]: kept"}
// CHECK:         memref.store %s, %d[%j] {{.*}} kill = "write %d[%n - %b - 1]: kept"
func.func @thomas(%d : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %n1 = arith.subi %n, %c1 : index
  %t = array.loop %i to %n1 do {
    %i1 = arith.addi %i, %c1 : index
    %di = memref.load %d[%i] : memref<?xf64>
    %di1 = memref.load %d[%i1] : memref<?xf64>
    %w = arith.subf %di1, %di : f64
    memref.store %w, %d[%i1] {tag = "forward"} : memref<?xf64>
    array.yield
  }
  %back = array.loop %b to %n1 do {
    %j = arith.subi %n1, %b : index
    %j1 = arith.addi %j, %c1 : index
    %dj = memref.load %d[%j] : memref<?xf64>
    %dj1 = memref.load %d[%j1] : memref<?xf64>
    %s = arith.subf %dj, %dj1 : f64
    memref.store %s, %d[%j] {tag = "back"} : memref<?xf64>
    array.yield
  }
  func.return
}
