"""`tf.data.Options`: the sharding of a dataset over processes; the rest has no effect."""

from __future__ import annotations

import types
from typing import Any

from samegrad._base.enums import IntChoice


class AutoShardPolicy(IntChoice):
    """Rule by which processes of an MPI job shard a dataset; one process has all of it.

    Attributes:
        AUTO: As DATA.
        DATA: Each process takes its examples of every global batch: bitwise identical to one
            process. It reads what is needed to know which examples those are: of files, all of
            them.
        FILE: Each process reads every n-th file only, and makes its examples of a global batch from
            them. Batches hold other examples than those of one process, so bits differ.
        OFF: Each process takes its examples from the dataset as it is: user code has chosen them,
            for example with `Dataset.shard`. Bits differ likewise.
        HINT: Rejected where there are several processes: call `shard`, and use OFF.

    Example:
        >>> AutoShardPolicy.DATA.name
        'DATA'
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions(types.SimpleNamespace):
    """Options of distributed datasets: `Options.experimental_distribute`.

    Attributes:
        auto_shard_policy: An `AutoShardPolicy`, or its number.
        num_devices: Ignored.

    Raises:
        ValueError: auto_shard_policy is not a policy.

    Example:
        >>> DistributeOptions().auto_shard_policy.name
        'AUTO'
    """

    def __init__(self) -> None:
        super().__init__(auto_shard_policy=AutoShardPolicy.AUTO, num_devices=None)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, AutoShardPolicy(value) if name == "auto_shard_policy" else value)


class ThreadingOptions(types.SimpleNamespace):
    """Options of the threads of a dataset, which are stored and have no effect.

    Attributes:
        max_intra_op_parallelism: The most threads of one op, an integer; None: not set.
        private_threadpool_size: The number of threads of the dataset, an integer; None: not set.

    Example:
        >>> import samegrad as tf
        >>> options = tf.data.Options()
        >>> options.threading = tf.data.ThreadingOptions()
        >>> options.threading.private_threadpool_size = 4
    """

    def __init__(self) -> None:
        super().__init__(max_intra_op_parallelism=None, private_threadpool_size=None)


class Options:
    """Options of a dataset, as TensorFlow has them.

    `experimental_distribute.auto_shard_policy` says what each process of an MPI job reads, see
    `AutoShardPolicy`; the others are accepted and not used.

    Example:
        >>> import samegrad as tf
        >>> options = tf.data.Options()
        >>> options.experimental_distribute.auto_shard_policy = (
        ...     tf.data.experimental.AutoShardPolicy.FILE)
        >>> options.deterministic = True
    """

    def __init__(self) -> None:
        self.autotune = types.SimpleNamespace()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = types.SimpleNamespace()
        self.threading = ThreadingOptions()
        self.deterministic: bool | None = None


def merged(*options: Options | None) -> Options | None:
    """Merge options, where later ones prevail; return None if all are None.

    As in TensorFlow, an option that has its default value says nothing.
    """
    given = [each for each in options if each is not None]
    if not given:
        return None
    made = Options()
    for each in given:
        for name, value in vars(each).items():
            into = getattr(made, name, None)
            if isinstance(value, types.SimpleNamespace) and isinstance(into, types.SimpleNamespace):
                _take(into, value, type(value)())
            elif value is not None:
                setattr(made, name, value)
    return made


def _take(into: Any, given: Any, defaults: Any) -> None:
    for name, value in vars(given).items():
        if value != getattr(defaults, name, None):
            setattr(into, name, value)


__all__ = ["AutoShardPolicy", "DistributeOptions", "Options", "ThreadingOptions", "merged"]
