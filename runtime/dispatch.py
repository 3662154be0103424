"""From a call to the compiled code for its arguments.

The fast path is a chain of entries, compiled functions each of which checks the arguments and, when
they are not its own, calls the next. The chain ends in Python code (`Dispatcher.primal`, `.gradient`),
which builds the key, looks it up or compiles it, and puts the new entry first.

Each entry is a builtin function whose `__self__` is a `Link`: what it needs to know of this
process. A specialization has a second, *direct* callable over the same code, whose link is marked
`proved`: the caller has built the key, so the entry takes the sharing of memory for granted.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import (
    captures,
    engine,
    foreign_idioms,
    keys,
    lost_classmethod,
    objects,
    structures,
)
from .compiler_protocol import Compiler, Make
from .loading import REVERSE, link_of, load
from .signatures import binder, defaults_of, require_plain, trailing_defaults
from .specializations import Asked, Era, Key, Specialization
from .user_tracebacks import OnDevice, concise

GRADIENT_KINDS = ("grad", "value_and_grad")
LONGEST_CHAIN = 16
MOST_KEPT = 64
"""For how many constants from outside, and for how many structures of arguments, the code is kept."""
CHAINS = {"rows": "jacobian"}
"""The kinds whose chain is another's."""
TANGENT = ("tangent", "tangent-alone")
"""The modes that take tangents, with the primal's results or without."""
METHODS = {
    **{name: name for name in ("jvp", "hvp", "value_grad_hvp", "hessian", "jacobian")},
    "pushed": "pushforward",
    "pulled": "pullback",
    "recorded": "vjp",
}
"""The kinds of calls that entries take where they can, and elsewhere methods of the compiled function."""


verifying = threading.local()
"""Its `now` is true in a thread that checks a gradient."""


