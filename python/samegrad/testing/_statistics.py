"""Moments that a step gives, of batch normalization or of an optimizer, judged by themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from samegrad.testing._catalogue import EQUAL_STATISTICS, LOCAL_STATISTICS, OWN_MOMENTS
from samegrad.testing._limits import of_shares
from samegrad.testing._mistake import Mistake
from samegrad.testing._runs import Runs
from samegrad.testing._updates import Recorded, Vector


def explain_statistics(seen: Runs) -> Mistake | None:
    """The mistake in the statistics of an `Outcome`, if there are any.

    A moving mean after one step is an affine function of the batch's mean, which is the
    count-weighted mean of those of the shares. Elements for which that holds on one device are
    compared with equal weights, and with the share of one replica alone; the others, such as means
    of squared gradients, with means of what the replicas make of their shares.
    """
    runs = seen.runs
    if any(run.statistics is None for run in runs):
        return None
    near = seen.same
    one = _values(runs[0])
    scale = np.abs(one) if one.all() else np.full_like(one, np.abs(one).max() + 1e-300)

    def differ(values: Vector) -> npt.NDArray[np.bool_]:
        return np.asarray(np.abs(values - one) > near * np.maximum(scale, 1e-3 * scale.max()))

    if not any(differ(_values(run)).any() for run in runs):
        return None
    equal, own_moments = True, False
    for item, run in zip(seen.layouts[1:], runs[1:], strict=True):
        own = np.stack([_values(seen.alone(group)) for group in of_shares(item)])
        sizes = np.array(item.sizes, dtype=np.float64)
        weighted, mean, found = sizes / sizes.sum() @ own, own.mean(axis=0), _values(run)
        linear = ~differ(weighted)
        if linear.any() and np.ptp(sizes) > 0:
            equal &= bool((np.abs(mean - found) <= near * scale.max())[linear].all())
        rest = differ(found) & ~linear
        if rest.any() and not (differ(found) & linear).any():
            own_moments = any(
                bool((np.abs(said - found) <= 1e-2 * np.abs(found))[rest].all())
                for said in (weighted, mean)
            )
    if own_moments:
        return OWN_MOMENTS
    return EQUAL_STATISTICS if equal else LOCAL_STATISTICS


def _values(run: Recorded) -> Vector:
    assert run.statistics is not None
    return run.statistics


__all__ = ["explain_statistics"]
