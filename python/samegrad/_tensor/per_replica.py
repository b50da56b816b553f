"""Values with one component per replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NoReturn

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._base.tree import map_structure
from samegrad._context import state as _context
from samegrad._core import Tensor
from samegrad._tensor.deferred import DeferredTensor
from samegrad._tensor.display import per_replica_html, per_replica_text
from samegrad._tensor.text import Text, UnreadText

_REMEDY = (
    "reduce them with strategy.reduce('SUM', value, axis=None), read them with "
    "strategy.experimental_local_results(value), or compute with them inside strategy.run"
)
# Operators, by what a message calls them.
_OPERATORS = {
    **{name: f"{name}()" for name in ("float", "int", "complex", "bool", "abs", "len", "round",
                                      "divmod")},
    "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//",
    "mod": "%", "pow": "**", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-", "pos": "+", "invert": "~",
    "getitem": "an index", "setitem": "an index", "index": "an index", "array": "NumPy",
    "array_ufunc": "NumPy", "iter": "iteration", "contains": "in",
}  # fmt: skip


class _NoTensor:
    """Operators that raise: the replicas' values are not one tensor."""

    __slots__ = ()

    def _described(self) -> str:
        return "a value per replica"

    def _as_tensor(self) -> Any:
        raise ValueError(f"[PerReplica] a tensor is needed: got {self._described()}; {_REMEDY}.")

    def _refuse(self, operation: str) -> NoReturn:
        raise TypeError(
            f"[PerReplica] {operation} needs one value: got {self._described()}; {_REMEDY}."
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"[PerReplica] {name} is an attribute of one tensor: got {self._described()}; "
            f"{_REMEDY}."
        )

    def __format__(self, spec: str) -> str:
        return self._refuse("a format") if spec else str(self)


def _install_operators() -> None:
    """Give `_NoTensor` Python's operators."""

    def refusing(operation: str) -> Callable[..., NoReturn]:
        return lambda self, *_, **__: self._refuse(operation)

    for name, operation in _OPERATORS.items():
        for prefix in ("", "r", "i"):
            method = f"__{prefix}{name}__"
            if not prefix or hasattr(int, f"__r{name}__") or name == "matmul":
                setattr(_NoTensor, method, refusing(operation))


_install_operators()


class PerReplica(_NoTensor):
    """One value per replica, each with its own number of rows.

    With several processes, each process has the components of its replicas, and knows the shapes of
    the others.

    Use it as an argument of `Strategy.run`, reduce it with `Strategy.reduce`, or get the components
    with `Strategy.experimental_local_results`.
    """

    _is_per_replica = True
    __slots__ = ("_of_mean", "_parts", "_total")
    # Whether other processes may have some of the parts.
    _spread: ClassVar[bool] = False

    def __init__(self, values: Any, of_mean: bool = False, total: Tensor | None = None) -> None:
        # A tuple, or rows of one batch (`_core.RowParts`), which become tensors when somebody
        # looks at them: the engine's steps take them as they are.
        self._parts = values if isinstance(values, _core.RowParts) else tuple(values)
        self._of_mean = of_mean  # each is a replica's share of the mean over the global batch
        # Over the replicas, where adding up the parts rounds otherwise than one device does.
        self._total = total

    @property
    def values(self) -> tuple[Any, ...]:
        """The components of this process's replicas, in their order."""
        parts = self._all_parts
        return _core.own_parts(parts) if self._spread else parts

    @property
    def _all_parts(self) -> tuple[Any, ...]:
        """The components of all replicas; those of other processes have no more than a shape."""
        if not isinstance(self._parts, tuple):
            self._parts = self._parts.tensors()
        return self._parts

    @property
    def _has_strings(self) -> bool:
        """True if the components are strings, which steps pass on unread."""
        return isinstance(self._parts, tuple) and isinstance(self._parts[0], Text)

    def _described(self) -> str:
        return f"{len(self._parts)} values, one per replica"

    def __repr__(self) -> str:
        return per_replica_text(self.values)

    def _repr_html_(self) -> str:
        return per_replica_html(self.values)


