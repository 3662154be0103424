"""The Before/After examples in the docstrings of the passes are true."""

import re
import sys
from textwrap import dedent

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline

from mutad.compiler.kernels.passes import DEVICE_PASSES
from mutad.compiler.pass_order import PASSES

TRANSFORMS = [p for p in PASSES if ".transforms." in p.__module__] + [*DEVICE_PASSES]
REWRITES = [p for p in TRANSFORMS if not p.name.startswith("check-")]
"""Those that change something, which their docstrings show."""


def example(docstring: str, title: str) -> tuple[str, str]:
    """The IR under a title, and the options of the pass: ``After, with `rows=2`::``."""
    pattern = rf"^{title}(?:, with `(.*?)`)?::\n\n(.*?)(?=\n^\S|\Z)"
    found = re.search(pattern, docstring, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the docstring shows no {title}"
    return dedent(found[2]), found[1] or ""


@pytest.mark.parametrize("transform", REWRITES, ids=lambda p: p.name)
def test_the_example_of_a_pass_holds(transform: type[ModulePass], context: Context) -> None:
    docstring = sys.modules[transform.__module__].__doc__ or ""
    (given, _), (made, options) = (example(docstring, title) for title in ("Before", "After"))
    before, after = (Parser(context, text).parse_module() for text in (given, made))
    spec = f"{transform.name}{{{options}}}" if options else transform.name
    (one,) = PassPipeline.parse_spec({transform.name: lambda: transform}, spec).passes
    one.apply(context, before)
    before.verify()
    assert before.is_structurally_equivalent(after), str(before)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda p: p.name)
def test_a_pass_has_one_name_in_four_spellings(transform: type[ModulePass]) -> None:
    module = transform.__module__.rsplit(".", 1)[1]
    assert transform.name == module.replace("_", "-")
    assert transform.__name__ == "".join(word.capitalize() for word in module.split("_"))
