"""Values with one component per replica."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._base.tree import map_structure
from samegrad._context import state as _context
from samegrad._core import Tensor


class PerReplica:
    """One value per replica, each with its own number of rows.

    With several processes, each process has the components of its replicas, and knows the shapes of
    the others.

    Use it as an argument of `Strategy.run`, reduce it with `Strategy.reduce`, or get the components
    with `Strategy.experimental_local_results`.
    """

    _is_per_replica = True
    __slots__ = ("_parts", "share", "total")
    # Whether other processes may have some of the parts.
    spread: ClassVar[bool] = False

    def __init__(self, values: Any, share: bool = False, total: Tensor | None = None) -> None:
        # A tuple, or rows of one batch (`_core.RowParts`), which become tensors when somebody
        # looks at them: the engine's steps take them as they are.
        self._parts = values if isinstance(values, _core.RowParts) else tuple(values)
        self.share = share  # each is a replica's share of the mean over the global batch
        # Over the replicas, where adding up the parts rounds otherwise than one device does.
        self.total = total

    @property
    def values(self) -> tuple[Any, ...]:
        """The components of this process's replicas, in their order."""
        parts = self.all_parts
        return _core.own_parts(parts) if self.spread else parts

    @property
    def all_parts(self) -> tuple[Any, ...]:
        """The components of all replicas; those of other processes have no more than a shape."""
        if not isinstance(self._parts, tuple):
            self._parts = self._parts.tensors()
        return self._parts

    def _as_tensor(self) -> Any:
        raise ValueError(
            f"[PerReplica] this is {len(self._parts)} values, one per replica, not a tensor: pass "
            "it to strategy.run, or use strategy.reduce(...) or "
            "strategy.experimental_local_results(...)."
        )

    def __repr__(self) -> str:
        parts = "\n".join(f"  {i}: {value!r}" for i, value in enumerate(self.values))
        return f"PerReplica:{{\n{parts}\n}}"


class TracedValue:
    """Inside a traced function: one symbolic tensor that stands for all replicas' values."""

    __slots__ = ("own_sizes", "processes", "share", "tensor", "tensor_replicas", "total_at")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.tensor_replicas = 0  # of the trace, once it leaves it
        self.processes: list[int] = []  # over which they are spread
        self.share = False  # of the mean over the global batch, as far as the trace shows
        self.own_sizes = False  # traces for other numbers of examples may give it others
        self.total_at: int | None = None  # which output of the program is `PerReplica.total`


class TracedPerReplica(TracedValue):
    """What `Strategy.run` gives and takes in a traced function."""

    _is_per_replica = True
    __slots__ = ()

    def _as_tensor(self) -> Any:
        raise ValueError(
            "[PerReplica] this value differs between replicas: pass it to strategy.run or "
            "strategy.reduce."
        )

    def __repr__(self) -> str:
        text = repr(self.tensor)
        return text if self.tensor._looks else f"PerReplica of {text}"


class TracedLocalResults(TracedValue):
    """The tuple of all replicas' values, which there is once the function has returned it."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "[experimental_local_results] the values of the replicas are not known while a "
            "samegrad.function is traced: return them from it, or join them with strategy.reduce "
            "or strategy.gather."
        )

    __iter__ = __getitem__ = __len__ = _refuse


class TracedPart(TracedValue):
    """The value of one replica, which there is once the function has returned it."""

    __slots__ = ("replica",)

    def __init__(self, tensor: Any, replica: int) -> None:
        super().__init__(tensor)
        self.replica = replica

    def _as_tensor(self) -> Any:
        raise TypeError(
            "[experimental_local_results] the value of a replica is not known while a "
            "samegrad.function is traced: return it from the function, or join the replicas' "
            "values with strategy.reduce or strategy.gather."
        )


def local_results(value: Any, replicas: Iterable[int]) -> tuple[Any, ...]:
    """Return the values of each of these replicas as a structure, one for each replica.

    Example:
        >>> local_results({"a": PerReplica([0, 1]), "b": 2}, range(2))
        ({'a': 0, 'b': 2}, {'a': 1, 'b': 2})
    """

    def of(replica: int) -> Any:
        def part(leaf: Any) -> Any:
            if isinstance(leaf, TracedPerReplica):
                return TracedPart(leaf.tensor, replica)
            return leaf.all_parts[replica] if isinstance(leaf, PerReplica) else leaf

        return map_structure(part, value)

    return tuple(map(of, replicas))


def captured(value: PerReplica) -> TracedPerReplica:
    """Return what stands for a value that a traced function found outside.

    Raises:
        ValueError: What is being traced runs on no replicas, as functions of datasets.
    """
    arguments = _context.current().arguments
    if arguments is None:
        raise ValueError(
            "[PerReplica] a function that prepares data runs once, and not for each replica: got a "
            "value per replica that it found outside; use it where the data is used."
        )
    return arguments.capture(value)


def check_parts(parts: Sequence[Tensor]) -> None:
    """Check that parts for the replicas of a step differ in the number of examples only.

    Raises:
        ValueError: They differ otherwise.
    """
    other = next((part for part in parts if not isinstance(part, Tensor)), None)
    if other is not None:
        raise TypeError(
            f"[PerReplica] the parts must be tensors to enter a step: got {type(other).__name__} "
            f"{shown(other)}; use samegrad.constant(...)."
        )
    axis = (parts[0]._example_axis or (-1,))[0]
    shapes = [tuple(part._shape) for part in parts]
    sizes = {tuple(n for i, n in enumerate(shape) if i != axis) for shape in shapes}
    if len(sizes) > 1:
        raise ValueError(
            "[Strategy.run] the parts of a value may differ in the number of examples (axis 0) "
            f"only: got shapes {shapes}; pad them to one length, or batch examples of one length."
        )


def per_replica(parts: Sequence[Tensor]) -> Any:
    """Join parts to a value per replica; axis 0 counts examples if the other axes agree."""
    shapes = [tuple(part._shape) for part in parts]
    if all(shapes) and len({shape[1:] for shape in shapes}) == 1:
        parts = [part._as_examples(0, 1) for part in parts]
    return parts[0] if len(parts) == 1 else PerReplica(parts)


__all__ = [
    "PerReplica", "TracedLocalResults", "TracedPart", "TracedPerReplica", "TracedValue", "captured",
    "check_parts", "local_results", "per_replica",
]  # fmt: skip
