"""Steps of frameworks in the form that `diagnose` takes. Each imports its framework when called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._nest import flatten, map_structure
from samegrad.testing._batches import StepError
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
        from samegrad._values import PerReplica

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
        loss = strategy.run(replica_step, args=arguments)
        reported = None if loss is None else float(strategy.reduce("SUM", loss, axis=None))
        after = [v.numpy() for v in variables]
        return Outcome([b - a for a, b in zip(before, after, strict=True)], reported)

    return step


def torch_step(model: Any, loss: Callable[[Any, Any], Any], reduce: str = "mean") -> Step:
    """A PyTorch step with the replicas one after the other, joined as DistributedDataParallel does.

    Args:
        model: A module; its parameters stay as they are.
        loss: loss(model, batch) of a replica, a tensor without axes; the batch holds tensors.
        reduce: "mean", as DistributedDataParallel joins gradients, or "sum".

    Returns:
        A step whose update is the joined gradient.

    Raises:
        StepError: Another way to join.
    """
    if reduce not in ("mean", "sum"):
        raise StepError(f"[torch_step] reduce must be 'mean' or 'sum': got {reduce!r}.")

    def step(shares: list[Any]) -> Outcome:
        import torch

        parameters = [p for p in model.parameters() if p.requires_grad]
        total = [np.zeros(tuple(p.shape)) for p in parameters]
        reported = 0.0
        for share in shares:
            batch = map_structure(lambda leaf: torch.as_tensor(np.asarray(leaf)), share)
            value = loss(model, batch)
            gradients = torch.autograd.grad(value, parameters, allow_unused=True)
            reported += float(value.detach())
            for place, gradient in enumerate(gradients):
                if gradient is not None:
                    total[place] += gradient.detach().double().numpy()
        count = len(shares) if reduce == "mean" else 1
        return Outcome([part / count for part in total], reported / count)

    return step


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


def tensorflow_step(
    build: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], replicas: int
) -> Step:
    """A step of TensorFlow's MirroredStrategy on as many logical CPUs as there are replicas.

    TensorFlow makes logical devices once per process, so all runs use the first ones of these.

    Args:
        build: Called in the strategy's scope for each run; returns the function of a replica (it
            applies gradients with plain SGD, and may return its loss share) and the variables.
        replicas: The largest number of replicas that is tried.

    Returns:
        A step whose update is the change of the variables.
    """

    def step(shares: list[Any]) -> Outcome:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        if tf.config.get_logical_device_configuration(cpu) is None:
            devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
            tf.config.set_logical_device_configuration(cpu, devices)
        # Its collectives take one number of replicas per process; this way of reducing takes any.
        strategy = tf.distribute.MirroredStrategy(
            [f"CPU:{i}" for i in range(len(shares))],
            cross_device_ops=tf.distribute.ReductionToOneDevice(),
        )
        with strategy.scope():
            replica_step, variables = build()
        before = [v.numpy() for v in variables]

        def values(context: Any) -> Any:
            share = shares[context.replica_id_in_sync_group]
            return map_structure(tf.constant, share)

        arguments = strategy.experimental_distribute_values_from_function(values)
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        run = tf.function(lambda given: strategy.run(replica_step, args=given))
        loss = run(arguments)
        reported = None if loss is None else float(strategy.reduce("SUM", loss, axis=None))
        after = [v.numpy() for v in variables]
        return Outcome([b - a for a, b in zip(before, after, strict=True)], reported)

    return step


__all__ = ["jax_step", "samegrad_step", "tensorflow_step", "torch_step"]
