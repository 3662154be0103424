"""Statements, comments and names of Fortran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

FORTRAN_TYPE = {
    "bool": "logical(c_bool)",
    "float": "real(c_float)",
    "double": "real(c_double)",
    **{f"{u}int{n}_t": f"integer(c_int{n}_t)" for n in (8, 16, 32, 64) for u in ("", "u")},
}
"""What Fortran calls a C type; it has no unsigned numbers, so these are signed ones of as many bits."""
LONGEST_NAME = 63 - len("_worksize")
WORDS = (
    "c_associated c_bool c_char c_double c_f_pointer c_float c_funloc c_funptr c_int c_int8_t c_int16_t "
    "c_int32_t c_int64_t c_intptr_t c_loc c_null_char c_null_ptr c_ptr c_size_t c_strerror c_strlen c_malloc "
    "of_malloc released allocator area int max owner present size status storage_size transfer work "
    "work_bytes"
)
"""Words that the module uses itself."""


@dataclass
class Names:
    """Names of C as Fortran has them: without case, at most 63 letters long, not beginning with `_`."""

    taken: set[str] = field(default_factory=lambda: set(WORDS.split()))

    def of(self, name: str) -> str:
        """A name that nothing else has."""
        plain = re.sub(r"^_+", "x_", name)[: LONGEST_NAME - len("_99")]
        made, count = plain, 1
        while made.lower() in self.taken:
            count += 1
            made = f"{plain}_{count}"
        self.taken.add(made.lower())
        return made


def comment(*paragraphs: str, indent: str = "    ") -> Iterator[str]:
    """Comment lines; what is indented goes on indented further."""
    for text in paragraphs:
        more = 2 * " " * (len(text) - len(text.lstrip()))
        for line in wrap(text, 96, break_on_hyphens=False, subsequent_indent=more) or [""]:
            yield f"{indent}! {line}".rstrip()


def statement(head: str, items: Iterable[str], end: str, indent: str) -> Iterator[str]:
    """A statement with a list, continued on further lines where it is long."""
    line = indent + head
    for k, item in enumerate(items):
        piece = item if k == 0 else f", {item}"
        if len(line) + len(piece) > 96 and k:
            yield f"{line}, &"
            line, piece = f"{indent}    ", item
        line += piece
    yield line + end


def colons(rank: int) -> str:
    """The shape of a parameter."""
    return f"({', '.join(':' * rank)})" if rank else ""


def filled(rank: int, axes: Sequence[int]) -> Iterator[str]:
    """`axes`: of each axis of the struct, that of the array."""
    first = ["1"] * rank
    yield "        integer(c_intptr_t) :: here, there"
    yield "        integer(c_int64_t) :: stride, bytes"
    yield "        stride = 1"
    yield "        bytes = storage_size(a) / 8"
    yield "        if (size(a) > 0) then"
    yield f"            made%data = c_loc(a({', '.join(first)}))"
    yield "            here = transfer(made%data, here)"
    yield "        end if"
    for d in range(rank):
        second = [*first[:d], "2", *first[d + 1 :]]
        place = axes.index(d) + 1
        yield f"        made%shape({place}) = size(a, {d + 1}, c_int64_t)"
        yield f"        if (size(a) > 0 .and. size(a, {d + 1}) > 1) then"
        yield f"            there = transfer(c_loc(a({', '.join(second)})), there)"
        yield "            stride = (there - here) / bytes"
        yield "        end if"
        yield f"        made%strides({place}) = stride"
        yield f"        stride = stride * max(1_c_int64_t, made%shape({place}))"


def copied(rank: int) -> Iterator[str]:
    """Elements of a struct, in an array that is allocated for them."""
    counters = [f"i{d + 1}" for d in range(rank)]
    yield "        integer(c_intptr_t) :: here"
    yield "        integer(c_int64_t) :: bytes, " + ", ".join(counters)
    extents = ", ".join(f"made%shape({d + 1})" for d in range(rank))
    yield f"        allocate (a({extents}))"
    yield "        bytes = storage_size(a) / 8"
    for d in reversed(range(rank)):
        yield f"        do {counters[d]} = 1, made%shape({d + 1})"
    yield "            here = transfer(made%data, here)"
    for d in range(rank):
        yield f"            here = here + bytes * made%strides({d + 1}) * ({counters[d]} - 1)"
    yield "            call c_f_pointer(transfer(here, made%data), element)"
    yield f"            a({', '.join(counters)}) = element"
    yield from ["        end do"] * rank
