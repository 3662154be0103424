"""Powers of integers by squaring. LLVM text."""

from __future__ import annotations

from .context import Functions


def _integer_power(type_: str) -> str:
    return f"""
define internal {type_} @mutad_ipow_{type_}({type_} %base, {type_} %exponent) nounwind memory(none) {{
entry:
  %negative = icmp slt {type_} %exponent, 0
  br i1 %negative, label %zero, label %look
look:
  %left = phi {type_} [ %exponent, %entry ], [ %half, %on ]
  %power = phi {type_} [ %base, %entry ], [ %square, %on ]
  %result = phi {type_} [ 1, %entry ], [ %product, %on ]
  %done = icmp eq {type_} %left, 0
  br i1 %done, label %end, label %on
on:
  %odd = and {type_} %left, 1
  %is.odd = icmp ne {type_} %odd, 0
  %factor = select i1 %is.odd, {type_} %power, {type_} 1
  %product = mul {type_} %result, %factor
  %square = mul {type_} %power, %power
  %half = lshr {type_} %left, 1
  br label %look
zero:
  ret {type_} 0
end:
  ret {type_} %result
}}
"""


INTEGER_POWERS: Functions = {
    f"mutad_ipow_i{n}": (_integer_power(f"i{n}"), ()) for n in (8, 16, 32, 64)
}
