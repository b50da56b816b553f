"""Steps of samegrad's own strategies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.tree import flatten, map_structure
from samegrad.testing._updates import Outcome, Step


def samegrad_step(
    build: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], seed: int = 0
) -> Step:
    """A step of `samegrad.distribute.MirroredStrategy`.

    Args:
        build: Called in the strategy's scope for each run, so that it begins anew; returns the
            function of a replica (it takes the components of a batch, applies the gradients with
            plain SGD, and may return the replica's loss share) and the variables.
        seed: Set before each run.

    Returns:
        A step whose update is the change of the variables.

    Example:
        >>> import numpy as np, samegrad as tf
        >>> from samegrad.testing import diagnose
        >>> def build():
        ...     w = tf.Variable(np.zeros((20, 1)))
        ...     optimizer = tf.keras.optimizers.SGD(0.1)
        ...     def step(x):
        ...         with tf.GradientTape() as tape:
        ...             losses = tf.reduce_sum(tf.square(tf.matmul(x, w) - 1.0), axis=1)
        ...             loss = tf.reduce_mean(losses)
        ...         optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        ...     return step, [w]
        >>> x = np.random.default_rng(0).normal(size=(10, 20))
        >>> diagnose(samegrad_step(build), (x,)).cause.name
        'mean per replica, then sum'
    """

    def step(shares: list[Any]) -> Outcome:
        import samegrad as tf
        from samegrad._tensor.per_replica import PerReplica

        tf.random.set_seed(seed)
        strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
        with strategy.scope():
            replica_step, variables = build()
        before = [v.numpy() for v in variables]
        marked = [
            map_structure(lambda leaf: tf.constant(leaf)._as_examples(0, 1), s) for s in shares
        ]
        columns = [flatten(share) for share in marked]
        parts = iter(
            column[0] if len(shares) == 1 else PerReplica(column)
            for column in zip(*columns, strict=True)
        )
        arguments = map_structure(lambda _: next(parts), marked[0])
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", tf.errors.LossNormalizationWarning
            )  # the verdict says it
            loss = strategy.run(replica_step, args=arguments)
        reported = None if loss is None else float(strategy.reduce("SUM", loss, axis=None))
        after = [v.numpy() for v in variables]
        return Outcome([b - a for a, b in zip(before, after, strict=True)], reported)

    return step


__all__ = ["samegrad_step"]
