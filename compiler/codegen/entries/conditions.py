"""Conditions on entry of a loop nest as LLVM text: see `analysis/nest_proofs`."""

from __future__ import annotations

from xdsl.dialects import memref

from ...analysis.affine import Affine, Extent, Symbol, Term
from ...analysis.nest_proofs import INT64_MAX, All, AtMostZero, Condition
from ..kernel_state import KernelState


class EntryConditions:
    """Writes conditions as LLVM text where a nest is entered."""

    def __init__(self, state: KernelState) -> None:
        self._state = state
        self._known: dict[object, str] = {}
        self._presumed: list[str] = []
        """What the arithmetic of the conditions presumes."""

    def decide(self, condition: Condition) -> str:
        """An i1 that is true only where the condition holds."""
        holds = self.write(condition)
        return self._state.text.both([holds, *self._presumed])

    def write(self, condition: Condition) -> str:
        """An i1 that is true where the condition holds."""
        text = self._state.text
        if isinstance(condition, bool):
            return "true" if condition else "false"
        found = self._known.get(condition)
        if found is None:
            if isinstance(condition, AtMostZero):
                found = text.value(f"icmp sle i128 {self._affine(condition.value)}, 0")
            else:
                form = "and" if isinstance(condition, All) else "or"
                found = self.write(condition.parts[0])
                for part in condition.parts[1:]:
                    found = text.value(f"{form} i1 {found}, {self.write(part)}")
            self._known[condition] = found
        return found

    def _affine(self, e: Affine) -> str:
        text = self._state.text
        total = str(e.constant)
        for symbol, factor in e.terms.items():
            value = self._symbol(symbol)
            if factor != 1:
                value = text.value(f"mul i128 {value}, {factor}")
            total = value if total == "0" else text.value(f"add i128 {total}, {value}")
        return total

    def _symbol(self, symbol: Symbol) -> str:
        found = self._known.get(symbol)
        if found is None:
            found = self._known[symbol] = self._compute(symbol)
        return found

    def _compute(self, symbol: Symbol) -> str:
        state, text = self._state, self._state.text
        if isinstance(symbol, Term):
            a, b = (self._affine(x) for x in symbol.args)
            match symbol.kind:
                case "max" | "min":
                    name = state.intrinsic(f"llvm.s{symbol.kind}.i128", "i128", "i128, i128")
                    return text.value(f"call i128 @{name}(i128 {a}, i128 {b})")
                case "floordiv":
                    return self._floor_division(a, b)
                case _:
                    return text.value(f"mul i128 {a}, {b}")
        if isinstance(symbol, Extent):
            value = state.memrefs[symbol.memref].extents[symbol.axis]
        elif symbol in state.scalars and not isinstance(symbol.owner, memref.LoadOp):
            value = state.scalars[symbol]
        else:
            load = symbol.owner
            assert isinstance(load, memref.LoadOp)
            value = text.value(f"load i64, ptr {state.memrefs[load.memref].pointer}, align 8")
        return text.value(f"sext i64 {value} to i128")

    def _floor_division(self, top: str, bottom: str) -> str:
        """By a positive number. In 64 bits (wider division is a library call), which must suffice."""
        text = self._state.text
        sign = text.value(f"ashr i128 {top}, 127")
        magnitude = text.value(f"xor i128 {top}, {sign}")
        self._presumed.append(text.value(f"icmp ule i128 {magnitude}, {INT64_MAX}"))
        narrow = text.value(f"trunc i128 {magnitude} to i64")
        quotient = text.value(f"udiv i64 {narrow}, {bottom}")
        wide = text.value(f"zext i64 {quotient} to i128")
        return text.value(f"xor i128 {wide}, {sign}")
