"""Two functions that are traced at once do not see each other's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

CHANGES: dict[str, Any] = {"requirements": {}, "batches": []}


@pytest.mark.parametrize(
    "use",
    [
        lambda x, n: x.shape,
        lambda x, n: x + 1.0,
        lambda x, n: tf.reduce_sum(x),
        lambda x, n: n * 2,
        lambda x, n: n > 3,
    ],
)
def test_a_tensor_of_an_independent_trace_is_refused(use: Callable[[Any, Any], Any]) -> None:
    rows = tf.Tensor(np.zeros((3, 2), np.float32), example_axis=0)
    outer, inner = _core.Trace(), _core.Trace()
    with _core.tracing_into(outer, CHANGES):
        x = outer.argument([rows])
        count = x.shape[0]
        with (
            _core.tracing_into(inner, CHANGES),
            pytest.raises(RuntimeError, match="belongs to a"),
        ):
            use(x, count)
        assert x.shape[1] == 2
