"""Random numbers: functions of the seed and the position alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _context, _core, _sizes
from samegrad._boundary import guard as _guard
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._tensor import Tensor

_ops = _core.ops


def set_seed(seed: int) -> None:
    """Starts all random numbers anew from this seed.

    Example:
        >>> set_seed(7)
        >>> first = normal((2,)).numpy()
        >>> set_seed(7)
        >>> bool((normal((2,)).numpy() == first).all())
        True
    """
    state = _core.random_state()
    state.seed = int(seed) & (2**64 - 1)
    state.step = state.ordinal = state.created = 0


def _source() -> Tensor:
    context = _context.get_replica_context()
    if _core.tracing() and context is not None and context.num_replicas_in_sync > 1:
        return _ops.replica_id()
    return Tensor(np.zeros((), np.int64))


def _draw(name: str, shape: Any, dtype: DTypeLike, seed: int | None, **more: Any) -> Tensor:
    sizes = _sizes.sizes_of(shape)
    more |= {"dtype": as_dtype(dtype).name, "seed": seed or 0, "ordinal": _core.next_ordinal()}
    if _sizes.dim_in(sizes) is None:
        drawn: Tensor = getattr(_ops, name)(_source(), shape=sizes, **more)
    else:  # rows of the global batch, whichever replica has them
        more["rows"] = _sizes.codes_of(sizes)[0]
        drawn = getattr(_ops, name + "_like")(_sizes.full(sizes, "float32"), **more)
    return drawn


def normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: DTypeLike = "float32",
           seed: int | None = None, name: str | None = None) -> Tensor:  # fmt: skip
    """Normally distributed numbers."""
    return _draw("random_normal", shape, dtype, seed) * stddev + mean


def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0,
                     dtype: DTypeLike = "float32", seed: int | None = None,
                     name: str | None = None) -> Tensor:  # fmt: skip
    """Normally distributed numbers within two deviations."""
    return _draw("random_truncated_normal", shape, dtype, seed) * stddev + mean


def uniform(shape: Any, minval: float = 0, maxval: float | None = None,
            dtype: DTypeLike = "float32", seed: int | None = None,
            name: str | None = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [minval, maxval)."""
    if as_dtype(dtype).is_integer:
        high = int(maxval if maxval is not None else 0)
        return _draw("random_integers", shape, dtype, seed, low=int(minval), high=high)
    top = 1.0 if maxval is None else maxval
    return _draw("random_uniform", shape, dtype, seed) * (top - minval) + minval


_guard(__name__)
