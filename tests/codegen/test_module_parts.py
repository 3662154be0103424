"""Large modules are compiled in parts, at once, and compute what they compute as a whole."""

from __future__ import annotations

import functools
import heapq
import locale
import operator
import os
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen import llvm_module, llvm_threads, module_parts
from mutad.compiler.codegen.llvm_module import machine_of, optimize_in_parts
from mutad.compiler.codegen.llvm_threads import (
    LONG_CALLS,
    CacheOfThread,
    Rest,
    at_once,
    ffi,
    without_lock,
)
from mutad.compiler.codegen.module_parts import DEFINITION, parts_of

LOOP = """
  br label %loop{k}
loop{k}:
  %i{k} = phi i64 [ 0, %{before} ], [ %next{k}, %loop{k} ]
  %at{k} = getelementptr double, ptr %x, i64 %i{k}
{body}
  store double %v{k}.{last}, ptr %at{k}
  %next{k} = add i64 %i{k}, 1
  %again{k} = icmp slt i64 %next{k}, %n
  br i1 %again{k}, label %loop{k}, label %done{k}
done{k}:"""
KERNEL = """
define internal double @twice(double %v) alwaysinline {{
  %w = fmul double %v, 2.0
  ret double %w
}}
define internal void @apart(ptr %x) noinline {{
  %v = load double, ptr %x
  %w = call double @twice(double %v)
  store double %w, ptr %x
  ret void
}}
define internal i32 @kernel(ptr %x, i64 %n) {{
entry:{loops}
  call void @apart(ptr %x)
  ret i32 0
}}
@mutad_exported = alias i32 (), ptr @kernel
"""


def loop(k: int, length: int) -> str:
    lines = [f"  %v{k}.0 = load double, ptr %at{k}"]
    lines += [f"  %v{k}.{j + 1} = call double @twice(double %v{k}.{j})" for j in range(length)]
    before = f"done{k - 1}" if k else "entry"
    return LOOP.format(k=k, before=before, body="\n".join(lines), last=length)


def module(loops: int = 6, length: int = 200, more: str = "") -> str:
    return KERNEL.format(loops="".join(loop(k, length) for k in range(loops))) + more


def parts(text: str) -> list[str]:
    return parts_of(text, machine_of(3, None))


def definitions(part: str) -> list[str]:
    return [found[1] for line in part.splitlines() if (found := DEFINITION.match(line))]


def test_loops_are_shared_out() -> None:
    made = parts(module())
    assert len(made) == module_parts.MOST_PARTS
    found = [name for part in made for name in definitions(part)]
    assert len([name for name in found if name.startswith("kernel.loop")]) == 6
    assert len(set(found) - {"twice"}) == len([name for name in found if name != "twice"])
    assert found.count("apart") == 1
    assert sum("@mutad_exported = alias" in part for part in made) == 1
    sizes = [sum(len(line) > 0 for line in part.splitlines()) for part in made]
    assert max(sizes) < 2 * min(sizes)


def test_what_is_called_is_there() -> None:
    """Each part has, or declares, all that it names; what it declares another part exports."""
    made = parts(module())
    for part in made:
        named = set(re.findall(r"call [^@]*@([\w.]+)\(", part))
        assert named <= set(re.findall(r"^(?:define|declare) [^@]*@([\w.]+)\(", part, re.M))
    declared = {
        name for part in made for name in re.findall(r"^declare [^@]*@(kernel[\w.]*)", part, re.M)
    }
    exported = {
        name
        for part in made
        for name in re.findall(r"^define (?!internal)[^@]*@([\w.]+)", part, re.M)
    }
    assert declared
    assert declared <= exported


@pytest.mark.parametrize(
    "text",
    [
        module(length=20),
        module(more="@count = internal global i64 0\n"),
        module(more="@table = internal constant [1 x ptr] [ptr @apart]\n"),
        module(more="!llvm.dbg.cu = !{}\n"),
    ],
    ids=["small", "variable", "table", "debugged"],
)
def test_other_modules_stay_whole(text: str) -> None:
    assert parts(text) == [text]


def test_small_loops_are_inlined_again() -> None:
    small = module_parts.LEAST_LOOP // 3
    loops = [loop(k, small if k % 2 else 250) for k in range(6)]
    found = [
        name for part in parts(KERNEL.format(loops="".join(loops))) for name in definitions(part)
    ]
    assert {name for name in found if name.startswith("kernel.")} >= {
        "kernel.loop0",
        "kernel.loop4",
    }
    text = "\n".join(parts(KERNEL.format(loops="".join(loops))))
    assert re.search(r"^define internal [^@]*@kernel\.loop1\(.* alwaysinline ", text, re.M)


def test_code_does_not_depend_on_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for count in (1, 2, 5):
        monkeypatch.setattr(llvm_threads, "processors", lambda count=count: count)
        made.append(optimize_in_parts(module()))
    assert made[0] == made[1] == made[2]
    assert len(made[0]) > 1


