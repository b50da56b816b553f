"""Parts of replicas joined along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._context.python_runs import need_python
from samegrad._function.trace import trace_and_run
from samegrad._tensor.per_replica import PerReplica, TracedPerReplica, captured
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, UnreadText, of_bytes

if TYPE_CHECKING:
    from samegrad.distribute._strategy import Strategy

_ops = _core.ops


def gather_parts(strategy: Strategy, value: Any, axis: int) -> Tensor | Text:
    """The parts of a value, one after the other along an axis (cross-replica context)."""
    if _core.tracing():
        strategy.join_trace()
        value = captured(value) if isinstance(value, PerReplica) else value
    if isinstance(value, UnreadText):
        need_python(
            "[Strategy.gather] strings are gathered outside of functions: got some in a trace of "
            "several replicas; return them from the function, and gather there.",
            RuntimeError,
        )
    if isinstance(value, TracedPerReplica):
        return all_gather(value.tensor, axis, strategy.num_replicas_in_sync)
    if strategy.processes and isinstance(value, PerReplica):
        gathered: Tensor = trace_and_run(
            lambda v: gather_parts(strategy, v, axis), (value,), {}, strategy.num_replicas_in_sync
        )
        return gathered
    parts = value.values if isinstance(value, PerReplica) else [value]
    if not isinstance(value, PerReplica):
        parts = parts * strategy.num_replicas_in_sync
    strings = isinstance(parts[0], Text)
    tensors: list[Any] = [part if strings else convert_to_tensor(part) for part in parts]
    place = normalized("Strategy.gather", axis, tensors[0]._rank)
    shapes = [tuple(tensor._shape) for tensor in tensors]
    others = {shape[:place] + shape[place + 1 :] for shape in shapes}
    if len(others) > 1:
        raise ValueError(
            f"[Strategy.gather] all sizes off axis {axis} must agree: got parts of shapes {shapes}."
        )
    if strings:
        return of_bytes(np.concatenate([part.encoded for part in tensors], place))
    return _ops.concat(*tensors, axis=place)


def all_gather(tensor: Tensor, axis: int, replicas: int) -> Tensor:
    """The parts of all replicas inside a traced function."""
    place = normalized("all_gather", axis, tensor._rank)
    return _ops.all_gather(tensor, axis=place, replicas=replicas)


def normalized(who: str, axis: int, rank: int) -> int:
    """The axis from the front.

    Raises:
        ValueError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(
            f"[{who}] the axis must lie in [{-rank}, {rank}): got {axis} for parts of {rank} axes; "
            "a value without axes gets one from expand_dims."
        )
    return axis % rank
