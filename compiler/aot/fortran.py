"""The Fortran module of a library: `iso_c_binding` for all that the header declares.

    use model
    real(c_double), target :: u(100)
    status = loss_alloc(model_array(u), 0.1_c_double, 50_c_int64_t, value)

Fortran 2018: a parameter that may be NULL is `optional`. A struct of a Fortran array has its axes as they
are (`model_array`) or reversed (`model_transposed`), which is what parameters in C order take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..codegen.kernel_memory import KernelMemory
from .fortran_text import FORTRAN_TYPE, Names, colons, comment, copied, filled, statement
from .header import MEANS, array_types, blas_of, shape_of
from .library import Library
from .signature import (
    C_TYPE,
    ArrayParameter,
    CFunction,
    OutParameter,
    Parameter,
    ScalarParameter,
    struct_name,
)
from .statuses import BREACHES, EXCEPTIONS, KINDS, enumerator

MOST_AXES = 15


def fortran_text(library: Library) -> str:
    """The whole module."""
    return "\n".join([*Module(library).lines(), ""])


@dataclass
class Module:
    """The module on its way."""

    library: Library
    names: Names = field(default_factory=Names)
    OWN: ClassVar = ("array", "transposed", "values", "strerror", "aligned", "free", "allocator")
    """What the module has besides functions, behind the library's name."""
    FAILURES: ClassVar[Sequence[str]] = (*EXCEPTIONS, *BREACHES)
    """Kinds of failures."""
    FIRST: ClassVar[dict[str, str]] = {}
    """The parameters of all functions, before their own, and how they are declared."""

    def __post_init__(self) -> None:
        name = self.library.name
        symbols = {f.symbol.lower() for f in self.library.functions}
        self.module = self.names.of(f"{name}_module" if name.lower() in symbols else name)
        self.names.taken |= {self.own(word).lower() for word in self.OWN}
        self.names.taken |= {self.struct(*kind).lower() for kind in array_types(self.library)}
        self.names.taken |= {one.lower() for _, listed in self.helpers() for one in listed}
        self.functions = [(f, self.names.of(f.symbol)) for f in self.library.functions]

    def own(self, name: str) -> str:
        return f"{self.library.name}_{name}"

    def struct(self, dtype: str, rank: int) -> str:
        return struct_name(self.library.name, dtype, rank)

    @property
    def helped(self) -> list[tuple[str, int]]:
        """The arrays that Fortran can have."""
        return [(dtype, rank) for dtype, rank in array_types(self.library) if rank <= MOST_AXES]

    @property
    def allocates(self) -> bool:
        """Whether a function takes an allocator."""
        return any(f.memory is KernelMemory.ALLOCATOR for f, _ in self.functions)

    def lines(self) -> Iterator[str]:
        yield from self.about()
        yield ""
        yield f"module {self.module}"
        yield "    use, intrinsic :: iso_c_binding"
        yield "    implicit none"
        yield f"    private :: {', '.join(self.hidden())}"
        yield ""
        yield from self.types()
        yield from self.statuses()
        yield from self.generics()
        yield "    interface"
        yield from self.c_library()
        for function, shown in self.functions:
            yield from self.declared(function, shown)
        yield "    end interface"
        yield ""
        yield "contains"
        yield ""
        yield from self.strerror()
        yield from self.memory()
        for dtype, rank in self.helped:
            yield from self.converted(dtype, rank)
        for function, shown in self.functions:
            yield from self.wrapper(function, shown)
        yield f"end module {self.module}"

    def hidden(self) -> list[str]:
        """What only the module itself calls."""
        more = ["of_malloc", "released"] if self.allocates else []
        return ["c_strerror", "c_strlen", "c_malloc", *more]

    def converted(self, dtype: str, rank: int) -> Iterator[str]:
        yield from self.struct_of_array(dtype, rank)
        yield from self.array_of_struct(dtype, rank)

    def about(self) -> Iterator[str]:
        blas = f", BLAS ({', '.join(blas_of(self.library))})" if self.library.uses_blas else ""
        yield from comment(
            f"{self.library.name}: compiled by mutadc. Needs libm{blas}; no Python. Fortran 2018.",
            "",
            "Arrays are handed over as structs that point to them. Python's arrays are in C order unless said"
            " otherwise, the last axis the fastest; in Fortran the first is. So:",
            f"  {self.own('transposed')}(a): axes reversed, u[i, j] of Python is a(j + 1, i + 1). Parameters"
            " in C order take it.",
            f"  {self.own('array')}(a): axes as they are, u[i, j] of Python is a(i + 1, j + 1). Parameters"
            " in Fortran order, or of any strides, take it.",
            f"  {self.own('values')}(made): a copy of an array that a function returned, axes as Python has"
            " them.",
            "With one axis there is no difference. A layout that does not fit is a status, never a wrong"
            " number. Declare `target` what is handed over: functions store to it.",
            "",
            "A function that returns other than 0 has failed: iand(status, 255) is the kind of the failure, "
            f"and {self.own('strerror')}(status) has its words. The `optional` may be left out. Unsigned"
            " integers of C are signed ones here.",
            "",
            "f_alloc is f with memory of malloc. The header says what this file leaves out.",
            indent="",
        )

    def helpers(self) -> Iterator[tuple[str, list[str]]]:
        """Generic procedures, and those that each stands for."""
        for own in ("array", "transposed", "values"):
            only = [own if rank > 1 or own != "transposed" else "array" for _, rank in self.helped]
            yield (
                own,
                [f"{k}_{dtype}_{rank}" for k, (dtype, rank) in zip(only, self.helped, strict=True)],
            )

    # Declarations.

    def types(self) -> Iterator[str]:
        for dtype, rank in array_types(self.library):
            yield from comment(f"An array of {C_TYPE[dtype]}; strides are counted in elements.")
            yield f"    type, bind(c) :: {self.struct(dtype, rank)}"
            yield "        type(c_ptr) :: data = c_null_ptr"
            if rank:
                yield f"        integer(c_int64_t) :: shape({rank}) = 0"
                yield f"        integer(c_int64_t) :: strides({rank}) = 0"
            yield f"    end type {self.struct(dtype, rank)}"
            yield ""
        if self.allocates:
            yield from comment("Memory for functions whose sizes depend on data.")
            yield f"    type, bind(c) :: {self.own('allocator')}"
            yield "        type(c_funptr) :: allocate"
            yield "        type(c_funptr) :: release"
            yield "        type(c_ptr) :: state = c_null_ptr"
            yield f"    end type {self.own('allocator')}"
            yield ""

    def statuses(self) -> Iterator[str]:
        yield from comment("Kinds of failure: iand(status, 255).")
        for kind, number in (("OK", 0), *((k, KINDS[k]) for k in self.FAILURES)):
            name = enumerator(kind) if number else kind
            yield f"    integer(c_int), parameter :: {self.library.name.upper()}_{name} = {number}"
        yield ""

    def generics(self) -> Iterator[str]:
        """One name for what there is of each dtype and rank."""
        for own, specifics in self.helpers():
            if specifics:
                yield f"    interface {self.own(own)}"
                yield from statement("module procedure ", specifics, "", "        ")
                yield f"    end interface {self.own(own)}"
                yield ""
        own_ones = dict.fromkeys(one for _, specifics in self.helpers() for one in specifics)
        if own_ones:
            yield from statement("private :: ", own_ones, "", "    ")
            yield ""

    def c_library(self) -> Iterator[str]:
        """What the module itself calls."""
        yield from (
            f'        function c_strerror(status) bind(c, name="{self.own("strerror")}") result(words)',
            "            import :: c_int, c_ptr",
            "            integer(c_int), value :: status",
            "            type(c_ptr) :: words",
            "        end function c_strerror",
            "",
            '        function c_strlen(words) bind(c, name="strlen") result(length)',
            "            import :: c_ptr, c_size_t",
            "            type(c_ptr), value :: words",
            "            integer(c_size_t) :: length",
            "        end function c_strlen",
            "",
        )
        yield from self.memory_of_c()

    def memory_of_c(self) -> Iterator[str]:
        yield from (
            '        function c_malloc(bytes) bind(c, name="malloc") result(block)',
            "            import :: c_ptr, c_size_t",
            "            integer(c_size_t), value :: bytes",
            "            type(c_ptr) :: block",
            "        end function c_malloc",
            "",
            "        ! Give back the block that `owner` is, or the data of a result.",
            f'        subroutine {self.own("free")}(block) bind(c, name="free")',
            "            import :: c_ptr",
            "            type(c_ptr), value :: block",
            f"        end subroutine {self.own('free')}",
            "",
        )

    def declared(self, function: CFunction, shown: str) -> Iterator[str]:
        """The interfaces of one function and of its `_worksize`, with what they are for."""
        names = self.parameter_names(function, shown)
        means = MEANS[function.mode].format(python=function.python, wrt=", ".join(function.wrt))
        yield from comment(
            means,
            *(line for p in function.parameters for line in self.described(names, p)),
            *self.about_memory(function),
            indent="        ",
        )
        own = self.of_memory(function)
        given = [*self.FIRST, *(names[p.name] for p in function.parameters), *own]
        yield from statement(f"function {shown}(", given, ") &", "        ")
        yield f'                bind(c, name="{function.symbol}") result(status)'
        yield "            import"
        yield from self.parameters(function, names, "            ")
        for name, kind in own.items():
            yield f"            {kind} :: {name}"
        yield "            integer(c_int) :: status"
        yield f"        end function {shown}"
        yield ""
        if function.sized:
            yield from self.declared_size(function, shown)

    def of_memory(self, function: CFunction) -> dict[str, str]:
        """The parameters behind a function's own, and how they are declared."""
        if function.sized:
            return {"work": "type(c_ptr), value", "work_bytes": "integer(c_int64_t), value"}
        return {"allocator": f"type({self.own('allocator')}), intent(in)"}

    def declared_size(self, function: CFunction, shown: str) -> Iterator[str]:
        names = Names()
        names.taken.add(f"{shown}_worksize".lower())
        sizes = [names.of(s.name) for s in function.sizes]
        yield from statement(f"function {shown}_worksize(", sizes, ") &", "        ")
        yield f'                bind(c, name="{function.symbol}_worksize") result(work_bytes)'
        yield "            import :: c_int64_t"
        for name in sizes:
            yield f"            integer(c_int64_t), value :: {name}"
        yield "            integer(c_int64_t) :: work_bytes"
        yield f"        end function {shown}_worksize"
        yield ""

    def parameter_names(self, function: CFunction, shown: str) -> dict[str, str]:
        """What Fortran calls the parameters of a function."""
        names = Names()
        names.taken |= {
            *self.asked(function),
            self.own("aligned").lower(),
            self.own("free").lower(),
        }
        names.taken |= {shown.lower(), f"{shown}_worksize".lower(), f"{shown}_alloc".lower()}
        names.taken |= {self.struct(*kind).lower() for kind in array_types(self.library)} | {
            *self.FIRST
        }
        return {p.name: names.of(p.name) for p in function.parameters}

    def parameters(self, function: CFunction, names: dict[str, str], indent: str) -> Iterator[str]:
        """Their declarations."""
        for name, kind in self.FIRST.items():
            yield f"{indent}{kind.format(self.library.name)} :: {name}"
        for p in function.parameters:
            match p:
                case ScalarParameter():
                    kind = f"{FORTRAN_TYPE[C_TYPE[p.type]]}, value"
                case ArrayParameter():
                    optional = ", optional" if p.optional else ""
                    kind = f"type({self.struct(p.key.dtype, p.key.rank)}), intent(in){optional}"
                case OutParameter():
                    type_ = (
                        FORTRAN_TYPE[C_TYPE[p.type]]
                        if p.rank is None
                        else f"type({self.struct(p.type, p.rank)})"
                    )
                    kind = f"{type_}, intent(out), optional"
            yield f"{indent}{kind} :: {names[p.name]}"

    def described(self, names: dict[str, str], p: Parameter) -> Iterator[str]:
        """What the comment of a function says of a parameter, if there is more than its declaration."""
        told = re.sub("[,;] or NULL", "; optional", p.comment)
        if isinstance(p, ArrayParameter):
            helper = self.own("transposed" if p.key.layout == "C" and p.key.rank > 1 else "array")
            yield f"  {names[p.name]}: {helper}(a), in Python {shape_of(p)}; {told}"
        elif told:
            yield f"  {names[p.name]}: {told}"

    def about_memory(self, function: CFunction) -> Iterator[str]:
        if function.memory is KernelMemory.AREA:
            yield f"  work: {function.symbol}_worksize(...) bytes at a multiple of 64, c_null_ptr for none"
        else:
            yield "  allocator: memory, for the time of the call"

    # Procedures.

    def strerror(self) -> Iterator[str]:
        name = self.own("strerror")
        yield from comment("The words of a status, with file and line where there are any.")
        yield from (
            f"    function {name}(status) result(words)",
            "        integer(c_int), intent(in) :: status",
            "        character(:), allocatable :: words",
            "        character(kind=c_char), pointer :: letters(:)",
            "        type(c_ptr) :: found",
            "        integer :: k",
            "        found = c_strerror(status)",
            "        call c_f_pointer(found, letters, [c_strlen(found)])",
            "        allocate (character(size(letters)) :: words)",
            "        do k = 1, size(letters)",
            "            words(k:k) = letters(k)",
            "        end do",
            f"    end function {name}",
            "",
        )

    def memory(self) -> Iterator[str]:
        aligned = self.own("aligned")
        yield from comment("The first multiple of 64 in a block; c_null_ptr in c_null_ptr.")
        yield from (
            f"    function {aligned}(block) result(work)",
            "        type(c_ptr), intent(in) :: block",
            "        type(c_ptr) :: work",
            "        integer(c_intptr_t) :: address",
            "        address = transfer(block, address)",
            "        work = transfer((address + 63) / 64 * 64, work)",
            f"    end function {aligned}",
            "",
        )
        if self.allocates:
            yield from self.allocator()

    def allocator(self) -> Iterator[str]:
        """What functions call to have memory of malloc, and to give it back."""
        yield from (
            '    function of_malloc(state, bytes) bind(c, name="") result(block)',
            "        type(c_ptr), value :: state",
            "        integer(c_size_t), value :: bytes",
            "        type(c_ptr) :: block",
            "        block = c_malloc(bytes)",
            "        if (c_associated(state)) return ! it has none",
            "    end function of_malloc",
            "",
            '    subroutine released(state, block, bytes) bind(c, name="")',
            "        type(c_ptr), value :: state, block",
            "        integer(c_size_t), value :: bytes",
            f"        call {self.own('free')}(block)",
            "        if (c_associated(state) .or. bytes == 0) return ! they are not needed",
            "    end subroutine released",
            "",
        )

    def struct_of_array(self, dtype: str, rank: int) -> Iterator[str]:
        """The struct of an array, of any strides: they are distances of elements."""
        struct, type_ = self.struct(dtype, rank), FORTRAN_TYPE[C_TYPE[dtype]]
        orders = [("array", range(rank)), ("transposed", reversed(range(rank)))]
        for own, axes in orders[: max(rank, 1)]:
            yield f"    function {own}_{dtype}_{rank}(a) result(made)"
            yield f"        {type_}, intent(in), target :: a{colons(rank)}"
            yield f"        type({struct}) :: made"
            if not rank:
                yield "        made%data = c_loc(a)"
            else:
                yield from filled(rank, list(axes))
            yield f"    end function {own}_{dtype}_{rank}"
            yield ""

    def array_of_struct(self, dtype: str, rank: int) -> Iterator[str]:
        """A copy of what a struct describes."""
        struct, type_ = self.struct(dtype, rank), FORTRAN_TYPE[C_TYPE[dtype]]
        name = f"values_{dtype}_{rank}"
        kept = ", allocatable" if rank else ""
        yield f"    function {name}(made) result(a)"
        yield f"        type({struct}), intent(in) :: made"
        yield f"        {type_}{kept} :: a{colons(rank)}"
        yield f"        {type_}, pointer :: element"
        if not rank:
            yield "        call c_f_pointer(made%data, element)"
            yield "        a = element"
        else:
            yield from copied(rank)
        yield f"    end function {name}"
        yield ""

    def wrapper(self, function: CFunction, shown: str) -> Iterator[str]:
        """The function with memory of malloc."""
        names = self.parameter_names(function, shown)
        given = [*self.FIRST, *(names[p.name] for p in function.parameters)]
        area = function.sized
        owned = self.is_owned(function)
        yield from comment(f"{function.symbol}, {self.about_wrapper(function)}")
        head = statement(
            f"function {shown}_alloc(",
            [*given, *(["owner"] if owned else [])],
            ") result(status)",
            "    ",
        )
        yield from head
        yield from self.parameters(function, names, "        ")
        if owned:
            yield "        type(c_ptr), intent(out) :: owner"
        yield "        integer(c_int) :: status"
        yield from (
            self.called_with_area(function, shown, names)
            if area
            else (self.called_with_allocator(shown, given))
        )
        yield f"    end function {shown}_alloc"
        yield ""

    def is_owned(self, function: CFunction) -> bool:
        """Whether what a wrapper has allocated is handed to its caller, with results in it."""
        return function.sized and function.has_arrays

    def about_wrapper(self, function: CFunction) -> str:
        freed = "owner" if self.is_owned(function) else "made%data"
        more = f" Result arrays lie in memory to give back: call {self.own('free')}({freed})."
        return f"with memory of malloc.{more if function.has_arrays else ''}"

    def called_with_allocator(self, shown: str, given: list[str]) -> Iterator[str]:
        yield f"        type({self.own('allocator')}) :: allocator"
        yield "        allocator%allocate = c_funloc(of_malloc)"
        yield "        allocator%release = c_funloc(released)"
        yield from statement(f"status = {shown}(", [*given, "allocator"], ")", "        ")

    def called_with_area(
        self, function: CFunction, shown: str, names: dict[str, str]
    ) -> Iterator[str]:
        yield "        type(c_ptr) :: area"
        yield from self.asked_size(function, shown, names)
        yield "        area = c_null_ptr"
        yield "        if (work_bytes > 0) area = c_malloc(int(work_bytes + 64, c_size_t))"
        yield "        if (.not. c_associated(area)) work_bytes = 0"
        given = [names[p.name] for p in function.parameters]
        call = [*given, f"{self.own('aligned')}(area)", "work_bytes"]
        yield from statement(f"status = {shown}(", call, ")", "        ")
        if function.has_arrays:
            yield "        owner = area"
            yield "        if (status == 0) return"
            yield "        owner = c_null_ptr"
        yield f"        call {self.own('free')}(area)"

    def asked_size(self, function: CFunction, shown: str, names: dict[str, str]) -> Iterator[str]:
        """How many bytes a call takes."""
        optional = {p.name for p in function.arrays() if p.optional}
        yield f"        integer(c_int64_t) :: {', '.join(['work_bytes', *self.asked(function)])}"
        for variable, size in zip(self.asked(function), function.sizes, strict=True):
            name = names[size.parameter]
            value = name if size.axis is None else f"{name}%shape({size.axis + 1})"
            if size.parameter in optional:
                yield f"        {variable} = 0"
                yield f"        if (present({name})) {variable} = {value}"
            else:
                yield f"        {variable} = {value}"
        yield from statement(
            f"work_bytes = {shown}_worksize(", self.asked(function), ")", "        "
        )

    def asked(self, function: CFunction) -> list[str]:
        """Variables for what the size is asked for."""
        return [f"extent_{k}" for k, _ in enumerate(function.sizes, 1)]
