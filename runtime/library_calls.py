"""Calls of a library that `mutadc` has made, from Python: what `--emit python` puts beside the library.

This module and those that it imports are copied into each package as they are: they need NumPy, and
nothing else of mutad. The package's tables say what each function of the library takes and returns;
`Function` has the calls that a compiled function has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import keys
from .keys import Array
from .library_arguments import ArrayParameter, NumberParameter
from .library_entries import Either, Entry, Results, Tree

OPTIONS = {
    mode: f"--{mode.replace('_', '-')}" for mode in ("grad", "value_and_grad", "vjp", "jvp", "hvp")
}
Parameter = ArrayParameter | NumberParameter


def named(function: Any, name: str, module: str) -> Any:
    """A function under the name by which it is found, and pickled."""
    function.__qualname__, function.__module__ = name, module
    function.__name__ = name.rpartition(".")[2]
    return function


def copies(given: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the arrays among the arguments."""
    return {
        name: keys.copy_of_array(value) if isinstance(value, np.ndarray) else value  # pyright: ignore
        for name, value in given.items()
    }


@dataclass
class Function:
    """A function of the library, and its derivatives."""

    name: str
    parameters: tuple[Parameter, ...]
    entries: dict[str, Entry]
    """By mode: "primal", "grad", "value_and_grad", "vjp", "jvp", "hvp"."""
    wrt: dict[str, tuple[int, ...]]
    """Of each derivative the positions that it was compiled with respect to."""
    names: tuple[str, ...]
    """Of each parameter the name of its slot."""

    def __post_init__(self) -> None:
        self.parameter_names = tuple(p.name for p in self.parameters)
        self.array_positions = [
            k for k, p in enumerate(self.parameters) if isinstance(p, ArrayParameter)
        ]

    # What is passed.

    def checked(self, values: Sequence[Any]) -> dict[str, Any]:
        """The arguments by the names of their slots."""
        return {
            name: p.checked(value)
            for name, p, value in zip(self.names, self.parameters, values, strict=True)
        }

    def itself(self, given: Mapping[str, Any]) -> dict[int, Any]:
        """The arguments by position."""
        return {k: given[name] for k, name in enumerate(self.names)}

    def selected(self, mode: str, wrt: Any) -> tuple[tuple[int, ...], bool]:
        """The positions that `wrt` names; ValueError where one was not compiled."""
        positions, single = keys.resolve_wrt(wrt, self.parameter_names)
        for position in positions:
            self.require_compiled(mode, position)
        return positions, single

    def require_compiled(self, mode: str, position: int) -> None:
        compiled = self.wrt[mode]
        if position in compiled:
            return
        name = self.parameter_names[position]
        there = ", ".join(self.parameter_names[k] for k in compiled)
        raise ValueError(
            f"{self.name}.{mode} was compiled with respect to {there}, not to {name!r}: "
            f"mutadc {OPTIONS[mode]} {self.name}:{there.replace(' ', '')},{name}"
        )

    def beside(
        self, mode: str, suffix: str, given: dict[str, Any], *, zero: bool
    ) -> dict[int, Array]:
        """New arrays for the slots `u_grad`, `u_bar`, ...: by position; they are put in `given`."""
        found: dict[int, Array] = {}
        taken = {slot.name for slot in self.entries[mode].slots if slot.kind == "array"}
        for position in self.array_positions:
            slot = f"{self.names[position]}_{suffix}"
            parameter = self.parameters[position]
            if slot in taken and slot not in given and isinstance(parameter, ArrayParameter):
                found[position] = parameter.like(given[self.names[position]])
                if zero:
                    found[position].fill(0)
                given[slot] = found[position]
        return found

    def gathered(
        self,
        positions: Sequence[int],
        single: bool,
        arrays: Mapping[int, Array],
        results: Results,
        suffix: str,
    ) -> Any:
        """What was asked for: arrays, and numbers among the results."""
        made = [
            arrays[p] if p in arrays else results[f"{self.names[p]}_{suffix}"] for p in positions
        ]
        return made[0] if single else tuple(made)

    # Calls.

    def primal(self, values: Sequence[Any]) -> Any:
        given, entry = self.checked(values), self.entries["primal"]
        return entry.run(given).built(entry.result, self.itself(given))

    def grad(self, values: Sequence[Any], wrt: Any) -> Any:
        return self.gradient("grad", values, wrt)[1]

    def value_and_grad(self, values: Sequence[Any], wrt: Any) -> Any:
        return self.gradient("value_and_grad", values, wrt)

    def gradient(self, mode: str, values: Sequence[Any], wrt: Any) -> tuple[Any, Any]:
        """The value, None where it is not there, and the gradients that `wrt` names."""
        positions, single = self.selected(mode, wrt)
        given, entry = self.checked(values), self.entries[mode]
        arrays = self.beside(mode, "grad", given, zero=False)
        results = entry.run(given)
        value = results.built(entry.result, {})
        return value, self.gathered(positions, single, arrays, results, "grad")

    def vjp(self, values: Sequence[Any], wrt: Any) -> tuple[Any, Back]:
        """The result, and what pulls its cotangent back; the arguments as they are now are kept as copies."""
        positions, single = self.selected("vjp", wrt)
        given = self.checked(values)
        self.refuse_sharing("vjp", given)
        kept = copies(given)
        entry = self.entries["primal"]
        result = entry.run(given).built(entry.result, self.itself(given))
        return result, Back(self, kept, positions, single, shapes(result))

    def refuse_sharing(self, mode: str, given: Mapping[str, Any]) -> None:
        """ValueError where an array that a derivative is of shares memory with another one."""
        slots = {slot.name for slot in self.entries[mode].slots}
        arrays = [self.names[k] for k in self.array_positions]
        for i, a in enumerate(arrays):
            moves = not {f"{a}_bar", f"{a}_dot"}.isdisjoint(slots)
            if moves and keys.overlaps_itself(given[a]):
                raise ValueError(f"{self.name}.{mode}: {a} overlaps itself: pass a copy")
            for b in arrays[i + 1 :]:
                active = moves or not {f"{b}_bar", f"{b}_dot"}.isdisjoint(slots)
                if active and keys.sharing(given[a], given[b]):
                    raise ValueError(f"{self.name}.{mode}: {a} and {b} share memory: pass a copy")

    def jvp(self, values: Sequence[Any], tangents: Mapping[str, Any]) -> tuple[Any, Any]:
        """The result and its tangent; arrays among the tangents are updated as the arguments are."""
        if not isinstance(tangents, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(tangents).__name__
            raise TypeError(f'jvp: tangents is {kind}: use a dict, as in tangents={{"u": du}}')
        given, entry = self.checked(values), self.entries["jvp"]
        copied = dict(self.tangents(given, tangents))
        dots = self.beside("jvp", "dot", given, zero=True)
        for slot in entry.slots:
            if slot.kind == "number" and slot.name not in given:
                given[slot.name] = 0.0
        for k in self.array_positions:
            if (slot_name := f"{self.names[k]}_dot") in given:
                dots[k] = given[slot_name]
        try:
            results = entry.run(given)
        finally:
            for own, made in copied.values():
                own[...] = made
        value = results.built(entry.result, self.itself(given))
        shown = dots | {k: own for k, (own, _) in copied.items()}
        return value, with_zeros(value, results.built(entry.dots, shown))

    def tangents(
        self, given: dict[str, Any], tangents: Mapping[str, Any]
    ) -> Iterator[tuple[int, tuple[Array, Array]]]:
        """Put the tangents in `given`; yields those arrays of which compiled code gets copies, with these."""
        for name, tangent in tangents.items():
            (position,), _ = keys.resolve_wrt(name, self.parameter_names, option="tangents")
            self.require_compiled("jvp", position)
            parameter, slot = self.parameters[position], f"{self.names[position]}_dot"
            if not isinstance(parameter, ArrayParameter):
                if isinstance(tangent, bool) or not isinstance(tangent, int | float | np.generic):
                    kind = type(tangent).__name__
                    raise TypeError(f"jvp: the tangent of {name!r} is {kind}: use a number")
                given[slot] = float(tangent)
                continue
            primal = given[self.names[position]]
            if type(tangent) is not np.ndarray:
                kind = type(tangent).__name__
                raise TypeError(
                    f"jvp: the tangent of {name!r} is {kind}: use an array of its shape and dtype"
                )
            if tangent.shape != primal.shape or tangent.dtype != primal.dtype:
                raise ValueError(
                    f"jvp: the tangent of {name!r} is {tangent.dtype}{list(tangent.shape)}, "
                    f"the array {primal.dtype}{list(primal.shape)}"
                )
            if not tangent.flags.writeable:
                raise ValueError(f"jvp: the tangent of {name!r} is read-only")
            if not tangent.flags.aligned or keys.overlaps_itself(tangent):
                raise ValueError(f"jvp: the tangent of {name!r} is not aligned or overlaps itself")
            try:
                given[slot] = parameter.beside.checked(tangent)
            except (TypeError, ValueError):  # another layout
                made = parameter.like(primal)
                made[...] = tangent
                given[slot] = made
                yield position, (tangent, made)

    def hvp(self, values: Sequence[Any], direction: Any, wrt: Any) -> Any:
        """The Hessian times a direction: of what `wrt` names, where all else rests."""
        positions, single = self.selected("hvp", wrt)
        given, entry = self.checked(values), self.entries["hvp"]
        directions = (direction,) if single else tuple(direction)
        if len(directions) != len(positions):
            raise ValueError(
                f"wrt names {len(positions)} arguments, and there are {len(directions)} directions"
            )
        for position, one in zip(positions, directions, strict=True):
            self.direct(position, one, given)
        self.beside("hvp", "dot", given, zero=True)
        for slot in entry.slots:
            if slot.kind == "number" and slot.name not in given:
                given[slot.name] = 0.0
        arrays = self.beside("hvp", "hvp", given, zero=False)
        return self.gathered(positions, single, arrays, entry.run(given), "hvp")

    def direct(self, position: int, direction: Any, given: dict[str, Any]) -> None:
        """Put a direction in `given`, as a copy of the argument's layout."""
        name, parameter = self.names[position], self.parameters[position]
        primal = given[name]
        if np.shape(direction) != np.shape(primal):
            raise ValueError(
                f"the direction of {self.parameter_names[position]!r} has shape {np.shape(direction)}, "
                f"not {np.shape(primal)}"
            )
        if isinstance(parameter, ArrayParameter):
            made = parameter.like(primal)
            made[...] = direction
            given[f"{name}_dot"] = made
        else:
            given[f"{name}_dot"] = float(direction)


@dataclass(frozen=True, eq=False)
class Back:
    """Pulls cotangents back through one call: `back(out_bar, u=...)`, any number of times.

    `out_bar` is the cotangent of the result (None for none, a tuple for a tuple); keywords are cotangents of
    the final values of array arguments, by parameter name. Returns the cotangents of the initial values of
    what `wrt` named. It runs the function again, on copies of the arguments as they were.
    """

    function: Function
    kept: dict[str, Any]
    wrt: tuple[int, ...]
    single: bool
    shape: Any

    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        f = self.function
        entry = f.entries["vjp"]
        given = copies(self.kept)
        bars = f.beside("vjp", "bar", given, zero=True)
        for position, bar in self.cotangents(entry.result, out_bar, self.shape, given):
            self.add(position, bar, bars)
        for name, bar in final.items():
            position = f.parameter_names.index(name) if name in f.parameter_names else -1
            if position not in f.array_positions:
                raise TypeError(f"back: {name!r} is not an array parameter of {f.parameter_names}")
            self.add(position, bar, bars)
        for slot in entry.slots:
            if slot.kind != "out" and slot.name not in given:
                given[slot.name] = None if slot.kind == "array" else 0.0
        return f.gathered(self.wrt, self.single, bars, entry.run(given), "bar")

    def add(self, position: int, bar: Any, bars: Mapping[int, Array]) -> None:
        """Add a cotangent of an argument's final contents to its shadow, where anything depends on it."""
        f = self.function
        parameter, name = f.parameters[position], f.parameter_names[position]
        assert isinstance(parameter, ArrayParameter)
        if parameter.type.kind != "f":
            raise TypeError(f"back: {name!r} holds no floats, so it has no cotangent")
        own = shaped(bar, self.kept[f.names[position]].shape, name)
        if position in bars:
            bars[position][...] += own

    def cotangents(
        self, tree: Tree, bar: Any, shape: Any, given: dict[str, Any]
    ) -> Iterator[tuple[int, Any]]:
        """Put the cotangents of results in `given`; yields those of arguments that are returned."""
        entry = self.function.entries["vjp"]
        if isinstance(tree, tuple):
            items: tuple[Tree, ...] = tree
            parts = [None] * len(items) if bar is None else bar
            if not isinstance(parts, tuple | list) or len(parts) != len(items):  # pyright: ignore
                raise TypeError(
                    f"the result is a tuple of {len(items)}, so its cotangent is one too"
                )
            for item, part, extents in zip(items, parts, shape, strict=True):  # pyright: ignore
                yield from self.cotangents(item, part, extents, given)
        elif bar is None:
            return
        elif tree is None:
            raise TypeError("the function returns None, which has no cotangent")
        elif isinstance(tree, int):
            yield tree, bar
        else:
            tree = tree.name if isinstance(tree, Either) else tree
            slot = entry.outs[tree]
            if slot.type not in keys.FLOATS:
                raise TypeError(f"the result is of type {slot.type}, which has no cotangent")
            if slot.rank is None:
                if np.ndim(bar) or isinstance(bar, str | bytes):
                    raise TypeError(
                        f"the cotangent of a scalar result is a number, not {type(bar).__name__}"
                    )
                given[f"{tree}_bar"] = float(bar)
            else:
                made = np.array(shaped(bar, shape, "the result"), keys.NUMPY_SCALARS[slot.type])
                given[f"{tree}_bar"] = made

    def __reduce__(self) -> Any:
        raise TypeError(
            "the function that vjp returns can be neither copied nor pickled; pickle the arguments, and call "
            "vjp again"
        )


def shapes(result: Any) -> Any:
    """Of an array its extents, of a tuple a list of shapes, else None."""
    if isinstance(result, tuple):
        items: tuple[Any, ...] = result
        return [shapes(item) for item in items]
    return result.shape if isinstance(result, np.ndarray) else None


def shaped(bar: Any, shape: tuple[int, ...], what: str) -> Array:
    """A cotangent as an array; ValueError where it has another shape than what it belongs to."""
    given = np.asarray(bar)
    if given.shape != shape:
        raise ValueError(f"the cotangent of {what} has shape {given.shape}, not {shape}")
    return given


def with_zeros(value: Any, dot: Any) -> Any:
    """The tangent of a result, with zeros of its shape where nothing moves; None for what is no float."""
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        parts = [None] * len(items) if dot is None else dot
        return tuple(with_zeros(v, d) for v, d in zip(items, parts, strict=True))
    if dot is not None:
        return dot
    if isinstance(value, np.ndarray):
        return np.zeros_like(value) if value.dtype.kind == "f" else None  # pyright: ignore
    return type(value)(0.0) if isinstance(value, float | np.floating) else None
