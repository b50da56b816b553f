"""The strategy for TPUs, which raises as TensorFlow's does on a machine without a TPU."""

from __future__ import annotations

from typing import Any

from samegrad._base.shown import shown
from samegrad.distribute._strategy import Strategy
from samegrad.errors import NotFoundError

_REMEDY = "use samegrad.distribute.MirroredStrategy(replicas=8)."


def no_tpu(op_name: str, tpu: Any) -> Exception:
    """Return the error of a call that needs a TPU; TensorFlow raises another one with a name."""
    if tpu is None or (isinstance(tpu, str) and not tpu):
        return ValueError(
            f"[{op_name}] Please provide a TPU Name to connect to: got {shown(tpu)} on a machine "
            f"without a TPU; {_REMEDY}"
        )
    return NotFoundError(f"[{op_name}] TPUs not found in the cluster: got {shown(tpu)}; {_REMEDY}")


class TPUStrategy(Strategy):
    """Strategy that raises, as TensorFlow's does on a machine without a TPU.

    No object is an instance of it. Use `MirroredStrategy(replicas=8)`.

    Args:
        tpu_cluster_resolver: Resolver of the TPU.
        experimental_device_assignment: Not used.
        experimental_spmd_xla_partitioning: Not used.

    Raises:
        ValueError: No TPU is named.
        NotFoundError: A TPU is named.

    Example:
        >>> import samegrad as tf
        >>> isinstance(tf.distribute.MirroredStrategy(replicas=8), tf.distribute.TPUStrategy)
        False
    """

    def __new__(
        cls,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> TPUStrategy:
        raise no_tpu("TPUStrategy", tpu_cluster_resolver)


class ExperimentalTPUStrategy(TPUStrategy):
    """Strategy under its older name, which raises as `distribute.TPUStrategy` does.

    Args:
        tpu_cluster_resolver: Resolver of the TPU.
        device_assignment: Not used.

    Raises:
        ValueError: No TPU is named.
        NotFoundError: A TPU is named.

    Example:
        >>> import samegrad as tf
        >>> try:
        ...     strategy = tf.distribute.experimental.TPUStrategy()
        ... except ValueError:
        ...     strategy = tf.distribute.MirroredStrategy(replicas=8)
        >>> strategy.num_replicas_in_sync
        8
    """

    def __new__(
        cls, tpu_cluster_resolver: Any = None, device_assignment: Any = None
    ) -> ExperimentalTPUStrategy:
        raise no_tpu("TPUStrategy", tpu_cluster_resolver)
