"""Horovod-compatible functions of the processes of an MPI job.

| Horovod | samegrad |
| --- | --- |
| `hvd.init()` | not needed: the first call below, or the first strategy, joins the job |
| `hvd.rank()`, `size()`, `local_rank()`, `local_size()` | the same |
| `hvd.DistributedOptimizer(opt)`, `DistributedGradientTape` | not needed: create model and \
optimizer in the scope of a `MultiWorkerMirroredStrategy` |
| `hvd.broadcast_variables(model.variables, root_rank=0)` | the same; not needed with equal seeds, \
and the first step compares the variables |
| `hvd.allreduce(x)`, `allgather`, `broadcast_object`, `allgather_object`, `barrier` | the same |
| learning rate times `hvd.size()` | your choice, as in Horovod: `num_replicas_in_sync` |
| `hvd.elastic` | resume from the last checkpoint with any number of processes |

All functions except the first four are collective: every process must call them, in one order.

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
    """Return the rank of this process: an integer from 0 to `size() - 1`."""
    return _job.join().rank


def size() -> int:
    """Return the number of processes of the job; 1 outside of MPI."""
    return _job.join().size


def local_rank() -> int:
    """Return the rank of this process among the processes of its machine, from 0."""
    job = _job.join()
    return job.hosts[: job.rank].count(job.hosts[job.rank])


def local_size() -> int:
    """Return the number of processes of the job on this machine."""
    job = _job.join()
    return job.hosts.count(job.hosts[job.rank])


def barrier() -> None:
    """Block until all processes have reached this call."""
    allgather_object(None)


def any_process(flag: bool) -> bool:
    """Return True on every process if `flag` is True on any of them.

    Use it to stop all processes after the same step.

    Args:
        flag: The condition on this process.

    Returns:
        The same bool on all processes.

    Example:
        >>> any_process(False)
        False
    """
    return any(allgather_object(bool(flag))) if size() > 1 else flag


def allgather_object(obj: Any) -> list[Any]:
    """Gather a Python object from every process.

    Args:
        obj: A picklable object.

    Returns:
        A list with the object of each process, in the order of the ranks.

    Example:
        >>> allgather_object("here")
        ['here']
    """
    return _job.gathered("allgather_object", obj) if size() > 1 else [obj]


def broadcast_object(obj: Any, root_rank: int = 0) -> Any:
    """Send the Python object of one process to all processes.

    Args:
        obj: A picklable object; ignored on processes other than `root_rank`.
        root_rank: The rank of the sending process.

    Returns:
        The object of `root_rank`.

    Raises:
        ValueError: `root_rank` is not a rank of the job.

    Example:
        >>> broadcast_object([1, 2])
        [1, 2]
    """
    _check_root("broadcast_object", root_rank)
    if size() == 1:
        return obj
    return _job.gathered("broadcast_object", obj if rank() == root_rank else None)[root_rank]


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Assign the values of one process's variables to those of all processes.

    Args:
        variables: The variables; the same number, shapes and order on all processes.
        root_rank: The rank whose values are assigned.

    Raises:
        TypeError: An element of `variables` is not a variable.
        ValueError: `root_rank` is not a rank of the job, or numbers or shapes differ.

    Example:
        >>> import samegrad as tf
        >>> broadcast_variables([tf.Variable(1.0)])
    """
    own = list(variables)
    for variable in own:
        if not hasattr(variable, "assign"):
            raise TypeError(
                f"[broadcast_variables] variables must be a list of variables: got "
                f"{shown(variable)}; pass model.trainable_variables."
            )
    values = broadcast_object([np.asarray(v.numpy()) for v in own], root_rank)
    if len(values) != len(own):
        raise ValueError(
            "[broadcast_variables] all ranks must pass the same number of variables: got "
            f"{len(values)} on rank {root_rank}, and {len(own)} on rank {rank()}; build the same "
            "model on all ranks."
        )
    for variable, value in zip(own, values, strict=True):
        variable.assign(value)


def allreduce(value: Any, op: str = "average", name: str | None = None) -> Tensor:
    """All-reduce a tensor over all processes.

    The reduction order is a tree over the ranks and the same in every run.

    Args:
        value: A tensor, of the same shape and dtype on all processes.
        op: "average" (of integers in float64) or "sum".
        name: Ignored.

    Returns:
        The sum or average, of the shape of `value`, on all processes.

    Raises:
        ValueError: `op` is unknown, or the shapes of the processes differ.

    Example:
        >>> float(allreduce(3.0))
        3.0
    """
    if str(op).lower() not in _SUMS:
        raise ValueError(f"[allreduce] op must be 'average' or 'sum': got {shown(op)}.")
    if size() > 1:
        _job.called("allreduce")
    strategy = MultiWorkerMirroredStrategy()
    reduced: Tensor = strategy.reduce(_SUMS[op.lower()], _of_each(strategy, value), axis=None)
    return reduced


def allgather(value: Any, name: str | None = None) -> Tensor:
    """Concatenate the tensors of all processes along axis 0, in the order of the ranks.

    Args:
        value: A tensor of shape [n, ...]; only n may differ between the processes.
        name: Ignored.

    Returns:
        A tensor of shape [sum of all n, ...], on all processes.

    Raises:
        ValueError: `value` is a scalar, or the shapes differ in another axis.

    Example:
        >>> allgather([1, 2]).numpy()
        array([1, 2], dtype=int32)
    """
    tensor = convert_to_tensor(value)
    if not tensor._rank:
        raise ValueError(
            f"[allgather] value must have at least one axis: got the scalar {shown(value)}; pass "
            "[value]."
        )
    parts = allgather_object(np.asarray(tensor.numpy()))
    shapes = [part.shape for part in parts]
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"[allgather] shapes must agree except on axis 0: got {shapes}.")
    return convert_to_tensor(np.concatenate(parts))


def _of_each(strategy: MultiWorkerMirroredStrategy, value: Any) -> Any:
    """Return a per-replica value with one component per process; only the own one is local."""
    tensor = convert_to_tensor(value)
    if not strategy.processes:
        return PerReplica((tensor,))
    shapes = [list(tensor._shape)] * size()
    return PerReplica(_core.spread_parts([tensor], rank(), shapes))


def _check_root(op_name: str, root_rank: int) -> None:
    if not 0 <= root_rank < size():
        raise ValueError(
            f"[{op_name}] root_rank must be a rank of the job, 0 to {size() - 1}: got {root_rank}."
        )


if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
