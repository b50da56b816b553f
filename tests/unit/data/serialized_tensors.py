"""Tensors that are stored as bytes, for TensorFlow to record and for samegrad to compare."""

import numpy as np

VALUES = {
    "matrix": np.array([[1.5, -2.0], [np.inf, 4.0]], np.float32),
    "double": np.array(0.1, np.float64),
    "long": np.array([-1, 2**62], np.int64),
    "short": np.array([[-1], [300]], np.int16),
    "byte": np.array([255], np.uint8),
    "signed byte": np.array([-7], np.int8),
    "unsigned": np.array([65535], np.uint16),
    "half": np.array([1.5, -0.25], np.float16),
    "flags": np.array([True, False]),
    "none": np.zeros((0, 2), np.int32),
    "texts": np.array([["a", "bcd"]], object),
    "text": np.array("ä", object),
    "no text": np.zeros((0,), object),
}
# As programs write them that make the message themselves: lists, whose last entry is repeated.
LISTED = {
    "floats": np.array([1.5, 2.5], np.float32),
    "doubles": np.array([0.1], np.float64),
    "ints": np.array([-3, 4], np.int32),
    "longs": np.array([-(2**40)], np.int64),
    "bools": np.array([True, False]),
    "halves": np.array([1.5, -2.0], np.float16),
    "bytes": np.array([1, 255], np.uint8),
    "texts": np.array(["x", "yz"], object),
    "repeated": np.full((3, 2), 7, np.int32),
}
