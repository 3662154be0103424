"""The error for `saves="forbid"`: the kill, the read it destroys, what needs it, and the way out."""

from __future__ import annotations

from ..diagnostics import CompileError, Span
from .plan import Plan, Save, is_release, killing_line
from .saved_value import added_up, name_of, saved_value, way_out
from .sizes import Sizes
from .source_words import expression_of, line_told, place_of, span_of, store_span


def forbidden(plan: Plan) -> CompileError:
    """The error for the first save of a plan::

    stencil.py:14:9: error: this store kills a value that the gradient needs, and saves="forbid"
            u[i] = u[i + 1] * u[i + 1]
            ^^^^
    stencil.py:14:16: the value is read at line 14 and `u[i + 1] * u[i + 1]` on line 14 needs it in reverse
            u[i] = u[i + 1] * u[i + 1]
                   ^^^^^^^^^^^^^^^^^^^
      way out: keep the steps, or allow the save (saves="minimal"): 8*n bytes
    """
    save = plan.saves[0]
    need = span_of(save.needed_by)
    sizes = Sizes(plan.function, None)
    saved = [saved_value(s, sizes) for s in plan.saves]
    at = line_told(place_of(save.needed_by), saved[0].file)
    told = f"`{expression_of(save.needed_by)}` on {at} needs it in reverse"
    told = f"the value is read at line {saved[0].line} and {told}"
    allow = f'allow the save (saves="minimal"): {added_up([s.formula for s in saved])} bytes'
    if save.killer is None:
        message = f'the gradient must save `{name_of(save)}`, which cannot be had again, and saves="forbid"'
        span, notes = need, []
        message += f"; {told}"
    else:
        what = "the end of this block frees" if is_release(save.killer) else "this store kills"
        message = f'{what} a value that the gradient needs, and saves="forbid"'
        span = kill_span(save)
        notes = [] if need is None else [(need, told)]
        if not notes:
            message += f"; {told}"
    edit = way_out(save)
    return CompileError(span, message, f"{edit}, or {allow}" if edit else allow, notes)


def kill_span(save: Save) -> Span | None:
    """What the kill assigns to; for a variable, the expression of its next value."""
    assert save.killer is not None
    at = killing_line(save)
    span = store_span(save.killer)
    if at is None or (span is not None and span.line == at[1]):
        return span
    return Span(at[0], at[1], at[2] - 1, at[1], at[2])
