"""The garbage collector rests while the compiler is imported, and finds old objects afterwards."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from mutad.compiler.collection import without_collection


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    """Tests run with what was imported before them frozen."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


def young(thing: object) -> bool:
    return any(one is thing for one in gc.get_objects(generation=0))


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="its collector freezes objects itself: ours stay young"
)
def test_what_is_kept_is_old_afterwards():
    gc.collect()
    with without_collection():
        new = [object()]
    assert young(new)
    with without_collection(keeps=True):
        kept = [object()]
    assert not young(kept)
    assert any(one is kept for one in gc.get_objects(generation=2))
    assert gc.isenabled()


def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with without_collection(keeps=True):
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with without_collection(keeps=True):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
