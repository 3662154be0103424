"""Compiled functions as functions of PyTorch tensors, differentiable by autograd.

::

    import mutad.torch

    @mutad.torch.wrap
    @mutad.compile(grad=True)
    def heat(u, k, steps): ...

    u = torch.ones(100, dtype=torch.float64, requires_grad=True)
    loss = heat(u * 1.0, k, 50).sum()
    loss.backward()

Tensors lie on the CPU and share their memory with the arrays that the function sees; nothing is copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from . import _with_gradient  # pyright: ignore[reportPrivateUsage]
from .runtime.bridge_calls import Bridged, Call, is_float, outputs_of
from .runtime.user_tracebacks import concise

torch: Any = import_module("torch")
Tensor = Any


def wrap(function: Callable[..., Any], *, second: bool = False) -> Callable[..., Any]:
    """The function, of tensors: it is called in the same way, and takes part in autograd.

    function: compiled, or a Python function, which then is.
    second: keep copies of the tensors that the function overwrites, for second derivatives of them. Those of
        others need none.

    A tensor with dimensions is an array that shares its memory, one without is a number. What the function
    stores to an array is stored in the tensor, as an in-place operation of PyTorch: the tensor is then the
    result of the call. Numbers are returned as tensors without dimensions where they are floats; arrays as
    tensors that share their memory.
    """
    bridged = Bridged(_with_gradient(function), _with_gradient)

    @concise
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        one = bridged.call(args, kwargs)
        places = [k for k, a in enumerate(one.arguments) if torch.is_tensor(a)]
        tensors = [one.arguments[k] for k in places]
        for k, tensor in zip(places, tensors, strict=True):
            one.arguments[k] = numpy_of(tensor, one.names[k])
        run = Run(one, tuple(places), tensors, second)
        copies = [tensors[k].clone() for k in run.dirty] if second else []
        outputs = _Run.apply(run, *tensors, *copies)
        return run.result(outputs if isinstance(outputs, tuple) else (outputs,))

    return call


def numpy_of(tensor: Tensor, name: str) -> Any:
    """The array over a tensor's memory; of a tensor without dimensions, its number."""
    if tensor.device.type != "cpu":
        raise TypeError(f"argument {name!r} is on {tensor.device}: pass {name}.cpu()")
    array = tensor.detach().numpy()
    if array.ndim:
        return array
    number = array[()]
    return number if array.dtype == np.float32 else number.item()


def tensor_of(value: Any, like: Tensor = None) -> Tensor:
    """The tensor over an array's memory; of a number, a tensor without dimensions."""
    if type(value) is np.ndarray:
        return torch.from_numpy(value)
    dtype = torch.float64 if like is None else like.dtype
    if type(value) is np.float32:
        dtype = torch.float32
    return torch.tensor(float(value), dtype=dtype)


