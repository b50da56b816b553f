"""The processes of an MPI job, by the names that Horovod's users know.

| Horovod | here |
| --- | --- |
| `hvd.init()` | nothing: the first of these calls, or the first strategy, does it |
| `hvd.rank()`, `size()`, `local_rank()`, `local_size()` | the same |
| `hvd.DistributedOptimizer(opt)`, `DistributedGradientTape` | none is needed: make model and \
optimizer in the scope of a `MultiWorkerMirroredStrategy` |
| `hvd.broadcast_variables(model.variables, root_rank=0)` | the same; equal seeds make it \
needless, and the first step compares the variables |
| `hvd.allreduce(x)`, `allgather`, `broadcast_object`, `allgather_object`, `barrier` | the same |
| learning rate times `hvd.size()` | a choice of yours, as there: `num_replicas_in_sync` |
| `hvd.elastic` | start again with any number of processes from the last checkpoint |

Every process has to make each of these calls but the first four, in the same order as its steps.

Example:
    >>> rank(), size()  # not under mpirun
    (0, 1)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.distribute import _job
from samegrad.distribute._multi_worker import MultiWorkerMirroredStrategy

__all__ = [
    "allgather", "allgather_object", "allreduce", "any_process", "barrier", "broadcast_object",
    "broadcast_variables", "local_rank", "local_size", "rank", "size",
]  # fmt: skip

_SUMS = {"sum": "sum", "average": "mean", "mean": "mean"}


def rank() -> int:
    """The number of this process, from 0."""
    return _job.join().rank


def size() -> int:
    """How many processes there are."""
    return _job.join().size


def local_rank() -> int:
    """The number of this process among those of its machine."""
    job = _job.join()
    return job.hosts[: job.rank].count(job.hosts[job.rank])


def local_size() -> int:
    """How many processes this machine has."""
    job = _job.join()
    return job.hosts.count(job.hosts[job.rank])


def barrier() -> None:
    """Returns when all processes have come to it."""
    allgather_object(None)


def any_process(flag: bool) -> bool:
    """Whether it is so on one process at least: all then stop together, say.

    Example:
        >>> any_process(False)
        False
    """
    return any(allgather_object(bool(flag))) if size() > 1 else flag


def allgather_object(obj: Any) -> list[Any]:
    """What each process has brought, in their order.

    Args:
        obj: Anything that can be pickled.

    Example:
        >>> allgather_object("here")
        ['here']
    """
    return _job.gathered("allgather_object", obj) if size() > 1 else [obj]


def broadcast_object(obj: Any, root_rank: int = 0) -> Any:
    """What one process has brought, on all.

    Args:
        obj: Anything that can be pickled; of other processes it is ignored.
        root_rank: Whose object it is.

    Raises:
        ValueError: There is no such process.

    Example:
        >>> broadcast_object([1, 2])
        [1, 2]
    """
    _check_root("broadcast_object", root_rank)
    if size() == 1:
        return obj
    return _job.gathered("broadcast_object", obj if rank() == root_rank else None)[root_rank]


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Gives variables the values that one process has.

    Args:
        variables: As many on all processes, of the same shapes, in one order.
        root_rank: Whose values they take.

    Raises:
        ValueError: There is no such process, or shapes differ.

    Example:
        >>> import samegrad as tf
        >>> broadcast_variables([tf.Variable(1.0)])
    """
    own = list(variables)
    for variable in own:
        if not hasattr(variable, "assign"):
            raise TypeError(
                f"[broadcast_variables] variables are needed: got {shown(variable)}; pass "
                "model.trainable_variables."
            )
    values = broadcast_object([np.asarray(v.numpy()) for v in own], root_rank)
    if len(values) != len(own):
        raise ValueError(
            f"[broadcast_variables] all processes must have as many variables: got {len(own)} on "
            f"rank {rank()}, and {len(values)} on rank {root_rank}."
        )
    for variable, value in zip(own, values, strict=True):
        variable.assign(value)


def allreduce(value: Any, op: str = "average", name: str | None = None) -> Tensor:
    """The sum or the average of what all processes have, on each of them.

    It is added up in the order of the tree over the processes, which is the same on every run.

    Args:
        value: Anything that is a tensor, of one shape and dtype on all processes.
        op: "average" (of integers in float64) or "sum".
        name: Ignored.

    Raises:
        ValueError: Another `op`, or processes whose shapes differ.

    Example:
        >>> float(allreduce(3.0))
        3.0
    """
    if str(op).lower() not in _SUMS:
        raise ValueError(f"[allreduce] op is 'average' or 'sum': got {shown(op)}.")
    if size() > 1:
        _job.called("allreduce")
    strategy = MultiWorkerMirroredStrategy()
    reduced: Tensor = strategy.reduce(_SUMS[op.lower()], _of_each(strategy, value), axis=None)
    return reduced


def allgather(value: Any, name: str | None = None) -> Tensor:
    """The rows that all processes have, one after the other.

    Args:
        value: A tensor with rows, whose other sizes agree on all processes.
        name: Ignored.

    Raises:
        ValueError: It has no rows, or other sizes differ.

    Example:
        >>> allgather([1, 2]).numpy()
        array([1, 2], dtype=int32)
    """
    tensor = convert_to_tensor(value)
    if not tensor._rank:
        raise ValueError(f"[allgather] rows are joined: got a number, {shown(value)}; use [value].")
    parts = allgather_object(np.asarray(tensor.numpy()))
    shapes = [part.shape for part in parts]
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"[allgather] sizes but for the rows must agree: got shapes {shapes}.")
    return convert_to_tensor(np.concatenate(parts))


def _of_each(strategy: MultiWorkerMirroredStrategy, value: Any) -> Any:
    """A value per process, of which this one has its own."""
    tensor = convert_to_tensor(value)
    if not strategy.processes:
        return PerReplica((tensor,))
    shapes = [list(tensor._shape)] * size()
    return PerReplica(_core.spread_parts([tensor], rank(), shapes))


def _check_root(who: str, root_rank: int) -> None:
    if not 0 <= root_rank < size():
        raise ValueError(
            f"[{who}] root_rank is a process of the job, 0 to {size() - 1}: got {root_rank}."
        )


if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
