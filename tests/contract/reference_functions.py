"""The functions and random numbers of docs/numerics.md in NumPy, written from the specification.

The coefficients of polynomials are read from `cpp/kernels/maths_constants.h`.
"""

from __future__ import annotations

import math
import pathlib
import re
from typing import Any

import numpy as np
import philox
from reference_sums import Array, fma, sum_row, two_product, two_sum

ROOT = pathlib.Path(__file__).parents[2]


class Constants:
    """The numbers of `maths_constants.h` for a dtype, by their names there."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self.dtype = dtype
        text = (ROOT / "cpp/kernels/maths_constants.h").read_text()
        name = {np.float32: "float", np.float64: "double"}[dtype]
        part = text.partition(f"struct Maths<{name}>")[2].partition("\n};")[0]
        for key, value in re.findall(r"\bk(\w+)(?:\[\])? = (\{.*?\}|[^,;{]+)(?=[,;])", part, re.S):
            numbers = [float(n.strip().rstrip("f")) for n in value.strip("{}").split(",")
                       if not n.strip().startswith("0x")]  # fmt: skip
            setattr(self, key, dtype(numbers[0]) if value[0] != "{" and numbers else
                    [dtype(n) for n in numbers])  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def pi_bits(bits: int) -> int:
    """Return π · 2^bits as an integer, by Machin's formula."""
    unit = 1 << (bits + 32)

    def arctangent_of_inverse(n: int) -> int:
        term = total = unit // n
        for k in range(3, 2 * bits, 2):
            term //= -n * n
            total += term // k
        return total

    return 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239)) >> 32


PI = pi_bits(1400)


def large_angle(x: float) -> tuple[float, int]:
    """Return the rest and the quarter of an angle beyond the limit."""
    numerator, denominator = abs(x).as_integer_ratio()
    quarters, rest = divmod(numerator << 1401, denominator * PI)
    fraction = (rest << 1200) // (denominator * PI)  # of a quarter
    sign = 1
    if fraction >> 1199:
        fraction, quarters, sign = (1 << 1200) - fraction, quarters + 1, -1
    zeros = 1200 - fraction.bit_length()
    top = fraction >> (1200 - zeros - 64)
    half_pi = (PI >> 1337) + 1 >> 1  # π/2 · 2^63, rounded
    rest = math.ldexp(float(top * half_pi >> 64), -63 - zeros)
    turn = -1 if x < 0 else 1
    return turn * sign * rest, turn * (quarters % 4)


