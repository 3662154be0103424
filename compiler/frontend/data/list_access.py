"""What the lowering of expressions and statements asks of that of lists."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

from ..context import Context
from ..syntax.comprehensions import Intrinsic
from ..values import Scalar, Tuple, Value
from .lists import FixedList, ListMethod, ListObject


class Asked(ast.expr):
    """An expression that the frontend makes itself: whatever `answer` emits."""

    _fields = ()
    answer: Callable[[], Value]


class ListAccess(Context):
    """The operations on lists that expressions and statements stand for."""

    @abstractmethod
    def list_of(self, value: Value) -> ListObject | None:
        """The list that a value is; None for anything else."""

    @abstractmethod
    def text(self, node: ast.expr) -> tuple[str, list[Scalar]]:
        """A message, as a format and its operands."""

    @abstractmethod
    def list_display(self, node: ast.List) -> Value:
        """`[a, b, c]`."""

    @abstractmethod
    def comprehension(self, node: ast.expr) -> Value:
        """A list comprehension or a generator expression."""

    @abstractmethod
    def consumes(self, function: object, node: ast.Call) -> bool:
        """True for a call of what takes the items of its argument one by one."""

    @abstractmethod
    def consumed(self, function: Any, node: ast.Call) -> Value:
        """Lower such a call."""

    @abstractmethod
    def intrinsic(self, which: Intrinsic, args: list[Value]) -> Value:
        """A step of the builtin `sum`."""

    @abstractmethod
    def growing(self, value: FixedList) -> NoReturn:
        """A list of known length is used as one that may change."""
        raise NotImplementedError

    @abstractmethod
    def list_attribute(self, receiver: ListObject, name: str) -> Value:
        """A method of a list."""

    @abstractmethod
    def call_list_method(
        self, method: ListMethod, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        """Call a method of a list."""

    @abstractmethod
    def list_subscript(self, seq: ListObject, node: ast.Subscript) -> Value:
        """`l[i]`, `l[a:b]`."""

    @abstractmethod
    def list_operator(self, op: str, lhs: Value, rhs: Value, node: ast.AST) -> Value | None:
        """An operator with a list; None where no operand is one."""

    @abstractmethod
    def compare_lists(self, name: str, lhs: Value, rhs: Value) -> Value:
        """Comparison with a list."""

    @abstractmethod
    def same_row(self, lhs: Value, rhs: Value) -> Scalar | None:
        """`is` of lists one of which is an item of another; None for anything else."""

    @abstractmethod
    def order_tuples(self, name: str, lhs: Tuple, rhs: Tuple) -> Value:
        """`a < b` of tuples, and the like."""

    @abstractmethod
    def repeat_in_place(self, seq: ListObject, times: Value, node: ast.AST) -> None:
        """`l *= n`."""

    @abstractmethod
    def written_items(self, seq: ListObject) -> tuple[Value, ...] | None:
        """The items of a list display that is never changed."""

    @abstractmethod
    def in_list(self, seq: ListObject, item: Value) -> Scalar:
        """`item in l`."""

    @abstractmethod
    def as_array(self, value: Value, *, keep: bool) -> Value:
        """A list as NumPy sees it, anything else as it is."""

    @abstractmethod
    def joined_rows(
        self, callee: object, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        """`np.concatenate` of a list of arrays of several shapes; None for any other call."""

    @abstractmethod
    def name_argument(self, serial: int, name: str, value: Value) -> None:
        """A parameter names a list while its function runs."""

    @abstractmethod
    def forget_names(self, serial: int) -> None:
        """The names of a frame end with it."""
