"""The element types of Python are those of the engine's table, cpp/base/dtypes.def."""

import re
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core
from samegrad._base import dtypes as _dtypes

TABLE = Path(__file__).resolve().parents[2] / "cpp" / "base" / "dtypes.def"
ROW = re.compile(
    r'^SAMEGRAD_(?:DTYPE|STORAGE_DTYPE)\((\w+), "(\w+)", k(\w+), ([\w:]+), ([\w:]+)\)$',
    re.MULTILINE,
)
KINDS = {"Floating": "f", "Signed": "i", "Unsigned": "u", "Boolean": "b"}
ROWS = ROW.findall(TABLE.read_text(encoding="utf-8"))


def test_python_has_the_types_of_the_table_and_no_others():
    assert tuple(name for _, name, *_ in ROWS) == _dtypes.NAMES
    assert set(_dtypes.NAMES) == _dtypes._BY_NAME.keys()


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for _, name, kind, *_ in ROWS])
def test_a_type_is_numpys_of_that_name_and_kind(name, kind):
    dtype = getattr(tf, name)
    assert _dtypes.kind_of(dtype._numpy) == KINDS[kind]
    assert (dtype.is_floating, dtype.is_integer, dtype.is_bool) == (
        kind == "Floating", kind in {"Signed", "Unsigned"}, kind == "Boolean",
    )  # fmt: skip
    numpy = dtype.as_numpy_dtype
    numbers = np.array([[0, 1, 1], [1, 0, 1]], dtype=numpy)
    tensor = tf.constant(numbers)
    assert tensor.dtype == name
    assert tensor.dtype.size == numbers.itemsize
    np.testing.assert_array_equal(tensor.numpy(), numbers, strict=True)
    # Moved, filled and chosen elements also have that type.
    np.testing.assert_array_equal(tf.transpose(tensor).numpy(), numbers.T, strict=True)
    np.testing.assert_array_equal(tf.ones([3], name).numpy(), np.ones(3, numpy), strict=True)
    chosen = tf.where(tf.constant([True, False, True]), tensor, tf.zeros_like(tensor))
    np.testing.assert_array_equal(chosen.numpy(), numbers * np.array([1, 0, 1], numpy), strict=True)


def test_an_unknown_type_is_named():
    known = ", ".join(_dtypes.NAMES[:-1])
    with pytest.raises(TypeError, match=f"{known} and bool: got .*complex64"):
        _core.ops.cast(tf.constant(1.0), dtype="complex64")
    with pytest.raises(TypeError, match=f"{known}, bool: got .*float128"):
        tf.constant(np.longdouble(1))


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int16", "int64", "uint32"])
def test_bytes_of_another_order_are_the_same_numbers(name):
    swapped = np.array([1, 2, 3], dtype=np.dtype(name).newbyteorder())
    assert _dtypes.as_dtype(swapped.dtype) is getattr(tf, name)
    for array in (swapped, swapped[::2]):
        tensor = tf.constant(array)
        assert tensor.dtype == name
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize(
    "wrong", ["float31", np.clongdouble, np.dtype("M8[s]"), np.dtype("V2"), "U3"]
)
def test_other_types_are_refused_by_name(wrong):
    with pytest.raises(TypeError, match="dtype must be one of float32"):
        tf.as_dtype(wrong)
