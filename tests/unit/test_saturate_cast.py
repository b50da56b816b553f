"""saturate_cast between all dtypes of numbers, at limits and beyond them."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samegrad as tf

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numpy_dtype(name: str) -> Any:
    """Return NumPy's class of scalars."""
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name).type


def limits(name: str) -> tuple[Any, Any]:
    """Return the least and largest number as Python's."""
    if name in INTEGERS:
        return int(np.iinfo(name).min), int(np.iinfo(name).max)
    found = ml_dtypes.finfo(numpy_dtype(name))
    return float(found.min), float(found.max)


def candidates(source: str, target: str) -> np.ndarray:
    """Return numbers of the source at, around and beyond the limits of both dtypes."""
    (low, high), (least, most) = limits(source), limits(target)
    around = [least - 1, most + 1, most - 1, least + 1]
    found = [low, high, least, most, 0, 1, -1, *around, -3.7, 254.6]
    if source in INTEGERS:
        inside = [int(n) for n in found if low <= int(n) <= high]
        return np.array(inside, numpy_dtype(source))
    with np.errstate(over="ignore"):
        return np.array([float(n) for n in found] + [np.inf, -np.inf]).astype(numpy_dtype(source))


def expected(number: Any, source: str, target: str) -> Any:
    """Return the number, brought into the range that source and target share."""
    (low, high), (least, most) = limits(source), limits(target)
    top, bottom = min(high, most), max(low, least)
    if source in FLOATS:
        kind = numpy_dtype(source)
        top, bottom = (
            float(end if abs(float(end)) <= abs(n) else np.nextafter(end, kind(0)))
            for n, end in ((top, kind(float(top))), (bottom, kind(float(bottom))))
        )
    inside = min(max(number, bottom), top)
    return int(inside) if target in INTEGERS else float(numpy_dtype(target)(float(inside)))


@pytest.mark.parametrize("source", INTEGERS + FLOATS)
def test_saturate_cast_reaches_the_limits_and_stays_inside(source: str) -> None:
    for target in INTEGERS + FLOATS:
        numbers = candidates(source, target)
        got = tf.saturate_cast(tf.constant(numbers), target).numpy()
        exact = numbers.astype(np.float64) if source in FLOATS else numbers
        want = [expected(n, source, target) for n in exact.tolist()]
        got = (got.astype(np.float64) if target in FLOATS else got).tolist()
        assert got == want, (source, target)


def test_saturate_cast_keeps_nan_among_floats() -> None:
    for source, target in itertools.product(FLOATS, FLOATS):
        x = tf.constant(np.array([np.nan]).astype(numpy_dtype(source)))
        assert np.isnan(tf.saturate_cast(x, target).numpy().astype(np.float64)).all()
