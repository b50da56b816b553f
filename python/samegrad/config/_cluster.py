"""Connection to a cluster: the processes of an MPI job are connected already."""

from __future__ import annotations

from typing import Any

from samegrad._base.shown import shown
from samegrad.distribute.cluster_resolver import MPIClusterResolver


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: str | None = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> None:
    """Do nothing for the resolver of an MPI job, whose processes are connected already.

    Args:
        cluster_spec_or_resolver: `MultiWorkerMirroredStrategy.cluster_resolver`.
        job_name: Not used.
        task_index: Not used.
        protocol: Not used.
        make_master_device_default: Not used.
        cluster_device_filters: Not used.

    Raises:
        ValueError: The resolver is another one, or a `ClusterSpec`: a process runs no operations
            for another one.

    Example:
        >>> import samegrad as tf
        >>> resolver = tf.distribute.cluster_resolver.MPIClusterResolver(0, ("a", "b"))
        >>> tf.config.experimental_connect_to_cluster(resolver)
    """
    if not isinstance(cluster_spec_or_resolver, MPIClusterResolver):
        raise ValueError(
            "[experimental_connect_to_cluster] cluster_spec_or_resolver must be the resolver of an "
            f"MPI job: got {shown(cluster_spec_or_resolver)}; start the processes with mpiexec and "
            "use samegrad.distribute.MultiWorkerMirroredStrategy, or on one machine "
            "MirroredStrategy(replicas=8)."
        )
