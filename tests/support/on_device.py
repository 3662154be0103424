"""Arguments on the device that is in use: arrays share memory there as they do here."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import mutad
from mutad import DeviceArray
from mutad.runtime import cuda, memory
from mutad.runtime.keys import address_of


def on_device(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with device arrays for NumPy's."""
    groups: dict[int, list[np.ndarray]] = {}
    for value in given:
        if isinstance(value, np.ndarray):
            groups.setdefault(id(owner(value)), []).append(value)
    made: dict[int, Any] = {}
    for arrays in groups.values():
        bounds = [memory.bounds(memory.placed(a)) for a in arrays if a.size]
        low = min((first for first, _ in bounds), default=0)
        high = max((last for _, last in bounds), default=0)
        whole = mutad.device_array(np.frombuffer(ctypes.string_at(low, high - low), np.uint8))
        for a in arrays:
            offset = address_of(a) - low if a.size else 0
            view = np.ndarray(a.shape, a.dtype, whole.taken.array, offset, a.strides)
            view.flags.writeable = a.flags.writeable
            made[id(a)] = DeviceArray(view, cuda.driver())
    return tuple(made.get(id(value), value) for value in given)


def owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def on_host(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(on_host, value))
    return value.copy_to_host() if isinstance(value, DeviceArray) else value
