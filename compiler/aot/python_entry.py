"""The entry of an exported function for a Python package, as LLVM text: everything comes in one frame.

    define i32 @loss_python(ptr %frame)

A frame is 8-byte words: for each C parameter, in order, the struct of an array, a number, or the place for
a result; then the work area and its bytes, where there is one; then what the kernel's context tells of an
exception: the site, a count, and the values that its message shows. `ctypes` passes a frame faster than a
dozen arguments, and the message of an exception has its numbers, as in Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.entries.run import CTX_BYTES, CTX_LINK, CTX_SITE
from ..codegen.kernel_memory import KernelMemory
from .signature import C_TYPE, PASSED, ArrayParameter, CFunction, Parameter, ScalarParameter

REPORT_WORDS = (CTX_LINK - CTX_SITE) // 8
"""What is copied of the context."""
ALLOCATOR = """
declare ptr @malloc(i64)
declare void @free(ptr)
define internal ptr @python_allocate(ptr %state, i64 %bytes) nounwind {
  %block = call ptr @malloc(i64 %bytes)
  ret ptr %block
}
define internal void @python_release(ptr %state, ptr %block, i64 %bytes) nounwind {
  call void @free(ptr %block)
  ret void
}
@python_allocator = internal constant [3 x ptr] [ptr @python_allocate, ptr @python_release, ptr null]
"""


def words_of(p: Parameter) -> int:
    """The words that a parameter takes in the frame."""
    if isinstance(p, ScalarParameter):
        return 1
    rank = p.key.rank if isinstance(p, ArrayParameter) else p.rank
    return 1 if rank is None else 1 + 2 * rank


def entry_name(symbol: str) -> str:
    """What the entry of an export is called."""
    return f"{symbol}_python"


def frame_text(function: CFunction, watched: str) -> str:
    """The definition of the entry, which calls the function `watched`, with a context of its own."""
    lines, passed = list[str](), list[str]()
    offset = 0

    def place() -> str:
        at = f"%at.{offset}"
        lines.append(f"{at} = getelementptr inbounds i8, ptr %frame, i64 {offset}")
        return at

    for p in function.parameters:
        lines_of, operand = handed(p, place(), offset)
        lines += lines_of
        passed.append(operand)
        offset += 8 * words_of(p)
    if function.memory is KernelMemory.AREA:
        lines.append(f"%work = load ptr, ptr {place()}")
        offset += 8
        lines.append(f"%bytes = load i64, ptr {place()}")
        offset += 8
        passed += ["ptr %work", "i64 %bytes"]
    else:
        passed.append("ptr @python_allocator")
    body = [
        f"%ctx = alloca [{CTX_BYTES // 8} x i64], align 64",
        f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx",
        *lines,
        f"%status = call i32 @{watched}({', '.join([*passed, 'ptr %ctx'])})",
        *copied(offset),
        "ret i32 %status",
    ]
    before = ALLOCATOR if function.memory is KernelMemory.ALLOCATOR else ""
    head = f"define i32 @{entry_name(function.symbol)}(ptr %frame) nounwind {{"
    return "\n".join([before, head, *(f"  {line}" for line in body), "}"])


def handed(p: Parameter, at: str, offset: int) -> tuple[list[str], str]:
    """How a parameter is read from the frame, and what is passed."""
    if isinstance(p, ArrayParameter) and p.optional:
        data, given, array = (f"%{word}.{offset}" for word in ("data", "given", "array"))
        return [
            f"{data} = load ptr, ptr {at}",
            f"{given} = icmp ne ptr {data}, null",
            f"{array} = select i1 {given}, ptr {at}, ptr null",
        ], f"ptr {array}"
    if not isinstance(p, ScalarParameter):
        return [], f"ptr {at}"
    passed, value = PASSED[C_TYPE[p.type]], f"%value.{offset}"
    type_ = passed.split()[0]
    if type_ != "i1":
        return [f"{value} = load {type_}, ptr {at}"], f"{passed} {value}"
    byte = f"%byte.{offset}"
    return [f"{byte} = load i8, ptr {at}", f"{value} = icmp ne i8 {byte}, 0"], f"{passed} {value}"


def copied(offset: int) -> Iterator[str]:
    """Copy what the context tells to the end of the frame."""
    type_ = f"[{REPORT_WORDS} x i64]"
    yield f"%told = getelementptr inbounds i8, ptr %ctx, i64 {CTX_SITE}"
    yield f"%words = load {type_}, ptr %told"
    yield f"%report = getelementptr inbounds i8, ptr %frame, i64 {offset}"
    yield f"store {type_} %words, ptr %report"
