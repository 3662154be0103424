// RUN: mutad-opt %s -p print-plan | filecheck %s
// RUN: mutad-opt %s -p print-plan --no-locs | filecheck %s --check-prefix HIDDEN

// What has a location keeps it, and the plan names its line. What has none has none.
// CHECK:       #model_3_5 = loc("model.py":3:5)
// CHECK-NEXT:  #model_4_9 = loc("model.py":4:9)
// CHECK-LABEL: @squared_in_place
// CHECK:         %a = memref.load %x[%i] {plan = ["save %a: killed by memref.store of line 4, needed by arith.mulf"]} : memref<?xf64> loc(#model_3_5)
// CHECK-NEXT:    %b = arith.mulf %a, %a : f64{{$}}
// CHECK-NEXT:    memref.store %b, %x[%i] : memref<?xf64> loc(#model_4_9)

// HIDDEN-NOT: loc
// HIDDEN:     killed by memref.store of line 4
// HIDDEN-NOT: loc
#store = loc("model.py":4:9)
func.func @squared_in_place(%x : memref<?xf64>, %n : index) {
  %trips = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64> loc("model.py":3:5)
    %b = arith.mulf %a, %a : f64
    memref.store %b, %x[%i] : memref<?xf64> loc(#store)
    array.yield
  }
  func.return
}
