"""Operators and comparisons of objects: by the methods of their classes, field by field, by identity."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import is_dataclass

from xdsl.dialects import arith

from .. import scalars
from ..context import same_binding
from ..values import (
    Array,
    Item,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from .classes import (
    class_of_receiver,
    described,
    found_in,
    is_another_kind,
    is_generated_function,
    method_of,
)
from .fields import is_object
from .records import Records

OPERATOR_METHODS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod",
    "Pow": "pow", "MatMult": "matmul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
    "LShift": "lshift", "RShift": "rshift",
}  # fmt: skip
COMPARISON_METHODS = {
    "Eq": "__eq__", "NotEq": "__ne__", "Lt": "__lt__", "LtE": "__le__", "Gt": "__gt__", "GtE": "__ge__",
}  # fmt: skip
REFLECTED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}
UNARY_METHODS = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}


class ObjectOperators(Records):
    """Lowers what operators and comparisons do with objects."""

    def object_operator(self, op: str, lhs: Value, rhs: Value) -> Value | None:
        """`lhs op rhs` by a method of their classes; None where they have none."""
        if op == "BitOr" and all(
            isinstance(v, Record | Struct) and v.cls is dict for v in (lhs, rhs)
        ):
            return self.joined_dicts(lhs, rhs)
        name = OPERATOR_METHODS[op]
        made = self.by_methods(f"__{name}__", f"__r{name}__", lhs, rhs)
        if made is not None:
            return made
        if isinstance(lhs, Record | Struct) or isinstance(rhs, Record | Struct):
            raise self.refusal(
                None,
                f"`{scalars.SYMBOL[op]}` of {described(lhs)} and {described(rhs)}",
                "compute with what is in them",
            )
        return None

    def by_methods(self, method: str, mirrored: str, lhs: Value, rhs: Value) -> Value | None:
        """What the method of `lhs` says, or the mirrored one of `rhs`: it is asked first where its class is
        one of the other's subclasses that has its own, and where the other does not know."""
        sides = [(lhs, method_of(lhs, method), rhs), (rhs, method_of(rhs, mirrored), lhs)]
        if is_object(lhs) and is_object(rhs):
            classes = class_of_receiver(lhs), class_of_receiver(rhs)
            inherited = found_in(classes[0], mirrored) == found_in(classes[1], mirrored)
            if (
                classes[0] is not classes[1]
                and issubclass(classes[1], classes[0])
                and not inherited
            ):
                sides.reverse()
        for receiver, found, other in sides:
            if found is None or is_generated_function(found):
                continue
            node = self.frame.source.node
            made = self.invoked(found, [receiver, other], node)
            if not isinstance(made, Static) or made.object is not NotImplemented:
                return made
        return None

    @abstractmethod
    def truth(self, value: Value) -> Scalar:
        """`bool(value)`."""

    @abstractmethod
    def joined_dicts(self, lhs: Value, rhs: Value) -> Value:
        """`d | e`."""

    def object_comparison(self, op: ast.cmpop, lhs: Value, rhs: Value) -> Value | None:
        """A comparison of objects; None where that of their kind will do."""
        name = type(op).__name__
        if name in ("In", "NotIn"):
            return None
        if name in ("Is", "IsNot"):
            return self.same_object(name == "Is", lhs, rhs)
        method = COMPARISON_METHODS[name]
        mirrored = COMPARISON_METHODS[REFLECTED.get(name, name)]
        made = self.by_methods(method, mirrored, lhs, rhs)
        if made is None and name == "NotEq":
            made = self.by_methods("__eq__", "__eq__", lhs, rhs)
            made = None if made is None else scalars.unary(self.e, "Not", self.truth(made))
        if made is not None:
            return made
        if not isinstance(lhs, Record | Struct) and not isinstance(rhs, Record | Struct):
            return None
        if isinstance(lhs, Record | Struct) and isinstance(rhs, Record | Struct):
            if name in ("Eq", "NotEq"):
                return self.equal_objects(name == "Eq", lhs, rhs)
            if name in REFLECTED and lhs.cls is rhs.cls and orders_fields(lhs.cls):
                sides = (Tuple(self.compared(side)) for side in (lhs, rhs))
                return self.compare_values(op, *sides)
        elif name in ("Eq", "NotEq") and any(map(is_another_kind, (lhs, rhs))):
            return self.e.constant(name == "NotEq", "py_bool")
        raise self.refusal(None, f"{described(lhs)} is compared with {described(rhs)}")

    def compared(self, value: Record | Struct) -> tuple[Value, ...]:
        """The fields by which dataclasses are ordered."""
        found = [self.field(value, name) for name in compared_fields(value.cls)]
        return tuple(v for v in found if v is not None)

    def same_object(self, same: bool, lhs: Value, rhs: Value) -> Value | None:
        lhs = self.item_now(lhs) if isinstance(lhs, Record) else lhs
        rhs = self.item_now(rhs) if isinstance(rhs, Record) else rhs
        if isinstance(lhs, Item) and isinstance(rhs, Item) and lhs.store == rhs.store:
            one = self.e.emit(arith.CmpiOp(lhs.at, rhs.at, "eq" if same else "ne"))
            return Scalar("py_bool", one, None, 0, 1)
        if isinstance(lhs, Record) and isinstance(rhs, Record):
            return self.e.constant((lhs is rhs) is same, "py_bool")
        if any(isinstance(v, NoneValue | Scalar | Array) for v in (lhs, rhs)):
            return self.e.constant(not same, "py_bool")
        self.use_heap(*(v.cls for v in (lhs, rhs) if isinstance(v, Struct)))
        raise self.refusal(None, "`is` compares objects that are values here", "use `==`")

    def equal_objects(self, equal: bool, lhs: Record | Struct, rhs: Record | Struct) -> Value:
        """`==` of two dataclass instances, or of two dicts."""
        if lhs.cls is rhs.cls and (lhs.cls is dict or compares_fields(lhs.cls)):
            mine, theirs = self.keys_of(lhs), self.keys_of(rhs)
            if set(mine) != set(theirs):
                return self.e.constant(not equal, "py_bool")
            keys = mine if lhs.cls is dict else compared_fields(lhs.cls)
            same = self.e.constant(True, "py_bool")
            for key in keys:
                a, b = self.field(lhs, key), self.field(rhs, key)
                if a is not None and b is not None and not same_binding(a, b):
                    one = scalars.truth(self.e, self.compare_values(ast.Eq(), a, b))
                    same = self.conjunction("and", same, one)
            return same if equal else scalars.unary(self.e, "Not", same)
        if isinstance(lhs, Record) and isinstance(rhs, Record):
            found = self.same_object(equal, lhs, rhs)
            assert found is not None
            return found
        raise self.refusal(
            None, f"objects of class {lhs.cls.__name__} are compared", "compare their fields"
        )


def compares_fields(cls: type) -> bool:
    """True where `==` is that of dataclasses."""
    return is_dataclass(cls) and bool(cls.__dataclass_params__.eq)  # pyright: ignore


def orders_fields(cls: type) -> bool:
    """True where `<` is that of dataclasses."""
    return is_dataclass(cls) and bool(cls.__dataclass_params__.order)  # pyright: ignore


def compared_fields(cls: type) -> list[str]:
    return [
        f.name
        for f in cls.__dataclass_fields__.values()
        if f.compare and f._field_type.name == "_FIELD"
    ]  # pyright: ignore
