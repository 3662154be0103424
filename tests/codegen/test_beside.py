"""Entries and libraries are compiled beside the kernel, and are what they are when compiled alone."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler import beside, pipeline
from mutad.compiler.codegen import llvm_module, llvm_options, llvm_threads, module_parts
from mutad.compiler.codegen.llvm_threads import begun, completed
from mutad.runtime import entry_code, native_code


def product(a, b):
    return np.sum(np.tanh(a @ b))


def refused(a):
    return a.nonsense()


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_loaded", "_latest", "_shared"):
        monkeypatch.setattr(entry_code, name, type(getattr(entry_code, name))())


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 3)


def arguments() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-1.0, 1.0, 12).reshape(3, 4), np.linspace(0.0, 2.0, 8).reshape(4, 2)


def made_beside(monkeypatch: pytest.MonkeyPatch, *, misses: bool) -> dict[Any, Any]:
    """What a gradient's compilation has made beside its kernel; the gradient."""
    found: dict[Any, Any] = {}

    def asked(what: str, of: str, opt: int, target: Any) -> Any:
        made = None if misses else beside.taken(what, of, opt, target)
        assert misses or made is not None
        return made

    def kept(made: Any) -> Any:
        def compiled(of: str, opt: int, target: Any) -> Any:
            artifact = made(of, opt, target)
            found[made.__name__, of, opt] = artifact.object_code, artifact.metadata
            return artifact

        return compiled

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "taken", asked)
        for one in (pipeline.compile_entries, pipeline.compile_shared):
            patch.setattr(pipeline, one.__name__, kept(one))
        f = mutad.compile(product, grad=True, cache=False)
        found["gradient"] = f.grad(*arguments(), wrt="a").tobytes()
    return found


def test_they_are_what_they_are_alone(monkeypatch, processors) -> None:
    together = made_beside(monkeypatch, misses=False)
    for name in ("_loaded", "_latest", "_shared"):
        getattr(entry_code, name).clear()
    alone = made_beside(monkeypatch, misses=True)
    assert {key[0] for key in alone} == {"compile_entries", "compile_shared", "g"}
    assert together == alone


def test_a_thread_emits_the_entries_if_there_is_a_processor(monkeypatch) -> None:
    seen: list[bool] = []
    emitted = llvm_module.object_of

    def watched(*given: Any) -> bytes:
        if len(given) == 4:
            seen.append(threading.current_thread() is threading.main_thread())
        return emitted(*given)

    monkeypatch.setattr(llvm_module, "object_of", watched)
    for count in (1, 2):
        monkeypatch.setattr(llvm_threads, "processors", lambda count=count: count)
        entry_code._loaded.clear()
        entry_code._latest.clear()
        mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a")
    assert seen == [True, False]


def test_what_is_loaded_is_not_compiled_again(monkeypatch) -> None:
    mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a")
    monkeypatch.setattr(beside, "entries_text", None)
    monkeypatch.setattr(beside, "library_text", None)
    mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a")


def test_nor_is_what_the_disk_has(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path))
    mutad.compile(product, grad=True).grad(*arguments(), wrt="a")
    for name in ("_loaded", "_latest", "_shared"):
        getattr(entry_code, name).clear()
    monkeypatch.setattr(beside, "entries_text", None)
    monkeypatch.setattr(beside, "library_text", None)
    mutad.compile(product, grad=True, boundscheck=False).grad(*arguments(), wrt="a")


def test_a_fault_of_llvm_comes_out(monkeypatch, processors) -> None:
    emitted = llvm_module.object_of

    def broken(*given: Any) -> bytes:
        if len(given) == 4:
            raise MemoryError("entries")
        return emitted(*given)

    monkeypatch.setattr(llvm_module, "object_of", broken)
    with pytest.raises(MemoryError, match="entries"):
        mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a")
    assert_nothing_is_at_work()


def test_nothing_is_at_work_behind_a_fault_of_ours(monkeypatch, processors) -> None:
    started = threading.Event()
    emitted = llvm_module.object_of

    def slow(*given: Any) -> bytes:
        started.set()
        return emitted(*given)

    def fails(*_: Any) -> Any:
        assert started.wait(10)
        raise MemoryError("parts")

    monkeypatch.setattr(llvm_module, "object_of", slow)
    monkeypatch.setattr(llvm_module, "parts_of", fails)
    with pytest.raises(MemoryError, match="parts"):
        mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a")
    assert_nothing_is_at_work()
    monkeypatch.setattr(llvm_module, "parts_of", module_parts.parts_of)
    assert mutad.compile(product, grad=True, cache=False).grad(*arguments(), wrt="a").any()


def assert_nothing_is_at_work() -> None:
    assert not llvm_threads.line
    assert not llvm_threads.second_steps
    assert not any(thread.name == "mutad-llvm" for thread in threading.enumerate())
    assert llvm_options.Reduction.by_llvm
    assert not llvm_threads.inside.count


@pytest.mark.parametrize("look", ["inspect", "explain", "check_gradient"])
def test_who_looks_waits_for_who_compiles(look: str) -> None:
    compiled = mutad.compile(product, grad=True, cache=False)
    compiled.grad(*arguments(), wrt="a")
    done = threading.Event()

    def looks() -> None:
        if look == "check_gradient":
            mutad.check_gradient(compiled, *arguments())
        elif look == "explain":
            compiled.explain(*arguments())
        else:
            compiled.inspect("frontend", *arguments())
        done.set()

    thread = threading.Thread(target=looks)
    with native_code.compiling:
        thread.start()
        assert not done.wait(0.3)
    thread.join()
    assert done.is_set()


# Tasks. ----------------------------------------------------------------------------------------------


def test_a_task_is_done_by_a_thread(processors) -> None:
    with completed():
        task = begun(threading.current_thread)
        assert task.result() is not threading.main_thread() or not llvm_threads.others
    assert_nothing_is_at_work()


def test_or_by_who_asks_for_it(monkeypatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 1)
    assert begun(threading.current_thread).result() is threading.main_thread()


def test_what_a_task_raises_who_asks_for_it_gets(processors) -> None:
    def fails() -> None:
        raise ValueError("here")

    with completed():
        task = begun(fails)
        with pytest.raises(ValueError, match="here"):
            task.result()


def test_what_was_taken_out_of_the_line_is_done_when_it_is_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 1)
    with completed():
        task = begun(lambda: 3)
    assert task.result() == 3


def test_options_wait_for_what_is_emitted(processors) -> None:
    ended = threading.Event()
    with llvm_options.ended():
        llvm_options.set_reduction(by_llvm=False)
        begun(lambda: ended.wait(0.1) or ended.set())
        llvm_options.set_reduction(by_llvm=True)
        assert ended.is_set()
