"""Strategies and what belongs to them."""

from samegrad._context import (
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from samegrad._unknown import getattr_of
from samegrad._values import PerReplica
from samegrad.distribute._reduce_op import ReduceOp
from samegrad.distribute._replica_context import ReplicaContext
from samegrad.distribute._strategy import MirroredStrategy, Strategy

__all__ = [
    "MirroredStrategy",
    "PerReplica",
    "ReduceOp",
    "ReplicaContext",
    "Strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

__getattr__ = getattr_of(__name__)
