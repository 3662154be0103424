"""Memory is the host's or the device's, and nothing is taken for the other."""

from __future__ import annotations

import numpy as np
import pytest
from device_programs import waves
from on_device import on_device, on_host
from race_oracle import watched
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import mutad
from mutad.compiler.kernels.check_spaces import CheckSpaces

HERE, THERE = "memref<?xf64>", "memref<?xf64, 1 : i64>"
MIXED = {
    "an element of the device is loaded": f"""
      func.func @f(%u : {THERE}, %i : index) {{
        %x = memref.load %u[%i] : {THERE}
        func.return
      }}""",
    "an element of the host is fetched": f"""
      func.func @f(%i : index) {{
        %u = array.alloc(%i) : {HERE}
        %x = device.fetch %u[%i] : {HERE} -> f64
        func.return
      }}""",
    "an argument is of the host": f"""
      func.func @f(%u : {HERE}) {{
        func.return
      }}""",
    "a loop exchanges two memories": f"""
      func.func @f(%u : {THERE}, %n : index) {{
        %h = array.alloc(%n) : {HERE}
        %trips, %a, %b = array.loop %i to %n carry(%c = %u : {THERE}, %d = %h : {HERE}) do {{
          array.yield %d, %c : {HERE}, {THERE}
        }}
        func.return
      }}""",
    "a view is elsewhere": f"""
      func.func @f(%u : {THERE}, %i : index) {{
        %v = array.view %u[%i] dims [] extents() steps() : {THERE} -> memref<f64, strided<[]>>
        func.return
      }}""",
    "a kernel is given an array of the host": f"""
      func.func @f(%n : index) {{
        %h = array.alloc(%n) : {HERE}
        device.launch @k blocks(%n) (%h : {HERE})
        func.return
      }}
      func.func private @k(%u : {THERE}) attributes {{kernel}} {{
        func.return
      }}""",
    "a tape has both": f"""
      func.func @f(%n : index) {{
        %t = ad.tape
        %s = ad.push %t(%n) : {HERE}
        %p = ad.pop %t(%n) : {THERE}
        func.return
      }}""",
    "halves of a gradient differ": f"""
      func.func @f(%n : index) -> (!ad.tape) {{
        %t = ad.tape
        %s = ad.push %t(%n) : {HERE}
        func.return %t : !ad.tape
      }}
      func.func @g(%kept : !ad.tape, %n : index) {{
        %t = ad.reader %kept
        %s = ad.pop %t(%n) : {THERE}
        func.return
      }}""",
}


@pytest.mark.parametrize("name", MIXED)
def test_memories_are_not_mixed(name: str, context: Context) -> None:
    module = Parser(context, MIXED[name]).parse_module()
    with pytest.raises(VerifyException, match=r"takes memory of|other types than it takes"):
        CheckSpaces().apply(context, module)


def saved_elements(u, v, n):
    """The host saves what `v[n, n]` was, one number at a time; a kernel puts it back."""
    for i in range(1, n - 1, 2):
        for j in range(i, -1, -1):
            for k in range(n):
                u[1 : 1 + n] = np.tanh(0.3 * (v[j : j + n, 1 : n + 1] @ u[i - 1 : i - 1 + n]))
                v[n, n] = u[2 + j] / (1.5 + u[2 * i - 1] * u[2 * i - 1])
    return (u * u).sum() + (v * v).sum()


def saved_copy(u, v, n):
    """As above, of an array that the caller does not have; so both halves of `vjp` save its element."""
    w = v * 1.0
    while n > 0.5:
        u[:] = np.tanh(0.3 * (w * u))
        w[2] = u[int(n)] / (1.5 + u[1] ** 2)
        n = n * 0.8
    return (u * u).sum() + (w * w).sum()


def test_what_is_saved_is_where_it_is_read() -> None:
    compiled = mutad.compile(saved_elements, grad=True, opt=1)
    given = waves(18), waves(18, 18), 4
    here = compiled.grad(*(a.copy() for a in given[:2]), 4, wrt=("u", "v"))
    with watched():
        there = on_host(compiled.grad(*on_device(given), wrt=("u", "v")))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_what_the_first_half_saves_is_where_the_second_reads_it() -> None:
    compiled = mutad.compile(saved_copy, grad=True, opt=1)
    wanted = compiled.vjp(waves(18), waves(18), 9.0, wrt=("u", "v"))[1]()
    with watched():
        _, back = compiled.vjp(*on_device((waves(18), waves(18), 9.0)), wrt=("u", "v"))
        found = on_host(back())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
