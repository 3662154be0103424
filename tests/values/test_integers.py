"""Integers of every width, with a sign and without: NumPy's promotion, wraparound, comparison."""

import itertools

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on

INTEGERS = "i8 i16 i32 i64 u8 u16 u32 u64"
WIDE = {"options": {"opt": 1}, "D": INTEGERS}


@on("D[7]:wide D[7]:wide#1", **WIDE)
def operators(x, y):
    arithmetic = (
        x + y,
        x - y,
        x * y,
        x // y,
        x % y,
        x / y,
        -x,
        +x,
        abs(x),
        ~x,
        x & y,
        x | y,
        x ^ y,
    )
    weak = (
        x + 1,
        x * 3,
        5 - x,
        x // 7,
        100 % (x | 1),
        x**2,
        x**3,
        x << 1,
        x >> 1,
        x >> 7,
        x << y % 9,
    )
    return arithmetic, weak, (x >> y % 9, 2.5 * x, x + np.float32(1), x + True)


@on("D[7]:wide D[7]:wide#1", **WIDE)
def comparisons(x, y):
    exact = (x < -1, x >= -1, x == 300, x > 70000, x < 2**40, x != 3, 100 > x)
    return (x < y, x <= y, x > y, x >= y, x == y, x != y), exact, np.where(x > y, x, y)


@on("D[7]:wide D[7]:wide#1", **WIDE)
def functions(x, y):
    return (
        np.minimum(x, y), np.maximum(x, y), np.fmin(x, y), np.fmax(x, y), np.sign(x), np.square(x),
        np.fmod(x, y), np.clip(x, 2, 9), np.logical_not(x), np.logical_xor(x, y), divmod(x, y | y[0]),
    )  # fmt: skip


@on("D[7]:wide D[2,3]:wide#1", **WIDE)
def reductions(x, m):
    whole = (
        x.sum(),
        x.prod(),
        x.min(),
        x.max(),
        x.mean(),
        x.any(),
        x.all(),
        x.argmax(),
        x.argmin(),
    )
    along = (
        m.sum(axis=0),
        m.max(axis=1),
        m.min(0),
        np.cumsum(x),
        np.cumprod(x),
        np.diff(x),
        m @ m.T,
        x @ x,
    )
    return whole, along, (np.sort(x), np.unique(x), np.ptp(x), np.sum(m, dtype=np.uint8))


@on("D[7]:wide", **WIDE)
def conversions(x):
    floats = (x.astype(np.float64), x.astype(np.float32), x.astype(bool))
    narrow = (x.astype(np.int8), x.astype(np.uint8), x.astype(np.int16), x.astype("uint16"))
    return (
        floats,
        narrow,
        (x.astype(np.uint32), x.astype(np.int64), x.astype(np.uint64), x.dtype.name == "int8"),
    )


@on("D[7]:wide D(5) D(100)", **WIDE)
def scalars(x, s, t):
    loop = x[0] - x[0]
    for v in x:
        loop = loop + v
    weak = 0
    for v in x:
        weak += v
    return (
        loop,
        weak,
        s * t,
        s - t,
        -s,
        s < t,
        int(s),
        float(t),
        s // t,
        s % t,
        s >> 1,
        s**2,
        max(s, t),
        x[s],
        x[s - 3 :],
    )


@on("D[7]:wide D[3]:wide D(5)", **WIDE)
def stores(x, y, s):
    x[1] = y[0]
    x[2:4] = y[1:]
    x[4] = 7
    x[5] += 1
    x[:3] *= 2
    x += 3
    x //= 2
    made = np.zeros(3, x.dtype)
    made[::-1] = y
    return (
        made,
        np.full(2, s),
        np.array([s, y[1]]),
        np.ones(2, x.dtype),
        np.arange(4, dtype=x.dtype),
        x.copy(),
    )


def pairs(one, other):
    def row():
        ends = np.iinfo(one)
        x = np.array([ends.max, ends.min, 3, 0, 7], one)
        ends = np.iinfo(other) if np.dtype(other).kind in "iu" else np.finfo(other)
        return x, np.array([ends.min, ends.max, 3, 1, 2], other)

    row.__name__ = f"{np.dtype(one).name} {np.dtype(other).name}"
    return row


MIXED = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float32]


@on(*(pairs(a, b) for a, b in itertools.combinations(MIXED, 2)), options={"opt": 1})
def mixed(x, y):
    return (
        x + y,
        x * y,
        x < y,
        x <= y,
        y > x,
        x >= y,
        x == y,
        y != x,
        np.maximum(x, y),
        y < x,
        x[0] < y[1],
    )


@on("f64[9]:special", "f32[9]:special")
def of_floats(x):
    small = np.where(np.abs(x) < 100, x, -1.0)
    return (
        small.astype(np.int8),
        small.astype(np.uint8),
        small.astype(np.uint32),
        small.astype(np.uint64),
    )


@on("u8[9] u8[5]:pos u64[3]:pos i8[2] u16(2)")
def subscripts(a, i, j, k, s):
    x = np.arange(9.0)
    x[i] += 1.0
    x[j % np.uint64(4)] = 5.0
    x[k] *= 2.0
    return x, x[i], x[j], x[a[0] % 3], x[s:], np.take(x, i), np.bincount(i), x[i[0] : i[0] + 2]


@on("u8(200) 300", "u8(200) -1", "i8(3) 128", "i16(3) 40000", "u64(3) -1", "u32(3) 2.5")
def out_of_range(s, n):
    return s + n


@on(
    "u8[3] 300",
    "u8[3] -1",
    "u8[3] 3.7",
    "u8[3] i64(300)",
    "u8[3] f64(-1.5)",
    "i8[3] i64(300)",
    "i8[3] u8(200)",
)
@on(
    "i8[3] f64(300.5)",
    "i32[3] i64(1099511627776)",
    "i32[3] f32(1e10)",
    "i64[3] f64(1e30)",
    "u64[3] f64(1e19)",
)
def stored(x, v):
    x[0] = v
    x[1:] = v
    return x


@on("u8[3]:wide u64[3]:wide i8(-3)")
def shown(x, y, s):
    print(x, y, x[0], y[1], s, f"{x[0]:5d} {y[0]:>25} {y[2]!r}", f"{y[0]:d} {x[0]}")
    kept = [y[0]]
    kept.append(y[1])
    print(kept, [x[0], x[1]])
    raise ValueError(f"not {y[0]}", x[1], y[2])


@on("u8[5]:pos", "u32[5]:pos", "u64[5]:wide", "i16[5]:wide")
def hashed(x):
    h = x[0] - x[0]
    for v in x:
        h = (h << 5) ^ (h >> 2) ^ v
    return h, h % 11


@on("b1[5] b1(True)", "b1[2,3] b1(False)")
def powers_of_bools(x, s):
    return x**2, x**3, x**0, x**2.0, s**2, (x > s) ** 2, np.power(x, 2), (x**2).sum()


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
