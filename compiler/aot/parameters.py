"""What a kernel takes and returns, and the C parameters for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..argument_keys import ArrayKey, ScalarKey, leaves, parse
from ..codegen.entries.guard import Leaf
from ..codegen.entries.plan import GradientSignature, Tangents
from ..codegen.entries.result import (
    ResultSpec,
    arrays_and_scalars,
    is_fresh,
    leaves_of,
    slot_count,
    slots_of,
    stored_leaves,
)
from ..codegen.entries.writer import LLVM_TYPE
from ..diagnostics import CompileError
from ..frontend.build import Built
from .c_entry import MOST_FLAGS, KernelCall, Stored
from .exports import Export, span_in
from .package_functions import GROUPS, Either, Returned, Tree
from .signature import ArrayParameter, CFunction, OutParameter, Parameter, ScalarParameter


@dataclass
class Parameters:
    """Describes the C function of an export, and how it calls the kernel."""

    export: Export
    keys: tuple[str, ...]
    """One for each parameter; then for each input."""
    names: list[str]
    """Of the parameters, then of what is baked in."""
    inputs: list[tuple[str, Leaf]]
    built: Built
    signature: GradientSignature
    tangents: Tangents
    function: CFunction
    call: KernelCall
    compact: bool
    """Whether the kernel takes it that shadows and tangents of arrays of any strides have no gaps."""
    like: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    order: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Of each parameter its group, and its rank in that."""
    roles: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Of each parameter its group, and the position of the parameter that it belongs to."""
    trees: dict[str, Tree] = field(default_factory=dict[str, Tree])
    among: dict[str, Returned] = field(default_factory=dict[str, Returned])

    def add(self, parameter: Parameter, group: str, position: int = 0) -> None:
        """A further C parameter: in the order of `GROUPS`, and of `wrt` and parameters within one."""
        wrt = self.export.wrt
        self.roles[parameter.name] = group, position
        rank = wrt.index(position) if position in wrt else len(wrt) + position
        self.order[parameter.name] = GROUPS.index(group), rank
        self.function.parameters.append(parameter)

    def describe(self) -> None:
        self.primal_arguments()
        self.shadow_parameters()
        self.cotangent_parameters()
        self.tangent_parameters()
        self.result_parameters()
        self.function.parameters.sort(key=lambda p: self.order[p.name])

    def key(self, position: int) -> ArrayKey | ScalarKey:
        key = parse(self.keys[position])
        assert isinstance(key, ArrayKey | ScalarKey)
        return key

    def primal_arguments(self) -> None:
        written = set(self.built.written)
        active = {*self.export.wrt, *self.signature.shadows, *(p for _, p in self.tangents.moving)}
        for position, parameter in enumerate(self.export.parameters):
            key = self.key(position)
            if isinstance(key, ArrayKey):
                changed = position in written
                watched = changed or position in active
                comment = "read and written" if changed else "read"
                extents = parameter.extents or (None,) * key.rank
                made = ArrayParameter(
                    self.names[position], key, extents, changed, watched, False, comment
                )
            else:
                made = ScalarParameter(self.names[position], key.type, "")
            self.add(made, "arguments")
        for position, name in enumerate(self.names):
            if position >= len(self.export.parameters):
                self.call.baked[name] = self.inputs[position - len(self.export.parameters)][1]
            if list(leaves(parse(self.keys[position]))):
                self.call.operands.append(("parameter", name))
                self.call.leaves.append(name)

    def beside(self, position: int, suffix: str, comment: str, *, written: bool = True) -> str:
        """A further array parameter of the shape of one; its name."""
        p, key = self.export.parameters[position], self.key(position)
        assert isinstance(key, ArrayKey)
        if self.compact and key.layout == "S" and key.rank > 1:
            key = replace(key, layout="C")
        name = f"{self.names[position]}_{suffix}"
        extents = p.extents or (None,) * key.rank
        made = ArrayParameter(name, key, extents, written, True, False, comment)
        self.add(made, "tangents" if suffix == "dot" else "gradients", position)
        self.like.append((name, self.names[position]))
        return name

    def shadow_parameters(self) -> None:
        e = self.export
        for position in self.signature.shadows:
            if e.mode == "vjp":
                comment = (
                    f"in: the cotangent of the final {self.names[position]} (zeros if it has none);"
                    " out: that of the initial one is added to it"
                    if position not in self.built.written
                    else f"in: the cotangent of the final {self.names[position]};"
                    " out: that of the initial one"
                )
                self.call.operands.append(("parameter", self.beside(position, "bar", comment)))
            elif e.mode != "hvp" and position in e.wrt:
                comment = f"out: the gradient with respect to {self.names[position]}, overwritten"
                self.call.operands.append(("parameter", self.beside(position, "grad", comment)))
            else:
                self.call.operands.append(("like", self.names[position]))

    def cotangent_parameters(self) -> None:
        """One for each float result that the adjoint starts from."""
        results = list(leaves_of(self.built.results))
        names = self.shown_names(self.built.results, "result")
        for k, leaf in enumerate(results):
            if k not in self.signature.cotangents:
                continue
            if self.export.mode != "vjp":
                type_ = LLVM_TYPE[leaf["type"]]
                self.call.operands.append(("text", f"{type_} 1.0"))
                continue
            name = f"{names[id(leaf)]}_bar"
            comment = f"the cotangent of {names[id(leaf)]}"
            if leaf["kind"] == "scalar":
                made = ScalarParameter(name, leaf["type"], comment)
            else:
                key = ArrayKey(leaf["dtype"], ("?",) * leaf["rank"], "S")
                any_shape = (None,) * leaf["rank"]
                comment += ", or NULL"
                made = ArrayParameter(name, key, any_shape, False, False, True, comment)
            self.add(made, "cotangents")
            self.call.operands.append(("parameter", name))

    def tangent_parameters(self) -> None:
        e, taken = self.export, dict[int, str]()
        product = e.mode == "hvp"
        rows = {
            position: self.beside(
                position,
                "hvp",
                f"out: the Hessian's product, rows of {self.names[position]}, overwritten",
            )
            for position in (e.wrt if product else ())
            if isinstance(self.key(position), ArrayKey)
        }
        moving = {position for of, position in self.tangents.moving if of == "shadow"}
        self.call.zeroed += [name for position, name in rows.items() if position not in moving]
        for of, position in self.tangents.moving:
            name, key = self.names[position], self.key(position)
            if of == "shadow":
                if position in e.wrt:
                    self.call.operands.append(("parameter", rows[position]))
                else:
                    self.call.operands.append(("like", name))
            elif product and position not in e.wrt:
                zero = f"{LLVM_TYPE[key.type]} 0.0" if isinstance(key, ScalarKey) else ""
                self.call.operands.append(("text", zero) if zero else ("like", name))
            else:
                taken[position] = self.tangent_parameter(position)
                self.call.operands.append(("parameter", taken[position]))
        for position in e.wrt if e.mode in ("jvp", "hvp") else ():
            if position not in taken:
                self.tangent_parameter(position)

    def tangent_parameter(self, position: int) -> str:
        """The tangent of an argument; its name."""
        name, key = self.names[position], self.key(position)
        if isinstance(key, ScalarKey):
            comment = "the direction" if self.export.mode == "hvp" else f"the tangent of {name}"
            made = ScalarParameter(f"{name}_dot", key.type, comment)
            self.add(made, "tangents", position)
            return f"{name}_dot"
        if self.export.mode == "hvp":
            return self.beside(position, "dot", "the direction", written=False)
        if position in self.built.written:
            comment = f"in: the tangent of the initial {name}; out: that of the final one"
            return self.beside(position, "dot", comment)
        return self.beside(position, "dot", f"the tangent of {name}", written=False)

    # Results.

    def result_parameters(self) -> None:
        e, spec = self.export, self.built.results
        shows_value = e.mode in ("primal", "value_and_grad", "vjp", "jvp")
        self.results_of(spec, 0, "", wanted=shows_value)
        slot = slot_count(spec)
        suffix = "bar" if e.mode == "vjp" else "grad"
        if e.mode in ("grad", "value_and_grad", "vjp"):
            slot = self.scalar_gradients(slot, suffix)
        elif e.mode == "jvp":
            (dots,) = self.tangents.more
            self.results_of(dots, slot, "_dot", wanted=True)
            slot += slot_count(dots)
        elif e.mode == "hvp":
            bars, value, dots = self.tangents.more
            slot += slot_count(bars) + slot_count(value)
            slot = self.scalar_products(dots, slot)
        self.call.slots = slot

    def scalar_gradients(self, slot: int, suffix: str) -> int:
        """The gradients of numbers, in the order of `wrt`; what does not matter is 0."""
        slots = {p: slot + k for k, p in enumerate(self.signature.scalars)}
        for position in self.export.wrt:
            key = self.key(position)
            if isinstance(key, ScalarKey):
                name = self.names[position]
                out = OutParameter(
                    f"{name}_{suffix}", key.type, None,
                    f"out: the gradient with respect to {name}, or NULL",
                )  # fmt: skip
                self.place(out, slots.get(position), "gradients", position)
        return slot + len(self.signature.scalars)

    def scalar_products(self, dots: ResultSpec, slot: int) -> int:
        slots: dict[int, int] = {}
        for position, spec in zip(self.signature.scalars, dots["items"], strict=False):
            if spec["kind"] == "scalar":
                slots[position] = slot
                slot += 1
        for position in self.export.wrt:
            key = self.key(position)
            if isinstance(key, ScalarKey):
                name = self.names[position]
                out = OutParameter(
                    f"{name}_hvp",
                    key.type,
                    None,
                    f"out: the Hessian's product, row of {name}, or NULL",
                )
                self.place(out, slots.get(position), "gradients", position)
        return slot

    def place(
        self,
        out: OutParameter,
        slot: int | None,
        group: str = "results",
        position: int = 0,
    ) -> None:
        """A place for a number or an array that the kernel stores at `slot`; for zero without one."""
        self.add(out, group, position)
        if slot is None:
            self.call.zeros.append(out)
        else:
            self.call.stored.append(Stored(out, slot))

    def results_of(self, spec: ResultSpec, slot: int, suffix: str, *, wanted: bool) -> None:
        """Parameters for all results that the kernel stores from `slot` on, if they are `wanted`."""
        names = self.shown_names(spec, f"result{suffix}")
        if wanted:
            self.trees[suffix] = self.tree(spec, names)
        slots: dict[int, int] = {}
        for leaf in stored_leaves(spec):
            slots[id(leaf)] = slot
            if leaf["kind"] == "flag":
                self.call.flags.append(slot)
            slot += slots_of(leaf)
        for leaf in arrays_and_scalars(spec) if wanted else ():
            name = names[id(leaf)]
            match leaf["kind"]:
                case "scalar":
                    out = OutParameter(name, leaf["type"], None, "out, or NULL")
                    self.place(out, slots[id(leaf)])
                case "argument":
                    self.returned_argument(leaf, name)
                case _:
                    self.function.has_arrays = True
                    self.refuse_views(leaf, spec)
                    comment = "out: filled in, its data lies in memory of the call; or NULL"
                    out = OutParameter(name, leaf["dtype"], leaf["rank"], comment)
                    self.place(out, slots[id(leaf)])

    def tree(self, spec: ResultSpec, names: dict[int, str]) -> Tree:
        """What is returned, as a package builds it."""
        match spec["kind"]:
            case "none":
                return None
            case "tuple":
                return tuple(self.tree(item, names) for item in spec["items"])
            case "argument":
                position = self.position_of(spec["leaf"])
                return names[id(spec)] if position is None else position
            case "scalar" if spec.get("flag", MOST_FLAGS) < MOST_FLAGS:
                return Either(names[id(spec)], spec["python"], spec["flag"])
            case "array":
                found = [self.position_of(leaf) for leaf in spec.get("among", ())]
                inside = [k for k in found if k is not None]
                fresh = is_fresh(spec) and len(inside) == len(found)
                dot = "_dot" if names[id(spec)].startswith("result_dot") else ""
                self.among[names[id(spec)]] = fresh, tuple(f"{self.names[k]}{dot}" for k in inside)
            case _:
                pass
        return names[id(spec)]

    def position_of(self, leaf: int) -> int | None:
        """The position of an array argument, or of that of which it is the tangent; None of a constant."""
        if leaf < len(self.call.leaves):
            position = self.names.index(self.call.leaves[leaf])
        else:
            moving = self.tangents.moving
            shadows = self.signature.shadows
            position = moving[leaf - len(self.call.leaves) - len(shadows)][1]
        return position if position < len(self.export.parameters) else None

    @staticmethod
    def shown_names(spec: ResultSpec, base: str) -> dict[int, str]:
        """What C calls each result, by the identity of its description: `result`, `result_0_1`."""
        found: dict[int, str] = {}

        def visit(one: ResultSpec, name: str) -> None:
            if one["kind"] == "tuple":
                for k, item in enumerate(one["items"]):
                    visit(item, f"{name}_{k}")
            else:
                found[id(one)] = name

        visit(spec, base)
        return found

    def returned_argument(self, leaf: ResultSpec, name: str) -> None:
        """An argument that is returned itself: the struct that came in (tangents: has its own parameter)."""
        if leaf["leaf"] >= len(self.call.leaves):
            return
        argument = self.call.leaves[leaf["leaf"]]
        key = self.key(self.names.index(argument))
        assert isinstance(key, ArrayKey)
        out = OutParameter(name, key.dtype, key.rank, f"out: {argument} itself, or NULL")
        self.add(out, "results")
        self.call.stored.append(Stored(out, 0, argument))

    def refuse_views(self, leaf: ResultSpec, spec: ResultSpec) -> None:
        """Memory that could not be released: views into it are returned, and not it itself."""
        if not self.function.sized and (spec.get("owners") or "owner" in leaf):
            raise CompileError(
                span_in(self.export.function),
                "the function returns a view of an array that it has made",
                "return a copy: `return x.copy()`",
            )
