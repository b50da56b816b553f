"""Resolvers of clusters: the ranks of an MPI job, and one that raises for want of a TPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.distribute._tpu import no_tpu


class TPUClusterResolver:
    """Resolver that raises, as TensorFlow's does on a machine without a TPU.

    Args:
        tpu: Name of the TPU.
        zone: Not used.
        project: Not used.
        job_name: Not used.
        coordinator_name: Not used.
        coordinator_address: Not used.
        credentials: Not used.
        service: Not used.
        discovery_url: Not used.

    Raises:
        ValueError: No TPU is named.
        NotFoundError: A TPU is named.

    Example:
        >>> try:
        ...     tpu = TPUClusterResolver()
        ... except ValueError:
        ...     tpu = None
        >>> tpu is None
        True
    """

    def __init__(
        self,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        raise no_tpu("TPUClusterResolver", tpu)

    @staticmethod
    def connect(
        tpu: str | None = None, zone: str | None = None, project: str | None = None
    ) -> NoReturn:
        """Raise, as the constructor does.

        Args:
            tpu: Name of the TPU.
            zone: Not used.
            project: Not used.

        Raises:
            ValueError: No TPU is named.
            NotFoundError: A TPU is named.

        Example:
            >>> import samegrad as tf
            >>> try:
            ...     tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
            ... except tf.errors.NotFoundError:
            ...     print("this machine has no TPU")
            this machine has no TPU
        """
        raise no_tpu("TPUClusterResolver.connect", tpu)


class ClusterSpec:
    """The processes of a cluster, by their job.

    Args:
        tasks: A name per process of each job.

    Example:
        >>> ClusterSpec({"worker": ["a:0", "b:1"]}).num_tasks("worker")
        2
    """

    def __init__(self, tasks: dict[str, list[str]]) -> None:
        jobs = tasks.values() if isinstance(tasks, dict) else [None]
        if not all(isinstance(names, list | tuple) for names in jobs):
            raise TypeError(
                f"[ClusterSpec] tasks must be a list of names for each job: got {shown(tasks)}; "
                "pass {'worker': ['a:0', 'b:0']}."
            )
        self._tasks = {job: list(names) for job, names in tasks.items()}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return sorted(self._tasks)

    def as_dict(self) -> dict[str, list[str]]:
        """Return the process names of each job.

        Example:
            >>> import samegrad as tf
            >>> tf.distribute.cluster_resolver.ClusterSpec({"worker": ["a:1", "b:1"]}).as_dict()
            {'worker': ['a:1', 'b:1']}
        """
        return {job: list(names) for job, names in self._tasks.items()}

    def num_tasks(self, job_name: str) -> int:
        """Return the number of processes of a job.

        Args:
            job_name: Name of the job.

        Returns:
            Number of processes.

        Raises:
            ValueError: The job does not exist.

        Example:
            >>> import samegrad as tf
            >>> cluster = tf.distribute.cluster_resolver.ClusterSpec({"worker": ["a:1", "b:1"]})
            >>> cluster.num_tasks("worker")
            2
        """
        return len(self._of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the name of a process.

        Args:
            job_name: Name of the job.
            task_index: Index of the process in the job.

        Returns:
            Name of the process.

        Raises:
            ValueError: The job or process does not exist.

        Example:
            >>> import samegrad as tf
            >>> cluster = tf.distribute.cluster_resolver.ClusterSpec({"worker": ["a:1"]})
            >>> cluster.task_address("worker", 0)
            'a:1'
        """
        names = self._of(job_name)
        if not 0 <= task_index < len(names):
            raise ValueError(
                f"[ClusterSpec] job {job_name!r} has tasks 0 to {len(names) - 1}: got {task_index}."
            )
        return names[task_index]

    def _of(self, job: str) -> list[str]:
        if job not in self._tasks:
            raise ValueError(f"[ClusterSpec] the jobs are {self.jobs}: got {shown(job)}.")
        return self._tasks[job]


class MPIClusterResolver:
    """Resolver of an MPI job's processes: `MultiWorkerMirroredStrategy.cluster_resolver`.

    Args:
        rank: Rank of this process.
        hosts: Machine of each process.

    Attributes:
        task_type: "worker", as all processes are.
        task_id: Rank of this process. Rank 0 is the chief, which writes.
        environment: "mpi".

    Example:
        >>> resolver = MPIClusterResolver(1, ("a", "b"))
        >>> resolver.task_id, resolver.cluster_spec().as_dict()
        (1, {'worker': ['a:0', 'b:1']})
    """

    task_type, environment = "worker", "mpi"

    def __init__(self, rank: int, hosts: Sequence[str]) -> None:
        self.task_id = rank
        self._names = [f"{host}:{number}" for number, host in enumerate(hosts)]

    def cluster_spec(self) -> ClusterSpec:
        """Return a `ClusterSpec` of all processes, in the job "worker"."""
        return ClusterSpec({"worker": self._names})

    def master(self, *_: Any, **__: Any) -> str:
        """Return an empty string: no process serves others."""
        return ""


__all__ = ["ClusterSpec", "MPIClusterResolver", "TPUClusterResolver"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
