"""Formats of ops are read when they are needed, and every one of ours can be read."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.irdl import IRDLOperation, OpDef

from mutad.dialects import activation, ad, array, dense, device, foreign, special
from mutad.dialects.lazy_formats import LazyFormat

DIALECTS = (
    *(activation.Activation, ad.Ad, array.Array),
    *(dense.Dense, device.Device, foreign.Foreign, special.Special),
)
DECLARED = [
    definition
    for dialect in DIALECTS
    for op in dialect.operations
    if issubclass(op, IRDLOperation)
    and (definition := op.get_irdl_definition()).assembly_format is not None
]


@pytest.mark.parametrize("definition", DECLARED, ids=lambda one: one.name)
def test_declared_formats_can_be_read(definition: OpDef):
    assert LazyFormat(str(definition.assembly_format), definition).read.stmts


UNREAD = """
import mutad.compiler.pipeline
import sys
assert "xdsl.irdl.declarative_assembly_format_parser" not in sys.modules
from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
op = arith.ConstantOp.from_int_and_width(3, i64)
print(arith.AddiOp(op, op))
assert "xdsl.irdl.declarative_assembly_format_parser" in sys.modules
"""


def test_the_compiler_reads_none_before_it_prints():
    done = subprocess.run(
        [sys.executable, "-c", UNREAD], capture_output=True, text=True, check=True
    )
    assert "arith.addi" in done.stdout
