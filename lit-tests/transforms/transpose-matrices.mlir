// RUN: mutad-opt %s -p transpose-matrices | filecheck %s

// The loop over k goes through all columns, that over i comes back to some: a copy lies by columns meanwhile.
// CHECK-LABEL: @columns_that_are_stored_to
// CHECK:         [[whole:%[0-9]+]] = arith.select
// CHECK:         %a_columns = array.alloc(%{{.*}}, [[whole]]) : memref<?x?xf64>
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns{{.*}} -> memref<?x?xf64, strided<[?, 1]>>
// CHECK:         array.map({{.*}}) ins({{.*}} : memref<?x?xf64, strided<[1, ?]>>) outs([[own]]
// CHECK:         array.loop %k to %n do {
// CHECK-NEXT:      %p = array.view %a_columns[%k, %c0] dims [1] {{.*}} -> memref<?xf64, strided<[1]>>
// CHECK:           array.loop %i to
// CHECK-NEXT:        %q = array.view %a_columns[%i, %c0] dims [1]
// CHECK:         array.map({{.*}}) ins({{.*}} : memref<?x?xf64, strided<[1, ?]>>) outs(%a :
func.func @columns_that_are_stored_to(%a : memref<?x?xf64>, %r : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %y, %r : f64
        %less = arith.subf %x, %z : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Nobody stores to b: there is no way back. Columns may come in the other order, and begin anywhere.
// CHECK-LABEL: @columns_that_are_read
// CHECK:         [[own:%[0-9]+]] = array.view %b_columns
// CHECK:         array.map({{.*}}) outs([[own]]
// CHECK:         array.view %b_columns[%{{.*}}, %c1] dims [1]
// CHECK-NOT:     outs(%b :
// CHECK:         func.return
func.func @columns_that_are_read(%b : memref<?x?xf64>, %s : memref<?xf64>, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %s, %c0 : memref<?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %last = arith.subi %n, %c1 : index
  %trips = array.loop %k to %n do {
    %down = arith.subi %last, %k : index
    %p = array.view %b[%c1, %down] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %steps do {
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%s : memref<?xf64>) kinds ["add"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// A copy of the whole reads the columns where they lie now.
// CHECK-LABEL: @the_whole_is_copied_now_and_then
// CHECK:         %a_columns = array.alloc(
// CHECK:         [[standing:%[0-9]+]] = array.view %a_columns[{{.*}} dims [1, 0]
// CHECK:         array.loop %k to %n do {
// CHECK:           array.map({{.*}}) ins([[standing]] : memref<?x?xf64, strided<[1, ?]>>) outs(%b : memref<?x?xf64>)
// CHECK:           array.view %a_columns[%k, %c0] dims [1]
func.func @the_whole_is_copied_now_and_then(%a : memref<?x?xf64>, %b : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%b : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.addf %x, %y : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// The whole is stored to: what is copied back behind the nest would be old.
// CHECK-LABEL: @kept_when_the_whole_is_stored_to
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_the_whole_is_stored_to(%a : memref<?x?xf64>, %b : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %z = arith.addf %x, %x : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// CHECK-LABEL: @kept_when_the_whole_is_changed_in_place
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_the_whole_is_changed_in_place(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %d = arith.addf %e, %e : f64
      array.yield %d : f64
    }
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %z = arith.addf %x, %x : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Each column is seen once: a copy is as much work.
// CHECK-LABEL: @kept_when_no_loop_comes_back
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_no_loop_comes_back(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
    ^bb0(%x : f64):
      %y = arith.addf %x, %x : f64
      array.yield %y : f64
    }
    array.yield
  }
  func.return
}

// The matrix may have many more columns than the nest goes through.
// CHECK-LABEL: @kept_when_only_some_columns_are_gone_through
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_only_some_columns_are_gone_through(%a : memref<?x?xf64>, %n : index, %steps : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %steps do {
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.addf %x, %x : f64
        array.yield %y : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// An element of a row would be read from where it no longer is.
// CHECK-LABEL: @kept_when_an_element_is_read
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_an_element_is_read(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %r = memref.load %a[%c0, %i] : memref<?x?xf64>
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.addf %x, %r : f64
        array.yield %y : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// b may be a.
// CHECK-LABEL: @kept_when_arguments_may_alias
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_arguments_may_alias(%a : memref<?x?xf64>, %b : memref<?xf64>) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      array.map(%m) ins(%p, %b : memref<?xf64, strided<[?]>>, memref<?xf64>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.addf %x, %y : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Whoever catches the exception sees the columns that were stored to.
// CHECK-LABEL: @kept_when_an_iteration_may_raise
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_an_iteration_may_raise(%a : memref<?x?xf64>, %wrong : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.addf %x, %x : f64
        array.yield %y : f64
      }
      array.raise_if %wrong, "ValueError", "no"
      array.yield
    }
    array.yield
  }
  func.return
}

// Other threads store to columns of the matrix meanwhile.
// CHECK-LABEL: @kept_when_the_nest_is_one_thread_s
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_when_the_nest_is_one_thread_s(%a : memref<?x?xf64>, %half : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %t to %n do {
    %mine = array.view %a[%half, %t] dims [0] extents(%half) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %k to %n do {
      %p = array.view %a[%c0, %k] dims [0] extents(%half) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      %trips_2 = array.loop %i to %k do {
        array.map(%half) ins(%p, %mine : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%mine : memref<?xf64, strided<[?]>>) kinds ["store"] {
        ^bb0(%x : f64, %y : f64):
          %z = arith.addf %x, %y : f64
          array.yield %z : f64
        }
        array.yield
      }
      array.yield
    }
    array.yield
  } {claimed}
  func.return
}

// What the function has made, and others go through once, is made by columns: there are no copies.
// CHECK-LABEL: @lies_by_columns_where_it_is_made
// CHECK:         [[whole:%[0-9]+]] = arith.select
// CHECK:         %a_columns = array.alloc(%n, [[whole]]) : memref<?x?xf64>
// CHECK:         %a = array.view %a_columns[%{{.*}}, %{{.*}}] dims [1, 0] extents(%m, %n)
// CHECK-NEXT:    array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64, strided<[1, ?]>>)
// CHECK:         array.loop %k
// CHECK-NEXT:      %p = array.view %a[%c0, %k] dims [0] {{.*}} -> memref<?xf64, strided<[1]>>
// CHECK:         array.map(%m, %n) ins(%a : memref<?x?xf64, strided<[1, ?]>>) outs(%b : memref<?x?xf64>)
// CHECK-NOT:     array.map
// CHECK:         func.return
func.func @lies_by_columns_where_it_is_made(%b : memref<?x?xf64>, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %b, %c0 : memref<?x?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%b : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// The sum keeps its order.
// CHECK-LABEL: @copied_where_all_of_it_is_summed
// CHECK:         %a = array.alloc(%m, %n)
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns
// CHECK:         array.map({{.*}}) outs([[own]] :
// CHECK:         array.map({{.*}}) outs(%a :
// CHECK:         func.return
func.func @copied_where_all_of_it_is_summed(%b : memref<?x?xf64>, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %b, %c0 : memref<?x?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  %sum = array.view %s[] dims [-1, -1] extents(%m, %n) steps(%c0, %c0) : memref<f64> -> memref<?x?xf64, strided<[0, 0]>>
  array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%sum : memref<?x?xf64, strided<[0, 0]>>) kinds ["add"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// The caller gets an array by rows.
// CHECK-LABEL: @copied_where_it_is_returned
// CHECK:         %a = array.alloc(%m, %n)
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns
// CHECK:         array.map({{.*}}) outs([[own]] :
// CHECK:         array.map({{.*}}) outs(%a :
// CHECK:         func.return
func.func @copied_where_it_is_returned(%b : memref<?x?xf64>, %s : memref<f64>) -> memref<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %b, %c0 : memref<?x?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  func.return %a : memref<?x?xf64>
}

// Rows would be strided.
// CHECK-LABEL: @copied_where_a_loop_goes_through_rows
// CHECK:         %a = array.alloc(%m, %n)
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns
// CHECK:         array.map({{.*}}) outs([[own]] :
// CHECK:         array.map({{.*}}) outs(%a :
// CHECK:         func.return
func.func @copied_where_a_loop_goes_through_rows(%b : memref<?x?xf64>, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %b, %c0 : memref<?x?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  %trips_2 = array.loop %j to %m do {
    %row = array.view %a[%j, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
    array.map(%n) ins(%row : memref<?xf64, strided<[1]>>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
    ^bb0(%e : f64):
      array.yield %e : f64
    }
    array.yield
  }
  func.return
}

// Each of them would be as slow as a copy.
// CHECK-LABEL: @copied_where_many_maps_go_through_it
// CHECK:         %a = array.alloc(%m, %n)
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns
// CHECK:         array.map({{.*}}) outs([[own]] :
// CHECK:         array.map({{.*}}) outs(%a :
// CHECK:         func.return
func.func @copied_where_many_maps_go_through_it(%b : memref<?x?xf64>, %s : memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %b, %c0 : memref<?x?xf64>
  %n = memref.dim %b, %c1 : memref<?x?xf64>
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) ins(%b : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %trips_1 = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%b : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  array.map(%m, %n) ins(%a : memref<?x?xf64>) outs(%b : memref<?x?xf64>) kinds ["store"] {
  ^bb0(%e : f64):
    array.yield %e : f64
  }
  func.return
}

// Two loops go through all columns, four at a time.
// CHECK-LABEL: @columns_in_strips
// CHECK:         %a_columns = array.alloc(
// CHECK:         array.loop %b to
// CHECK:             array.view %a_columns[%k, %c0] dims [1]
// CHECK:         func.return
func.func @columns_in_strips(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %more = arith.addi %n, %c3 : index
  %strips = arith.shrui %more, %c2 : index
  %trips = array.loop %b to %strips do {
    %done = arith.muli %b, %c4 : index
    %left = arith.subi %n, %done : index
    %some = arith.minsi %left, %c4 : index
    %trips_1 = array.loop %j to %some do {
      %k = arith.addi %done, %j : index
      %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      %trips_2 = array.loop %i to %k do {
        %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
        array.map(%m) ins(%q : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
        ^bb0(%x : f64):
          array.yield %x : f64
        }
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Strips of some of the columns.
// CHECK-LABEL: @kept_where_strips_leave_columns_out
// CHECK-NOT:     array.alloc
// CHECK:         func.return
func.func @kept_where_strips_leave_columns_out(%a : memref<?x?xf64>, %few : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %trips = array.loop %b to %few do {
    %done = arith.muli %b, %c4 : index
    %left = arith.subi %few, %done : index
    %some = arith.minsi %left, %c4 : index
    %trips_1 = array.loop %j to %some do {
      %k = arith.addi %done, %j : index
      %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      %trips_2 = array.loop %i to %k do {
        %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
        array.map(%m) ins(%q : memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
        ^bb0(%x : f64):
          array.yield %x : f64
        }
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// Nothing has touched the new matrix but its fill, and all of it is copied back: the copy is filled instead.
// CHECK-LABEL: @a_copy_is_filled_as_the_matrix_was
// CHECK:         %a = array.alloc(%m, %n)
// CHECK-NOT:     array.map
// CHECK:         [[own:%[0-9]+]] = array.view %a_columns
// CHECK-NEXT:    array.map({{.*}}) outs([[own]] : {{.*}}) kinds ["store"] {
// CHECK-NEXT:      array.yield %zero
// CHECK:         array.loop %k to
// CHECK:         array.map({{.*}}) outs(%a : memref<?x?xf64>)
func.func @a_copy_is_filled_as_the_matrix_was(%m : index, %n : index, %zero : f64) -> memref<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) outs(%a : memref<?x?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  func.return %a : memref<?x?xf64>
}

// A number is stored to it behind the fill: the copy has to have that.
// CHECK-LABEL: @copied_where_more_than_a_fill_is_there
// CHECK:         array.map(%m, %n) outs(%a :
// CHECK:         array.map({{.*}}) ins({{.*}} : memref<?x?xf64, strided<[1, ?]>>) outs({{.*}} : memref<?x?xf64, strided<[?, 1]>>)
// CHECK:         array.loop %k to
func.func @copied_where_more_than_a_fill_is_there(%m : index, %n : index, %zero : f64) -> memref<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) outs(%a : memref<?x?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  memref.store %zero, %a[%c0, %c1] : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  func.return %a : memref<?x?xf64>
}

// The nest only reads: others read what the matrix was filled with.
// CHECK-LABEL: @copied_where_the_fill_is_read_later
// CHECK:         array.map(%m, %n) outs(%a :
// CHECK:         array.map({{.*}}) ins({{.*}} : memref<?x?xf64, strided<[1, ?]>>) outs({{.*}} : memref<?x?xf64, strided<[?, 1]>>)
// CHECK:         array.loop %k to
func.func @copied_where_the_fill_is_read_later(%m : index, %n : index, %zero : f64, %row : memref<?xf64>) -> memref<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = array.alloc(%m, %n) : memref<?x?xf64>
  array.map(%m, %n) outs(%a : memref<?x?xf64>) kinds ["store"] {
    array.yield %zero : f64
  }
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%row : memref<?xf64>) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y : f64
        array.yield %z : f64
      }
      array.yield
    }
    array.yield
  }
  func.return %a : memref<?x?xf64>
}

// The second nest reads what the first one has left in its copy.
// CHECK-LABEL: @a_nest_goes_on_with_the_copy_of_the_one_before
// CHECK:         %a_columns = array.alloc
// CHECK:         array.loop %k to
// CHECK:         array.map({{.*}}) outs(%a : memref<?x?xf64>)
// CHECK-NOT:     array.alloc
// CHECK:         array.loop %k2 to
// CHECK-NEXT:      array.view %a_columns[%k2, %c0] dims [1]
func.func @a_nest_goes_on_with_the_copy_of_the_one_before(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  %trips2 = array.loop %k2 to %n do {
    %p2 = array.view %a[%c0, %k2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner2 = array.loop %i2 to %k2 do {
      %q2 = array.view %a[%c0, %i2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p2, %q2 : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p2 : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x2 : f64, %y2 : f64):
        %less2 = arith.subf %x2, %y2 : f64
        array.yield %less2 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// An element is stored to in between.
// CHECK-LABEL: @copied_again_where_the_matrix_was_stored_to
// CHECK:         array.alloc
// CHECK:         memref.store
// CHECK:         array.alloc
// CHECK:         array.loop %k2 to
func.func @copied_again_where_the_matrix_was_stored_to(%a : memref<?x?xf64>, %e : f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  memref.store %e, %a[%c0, %c1] : memref<?x?xf64>
  %trips2 = array.loop %k2 to %n do {
    %p2 = array.view %a[%c0, %k2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner2 = array.loop %i2 to %k2 do {
      %q2 = array.view %a[%c0, %i2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p2, %q2 : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p2 : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x2 : f64, %y2 : f64):
        %less2 = arith.subf %x2, %y2 : f64
        array.yield %less2 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}

// So is one of an argument that may be the same array.
// CHECK-LABEL: @copied_again_where_an_argument_may_be_the_matrix
// CHECK:         array.alloc
// CHECK:         memref.store
// CHECK:         array.alloc
// CHECK:         array.loop %k2 to
func.func @copied_again_where_an_argument_may_be_the_matrix(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %e : f64) attributes {overlaps = [[0, 1]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf64>
  %n = memref.dim %a, %c1 : memref<?x?xf64>
  %trips = array.loop %k to %n do {
    %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner = array.loop %i to %k do {
      %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x : f64, %y : f64):
        %less = arith.subf %x, %y : f64
        array.yield %less : f64
      }
      array.yield
    }
    array.yield
  }
  memref.store %e, %b[%c0, %c1] : memref<?x?xf64>
  %trips2 = array.loop %k2 to %n do {
    %p2 = array.view %a[%c0, %k2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
    %inner2 = array.loop %i2 to %k2 do {
      %q2 = array.view %a[%c0, %i2] dims [0] extents(%m) steps(%c1) : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p2, %q2 : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>) outs(%p2 : memref<?xf64, strided<[?]>>) kinds ["store"] {
      ^bb0(%x2 : f64, %y2 : f64):
        %less2 = arith.subf %x2, %y2 : f64
        array.yield %less2 : f64
      }
      array.yield
    }
    array.yield
  }
  func.return
}
