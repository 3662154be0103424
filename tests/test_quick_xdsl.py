"""What `dialects/quick_xdsl.py` puts in the place of xDSL's own methods answers as they do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Attribute, Block, ErasedSSAValue, Operation, Region, SSAValue, SSAValues
from xdsl.irdl import operations
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from mutad.dialects import array, quick_xdsl


@pytest.fixture(params=("transforms/fuse-rows.mlir", "derivative/reverse.mlir"))
def module(request: pytest.FixtureRequest, context: Context, root: Path) -> ModuleOp:
    text = (root / "lit-tests" / request.param).read_text()
    return Parser(context, text.split("// -----")[0]).parse_module()


def in_order(op: Operation, region_first: bool = False) -> Iterator[Operation]:
    """What `walk` promises, said in the shortest way."""
    if not region_first:
        yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.ops):
                yield from in_order(inner, region_first)
    if region_first:
        yield op


def test_ops_are_walked_in_order(module: ModuleOp) -> None:
    assert list(module.walk()) == list(in_order(module))
    assert list(module.walk(region_first=True)) == list(in_order(module, True))
    assert list(module.body.walk()) == list(module.body.block.walk()) == list(in_order(module))[1:]
    backwards = list(module.walk(reverse=True, region_first=True))
    assert backwards == list(in_order(module))[::-1]
    assert len(list(module.walk())) > 50


def test_blocks_and_traits_are_those_that_there_are(module: ModuleOp) -> None:
    traits = {type(trait) for op in module.walk() for trait in op.traits}
    for op in module.walk():
        for region in op.regions:
            assert list(region.blocks) == list(reversed(region.blocks))[::-1]
        for trait in traits:
            assert op.has_trait(trait) == any(isinstance(one, trait) for one in op.traits)
    assert arith.AddfOp.has_trait(next(iter(arith.AddfOp.traits)))
    assert not arith.AddfOp.has_trait(next(iter(memref.AllocaScopeReturnOp.traits)))


def test_what_was_handed_out_may_go(module: ModuleOp) -> None:
    """Its regions are entered before the next op is; what is erased meanwhile is not seen again."""
    expected = [op for op in in_order(module) if not isinstance(op.parent_op(), array.MapOp)]
    seen: list[Operation] = []
    for op in module.walk():
        seen.append(op)
        if isinstance(op, array.MapOp):
            while op.body.block.last_op is not None:
                op.body.block.erase_op(op.body.block.last_op, safe_erase=False)
    assert seen == expected
    for op in module.body.block.ops:
        op.detach()
    assert not list(module.body.block.ops)


def test_classes_are_those_of_the_bases(module: ModuleOp) -> None:
    kinds = {type(op) for op in module.walk()} | {
        type(r.type) for op in module.walk() for r in op.results
    }
    kinds |= {Operation, Attribute, SSAValue, Block, Region, arith.AddfOp, memref.LoadOp}
    objects: list[object] = [*module.walk(), module.body, module.body.block]
    objects += [value for op in module.walk() for value in (*op.operands, *op.results)]
    objects += [value.type for value in objects if isinstance(value, SSAValue)]
    for one in objects:
        for kind in kinds:
            assert isinstance(one, kind) == (kind in type(one).__mro__)
            assert issubclass(type(one), kind) == (kind in type(one).__mro__)
    assert all(type(kind) is quick_xdsl.PlainChecks for kind in kinds)


def test_arguments_by_name_are_those_that_are_declared(module: ModuleOp) -> None:
    found = 0
    for op in module.walk():
        assert isinstance(op, operations.IRDLOperation)
        definition = op.get_irdl_definition()
        for names, values in ((definition.operands, op.operands), (definition.results, op.results)):
            for name, _ in names:
                accessor = vars(type(op)).get(name)
                if isinstance(accessor, operations.BaseAccessor):
                    declared = accessor.index(SSAValues(values))
                    assert getattr(op, name) == declared
                    found += 1
        for name, accessor in vars(type(op)).items():
            if isinstance(accessor, operations.BaseAttrAccessor):
                sizes = accessor.option.container(op)[accessor.option.attribute_name]
                assert isinstance(sizes, DenseArrayBase)
                fresh = sizes.elt_type.unpack(sizes.data.data, len(sizes))
                assert sizes.get_values() == sizes.get_values() == fresh
                args = quick_xdsl.constructs_of(op, accessor.construct)
                got, declared = getattr(op, name), accessor.index(fresh, args)
                assert got == declared
                assert type(got) is type(declared)
                found += 1
    assert found > 50


def test_a_slice_of_results_still_has_types() -> None:
    number = arith.ConstantOp(IntegerAttr(1, i64))
    values = SSAValues((number.result, number.result))
    assert values[0] is number.result
    assert values[1:].types == (i64,)
    assert DenseArrayBase.from_list(i32, [2, 1]) == DenseArrayBase.from_list(i32, [2, 1])
    known = DenseArrayBase.from_list(i32, [2, 1])
    assert known.get_values() == (2, 1)
    assert known == DenseArrayBase.from_list(i32, [2, 1])
    assert hash(known) == hash(DenseArrayBase.from_list(i32, [2, 1]))


def test_new_ops_are_built_as_before() -> None:
    """Of single arguments, of lists, of None; what is too much or missing is an error."""
    n = arith.ConstantOp.from_int_and_width(4, builtin.IndexType())
    loop = scf.ForOp(n, n, n, [n.result], Block([scf.YieldOp(n)], arg_types=[n.result.type] * 2))
    assert (loop.lb, loop.iter_args) == (n.result, (n.result,))
    empty = scf.IfOp(arith.ConstantOp.from_int_and_width(1, 1), [], [scf.YieldOp()])
    assert empty.false_region.first_block is None
    with pytest.raises(ValueError, match="Expected 2 operand"):
        operations.irdl_op_init(
            n, arith.AddiOp.get_irdl_definition(), operands=[n], result_types=[i64],
            properties={}, attributes={}, successors=[], regions=[],
        )  # fmt: skip
    with pytest.raises(ValueError, match="Expected 2 operand"):
        arith.AddiOp.build(operands=[n], result_types=[i64])
    with pytest.raises(ValueError, match="non-variadic"):
        arith.AddiOp.build(operands=[n, [n, n]], result_types=[i64])
    alloc = memref.AllocOp.get(i64, None, [4])
    assert (tuple(alloc.dynamic_sizes), tuple(alloc.symbol_operands)) == ((), ())
    one_by_one = memref.AllocOp.__new__(memref.AllocOp)
    types = [alloc.memref.type]
    quick_xdsl.init_each(
        one_by_one, operands=[[n], []], result_types=types, properties=dict(alloc.properties)
    )
    at_once = memref.AllocOp([n], [], types[0])
    known = quick_xdsl.sizes_held(memref.LoadOp.get_irdl_definition().options, [1, 1], [1])
    assert known == []  # one at a time is what takes long
    index = [arith.ConstantOp.from_int_and_width(0, builtin.IndexType()).result]
    load = memref.LoadOp.__new__(memref.LoadOp)
    quick_xdsl.init_each(load, operands=[at_once.memref, index], result_types=[i64])
    assert memref.LoadOp.get(at_once, index).is_structurally_equivalent(load)
    assert at_once.is_structurally_equivalent(one_by_one)
    assert at_once.properties["operandSegmentSizes"] == DenseArrayBase.from_list(i32, [1, 0])


def test_a_hash_is_of_the_object(module: ModuleOp) -> None:
    values = [value for op in module.walk() for value in op.results]
    assert len({*values}) == len(values)
    assert all(hash(value) == object.__hash__(value) for value in (*values, *module.walk()))


def test_what_is_equal_is_the_same(module: ModuleOp) -> None:
    """By the built-in method, which does not say that others differ: it leaves that to them."""
    ops = list(module.walk())
    every = [*ops, *(one for op in ops for one in (*op.results, *op.regions))]
    every += [block for op in ops for region in op.regions for block in region.blocks]
    for one in every:
        assert type(one).__eq__ is object.__eq__
        assert [other is one for other in every] == [other == one for other in every]


def test_the_uses_of_values_are_those_of_the_operands(module: ModuleOp) -> None:
    """Also where operands were set: the last use is the first that is seen."""
    for op in [*module.walk()]:
        op.operands = list(op.operands)[::-1]
        op.operands = list(op.operands)[::-1]
    uses = [(value, op, k) for op in module.walk() for k, value in enumerate(op.operands)]
    assert len(uses) > 50
    for value in {value for value, _, _ in uses}:
        found = [(use.operation, use.index) for use in value.uses]
        assert found[::-1] == [(op, k) for v, op, k in uses if v is value]
        assert [use for use in value.uses if use._prev_use is None] == [value.first_use]  # pyright: ignore[reportPrivateUsage]


def test_what_is_used_is_not_erased() -> None:
    number = arith.ConstantOp(IntegerAttr(1, i64))
    total = arith.AddiOp(number, number)
    with pytest.raises(ValueError, match="still has uses"):
        number.erase()
    number.erase(safe_erase=False)
    assert {type(value) for value in total.operands} == {ErasedSSAValue}
    total.erase()


def test_copies_are_those_that_were(module: ModuleOp) -> None:
    """With names and places, of mapped operands; what they are copied from keeps its attributes."""
    for op in module.walk():
        mapped = {value: value for value in op.operands}
        for options in ({}, {"clone_operands": False}, {"clone_name_hints": False}):
            made = op.clone_without_regions(dict(mapped), **options)
            before = quick_xdsl.clone_any(op, dict(mapped), **options)
            assert type(made) is type(before)
            assert (made.location, list(made.operands)) == (op.location, list(before.operands))
            assert made.is_structurally_equivalent(before)
            assert len(made.regions) == len(op.regions)
            assert [r.name_hint for r in made.results] == [r.name_hint for r in before.results]
            made.attributes["new"] = builtin.UnitAttr()
            assert "new" not in op.attributes
    assert str(module.clone()) == str(module)


def test_hashes_of_attributes_are_taken_once() -> None:
    """And are what they were: equal for equal attributes, also where one was never asked before."""
    kinds = [
        (lambda: IntegerAttr(7, i64), lambda: IntegerAttr(7, i32)),
        (lambda: builtin.FloatAttr(0.5, builtin.f64), lambda: builtin.FloatAttr(0.5, builtin.f32)),
        (lambda: builtin.MemRefType(i64, [3, -1]), lambda: builtin.MemRefType(i64, [3, 2])),
        (lambda: builtin.IntegerType(17), lambda: builtin.IntegerType(16)),
        (lambda: builtin.StringAttr("u"), lambda: builtin.StringAttr("v")),
        (lambda: builtin.ArrayAttr([builtin.i1]), lambda: builtin.ArrayAttr([])),
        (lambda: DenseArrayBase.from_list(i64, [1]), lambda: DenseArrayBase.from_list(i64, [2])),
        (builtin.UnitAttr, builtin.IndexType),
        (lambda: arith.FastMathFlagsAttr("fast"), lambda: arith.FastMathFlagsAttr("none")),
    ]
    for make, other in kinds:
        one = make()
        assert hash(one) == hash(one) == hash(make())
        assert one == make()
        assert {one: 1}.get(make()) == 1
        assert other() not in {one: 1}


def test_an_attribute_that_is_none_is_refused_each_time() -> None:
    for _ in range(2):
        assert IntegerAttr(255, builtin.i8) == IntegerAttr(255, builtin.i8)
        with pytest.raises(VerifyException, match="out of range"):
            IntegerAttr(256, builtin.i8)
        with pytest.raises(VerifyException, match="shape"):
            builtin.MemRefType(i64, builtin.ArrayAttr([i64]))
        with pytest.raises(VerifyException, match="layout"):
            builtin.MemRefType(i64, [3], i64)
        with pytest.raises(VerifyException, match="value"):
            IntegerAttr.new(([], i64))
    dims = [builtin.IntAttr(3), builtin.IntAttr(-1)]
    same = [builtin.MemRefType(i64, shape) for shape in ([3, -1], dims, builtin.ArrayAttr(dims))]
    assert same[0] == same[1] == same[2]
    assert same[0].get_shape() == (3, -1)


def test_names_are_valid_and_have_no_number_at_the_end() -> None:
    number = arith.ConstantOp(IntegerAttr(1, i64)).result
    for _ in range(2):
        number.name_hint = "u_12"
        assert number.name_hint == "u"
        number.name_hint = None
        assert number.name_hint is None
        with pytest.raises(ValueError, match="Invalid OpResult name format `2u`"):
            number.name_hint = "2u"


def test_every_dialect_of_xdsl_can_still_be_loaded() -> None:
    """Their classes have our metaclass then."""
    code = (
        "import mutad.dialects\n"
        "from xdsl.dialects import get_all_dialects\n"
        "print(sum(len([*make().operations]) for make in get_all_dialects().values()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 500
