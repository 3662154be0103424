"""What a library that launches kernels has beside its functions, as LLVM text.

`model_open` finds NVIDIA's driver (`dlopen`, and `cuGetProcAddress` for each function), and loads the kernels
into the current context: their machine code, or where the device is of another kind their PTX. What it finds
are words of the caller's, so the library has no state::

    struct model_device: module, context, a zero of the device, the driver's functions, cuBLAS, the kernels

A call copies them to words of its thread, where `launching` (the text of the runtime) looks for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.support.device import AREA
from .device_cublas import cublas_text
from .device_words import CONTEXT, FUNCTIONS, MODULE, NOTHING, Launching, constant, field, strings
from .driver_errors import refusals
from .statuses import DEVICE_ERROR, Statuses

DRIVER = "libcuda.so.1"
VERSION = 12000
"""Of CUDA: the functions are those of this version."""
NEVER = 1 << 40
"""How many graphs make it worth to replay a loop on a stream that cannot be captured."""
UNIT, LEAST = 32, 4
"""As in a Python process: periods of a loop in one graph, and from how many graphs on it is replayed."""


def support_text(
    name: str, launching: Launching, images: Sequence[bytes], kernels: Sequence[str], s: Statuses
) -> str:
    """The text; what is no function of the header is to be made internal."""
    state, end = "mutad_device_state", "zeroinitializer"
    own = launching.text.replace(
        f"@{state} = external global i64",
        f"@{state} = internal thread_local global [{launching.words['WORDS']} x i64] {end}",
    )
    own = own.replace("@mutad_libc_malloc", "@malloc").replace("@mutad_libc_free", "@free")
    refused = s.status(DEVICE_ERROR, f"{name}: cuBLAS refuses")
    parts = [own, launching.products, AREA, CALLS, of_calls(launching, refused), refusals(name, s)]
    parts += [opening(name, launching, s), cublas_text(name, launching, s)]
    parts += [strings("names", launching.driver), strings("kernel_names", kernels)]
    parts += [constant(f"mutad_library_image{k}", image) for k, image in enumerate(images)]
    places = ", ".join(f"ptr @mutad_library_image{k}" for k in range(len(images)))
    parts.append(f"@mutad_library_images = internal constant [{len(images)} x ptr] [{places}]")
    counts = {"images": len(images), "kernels": len(kernels), "functions": len(launching.driver)}
    parts += [f"@mutad_library_{k}_count = internal constant i64 {n}" for k, n in counts.items()]
    return without_doubles("\n".join(parts))


def without_doubles(text: str) -> str:
    """Each declaration once."""
    known, found = set[str](), list[str]()
    for line in text.splitlines():
        if not (line.startswith("declare ") and line in known):
            found.append(line)
        known.add(line)
    return "\n".join(found) + "\n"


CALLS = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)

define ptr @mutad_library_malloc(ptr %nothing, i64 %bytes) {
  %block = call ptr @malloc(i64 %bytes)
  ret ptr %block
}
define void @mutad_library_free(ptr %nothing, ptr %block, i64 %bytes) {
  call void @free(ptr %block)
  ret void
}
@mutad_library_allocator = constant [3 x ptr] [ptr @mutad_library_malloc, ptr @mutad_library_free, ptr null]
"""


