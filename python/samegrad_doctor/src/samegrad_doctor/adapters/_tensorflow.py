"""Steps of TensorFlow's MirroredStrategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad_doctor._tree import map_structure
from samegrad_doctor._updates import Outcome, Step


def tensorflow_step(
    build: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], replicas: int
) -> Step:
    """Create a step of TensorFlow's MirroredStrategy, with one logical CPU per replica.

    TensorFlow creates logical devices once per process, so all runs use the first ones.

    Args:
        build: Called in the strategy's scope for each run; returns the function of a replica (it
            applies gradients with plain SGD, and may return its loss) and the variables.
        replicas: The largest number of replicas to try.

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

    step.framework, step.source = "tensorflow", build  # type: ignore[attr-defined]
    return step
