"""What compiled host code calls to have kernels run: LLVM text over a table of the driver's functions.

One library for each driver (`device.Driver`), linked when its first module is loaded. `STATE` words hold
what it knows: the last error, the stream, the table. All work is on one stream, so memory that is given back
may be taken by what comes later. Whoever calls compiled code holds the driver's lock.

- *Scratch* and results are blocks of the driver's stream-ordered pool, with a record `{next, block, kind}`
  each, in a list that the kernel's context begins. An iteration that allocates gives back what it took; the
  end of the call gives back all but what is returned (`keep`).
- A *tape* is a list of segments, `{next of all, block or 0, bytes, the one before, data, bytes of the block,
  of them free}`; one that is popped waits for the next push. A block holds several segments (a `while` pushes
  one an iteration), and has twice the bytes of the block before, up to `MOST_BYTES`; the first is no larger
  than its segment. The list of all is that of the host's chunks, an odd address tells them apart.
- A loop whose body launches the same in each iteration is *replayed*: `plan` says how many iterations run;
  the last ones of them are captured into a graph, which `repeat` launches for all others. One period at least
  is not captured: what it raises has come before.

Every function returns 0, or what a kernel returns where memory runs out; the error says what it was.
"""

from __future__ import annotations

(
    ERROR,
    PLACE,
    STREAM,
    MODE,
    DEPTH,
    START,
    PERIOD,
    TIMES,
    GRAPHS,
    UNIT,
    LEAST,
    LAUNCHES,
    REPLAYS,
    ENDED,
    CONTEXT,
    HANDLE,
    PRODUCTS,
    KERNEL,
    WAITING,
    TURN,
    EVENT,
    SETTER,
    WHILE_GRAPH,
    CONDITION,
) = range(24)
"""Words of the state. `MODE`: 0, 1 (a loop is planned), 2 (captured); `DEPTH` counts planned loops in it;
`GRAPHS` lists those that may still run; a loop is replayed from `LEAST` graphs of `UNIT` periods on; once the
interpreter has `ENDED`, the driver is left alone. `CONTEXT` is the device's: arrays go in any thread.
`HANDLE` is cuBLAS's, where products go there (`device_products`), and `PRODUCTS` how many have. `KERNEL`
was launched last, or captured. `WAITING` lists blocks to be given back: whoever has the `TURN` does so.
A capture has it from begin to end: what is given back meanwhile, by any thread, is in no graph. `EVENT`
is what our stream waits for then. `SETTER` is the kernel that hands a condition on to a graph, 0 where the
driver has no conditional nodes; `WHILE_GRAPH` is being made for a `while`, `CONDITION` is its handle."""

