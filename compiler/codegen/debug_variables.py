"""Variables for debuggers: the parameters of the Python function, as its kernel is handed them.

A number is a number, an array its descriptor: where the first element is, extents, strides in elements.
::

    #dbg_value(ptr %u.1, !20, !DIExpression(DW_OP_LLVM_fragment, 0, 64), !9)
    #dbg_value(i64 %u.1.n0, !20, !DIExpression(DW_OP_LLVM_fragment, 64, 64), !9)
    #dbg_value(i64 1, !20, !DIExpression(DW_OP_LLVM_fragment, 128, 64), !9)

    (gdb) print u
    {data = 0x555555a851b0, shape = {50}, strides = {1}}

Parameters that the program binds anew are left out, and so are other variables: the IR does not say which of
its values they have at a line, and nothing is better than a wrong number.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from types import CodeType

from ..argument_keys import ArrayKey, Key, ScalarKey, leaves
from .debug_info import DebugInfo, Parameter, file_node, quoted
from .kernel_state import Descriptor
from .llvm_text import Metadata

WORD = 64


def parameters_of(code: CodeType, keys: Sequence[Key]) -> tuple[Parameter | None, ...]:
    """For each argument that these keys hand to the kernel, the parameter that it is all the time."""
    bound = set(_bound_anew(code))
    found: list[Parameter | None] = []
    for name, key in zip(code.co_varnames, keys, strict=False):
        if isinstance(key, ArrayKey | ScalarKey) and key != ScalarKey("None"):
            type_ = key.dtype if isinstance(key, ArrayKey) else key.type
            found.append(Parameter(name, type_) if name not in bound and type_ in TYPES else None)
        else:
            found += [None for _ in leaves(key)]
    return tuple(found)


def _bound_anew(code: CodeType) -> Iterator[str]:
    """The variables to which the code, or a function in it, assigns."""
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(("STORE_", "DELETE_")):
            value = instruction.argval
            yield from value if isinstance(value, tuple) else (str(value),)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _bound_anew(constant)


TYPES = {
    "py_bool": ("bool", 8, "boolean"),
    "py_int": ("int", 64, "signed"),
    "py_float": ("float", 64, "float"),
    "b1": ("bool", 8, "boolean"),
    **{f"i{n}": (f"int{n}", n, "signed") for n in (8, 16, 32, 64)},
    **{f"u{n}": (f"uint{n}", n, "unsigned") for n in (8, 16, 32, 64)},
    "f32": ("float32", 32, "float"),
    "f64": ("float64", 64, "float"),
}
"""Name, bits and encoding, by our names of types."""


def described(
    debug: DebugInfo, number: int, parameter: Parameter, value: str | Descriptor
) -> tuple[str, list[str]]:
    """A variable, and the records that say what it is: a typed operand, or an array's descriptor."""
    metadata, at = debug.metadata, debug.start.removeprefix(", !dbg ")
    type_ = basic_type(metadata, parameter.type)
    if isinstance(value, Descriptor):
        type_ = descriptor_type(metadata, parameter.type, type_, len(value.extents))
    variable = metadata.shared(
        f'!DILocalVariable(name: "{quoted(parameter.name)}", arg: {number}, scope: {debug.scope}, '
        f"file: {file_node(metadata, debug.subject.file)}, line: {debug.subject.line}, type: {type_})"
    )
    if not isinstance(value, Descriptor):
        return variable, [f"    #dbg_value({value}, {variable}, !DIExpression(), {at})"]
    words = [f"ptr {value.pointer}", *(f"i64 {x}" for x in (*value.extents, *value.strides))]
    return variable, [
        f"    #dbg_value({word}, {variable}, !DIExpression(DW_OP_LLVM_fragment, {WORD * k}, {WORD}), {at})"
        for k, word in enumerate(words)
    ]


def basic_type(metadata: Metadata, name: str) -> str:
    shown, bits, encoding = TYPES[name]
    return metadata.shared(
        f'!DIBasicType(name: "{shown}", size: {bits}, encoding: DW_ATE_{encoding})'
    )


def descriptor_type(metadata: Metadata, name: str, element: str, rank: int) -> str:
    """The structure that an array is for debuggers."""
    shared = metadata.shared
    fields = {
        "data": shared(
            f"!DIDerivedType(tag: DW_TAG_pointer_type, baseType: {element}, size: {WORD})"
        )
    }
    if rank:
        count = metadata.node(shared(f"!DISubrange(count: {rank})"))
        words = shared(
            f"!DICompositeType(tag: DW_TAG_array_type, baseType: {basic_type(metadata, 'i64')}, "
            f"size: {WORD * rank}, elements: {count})"
        )
        fields |= {"shape": words, "strides": words}
    members: list[str] = []
    offset = 0
    for field, type_ in fields.items():
        size = WORD if field == "data" else WORD * rank
        members.append(
            shared(
                f'!DIDerivedType(tag: DW_TAG_member, name: "{field}", baseType: {type_}, '
                f"size: {size}, offset: {offset})"
            )
        )
        offset += size
    return shared(
        f'!DICompositeType(tag: DW_TAG_structure_type, name: "{TYPES[name][0]}[{rank}]", '
        f"size: {offset}, elements: {metadata.node(', '.join(members))})"
    )
