"""Moments of batch normalization that a step gives, judged by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._catalogue._nonweight import EQUAL_STATISTICS, LOCAL_STATISTICS
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Recorded, Vector


def explain_statistics(
    runs: Sequence[Recorded],
    layouts: Sequence[Layout],
    alone: Callable[[Sequence[int]], Recorded],
    near: float = 1e-4,
) -> Mistake | None:
    """The mistake in the statistics of an `Outcome`, if there are any.

    A moving mean after one step is an affine function of the batch's mean, which is the
    count-weighted mean of those of the shares. Elements for which that holds on one device are
    compared with equal weights, and with the share of one replica alone.
    """
    if any(run.statistics is None for run in runs):
        return None
    one = _values(runs[0])
    scale = np.abs(one).max() + 1e-300
    if all(np.abs(_values(run) - one).max() <= near * scale for run in runs):
        return None
    equal = True
    for item, run in zip(layouts[1:], runs[1:], strict=True):
        groups = [[i for part in share for i in part] for share in item.parts]
        own = np.stack([_values(alone(group)) for group in groups])
        sizes = np.array([len(group) for group in groups], dtype=np.float64)
        linear = np.abs(sizes / sizes.sum() @ own - one) <= near * scale
        if linear.any() and np.ptp(sizes) > 0:
            found = _values(run)
            equal &= bool(np.abs(own.mean(axis=0) - found)[linear].max() <= near * scale)
    return EQUAL_STATISTICS if equal else LOCAL_STATISTICS


def _values(run: Recorded) -> Vector:
    assert run.statistics is not None
    return run.statistics


__all__ = ["explain_statistics"]