DRIVER = (
    *("cuLaunchKernel", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemcpyDtoHAsync"),
    *("cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuStreamSynchronize"),
    *("cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"),
    *("cuGraphExecDestroy", "cuGraphDestroy", "cuCtxGetCurrent", "cuCtxSetCurrent"),
    *("cuEventRecord", "cuStreamWaitEvent"),
)
"""The driver's functions, in the table's order."""
GEMMS = ("cublasDgemm_v2", "cublasSgemm_v2")
"""Those of cuBLAS, which follow."""
CONDITIONAL = (
    *("cuGraphCreate", "cuGraphConditionalHandleCreate", "cuGraphAddNode"),
    *("cuStreamBeginCaptureToGraph", "cuStreamGetCaptureInfo"),
)
"""What a driver may lack, which follows: that of conditional nodes (CUDA 12.4)."""
ALL = (*DRIVER, *GEMMS, *CONDITIONAL)
TABLE = 24
"""The word where the table begins."""
WORDS = TABLE + len(ALL)

CONDITIONAL_NODE, REPEATED = 13, 1
"""Kinds: of a node with a condition, and of one whose body is repeated."""

SET_CONDITION = """
.version 7.0
.target sm_70
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry mutad_set_condition(.param .u64 handle, .param .u64 flag)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    ld.param.u64 %d1, [handle];
    ld.param.u64 %d2, [flag];
    cvta.to.global.u64 %d2, %d2;
    ld.global.u64 %d3, [%d2];
    setp.ne.u64 %p2, %d3, 0;
    selp.u32 %r2, 1, 0, %p2;
    {
        .param .b64 first;
        .param .b32 second;
        st.param.b64 [first], %d1;
        st.param.b32 [second], %r2;
        call.uni cudaGraphSetConditional, (first, second);
    }
DONE:
    ret;
}
"""
"""The kernel that hands a flag on to a graph; what it calls is the driver's (CUDA 12.3 and later)."""

OUT_OF_MEMORY = 3
"""What a kernel returns that cannot go on; the same as where the host has no memory."""
NO_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""
TOO_LARGE = 1
"""CUDA_ERROR_INVALID_VALUE: a grid of more blocks than there can be."""

SEGMENT = 256
"""Segments begin at multiples of so many bytes, as the driver's blocks do."""
MOST_BYTES = 1 << 28
"""A block of a tape is not larger, unless its first segment is."""

BLOCKS, TAPES = 280, 24
"""Byte offsets in the context: the list of blocks (a device runs no recursive functions, whose arena is at
that place else), and that of the chunks of tapes."""


def word(number: int, name: str, type_: str = "i64") -> str:
    """Load a word of the state."""
    return f"""  %{name}.at = getelementptr i64, ptr @mutad_device_state, i64 {number}
  %{name} = load {type_}, ptr %{name}.at
"""


def put_word(number: int, value: str, name: str) -> str:
    return f"""  %{name}.to = getelementptr i64, ptr @mutad_device_state, i64 {number}
  store i64 {value}, ptr %{name}.to
"""


def driver(function: str, arguments: str, name: str) -> str:
    """Call the driver; `%name` is 0, or the error that is noted."""
    place = ALL.index(function)
    return (
        word(TABLE + place, f"{name}.f", "ptr")
        + f"""  %{name}.code = call i32 %{name}.f({arguments})
  %{name} = call i32 @noted(i32 %{name}.code, i64 {place})
"""
    )


TEXT = f"""
@mutad_device_state = external global i64
declare ptr @mutad_libc_malloc(i64)
declare void @mutad_libc_free(ptr)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)

define internal i32 @noted(i32 %code, i64 %place) {{
  %well = icmp eq i32 %code, 0
  br i1 %well, label %good, label %bad
good:
  ret i32 0
bad:
{word(ERROR, "before")}
  %first = icmp eq i64 %before, 0
  br i1 %first, label %note, label %known
note:
  %wide = zext i32 %code to i64
{put_word(ERROR, "%wide", "error")}{put_word(PLACE, "%place", "place")}
  ret i32 {OUT_OF_MEMORY}
known:
  ret i32 {OUT_OF_MEMORY}
}}

define i32 @mutad_device_launch(ptr %kernel, i64 %blocks, ptr %parameters) {{
  %nothing = icmp sle i64 %blocks, 0
  br i1 %nothing, label %done, label %some
done:
  ret i32 0
some:
  %many = icmp sgt i64 %blocks, 2147483647
  br i1 %many, label %refused, label %launch
refused:
  %no = call i32 @noted(i32 {TOO_LARGE}, i64 0)
  ret i32 %no
launch:
  %count = trunc i64 %blocks to i32
{word(LAUNCHES, "launches")}
  %more = add i64 %launches, 1
{put_word(LAUNCHES, "%more", "counted")}{word(STREAM, "stream", "ptr")}
  %which = ptrtoint ptr %kernel to i64
{put_word(KERNEL, "%which", "noting")}
{
    driver(
        "cuLaunchKernel",
        "ptr %kernel, i32 %count, i32 1, i32 1, i32 256, i32 1, i32 1, i32 0, "
        "ptr %stream, ptr %parameters, ptr null",
        "status",
    )
}
  ret i32 %status
}}

define internal i64 @taken(i64 %bytes) {{
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  br i1 %huge, label %refused, label %take
refused:
  %no = call i32 @noted(i32 {NO_MEMORY}, i64 {DRIVER.index("cuMemAllocAsync")})
  ret i64 0
take:
  %slot = alloca i64
  store i64 0, ptr %slot
  %size = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
{word(STREAM, "stream", "ptr")}
{driver("cuMemAllocAsync", "ptr %slot, i64 %size, ptr %stream", "status")}
  %well = icmp eq i32 %status, 0
  %block = load i64, ptr %slot
  %found = select i1 %well, i64 %block, i64 0
  ret i64 %found
}}

define internal void @given(i64 %block) {{
{word(ENDED, "ended")}
  %over = icmp ne i64 %ended, 0
  %none = icmp eq i64 %block, 0
  %leave = or i1 %over, %none
  br i1 %leave, label %done, label %note
note:
  call void @waits(i64 %block, ptr null)
  br label %done
done:
  ret void
}}

; What is given back from now on goes behind what another stream has to do now.
define void @mutad_device_follow(ptr %stream) {{
  call void @waits(i64 0, ptr %stream)
  ret void
}}

; One more record that waits: a block, or a stream that comes before all blocks.
define internal void @waits(i64 %block, ptr %stream) {{
  %record = call ptr @mutad_libc_malloc(i64 24)
  %lost = icmp eq ptr %record, null
  br i1 %lost, label %done, label %fill
fill:
  %block.at = getelementptr i8, ptr %record, i64 8
  store i64 %block, ptr %block.at
  %stream.at = getelementptr i8, ptr %record, i64 16
  store ptr %stream, ptr %stream.at
  %list.at = getelementptr i64, ptr @mutad_device_state, i64 {WAITING}
  br label %push
push:
  %list = load atomic ptr, ptr %list.at acquire, align 8
  store ptr %list, ptr %record
  %pair = cmpxchg ptr %list.at, ptr %list, ptr %record acq_rel acquire
  %pushed = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %pushed, label %give, label %push
give:
  call void @give_back()
  br label %done
done:
  ret void
}}

; Give back what waits, unless another thread does so, or a loop is captured.
define internal void @give_back() {{
entry:
  %turn = getelementptr i64, ptr @mutad_device_state, i64 {TURN}
  %list.at = getelementptr i64, ptr @mutad_device_state, i64 {WAITING}
  %slot = alloca ptr
  br label %ask
ask:
  %pair = cmpxchg ptr %turn, i64 0, i64 1 acq_rel acquire
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %take, label %done
take:
  %list = atomicrmw xchg ptr %list.at, ptr null acq_rel
  %nothing = icmp eq ptr %list, null
  br i1 %nothing, label %leave, label %begin
begin:
  store ptr null, ptr %slot
{word(CONTEXT, "own", "ptr")}{word(STREAM, "stream", "ptr")}
{driver("cuCtxGetCurrent", "ptr %slot", "asked")}
  %before = load ptr, ptr %slot
  %there = icmp eq ptr %before, %own
  br i1 %there, label %look, label %enter
enter:
{driver("cuCtxSetCurrent", "ptr %own", "entered")}
  br label %look
look:
  %seen = phi ptr [ %list, %begin ], [ %list, %enter ], [ %behind, %on ]
  %behind = load ptr, ptr %seen
  %other.at = getelementptr i8, ptr %seen, i64 16
  %other = load ptr, ptr %other.at
  %is.block = icmp eq ptr %other, null
  br i1 %is.block, label %on, label %follow
follow:
{word(EVENT, "event", "ptr")}
{driver("cuEventRecord", "ptr %event, ptr %other", "recorded")}
{driver("cuStreamWaitEvent", "ptr %stream, ptr %event, i32 0", "followed")}
  br label %on
on:
  %all = icmp eq ptr %behind, null
  br i1 %all, label %each, label %look
each:
  %record = phi ptr [ %list, %on ], [ %next, %gone ]
  %next = load ptr, ptr %record
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load i64, ptr %block.at
  %no.block = icmp eq i64 %block, 0
  br i1 %no.block, label %gone, label %free
free:
{driver("cuMemFreeAsync", "i64 %block, ptr %stream", "status")}
  br label %gone
gone:
  call void @mutad_libc_free(ptr %record)
  %end = icmp eq ptr %next, null
  br i1 %end, label %freed, label %each
freed:
  br i1 %there, label %leave, label %leave.it
leave.it:
{driver("cuCtxSetCurrent", "ptr %before", "left")}
  br label %leave
leave:
  store atomic i64 0, ptr %turn release, align 8
  %more = load atomic ptr, ptr %list.at acquire, align 8
  %idle = icmp eq ptr %more, null
  br i1 %idle, label %done, label %ask
done:
  ret void
}}

; What is given back from now on waits.
define internal void @hold_back() {{
entry:
  %turn = getelementptr i64, ptr @mutad_device_state, i64 {TURN}
  br label %ask
ask:
  %pair = cmpxchg ptr %turn, i64 0, i64 1 acq_rel acquire
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %done, label %ask
done:
  ret void
}}

define internal void @go_on_giving() {{
  %turn = getelementptr i64, ptr @mutad_device_state, i64 {TURN}
  store atomic i64 0, ptr %turn release, align 8
  call void @give_back()
  ret void
}}

define ptr @mutad_device_alloc(ptr %ctx, i64 %bytes, i64 %kind) {{
  %record = call ptr @mutad_libc_malloc(i64 24)
  %none = icmp eq ptr %record, null
  br i1 %none, label %exhausted, label %take
take:
  %block = call i64 @taken(i64 %bytes)
  %refused = icmp eq i64 %block, 0
  br i1 %refused, label %back, label %keep
back:
  call void @mutad_libc_free(ptr %record)
  ret ptr null
keep:
  %list.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  %list = load ptr, ptr %list.at
  store ptr %list, ptr %record
  %block.at = getelementptr i8, ptr %record, i64 8
  store i64 %block, ptr %block.at
  %kind.at = getelementptr i8, ptr %record, i64 16
  store i64 %kind, ptr %kind.at
  store ptr %record, ptr %list.at
  %found = inttoptr i64 %block to ptr
  ret ptr %found
exhausted:
  ret ptr null
}}

define void @mutad_device_release(ptr %ctx, ptr %mark) {{
entry:
  %list.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  br label %look
look:
  %link = phi ptr [ %list.at, %entry ], [ %link, %drop ], [ %record, %stay ]
  %record = load ptr, ptr %link
  %end = icmp eq ptr %record, %mark
  br i1 %end, label %done, label %one
one:
  %kind.at = getelementptr i8, ptr %record, i64 16
  %kind = load i64, ptr %kind.at
  %scratch = icmp eq i64 %kind, 0
  br i1 %scratch, label %drop, label %stay
drop:
  %next = load ptr, ptr %record
  store ptr %next, ptr %link
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load i64, ptr %block.at
  call void @given(i64 %block)
  call void @mutad_libc_free(ptr %record)
  br label %look
stay:
  br label %look
done:
  ret void
}}

define void @mutad_device_keep(ptr %ctx, ptr %pointer) {{
entry:
  %address = ptrtoint ptr %pointer to i64
  %list.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  br label %look
look:
  %link = phi ptr [ %list.at, %entry ], [ %record, %on ]
  %record = load ptr, ptr %link
  %end = icmp eq ptr %record, null
  br i1 %end, label %done, label %one
one:
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load i64, ptr %block.at
  %same = icmp eq i64 %block, %address
  br i1 %same, label %drop, label %on
on:
  br label %look
drop:
  %next = load ptr, ptr %record
  store ptr %next, ptr %link
  call void @mutad_libc_free(ptr %record)
  br label %done
done:
  ret void
}}

define void @mutad_device_end(ptr %ctx) {{
entry:
{word(MODE, "mode")}
  %captured = icmp eq i64 %mode, 2
  br i1 %captured, label %leave, label %begin
leave:
  %graph = alloca ptr
  store ptr null, ptr %graph
{word(STREAM, "stream", "ptr")}
{driver("cuStreamEndCapture", "ptr %stream, ptr %graph", "ended")}
  call void @go_on_giving()
  %captured.graph = load ptr, ptr %graph
{word(WHILE_GRAPH, "parent", "ptr")}{put_word(WHILE_GRAPH, "0", "no.parent")}
  %alone = icmp eq ptr %parent, null
  %broken = select i1 %alone, ptr %captured.graph, ptr %parent
  %nothing = icmp eq ptr %broken, null
  br i1 %nothing, label %begin, label %destroy
destroy:
{driver("cuGraphDestroy", "ptr %broken", "destroyed")}
  br label %begin
begin:
{put_word(MODE, "0", "idle")}{put_word(DEPTH, "0", "shallow")}
  %list.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  br label %look
look:
  %record = load ptr, ptr %list.at
  %end = icmp eq ptr %record, null
  br i1 %end, label %done, label %drop
drop:
  %next = load ptr, ptr %record
  store ptr %next, ptr %list.at
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load i64, ptr %block.at
  call void @given(i64 %block)
  call void @mutad_libc_free(ptr %record)
  br label %look
done:
  ret void
}}

define ptr @mutad_device_push(ptr %ctx, ptr %tape, i64 %bytes) {{
  %spare.at = getelementptr i8, ptr %tape, i64 8
  %spare = load ptr, ptr %spare.at
  %none = icmp eq ptr %spare, null
  br i1 %none, label %fresh, label %look
look:
  %size.at = getelementptr i8, ptr %spare, i64 16
  %size = load i64, ptr %size.at
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %again, label %fresh
again:
  %rest.at = getelementptr i8, ptr %spare, i64 24
  %rest = load ptr, ptr %rest.at
  store ptr %rest, ptr %spare.at
  br label %enter
fresh:
  %record = call ptr @mutad_libc_malloc(i64 56)
  %missing = icmp eq ptr %record, null
  br i1 %missing, label %exhausted, label %cut
cut:
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %more = add i64 %some, {SEGMENT - 1}
  %whole = and i64 %more, {-SEGMENT}
  %least = select i1 %huge, i64 %bytes, i64 %whole
  %owner.at = getelementptr i8, ptr %tape, i64 16
  %owner = load ptr, ptr %owner.at
  %first = icmp eq ptr %owner, null
  br i1 %first, label %take, label %within
within:
  %total.at = getelementptr i8, ptr %owner, i64 40
  %free.at = getelementptr i8, ptr %owner, i64 48
  %total = load i64, ptr %total.at
  %free = load i64, ptr %free.at
  %enough = icmp ule i64 %least, %free
  br i1 %enough, label %shared, label %take
shared:
  %used = sub i64 %total, %free
  %block.owner.at = getelementptr i8, ptr %owner, i64 8
  %block.owner = load i64, ptr %block.owner.at
  %next = add i64 %block.owner, %used
  %left = sub i64 %free, %least
  store i64 %left, ptr %free.at
  br label %made
take:
  %last = phi i64 [ 0, %cut ], [ %total, %within ]
  %twice = shl i64 %last, 1
  %bounded = call i64 @llvm.umin.i64(i64 %twice, i64 {MOST_BYTES})
  %taken.bytes = call i64 @llvm.umax.i64(i64 %bounded, i64 %least)
  %block = call i64 @taken(i64 %taken.bytes)
  %refused = icmp eq i64 %block, 0
  br i1 %refused, label %back, label %begun
back:
  call void @mutad_libc_free(ptr %record)
  ret ptr null
begun:
  store ptr %record, ptr %owner.at
  %total.new.at = getelementptr i8, ptr %record, i64 40
  %free.new.at = getelementptr i8, ptr %record, i64 48
  store i64 %taken.bytes, ptr %total.new.at
  %rest.bytes = sub i64 %taken.bytes, %least
  store i64 %rest.bytes, ptr %free.new.at
  br label %made
made:
  %own = phi i64 [ 0, %shared ], [ %block, %begun ]
  %place = phi i64 [ %next, %shared ], [ %block, %begun ]
  %all.at = getelementptr i8, ptr %ctx, i64 {TAPES}
  %all = load ptr, ptr %all.at
  store ptr %all, ptr %record
  %odd = getelementptr i8, ptr %record, i64 1
  store ptr %odd, ptr %all.at
  %block.at = getelementptr i8, ptr %record, i64 8
  store i64 %own, ptr %block.at
  %bytes.at = getelementptr i8, ptr %record, i64 16
  store i64 %bytes, ptr %bytes.at
  %place.at = getelementptr i8, ptr %record, i64 32
  store i64 %place, ptr %place.at
  br label %enter
enter:
  %segment = phi ptr [ %spare, %again ], [ %record, %made ]
  %before = load ptr, ptr %tape
  %before.at = getelementptr i8, ptr %segment, i64 24
  store ptr %before, ptr %before.at
  store ptr %segment, ptr %tape
  %data.at = getelementptr i8, ptr %segment, i64 32
  %data = load ptr, ptr %data.at
  ret ptr %data
exhausted:
  ret ptr null
}}

define ptr @mutad_device_pop(ptr %tape) {{
  %segment = load ptr, ptr %tape
  %before.at = getelementptr i8, ptr %segment, i64 24
  %before = load ptr, ptr %before.at
  store ptr %before, ptr %tape
  %spare.at = getelementptr i8, ptr %tape, i64 8
  %spare = load ptr, ptr %spare.at
  store ptr %spare, ptr %before.at
  store ptr %segment, ptr %spare.at
  %data.at = getelementptr i8, ptr %segment, i64 32
  %data = load ptr, ptr %data.at
  ret ptr %data
}}

define ptr @mutad_device_read(ptr %tape) {{
  %segment = load ptr, ptr %tape
  %before.at = getelementptr i8, ptr %segment, i64 24
  %before = load ptr, ptr %before.at
  store ptr %before, ptr %tape
  %data.at = getelementptr i8, ptr %segment, i64 32
  %data = load ptr, ptr %data.at
  ret ptr %data
}}

define ptr @mutad_device_drop_segment(ptr %odd) {{
  %record = getelementptr i8, ptr %odd, i64 -1
  %next = load ptr, ptr %record
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load i64, ptr %block.at
  call void @given(i64 %block)
  call void @mutad_libc_free(ptr %record)
  ret ptr %next
}}

define i32 @mutad_device_fetch(ptr %source, i64 %bytes, ptr %target) {{
  %from = ptrtoint ptr %source to i64
{word(STREAM, "stream", "ptr")}
{driver("cuMemcpyDtoHAsync", "ptr %target, i64 %from, i64 %bytes, ptr %stream", "copied")}
  %bad = icmp ne i32 %copied, 0
  br i1 %bad, label %failed, label %wait
wait:
{driver("cuStreamSynchronize", "ptr %stream", "status")}
  ret i32 %status
failed:
  ret i32 %copied
}}

define i32 @mutad_device_put(ptr %target, i64 %bytes, ptr %source) {{
  %to = ptrtoint ptr %target to i64
{word(STREAM, "stream", "ptr")}
  switch i64 %bytes, label %eight [ i64 1, label %one i64 2, label %two i64 4, label %four ]
one:
  %value1 = load i8, ptr %source
{driver("cuMemsetD8Async", "i64 %to, i8 zeroext %value1, i64 1, ptr %stream", "status1")}
  ret i32 %status1
two:
  %value2 = load i16, ptr %source
{driver("cuMemsetD16Async", "i64 %to, i16 zeroext %value2, i64 1, ptr %stream", "status2")}
  ret i32 %status2
four:
  %value4 = load i32, ptr %source
{driver("cuMemsetD32Async", "i64 %to, i32 %value4, i64 1, ptr %stream", "status4")}
  ret i32 %status4
eight:
  %value8 = load i32, ptr %source
{driver("cuMemsetD32Async", "i64 %to, i32 %value8, i64 1, ptr %stream", "status8")}
  %bad = icmp ne i32 %status8, 0
  br i1 %bad, label %failed, label %second
second:
  %upper.at = getelementptr i8, ptr %source, i64 4
  %upper = load i32, ptr %upper.at
  %to.upper = add i64 %to, 4
{driver("cuMemsetD32Async", "i64 %to.upper, i32 %upper, i64 1, ptr %stream", "status9")}
  ret i32 %status9
failed:
  ret i32 %status8
}}

define i1 @mutad_device_is_replayed(i64 %count, i64 %period) {{
{word(MODE, "mode")}{word(UNIT, "unit")}{word(LEAST, "least")}
  %idle = icmp eq i64 %mode, 0
  %whole = mul i64 %unit, %period
  %graphs = mul i64 %whole, %least
  %enough = add i64 %graphs, %period
  %worth = icmp sge i64 %count, %enough
  %replayed = and i1 %idle, %worth
  ret i1 %replayed
}}

define i64 @mutad_device_plan(i64 %count, i64 %period) {{
{word(MODE, "mode")}
  %idle = icmp eq i64 %mode, 0
  br i1 %idle, label %look, label %within
within:
{word(DEPTH, "depth")}
  %deeper = add i64 %depth, 1
{put_word(DEPTH, "%deeper", "deep")}
  ret i64 %count
look:
  %worth = call i1 @mutad_device_is_replayed(i64 %count, i64 %period)
  br i1 %worth, label %planned, label %plain
plain:
  ret i64 %count
planned:
{word(UNIT, "unit")}
  %whole = mul i64 %unit, %period
  %beyond = sub i64 %count, %period
  %times = sdiv i64 %beyond, %whole
  %replayed = mul i64 %times, %whole
  %rest = sub i64 %count, %replayed
  %run = add i64 %rest, %whole
{put_word(MODE, "1", "armed")}{put_word(START, "%rest", "first")}{
    put_word(TIMES, "%times", "often")
}
{put_word(PERIOD, "%run", "last")}
  ret i64 %run
}}

define i32 @mutad_device_iteration(i64 %number) {{
{word(MODE, "mode")}{word(DEPTH, "depth")}{word(START, "start")}
  %armed = icmp eq i64 %mode, 1
  %own = icmp eq i64 %depth, 0
  %here = icmp eq i64 %number, %start
  %both = and i1 %armed, %own
  %now = and i1 %both, %here
  br i1 %now, label %capture, label %on
capture:
  call void @hold_back()
{word(STREAM, "stream", "ptr")}
{driver("cuStreamBeginCapture", "ptr %stream, i32 1", "status")}
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %failed, label %begun
begun:
{put_word(MODE, "2", "captured")}
  ret i32 0
failed:
  call void @go_on_giving()
{put_word(MODE, "0", "given.up")}
  ret i32 %status
on:
  ret i32 0
}}

define i32 @mutad_device_repeat() {{
entry:
{word(MODE, "mode")}{word(DEPTH, "depth")}
  %idle = icmp eq i64 %mode, 0
  br i1 %idle, label %nothing, label %look
look:
  %own = icmp eq i64 %depth, 0
  br i1 %own, label %end, label %shallower
shallower:
  %less = sub i64 %depth, 1
{put_word(DEPTH, "%less", "up")}
  ret i32 0
nothing:
  ret i32 0
end:
  %graph.at = alloca ptr
  %run.at = alloca ptr
  store ptr null, ptr %graph.at
  store ptr null, ptr %run.at
{put_word(MODE, "0", "ended")}{word(STREAM, "stream", "ptr")}
{driver("cuStreamEndCapture", "ptr %stream, ptr %graph.at", "closed")}
  call void @go_on_giving()
  %bad = icmp ne i32 %closed, 0
  br i1 %bad, label %failed, label %make
make:
  %graph = load ptr, ptr %graph.at
{driver("cuGraphInstantiateWithFlags", "ptr %run.at, ptr %graph, i64 0", "made")}
{driver("cuGraphDestroy", "ptr %graph", "destroyed")}
  %unmade = icmp ne i32 %made, 0
  br i1 %unmade, label %failed.too, label %begin
begin:
  %run = load ptr, ptr %run.at
  %record = call ptr @mutad_libc_malloc(i64 16)
  %none = icmp eq ptr %record, null
  br i1 %none, label %exhausted, label %noted
exhausted:
  ret i32 {OUT_OF_MEMORY}
noted:
{word(GRAPHS, "graphs", "ptr")}
  store ptr %graphs, ptr %record
  %own.at = getelementptr i8, ptr %record, i64 8
  store ptr %run, ptr %own.at
  store ptr %record, ptr %graphs.at
{word(TIMES, "times")}{word(REPLAYS, "replays")}
  %replayed = add i64 %replays, %times
  store i64 %replayed, ptr %replays.at
  br label %again
again:
  %k = phi i64 [ 0, %noted ], [ %next, %on ]
{driver("cuGraphLaunch", "ptr %run, ptr %stream", "status")}
  %stop = icmp ne i32 %status, 0
  br i1 %stop, label %stopped, label %on
on:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %again, label %done
done:
  ret i32 0
stopped:
  ret i32 %status
failed:
  ret i32 %closed
failed.too:
  ret i32 %made
}}

; A graph that repeats a body as long as the device says so. What is launched until the next step is captured.
define i1 @mutad_device_has_conditions() {{
{word(MODE, "mode")}{word(SETTER, "setter")}
  %idle = icmp eq i64 %mode, 0
  %there = icmp ne i64 %setter, 0
  %able = and i1 %idle, %there
  ret i1 %able
}}

define internal i32 @captures(ptr %graph) {{
{word(STREAM, "stream", "ptr")}
{
    driver(
        "cuStreamBeginCaptureToGraph",
        "ptr %stream, ptr %graph, ptr null, ptr null, i64 0, i32 1",
        "status",
    )
}
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %failed, label %begun
begun:
{put_word(MODE, "2", "captured")}{put_word(DEPTH, "0", "shallow")}
  ret i32 0
failed:
  ret i32 %status
}}

; What is left of a graph that is not finished, or has been instantiated.
define internal void @forget_while() {{
{word(WHILE_GRAPH, "graph", "ptr")}{put_word(WHILE_GRAPH, "0", "none")}{put_word(MODE, "0", "idle")}
{driver("cuGraphDestroy", "ptr %graph", "destroyed")}
  call void @go_on_giving()
  ret void
}}

define i32 @mutad_device_while_begin(ptr %flag) {{
  %graph.at = alloca ptr
{word(CONTEXT, "context", "ptr")}
{driver("cuGraphCreate", "ptr %graph.at, i32 0", "created")}
  %none = icmp ne i32 %created, 0
  br i1 %none, label %failed, label %made
failed:
  ret i32 %created
made:
  %graph = load ptr, ptr %graph.at
  %which = ptrtoint ptr %graph to i64
{put_word(WHILE_GRAPH, "%which", "noted")}
  call void @hold_back()
  %handle.to = getelementptr i64, ptr @mutad_device_state, i64 {CONDITION}
{
    driver(
        "cuGraphConditionalHandleCreate",
        "ptr %handle.to, ptr %graph, ptr %context, i32 0, i32 1",
        "handled",
    )
}
  %unhandled = icmp ne i32 %handled, 0
  br i1 %unhandled, label %forget, label %capture
capture:
  %status = call i32 @captures(ptr %graph)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %forget, label %done
forget:
  call void @forget_while()
  ret i32 {OUT_OF_MEMORY}
done:
  ret i32 0
}}

; Hand the flag on to the graph.
define internal i32 @decide(ptr %flag) {{
{word(SETTER, "setter", "ptr")}{word(CONDITION, "condition")}
  %places = alloca [2 x ptr]
  %given = alloca [2 x i64]
  store i64 %condition, ptr %given
  %second = getelementptr i64, ptr %given, i64 1
  store ptr %flag, ptr %second
  store ptr %given, ptr %places
  %place = getelementptr ptr, ptr %places, i64 1
  store ptr %second, ptr %place
  %status = call i32 @mutad_device_launch(ptr %setter, i64 1, ptr %places)
  ret i32 %status
}}

define i32 @mutad_device_while_body(ptr %flag) {{
  %state.at = alloca i32
  %id.at = alloca i64
  %closed.at = alloca ptr
  %list.at = alloca ptr
  %count.at = alloca i64
  %node.at = alloca ptr
  %last.at = alloca ptr
  %params = alloca [32 x i64], align 8
  %decided = call i32 @decide(ptr %flag)
  %undecided = icmp ne i32 %decided, 0
  br i1 %undecided, label %failed, label %ask
failed:
  ret i32 {OUT_OF_MEMORY}
ask:
{word(STREAM, "stream", "ptr")}
{
    driver(
        "cuStreamGetCaptureInfo",
        "ptr %stream, ptr %state.at, ptr %id.at, ptr %closed.at, ptr %list.at, ptr %count.at",
        "told",
    )
}
  %untold = icmp ne i32 %told, 0
  br i1 %untold, label %failed, label %last
last:
  %list = load ptr, ptr %list.at
  %node = load ptr, ptr %list
  store ptr %node, ptr %last.at
{put_word(MODE, "0", "ended")}
{driver("cuStreamEndCapture", "ptr %stream, ptr %closed.at", "closed")}
  %unclosed = icmp ne i32 %closed, 0
  br i1 %unclosed, label %forget, label %add
add:
{word(WHILE_GRAPH, "graph", "ptr")}{word(CONDITION, "condition")}{word(CONTEXT, "context")}
  store [32 x i64] zeroinitializer, ptr %params
  store i32 {CONDITIONAL_NODE}, ptr %params
  %handle.to = getelementptr i8, ptr %params, i64 16
  store i64 %condition, ptr %handle.to
  %type.to = getelementptr i8, ptr %params, i64 24
  store i32 {REPEATED}, ptr %type.to
  %size.to = getelementptr i8, ptr %params, i64 28
  store i32 1, ptr %size.to
  %context.to = getelementptr i8, ptr %params, i64 40
  store i64 %context, ptr %context.to
{
    driver(
        "cuGraphAddNode",
        "ptr %node.at, ptr %graph, ptr %last.at, ptr null, i64 1, ptr %params",
        "added",
    )
}
  %unadded = icmp ne i32 %added, 0
  br i1 %unadded, label %forget, label %enter
enter:
  %bodies.at = getelementptr i8, ptr %params, i64 32
  %bodies = load ptr, ptr %bodies.at
  %body = load ptr, ptr %bodies
  %status = call i32 @captures(ptr %body)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %forget, label %done
forget:
  call void @forget_while()
  ret i32 {OUT_OF_MEMORY}
done:
  ret i32 0
}}

define i32 @mutad_device_while_end(ptr %flag) {{
  %closed.at = alloca ptr
  %run.at = alloca ptr
  %decided = call i32 @decide(ptr %flag)
  %undecided = icmp ne i32 %decided, 0
  br i1 %undecided, label %failed, label %close
failed:
  ret i32 {OUT_OF_MEMORY}
close:
{put_word(MODE, "0", "ended")}{word(STREAM, "stream", "ptr")}
{driver("cuStreamEndCapture", "ptr %stream, ptr %closed.at", "closed")}
  %unclosed = icmp ne i32 %closed, 0
  br i1 %unclosed, label %forget, label %make
forget:
  call void @forget_while()
  ret i32 {OUT_OF_MEMORY}
make:
{word(WHILE_GRAPH, "graph", "ptr")}
{driver("cuGraphInstantiateWithFlags", "ptr %run.at, ptr %graph, i64 0", "made")}
  call void @forget_while()
  %unmade = icmp ne i32 %made, 0
  br i1 %unmade, label %failed, label %keep
keep:
  %run = load ptr, ptr %run.at
  %record = call ptr @mutad_libc_malloc(i64 16)
  %none = icmp eq ptr %record, null
  br i1 %none, label %failed, label %run.it
run.it:
{word(GRAPHS, "graphs", "ptr")}
  store ptr %graphs, ptr %record
  %own.at = getelementptr i8, ptr %record, i64 8
  store ptr %run, ptr %own.at
  store ptr %record, ptr %graphs.at
{word(REPLAYS, "replays")}
  %replayed = add i64 %replays, 1
  store i64 %replayed, ptr %replays.at
{driver("cuGraphLaunch", "ptr %run, ptr %stream", "status")}
  ret i32 %status
}}

define ptr @mutad_device_malloc(ptr %ctx, i64 %bytes) {{
  %block = call i64 @taken(i64 %bytes)
  %found = inttoptr i64 %block to ptr
  ret ptr %found
}}
define ptr @mutad_device_calloc(ptr %ctx, i64 %count, i64 %size) {{
  %pair = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %pair, 0
  %wrapped = extractvalue {{ i64, i1 }} %pair, 1
  %asked = select i1 %wrapped, i64 -1, i64 %bytes
  %block = call i64 @taken(i64 %asked)
  %none = icmp eq i64 %block, 0
  br i1 %none, label %done, label %clear
clear:
{word(STREAM, "stream", "ptr")}
{driver("cuMemsetD8Async", "i64 %block, i8 zeroext 0, i64 %bytes, ptr %stream", "status")}
  br label %done
done:
  %found = inttoptr i64 %block to ptr
  ret ptr %found
}}
define ptr @mutad_device_realloc(ptr %ctx, ptr %block, i64 %bytes) {{
  ret ptr null
}}
define void @mutad_device_free(ptr %ctx, ptr %block, i64 %bytes) {{
  %address = ptrtoint ptr %block to i64
  call void @given(i64 %address)
  ret void
}}
define void @mutad_device_forget(ptr %block) {{
  %address = ptrtoint ptr %block to i64
  call void @given(i64 %address)
  ret void
}}
define void @mutad_device_collect() {{
entry:
  br label %look
look:
{word(GRAPHS, "graphs", "ptr")}
  %none = icmp eq ptr %graphs, null
  br i1 %none, label %done, label %drop
drop:
  %next = load ptr, ptr %graphs
  store ptr %next, ptr %graphs.at
  %run.at = getelementptr i8, ptr %graphs, i64 8
  %run = load ptr, ptr %run.at
{driver("cuGraphExecDestroy", "ptr %run", "status")}
  call void @mutad_libc_free(ptr %graphs)
  br label %look
done:
  ret void
}}
"""
