"""Steps of samegrad's strategies, also over the processes of a job."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._base.tree import flatten, map_structure
from samegrad.testing._doctor import Outcome
from samegrad.testing._joined import current, join


def samegrad_step(
    build: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], seed: int = 0
) -> Callable[[list[Any]], Outcome]:
    """Create a step of `samegrad.distribute.MirroredStrategy`; in an MPI job, of all processes.

    Args:
        build: Called in the strategy's scope for each run, so that it starts again; returns the
            function of a replica (it takes the components of a batch, applies the gradients with
            plain SGD, and may return the per-replica loss) and the variables.
        seed: The random seed, set before each run.

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
    join()

    def step(shares: list[Any]) -> Outcome:
        import samegrad as tf

        tf.random.set_seed(seed)
        strategy = _strategy_of(len(shares))
        with strategy.scope():
            replica_step, variables = build()
        before = [v.numpy() for v in variables]
        arguments = _arguments(strategy, shares)
        with warnings.catch_warnings():
            for said in (tf.errors.LossNormalizationWarning, tf.errors.ReplicaDependenceWarning):
                warnings.simplefilter("ignore", said)  # the diagnosis says it
            loss = strategy.run(replica_step, args=arguments)
        reported = None if loss is None else float(strategy.reduce("SUM", loss, axis=None))
        after = [v.numpy() for v in variables]
        return Outcome([b - a for a, b in zip(before, after, strict=True)], reported)

    step.source = build  # type: ignore[attr-defined]
    return step


def _strategy_of(replicas: int) -> Any:
    """Return a strategy over all processes; with fewer replicas, one of this process alone."""
    import samegrad as tf

    job = current()
    if job is not None and 1 < job.size <= replicas:
        return tf.distribute.MultiWorkerMirroredStrategy(total_replicas=replicas)
    return tf.distribute.MirroredStrategy(replicas=replicas)


def _arguments(strategy: Any, shares: list[Any]) -> tuple[Any, ...]:
    """The shares as arguments of a replica's function, of which this process has its own."""
    import samegrad as tf
    from samegrad import _core
    from samegrad._tensor.per_replica import PerReplica

    own = strategy.own_replicas
    marked = [
        map_structure(lambda leaf: tf.constant(leaf)._as_examples(0, 1), shares[i]) for i in own
    ]
    columns = list(zip(*map(flatten, marked), strict=True))
    if strategy.processes:
        leaves = zip(*map(flatten, shares), strict=True)
        shapes = [[list(np.shape(leaf)) for leaf in column] for column in leaves]
        columns = [
            _core.spread_parts(list(column), own[0], sizes)
            for column, sizes in zip(columns, shapes, strict=True)
        ]
    parts = iter(column[0] if len(shares) == 1 else PerReplica(column) for column in columns)
    arguments = map_structure(lambda _: next(parts), marked[0])
    return arguments if isinstance(arguments, tuple) else (arguments,)


__all__ = ["samegrad_step"]
