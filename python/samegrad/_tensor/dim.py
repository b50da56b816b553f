"""Sizes that follow from the number of examples or from lengths, while a function is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core

Tensor = _core.Tensor
_ops = _core.ops


class Dim:
    """A dynamic dimension: a size that follows from the number of examples of a traced function.

    A traced program works for any number of examples, and each replica has its own, so the size has
    no value yet. Sums, products and quotients with integers and other sizes are sizes again, and
    functions that take a shape or a size accept them. As an operand of tensors it is the number of
    the replica. Where Python needs a number (`int`, `range`, `len`), it gets the present one, and
    the program is bound to it. Another number of examples is traced again, and so is that of
    another replica. Comparisons bind it as well, unless they hold for any number.

    The dynamic dimension of another axis of a signature (a length) is a `Dim` as well. It is the
    same on all replicas, and a number in each program that is made of the trace. It follows from no
    value (`likes` is empty). For comparisons the program keeps the answer: lengths with the same
    answer are not traced again.
    """

    __slots__ = ("code", "likes", "place")

    def __init__(
        self, code: int, likes: tuple[Tensor, ...], place: tuple[Tensor, int] | None = None
    ) -> None:
        self.code = code  # as `_core.sizes` has it
        # Values whose examples it follows from.
        self.likes = likes
        # The axis that it is the size of, if it is one.
        self.place = place

    def __int__(self) -> int:
        return int(_core.size_bind(self.code))

    __index__ = __int__

    def __bool__(self) -> bool:
        return self != 0

    def __float__(self) -> float:
        return float(int(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(int(self), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute sizes with NumPy's numbers; other functions of NumPy get the present number."""
        name = _OPERATORS.get(ufunc.__name__)
        plain = [value if isinstance(value, Dim) or np.ndim(value) else np.asarray(value).item()
                 for value in inputs]  # fmt: skip
        if name and method == "__call__" and all(isinstance(v, int | float | Dim) for v in plain):
            return getattr(operator, name)(*plain)
        known = [np.asarray(value) if isinstance(value, Dim) else value for value in inputs]
        return getattr(ufunc, method)(*known, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Dim):
            return NotImplemented
        return _holds("eq", self, other)

    def __hash__(self) -> int:
        """Return the number's hash, which it equals: `{4: a}[x.shape[0]]` finds what 4 finds."""
        return hash(int(self))

    def _as_tensor(self) -> Tensor:
        """Return the number as an int32 tensor, which may differ between replicas."""
        if not self.likes:
            number: Tensor = _ops.size_value(_ops.zeros(shape=[]), size=self.code)
        elif self.place is not None:
            tensor, axis = self.place
            number = _ops.size_of(tensor, axes=(axis,))
        else:
            number = _ops.size_value(*self.likes, size=self.code)
        return with_dims(_ops.cast(number, dtype="int32"), (self,))

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if is_plain(other) else _number(self) / _number(other)

    def __rtruediv__(self, other: Any) -> Any:
        return _number(other) / _number(self)

    def __neg__(self) -> int | Dim:
        negative: int | Dim = 0 - self
        return negative

    def __pow__(self, power: int) -> Any:
        return math.prod([self] * power) if isinstance(power, int) else _number(self) ** power

    def __repr__(self) -> str:
        return "?"

    if TYPE_CHECKING:  # installed below

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...


def _holds(name: str, size: Dim, other: int | Dim) -> bool:
    """Evaluate a comparison, which binds the program to sizes with the same answer."""
    return bool(_core.size_holds(name, size.code, code_of(other)))


def code_of(size: int | Dim) -> int:
    """Return the size as the engine's shapes and attributes hold it."""
    return size.code if isinstance(size, Dim) else int(size)


def is_plain(value: Any) -> bool:
    """Tell whether an operator of tensors takes the value together with a `Dim`."""
    return not isinstance(value, Dim) and (
        isinstance(value, Tensor) or hasattr(value, "_as_tensor")
    )


def _number(size: Any) -> Any:
    return _ops.cast(size._as_tensor(), dtype="float32") if isinstance(size, Dim) else size


def _made(code: int, *sizes: Any) -> int | Dim:
    """Return the size with this code, which was computed from the others."""
    if _core.size_known(code):
        return code
    likes = {id(like): like for size in sizes if isinstance(size, Dim) for like in size.likes}
    return Dim(code, tuple(likes.values())[-8:])


def _arithmetic(name: str, swapped: bool) -> Callable[[Any, Any], Any]:
    operation = getattr(_core, f"size_{name}")

    def method(self: Dim, other: Any) -> Any:
        if isinstance(other, float):
            a, b = (other, _number(self)) if swapped else (_number(self), other)
            return getattr(operator, name)(a, b)
        if not isinstance(other, int | Dim):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        if name == "floordiv" and isinstance(b, Dim):
            b = int(b)
        return _made(operation(code_of(a), code_of(b)), a, b)

    return method


def _remainder(self: Dim, other: Any) -> Any:
    return self - self // other * other if isinstance(other, int | Dim) else NotImplemented


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Dim, other: Any) -> Any:
        if isinstance(other, int | Dim):
            return _holds(name, self, other)
        return NotImplemented if is_plain(other) else getattr(operator, name)(int(self), other)

    return method


# NumPy's ufuncs that are operators.
_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "floor_divide": "floordiv",
    "divide": "truediv", "true_divide": "truediv", "remainder": "mod", "power": "pow",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge",
}  # fmt: skip
for _name in ("add", "sub", "mul", "floordiv"):
    setattr(Dim, f"__{_name}__", _arithmetic(_name, False))
    setattr(Dim, f"__r{_name}__", _arithmetic(_name, True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Dim, f"__{_name}__", _comparison(_name))
setattr(Dim, "__mod__", _remainder)  # noqa: B010
setattr(Dim, "__rmod__", lambda self, other: other % int(self))  # noqa: B010


def dim_of(tensor: Tensor, axis: int) -> Any:
    """Return the size of an axis: a number, or a `Dim`."""
    code = tensor._dim(axis)
    if _core.size_known(code):
        return code
    return Dim(code, () if _core.size_of_lengths(code) else (tensor,), (tensor, axis))


def dims_of(tensor: Tensor) -> tuple[Any, ...] | None:
    """Return the sizes that a tensor of sizes holds, where they are known."""
    dims: tuple[Any, ...] | None = getattr(tensor, "_dims", None)
    known = dims is None and not tensor._symbolic and tensor._rank < 2
    if known and tensor._dtype.lstrip("u").startswith("int"):
        dims = tuple(int(size) for size in tensor._view().reshape(-1))
    return dims


def with_dims(tensor: Tensor, dims: Sequence[Any] | None) -> Tensor:
    """Return the same tensor, which then knows what sizes it holds."""
    if dims is not None and tensor._symbolic:
        tensor._dims = tuple(dims)  # type: ignore[attr-defined]
    return tensor
