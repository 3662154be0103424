"""The functions that a process has once: which they are, and that modules have none of them."""

from __future__ import annotations

import ctypes
import gc
import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import mutad
from mutad.compiler.codegen.entries.entry import convention, entries
from mutad.compiler.codegen.entries.plan import signature_of
from mutad.compiler.codegen.support.functions import FUNCTIONS
from mutad.compiler.codegen.support.integer_powers import INTEGER_POWERS
from mutad.compiler.codegen.support.library import ORIGIN, functions_in, library, linked
from mutad.runtime import entry_code


def walk(u, n):
    while n > 0:
        v = np.zeros(u.size) + n
        u += v * u
        n -= 1
    return u.sum()


def test_all_that_is_not_inlined_is_in_the_library():
    every = {one.name: one for text, _ in FUNCTIONS.values() for one in functions_in(text)}
    exports = set(library().exports)
    inlined = {name for name, one in every.items() if "alwaysinline" in one.lines[0]}
    assert every.keys() - exports == inlined | {"mutad_drop"} | INTEGER_POWERS.keys()
    assert {"mutad_raise", "mutad_undo", "mutad_completed", "mutad_runtime_poll"} <= exports


def test_the_library_asks_for_what_its_symbols_say():
    made = library()
    module = llvm.parse_assembly(made.text)
    functions = {f.name for f in module.functions if f.is_declaration}
    asked = functions | {g.name for g in module.global_variables if g.is_declaration}
    assert made.symbols.keys() <= asked
    process = ctypes.CDLL(None)
    others = {name for name in asked - made.symbols.keys() if not name.startswith("llvm.")}
    assert [name for name in others if not hasattr(process, name)] == []
    assert ORIGIN not in made.symbols.values()


def test_a_declaration_has_types_and_what_matters_to_callers():
    text = "call ptr @mutad_alloc(ptr %ctx, i64 8)\ncall void @mutad_end(ptr %ctx, i32 0)"
    made = linked(text)
    assert made.definitions == ()
    assert list(made.declarations.values()) == [
        "declare noalias ptr @mutad_alloc(ptr, i64) nounwind",
        "declare void @mutad_end(ptr, i32) nounwind",
    ]
    assert made.symbols == {"mutad_alloc": ORIGIN, "mutad_end": ORIGIN}


def test_what_is_inlined_is_defined_with_what_it_calls():
    made = linked("call ptr @mutad_tape_pop(ptr %ctx, ptr %tape, i64 8)")
    heads = [line for line in made.definitions if line.startswith("define ")]
    assert [re.search(r"@(\w+)", head)[1] for head in heads] == [
        "mutad_tape_pop",
        "mutad_tape_data",
    ]
    assert made.symbols == {"mutad_tape_back": ORIGIN}


def test_modules_have_none_of_them():
    f = mutad.compile(walk, grad=True)
    u = np.ones(3)
    texts = [f.inspect("llvm", u, 2), f.inspect("llvm", u, 2, wrt="u")]
    called = convention(
        ("f64[?]C", "py_int"), (), "primal", (), {"kind": "none"}, (), signature_of(walk)
    )
    texts.append(entries(called).module())
    for text in texts:
        defined = set(re.findall(r"^define .*?@(\w+)", text, re.MULTILINE))
        assert defined.isdisjoint(library().exports)
        declared = set(re.findall(r"^declare .*?@(\w+)", text, re.MULTILINE))
        assert declared & set(library().exports)


def test_it_is_compiled_once_and_stays_while_something_calls_it():
    made: list[int] = []

    def compiled(**options: Any) -> Any:
        f = mutad.compile(walk, grad=True, cache=False, **options)
        compiler = f._dispatcher.compiler

        class Watched(type(compiler)):
            def support(self, opt: int) -> Any:
                made.append(opt)
                return super().support(opt)

        f._dispatcher.compiler = Watched()
        return f

    kept = dict(entry_code._support)
    entry_code._support.clear()
    try:
        first, second = compiled(opt=0), compiled(opt=1)
        want = [walk(np.ones(3), n) for n in range(4)]
        assert [first(np.ones(3), n) for n in range(4)] == want
        _, back = second.vjp(np.ones(3), 3, wrt=("u",))
        assert made == [3]
        entry_code._support.clear()
        gc.collect()
        assert [first(np.ones(3), n) for n in range(4)] == want
        np.testing.assert_array_equal(back(1.0)[0], first.grad(np.ones(3), 3, wrt="u"))
    finally:
        entry_code._support.update(kept)