def of_calls(launching: Launching, no_products: int) -> str:
    """What the entry of a function calls before and behind its kernel; a status where cuBLAS refuses."""
    w, driver = launching.words, launching.driver
    count = len(launching.functions)

    def put(word: str, value: str) -> str:
        name = word.lower()
        return f"""  %{name}.to = getelementptr i64, ptr @mutad_device_state, i64 {w[word]}
  store i64 {value}, ptr %{name}.to
"""

    def function(name: str, called: str, of: str = "%device") -> str:
        return field(FUNCTIONS, driver.index(name), called, of)

    def library(name: str, called: str) -> str:
        return field(launching.cublas + 1, launching.cublas_functions.index(name), called)

    gemms = "".join(
        f"""{library(one, f"gemm{k}")}
  %gemm{k}.to = getelementptr i64, ptr @mutad_device_state, i64 {w["TABLE"] + count + k}
  store ptr %gemm{k}, ptr %gemm{k}.to
"""
        for k, one in enumerate(launching.gemms)
    )
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @mutad_library_begin(ptr %device, ptr %stream, ptr %before, ptr %kernels, i64 %first,
                                i64 %count) {{
  %working = alloca ptr
  call void @llvm.memset.p0.i64(ptr @mutad_device_state, i8 0, i64 {8 * w["TABLE"]}, i1 false)
  %table = getelementptr i64, ptr @mutad_device_state, i64 {w["TABLE"]}
  %functions = getelementptr ptr, ptr %device, i64 {FUNCTIONS}
  call void @llvm.memcpy.p0.p0.i64(ptr %table, ptr %functions, i64 {8 * count}, i1 false)
  %own = getelementptr ptr, ptr %device, i64 %first
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %kernels, ptr %own, i64 %bytes, i1 false)
{field(0, CONTEXT, "context")}
  %wide.context = ptrtoint ptr %context to i64
  %wide.stream = ptrtoint ptr %stream to i64
  %legacy = icmp ule i64 %wide.stream, 1
  %least.graphs = select i1 %legacy, i64 {NEVER}, i64 {LEAST}
{put("STREAM", "%wide.stream")}{put("CONTEXT", "%wide.context")}{put("UNIT", str(UNIT))}{
        put("LEAST", "%least.graphs")
    }{function("cuCtxGetCurrent", "get")}
  store ptr null, ptr %before
  %asked = call i32 %get(ptr %before)
  %unknown = icmp ne i32 %asked, 0
  br i1 %unknown, label %refused, label %compare
compare:
  %now = load ptr, ptr %before
  %same = icmp eq ptr %now, %context
  br i1 %same, label %good, label %enter
enter:
{function("cuCtxSetCurrent", "set")}
  %entered = call i32 %set(ptr %context)
  %failed = icmp ne i32 %entered, 0
  br i1 %failed, label %refused, label %good
good:
{field(0, launching.cublas, "handle")}
  %no.cublas = icmp eq ptr %handle, null
  br i1 %no.cublas, label %begun, label %multiply
multiply:
{library("cublasGetStream_v2", "stream.of")}{library("cublasSetStream_v2", "to.stream")}
  store ptr null, ptr %working
  %told = call i32 %stream.of(ptr %handle, ptr %working)
  %stream.now = load ptr, ptr %working
  %is.there = icmp eq ptr %stream.now, %stream
  %well.told = icmp eq i32 %told, 0
  %stays = and i1 %is.there, %well.told
  br i1 %stays, label %hand.over, label %move
move:
  %moved = call i32 %to.stream(ptr %handle, ptr %stream)
  %stuck = icmp ne i32 %moved, 0
  br i1 %stuck, label %no.products, label %hand.over
hand.over:
  %wide.handle = ptrtoint ptr %handle to i64
{put("HANDLE", "%wide.handle")}{gemms}
  br label %begun
begun:
  ret i32 0
no.products:
  call void @mutad_library_leave(ptr %before)
  ret i32 {no_products}
refused:
  %code = phi i32 [ %asked, %0 ], [ %entered, %enter ]
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
}}

define void @mutad_library_leave(ptr %before) {{
  call void @mutad_device_collect()
  %context.at = getelementptr ptr, ptr @mutad_device_state, i64 {w["CONTEXT"]}
  %context = load ptr, ptr %context.at
  %then = load ptr, ptr %before
  %same = icmp eq ptr %then, %context
  br i1 %same, label %done, label %back
back:
{field(w["TABLE"], launching.functions.index("cuCtxSetCurrent"), "set", "@mutad_device_state")}
  %left = call i32 %set(ptr %then)
  br label %done
done:
  ret void
}}

