"""One model on the replicas of several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._context.counted_numbers import counted, questions
from samegrad.distribute import _job
from samegrad.distribute._device_names import count_replicas
from samegrad.distribute._options import CommunicationImplementation, CommunicationOptions
from samegrad.distribute._strategy import MirroredStrategy, Strategy
from samegrad.distribute.cluster_resolver import MPIClusterResolver

_WHO = "MultiWorkerMirroredStrategy"


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous training of one model on the replicas of all processes of an MPI job.

    `mpirun -n 4 python train.py`, `srun` or an MPIJob start the processes; the weights are bitwise
    identical to those of one process, whichever replicas each process has. All processes run the
    same program: what they do together (a step, a reduction, reading an ON_READ variable, saving)
    every one of them calls. Without a launcher there is one process.

    At the first step the processes compare program, seed, build and the values of variables. One
    that raises, ends early or does not come within `timeout` ends the job on all.

    Args:
        cluster_resolver: Ignored: the launcher says which processes there are, TF_CONFIG is not
            read.
        communication_options: Ignored.
        replicas: How many replicas this process has, by default one; processes may have different
            numbers.
        total_replicas: Alternative to replicas: the number in all processes together, split evenly,
            so that user code does not mention processes.
        devices: Names of devices, one per replica of this process, as for `MirroredStrategy`.
        timeout: Seconds that a process waits for others; None: SAMEGRAD_MPI_TIMEOUT, else 600.
        compression: "bfloat16" halves the bytes of large float32 sums, gradients above all, and
            changes bits: they depend on which replicas each process has, and are no longer those
            of one process. "none" undoes it; None leaves it as it is, at first "none". It holds for
            all steps of the job.

    Raises:
        ImportError: Several processes were started, and there is no mpi4py.
        RuntimeError: The loaded MPI is not the launcher's.
        ValueError: As `MirroredStrategy`, or processes that differ in build.

    Example:
        >>> strategy = MultiWorkerMirroredStrategy(replicas=2)  # not under mpirun: one process
        >>> strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
        (2, 0)
    """

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: Any = None,
        *,
        replicas: int | None = None,
        total_replicas: int | None = None,
        devices: Sequence[str] | None = None,
        timeout: float | None = None,
        compression: str | None = None,
    ) -> None:
        if compression not in (None, "none", "bfloat16"):
            raise ValueError(
                f'[{_WHO}] compression is None, "none" or "bfloat16": got {shown(compression)}.'
            )
        if isinstance(cluster_resolver, int):
            raise TypeError(
                f"[{_WHO}] cluster_resolver must be a cluster resolver or None: got "
                f"{cluster_resolver}; did you mean replicas={cluster_resolver}?"
            )
        job = _job.join(timeout)
        if total_replicas is not None:
            replicas = _share(total_replicas, replicas, devices, job)
        count = count_replicas(_WHO, devices, replicas)
        if compression is not None:
            _job.set_compression(compression)
        self._processes: tuple[int, ...] = ()
        total = count
        if job.size > 1:
            counts = _job.gathered(_WHO, count)
            self._processes = tuple(sum(counts[:rank]) for rank in range(job.size + 1))
            total = self._processes[-1]
        MirroredStrategy(replicas=total)  # its limits are those of all
        self._replicas = counted(total, replicas=1)
        self._resolver = MPIClusterResolver(job.rank, job.hosts)

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas in all processes."""
        return questions.ask(self._replicas)

    @property
    def processes(self) -> tuple[int, ...]:
        """The first replica of each process, and the number of all; empty: there is one process."""
        return self._processes

    @property
    def cluster_resolver(self) -> MPIClusterResolver:
        """Resolver that knows this process's rank and all processes."""
        return self._resolver

    @property
    def devices(self) -> tuple[str, ...]:
        """A name per replica of this process."""
        rank = self._resolver.task_id
        return tuple(
            f"/job:worker/replica:0/task:{rank}/device:CPU:{i}"
            for i in range(len(self.own_replicas))
        )

    def join_trace(self) -> None:
        """Make the traced function one of all processes' replicas.

        Raises:
            RuntimeError: It belongs to another number of replicas, or functions run eagerly.
        """
        if self._processes and _context.settings.functions_run_eagerly:
            raise RuntimeError(
                f"[{_WHO}] values of other processes cannot be looked at: got "
                "config.run_functions_eagerly(True); debug with one process, or print with "
                "samegrad.print."
            )
        super().join_trace()


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """Strategy under its older name, whose first argument is the implementation of collectives.

    Args:
        communication: Ignored: a `CommunicationImplementation`.
        cluster_resolver: Ignored.
        **options: Further arguments of `distribute.MultiWorkerMirroredStrategy`.

    Raises:
        ImportError: Several processes were started, and there is no mpi4py.
        RuntimeError: The loaded MPI is not the launcher's.
        ValueError: As `distribute.MultiWorkerMirroredStrategy`, or an unknown implementation.

    Example:
        >>> import samegrad as tf
        >>> experimental = tf.distribute.experimental
        >>> ring = experimental.CommunicationImplementation.RING
        >>> experimental.MultiWorkerMirroredStrategy(ring).num_replicas_in_sync
        1
    """

    def __init__(
        self,
        communication: Any = CommunicationImplementation.AUTO,
        cluster_resolver: Any = None,
        **options: Any,
    ) -> None:
        CommunicationOptions(implementation=communication)
        super().__init__(cluster_resolver, **options)


def _share(total: int, replicas: int | None, devices: Any, job: _job.Job) -> int:
    """Return this process's number of replicas."""
    count_replicas(_WHO, None, total)
    if replicas is not None or devices is not None:
        raise ValueError(
            f"[{_WHO}] total_replicas, replicas and devices say the same: got total_replicas="
            f"{total} and more; give one of them."
        )
    if total < job.size:
        raise ValueError(
            f"[{_WHO}] each process needs a replica: got total_replicas={total} for {job.size} "
            "processes; start fewer of them, or use more replicas."
        )
    return total * (job.rank + 1) // job.size - total * job.rank // job.size


__all__ = ["MultiWorkerMirroredStrategy"]
