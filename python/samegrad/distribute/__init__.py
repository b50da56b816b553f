"""Strategies and what belongs to them."""

from typing import TYPE_CHECKING

from samegrad._autodiff.aggregation import VariableAggregation, VariableSynchronization
from samegrad._context.state import (
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.per_replica import PerReplica as DistributedValues
from samegrad.distribute._extended import StrategyExtended
from samegrad.distribute._multi_worker import MultiWorkerMirroredStrategy
from samegrad.distribute._one_device import OneDeviceStrategy
from samegrad.distribute._reduce_op import ReduceOp
from samegrad.distribute._replica_context import ReplicaContext
from samegrad.distribute._strategy import MirroredStrategy, Strategy
from samegrad.distribute._tpu import TPUStrategy

if TYPE_CHECKING:
    from samegrad._function.explanation import Explanation
    from samegrad.distribute import cluster_resolver, experimental, mpi
    from samegrad.distribute._input import DistributedDataset, InputContext
    from samegrad.distribute._options import (
        CrossDeviceOps,
        HierarchicalCopyAllReduce,
        InputOptions,
        NcclAllReduce,
        ReductionToOneDevice,
        RunOptions,
    )

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedValues",
    "Explanation",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "PerReplica",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "VariableAggregation",
    "VariableSynchronization",
    "cluster_resolver",
    "experimental",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "mpi",
]

_INPUT, _OPTIONS = "samegrad.distribute._input", "samegrad.distribute._options"
if not TYPE_CHECKING:
    __getattr__ = getattr_of(
        __name__,
        {
            "CrossDeviceOps": _OPTIONS,
            "DistributedDataset": _INPUT,
            "Explanation": "samegrad._function.explanation",
            "HierarchicalCopyAllReduce": _OPTIONS,
            "InputContext": _INPUT,
            "InputOptions": _OPTIONS,
            "NcclAllReduce": _OPTIONS,
            "ReductionToOneDevice": _OPTIONS,
            "RunOptions": _OPTIONS,
        },
    )
guard(__name__)
