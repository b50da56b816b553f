"""tf.train.Example: TensorFlow's bytes, and what is parsed from them."""

from __future__ import annotations

import base64
import gzip
import json
import pathlib
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from example_programs import PARSED, examples, outcome

import samegrad as tf
from samegrad.io._records import masked_crc

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_examples.json").read_text())
BYTES = {name: base64.b64decode(data) for name, data in RECORDED["bytes"].items()}
EXAMPLES = dict(examples(tf))


@pytest.mark.parametrize("name", BYTES)
def test_records_have_tensorflows_bytes_and_come_back(name):
    example = EXAMPLES[name]
    assert example.SerializeToString() == BYTES[name]
    again = tf.train.Example.FromString(BYTES[name])
    assert again.features.feature == example.features.feature
    other = tf.train.Example()
    assert other.ParseFromString(BYTES[name]) == len(BYTES[name])
    assert other.SerializeToString() == BYTES[name]


@pytest.mark.parametrize("name", PARSED)
def test_features_are_those_of_tensorflow(name):
    assert outcome(tf, PARSED[name], BYTES) == RECORDED["parsed"][name]


def test_everything_recorded_is_there():
    assert set(BYTES) == set(EXAMPLES) and set(RECORDED["parsed"]) == set(PARSED)


def test_records_go_through_a_file_into_batches(tmp_path):
    path = str(tmp_path / "images.tfrecord")
    images = np.arange(7 * 12, dtype=np.uint8).reshape(7, 2, 2, 3)
    with tf.io.TFRecordWriter(path) as writer:
        for label, image in enumerate(images):
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        found = tf.io.parse_single_example(record, features)
        image = tf.io.decode_raw(found["image"], tf.uint8)
        return tf.reshape(image, [2, 2, 3]), found["label"]

    for _ in range(2):
        batches = list(tf.data.TFRecordDataset(path).map(parse).batch(3))
        np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in batches]), images)
        assert [y.numpy().tolist() for _, y in batches] == [[0, 1, 2], [3, 4, 5], [6]]


def test_no_bytes_crash_or_hang_the_parser():
    rng = np.random.default_rng(0)
    for data in BYTES.values():
        for _ in range(40):
            changed = bytearray(data or b"\x0a")
            changed[rng.integers(len(changed))] = rng.integers(256)
            said = "[Example.FromString] an Example is needed"
            try:
                tf.train.Example.FromString(bytes(changed[: rng.integers(len(changed)) + 1]))
            except ValueError as error:
                said = str(error)
            assert said.startswith("[Example.FromString] an Example is needed")


def test_a_damaged_record_of_a_file_is_named(tmp_path):
    path = str(tmp_path / "bad.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"\x0a\x7f")
    record = next(iter(tf.data.TFRecordDataset(path)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad.tfrecord, in which a field of"):
        tf.io.parse_single_example(record, {})


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("length", [2**20, 2**34, 2**63, 2**64 - 1])
def test_a_forged_length_takes_the_memory_of_the_file(tmp_path, length, compression):
    path = tmp_path / "forged.tfrecord"
    head = struct.pack("<Q", length)
    data = head + struct.pack("<I", masked_crc(head)) + b"abc"
    path.write_bytes({"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression](data))
    tracemalloc.start()
    try:
        with pytest.raises(tf.errors.DataLossError, match=f"a record of {length} bytes, 3 of"):
            list(tf.data.TFRecordDataset(str(path), compression))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.train.Int64List(value=3), TypeError, "value must be a list"),
        (lambda: tf.train.Int64List(value=[0.5]), TypeError, "integer"),
        (lambda: tf.train.Int64List(value=[2**63]), ValueError, "integer of 64 bits"),
        (lambda: tf.train.BytesList(value=["a"]), TypeError, "use text.encode"),
        (lambda: tf.train.BytesList(value=b"a"), TypeError, "must be a list"),
        (lambda: tf.train.Features(feature={"a": 1}), TypeError, "names and Features"),
        (
            lambda: tf.train.Feature(tf.train.BytesList(), tf.train.FloatList()),
            ValueError, "there must be one list",
        ),
        (lambda: tf.train.Example.FromString(5), TypeError, "bytes are needed"),
        (
            lambda: tf.io.parse_single_example(b"", {"a": tf.io.FixedLenFeature([], "int32")}),
            ValueError, "string, float32 or int64",
        ),
        (
            lambda: tf.io.parse_single_example([b"", b""], {}), ValueError, "one record is needed",
        ),
        (lambda: tf.io.parse_single_example(b"", {"a": 1}), TypeError, "FixedLen"),
        (
            lambda: tf.io.parse_example([b"", b"\xff"], {}), ValueError, "record 1.*does not end",
        ),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()
