"""Draws for the initial values of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._context import init_scope
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._tensor import Tensor

_CREATION = 1 << 61  # apart from the ordinals of steps and of draws outside them


def stateless_for_creation(
    shape: Any, dtype: DTypeLike = "float32", kind: str = "uniform", seed: int | None = None
) -> Tensor:
    """Numbers for a new variable: a function of the seed and of how many were created before.

    Args:
        shape: Sizes of the axes.
        dtype: float32 or float64.
        kind: "uniform" in [0, 1), "normal" or "truncated_normal".
        seed: Of the initializer; its draws then depend on no creation before.
    """
    state = _core.random_state()
    ordinal = 0 if seed is not None else state.created
    state.created += 1
    row = getattr(_core.ops, f"random_{kind}")
    with init_scope():
        drawn: Tensor = row(
            Tensor(np.zeros((), np.int64)), shape=[int(size) for size in shape],
            dtype=as_dtype(dtype).name, seed=seed or 0, ordinal=_CREATION + ordinal,
        )  # fmt: skip
        return drawn