define i32 @mutad_library_refusal(i32 %otherwise) {{
  %error.at = getelementptr i64, ptr @mutad_device_state, i64 {w["ERROR"]}
  %error = load i64, ptr %error.at
  %none = icmp eq i64 %error, 0
  br i1 %none, label %other, label %known
known:
  %place.at = getelementptr i64, ptr @mutad_device_state, i64 {w["PLACE"]}
  %place = load i64, ptr %place.at
  %by.cublas = icmp uge i64 %place, {count}
  br i1 %by.cublas, label %cublas, label %driver
cublas:
  ret i32 {no_products}
driver:
  %code = trunc i64 %error to i32
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
other:
  ret i32 %otherwise
}}

; Zeros in an array: at once where it is in C's order, else element by element.
define i32 @mutad_library_clear(ptr %data, ptr %shape, i64 %rank, i64 %size) {{
entry:
  %zero = alloca i64
  store i64 0, ptr %zero
  br label %axis
axis:
  %left = phi i64 [ %rank, %entry ], [ %d, %on ]
  %total = phi i64 [ 1, %entry ], [ %more, %on ]
  %dense = phi i1 [ true, %entry ], [ %still, %on ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %counted, label %on
on:
  %d = sub i64 %left, 1
  %extent.at = getelementptr i64, ptr %shape, i64 %d
  %extent = load i64, ptr %extent.at
  %s = add i64 %rank, %d
  %stride.at = getelementptr i64, ptr %shape, i64 %s
  %stride = load i64, ptr %stride.at
  %fits = icmp eq i64 %stride, %total
  %single = icmp eq i64 %extent, 1
  %beside = or i1 %fits, %single
  %still = and i1 %dense, %beside
  %more = mul i64 %total, %extent
  br label %axis
counted:
  %nothing = icmp eq i64 %total, 0
  br i1 %nothing, label %done, label %which
which:
  br i1 %dense, label %at.once, label %each
at.once:
{field(w["TABLE"], launching.functions.index("cuMemsetD8Async"), "set", "@mutad_device_state")}
{field(0, w["STREAM"], "stream", "@mutad_device_state")}
  %to = ptrtoint ptr %data to i64
  %bytes = mul i64 %total, %size
  %code = call i32 %set(i64 %to, i8 zeroext 0, i64 %bytes, ptr %stream)
  %noted = call i32 @mutad_library_noted(i32 %code)
  ret i32 %noted
each:
  %k = phi i64 [ 0, %which ], [ %k.next, %put ]
  br label %digit
digit:
  %below = phi i64 [ %rank, %each ], [ %b, %next ]
  %rest = phi i64 [ %k, %each ], [ %quotient, %next ]
  %offset = phi i64 [ 0, %each ], [ %farther, %next ]
  %found = icmp eq i64 %below, 0
  br i1 %found, label %put, label %next
next:
  %b = sub i64 %below, 1
  %n.at = getelementptr i64, ptr %shape, i64 %b
  %n = load i64, ptr %n.at
  %t = add i64 %rank, %b
  %step.at = getelementptr i64, ptr %shape, i64 %t
  %step = load i64, ptr %step.at
  %subscript = urem i64 %rest, %n
  %quotient = udiv i64 %rest, %n
  %apart = mul i64 %subscript, %step
  %farther = add i64 %offset, %apart
  br label %digit
put:
  %away = mul i64 %offset, %size
  %place = getelementptr i8, ptr %data, i64 %away
  %status = call i32 @mutad_device_put(ptr %place, i64 %size, ptr %zero)
  %k.next = add i64 %k, 1
  %good = icmp eq i32 %status, 0
  %open = icmp ult i64 %k.next, %total
  %again = and i1 %good, %open
  br i1 %again, label %each, label %put.last
put.last:
  ret i32 %status
done:
  ret i32 0
}}

define i32 @mutad_library_noted(i32 %code) {{
  %wide = zext i32 %code to i64
  %error.at = getelementptr i64, ptr @mutad_device_state, i64 {w["ERROR"]}
  store i64 %wide, ptr %error.at
  ret i32 %code
}}
"""


def opening(name: str, launching: Launching, statuses: Statuses) -> str:
    """The functions of the header that have to do with the device alone."""

    def function(one: str, called: str) -> str:
        return field(FUNCTIONS, launching.driver.index(one), called)

    def failing(message: str) -> int:
        return statuses.status(DEVICE_ERROR, f"{name}_open: {message}")

    missing = failing(f"{DRIVER}, NVIDIA's driver, is not there")
    old = failing("the driver is older than r525")
    alone = failing("no context is current: call cuCtxSetCurrent, or cudaSetDevice and cudaFree(0)")
    size = launching.kernels
    return f"""
@mutad_library_driver = internal constant [{len(DRIVER) + 1} x i8] c"{DRIVER}\\00"
@mutad_library_ask = internal constant [20 x i8] c"cuGetProcAddress_v2\\00"

define i32 @{name}_open(ptr %device) nounwind {{
entry:
  %slot = alloca ptr
  store ptr null, ptr %slot
  call void @llvm.memset.p0.i64(ptr %device, i8 0, i64 {8 * size}, i1 false)
  %library = call ptr @dlopen(ptr @mutad_library_driver, i32 2)
  %none = icmp eq ptr %library, null
  br i1 %none, label %missing, label %find
find:
  %ask = call ptr @dlsym(ptr %library, ptr @mutad_library_ask)
  %older = icmp eq ptr %ask, null
  br i1 %older, label %old, label %look.up
look.up:
  %k = phi i64 [ 0, %find ], [ %k.next, %named ]
  %name.at = getelementptr ptr, ptr @mutad_library_names, i64 %k
  %name = load ptr, ptr %name.at
  store ptr null, ptr %slot
  %asked = call i32 %ask(ptr %name, ptr %slot, i32 {VERSION}, i64 0, ptr null)
  %address = load ptr, ptr %slot
  %gone = icmp eq ptr %address, null
  br i1 %gone, label %old, label %named
named:
  %place = add i64 %k, {FUNCTIONS}
  %word = getelementptr ptr, ptr %device, i64 %place
  store ptr %address, ptr %word
  %k.next = add i64 %k, 1
  %functions = load i64, ptr @mutad_library_functions_count
  %more = icmp ult i64 %k.next, %functions
  br i1 %more, label %look.up, label %begin
begin:
{function("cuInit", "init")}
  %begun = call i32 %init(i32 0)
  %bad.init = icmp ne i32 %begun, 0
  br i1 %bad.init, label %refused, label %where
where:
{function("cuCtxGetCurrent", "current")}
  store ptr null, ptr %slot
  %told = call i32 %current(ptr %slot)
  %bad.context = icmp ne i32 %told, 0
  br i1 %bad.context, label %refused, label %in.context
in.context:
  %context = load ptr, ptr %slot
  %nowhere = icmp eq ptr %context, null
  br i1 %nowhere, label %alone, label %load
load:
  %context.at = getelementptr ptr, ptr %device, i64 {CONTEXT}
  store ptr %context, ptr %context.at
{function("cuModuleLoadData", "loading")}
  %images = load i64, ptr @mutad_library_images_count
  br label %image
image:
  %m = phi i64 [ 0, %load ], [ %m.next, %unloaded ]
  %image.at = getelementptr ptr, ptr @mutad_library_images, i64 %m
  %data = load ptr, ptr %image.at
  %loaded = call i32 %loading(ptr %slot, ptr %data)
  %is.loaded = icmp eq i32 %loaded, 0
  br i1 %is.loaded, label %keep, label %unloaded
unloaded:
  %m.next = add i64 %m, 1
  %others = icmp ult i64 %m.next, %images
  br i1 %others, label %image, label %refused
keep:
  %module = load ptr, ptr %slot
  %module.at = getelementptr ptr, ptr %device, i64 {MODULE}
  store ptr %module, ptr %module.at
{function("cuModuleGetFunction", "getting")}
  %kernels = load i64, ptr @mutad_library_kernels_count
  br label %ask.kernel
ask.kernel:
  %j = phi i64 [ 0, %keep ], [ %j.next, %found ]
  %all = icmp uge i64 %j, %kernels
  br i1 %all, label %zero, label %kernel
kernel:
  %kernel.at = getelementptr ptr, ptr @mutad_library_kernel_names, i64 %j
  %kernel.name = load ptr, ptr %kernel.at
  %got = call i32 %getting(ptr %slot, ptr %module, ptr %kernel.name)
  %lost = icmp ne i32 %got, 0
  br i1 %lost, label %undo, label %found
found:
  %handle = load ptr, ptr %slot
  %own = add i64 %j, {size}
  %own.at = getelementptr ptr, ptr %device, i64 %own
  store ptr %handle, ptr %own.at
  %j.next = add i64 %j, 1
  br label %ask.kernel
zero:
{function("cuMemAlloc", "alloc")}{function("cuMemsetD8", "fill")}
  store ptr null, ptr %slot
  %allocated = call i32 %alloc(ptr %slot, i64 64)
  %full = icmp ne i32 %allocated, 0
  br i1 %full, label %undo, label %clear
clear:
  %nothing = load ptr, ptr %slot
  %nothing.at = getelementptr ptr, ptr %device, i64 {NOTHING}
  store ptr %nothing, ptr %nothing.at
  %there = ptrtoint ptr %nothing to i64
  %filled = call i32 %fill(i64 %there, i8 zeroext 0, i64 64)
  %unfilled = icmp ne i32 %filled, 0
  br i1 %unfilled, label %undo, label %done
done:
  ret i32 0
undo:
  %why = phi i32 [ %got, %kernel ], [ %allocated, %zero ], [ %filled, %clear ]
  %closed = call i32 @{name}_close(ptr %device)
  %undone = call i32 @mutad_library_status(i32 %why)
  ret i32 %undone
refused:
  %code = phi i32 [ %begun, %begin ], [ %told, %where ], [ %loaded, %unloaded ]
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
missing:
  ret i32 {missing}
old:
  ret i32 {old}
alone:
  ret i32 {alone}
}}

define i32 @{name}_close(ptr %device) nounwind {{
{field(0, MODULE, "module")}
  %none = icmp eq ptr %module, null
  br i1 %none, label %nothing.there, label %ours
ours:
  %before = alloca ptr
  %entered = call i32 @mutad_library_begin(ptr %device, ptr null, ptr %before, ptr null, i64 0, i64 0)
  %failed = icmp ne i32 %entered, 0
  br i1 %failed, label %refused, label %unload
unload:
{field(0, NOTHING, "nothing")}{function("cuMemFree", "give")}{function("cuModuleUnload", "unloading")}
  %zero = ptrtoint ptr %nothing to i64
  %no.zero = icmp eq i64 %zero, 0
  br i1 %no.zero, label %code.of, label %zero.of
zero.of:
  %given = call i32 %give(i64 %zero)
  br label %code.of
code.of:
  %code = call i32 %unloading(ptr %module)
  call void @mutad_library_leave(ptr %before)
  store ptr null, ptr %module.at
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
nothing.there:
  ret i32 0
refused:
  ret i32 %entered
}}

define i32 @{name}_allocate(ptr %device, ptr %stream, i64 %bytes, ptr %block) nounwind {{
{function("cuMemAllocAsync", "alloc")}
  store ptr null, ptr %block
  %code = call i32 %alloc(ptr %block, i64 %bytes, ptr %stream)
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
}}

define i32 @{name}_release(ptr %device, ptr %stream, ptr %block) nounwind {{
{function("cuMemFreeAsync", "free")}
  %address = ptrtoint ptr %block to i64
  %code = call i32 %free(i64 %address, ptr %stream)
  %status = call i32 @mutad_library_status(i32 %code)
  ret i32 %status
}}
"""