# Programs. -----------------------------------------------------------------------------------------


def several_sweeps(u, v, n):
    total = 0.0
    for t in range(n):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + np.sin(v[i + 1]))
    for t in range(n):
        v[1:-1] = v[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2]) * np.exp(-v[1:-1])
    for i in range(u.shape[0]):
        if v[i] > 1.0:
            total += u[i] * v[i]
        else:
            total += np.tanh(u[i])
    for i in range(1, v.shape[0]):
        v[i] += u[i - 1] / (2.0 + v[i - 1])
    if total > 1e6:
        raise ValueError("too large")
    return total + (v * v).sum()


def arguments(size: int = 30):
    rng = np.random.default_rng(3)
    return rng.random(size), 2.0 * rng.random(size), 4


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_parts, "LEAST_MODULE", 50)
    monkeypatch.setattr(module_parts, "LEAST_LOOP", 10)
    monkeypatch.setattr(module_parts, "PART", 40)


def of_everything(f):
    """What all calls of it return, and the arrays that they leave."""
    u, v, n = arguments()
    seen = [f(u, v, n), u, v]
    for call in (f.grad, f.value_and_grad):
        u, v, n = arguments()
        seen += [call(u, v, n, wrt=("u", "v")), u, v]
    u, v, n = arguments()
    value, back = f.vjp(u, v, n)
    seen += [value, back(1.0), u, v]
    u, v, n = arguments()
    seen.append(f.jvp(u, v, n, tangents={"u": np.ones_like(u), "v": v.copy()}))
    u, v, n = arguments()
    return [*seen, f.hvp(u, v, n, wrt="u", direction=np.ones_like(u))]


def flat(values):
    return [
        np.asarray(x) for one in values for x in (flat(one) if isinstance(one, tuple) else [one])
    ]


def test_parts_compute_what_the_whole_computes(small_parts, monkeypatch) -> None:
    f = compile(several_sweeps, grad=True, cache=False)
    counts = []
    load = module_parts.shared_out
    monkeypatch.setattr(module_parts, "shared_out", lambda m: counts.append(1) or load(m))
    in_parts = of_everything(f)
    assert len(counts) >= 5
    monkeypatch.setattr(module_parts, "LEAST_MODULE", 10**9)
    whole = of_everything(compile(several_sweeps, grad=True, cache=False))
    for one, other in zip(flat(in_parts), flat(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def test_exceptions_come_out_of_loops_that_are_functions(small_parts) -> None:
    f = compile(several_sweeps, grad=True, cache=False)
    u, v, n = arguments()
    with pytest.raises(ValueError, match="too large"):
        f.grad(1e7 * u, v + 1.0, 0, wrt="u")
    with pytest.raises(IndexError):
        f.grad(u, v[:3].copy(), n, wrt="u")


def test_parts_come_from_the_disk_cache(small_parts, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path))
    first = compile(several_sweeps, grad=True).grad(*arguments(), wrt="u")
    monkeypatch.setattr(module_parts, "parts_of", None)  # whoever compiles fails
    f = compile(several_sweeps, grad=True)
    np.testing.assert_array_equal(f.grad(*arguments(), wrt="u"), first)
    metadata = next(iter(f.dispatcher.table.values())).metadata
    assert len(metadata["parts"]) > 1


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
def test_perf_names_the_functions_of_all_parts(small_parts, monkeypatch) -> None:
    monkeypatch.setenv("MUTAD_PERF", "1")
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    compile(several_sweeps, grad=True, cache=False).grad(*arguments(), wrt="u")
    names = set(re.findall(r"py::several_sweeps\.grad\.body\.\d+:", path.read_text()))
    path.unlink()
    assert len(names) > 1


# Threads. ------------------------------------------------------------------------------------------


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 3)


def test_work_is_done_in_threads_and_in_order(processors) -> None:
    meeting = threading.Barrier(3)

    def work(k: int) -> tuple[int, int]:
        if k < 3:
            meeting.wait(10)
        return k, threading.get_ident()

    made = at_once(work, range(8))
    assert [k for k, _ in made] == list(range(8))
    assert len({ident for _, ident in made}) == 3


def test_the_first_error_is_raised_when_all_have_ended(processors) -> None:
    ended: list[int] = []
    meeting = threading.Barrier(3)

    def work(k: int) -> None:
        meeting.wait(10)
        if k:
            raise ValueError(k)
        time.sleep(0.05)
        ended.append(k)

    with pytest.raises(ValueError, match="1"):
        at_once(work, range(3))
    assert ended == [0]


@pytest.mark.parametrize("count", [1, 3])
def test_the_second_steps_stand_at_the_end_of_the_line(monkeypatch, count: int) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: count)
    steps: list[tuple[str, int]] = []

    def first(k: int) -> Rest[int]:
        steps.append(("first", k))
        return Rest(functools.partial(second, k))

    def second(k: int) -> int:
        steps.append(("second", k))
        return 10 * k

    assert at_once(first, range(4)) == [0, 10, 20, 30]
    assert len(steps) == 8
    if count == 1:
        assert steps == [(step, k) for step in ("first", "second") for k in range(4)]


