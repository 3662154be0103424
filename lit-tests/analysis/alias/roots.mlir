// RUN: mutad-opt %s -p print-alias | filecheck %s

// CHECK-LABEL: @a_view_has_the_root_of_its_source
// CHECK:         %w = array.view {{.*}} {alias = "%w: %a"}
func.func @a_view_has_the_root_of_its_source(%a : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %v = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %w = array.view %v[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64, strided<[1]>> -> memref<?xf64, strided<[1]>>
  func.return
}

// CHECK-LABEL: @a_swap_mixes_the_two_that_it_carries
// CHECK:         %x = memref.load %u[%c0] {alias = "%u: %u0 | %v0"}
// CHECK:         {alias = "%a: %u0 | %v0, %b: %u0 | %v0, %c: %w0, {{.*}}, %w: %w0"}
func.func @a_swap_mixes_the_two_that_it_carries(%u0 : memref<?xf64>, %w0 : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %v0 = array.alloc(%n) : memref<?xf64>
  %t, %a, %b, %c = array.loop %k to %n carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>, %w = %w0 : memref<?xf64>) do {
    %x = memref.load %u[%c0] : memref<?xf64>
    array.yield %v, %u, %w : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @a_swap_inside_a_swap
// CHECK:         %x = memref.load %p[%c0] {alias = "%p: %u0 | %v0 | %w0"}
func.func @a_swap_inside_a_swap(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %w0 : memref<?xf64>, %n : index) {
  %c0 = arith.constant 0 : index
  %t, %a, %b = array.loop %k to %n carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    %s, %c, %d = array.loop %l to %n carry(%p = %u : memref<?xf64>, %q = %w0 : memref<?xf64>) do {
      %x = memref.load %p[%c0] : memref<?xf64>
      array.yield %q, %p : memref<?xf64>, memref<?xf64>
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @an_if_chooses
// CHECK:         %x = memref.load %chosen[%c0] {alias = "%chosen: %a | %b"}
func.func @an_if_chooses(%a : memref<?xf64>, %b : memref<?xf64>, %c : i1) {
  %c0 = arith.constant 0 : index
  %chosen = scf.if %c -> (memref<?xf64>) {
    scf.yield %a : memref<?xf64>
  } else {
    scf.yield %b : memref<?xf64>
  }
  %x = memref.load %chosen[%c0] : memref<?xf64>
  func.return
}
