// RUN: mutad-opt %s -p print-memory-ssa | filecheck %s

// A call defines memory where it writes some, else it uses it.
// CHECK-LABEL: @calls_that_read_are_uses
// CHECK:         activation.call @f(%a : memref<?xf64>){{.*}}memory = "MemoryUse(liveOnEntry)"
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(liveOnEntry)", clobber = "liveOnEntry"}
func.func @calls_that_read_are_uses(%a : memref<?xf64>, %i : index) {
  %r = activation.call @f(%a : memref<?xf64>) frames 1 reads [0] writes []
  %x = memref.load %a[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @calls_clobber_what_they_write
// CHECK:         activation.call @f(%a, %b {{.*}}memory = "1 = MemoryDef(liveOnEntry)"
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(1)", clobber = "1"}
// CHECK:         %y = memref.load %b[%i] {memory = "MemoryUse(1)", clobber = "liveOnEntry"}
func.func @calls_clobber_what_they_write(%a : memref<?xf64>, %b : memref<?xf64>, %i : index) {
  %r = activation.call @f(%a, %b : memref<?xf64>, memref<?xf64>) frames 1 reads [0, 1] writes [0]
  %x = memref.load %a[%i] : memref<?xf64>
  %y = memref.load %b[%i] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @calls_of_which_nothing_is_known_clobber_everything
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(1)", clobber = "1"}
func.func @calls_of_which_nothing_is_known_clobber_everything(%a : memref<?xf64>, %i : index) {
  %r = activation.call @f(%a : memref<?xf64>) frames 1
  %x = memref.load %a[%i] : memref<?xf64>
  func.return
}