def test_the_largest_second_steps_come_first(monkeypatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 1)
    steps: list[int] = []

    def first(k: int) -> Rest[None]:
        return Rest(functools.partial(steps.append, k), size=(5, 7, 1, 7)[k])

    at_once(first, range(4))
    assert steps == [1, 3, 0, 2]


def test_another_thread_may_do_the_second_step(monkeypatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 2)
    second_begun, third_begun, first_done = (threading.Event() for _ in range(3))

    def first(k: int) -> Rest[tuple[int, int]]:
        if k == 0:
            assert second_begun.wait(10)
        if k == 1:  # in another thread
            second_begun.set()
            assert third_begun.wait(10)
        if k == 2:  # the thread of 0 is here
            third_begun.set()
            assert first_done.wait(10)
        return Rest(functools.partial(second, k, threading.get_ident()))

    def second(k: int, before: int) -> tuple[int, int]:
        if k == 0:
            first_done.set()
        return before, threading.get_ident()

    before, after = at_once(first, range(3))[0]
    assert before != after


def test_an_error_in_the_second_step_is_raised(processors) -> None:
    def first(k: int) -> Rest[int]:
        return Rest(functools.partial(operator.floordiv, 6, k))

    with pytest.raises(ZeroDivisionError):
        at_once(first, [1, 0, 2, 3])
    assert not llvm_threads.line
    assert not llvm_threads.second_steps
    assert not llvm_threads.others


def test_a_ctrl_c_between_two_steps_leaves_the_second_in_the_line(monkeypatch) -> None:
    push = heapq.heappush

    def then_ctrl_c(heap, item) -> None:
        push(heap, item)
        raise KeyboardInterrupt

    monkeypatch.setattr(llvm_threads, "processors", lambda: 1)
    monkeypatch.setattr(heapq, "heappush", then_ctrl_c)
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        at_once(lambda k: Rest(functools.partial(done.append, k)), [7])
    llvm_threads.complete()  # another call's
    assert done == [7]
    assert not llvm_threads.second_steps


def test_what_a_thread_has_made_is_the_next_ones(monkeypatch) -> None:
    monkeypatch.setattr(llvm_threads, "processors", lambda: 2)
    monkeypatch.setattr(llvm_threads, "caches", [])
    made: list[int] = []
    cache = CacheOfThread(lambda k: made.append(k) or threading.get_ident())
    for _ in range(3):
        meeting = threading.Barrier(2)
        here, there = at_once(lambda k, m=meeting: (m.wait(10), cache(7))[1], range(2))
        assert here != there
    assert made == [7, 7]
    cache.cache_clear()
    at_once(cache, [7])
    assert made == [7, 7, 7]


def test_no_thread_for_one_processor_or_one_module(monkeypatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    monkeypatch.setattr(llvm_threads, "processors", lambda: 1)
    assert at_once(abs, [-1, -2]) == [1, 2]
    monkeypatch.setattr(llvm_threads, "processors", lambda: 4)
    assert at_once(abs, [-1]) == [1]


def test_a_system_without_threads_for_us(processors, monkeypatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert at_once(abs, [-1, -2, -3]) == [1, 2, 3]


def test_other_users_of_llvmlite_take_its_lock() -> None:
    def passes() -> bool:
        with getattr(ffi.lib, LONG_CALLS[0])._lock:
            passed.set()
            return passed.is_set()

    passed = threading.Event()
    other = threading.Thread(target=passes)
    with without_lock(), ffi.lib._lock:
        other.start()
        assert not passed.wait(0.1)
    other.join()
    assert passed.is_set()


def test_threads_leave_the_locale_as_it_was(processors) -> None:
    """llvmlite sets the locale of the process to print a module, and sets it back."""

    def steps(k: int) -> None:
        module = llvm_module.parsed("define void @f() {\n  ret void\n}\n", machine_of(1, None))
        module.verify()
        str(module)

    before = locale.setlocale(locale.LC_ALL)
    try:
        ours = locale.setlocale(locale.LC_ALL, "C.UTF-8")
        at_once(steps, range(2000))
        assert locale.setlocale(locale.LC_ALL) == ours
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_ours_do_not(processors) -> None:
    passed = threading.Event()

    def passes(k: int) -> None:
        with getattr(ffi.lib, LONG_CALLS[k])._lock:
            passed.wait(10)

    def holds(k: int) -> bool:
        if k == 2:
            passed.set()
        else:
            passes(k)
        return passed.is_set()

    assert at_once(holds, range(3)) == [True] * 3


def test_a_ctrl_c_before_a_thread_is_started(processors, monkeypatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt), llvm_threads.completed():
        at_once(abs, [-1, -2, -3])
    assert not llvm_threads.others
    assert not llvm_threads.line