class Run:
    """One call, on its way through autograd."""

    def __init__(
        self, call: Call, places: tuple[int, ...], tensors: Sequence[Tensor], second: bool
    ) -> None:
        self.call, self.places, self.keeps_copies = call, places, second
        written = call.written() if tensors else ()
        self.dirty = [k for k, place in enumerate(places) if call.names[place] in written]
        """Of the tensors, those that the function stores to."""
        for k in self.dirty:
            if tensors[k].requires_grad and tensors[k].is_leaf and torch.is_grad_enabled():
                raise RuntimeError(
                    f"{call.names[places[k]]!r} is a leaf that requires a gradient, and the function stores"
                    " to it: pass .clone()"
                )
        self.moving: list[int] = []
        """Of the tensors, those that there is a gradient of."""
        self.back: Any = None
        self.items: list[Any] = []
        """Of the result: the place among the outputs, or what is handed on as it is."""
        self.is_tuple = False
        self.expressions: list[str] = []
        """Of each output that has a cotangent."""

    def name(self, k: int) -> str:
        return self.call.names[self.places[k]]

    def forward(self, needed: Sequence[bool], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """Run the primal; the outputs: tensors that were stored to, then those of the result."""
        arguments = self.call.arguments
        self.moving = [k for k, n in enumerate(needed) if n and tensors[k].dtype.is_floating_point]
        if self.moving:
            wrt = tuple(map(self.name, self.moving))
            result, self.back = self.call.function.vjp(*arguments, wrt=wrt)
        else:
            result = self.call.function(*arguments)
        outputs = [tensors[k] for k in self.dirty]
        self.expressions = [f"{self.name(k)}[...]" for k in self.dirty]
        self.is_tuple = type(result) is tuple
        for expression, value in outputs_of(result):
            if isinstance(value, np.ndarray) or is_float(value):
                self.items.append(Place(self.place(value, outputs, tensors)))
                if self.items[-1].number == len(outputs) - 1 >= len(self.expressions):
                    is_array = isinstance(value, np.ndarray)
                    self.expressions.append(f"{expression}[...]" if is_array else expression)
            else:
                self.items.append(value)
        return tuple(outputs)

    def place(self, value: Any, outputs: list[Any], tensors: Sequence[Tensor]) -> int:
        """The place of a result among the outputs; an argument that was stored to is there already."""
        if isinstance(value, np.ndarray):
            for number, k in enumerate(self.dirty):
                if value is self.call.arguments[self.places[k]]:
                    return number
            if any(
                isinstance(a, np.ndarray) and np.may_share_memory(a, value)
                for a in self.call.arguments
            ):
                value = value.copy()  # autograd knows of no other tensor over this memory
        outputs.append(tensor_of(value))
        return len(outputs) - 1

    def result(self, outputs: Sequence[Tensor]) -> Any:
        """The result, of tensors that autograd knows."""
        items = [outputs[i.number] if isinstance(i, Place) else i for i in self.items]
        return tuple(items) if self.is_tuple else items[0]

    def pulled_back(self, cotangents: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of what moves."""
        bars = [bar_of(c) for c in cotangents]
        final = {
            self.name(k): bars[n]
            for n, k in enumerate(self.dirty)
            if self.call.arguments[self.places[k]].dtype.kind == "f"
        }
        items = [
            bars[i.number] if isinstance(i, Place) and i.number >= len(self.dirty) else None
            for i in self.items
        ]
        out = tuple(items) if self.is_tuple else items[0]
        return [tensor_of(g) for g in self.back(out, **final)]

    def second(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor], directions: Sequence[Tensor]
    ) -> tuple[list[Any], dict[int, Tensor]]:
        """What the gradients' cotangents are pulled back to: cotangents of cotangents, and of inputs."""
        function: Any = self.call.function
        call = Call(self.call.of, function, [*self.call.arguments])
        for k, (place, tensor) in enumerate(zip(self.places, inputs, strict=True)):
            array = numpy_of(tensor, call.names[place])
            call.arguments[place] = array.copy() if k in self.dirty else array
        floats = [n for n, c in enumerate(cotangents) if c.dtype.is_floating_point]
        names = [self.name(k) for k in self.moving]
        of_cotangents, of_inputs = call.second(
            [self.expressions[n] for n in floats],
            [bar_of(cotangents[n]) for n in floats],
            names,
            [bar_of(d) for d in directions],
        )
        bars: list[Any] = [None] * len(cotangents)
        for n, bar in zip(floats, of_cotangents, strict=True):
            bars[n] = tensor_of(bar, cotangents[n])
        pairs = zip(self.moving, of_inputs, strict=True)
        return bars, {k: tensor_of(bar, inputs[k]) for k, bar in pairs}


class Place:
    """Where an item of the result is among the outputs."""

    def __init__(self, number: int) -> None:
        self.number = number


def bar_of(cotangent: Tensor) -> Any:
    """A cotangent as an array, or as a number."""
    return numpy_of(cotangent.contiguous(), "cotangent")


class _Run(torch.autograd.Function):
    """The function, to autograd."""

    @staticmethod
    @concise
    def forward(ctx: Any, run: Run, *given: Tensor) -> Any:
        """Of the tensors, and of copies of those that are stored to, which lead to what they were."""
        tensors, copies = given[: len(run.places)], given[len(run.places) :]
        saved = list(tensors)
        for k, copy in zip(run.dirty, copies, strict=False):
            saved[k] = copy
        outputs = run.forward(ctx.needs_input_grad[1 : 1 + len(tensors)], tensors)
        ctx.mark_dirty(*(tensors[k] for k in run.dirty))
        ctx.mark_non_differentiable(*(o for o in outputs if not o.dtype.is_floating_point))
        ctx.run, ctx.count = run, len(given)
        if not run.dirty or run.keeps_copies:
            ctx.save_for_backward(*saved)
        return outputs

    @staticmethod
    @concise
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        run: Run = ctx.run
        if not torch.is_grad_enabled():
            found = run.pulled_back(cotangents)
        elif run.dirty and not run.keeps_copies:
            stored = ", ".join(repr(run.name(k)) for k in run.dirty)
            raise RuntimeError(
                f"second derivatives of a function that stores to {stored} need what was there before: wrap"
                " it with second=True"
            )
        else:
            found = _Gradient.apply(run, len(cotangents), *cotangents, *ctx.saved_tensors)
        gradients: list[Any] = [None] * ctx.count
        for k, gradient in zip(run.moving, found, strict=True):
            gradients[k] = gradient
        return None, *gradients


class _Gradient(torch.autograd.Function):
    """Its gradient, to autograd: a function of the outputs' cotangents and of the inputs."""

    @staticmethod
    @concise
    def forward(ctx: Any, run: Run, count: int, *tensors: Tensor) -> Any:
        ctx.run, ctx.count = run, count
        ctx.save_for_backward(*tensors)
        return tuple(run.pulled_back(tensors[:count]))

    @staticmethod
    @torch.autograd.function.once_differentiable
    @concise
    def backward(ctx: Any, *directions: Tensor) -> Any:
        cotangents, inputs = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        bars, of_inputs = ctx.run.second(inputs, cotangents, directions)
        return None, None, *bars, *(of_inputs.get(k) for k in range(len(inputs)))
