"""Reductions, means and divisions of integers: TensorFlow's, of any integer dtype.

Recorded by record_tensorflow_integer_reductions.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from integer_reductions import DTYPES, MEMBERS, answer

import samegrad as tf

RECORDED = json.loads((Path(__file__).parent / "tensorflow_integer_reductions.json").read_text())
# Results without fractions where others have them, and what samegrad does not have.
REFUSED = {"reduce_euclidean_norm", "moments", "sparse.segment_sum"}
# What TensorFlow has of 32 and 64 bits alone.
OF_ALL_WIDTHS = {"truncatemod"}


@pytest.mark.parametrize(("name", "given"), MEMBERS)
def test_integers_are_reduced_as_by_tensorflow(name: str, given: str) -> None:
    for dtype in DTYPES:
        got, want = answer(tf, name, dtype, given), RECORDED[f"{given}{name} {dtype}"]
        if (got is None and name in REFUSED) or (want is None and name in OF_ALL_WIDTHS):
            continue
        assert (got is None) == (want is None), dtype
        if want is not None:
            assert got[0] == want[0], dtype
            np.testing.assert_allclose(got[1], want[1], rtol=1e-3, err_msg=dtype)


def test_means_of_unsorted_segments_of_integers_have_fractions() -> None:
    x, segments = tf.constant([1, 2, 5, 6], tf.int64), tf.constant([0, 0, 1, 1])
    mean = tf.math.unsorted_segment_mean(x, segments, 2)
    assert mean.dtype == tf.float64 and mean.numpy().tolist() == [1.5, 5.5]
    with pytest.raises(TypeError, match="must hold floats: got int64"):
        tf.math.reduce_variance(x)
