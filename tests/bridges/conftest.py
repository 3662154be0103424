"""The real packages, where they are: `make bridges` installs them."""

from importlib.util import find_spec

collect_ignore = [
    f"test_{package}.py" for package in ("jax", "numpyro", "torch") if find_spec(package) is None
]
