"""Operands for the samples of the op table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._base.dtypes import numpy_dtype


def array_of(sample: dict[str, Any], place: int, rng: Any) -> npt.NDArray[Any]:
    """Return random values for one operand of a sample, in the dtype and range that it states."""
    dtypes = sample["dtypes"]
    dtype = dtypes[place] if place < len(dtypes) else "float32"
    shape = sample["shapes"][place]
    kind = np.dtype(numpy_dtype(dtype)).kind
    if kind == "b":
        array = rng.random(shape) < 0.5
    elif kind in "iu":
        array = rng.integers(0, max(int(sample["integer_high"]), 1), shape)
    else:
        array = rng.uniform(sample["low"], sample["high"], shape)
    return np.asarray(array).astype(numpy_dtype(dtype))
