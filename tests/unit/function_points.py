"""Functions and the points where mpmath's values are recorded; run it to print the engine's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import samegrad as tf

Array = np.ndarray
COUNT = 40


def draw(seed: int) -> np.random.Generator:
    """Numbers that every NumPy draws alike."""
    return np.random.Generator(np.random.PCG64(seed))


def between(low: float, high: float, seed: int = 0) -> Array:
    return np.round(draw(seed).uniform(low, high, COUNT) * 2**30) / 2**30


def powers_of_two(low: int, high: int, seed: int = 0) -> Array:
    """Numbers of either sign with exponents of two from `low` on."""
    generator = draw(seed)
    numbers = np.round(generator.uniform(-2, 2, COUNT) * 2**40) / 2**40
    return np.ldexp(numbers, generator.integers(low, high, COUNT))


def whole(low: int, high: int, seed: int = 0) -> Array:
    return draw(seed).integers(low, high, COUNT).astype(float)


def near(value: float, seed: int = 0) -> Array:
    return value + powers_of_two(-40, -3, seed)


# Name: mpmath's function, operands, error in units of the last place.
CASES: dict[str, tuple[str, tuple[Array, ...], float]] = {
    "pow": ("power", (between(0.01, 30), between(-20, 20, 1)), 1),
    "pow of any exponent": ("power", (abs(powers_of_two(-1070, 1023)), between(-1, 1)), 1),
    "pow near one": ("power", (near(1.0), whole(-200, 200) * 100), 1),
    "pow of negative numbers": ("power", (between(-30, 0), whole(-40, 40)), 1),
    "sin": ("sin", (powers_of_two(-10, 1023),), 2),
    "cos": ("cos", (powers_of_two(-10, 1023),), 2),
    "tan": ("tan", (powers_of_two(-10, 1023),), 4),
    "lgamma": ("loggamma", (between(0.01, 12),), 3),
    "lgamma near its zeros": ("loggamma", (np.concatenate([near(1.0), near(2.0)]),), 3),
    "lgamma of large numbers": ("loggamma", (abs(powers_of_two(4, 1000)),), 2),
    "digamma": ("digamma", (between(0.01, 30),), 3),
    "digamma near its zero": ("digamma", (near(1.461632144968362),), 4),
    "erfc": ("erfc", (between(-3, 6),), 4),
    "erfc far out": ("erfc", (between(6, 26),), 4),
    "erfinv": ("erfinv", (between(-1, 1),), 4),
    "bessel_i0e": ("i0e", (between(0, 60),), 4),
    "bessel_i1e": ("i1e", (between(0, 60),), 6),
    "zeta": ("zeta", (between(1.1, 20), between(0.1, 20, 1)), 12),
    "polygamma": ("polygamma", (whole(1, 6), between(0.1, 20)), 12),
    "igamma": ("igamma", (between(0.1, 30), between(0.1, 30, 1)), 20),
    "igammac": ("igammac", (between(0.1, 30), between(0.1, 30, 1)), 20),
    "betainc": ("betainc", (between(0.1, 30), between(0.1, 30, 1), between(0, 1)), 40),
}


def function_of(name: str) -> Callable[..., Any]:
    return getattr(tf.math, name.split()[0])


def found(dtype: str) -> dict[str, list[str]]:
    """The engine's values in hexadecimal."""
    values = {}
    for name, (_, operands, _) in CASES.items():
        with np.errstate(over="ignore"):
            given = [tf.constant(x.astype(dtype)) for x in operands]
        values[name] = [float(y).hex() for y in function_of(name)(*given).numpy()]
    return values


if __name__ == "__main__":
    print(json.dumps({dtype: found(dtype) for dtype in ("float32", "float64")}))
