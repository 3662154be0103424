"""The ops in an op: those of xDSL's walk, in its order."""

from __future__ import annotations

import ast
import io

import numpy as np
import pytest
from xdsl.dialects import memref, scf
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator

from mutad import compile
from mutad.compiler import pipeline
from mutad.compiler.derivative.source_words import segment
from mutad.dialects import array
from mutad.dialects.within import (
    every_op,
    every_op_of,
    has_kind_trait,
    have_regions,
    is_kind,
    ops_of_kind,
    ops_of_kinds,
)


def nested(x, n):
    total = 0.0
    for i in range(n):
        for j in range(n):
            if x[j] > i:
                total += x[j] * x[i]
    return total + (x * x).sum()


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Operation:
    """The IR of `nested` as `optimize` leaves it."""
    modules: list[Operation] = []
    monkeypatch.setattr(pipeline, "module_text", lambda made, _: modules.append(made) or "")
    compile(nested, grad=True).inspect("optimize", np.ones(3), 3, wrt="x")
    return modules[-1]


def test_every_op_is_what_walk_yields(module: Operation) -> None:
    assert every_op(module) == list(module.walk())
    for op in module.walk():
        assert every_op(op) == list(op.walk())
        for region in op.regions:
            assert every_op_of(region) == list(region.walk())
    assert len(every_op(module)) > 60


def test_kinds_are_those_of_isinstance(module: Operation) -> None:
    for kind in (array.LoopOp, scf.IfOp, array.MapOp, array.RaiseIfOp, IRDLOperation, Operation):
        assert ops_of_kind(module, kind) == [o for o in module.walk() if isinstance(o, kind)]
    both = [o for o in module.walk() if isinstance(o, array.LoopOp | memref.LoadOp)]
    assert ops_of_kinds(module, array.LoopOp, memref.LoadOp) == both
    for op in module.walk():
        for kinds in ((array.LoopOp,), (array.MapOp, array.LoopOp), (array.AllocOp, array.IndexOp)):
            assert is_kind(type(op), *kinds) == isinstance(op, kinds)
        assert has_kind_trait(type(op), IsTerminator) == op.has_trait(IsTerminator)


def test_classes_whose_ops_have_regions() -> None:
    assert have_regions((array.LoopOp, array.MapOp, scf.IfOp))
    for kind in (memref.LoadOp, IRDLOperation, Operation):
        assert not have_regions((array.LoopOp, kind))


SOURCE = '''def f(x):
    """é \x0c of two
    lines"""
    y = ("ü" + x[1:2], x **
         2); z = x.größe
    return y
'''


def test_segments_are_those_of_ast() -> None:
    nodes = [n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.expr | ast.stmt)]
    lines = io.StringIO(SOURCE).readlines()
    for node in nodes:
        assert segment(lines, node) == ast.get_source_segment(SOURCE, node)
    assert segment(lines[:2], nodes[0]) == ""
