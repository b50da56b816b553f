"""The drawn windows of fractional pooling, whose definition is TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_fractional_pooling_pools_the_windows_of_its_sequences(
    mean: bool, pseudo_random: bool, overlapping: bool, compiled: bool
) -> None:
    """Window i has the pixels from sequence[i] to sequence[i + 1], which it has if overlapping."""
    x = np.arange(2 * 7 * 9 * 2, dtype="float32").reshape(2, 7, 9, 2) * 37 % 101
    pool: Any = tf.nn.fractional_avg_pool if mean else tf.nn.fractional_max_pool

    def call(x: Any) -> Any:
        return pool(x, [1.0, 1.44, np.sqrt(3), 1.0], pseudo_random, overlapping)

    found, rows, columns = (tf.function(call) if compiled else call)(x)
    assert rows.shape == (5,) and columns.shape == (6,)
    for sequence in (rows.numpy(), columns.numpy()):
        assert sequence[0] == 0 and sequence.dtype == np.int64
        assert set(np.diff(sequence)) == {1, 2}
    more = int(overlapping)
    expected = [
        [
            getattr(x[:, a : b + more, c : d + more], "mean" if mean else "max")(axis=(1, 2))
            for c, d in zip(columns.numpy(), columns.numpy()[1:], strict=False)
        ]
        for a, b in zip(rows.numpy(), rows.numpy()[1:], strict=False)
    ]
    np.testing.assert_allclose(found, np.moveaxis(np.array(expected), 2, 0), rtol=1e-6)


@pytest.mark.parametrize("pseudo_random", [False, True])
def test_fractional_pooling_draws_new_windows_for_each_call(pseudo_random: bool) -> None:
    tf.random.set_seed(3)
    x = tf.ones([1, 50, 3, 1])
    step = tf.function(lambda: tf.nn.fractional_max_pool(x, [1.0, 1.5, 1.0, 1.0], pseudo_random)[1])
    first, second = step().numpy().tolist(), step().numpy().tolist()
    assert first != second
