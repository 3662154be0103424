"""Arrays of a device as the runtime has them: NumPy's, whose elements only the driver touches.

A `Resident` has the shape, strides and address of an array of the device, so that kinds of arguments, views
and sharing of memory are found out as for any other array. What would touch elements on the host is done
elsewhere: stores and copies by kernels, in the order of the stream; what NumPy's functions compute, on copies
that are fetched, and the results are the host's. Compiled code is given plain arrays (`Driver.calling`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .keys import Array, register_array

if TYPE_CHECKING:
    from .device import Driver

Stores = Callable[[Array, Any], None]
"""What stores values to the elements of an array of the device, compiled: see `device_calls.stores`."""

STRUCTURAL: set[Callable[..., Any]] = {
    np.broadcast_to, np.expand_dims, np.may_share_memory, np.moveaxis, np.ndim, np.shape,
    np.shares_memory, np.size, np.squeeze, np.swapaxes, np.transpose,
}  # fmt: skip
"""Functions of NumPy that look at no element, and give views."""


class Resident(np.ndarray[Any, Any]):
    """An array of a device; each driver has a class of its own, made by `kind_of`."""

    driver: ClassVar[Driver]

    def __getitem__(self, key: Any) -> Any:
        """A view; of an element, or of what indices choose, a copy on the host."""
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, list | np.ndarray | bool) for p in parts):
            return fetched(self)[key]
        whole = parts if any(p is ... for p in parts) else (*parts, ...)
        view = super().__getitem__(whole)
        is_element = view.ndim == 0 and not any(p is ... for p in parts)
        return fetched(view)[()] if is_element else view

    def __setitem__(self, key: Any, value: Any) -> None:
        view = self[key] if self.ndim else self
        if not isinstance(view, Resident):  # an element, or what indices choose
            parts = key if isinstance(key, tuple) else (key,)
            view = super().__getitem__((*parts, ...))
        if view.size:
            given = (
                value if isinstance(value, Resident) else self.driver.uploaded(value, self.dtype)
            )
            self.driver.stores(view.view(type(self)), given)

    def __repr__(self) -> str:
        return f"<array of a device, {self.dtype} {self.shape}>"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError("memory of a device can be neither copied nor pickled as it is")

    def __reduce_ex__(self, _: Any) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, _: Any) -> Any:
        return self.copy()

    def __iter__(self) -> Any:
        return iter(fetched(self))

    def tobytes(self, order: Any = "C") -> bytes:
        return fetched(self).tobytes(order)

    def __float__(self) -> float:
        return float(fetched(self))

    def __int__(self) -> int:
        return int(fetched(self))

    def __bool__(self) -> bool:
        return bool(fetched(self))

    def item(self, *args: Any) -> Any:
        return fetched(self).item(*args)

    def tolist(self) -> Any:
        return fetched(self).tolist()

    def copy(self, order: Any = "C") -> Any:
        made = self.driver.empty_like(self, self.dtype, order)
        made[...] = self
        return made

    def astype(self, dtype: Any, order: Any = "K", *_: Any, copy: bool = True, **__: Any) -> Any:
        if not copy and self.dtype == dtype and in_order(self, order):
            return self
        made = self.driver.empty_like(self, np.dtype(dtype), order)
        made[...] = self
        return made

    def fill(self, value: Any) -> None:
        self[...] = value

    def reshape(self, *shape: Any, order: Any = "C", **_: Any) -> Any:
        try:
            return super().reshape(*shape, order=order, copy=False)
        except ValueError:
            return fetched(self).reshape(*shape, order=order)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """On the host; what is updated in place is stored back."""
        result = getattr(ufunc, method)(*map(fetched, inputs), **options)
        if out is None:
            return result
        (target,) = out
        target[...] = result
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in STRUCTURAL:
            return super().__array_function__(function, types, args, kwargs)
        return function(*map(fetched, args), **{k: fetched(v) for k, v in kwargs.items()})


def in_order(array: Array, order: str) -> bool:
    """Whether an array lies as `order` asks."""
    return {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous}.get(order, True)


def fetched(value: Any) -> Any:
    """The same on the host: arrays of a device are copied, in lists and tuples as well."""
    if isinstance(value, Resident):
        return value.driver.download(value)
    if type(value) in (tuple, list):
        return type(value)(map(fetched, value))
    return value


def kind_of(driver: Driver) -> type[Resident]:
    """The class of a driver's arrays."""
    made = type("Resident", (Resident,), {"driver": driver})
    register_array(made)
    return made
