// RUN: mutad-opt %s -p print-memory-ssa | filecheck %s

// CHECK-LABEL: @straight_line
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(liveOnEntry)", clobber = "liveOnEntry"}
// CHECK:         memref.store %x, %a[%j] {memory = "1 = MemoryDef(liveOnEntry)"}
// CHECK:         %y = memref.load %a[%i] {memory = "MemoryUse(1)", clobber = "1"}
func.func @straight_line(%a : memref<?xf64>, %i : index, %j : index) {
  %x = memref.load %a[%i] : memref<?xf64>
  memref.store %x, %a[%j] : memref<?xf64>
  %y = memref.load %a[%i] : memref<?xf64>
  func.return
}

// The chain is one for all memory; the walker tells memories and elements apart.
// CHECK-LABEL: @the_walker_passes_other_memory_and_other_elements
// CHECK:         memref.store %v, %a[%c0] {memory = "1 = MemoryDef(liveOnEntry)"}
// CHECK:         memref.store %v, %a[%c1] {memory = "2 = MemoryDef(1)"}
// CHECK:         memref.store %v, %b[%c0] {memory = "3 = MemoryDef(2)"}
// CHECK:         %x = memref.load %a[%c0] {memory = "MemoryUse(3)", clobber = "1"}
func.func @the_walker_passes_other_memory_and_other_elements(%a : memref<?xf64>, %b : memref<?xf64>, %v : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %v, %a[%c0] : memref<?xf64>
  memref.store %v, %a[%c1] : memref<?xf64>
  memref.store %v, %b[%c0] : memref<?xf64>
  %x = memref.load %a[%c0] : memref<?xf64>
  func.return
}

// CHECK-LABEL: @overlapping_arguments_clobber_each_other
// CHECK:         %x = memref.load %a[%c0] {memory = "MemoryUse(1)", clobber = "1"}
func.func @overlapping_arguments_clobber_each_other(%a : memref<?xf64>, %b : memref<?xf64>, %v : f64) attributes {overlaps = [[0 : i64, 1 : i64]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %v, %b[%c1] : memref<?xf64>
  %x = memref.load %a[%c0] : memref<?xf64>
  func.return
}

// A phi at the header; after the loop it is the phi that is current.
// CHECK-LABEL: @a_loop_that_writes_has_a_phi
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(1)", clobber = "1"}
// CHECK:         memref.store %x, %a[%i1] {memory = "2 = MemoryDef(1)"}
// CHECK:         } {memory = "1 = MemoryPhi(liveOnEntry, 2)"}
// CHECK:         %y = memref.load %a[%n] {memory = "MemoryUse(1)", clobber = "1"}
func.func @a_loop_that_writes_has_a_phi(%a : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %x = memref.load %a[%i] : memref<?xf64>
    memref.store %x, %a[%i1] : memref<?xf64>
    array.yield
  }
  %y = memref.load %a[%n] : memref<?xf64>
  func.return
}

// u[i] = u[i+1]: no earlier iteration wrote what is read; liveOnEntry, through the phi.
// CHECK-LABEL: @reading_ahead_sees_what_was_there_on_entry
// CHECK:         %x = memref.load %a[%i1] {memory = "MemoryUse(1)", clobber = "liveOnEntry"}
func.func @reading_ahead_sees_what_was_there_on_entry(%a : memref<?xf64>, %n : index) {
  %c1 = arith.constant 1 : index
  %t = array.loop %i to %n do {
    %i1 = arith.addi %i, %c1 : index
    %x = memref.load %a[%i1] : memref<?xf64>
    memref.store %x, %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @a_loop_that_only_reads_has_no_phi
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(liveOnEntry)", clobber = "liveOnEntry"}
// CHECK-NOT:     MemoryPhi
func.func @a_loop_that_only_reads_has_no_phi(%a : memref<?xf64>, %n : index) {
  %t = array.loop %i to %n do {
    %x = memref.load %a[%i] : memref<?xf64>
    array.yield
  }
  func.return
}

// CHECK-LABEL: @branches_join_in_a_phi
// CHECK:         memref.store %v, %a[%i] {memory = "1 = MemoryDef(liveOnEntry)"}
// CHECK:         {memory = "2 = MemoryPhi(1, liveOnEntry)"}
// CHECK:         %x = memref.load %a[%i] {memory = "MemoryUse(2)", clobber = "2"}
// CHECK:         %y = memref.load %b[%i] {memory = "MemoryUse(2)", clobber = "liveOnEntry"}
func.func @branches_join_in_a_phi(%a : memref<?xf64>, %b : memref<?xf64>, %v : f64, %c : i1, %i : index) {
  scf.if %c {
    memref.store %v, %a[%i] : memref<?xf64>
  }
  %x = memref.load %a[%i] : memref<?xf64>
  %y = memref.load %b[%i] : memref<?xf64>
  func.return
}

// A condition region runs once more than the body: what follows the loop sees its last write.
// CHECK-LABEL: @a_condition_that_writes_is_seen_after_the_loop
// CHECK:         memref.store %v, %a[] {memory = "2 = MemoryDef(1)"}
// CHECK:         } {memory = "1 = MemoryPhi(liveOnEntry, 2)"}
// CHECK:         %x = memref.load %a[] {memory = "MemoryUse(2)", clobber = "2"}
func.func @a_condition_that_writes_is_seen_after_the_loop(%a : memref<f64>, %v : f64, %c : i1) {
  %t = array.loop %i while {
  ^bb0(%ic : index):
    memref.store %v, %a[] : memref<f64>
    array.condition %c
  } do {
    array.yield
  }
  %x = memref.load %a[] : memref<f64>
  func.return
}

// u, v = v, u: what this iteration reads of u, the one before wrote as v.
// CHECK-LABEL: @loop_carried_swap
// CHECK:         memref.store %y, %v[%c0] {memory = "2 = MemoryDef(1)"}
// CHECK:         %x = memref.load %u[%c0] {memory = "MemoryUse(2)", clobber = "1"}
// CHECK:         %z = memref.load %v[%c0] {memory = "MemoryUse(2)", clobber = "2"}
func.func @loop_carried_swap(%u0 : memref<?xf64>, %v0 : memref<?xf64>, %n : index, %y : f64) {
  %c0 = arith.constant 0 : index
  %t, %a, %b = array.loop %k to %n carry(%u = %u0 : memref<?xf64>, %v = %v0 : memref<?xf64>) do {
    memref.store %y, %v[%c0] : memref<?xf64>
    %x = memref.load %u[%c0] : memref<?xf64>
    %z = memref.load %v[%c0] : memref<?xf64>
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return
}

// CHECK-LABEL: @a_branch_that_raises_does_not_join
// CHECK:         memref.store %v, %x[%c0] {memory = "1 = MemoryDef(liveOnEntry)"}
// CHECK:         %y = memref.load %x[%c0] {memory = "MemoryUse(liveOnEntry)", clobber = "liveOnEntry"}
func.func @a_branch_that_raises_does_not_join(%x : memref<?xf64>, %v : f64, %c : i1) {
  %c0 = arith.constant 0 : index
  scf.if %c {
    memref.store %v, %x[%c0] : memref<?xf64>
    array.raise_if %c, "ValueError", "no"
  } {raises}
  %y = memref.load %x[%c0] : memref<?xf64>
  func.return
}