class Functions:
    """Elementwise functions of float32 or float64 arrays."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self.m = Constants(dtype)
        self.of = dtype
        self.mantissa = {np.float32: 23, np.float64: 52}[dtype]
        self.bias = {np.float32: 127, np.float64: 1023}[dtype]
        self.bits = {np.float32: np.int32, np.float64: np.int64}[dtype]

    def polynomial(self, c: list[Any], x: Array) -> Array:
        """Evaluate c[0] + c[1] x + … by Horner's rule."""
        y = np.full_like(x, c[-1])
        for coefficient in c[-2::-1]:
            y = fma(y, x, coefficient)
        return y

    def power_of_two(self, n: Array) -> Array:
        return ((n.astype(self.bits) + self.bits(self.bias)) << self.mantissa).view(self.of)

    def exp_parts(self, x: Array) -> tuple[Array, Array, Array, Array]:
        m = self.m
        x = np.minimum(np.maximum(x, m.ExpLow), m.ExpHigh)
        n = np.rint(x * m.InverseLn2)
        r = fma(n, -m.Ln2Low, fma(n, -m.Ln2High, x))
        tail = fma(r * r, self.polynomial(m.Exp, r), r)
        half = np.rint(n * self.of(0.5))
        return n, tail, self.power_of_two(half), self.power_of_two(n - half)

    def exp(self, x: Array) -> Array:
        _, tail, low, high = self.exp_parts(x)
        return (tail + self.of(1)) * low * high

    def expm1(self, x: Array) -> Array:
        n, tail, low, high = self.exp_parts(x)
        one, scale = self.of(1), low * high
        y = np.where(n > 60, (tail + one) * low * high, fma(scale, tail, scale - one))
        return np.where(x == 0, x, y)

    def log_normal(self, x: Array, exponent: Array | float) -> Array:
        m = self.m
        root = np.array(m.SqrtHalf).view(self.bits)
        shifted = x.view(self.bits) + (np.array(self.of(1)).view(self.bits) - root)
        mask = self.bits((1 << self.mantissa) - 1)
        k = ((shifted >> self.mantissa) - self.bits(self.bias)).astype(self.of) + self.of(exponent)
        f = ((shifted & mask) + root).view(self.of) - self.of(1)
        s = f / (f + self.of(2))
        z = s * s
        r = z * self.polynomial(m.Log, z)
        half_square = self.of(0.5) * f * f
        tail = s * (half_square + r) + k * m.Ln2Low
        return k * m.Ln2High - ((half_square - tail) - f)

    def log(self, x: Array) -> Array:
        """Return the logarithm of positive, finite numbers."""
        tiny = x < np.finfo(self.of).tiny
        usual = self.log_normal(np.where(tiny, self.of(1), x), 0)
        scaled = self.log_normal(x * self.m.DenormalScale, -self.m.DenormalExponent)
        return np.where(tiny, scaled, usual)

    def log1p_usual(self, x: Array) -> Array:
        u = x + self.of(1)
        lost = x - (u - self.of(1))
        return self.log_normal(u, 0) + lost / u

    def log1p(self, x: Array) -> Array:
        return np.where(x + self.of(1) == 1, x, self.log1p_usual(x))

    def sigmoid(self, x: Array) -> Array:
        e = self.exp(-np.abs(x))
        return np.where(x >= 0, self.of(1), e) / (e + self.of(1))

    def softplus(self, x: Array) -> Array:
        e = self.exp(-np.abs(x))
        small = np.where(e + self.of(1) == 1, e, self.log1p_usual(e))
        return np.maximum(x, self.of(0)) + small

    def tanh(self, x: Array) -> Array:
        e = self.expm1(self.of(-2) * np.abs(x))
        return np.copysign(-e / (e + self.of(2)), x)

    def reduced(self, x: Array) -> tuple[Array, Array, Array]:
        m = self.m
        q = np.rint(x * m.TwoOverPi)
        r = x
        for part in m.HalfPi:
            r = fma(q, -part, r)
        with np.errstate(invalid="ignore"):
            q = q.astype(np.int64)
        for i in np.nonzero(np.abs(x) > m.TrigLimit)[0]:
            r[i], q[i] = large_angle(float(x[i]))
        z = r * r
        one_less = self.of(1) - self.of(0.5) * z
        cosine = fma(z * z, self.polynomial(m.Cos, z), one_less)
        return fma(r * z, self.polynomial(m.Sin, z), r), cosine, q

    def sine_after(self, x: Array, turns: int) -> Array:
        sine, cosine, quarter = self.reduced(x)
        quarter = quarter + turns
        y = np.where(quarter & 1, cosine, sine)
        return np.where(quarter & 2, -y, y)

    def sin(self, x: Array) -> Array:
        return np.where(x == 0, x, self.sine_after(x, 0))

    def cos(self, x: Array) -> Array:
        return self.sine_after(x, 1)

    def tan(self, x: Array) -> Array:
        return np.where(x == 0, x, self.sine_after(x, 0) / self.sine_after(x, 1))

    def half_exp(self, x: Array) -> Array:
        _, tail, low, high = self.exp_parts(np.abs(x))
        return (tail + self.of(1)) * (low * self.of(0.5)) * high

    def sinh(self, x: Array) -> Array:
        e = self.expm1(np.abs(x))
        y = self.of(0.5) * (e + e / (e + self.of(1)))
        return np.copysign(np.where(np.abs(x) > 25, self.half_exp(x), y), x)

    def cosh(self, x: Array) -> Array:
        e = self.half_exp(x)
        return e + self.of(0.25) / e

    def atan_positive(self, x: Array) -> Array:
        m, one = self.m, self.of(1)
        large, middle = x > m.Tan3Pi8, x > m.TanPi8
        top = np.where(large, -one, np.where(middle, x - one, x))
        t = top / np.where(large, x, np.where(middle, x + one, one))
        z = t * t
        zero, half, quarter = self.of(0), self.of(2), self.of(4)
        base = np.where(large, m.Pi / half, np.where(middle, m.Pi / quarter, zero))
        low = np.where(large, m.PiLow / half, np.where(middle, m.PiLow / quarter, zero))
        return base + (fma(t * z, self.polynomial(m.Atan, z), t) + low)

    def atan(self, x: Array) -> Array:
        return np.copysign(self.atan_positive(np.abs(x)), x)

    def asin(self, x: Array) -> Array:
        one, a = self.of(1), np.abs(x)
        with np.errstate(divide="ignore"):
            return np.copysign(self.atan_positive(a / np.sqrt((one - a) * (one + a))), x)

    def acos(self, x: Array) -> Array:
        one = self.of(1)
        with np.errstate(divide="ignore"):
            return self.of(2) * self.atan_positive(np.sqrt((one - x) / (one + x)))

    def atan2(self, y: Array, x: Array) -> Array:
        m, two = self.m, self.of(2)
        ay, ax = np.abs(y), np.abs(x)
        steep = ay > ax
        t = self.atan_positive(np.where(steep, ax, ay) / np.where(steep, ay, ax))
        t = np.where(steep, m.Pi / two - (t - m.PiLow / two), t)
        return np.copysign(np.where(np.signbit(x), m.Pi - (t - m.PiLow), t), y)

    def asinh(self, x: Array) -> Array:
        a, one = np.abs(x), self.of(1)
        square = a * a
        near = self.log1p(a + square / (one + np.sqrt(square + one)))
        far = self.log(np.maximum(a, one)) + self.m.Ln2
        return np.copysign(np.where(a > self.m.SquareLimit, far, near), x)

    def acosh(self, x: Array) -> Array:
        t = x - self.of(1)
        near = self.log1p(t + np.sqrt(t * (t + self.of(2))))
        return np.where(x > self.m.SquareLimit, self.log(x) + self.m.Ln2, near)

    def atanh(self, x: Array) -> Array:
        a, one = np.abs(x), self.of(1)
        return np.copysign(self.of(0.5) * self.log1p((a + a) / (one - a)), x)

    def pow(self, a: Array, b: Array) -> Array:
        """Return powers of positive bases; of float32, computed in float64."""
        if self.of is np.float32:
            wide = Functions(np.float64)
            exponent = b.astype(np.float64) * wide.log(a.astype(np.float64))
            return wide.exp(exponent).astype(np.float32)
        high, low = self.log_in_two(a)
        product, rest = two_product(b, high)
        return self.exp_of_two(product, rest + b * low)

    def log_in_two(self, x: Array) -> tuple[Array, Array]:
        """Return the logarithm of positive, finite float64 numbers in two parts."""
        m = self.m
        mantissa, exponent = np.frexp(x)
        below = mantissa < m.SqrtHalf
        mantissa = np.where(below, 2 * mantissa, mantissa)
        k = (exponent - below).astype(float)
        top, bottom = mantissa - 1, mantissa + 1
        s = top / bottom
        back, back_low = two_product(s, bottom)
        s_low = ((top - back) - back_low - s * (mantissa - (bottom - 1))) / bottom
        square, square_low = two_product(s, s)
        square_low = square_low + 2.0 * s * s_low
        inner, inner_low = two_sum(m.TwoThirds, square * self.polynomial(m.Artanh, square))
        inner_low = inner_low + m.TwoThirdsLow
        u, u_low = two_product(square, inner)
        u_low = u_low + square * inner_low + square_low * inner
        total, total_low = two_sum(np.full_like(u, 2), u)
        total_low = total_low + u_low
        log, log_low = two_product(s, total)
        log_low = log_low + s * total_low + s_low * total
        whole, whole_low = two_sum(k * m.Ln2High, log)
        high, low = two_sum(whole, whole_low + log_low + k * m.Ln2Low)
        return high, low

    def exp_of_two(self, high: Array, low: Array) -> Array:
        """Return exp(high + low) of float64 numbers."""
        m = self.m
        low = np.where(np.abs(high) < 800, low, 0.0)
        high = np.minimum(np.maximum(high, m.ExpLow), m.ExpHigh)
        n = np.rint(high * m.InverseLn2)
        r, rest = two_sum(high - n * m.Ln2High, low - n * m.Ln2Low)
        tail = r + (rest + rest * r + r * r * self.polynomial(m.Exp, r))
        half = np.rint(n * 0.5)
        return (tail + 1) * self.power_of_two(half) * self.power_of_two(n - half)

    def erf(self, x: Array) -> Array:
        m, one = self.m, self.of(1)
        near = x * self.polynomial(m.Erf, x * x)
        a = np.minimum(np.abs(x), m.ErfLimit)
        far = one - self.exp(-(a * a)) * self.polynomial(m.Erfc, one / (a + self.of(2)))
        return np.where(np.abs(x) < 1, near, np.copysign(far, x))

    def softmax(self, x: Array) -> Array:
        e = self.exp(x - x.max(axis=-1, keepdims=True))
        return e / sum_row(e)[..., None]

    def log_softmax(self, x: Array) -> Array:
        shifted = x - x.max(axis=-1, keepdims=True)
        return shifted - self.log(sum_row(self.exp(shifted)))[..., None]

    def sparse_cross_entropy(self, labels: Array, x: Array) -> Array:
        shifted = x - x.max(axis=-1, keepdims=True)
        score = np.take_along_axis(shifted, labels[..., None], -1)[..., 0]
        return self.log(sum_row(self.exp(shifted))) - score


