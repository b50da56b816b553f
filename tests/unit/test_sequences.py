"""Rows shorter than their array, elements moved along an axis, and distinct elements."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import local, split

import samegrad as tf

rng = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_masks_hold_within_the_rows(dtype):
    lengths = np.array([[0, 2], [5, 9]])
    mask = tf.sequence_mask(lengths, 5, dtype).numpy()
    assert mask.dtype == dtype
    np.testing.assert_array_equal(mask, np.arange(5) < lengths[..., None])
    np.testing.assert_array_equal(tf.sequence_mask([1, 3]).numpy(), [[1, 0, 0], [1, 1, 1]])
    assert tf.sequence_mask(np.zeros((0,), np.int32)).shape == (0, 0)
    assert tf.function(lambda n: tf.sequence_mask(n, 4))(tf.constant([2])).shape == (1, 4)


def test_wrong_masks():
    with pytest.raises(TypeError, match="integers"):
        tf.sequence_mask([1.0])
    with pytest.raises(ValueError, match="not be negative"):
        tf.sequence_mask([1], -1)
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match="pass maxlen"):
        two.run(tf.sequence_mask, args=(tf.constant([1]),))


@pytest.mark.parametrize(("seq", "batch"), [(1, 0), (0, 2), (-1, 1), (2, 0)])
def test_rows_are_reversed_as_far_as_they_go(seq, batch):
    x = rng.normal(size=(3, 4, 5))
    lengths = np.minimum(rng.integers(0, 6, size=x.shape[batch]), x.shape[seq])
    expected = np.moveaxis(x, (batch, seq % 3), (0, 1)).copy()
    for row, n in zip(expected, lengths, strict=True):
        row[:n] = row[:n][::-1].copy()
    expected = np.moveaxis(expected, (0, 1), (batch, seq % 3))
    y = tf.reverse_sequence(x, lengths, seq, batch)
    np.testing.assert_array_equal(y.numpy(), expected)
    check_derivatives(lambda x: tf.square(tf.reverse_sequence(x, lengths, seq, batch)), x)


def test_sequences_of_replicas():
    x, n = rng.normal(size=(8, 5)).astype("float32"), rng.integers(0, 6, size=8).astype("int32")
    whole = tf.reverse_sequence(x, n, 1).numpy()
    for replicas in (2, 3):
        s = tf.distribute.MirroredStrategy(replicas=replicas)
        parts = s.run(lambda x, n: tf.reverse_sequence(x, n, 1),
                      args=(split(x, replicas), split(n, replicas)))  # fmt: skip
        np.testing.assert_array_equal(np.concatenate(local(parts)), whole)


def test_wrong_sequences():
    x = np.zeros((2, 3))
    with pytest.raises(TypeError, match="integers"):
        tf.reverse_sequence(x, [1.0, 2.0], 1)
    with pytest.raises(ValueError, match="seq_axis must be given"):
        tf.reverse_sequence(x, [1, 2])
    with pytest.raises(ValueError, match="must differ"):
        tf.reverse_sequence(x, [1, 2], 0, 0)
    for lengths in ([1, 4], [1, -1]):
        with pytest.raises((IndexError, ValueError)):
            tf.reverse_sequence(x, lengths, 1)


@pytest.mark.parametrize(
    ("shift", "axis"), [(1, 0), (-2, 1), (7, 1), ([1, 2, -1], [0, 1, 1]), (0, 0), ([1, 1], [0, -1])]
)
def test_elements_that_leave_come_in_again(shift, axis):
    x = rng.normal(size=(3, 4))
    expected = np.roll(x, tuple(shift) if isinstance(shift, list) else shift,
                       tuple(axis) if isinstance(axis, list) else axis)  # fmt: skip
    np.testing.assert_array_equal(tf.roll(x, shift, axis).numpy(), expected)
    traced = tf.function(lambda x, n: tf.roll(x, n, axis))
    if not isinstance(shift, list):
        np.testing.assert_array_equal(traced(tf.constant(x), tf.constant(shift)).numpy(), expected)
    check_derivatives(lambda x: tf.square(tf.roll(x, shift, axis)), x)


def test_examples_are_rolled_within_a_replica():
    x = np.arange(6.0)
    s = tf.distribute.MirroredStrategy(replicas=2)
    parts = local(s.run(lambda x: tf.roll(x, 4, 0), args=(split(x, 2),)))
    np.testing.assert_array_equal(parts, [[2, 0, 1], [5, 3, 4]])


def test_wrong_and_empty_rolls():
    assert tf.roll(np.zeros((0, 2)), 3, 0).shape == (0, 2)
    with pytest.raises(ValueError, match="as many"):
        tf.roll([1, 2], [1, 2], 0)
    with pytest.raises(ValueError, match="axis"):
        tf.roll([1, 2], 1, 3)


def test_distinct_elements_in_the_order_in_which_they_come():
    x = rng.integers(0, 50, size=1000)
    y, idx, count = tf.unique_with_counts(x, "int64")
    np.testing.assert_array_equal(y.numpy()[idx.numpy()], x)
    assert list(y.numpy()) == list(dict.fromkeys(x.tolist()))
    assert count.numpy().sum() == 1000 and idx.dtype == tf.int64
    assert tf.unique(np.array([np.nan, np.nan, 1.0])).y.shape == (3,)
    assert tf.unique(np.zeros((0,))).y.shape == (0,)
    zeros = tf.unique_with_counts([-0.0, np.nan, 2.0, 0.0, 2.0, np.nan, 0.0])
    assert np.signbit(zeros.y.numpy()[0])  # equal values are the first of them
    assert zeros.idx.numpy().tolist() == [0, 1, 2, 0, 2, 3, 0]
    assert zeros.count.numpy().tolist() == [3, 1, 2, 1]
    with pytest.raises(ValueError, match="vector"):
        tf.unique([[1]])
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match="depends on the values"):
        two.run(tf.unique, args=(tf.constant([1]),))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_logarithms_of_sums_so_far(exclusive, reverse):
    x = rng.normal(size=(3, 9, 2)) * 3
    lines = x[:, ::-1] if reverse else x
    sums = np.logaddexp.accumulate(lines, 1)
    if exclusive:
        sums = np.concatenate([np.full((3, 1, 2), -np.inf), sums[:, :-1]], 1)
    expected = sums[:, ::-1] if reverse else sums
    y = tf.math.cumulative_logsumexp(x, -2, exclusive, reverse)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-13)
    rest = slice(0, -1) if reverse else slice(1, None)
    kept = rest if exclusive else slice(None)
    check_derivatives(
        lambda x: tf.math.cumulative_logsumexp(x, 1, exclusive, reverse)[:, kept], x, tolerance=1e-5
    )


def test_logarithms_of_sums_of_extreme_numbers():
    x = np.array([-np.inf, -np.inf, 1e4, -1e4, 1e4, np.inf, 1.0])
    with np.errstate(invalid="ignore"):
        y = tf.math.cumulative_logsumexp(x).numpy()
    np.testing.assert_allclose(y[:5], [-np.inf, -np.inf, 1e4, 1e4, 1e4 + np.log(2)])
    assert y[5] == y[6] == np.inf
    assert np.isnan(tf.math.cumulative_logsumexp([0.0, np.nan, 1.0]).numpy()[1:]).all()
    long = tf.math.cumulative_logsumexp(np.zeros(100_000)).numpy()
    np.testing.assert_allclose(long, np.log(np.arange(1, 100_001)), rtol=1e-13)
    with pytest.raises(TypeError, match="floats"):
        tf.math.cumulative_logsumexp([1, 2])
    assert tf.math.cumulative_logsumexp(np.zeros((2, 0)), 1).shape == (2, 0)


COLLAPSED = {  # TensorFlow's results
    "runs": ([[1, 1, 2, 2, 1], [3, 3, 3, 4, 0]], [5, 3], [[1, 2, 1], [3, 0, 0]], [3, 1]),
    "none left": ([[1, 1, 2]], [0], np.zeros((1, 0)), [0]),
    "floats": ([[1.0, 1.0, 0.5]], np.array([3]), [[1.0, 0.5]], [2]),
}


@pytest.mark.parametrize("name", COLLAPSED)
def test_collapse_repeated_merges_labels(name):
    labels, lengths, expected, sizes = COLLAPSED[name]
    for function in (tf.nn.collapse_repeated, tf.function(tf.nn.collapse_repeated)):
        found, left = function(tf.constant(labels), tf.constant(lengths))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(left, sizes)
        assert left.dtype == tf.constant(lengths).dtype and found.dtype == tf.constant(labels).dtype


def test_collapse_repeated_needs_sequences():
    with pytest.raises(ValueError, match=r"collapse_repeated\] labels have the axes"):
        tf.nn.collapse_repeated([1, 1], [2])
