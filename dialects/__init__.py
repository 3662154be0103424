"""The vocabulary: our ops and types. No passes, no LLVM, nothing else of ours."""

from . import lazy_formats as lazy_formats  # before any dialect is imported

# isort: split
from . import comparison_text as comparison_text
from . import quick_xdsl as quick_xdsl