# ---- random numbers ----


def mixed(x: int) -> int:
    """Return the finalizer of SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def key_of_op(seed: int, op_seed: int, ordinal: int, step: int) -> tuple[int, int]:
    """Return the Philox key of a random op of a step."""
    key = mixed(seed) ^ mixed(mixed(op_seed))
    stream = mixed(mixed(ordinal) ^ step)
    counter = [stream % 2**32, stream >> 32, 0x73616D65, 0x67726164]
    first, second, *_ = philox.philox(
        [np.uint64(word) for word in counter], (key % 2**32, key >> 32)
    )
    return int(first), int(second)


def normal(key: tuple[int, int], rows: list[int], n: int, dtype: type[np.floating[Any]]) -> Array:
    """Return rows of n normal numbers, by Box and Muller's formula."""
    f = Functions(dtype)
    parts = {np.float32: 4, np.float64: 2}[dtype]
    words, part = philox._words(key, np.asarray(rows), n, parts)
    even = part - part % 2
    if dtype is np.float32:
        word = np.take_along_axis(words, even[None], 0)[0] >> np.uint64(1)
        first = (word.astype(dtype) + dtype(0.5)) * dtype(2.0**-31)
    else:
        first = philox._unit(words, even, parts) + 2.0**-54
    angle = dtype(6.283185307179586) * philox._unit(words, even + 1, parts).astype(dtype)
    radius = np.sqrt(dtype(-2) * f.log(first))
    return radius * np.where(part % 2, f.sine_after(angle, 0), f.sine_after(angle, 1))
