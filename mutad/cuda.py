"""Devices of NVIDIA: `mutad.cuda.is_available()` is true where functions run on one, and says why not.

::

    >>> print(mutad.cuda.is_available())
    no: there is no NVIDIA driver (libcuda.so.1)
"""

from .runtime.cuda import Availability, is_available

__all__ = ["Availability", "is_available"]
