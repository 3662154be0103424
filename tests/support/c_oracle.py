"""Programs called as C functions, and what each call must leave: that of the just-in-time compiler.

A call has a work area of exactly the size that is asked for, behind it a page that crashes. It is called
with areas full of NaN and full of other bytes: the numbers must not tell them apart.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from argument_rows import memory_of
from c_client import Client, Failed, export
from gradient_oracle import differentiable_positions

import mutad
from mutad import Active, Const, Duplicated
from mutad.compiler.aot.exports import Export
from mutad.compiler.aot.library import compile_exports
from mutad.compiler.aot.signature import ArrayParameter, OutParameter, c_names
from mutad.compiler.aot.statuses import KINDS
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.request import Options
from mutad.runtime.keys import argument_key

Function = Callable[..., Any]
DERIVATIVES = ("grad", "value_and_grad", "vjp", "jvp", "hvp")
FILLS = (0xFF, 0x00, 0x41)
"""NaN, zeros, 2261634.5 (and as an integer, and as an address, far away)."""


def fits(arguments: Sequence[Any]) -> bool:
    """Whether C has such arguments: numbers, and arrays apart from each other."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    numbers = (bool, int, float, np.generic)
    return (
        all(isinstance(a, numbers) or (isinstance(a, np.ndarray) and a.ndim) for a in arguments)
        and all(a.flags.writeable for a in arrays)
        and not any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2))
    )


