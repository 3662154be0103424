"""Every scalar op that code is generated for, as a line of IR, and a program that computes them all."""

from __future__ import annotations

FLOAT_OPS = """
arith.addf 2|arith.subf 2|arith.mulf 2|arith.divf 2|arith.negf 1|arith.maximumf 2|arith.minimumf 2
arith.minnumf 2|arith.maxnumf 2|ad.mul 2|ad.mul 2 both|ad.div 2|array.floordiv 2|array.floormod 2|math.absf 1
math.ceil 1|math.floor 1|math.trunc 1|math.round 1|math.roundeven 1|math.copysign 2|math.sqrt 1|math.rsqrt 1
math.fma 3|special.gamma 1|special.digamma 1|special.trigamma 1|special.tetragamma 1|special.erfc 1
special.log_gamma 1
math.exp 1|math.exp2 1|math.expm1 1|math.log 1|math.log2 1|math.log10 1|math.log1p 1|math.sin 1|math.cos 1
math.tan 1|math.asin 1|math.acos 1|math.atan 1|math.sinh 1|math.cosh 1|math.tanh 1|math.asinh 1|math.acosh 1
math.atanh 1|math.atan2 2|math.powf 2|math.cbrt 1|math.erf 1
""".strip().replace("\n", "|").split("|")  # fmt: skip
INTEGER_OPS = """
addi subi muli divsi remsi divui remui ceildivsi ceildivui floordivsi minsi maxsi minui maxui andi ori xori
shli shrsi shrui
""".split()  # fmt: skip
PREDICATES = {
    "arith.cmpf": "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split(),
    "arith.cmpi": "eq ne slt sle sgt sge ult ule ugt uge".split(),
}
NUMBERS = ("i1", "i8", "i16", "i32", "i64", "index", "f32", "f64")


def lines_of(type_: str) -> list[tuple[str, str]]:
    """Ops on %x, %y of a type: their text, and the type of what they give."""
    found: list[tuple[str, str]] = []
    is_float = type_ in ("f32", "f64")
    if is_float:
        for row in FLOAT_OPS:
            name, count, *rest = row.split()
            operands = ", ".join(["%x", "%y", "%x"][: int(count)])
            found.append((" ".join([name, operands, *rest]) + f" : {type_}", type_))
    else:
        found += [(f"arith.{name} %x, %y : {type_}", type_) for name in INTEGER_OPS]
        if type_ != "i1":
            found += [
                (f"{n} %x, %y : {type_}", type_)
                for n in ("array.floordiv", "array.floormod", "math.ipowi")
            ]
        if type_ not in ("i1", "index"):
            counting = ("math.ctlz", "math.cttz", "math.ctpop", "math.absi")
            found += [(f"{n} %x : {type_}", type_) for n in counting]
    if type_ != "i1":
        compare = "arith.cmpf" if is_float else "arith.cmpi"
        found += [(f"{compare} {p}, %x, %y : {type_}", "i1") for p in PREDICATES[compare]]
    for to in NUMBERS:
        for unsigned in ("", " unsigned"):
            found.append((f"array.cast %x{unsigned} : {type_} -> {to}", to))
    return found


def lines_with_constants(type_: str) -> list[tuple[str, str]]:
    """Integer ops on %x and a constant, on either side, or on two constants; what these are comes first."""
    numbers = ["0", "-1", "7"] if type_ != "i1" else ["false", "true"]
    if type_ not in ("i1", "index"):  # An index does not overflow.
        numbers.append(str(-(2 ** (int(type_[1:]) - 1))))
    names = [f"arith.{name}" for name in INTEGER_OPS]
    if type_ != "i1":
        names += ["array.floordiv", "array.floormod"]
    typed = f" : {type_}" if type_ != "i1" else ""
    found: list[tuple[str, str]] = [(f"arith.constant {n}{typed}", type_) for n in numbers]
    constants = [f"%r{k}" for k in range(len(numbers))]
    for name in names:
        pairs = [pair for c in constants for pair in ((c, "%x"), ("%x", c), (constants[-1], c))]
        found += [(f"{name} {a}, {b} : {type_}", type_) for a, b in pairs]
    return found


def program(type_: str, lines: list[tuple[str, str]]) -> str:
    """One map that computes all of them."""
    outs = [f"%o{k} : memref<?x{to}>" for k, (_, to) in enumerate(lines)]
    memrefs = ", ".join(f"memref<?x{to}>" for _, to in lines)
    names = ", ".join(f"%o{k}" for k in range(len(lines)))
    kinds = ", ".join(['"store"'] * len(lines))
    body = "\n".join(f"    %r{k} = {text}" for k, (text, _) in enumerate(lines))
    yields = ", ".join(f"%r{k}" for k in range(len(lines)))
    types = ", ".join(to for _, to in lines)
    return f"""
func.func @f(%n : index, %a : memref<?x{type_}>, %b : memref<?x{type_}>, {", ".join(outs)}) {{
  array.map(%n) ins(%a, %b : memref<?x{type_}>, memref<?x{type_}>)
      outs({names} : {memrefs}) kinds [{kinds}] {{
  ^bb0(%x : {type_}, %y : {type_}):
{body}
    array.yield {yields} : {types}
  }}
  func.return
}}"""
