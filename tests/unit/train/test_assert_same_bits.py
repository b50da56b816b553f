"""assert_same_bits: it finds each kind of difference and names the first."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.testing import assert_same_bits
from samegrad.testing._same_bits import units_apart

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*FLOATS, "complex64", "complex128", "bool", "int8", "uint8", "int32", "int64", "uint64"]


def difference(a: Any, b: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(a, b)
    text = str(caught.value)
    rule = "[assert_same_bits] all bits must be equal: got "
    assert text.startswith(rule)
    return text.removeprefix(rule)


def small_model() -> tf.keras.Model:
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(2, name=None) for _ in range(11)]
    model = tf.keras.Sequential([tf.keras.Input([2]), *layers])
    model.compile("adam", "mse")
    model.fit(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), verbose=0)
    return model


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_changed_bit_is_named(dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    array = np.ones((2, 3), kind)
    assert_same_bits(array, array.copy())
    size = array.dtype.itemsize
    for byte, bit in itertools.product(range(size), range(8 if dtype != "bool" else 1)):
        other = array.copy()
        other.view(np.uint8).reshape(-1)[4 * size + byte] ^= 1 << bit
        found = difference(array, other)
        assert "1 of 1 variables and 1 of 6 elements" in found
        assert f"First is the value[1, 1], {dtype}, " in found, found


@pytest.mark.parametrize("dtype", FLOATS)
def test_distance_counts_floats(dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    steps = np.array([3, 2, 1, 0, 0, 1, 2, 3], f"u{np.dtype(kind).itemsize}")
    sign = np.array(1 << (8 * steps.itemsize - 1), steps.dtype)
    around_zero = np.where(np.arange(8) < 4, steps | sign, steps).view(kind)  # -3 ulp ... 3 ulp
    units, known = units_apart(around_zero, np.repeat(around_zero[:1], 8))
    assert units.tolist() == list(range(8)) and known.all()
    largest = np.array([np.inf], kind)
    units, _ = units_apart(-largest, largest)
    assert int(units[0]) == 2 * int(largest.view(steps.dtype)[0]) + 1


def test_distance_of_integers_is_their_difference() -> None:
    units, _ = units_apart(np.int8([-128, -1, 5]), np.int8([127, 1, 5]))
    assert units.tolist() == [255, 2, 0]
    units, _ = units_apart(np.uint64([2**64 - 1]), np.uint64([0]))
    assert int(units[0]) == 2**64 - 1


def test_nan_equals_nan_and_zeros_have_signs() -> None:
    quiet = np.float32([np.nan, 1.0])
    other = quiet.copy()
    other.view(np.uint32)[0] ^= 0x8000_0001
    assert_same_bits(quiet, other)
    assert "NaN on one side" in difference(quiet, np.float32([0.0, 1.0]))
    found = difference(np.float32(0.0), np.float32(-0.0))
    assert "First is the value, float32, 1 unit in the last place apart" in found
    assert "a: 0.0   (0x00000000)" in found and "b: -0.0  (0x80000000)" in found


def test_first_variable_of_a_model_is_named_in_counting_order() -> None:
    a, b = small_model(), small_model()
    assert_same_bits(a, b)
    for layer in (2, 10):
        kernel = b.layers[layer].kernel.numpy()
        kernel[1, 0] = np.nextafter(kernel[1, 0], np.float32(9))
        b.layers[layer].kernel.assign(kernel)
    found = difference(a, b)
    assert "2 of 68 variables and 2 of " in found
    assert "First is layers/2/kernel[1, 0], float32, 1 unit in the last place apart" in found
    value = a.layers[2].kernel.numpy()[1, 0]
    assert f"a: {value!s} " in found and f"(0x{value.view(np.uint32):08x})" in found


def test_number_of_differing_elements_and_largest_distance_are_told() -> None:
    a = np.ones(5, np.float32)
    b = a.copy()
    b.view(np.uint32)[[1, 3]] += np.uint32([2, 7])
    assert "2 of its 5 elements differ, at most 7 units in the last place" in difference(a, b)


def test_shapes_dtypes_and_missing_paths_are_named() -> None:
    found = difference(
        {"a": np.zeros((2, 3)), "b": 1.0, "c": 2, "same": 1},
        {"a": np.zeros((3, 2)), "b": np.float32(1), "d": 3, "same": 1},
    )
    assert found.splitlines() == [
        "4 of 5 variables that differ.",
        "Only in a: c.",
        "Only in b: d.",
        "a is float64 [2, 3] in a and float64 [3, 2] in b.",
        "b is float64 [] in a and float32 [] in b.",
    ]
    many = {str(n): 1.0 for n in range(9)}
    assert "Only in a: 1, 2, 3, 4, 5 and 3 more." in difference(many, {"0": 1.0, "x": 1.0})
    assert "Only in a: 1." in difference([1.0, 2.0], [1.0])


def test_checkpoint_is_compared_with_its_objects(tmp_path: Path) -> None:
    model = small_model()
    for checkpoint in (tf.train.Checkpoint(model), tf.train.Checkpoint(model=model)):
        path = checkpoint.save(tmp_path / "ckpt")
        for a, b in itertools.permutations([model, path, tmp_path, checkpoint], 2):
            assert_same_bits(a, b)
    model.layers[0].bias.assign_add([0.0, 1.0])
    assert "First is layers/0/bias[1]" in difference(model, path)
    assert "First is model/layers/0/bias[1]" in difference(path, model)


def test_bad_subjects_are_errors() -> None:
    cycle: list = []
    cycle.append(cycle)
    for bad, error in ((cycle, ValueError), ([], ValueError), ("nothing", ValueError),
                       (None, TypeError), (b"x", TypeError), ({"s": "x"}, TypeError)):  # fmt: skip
        for a, b in ((bad, 1.0), (1.0, bad)):
            with pytest.raises(error, match=r"^\[assert_same_bits\]"):
                assert_same_bits(a, b)