def outcome_of(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns, or raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(), None
        except Exception as error:
            return None, error


def leaves_of(result: Any, name: str = "result") -> dict[str, Any]:
    """The numbers and arrays in a result, as C names them."""
    if isinstance(result, tuple):
        items = [leaves_of(r, f"{name}_{k}") for k, r in enumerate(result)]
        return {k: v for item in items for k, v in item.items()}
    return {} if result is None else {name: result}


def copied(value: Any) -> Any:
    """An array with the same contents and strides."""
    if not isinstance(value, np.ndarray):
        return value
    if not value.size:
        nothing = np.zeros(1, value.dtype)
        return np.lib.stride_tricks.as_strided(nothing, value.shape, value.strides)
    owner = memory_of(value)
    memory = np.frombuffer(bytearray(owner.tobytes("K")), owner.dtype)
    start = value.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    low = min(0, 0, *(s * (n - 1) for s, n in zip(owner.strides, owner.shape, strict=True)))
    return np.ndarray(value.shape, value.dtype, memory, start - low, value.strides)


def close(got: Any, want: Any, rounding: float) -> str:
    """Nothing where the numbers are the same to rounding, else what is wrong."""
    g, w = np.asarray(got), np.asarray(want)
    if g.shape != w.shape:
        return f"shape {g.shape}, not {w.shape}"
    if w.size == 0 or np.array_equal(g, w, equal_nan=w.dtype.kind == "f"):
        return ""
    if w.dtype.kind != "f":
        return f"{g!r} is not {w!r}"
    rounding = max(rounding, 1e-4) if w.dtype == np.float32 else rounding
    scale = np.abs(w[np.isfinite(w)]).max(initial=1e-300)
    same = np.allclose(g, w, rtol=rounding, atol=rounding * scale, equal_nan=True)
    return "" if same else f"{g!r} is not {w!r}"


@dataclass
class CCase:
    """A function with arguments, as a library of some modes."""

    function: Function
    make: Callable[[], tuple[Any, ...]]
    modes: Sequence[str]
    opt: int = 1
    rounding: float = 1e-9
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    calls: int = 0

    def __post_init__(self) -> None:
        arguments = self.make()
        code = self.function.__code__
        self.names = code.co_varnames[: code.co_argcount]
        self.c_names = c_names(self.names, self.function.__name__)
        self.keys = {n: argument_key(a, n) for n, a in zip(self.names, arguments, strict=True)}
        self.wrt = differentiable_positions(arguments)
        self.jit = mutad.compile(self.function, grad=True, opt=self.opt, **self.options)

    def exports(self) -> list[Export]:
        modes = [m for m in self.modes if m == "primal" or self.wrt]
        return [
            export(
                self.function,
                self.keys,
                m,
                () if m == "primal" else self.wrt,
                options=dict(self.options),
            )
            for m in modes
        ]

    def check(self, *more: Callable[[], tuple[Any, ...]]) -> list[str]:
        """What is wrong, in all modes, with these arguments and others of their kinds."""
        with tempfile.TemporaryDirectory() as folder:
            client = self.client(Path(folder))
            if client is None:
                return []
            wrong: list[str] = []
            for make in (self.make, *more):
                for e in client.exports:
                    found = self.one(client, e, make)
                    wrong += [f"{e.symbol}: {w}" for w in found]
        return wrong

    def client(self, folder: Path) -> Client | None:
        """The library of all modes that are compiled."""
        exports = self.exports()
        with contextlib.suppress(CompileError):
            return self.built(folder, *exports)
        kept: list[Export] = []
        for e in exports:
            try:
                self.compiled(e)
                kept.append(e)
            except CompileError as error:
                self.refused[e.mode] = str(error)
        return self.built(folder, *kept) if kept else None

    def built(self, folder: Path, *exports: Export) -> Client:
        """A library of these, loaded."""
        return Client(folder, "m", *exports, opt=self.opt)

    def compiled(self, export: Export) -> None:
        """CompileError where the export cannot be in a library."""
        compile_exports("m", [export], Options(opt=self.opt))

    def one(self, client: Client, e: Export, make: Callable[[], tuple[Any, ...]]) -> list[str]:
        """One mode with one list of arguments."""
        want_arguments = [copied(a) for a in make()]
        beside = self.beside(client, e, want_arguments)
        want_beside = {k: copied(v) for k, v in beside.items()}
        want, error = outcome_of(lambda: self.expected(e.mode, want_arguments, want_beside))
        if isinstance(error, CompileError | NotImplementedError) or (
            error is not None and e.mode != "primal" and isinstance(error, TypeError)
        ):
            return []  # the just-in-time compiler has no such derivative
        seen: list[tuple[Any, ...]] = []
        for fill in FILLS:
            arguments = [copied(a) for a in make()]
            given = {k: copied(v) for k, v in beside.items()}
            named = dict(zip(self.c_names, arguments, strict=True))
            self.calls += 1
            try:
                got: Any = client.call(e.symbol, {**named, **given}, fill=fill)
            except Failed as failed:
                wrong = self.failure(failed, error, arguments, want_arguments)
                if wrong:
                    return wrong
                continue
            if error is not None:
                return [f"returned {got}, not {error!r}"]
            arrays = {**{n: a for n, a in named.items() if isinstance(a, np.ndarray)}, **given}
            seen.append((got, arrays))
            wrong = self.differences(e, got, arrays, want, want_arguments, want_beside)
            if wrong:
                return [f"fill {fill:#x}: {w}" for w in wrong]
        for got, arrays in seen[1:]:
            for a, b in ((got, seen[0][0]), (arrays, seen[0][1])):
                for name, value in a.items():
                    x, y = np.asarray(value), np.asarray(b[name])
                    if x.tobytes() != y.tobytes():
                        return [f"{name} depends on what was in the area: {x!r}, {y!r}"]
        return []

    def beside(self, client: Client, e: Export, arguments: Sequence[Any]) -> dict[str, Any]:
        """Cotangents, tangents, places for gradients, for every further parameter."""
        rng = np.random.default_rng(1)
        own = dict(zip(self.c_names, arguments, strict=True))
        found: dict[str, Any] = {}
        results: dict[str, Any] | None = None
        for p in client.functions[e.symbol].parameters:
            if p.name in own or isinstance(p, OutParameter):
                continue
            stem, _, suffix = p.name.rpartition("_")
            like = own.get(stem)
            if like is None and suffix == "bar":
                if results is None:
                    value, _ = outcome_of(lambda: self.jit(*[copied(a) for a in arguments]))
                    results = leaves_of(value)
                like = results.get(stem, np.zeros(1))
                if isinstance(p, ArrayParameter) and not isinstance(like, np.ndarray):
                    like = np.zeros((1,) * p.key.rank)
            if isinstance(p, ArrayParameter):
                found[p.name] = copied(like)
                if like.size:
                    found[p.name][...] = (
                        np.nan if suffix in ("grad", "hvp") else rng.uniform(0.5, 1.5, like.shape)
                    )
            else:
                found[p.name] = rng.uniform(0.5, 1.5)
                if p.type == "f32":
                    found[p.name] = float(np.float32(found[p.name]))
        return found

    def expected(self, mode: str, arguments: Sequence[Any], beside: dict[str, Any]) -> Any:
        """The same by the just-in-time compiler: values by C's names; arrays in `beside` change."""
        names = self.c_names
        if mode == "primal":
            return leaves_of(self.jit(*arguments))
        if mode in ("grad", "value_and_grad"):
            value, gradients = self.jit.value_and_grad(*arguments, wrt=self.wrt)
            found = leaves_of(value) if mode == "value_and_grad" else {}
            return found | {f"{names[k]}_grad": g for k, g in zip(self.wrt, gradients, strict=True)}
        if mode == "hvp":
            direction = tuple(
                beside.get(f"{names[k]}_dot", like_zero(arguments[k])) for k in self.wrt
            )
            product = self.jit.hvp(*arguments, wrt=self.wrt, direction=direction)
            return {f"{names[k]}_hvp": g for k, g in zip(self.wrt, product, strict=True)}
        wrapped: list[Any] = []
        for k, a in enumerate(arguments):
            other = beside.get(f"{names[k]}_{'bar' if mode == 'vjp' else 'dot'}")
            if other is None and (k not in self.wrt or isinstance(a, np.ndarray)):
                wrapped.append(Const(a))
            elif mode == "vjp" and not isinstance(a, np.ndarray):
                wrapped.append(Active(a))
            else:
                wrapped.append(Duplicated(a, type(a)(other) if np.ndim(a) == 0 else other))
        if mode == "jvp":
            value, dot = self.jit.pushforward(*wrapped)
            return leaves_of(value) | leaves_of(dot, "result_dot")
        value, _ = outcome_of(lambda: self.jit(*[copied(a) for a in arguments]))
        bar = self.cotangent(value, beside)
        keywords = {} if bar is None else {"cotangent": bar}
        value, bars = self.jit.pullback(*wrapped, **keywords)
        scalars = [k for k in self.wrt if not isinstance(arguments[k], np.ndarray)]
        found = {f"{names[k]}_bar": b for k, b in zip(scalars, bars, strict=True)}
        return leaves_of(value) | found

    def cotangent(self, value: Any, beside: dict[str, Any], name: str = "result") -> Any:
        """The cotangent of a result, as its form is."""
        if isinstance(value, tuple):
            items = tuple(self.cotangent(v, beside, f"{name}_{k}") for k, v in enumerate(value))
            return None if all(i is None for i in items) else items
        bar = beside.get(f"{name}_bar")
        return bar if bar is None or isinstance(value, np.ndarray) else type(value)(bar)

    def failure(
        self, failed: Failed, error: Exception | None, arguments: Sequence[Any], want: Sequence[Any]
    ) -> list[str]:
        """A status is Python's exception, with its words, and arrays as it left them."""
        if error is None:
            return [f"failed: {failed.words}"]
        kind = type(error).__name__
        names = [base.__name__ for base in type(error).__mro__]
        if failed.kind != next(KINDS[name] for name in names if name in KINDS):
            breaches = {KINDS["BAD_SHAPE"], KINDS["OVERLAP"]}
            return [] if failed.kind in breaches else [f"{failed.words!r} is not {error!r}"]
        told = re.escape(failed.words.partition(": ")[2]).replace(r"\?", ".*")
        if not re.fullmatch(told, f"{kind}: {error}" if str(error) else kind, re.DOTALL):
            return [f"the message {failed.words!r} is not {error!r}"]
        return [
            f"after {error!r}, {name}: {wrong}"
            for name, got, wanted in zip(self.names, arguments, want, strict=True)
            if (wrong := close(got, wanted, self.rounding))
        ]

    def differences(
        self,
        e: Export,
        got: dict[str, Any],
        arrays: dict[str, Any],
        want: dict[str, Any],
        arguments: Sequence[Any],
        beside: dict[str, Any],
    ) -> list[str]:
        """Of numbers that came out, of arguments afterwards, and of arrays beside them."""
        wanted = dict(want)
        for name, a in zip(self.c_names, arguments, strict=True):
            if isinstance(a, np.ndarray):
                wanted[name] = a
        for name, value in beside.items():
            if isinstance(value, np.ndarray):
                wanted.setdefault(name, value)
        found = {**arrays, **got}
        missing = [n for n in wanted if n not in found and not n.startswith("result_dot")]
        extra = [n for n in got if n not in wanted]
        wrong = [f"{n} is missing" for n in missing] + [f"{n} is too much" for n in extra]
        for name, value in wanted.items():
            if name in found and (told := close(found[name], value, self.rounding)):
                wrong.append(f"{name}: {told}")
        return wrong


def like_zero(value: Any) -> Any:
    return np.zeros_like(value) if isinstance(value, np.ndarray) else 0.0
