// RUN: mutad-opt %s -p "print-activity{wrt=x}" | filecheck %s

// CHECK-LABEL: @through_what_a_call_reads_and_writes
// CHECK:         %t = array.alloc(%n) {activity = "%t: active"}
// CHECK:         %z = memref.load %t[%c0] {activity = "%z: active"}
func.func @through_what_a_call_reads_and_writes(%x : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  foreign.call "c" "f" of "constant:0"(%x, %t : memref<?xf64>, memref<?xf64>) types ["ptr", "ptr"] effects ["read", "write"] returns "" trailing 0
  %z = memref.load %t[%c0] : memref<?xf64>
  func.return %z : f64
}

// CHECK-LABEL: @not_through_what_a_call_does_not_read
// CHECK:         %t = array.alloc(%n) {activity = "%t: useful"}
func.func @not_through_what_a_call_does_not_read(%x : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %t = array.alloc(%n) : memref<?xf64>
  foreign.call "c" "f" of "constant:0"(%x, %t : memref<?xf64>, memref<?xf64>) types ["ptr", "ptr"] effects ["none", "write"] returns "" trailing 0
  %z = memref.load %t[%c0] : memref<?xf64>
  func.return %z : f64
}

// CHECK-LABEL: @stopped
// CHECK:         %y = foreign.stop_gradient %x {activity = "%y: useful"}
func.func @stopped(%x : f64) -> f64 {
  %y = foreign.stop_gradient %x : f64
  func.return %y : f64
}
