"""Values that cross the border of a branch or a loop: what is a tensor there and what is not."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.tree import is_nested, is_one_value, variables
from samegrad._context import state as _context
from samegrad._tensor.deferred import DeferredTensor
from samegrad._tensor.per_replica import TracedPerReplica
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sizes import codes_of, full, sizes_but_counts
from samegrad._tensor.tensor import Tensor, convert_to_tensor, dim_of
from samegrad._tensor.text import Text

# The leaves of a nested value, and the value with others instead.
leaves, refill = variables.flatten, variables.fill


class _Unbound:
    """Stands for the value of a variable that has none."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = _Unbound()


class FormLearntError(Exception):
    """A loop must be traced again: a round told what form its `Stacked` values have.

    Args:
        form: Of those values.
    """

    def __init__(self, form: object) -> None:
        super().__init__("the form of an array was learnt")
        self.form = form


class Stacked(abc.ABC):
    """A value that enters and leaves a loop as one tensor, but is not a tensor to user code."""

    @abc.abstractmethod
    def _as_stacked(self) -> Tensor:
        """Return the tensor."""

    @abc.abstractmethod
    def _learns(self, form: object) -> bool:
        """Tell whether a loop that this value enters is to be traced again."""

    @abc.abstractmethod
    def _holding(self, tensor: Tensor) -> Stacked:
        """Return the same kind of value with another tensor."""

    def _fits(self, other: object) -> bool:
        """Return whether another value can take the place of this one."""
        return type(other) is type(self)


Stacked.register(RaggedTensor)


class Missing:
    """Stands for a variable that only one branch assigns: every use explains that.

    Args:
        text: The explanation.
        value: What the variable holds after that branch, and zeros after the other one.
    """

    def __init__(self, text: str, value: Any) -> None:
        self.__dict__.update(_text=text, _value=value)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(self.__dict__["_text"])

    _as_tensor = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_fields", "_is_per_replica"):
            raise AttributeError(name)
        self._refuse()


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow",
    "matmul", "neg", "bool", "len", "iter", "getitem", "call", "float", "int", "lt", "le", "gt",
    "ge", "array",
):  # fmt: skip
    setattr(Missing, f"__{_name}__", Missing._refuse)


class Zeros:
    """A tensor like another one, in whatever is being traced."""

    _is_variable = True  # it can be a tensor

    def __init__(self, tensor: Tensor) -> None:
        self._shape, self._dtype = sizes_but_counts(tensor), tensor._dtype
        self._rows = tensor._example_axis[1] if tensor._example_axis and None in self._shape else 0

    def can_be_made(self) -> bool:
        """Tell whether the number of examples is known."""
        counted = self._shape.count(None)
        return not counted or bool(counted == 1 and self._rows and _context.current().batches)

    def _as_tensor(self) -> Tensor:
        zeros: Tensor
        if self._rows:
            batch = _context.current().batches[0]
            axis, rows = batch._example_axis
            size = dim_of(batch, axis) // rows * self._rows
            sizes = [size if own is None else own for own in self._shape]
            zeros = full(sizes, self._dtype)
        else:
            zeros = _core.ops.zeros(shape=codes_of(self._shape), dtype=self._dtype)
        return zeros


def zeros_of(value: Any) -> Any:
    """Return the nested value with zeros for its tensors; UNBOUND if they cannot be made."""
    stand_ins = [Zeros(as_tensor(leaf)) if is_carried(leaf) else leaf for leaf in leaves(value)]
    if not all(leaf.can_be_made() for leaf in stand_ins if isinstance(leaf, Zeros)):
        return UNBOUND
    return refill(value, stand_ins)


def unwrap(value: Any) -> Any:
    """Return the value, or what a `Missing` one would be."""
    return value.__dict__["_value"] if isinstance(value, Missing) else value


def is_number(value: Any) -> bool:
    """Tell whether a value that is not a tensor yet can become one."""
    return isinstance(value, bool | int | float | np.ndarray | np.generic)


def _is_stacked(value: Any) -> bool:
    """Return whether a value crosses the border as one tensor; ragged strings do not."""
    text = isinstance(value, RaggedTensor) and isinstance(value.flat_values, Text)
    return isinstance(value, Stacked) and not text


