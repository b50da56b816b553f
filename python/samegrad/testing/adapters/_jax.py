"""Steps of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad.testing._updates import Outcome, Step


def jax_step(
    gradient: Callable[[Any, Any], Any], parameters: Any, join: Callable[[list[Any]], Any]
) -> Step:
    """A JAX step with the replicas one after the other, as pmap or shard_map would run them.

    Args:
        gradient: gradient(parameters, batch) of a replica's loss: `jax.grad(loss)`, jitted or not.
        parameters: Where it is taken.
        join: Makes one update of the replicas' gradients (a list of pytrees), as `psum` or `pmean`
            over the axis of devices does.

    Returns:
        A step whose update is the joined gradient.
    """

    def step(shares: list[Any]) -> Outcome:
        import jax

        joined = join([gradient(parameters, share) for share in shares])
        return Outcome([np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(joined)])

    return step


__all__ = ["jax_step"]
