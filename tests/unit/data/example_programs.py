"""Records of features; they are made and parsed with TensorFlow and with samegrad alike."""

import numpy as np
from pipeline_programs import plain


def _ints(tf, *values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(tf, *values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _bytes(tf, *values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _example(tf, **features):
    return tf.train.Example(features=tf.train.Features(feature=features))


def examples(tf):
    """Names and records."""
    yield "empty", _example(tf)
    yield "one", _example(tf, label=_ints(tf, 3), x=_floats(tf, 0.5, -2.0), name=_bytes(tf, b"cat"))
    yield "two", _example(tf, label=_ints(tf, -1), x=_floats(tf, 1e30, 0.0), name=_bytes(tf, b""))
    yield "rows", _example(tf, x=_floats(tf, *range(6)), words=_bytes(tf, b"a", b"\x00\xff", b"c"))
    yield "row", _example(tf, x=_floats(tf, 7.0, 8.0), words=_bytes(tf))
    yield "large", _example(tf, label=_ints(tf, 2**63 - 1, -(2**63), 0, 300, 127, 128))
    yield "long", _example(tf, name=_bytes(tf, bytes(range(256)) * 300))


def _fixed(tf, **more):
    return {
        "label": tf.io.FixedLenFeature([], tf.int64, **more),
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "name": tf.io.FixedLenFeature((), tf.string),
    }


def _rows(tf):
    return {"x": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)}


def _words(tf, **more):
    return {"words": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True, **more)}


PARSED = {
    "one": lambda tf, data: tf.io.parse_single_example(data["one"], _fixed(tf)),
    "two": lambda tf, data: tf.io.parse_single_example(data["two"], _fixed(tf)),
    "batch": lambda tf, data: tf.io.parse_example([data["one"], data["two"]], _fixed(tf)),
    "default": lambda tf, data: tf.io.parse_single_example(
        data["rows"], {"label": tf.io.FixedLenFeature([], tf.int64, default_value=9)}
    ),
    "default text": lambda tf, data: tf.io.parse_single_example(
        data["empty"], {"name": tf.io.FixedLenFeature([2], tf.string, default_value=["a", "b"])}
    ),
    "rows": lambda tf, data: tf.io.parse_single_example(data["rows"], _rows(tf)),
    "no rows": lambda tf, data: tf.io.parse_single_example(data["empty"], _rows(tf)),
    "rows batch": lambda tf, data: tf.io.parse_example([data["rows"], data["row"]], _rows(tf)),
    "words": lambda tf, data: tf.io.parse_single_example(data["rows"], _words(tf)),
    "words batch": lambda tf, data: tf.io.parse_example([data["rows"], data["row"]], _words(tf)),
    "words filled": lambda tf, data: tf.io.parse_example(
        [data["row"], data["rows"]], _words(tf, default_value="-")
    ),
    "matrix": lambda tf, data: tf.io.parse_single_example(
        data["rows"], {"x": tf.io.FixedLenFeature([2, 3], tf.float32)}
    ),
    "error missing": lambda tf, data: tf.io.parse_single_example(data["rows"], _fixed(tf)),
    "error size": lambda tf, data: tf.io.parse_single_example(
        data["rows"], {"x": tf.io.FixedLenFeature([5], tf.float32)}
    ),
    "error dtype": lambda tf, data: tf.io.parse_single_example(
        data["one"], {"x": tf.io.FixedLenFeature([2], tf.int64)}
    ),
    "error rows": lambda tf, data: tf.io.parse_single_example(
        data["rows"], {"x": tf.io.FixedLenSequenceFeature([4], tf.float32, allow_missing=True)}
    ),
    "error bytes": lambda tf, data: tf.io.parse_single_example(b"no record", _fixed(tf)),
    "error short": lambda tf, data: tf.io.parse_single_example(data["one"][:-3], _fixed(tf)),
}


def outcome(tf, program, data):
    """What a program parses, with shapes; None where it is refused."""
    try:
        found = program(tf, data)
    except tf.errors.InvalidArgumentError:
        return None
    return {
        name: [value.dtype.name, list(value.shape), plain(np.asarray(value.numpy(), object))]
        for name, value in sorted(found.items())
    }
