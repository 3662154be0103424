"""Statements: one method for each kind."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from ...dialects import array
from ..scalar_types import NUMPY_DTYPE
from . import choices, exceptions, formatting, imports, library
from .bindings import nonlocals
from .calling import nested_decorators, special_calls, star_arguments
from .catching_scopes import Caught
from .context import hint
from .data import assigned_items, hashed, protocols
from .data.lists import FixedList, ListObject
from .frames import RESULT, Unready
from .joins import ScalarT
from .raising import Raising
from .scalars import SYMBOL, is_python
from .syntax.language import why_refused
from .syntax.liveness import assigned
from .syntax.trying import Guarded
from .unpacking import Unpacking
from .values import Array, Choice, NoneValue, Record, Scalar, Static, Struct, Tuple, Value


class Statements(Raising, Unpacking):
    """Lowers `ast.stmt` nodes."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        frame, depth, homes = self.frame, len(self.calls), len(self.homes)
        loops = len(self.loops)
        outer, start = self.statement_block, self.e.block
        self.statement_block = start
        for k, statement in enumerate(statements):
            if self.dead:
                if not self.facts.unready:
                    self.leave_out(*statements[k:])
                break
            with self.located(statement):
                try:
                    self.statement(statement)
                except Unready:
                    self.frame, self.dead = frame, True
                    self.statement_block = self.e.block
                    del self.calls[depth:]
                    del self.homes[homes:]
                    del self.loops[loops:]
        self.statement_block = self.e.block if outer is start else outer

    def statement(self, s: ast.stmt) -> None:
        if self.handling and isinstance(s, ast.Expr | ast.Raise):
            several = exceptions.shown_in(self, s)
            if several is not None:
                exceptions.split(self, s, *several)
                return
        match s:
            case ast.Assign():
                value = self.expression(s.value)
                self.frame.after = self.frame.liveness.after.get(s)
                for target in s.targets:
                    self.bind(target, value)
                self.frame.after = None
            case ast.AnnAssign():
                if s.value is not None:
                    self.bind(s.target, self.expression(s.value))
            case ast.AugAssign():
                self.augmented(s)
            case ast.Expr():
                self.expression(s.value)
            case ast.Delete():
                self.delete(s)
            case ast.If():
                self.if_statement(s)
            case ast.For():
                self.for_statement(s)
            case ast.While():
                self.while_statement(s)
            case ast.Return():
                value = NoneValue() if s.value is None else self.expression(s.value)
                value = self.into_one_list(RESULT, value)
                self.frame.env[RESULT] = value if self.returning is None else self.returning(value)
            case ast.Pass() | ast.Nonlocal():
                pass
            case ast.Import() | ast.ImportFrom():
                imports.run(self, s)
            case ast.FunctionDef():
                nonlocals.bind(self, s.name, nested_decorators.decorated(self, s))
            case ast.Assert():
                self.assert_statement(s)
            case ast.Raise():
                self.raise_statement(s)
            case ast.Try():
                self.try_statement(s)
            case Guarded():
                self.guarded(s)
            case _:
                raise self.refusal(s, *why_refused(type(s)))

    def delete(self, s: ast.Delete) -> None:
        """`del name`, of a name that nothing reads any more."""
        for target in s.targets:
            if isinstance(target, ast.Subscript):
                value = self.expression(target.value)
                if isinstance(value, FixedList):
                    self.growing(value)
                if (seq := self.list_of(value)) is not None:
                    self.delete_list_item(seq, target)
                    continue
            if isinstance(target, ast.Subscript) and hashed.delete_item(self, target):
                continue
            if not isinstance(target, ast.Name):
                raise self.refusal(target, *library.ways_out.DELETED)
            if target.id in self.frame.liveness.after[s]:
                raise self.refusal(target, f"`{target.id}` may be read after this `del`")
            self.read(target.id)
            self.frame.env.pop(target.id, None)

    # Assignment

    def bind(self, target: ast.expr, value: Value) -> None:
        with self.located(target):
            match target:
                case ast.Name():
                    value = self.named_list(target.id, value)
                    hint(value, self.frame.named(target.id), self.named)
                    nonlocals.bind(self, target.id, value)
                case ast.Tuple() | ast.List():
                    self.unpack(target, value)
                case ast.Subscript():
                    self.store_subscript(target, value)
                case ast.Attribute():
                    base = self.expression(target.value)
                    if not special_calls.assigned(self, base, target, value):
                        self.set_member(base, target.attr, value, target)
                case _:
                    raise self.refusal(target, "this target of an assignment is not compiled")

    def store_subscript(self, target: ast.Subscript, value: Value) -> None:
        base = self.expression(target.value)
        base = choices.present(self, base, "'NoneType' object does not support item assignment")
        if isinstance(base, Record | Struct):
            self.set_object_item(base, target, value)
            return
        if (seq := self.list_of(base)) is not None:
            self.store_list_item(seq, target, value)
            return
        if isinstance(base, FixedList):
            if assigned_items.store(self, base, target, value):
                return
            self.growing(base)
        if not isinstance(base, Array):
            what = "a tuple" if isinstance(base, Tuple) else "something that is not an array"
            raise self.refusal(
                target, f"assignment to an item of {what}", "use a list, or an array"
            )
        value = self.storable(value)
        library.store(self.e, base, self.index(target.slice), value)

    def augmented(self, s: ast.AugAssign) -> None:
        """`target op= value`: arrays are changed in place, names of scalars rebound."""
        op = type(s.op).__name__
        match s.target:
            case ast.Name(name):
                after = self.changed(op, self.read(name), self.expression(s.value), s)
                if after is not None:
                    self.bind(s.target, after)
            case ast.Subscript():
                self.augmented_subscript(s.target, op, s.value)
            case ast.Attribute():
                if not special_calls.augmented(self, s.target, op, s.value):
                    self.augmented_member(s.target, op, s.value)

    def changed(self, op: str, before: Value, value: Value, node: ast.AST) -> Value | None:
        """What `before op= value` stores; None where it changes `before` in place."""
        before, value = choices.operands(self, f"{SYMBOL[op]}=", before, value)
        if isinstance(before, Array):
            self.in_place(op, before, value)
            return None
        if op in ("Add", "Mult") and isinstance(before, FixedList):
            self.growing(before)
        if op in ("Add", "Mult") and (seq := self.list_of(before)) is not None:
            change = self.append_all if op == "Add" else self.repeat_in_place
            change(seq, value, node)
            return None
        made = self.list_operator(op, before, value, node)
        if made is None:
            made = protocols.in_place(self, op, before, value, node)
        return self.binary_values(op, before, value) if made is None else made

    def augmented_subscript(self, target: ast.Subscript, op: str, node: ast.expr) -> None:
        base = self.expression(target.value)
        base = choices.present(self, base, "'NoneType' object is not subscriptable")
        if isinstance(base, Record | Struct):
            self.augmented_item(base, target, op, node)
            return
        if (seq := self.list_of(base)) is not None:

            def combined(before: Value) -> Value:
                return self.changed(op, before, self.expression(node), target) or before

            self.augment_list_item(seq, target, combined)
            return
        if isinstance(base, FixedList):
            item = self.tuple_item(base, target.slice)
            after = self.changed(op, item, self.expression(node), target)
            if after is None or after is item:  # and then CPython stores what is there
                return
        if not isinstance(base, Array):
            raise self.refusal(target, "assignment to an item of something that is not an array")
        index = self.index(target.slice)
        if library.is_fancy(index):
            self.augmented_selection(target, base, index, op, node)
            return
        if not self.may_write(node):
            with self.located(target):
                place = library.locate(self.e, base, index)
            value = self.expression(node)
            _, value = choices.operands(self, SYMBOL[op], base, value)
            with self.located(target):
                library.augmented(self.e, op, place, self.storable(value))
            return
        with self.located(target):
            before = library.subscript(self.e, base, index)
        after = self.changed(op, before, self.expression(node), target)
        if after is not None:
            library.store(self.e, base, index, after)

    def augmented_selection(
        self,
        target: ast.Subscript,
        base: Array,
        index: tuple[Value, ...],
        op: str,
        node: ast.expr,
    ) -> None:
        """`x[idx] op= value`: read all, compute, write all."""
        with self.located(target):
            before = library.subscript(self.e, base, index) if self.may_write(node) else None
        value = self.storable(self.expression(node))
        with self.located(target):
            if before is None and library.augmented_masked(self.e, op, base, index, value):
                return
            before = before or library.subscript(self.e, base, index)
            library.augmented_selection(self.e, op, base, index, before, value)

    def in_place(self, op: str, target: Array, value: Value) -> None:
        _, value = choices.operands(self, SYMBOL[op], target, value)
        library.augmented(self.e, op, target, self.storable(value))

    def storable(self, value: Value) -> Value:
        """What is stored in an array: a number or an array, made of a list or tuple where it is one."""
        if isinstance(value, Choice):
            raise self.refusal(None, *choices.unknown(value))
        seq = self.list_of(value)
        if seq is not None:
            items = self.written_items(seq)
            value = self.as_array(value, keep=False) if items is None else Tuple(items)
        if isinstance(value, Tuple) and value.cls is None:
            return library.call(self.e, np.array, [self.as_array(value, keep=False)], {})
        if isinstance(value, NoneValue | Static | Tuple):
            raise self.refusal(
                None, "only numbers and arrays can be stored in an array", "store item by item"
            )
        return value

    # Branches

    def if_statement(self, s: ast.If) -> None:
        names = assigned(*s.body, *s.orelse)
        live = self.frame.liveness.after[s]
        condition = self.test(s.test)
        if (
            condition.constant is None
            and not s.orelse
            and len(s.body) == 1
            and only_raises(s.body[0])
            and self.caught_exception(s.body[0]) is None
        ):
            with self.located(s.body[0]):
                self.raise_when(condition, s.body[0])
            self.refine(s.test, False)
            return

        if condition.constant is not None:
            self.leave_out(*(s.orelse if condition.constant else s.body))

        def arm(statements: Sequence[ast.stmt], outcome: bool) -> None:
            self.refine(s.test, outcome)
            self.block(statements)

        self.conditional(
            condition,
            (lambda: arm(s.body, True), lambda: arm(s.orelse, False)),
            frozenset(names & live) | {RESULT},
        )
        if condition.constant is None:
            for name in names - live:
                self.frame.env.pop(name, None)

    # Messages and print

    def text(self, node: ast.expr) -> tuple[str, list[Scalar]]:
        """A message: a constant string or an f-string of scalars, as a format and its operands."""
        match node:
            case ast.JoinedStr(parts):
                pieces = [self.text(p) for p in parts]
                return "".join(p for p, _ in pieces), [v for _, shown in pieces for v in shown]
            case ast.FormattedValue():
                conversion = None if node.conversion == -1 else chr(node.conversion)
                spec, inside = ("", []) if node.format_spec is None else self.text(node.format_spec)
                if inside:
                    raise self.refusal(node, "a run-time width or precision")
                value = self.expression(node.value)
                return formatting.field(self, value, spec.format(), conversion)
            case ast.Call(ast.Name("str"), [ast.Name(name)], []) if self.is_caught_exception(name):
                return self.shown(self.read(name), quoted=False)
            case _:
                return self.shown(self.expression(node), quoted=False)

    def shown(self, value: Value, *, quoted: bool) -> tuple[str, list[Scalar]]:
        """How `str` (or `repr`, when quoted) shows a value: a format and its operands."""
        match value:
            case Scalar():
                form = formatting.field_of(value)
                if quoted and not is_python(value):
                    name = NUMPY_DTYPE[value.type].name
                    return "np.{}" if value.type == "b1" else f"np.{name}({form})", [value]
                return form, [value]
            case NoneValue():
                return "None", []
            case Static(str() | np.dtype() | type(__module__="builtins" | "numpy") as text):
                return formatting.escaped(repr(text) if quoted else str(text)), []
            case FixedList(items):
                return self.shown_items(items, "[{}]")
            case Tuple(items, None):
                return self.shown_items(items, "({},)" if len(items) == 1 else "({})")
            case Static(Caught() | exceptions.Made() as found) if not quoted:
                return exceptions.said(self, found)
            case Static(formatting.Formatted(form, operands)):
                return repr(form) if quoted else form, list(operands)
            case Array() if not quoted:
                return formatting.field_of(value), [Scalar(value.dtype, value.memref)]
            case Static(ListObject() as seq) if (items := self.written_items(seq)) is not None:
                return self.shown_items(items, "[{}]")
            case Static(ListObject(item=ScalarT(type_)) as seq) if seq.origin is None:
                items = self.as_array(value, keep=True)
                assert isinstance(items, Array)
                form = formatting.field_of(items, f"list of {type_}")
                return form, [Scalar(items.dtype, items.memref)]
            case _:
                raise self.refusal(None, *library.ways_out.of_printed(value))

    def shown_items(self, items: Sequence[Value], form: str) -> tuple[str, list[Scalar]]:
        """How a list or tuple of these items is shown."""
        parts = [self.shown(item, quoted=True) for item in items]
        inner = ", ".join(p for p, _ in parts)
        return form.replace("{}", inner), [v for _, shown in parts for v in shown]

    def print_call(self, node: ast.Call) -> Value:
        separator = " "
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg == "sep" and isinstance(value, str):
                separator = formatting.escaped(value)
            elif not (keyword.arg == "flush" or (keyword.arg == "end" and value == "\n")):
                line = "print the whole line at once, as an f-string"
                what = f"`print` with `{keyword.arg}=` is not compiled"
                raise self.refusal(keyword.value, what, line if keyword.arg == "end" else None)
        parts = list[tuple[str, list[Scalar]]]()
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                items = star_arguments.items(self, argument, self.expression(argument.value))
                parts += [self.shown(item, quoted=False) for item in items]
            else:
                parts.append(self.text(argument))
        operands = [v.ssa for _, shown in parts for v in shown]
        self.e.insert(array.PrintOp(separator.join(p for p, _ in parts), operands))
        return NoneValue()


def only_raises(statement: ast.stmt) -> bool:
    """True for a `raise` whose message may be made ready before it is known to be needed."""
    harmless = (
        ast.Constant,
        ast.JoinedStr,
        ast.FormattedValue,
        ast.Name,
        ast.Attribute,
        ast.expr_context,
        ast.Call,
    )
    match statement:
        case ast.Raise(ast.Call(ast.Name(), arguments)):
            return all(
                isinstance(n, harmless) and not isinstance(n, ast.Call)
                for a in arguments
                for n in ast.walk(a)
            )
        case ast.Raise(ast.Name()):
            return True
        case _:
            return False
