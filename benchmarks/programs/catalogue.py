"""All programs, family by family."""

from __future__ import annotations

from .algebra import ALGEBRA
from .fluids import FLUIDS
from .models import MODELS
from .networks import NETWORKS
from .stencils import STENCILS

PROGRAMS = (*STENCILS, *FLUIDS, *ALGEBRA, *NETWORKS, *MODELS)