@dataclass
class Dispatcher:
    """Everything that one compiled function has compiled."""

    function: Any
    """The Python function. (A field declared as one would look like a method to type checkers.)"""
    options: dict[str, Any]
    compiler: Compiler
    make: Make
    checks_gradient: bool
    """The first call of each kind of arguments checks that its gradient can be compiled."""
    parameters: tuple[str, ...] = field(init=False)
    code: Any = field(init=False)
    """Of the function, when its signature was looked at."""
    binder: Callable[..., tuple[Any, ...]] = field(init=False)
    bound_defaults: tuple[Any, ...] = field(init=False)
    """The function's defaults, as the binder has them."""
    defaults: tuple[Any, ...] = field(init=False)
    eras: list[Era] = field(init=False)
    """The latest is the last."""
    heads: dict[str, Callable[..., Any]] = field(init=False)
    lengths: dict[str, int] = field(init=False)
    led: set[Any] = field(init=False)
    """The structures of arguments that have a function of their own in a chain."""
    installed: Callable[[str, Callable[..., Any]], None] = field(init=False)
    """Told of each new head, to make it the attribute that users call."""
    owner: weakref.ref[Any] | None = None
    flats: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """By the structure of arguments that hold objects, the function of their parts (`objects`)."""
    result_sizes: dict[tuple[Any, ...], int] = field(default_factory=dict[tuple[Any, ...], int])
    """How many floats there were in results, by the sizes of arguments."""
    recipes: list[dict[str, Any] | None] = field(default_factory=list[dict[str, Any] | None])
    """How results with objects are put together: the different ways of all that was compiled."""
    latest: Any = None
    """The one that was called last."""
    twins: dict[str, Any] = field(default_factory=dict[str, Any])
    """By driver, the same function compiled for its device."""
    returns_objects: bool = False

    def __post_init__(self) -> None:
        self.take_signature()
        self.installed = lambda _kind, _head: None
        self.begin()

    def take_signature(self) -> None:
        """Bind arguments with the parameters, and the defaults, that the function has now."""
        self.code = code = self.function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.parameters = tuple(sys.intern(n) for n in code.co_varnames[:count])
        bind = foreign_idioms.answering(
            binder(self.function), self.parameters, self.function.__name__
        )
        self.binder = lost_classmethod.guarded(
            bind, self.function, lambda: self.owner and self.owner()
        )
        self.bound_defaults = defaults_of(self.function)
        self.defaults = trailing_defaults(self.function)

    @property
    def bind(self) -> Callable[..., tuple[Any, ...]]:
        """The arguments by position; raises what CPython raises for wrong ones."""
        now = defaults_of(self.function)
        replaced = self.function.__code__ is not self.code
        if replaced:
            require_plain(self.function)
            self.flats, self.latest, self.returns_objects = {}, None, False
        if (
            replaced
            or len(now) != len(self.bound_defaults)
            or any(a is not b for a, b in zip(now, self.bound_defaults, strict=True))
        ):
            self.take_signature()
            self.forget()
        return self.binder

    def begin(self) -> None:
        """Nothing is compiled yet."""
        self.eras = []
        self.lengths = {}
        self.led = set()
        self.heads = {kind: self.end_of(kind) for kind in ("primal", *GRADIENT_KINDS, *METHODS)}

    def forget(self) -> None:
        """Compile anew at the next call: a rule has been given that the code may not know of."""
        with engine.compiling:
            if self.eras:
                self.begin()
                for kind, head in self.heads.items():
                    self.installed(kind, head)

    def apart(self, **options: Any) -> Dispatcher:
        """The same function with other options: no attribute shows its entries, no gradient is checked."""
        return Dispatcher(
            self.function, {**self.options, **options}, self.compiler, self.make, False
        )

    # What the function reads from outside.

    @property
    def era(self) -> Era:
        """The era of what is outside now."""
        if not self.eras or not self.eras[-1].captures.hold():
            now = captures.captures_of(self.function)
            found = [era for era in self.eras if era.captures.agrees(now)]
            era = found[0] if found else Era(now)
            era.renew(now)
            with engine.compiling:
                self.eras = [*(e for e in self.eras if e is not era), era][-MOST_KEPT:]
        return self.eras[-1]

    @property
    def table(self) -> dict[Key, Specialization]:
        return self.era.table

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, then of the inputs from outside."""
        return (*self.parameters, *self.era.captures.names)

    @property
    def latest_has_code(self) -> bool:
        """Whether the latest call had objects among its arguments, and compiled code took their parts."""
        return self.latest is not None and bool(self.latest.compiled._dispatcher.table)

    def values_of(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The arguments by position, and the inputs from outside."""
        return (*self.bind(*args, **kwargs), *self.era.captures.values())

    @property
    def dispatcher(self) -> Dispatcher:
        """Itself, which compiled functions have by this name."""
        return self

    def resolve_wrt(self, wrt: Any, option: str = "wrt") -> tuple[tuple[int, ...], bool]:
        """Positions of what `wrt`, or another option, names, and whether that is one name or position."""
        return keys.resolve_wrt(wrt, self.parameters, self.era.captures.names, option)

    # The ends of the chains.

    def end_of(self, kind: str) -> Callable[..., Any]:
        """The Python code that takes what no entry took."""
        return partial(self.method, kind) if kind in METHODS else getattr(self, kind)

    @concise
    def method(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        """A call of the compiled function's method that no entry took."""
        function = self.owner() if self.owner is not None else None
        assert function is not None
        return getattr(type(function), METHODS[kind])(function, *args, **kwargs)

    @concise
    def primal(self, *args: Any, **kwargs: Any) -> Any:
        """A primal call that no entry took."""
        bound = self.bind(*args, **kwargs)
        if self.latest is not None and (taken := self.latest.take(bound)) is not None:
            return self.latest.call(structures.Parts(*taken))

        def plain() -> Any:
            values = (*bound, *self.era.captures.values())
            return self.specialize(values).direct["primal"](*values)

        return self.either(bound, plain, lambda: objects.primal(self, bound))

    @concise
    def grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        return self.gradient_of("grad", wrt, self.bind(*args, **kwargs))

    @concise
    def value_and_grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        return self.gradient_of("value_and_grad", wrt, self.bind(*args, **kwargs))

    def gradient_of(self, kind: str, wrt: Any, bound: tuple[Any, ...]) -> Any:
        """A gradient call that no entry took, by its arguments."""
        return self.either(
            bound,
            lambda: self.gradient(kind, wrt, (*bound, *self.era.captures.values())),
            lambda: objects.gradient(self, kind, wrt, bound),
        )

    def either(
        self, bound: tuple[Any, ...], plain: Callable[[], Any], of_parts: Callable[[], Any]
    ) -> Any:
        """A call as it is, or as one of the parts of its arguments: where there are objects among
        them, or the function turns out to return some."""
        if not self.has_objects(bound):
            try:
                return plain()
            except Exception as error:
                if not getattr(error, "needs_structure", False):
                    raise
                self.returns_objects = True
        return of_parts()

    def plainly(
        self, call: str, bound: tuple[Any, ...], run: Callable[[tuple[Any, ...]], Any]
    ) -> Any:
        """A call that there is of arrays, numbers and tuples alone."""

        def refuse() -> Any:
            raise TypeError(
                f"{call} of {self.function.__qualname__}: its arguments or results hold objects or lists: "
                "write a function of the arrays and numbers in them"
            )

        return self.either(bound, lambda: run((*bound, *self.era.captures.values())), refuse)

    def keep(self, structure: Any, flat: Any) -> None:
        """Keep the function of the parts for a structure, and let go of the oldest."""
        with engine.compiling:
            kept = [*self.flats.items(), (structure, flat)]
            self.flats = dict(kept[-MOST_KEPT:])

    def has_objects(self, bound: tuple[Any, ...]) -> bool:
        """Whether some argument is, or holds, an object: it is compiled as one of its parts.

        OnDevice where some are arrays of a device: the call is made anew, there.
        """
        if self.returns_objects:
            return True
        for value in bound:
            if type(value) not in keys.PLAIN:
                from .device_calls import holds_device_arrays  # which most processes do without

                if holds_device_arrays(bound):
                    raise OnDevice
                return structures.has_structure(bound)
        return False

    def on_device(self, kind: str, values: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A call of which some arguments are arrays of a device."""
        from .device_calls import call

        return call(self, kind, values, kwargs)

    def gradient(self, kind: str, wrt: Any, values: tuple[Any, ...]) -> Any:
        """A gradient call that no entry took."""
        from . import gradients

        positions, single = self.resolve_wrt(wrt)
        all_names = self.names
        arguments = self.arguments_of(values)
        for position in positions:
            keys.require_active(arguments[position], all_names[position])
        overlaps = keys.overlaps_of(values)
        if {p for i, j, _ in overlaps for p in (i, j)} & set(positions):
            return gradients.of_sharing_arguments(self, kind, values, positions, single)
        gradients.refuse_overlapping_themselves(self, values, positions)
        found = self.specialize(values, positions)
        if kind not in found.direct:  # for arrays that have shadows, too, share memory
            return gradients.of_sharing_arguments(self, kind, values, positions, single)
        names = tuple(all_names[p] for p in positions)
        return found.direct[kind](*values, wrt=names[0] if single else names)

    # From values to code.

    def arguments_of(self, values: Sequence[Any]) -> tuple[str, ...]:
        return tuple([keys.argument_key(v, n) for v, n in zip(values, self.names, strict=True)])

    def known_of(self, values: Sequence[Any]) -> tuple[Era, tuple[str, ...]]:
        """The era, and the keys of arguments."""
        era = self.era
        names = (*self.parameters, *era.captures.names)
        pairs = zip(values, names, strict=True)
        return era, tuple([keys.argument_key(value, name) for value, name in pairs])

    def specialize(
        self,
        values: tuple[Any, ...],
        wrt: tuple[int, ...] = (),
        mode: str = "",
        lanes: int = 1,
        overlaps: keys.Overlaps | None = None,
        known: tuple[Era, tuple[str, ...]] | None = None,
    ) -> Specialization:
        """The code for these arguments, compiled if it is not there yet.

        That of a derivative `retries` where it has no guards and they turn out to be needed; it is then the
        code with guards that is found from there on.

        `mode`: "primal", "gradient" (by default where there is `wrt`), "pullback", "vjp", "tangent" or "hvp",
        the last two with so many `lanes`, or another of the compiler's. `overlaps` are those of the values,
        where the caller has looked at them; `known` are the era and the keys of the arguments.
        """
        era, arguments = known or self.known_of(values)
        mode = mode or ("gradient" if wrt else "primal")
        names = (*self.parameters, *era.captures.names)
        if overlaps is None:
            overlaps = keys.overlaps_of(values)
        found = self.code_for((arguments, overlaps, wrt, mode, lanes), era, values)
        if written := found.metadata["written"]:
            marked = keys.with_read_only(arguments, values, written)
            if marked != arguments:
                found = self.code_for((marked, overlaps, wrt, mode, lanes), era, values)
        if tuple in map(type, values):
            watched = [*found.metadata["written"], *(found.shadowed if wrt else ())]
            keys.refuse_shared_in_tuples(values, names, watched)
        for position in found.metadata["written"]:
            self.refuse_overlapping_itself(values[position], names[position])
        return found

    def code_for(self, asked: Asked, era: Era, values: tuple[Any, ...]) -> Specialization:
        """The code for a key, or for one that assumes nothing of the extents where these are others."""
        key, wrt = era.key_of(asked), asked[2]
        if key.mode == "pullback":
            same = era.compiled(key._replace(mode="gradient").asked, values)
            if same is not None and same.adds:
                return same
        found = era.table.get(key)
        if found is None and keys.assumptions_hold(era.assumed.get(key, ()), values):
            if wrt and os.environ.get("MUTAD_VERIFY") == "1":
                self.verify(values[: len(self.parameters)], wrt)
            found = self.add(key, era, values)
        if found is None or not keys.assumptions_hold(found.metadata["assumed"], values):
            found = self.add(key._replace(stretch=True), era, values)
            assert found is not None
        return found

    def verify(self, values: tuple[Any, ...], wrt: tuple[int, ...]) -> None:
        """Check the gradient of these arguments before it is used for the first time."""
        function = self.owner() if self.owner is not None else None
        if function is None or not function.has_gradient or getattr(verifying, "now", False):
            return
        from .checked_gradient import check_arguments

        verifying.now = True
        if getattr(self.function, "structure", None) is not None:
            values = (*values[:-1], None)  # without the journal, which CPython does not keep
        try:
            check_arguments(function, values, tuple(self.names[p] for p in wrt))
        finally:
            verifying.now = False

    @staticmethod
    def refuse_overlapping_itself(value: Any, name: str) -> None:
        """ValueError where an array that is written has two elements in one place."""
        if any(map(keys.overlaps_itself, keys.leaves(value))):
            raise ValueError(
                f"argument {name!r} is written and overlaps itself in memory (a broadcast or "
                f"sliding window): pass {name}.copy()"
            )

    def add(self, key: Key, era: Era, values: Sequence[Any] | None) -> Specialization | None:
        """Compile (or load from disk) and install; one thread at a time."""
        with engine.compiling:
            found = era.table.get(key)
            if found is None:
                found = load(self, key, era, values)
            if found is not None and key not in era.table:
                era.table[key] = found
                self.install(found, era, key, found.library, found.metadata["entries"])
            return found

    def retry(self, kind: str, key: Key, era: Era, *args: Any, **kwargs: Any) -> Any:
        """A derivative that has to be made anew, with guards; all such calls have them from now on.

        Shadows are made anew by the caller. What `vjp` keeps is the same with and without guards.
        """
        era.guarded.add(key.asked)
        if kind == "back":
            twin = key._replace(guards=True)
            found = self.add(twin, era, None)
            assert found is not None
            raise keys.NeedsGuards(found)
        if kind == "pullback" or (key.mode not in TANGENT and kind == "pushforward"):
            raise keys.NeedsGuards
        count = len(key.arguments)
        values = args[:count]
        if len(values) < count:
            values = (*values, *era.captures.values())
        return self.code_for(key.asked, era, values).direct[kind](*args, **kwargs)

    def lengthen(self, kind: str, key: Key, era: Era, *args: Any, **kwargs: Any) -> Any:
        """A gradient whose tapes would be long, by code for such, which is compiled for the first of them.

        `pullback` may have been left to code that adds to shadows; that for long tapes may not.
        """
        found = self.add(key._replace(long=True), era, None)
        if found is not None and kind == "pullback" and not found.adds:
            found = self.add(key._replace(mode="pullback"), era, None)
        assert found is not None
        return found.direct[kind](*args, **kwargs)

    def install(
        self,
        found: Specialization,
        era: Era,
        key: Key,
        library: engine.Library,
        kinds: Iterable[str],
    ) -> None:
        """Put entries of a specialization first in their chains, or behind those for short tapes.

        A chain that has grown long is begun anew. (It is never cut: another thread may be running
        in any of its entries, and holds the head only.)
        """
        shorter = era.table[key._replace(long=False)].links
        for kind in kinds:
            chain = CHAINS.get(kind, kind)
            if chain not in self.heads or found.kernels is not None:
                continue
            doc = f"{self.function.__name__}, compiled."
            after = self.end_of(chain) if key.long else self.following(chain)
            found.links[kind] = link = link_of(self, found, era, after)
            link.longer = self.end_of(chain)
            if kind == "recorded":
                from .vjp import recorder

                link.record = recorder(self, found, key.arguments)
            elif kind == "rows":
                from .jacobian_rows import rows_by

                link.record, link.mode = rows_by(self, found), REVERSE
            era.links.append(link)
            entry = library.function(kind, link, doc, METHODS.get(chain, ""))
            if key.long and kind in shorter:
                shorter[kind].longer = entry
            elif not key.long:
                self.heads[chain] = entry
                self.installed(chain, entry)

    def following(self, kind: str) -> Callable[..., Any]:
        """What comes after an entry that is about to be the first."""
        length = self.lengths.get(kind, 0)
        self.lengths[kind] = length + 1 if length < LONGEST_CHAIN else 1
        return self.heads[kind] if length < LONGEST_CHAIN else self.end_of(kind)

    def lead(self, kind: str, key: Any, make: Callable[[Callable[..., Any]], Any]) -> None:
        """Put a function for one structure of arguments first in a chain; `make` is given what comes next."""
        with engine.compiling:
            if (kind, key) not in self.led:
                if self.lengths.get(kind, 0) >= LONGEST_CHAIN:
                    self.led.clear()
                self.led.add((kind, key))
                self.heads[kind] = make(self.following(kind))
                self.installed(kind, self.heads[kind])

    @staticmethod
    def disagree(*args: Any, **kwargs: Any) -> Any:
        """The entry refused arguments that Python code found to be its own."""
        raise SystemError("mutad: the compiled entry and the key disagree about these arguments")