def _open_trace() -> _core.Trace:
    trace = _core.current_trace()
    if trace is None:
        raise TypeError(
            "[PerReplica] a samegrad.function is needed: got a value of one that has ended; "
            "return it from the function."
        )
    return trace


class TracedValue:
    """Inside a traced function: one symbolic tensor that stands for all replicas' values."""

    __slots__ = ("_of_mean", "own_sizes", "processes", "tensor", "tensor_replicas", "total_at")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.tensor_replicas = 0  # of the trace, once it leaves it
        self.processes: list[int] = []  # over which they are spread
        self._of_mean = False  # of the mean over the global batch, as far as the trace shows
        self.own_sizes = False  # traces for other numbers of examples may give it others
        self.total_at: int | None = None  # which output of the program is `PerReplica._total`


class TracedPerReplica(TracedValue, _NoTensor):
    """Per-replica values that `Strategy.run` returns and takes in a traced function."""

    _is_per_replica = True
    __slots__ = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of this process's replicas, in their order."""
        trace = _open_trace()
        own = _core.own_replicas(trace.processes) if trace.processes else (0, trace.replicas)
        return local_results(self, range(*own))

    def __repr__(self) -> str:
        text = repr(self.tensor)
        return text if self.tensor._looks else f"PerReplica of {text}"


class TracedCommon(DeferredTensor, TracedPerReplica):
    """A value that all replicas have in common: one per replica, and one tensor in operations."""

    __slots__ = ()

    def _as_tensor(self) -> Tensor:
        tensor: Tensor = self.tensor
        return tensor


class TracedPart(DeferredTensor, TracedValue):
    """The value of one replica. A function that computes with it gathers the replicas' values."""

    __slots__ = ("replica",)

    def __init__(self, tensor: Any, replica: int) -> None:
        super().__init__(tensor)
        self.replica = replica

    def __repr__(self) -> str:
        return f"value of replica {self.replica} of {self.tensor!r}"

    def _as_tensor(self) -> Tensor:
        trace = _open_trace()
        if trace.processes:
            raise TypeError(
                "[experimental_local_results] a samegrad.function of several processes cannot "
                f"compute with the value of one replica: got that of replica {self.replica}; "
                "return it from the function, or join the replicas' values with strategy.reduce "
                "or strategy.gather."
            )
        column = _core.ops.expand_dims(self.tensor, axes=[0])
        column = _core.ops.all_gather(column, axis=0, replicas=trace.replicas)
        return column[self.replica]


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
            return leaf._all_parts[replica] if isinstance(leaf, PerReplica) else leaf

        return map_structure(part, value)

    return tuple(map(of, replicas))


def captured(value: PerReplica) -> TracedPerReplica | UnreadText:
    """Return what stands for a value that a traced function found outside.

    Raises:
        ValueError: What is being traced runs on no replicas, as functions of datasets.
    """
    if value._has_strings:
        return UnreadText(value)
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


def strings_per_replica(parts: Iterable[Text]) -> PerReplica:
    """Return strings, one tensor per replica.

    Raises:
        TypeError: There are several processes, which exchange numbers only.
    """
    if PerReplica._spread:
        raise TypeError(
            "[PerReplica] strings per replica stay in one process: got several processes; turn "
            "them into numbers in Dataset.map."
        )
    return PerReplica(parts)


def per_replica(parts: Sequence[Tensor]) -> Any:
    """Join parts to a value per replica; axis 0 counts examples if the other axes agree."""
    shapes = [tuple(part._shape) for part in parts]
    if all(shapes) and len({shape[1:] for shape in shapes}) == 1:
        parts = [part._as_examples(0, 1) for part in parts]
    return parts[0] if len(parts) == 1 else PerReplica(parts)


__all__ = [
    "PerReplica", "TracedCommon", "TracedPart", "TracedPerReplica", "TracedValue", "captured",
    "check_parts", "local_results", "per_replica", "strings_per_replica",
]  # fmt: skip
