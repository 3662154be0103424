// RUN: mutad-opt %s -p outline-kernels | filecheck %s

// CHECK-LABEL: func.func @by_tiles
// CHECK:         device.launch @by_tiles_0
func.func @by_tiles(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
  func.return
}

// CHECK-LABEL: func.func @by_rows
// CHECK:         device.launch @by_rows_0
func.func @by_rows(%a : memref<?x?xf64>, %b : memref<?x1xf64>, %c : memref<?x1xf64>) {
  array.matmul %a, %b into %c : memref<?x?xf64>, memref<?x1xf64>, memref<?x1xf64>
  func.return
}

// CHECK-LABEL: func.func @by_elements
// CHECK:         device.launch @by_elements_0
func.func @by_elements(%a : memref<?x1xf64>, %b : memref<1x?xf64>, %c : memref<?x?xf64>) {
  array.matmul %a, %b into %c : memref<?x1xf64>, memref<1x?xf64>, memref<?x?xf64>
  func.return
}

// Two matrices meet by tiles in shared memory, between barriers; products and sums are contracted.
// CHECK-LABEL: func.func private @by_tiles_0
// CHECK-COUNT-2: memref.alloca() : memref<1040xf64, 3 : i64>
// CHECK:         array.loop
// CHECK:           device.barrier
// CHECK:           array.loop
// CHECK:             arith.mulf %{{.*}}, %{{.*}} fastmath<contract>
// CHECK:             arith.addf %{{.*}}, %{{.*}} fastmath<contract>
// CHECK:           device.barrier
// CHECK:         %[[OLD:.*]] = memref.load %c[
// CHECK:         arith.addf %[[OLD]]
// CHECK:         memref.store %{{.*}}, %c[

// Threads that share a row of a matrix meet in shared memory, at barriers that all come to.
// CHECK-LABEL: func.func private @by_rows_0
// CHECK:         memref.alloca() : memref<256xf64, 3 : i64>
// CHECK:         scf.if
// CHECK:           array.loop
// CHECK-NOT:         device.barrier
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<256xf64, 3 : i64>
// CHECK-COUNT-5: device.barrier
// CHECK-NOT:     device.barrier
// CHECK:         memref.store %{{.*}}, %c[

// A column and a row have a thread for each element.
// CHECK-LABEL: func.func private @by_elements_0
// CHECK-NOT:     device.barrier
// CHECK:         memref.store %{{.*}}, %c[
