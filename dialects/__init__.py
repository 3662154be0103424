"""The vocabulary: our ops and types. No passes, no LLVM, nothing else of ours."""

from . import comparison_text as comparison_text
from . import quick_xdsl as quick_xdsl
