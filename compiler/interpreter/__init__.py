"""What the IR means: an interpreter of our dialects, slow and plain, on NumPy's numbers.

It is the semantics: compiled code agrees with it, bit for bit where the order of operations is the same,
else to rounding, and so does what a pass leaves. One table has a function for each class of op
(`execution.OPS`; of pure scalar ops `scalars.SCALARS`), as `rules/` has a rule for each. Beyond what compiled
code does it finds what has no meaning (`Undefined`): an access outside of memory, a pop of an empty tape, a
map whose points read what others write.
"""

from .execution import interpret, interpret_launch
from .frame import Host, Machine, Unknown
from .memory import Undefined

__all__ = ["Host", "Machine", "Undefined", "Unknown", "interpret", "interpret_launch"]
