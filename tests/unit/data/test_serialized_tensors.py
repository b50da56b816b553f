"""tf.io.serialize_tensor and parse_tensor: TensorFlow's bytes, and what damaged ones are told."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from serialized_tensors import LISTED, VALUES

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("serialized_tensors.json").read_text())


def same(found, value):
    texts = value.dtype == object
    expected = tf.constant(value.tolist()).numpy() if texts and value.size else value
    np.testing.assert_array_equal(found.numpy(), expected)
    assert tuple(found.shape) == value.shape
    assert found.dtype == (tf.string if texts else value.dtype.name)


@pytest.mark.parametrize("name", VALUES)
def test_bytes_are_tensorflows(name):
    value, expected = VALUES[name], bytes.fromhex(RECORDED["serialized"][name])
    assert tf.io.serialize_tensor(value).numpy() == expected
    same(tf.io.parse_tensor(expected, tf.string if value.dtype == object else value.dtype), value)


@pytest.mark.parametrize("name", LISTED)
def test_lists_of_numbers_are_read(name):
    value, data = LISTED[name], bytes.fromhex(RECORDED["listed"][name])
    same(tf.io.parse_tensor(data, tf.string if value.dtype == object else value.dtype), value)


def test_bfloat16_and_tensors():
    x = tf.constant([1.5, -3.0], tf.bfloat16)
    again = tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.bfloat16)
    assert again.dtype == tf.bfloat16
    np.testing.assert_array_equal(tf.cast(again, tf.float32), [1.5, -3.0])


@pytest.mark.parametrize("name", VALUES)
def test_no_bytes_of_any_kind_crash_the_reader(name):
    rng, data = np.random.default_rng(0), bytes.fromhex(RECORDED["serialized"][name])
    kind = tf.string if VALUES[name].dtype == object else VALUES[name].dtype
    for number in range(60):
        changed = bytearray(data[: rng.integers(len(data) + 1)] if number % 2 else data)
        for place in rng.integers(0, max(len(changed), 1), 2)[: len(changed)]:
            changed[place] = rng.integers(256)
        said = "[tf.io.parse_tensor] the "
        try:
            tf.io.parse_tensor(bytes(changed), kind)
        except tf.errors.InvalidArgumentError as error:
            said = str(error)
        assert "[tf.io.parse_tensor] the " in said


def test_wrong_calls_are_refused():
    data = tf.io.serialize_tensor([1.5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out_type=int32: got float32"):
        tf.io.parse_tensor(data, tf.int32)
    with pytest.raises(ValueError, match=r"one tensor: got \(1,\)"):
        tf.io.parse_tensor([data.numpy()], tf.float32)
    with pytest.raises(TypeError, match="must be the bytes of a tensor"):
        tf.io.parse_tensor(3, tf.float32)
    assert tf.function(tf.io.serialize_tensor)(tf.constant([1.5])) == data  # falls back to Python
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match="being traced"):
        two.run(tf.io.serialize_tensor, args=(tf.constant(1.0),))


def test_numbers_beyond_their_kind_and_shapes_beyond_memory():
    halves = b"\x08\x13\x12\x04\x12\x02\x08\x01\x6a\x03\x80\x80\x04"  # half_val: 65536
    with pytest.raises(tf.errors.InvalidArgumentError, match="of serialized"):
        tf.io.parse_tensor(halves, tf.float16)
    size = b"\xff\xff\xff\xff\x7f"  # of text: 34 359 738 367 strings, none of which is there
    shape = b"\x12" + bytes([len(size) + 1 + 2]) + b"\x12" + bytes([len(size) + 1]) + b"\x08" + size
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 values for a shape of 34359738367"):
        tf.io.parse_tensor(b"\x08\x07" + shape, tf.string)


def test_a_damaged_file_is_named(tmp_path):
    path = str(tmp_path / "a.tensor")
    tf.io.write_file(path, tf.io.serialize_tensor([1.0, 2.0]).numpy()[:-3])
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"bytes of {path}"):
        tf.io.parse_tensor(tf.io.read_file(path), tf.float32)


def test_elements_of_a_dataset():
    rows = [tf.io.serialize_tensor(np.float32([n, n + 1])).numpy() for n in range(5)]
    data = tf.data.Dataset.from_tensor_slices(rows)
    data = data.map(lambda row: tf.io.parse_tensor(row, tf.float32)).batch(2)
    assert [batch.numpy().tolist() for batch in data] == [
        [[0, 1], [1, 2]], [[2, 3], [3, 4]], [[4, 5]],
    ]  # fmt: skip
