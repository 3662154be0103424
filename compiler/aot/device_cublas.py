"""`model_cublas`: products of matrices go to the cuBLAS of a handle that the caller has made.

The functions are those of the library that is loaded already, whose handle it is: the program's own, or a
shared one. None is loaded here, so a library needs no cuBLAS to be built, nor to run.
"""

from __future__ import annotations

from .device_words import Launching, strings
from .statuses import DEVICE_ERROR, Statuses

LIBRARIES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
LOADED = 2 | 4
"""RTLD_NOW | RTLD_NOLOAD."""


def cublas_text(name: str, launching: Launching, statuses: Statuses) -> str:
    """The function of the header. `dlsym` of no library looks in the program and what it is linked to."""
    missing = statuses.status(DEVICE_ERROR, f"{name}_cublas: no libcublas is loaded")
    count = len(launching.cublas_functions)
    return f"""
{strings("cublas_names", launching.cublas_functions)}
{strings("cublas_files", LIBRARIES)}

define i32 @{name}_cublas(ptr %device, ptr %handle) nounwind {{
entry:
  %handle.at = getelementptr ptr, ptr %device, i64 {launching.cublas}
  store ptr null, ptr %handle.at
  %none = icmp eq ptr %handle, null
  br i1 %none, label %done, label %look
look:
  %c = phi i64 [ 0, %entry ], [ %c.next, %other ]
  %own = icmp eq i64 %c, 0
  br i1 %own, label %ask, label %open
open:
  %file.number = sub i64 %c, 1
  %file.at = getelementptr ptr, ptr @mutad_library_cublas_files, i64 %file.number
  %file = load ptr, ptr %file.at
  %opened = call ptr @dlopen(ptr %file, i32 {LOADED})
  %absent = icmp eq ptr %opened, null
  br i1 %absent, label %other, label %ask
ask:
  %library = phi ptr [ null, %look ], [ %opened, %open ]
  br label %name
name:
  %k = phi i64 [ 0, %ask ], [ %k.next, %found ]
  %name.at = getelementptr ptr, ptr @mutad_library_cublas_names, i64 %k
  %asked = load ptr, ptr %name.at
  %address = call ptr @dlsym(ptr %library, ptr %asked)
  %gone = icmp eq ptr %address, null
  br i1 %gone, label %other, label %found
found:
  %place = add i64 %k, {launching.cublas + 1}
  %word = getelementptr ptr, ptr %device, i64 %place
  store ptr %address, ptr %word
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, {count}
  br i1 %more, label %name, label %keep
keep:
  store ptr %handle, ptr %handle.at
  br label %done
other:
  %c.next = add i64 %c, 1
  %others = icmp ule i64 %c.next, {len(LIBRARIES)}
  br i1 %others, label %look, label %lost
lost:
  ret i32 {missing}
done:
  ret i32 0
}}
"""
