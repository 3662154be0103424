"""What a function of a library takes, and what it says of other arguments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import keys
from .keys import Array


@dataclass(frozen=True)
class ArrayParameter:
    """An array, as it was compiled for."""

    name: str
    dtype: str
    rank: int
    layout: str
    written: bool

    @cached_property
    def type(self) -> np.dtype[Any]:
        return np.dtype(keys.NUMPY_SCALARS[self.dtype])

    def checked(self, value: Any) -> Any:
        """The array; TypeError or ValueError, with what to pass, where it is another kind."""
        if type(value) is not np.ndarray or value.dtype != self.type or value.ndim != self.rank:  # pyright: ignore[reportUnknownMemberType]
            raise self.refusal(value)
        flags = value.flags
        if self.layout == "C":
            fits = flags.c_contiguous
        elif self.layout == "F":
            fits = flags.f_contiguous
        else:
            fits = not any(stride % value.itemsize for stride in value.strides)
        if not fits or not flags.aligned:
            raise self.refusal(value)
        if self.written and not flags.writeable:
            raise ValueError(
                f"argument {self.name!r} is read-only, and the function stores to it: pass {self.name}.copy()"
            )
        return value

    def refusal(self, value: Any) -> Exception:
        """Why the value is none of this kind."""
        name, wanted = self.name, self.type.name
        if not isinstance(value, np.ndarray):
            if isinstance(value, list):
                keys.argument_key(value, name)
            shape = f"[{', '.join('?' * self.rank)}]"
            return TypeError(
                f"argument {name!r} is {type(value).__name__}: pass an array, {wanted}{shape}"
            )
        keys.argument_key(value, name)
        if value.dtype != self.type:
            return TypeError(
                f"argument {name!r} is an array of {value.dtype.name}, and the library was compiled for "
                f"{wanted}: pass {name}.astype(np.{wanted}){self.as_copy}"
            )
        if value.ndim != self.rank:
            return TypeError(
                f"argument {name!r} has {value.ndim} dimensions, and the library was compiled for {self.rank}"
            )
        if self.layout == "S":
            return ValueError(
                f"argument {name!r}: its strides are no multiples of its elements: pass {name}.copy()"
            )
        order, call = {"C": ("C", "ascontiguousarray"), "F": ("Fortran", "asfortranarray")}[
            self.layout
        ]
        return TypeError(
            f"argument {name!r} is not contiguous in {order} order: pass np.{call}({name}){self.as_copy}"
        )

    @property
    def as_copy(self) -> str:
        """What there is to say of a copy that is passed instead."""
        return ", and copy back what the function stores to it" if self.written else ""

    @cached_property
    def beside(self) -> ArrayParameter:
        """What goes along with the array, a gradient or a tangent: that has no gaps where this has some."""
        return replace(self, layout="C") if self.layout == "S" else self

    def like(self, value: Array) -> Array:
        """A new array of the shape of an argument, to go along with it."""
        return np.empty(value.shape, self.type, order="F" if self.layout == "F" else "C")


@dataclass(frozen=True)
class NumberParameter:
    """A number, as it was compiled for."""

    name: str
    type: str

    def checked(self, value: Any) -> Any:
        """The number; TypeError or OverflowError where it is of another type."""
        kind = type(value)
        match self.type:
            case "py_bool" | "b1":
                fits = kind is bool or kind is np.bool_
                made: Any = bool
            case "py_float" | "f64":
                fits = isinstance(value, float | int | np.floating | np.integer)
                fits = fits and kind is not np.longdouble
                made = float
            case "f32":
                fits = kind in (float, int, np.float32, np.float16)
                made = float
            case _:
                fits = isinstance(value, int | np.integer)
                made = int
        if not fits or (kind is bool and made is not bool):
            wanted = self.type.removeprefix("py_")
            wanted = f"np.{keys.NUMPY_SCALARS[wanted].__name__}" if wanted == self.type else wanted
            raise TypeError(
                f"argument {self.name!r} is {kind.__name__}, and the library was compiled for {wanted}: "
                f"pass {wanted}({self.name})"
            )
        number = made(value)
        if made is int:
            self.require_room(number)
        return number

    def require_room(self, number: int) -> None:
        """OverflowError where the integer does not fit."""
        if self.type == "py_int":
            if not keys.INT_MIN <= number <= keys.INT_MAX:
                keys.argument_key(number, self.name)
            return
        limits = np.iinfo(keys.NUMPY_SCALARS[self.type])
        if not limits.min <= number <= limits.max:
            raise OverflowError(
                f"argument {self.name!r}: {number} does not fit in {limits.dtype.name}"
            )