def is_carried(value: Any) -> bool:
    """Tell whether the value is a tensor, or represents one per replica."""
    return isinstance(value, Tensor | TracedPerReplica) or _is_stacked(value)


def can_be_tensor(value: Any) -> bool:
    """Tell whether the value is a tensor, a number, a variable or a deferred tensor."""
    becomes_one = isinstance(value, DeferredTensor) or getattr(value, "_is_variable", False)
    return is_carried(value) or is_number(value) or becomes_one


def is_untyped(value: Any) -> bool:
    """Tell whether the value is a Python number, which takes the dtype of the other operand."""
    return isinstance(value, int | float) and not isinstance(value, bool | np.generic)


def as_tensor(value: Any, dtype: str | None = None) -> Tensor:
    """Return the tensor of a value; a number of Python becomes `dtype`."""
    if isinstance(value, TracedPerReplica):
        return value.tensor  # type: ignore[no-any-return]
    if isinstance(value, Stacked):
        return value._as_stacked()
    return convert_to_tensor(value, dtype if is_untyped(value) else None)


def rewrap(value: Any, tensor: Tensor) -> Any:
    """Return the tensor, wrapped like the value it replaces."""
    if isinstance(value, Stacked):
        return value._holding(tensor)
    return TracedPerReplica(tensor) if isinstance(value, TracedPerReplica) else tensor


def same_constant(a: Any, b: Any) -> bool:
    """Tell whether two values are the same to user code, whatever it does with them."""
    if a is b:
        return True
    plain = (bool, int, float, str, bytes, np.generic)
    return type(a) is type(b) and isinstance(a, plain) and bool(a == b)


def same_structure(a: Any, b: Any) -> bool:
    """Tell whether two nested values differ in their leaves only."""
    if not variables.same_structure(a, b):
        return False
    pairs = zip(leaves(a), leaves(b), strict=True)
    return all(x._fits(y) if _is_stacked(x) else not _is_stacked(y) for x, y in pairs)


def describe(value: Any) -> str:
    """Format a value for an error message."""
    if isinstance(value, Stacked):
        return f"{value!r:.80}"
    if is_carried(value):
        tensor = as_tensor(value)
        sizes = ["?" if size is None else str(size) for size in tensor._shape]
        shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
        return f"{as_dtype(tensor._dtype).name} {shape}"
    if is_one_value(value):
        return f"complex numbers of parts {describe(value.real)}"
    if is_nested(value):
        parts = [
            describe(part) for part in (value.values() if isinstance(value, Mapping) else value)
        ]
        keys = [f"{key!r}: " for key in value] if isinstance(value, Mapping) else [""] * len(parts)
        inside = ", ".join(key + part for key, part in zip(keys, parts, strict=True))
        return f"{type(value).__name__} of ({inside})"
    return "nothing" if value is UNBOUND else f"{value!r:.60}"


def holds(who: str, value: Any) -> bool:
    """Evaluate a predicate whose value is known."""
    if isinstance(value, bool | int | float):
        return bool(value)
    return bool(as_predicate(who, value))


def as_predicate(who: str, value: Any) -> Tensor:
    """Return True unless the only element of a tensor is zero, as a bool tensor.

    Raises:
        ValueError: It has more elements.
        TypeError: It differs between replicas, outside `run`.
    """
    if isinstance(value, TracedPerReplica):
        raise TypeError(
            f"[{who}] the condition has a value per replica here: decide inside strategy.run, or "
            "use strategy.reduce before."
        )
    tensor = convert_to_tensor(value)
    # A Keras model counts the examples of what it is given as one per row: where it was given one
    # row, `shape` says so, and it is an int.
    if any(type(size) is not int or size != 1 for size in tensor.shape):
        raise ValueError(
            f"[{who}] the condition must be one element: got {describe(tensor)}; use "
            "samegrad.reduce_all, samegrad.reduce_any, or samegrad.where for each element."
        )
    if tensor._rank:
        tensor = _core.ops.reshape(tensor, shape=[])
    if tensor._dtype == "bool":
        return tensor
    return _core.ops.not_equal(tensor, convert_to_tensor(0, tensor._dtype))
