// RUN: mutad-opt %s -p forward-stores | filecheck %s

// CHECK-LABEL: @kept_where_a_call_only_reads
// CHECK-NOT:     memref.load
// CHECK:         func.return %v
func.func @kept_where_a_call_only_reads(%a : memref<?xf64>, %v : f64, %i : index) -> f64 {
  memref.store %v, %a[%i] : memref<?xf64>
  %r = activation.call @f(%a : memref<?xf64>) frames 1 reads [0] writes []
  %x = memref.load %a[%i] : memref<?xf64>
  func.return %x : f64
}

// CHECK-LABEL: @read_again_where_a_call_writes
// CHECK:         %x = memref.load
// CHECK:         func.return %x
func.func @read_again_where_a_call_writes(%a : memref<?xf64>, %v : f64, %i : index) -> f64 {
  memref.store %v, %a[%i] : memref<?xf64>
  %r = activation.call @f(%a : memref<?xf64>) frames 1 reads [0] writes [0]
  %x = memref.load %a[%i] : memref<?xf64>
  func.return %x : f64
}
