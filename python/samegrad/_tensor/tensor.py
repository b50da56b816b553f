"""Tensors: the engine's class with Python's operators."""

from __future__ import annotations

import contextlib
import copyreg
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DType, as_dtype, is_plain_number
from samegrad._base.reference import Reference
from samegrad._base.shown import shown
from samegrad._base.user_files import PACKAGE
from samegrad._context.python_runs import NeedsPython, may_leave
from samegrad._context.user_code import why_unchanged
from samegrad._surface import boundary
from samegrad._tensor import copies, dlpack, linear
from samegrad._tensor.conversion import (
    Tensor,
    TensorLike,
    alike,
    constant,
    convert_to_tensor,
    is_tensor,
    make,
    match,
    number,
    pair,
)
from samegrad._tensor.dim import Dim, code_of, dim_of, dims_of, with_dims
from samegrad._tensor.display import tensor_html
from samegrad._tensor.indexing import get_item
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.ragged_nested import OfDivisions
from samegrad._tensor.shape import TensorShape, as_shape

_ops = _core.ops
# Files between a value and the function that asks for it.
_ASKED = (__file__, boundary.__file__)


def _has_operators(other: Any) -> bool:
    """Return whether the operators of an operand compute with tensors."""
    return getattr(other, "_is_per_replica", False) or isinstance(other, OfDivisions)


def _operator(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    operation = _truediv if name == "div" else getattr(_ops, name)
    unlike = {"equal": False, "not_equal": True}.get(name)

    def method(self: Any, other: Any) -> Any:
        if other is None and unlike is not None:
            return unlike
        if type(other) is Tensor:
            return operation(other, self) if swapped else operation(self, other)
        if is_plain_number(other) and self._dtype in ("float32", "float64"):
            plain = number(other, self._dtype)
            return operation(plain, self) if swapped else operation(self, plain)
        if _has_operators(other):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        return operation(*pair(a, b))

    return method


def _size_operator(name: str, operation: Callable[[Any, Any], Any]) -> None:
    """Make operators of sizes return sizes: tf.shape(x)[0] * 2."""
    plain = getattr(Tensor, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        result = plain(self, other)
        if not isinstance(result, Tensor) or not result._symbolic or result._rank > 1:
            return result
        if not as_dtype(result._dtype).is_integer:
            return result
        if name.removeprefix("r") in ("add", "sub", "mul"):
            operands = (other, self) if name.startswith("r") else (self, other)
            linear.note(result, name.removeprefix("r"), *operands)
        own, more = (dims_of(x) if isinstance(x, Tensor) else (x,) for x in (self, other))
        if own is None or more is None or len(own) != 1 or len(more) != 1:
            return result
        if not all(isinstance(x, int | Dim) for x in (*own, *more)):
            return result
        with contextlib.suppress(ZeroDivisionError):  # the step says so when it divides
            return with_dims(result, (operation(own[0], more[0]),))
        return result

    setattr(Tensor, f"__{name}__", method)


def _swapped(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: operation(b, a)


def _as_floats(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the operands of a division, integers as floats."""
    kind = as_dtype(a._dtype)
    if not kind.is_integer or a._dtype != b._dtype:
        return a, b
    wanted = "float32" if kind.size < 4 else "float64"
    return _ops.cast(a, dtype=wanted), _ops.cast(b, dtype=wanted)


def _truediv(a: Tensor, b: Tensor) -> Tensor:
    return _ops.div(*_as_floats(a, b))


def _negative(self: Tensor) -> Tensor:
    result = _ops.neg(self)
    if result._symbolic:
        linear.note(result, "sub", 0, self)
    return result


def _power(self: Tensor, exponent: Any) -> Any:
    if isinstance(exponent, int | float) and exponent == 2:
        return _ops.square(self)  # no logarithm, and a derivative without one
    return _operator("pow")(self, exponent)


def _numpy(self: Tensor) -> np.ndarray[Any, Any]:
    """Return the values as a new NumPy array (a NumPy scalar for a tensor without axes).

    Raises:
        TypeError: The tensor belongs to a traced function, where it has no value (see
            `config.run_functions_eagerly`), or its values differ between replicas.
    """
    try:
        array = self._numpy()
    except TypeError as error:
        _leave_if_needed(self, error)
        raise
    return array if array.ndim else array[()]


def _leave_if_needed(self: Tensor, error: TypeError) -> None:
    """Leave the trace for Python if a function of samegrad needs the value, such as a size.

    User code that asks for it gets an error.
    """
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename in _ASKED:
        frame = frame.f_back
    if self._symbolic and frame.f_code.co_filename.startswith(PACKAGE) and may_leave():
        raise NeedsPython(str(error), _core.user_line())


def _shape(self: Tensor) -> TensorShape:
    """Return the `TensorShape`; a dynamic dimension of a trace prints as "?"."""
    sizes = self._shape
    if None in sizes:
        if sizes.index(None) == 0 and sizes.count(None) == 1:  # as most have it
            sizes = (dim_of(self, 0), *sizes[1:])
        else:
            sizes = tuple(dim_of(self, i) if size is None else size for i, size in enumerate(sizes))
    return tuple.__new__(TensorShape, sizes)


def _repr(self: Tensor) -> str:
    if not self._made:  # a traceback shows one whose constructor raised
        return "<samegrad.Tensor: not made>"
    if self._looks:
        with contextlib.suppress(TypeError):  # of a branch or loop
            return _shown(self._look(anywhere=True))
    shape = ", ".join("?" if size is None else str(size) for size in self._shape)
    shape = f"({shape},)" if self._rank == 1 else f"({shape})"
    if self._symbolic:
        return f"<samegrad.Tensor: shape={shape}, dtype={self._dtype}, traced>"
    return (
        f"<samegrad.Tensor: shape={shape}, dtype={self._dtype}, numpy={array_text(self._view())}>"
    )


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return an array as `repr` of tensors has it: one number without more.

    Example:
        >>> array_text(np.array(1.5)), array_text(np.array([1.5]))
        ('1.5', 'array([1.5])')
    """
    return _text(repr(array)) if array.ndim else str(array)


def _text(values: str) -> str:
    return "\n" + values if "\n" in values else values


def _shown(parts: list[Tensor]) -> str:
    return repr(parts[0] if len(parts) == 1 else PerReplica(parts))


def _str(self: Tensor) -> str:
    """Return the values; without them the shape and dtype, as a printed symbolic tensor has."""
    if not self._made:
        return _repr(self)
    if self._symbolic:
        return _shown(self._look()) if self._looks else _repr(self)
    shape = tuple(self._shape)
    return f"samegrad.Tensor({_text(str(self._view()))}, shape={shape}, dtype={self._dtype})"


def _format(self: Tensor, spec: str) -> str:
    """Format a tensor as its numbers: f"loss {loss}" reads "loss 0.5"."""
    if spec:
        return format(self._item(), spec)
    return _str(self) if self._symbolic else format(self._view(), "")


def _number(self: Tensor) -> Any:
    """Return the element; of a size (`tf.shape(x)[0]`) while tracing, what it is for Python."""
    dims = getattr(self, "_dims", None) if self._symbolic and not self._looks else None
    if dims and self._rank == 0:
        return dims[0]
    try:
        return self._item()
    except TypeError as error:
        _leave_if_needed(self, error)
        raise


def _index(self: Tensor) -> int:
    if as_dtype(self._dtype).is_floating:
        raise TypeError(
            f"[Tensor] a tensor of integers is an index: got {self._dtype}; use samegrad.cast."
        )
    return int(_number(self))


def _truth(self: Tensor) -> bool:
    if self._symbolic and not self._looks:
        error = TypeError(
            "[Tensor] this tensor has no value yet: it belongs to a function that is being traced, "
            f"and Python cannot decide by it; {why_unchanged()}. Decide with samegrad.cond, "
            "samegrad.while_loop, or samegrad.where for each element; return it to look at it, or "
            "let Python decide by values under samegrad.config.run_functions_eagerly(True)."
        )
        _leave_if_needed(self, error)
        raise error
    return bool(self._item())


def _length(self: Tensor) -> int:
    if self._rank == 0:
        raise TypeError(
            "[Tensor] a tensor without axes has no length and does not iterate: got "
            f"{_repr(self)[:80]}."
        )
    return int(_shape(self)[0])


def _iterate(self: Tensor) -> Iterator[Tensor]:
    # Not a generator, whose frame would be part of tracebacks.
    return map(self.__getitem__, range(_length(self)))


def _as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    try:
        array = self._numpy()
    except TypeError as error:
        _leave_if_needed(self, error)
        raise
    if dtype is None:
        return array
    return array.astype(dtype.as_numpy_dtype if isinstance(dtype, DType) else dtype)


def _getitem(self: Tensor, key: Any) -> Tensor:
    return get_item(self, key)


def _dlpack(self: Tensor, **options: Any) -> Any:
    return dlpack.export(self, **options)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return dlpack.device(self)


def _set_shape(self: Tensor, shape: Any) -> None:
    """Check that the tensor has this shape, in which sizes may be None.

    Args:
        self: The tensor.
        shape: The shape.

    Raises:
        ValueError: The tensor has another shape.

    Example:
        >>> constant([1, 2]).set_shape([None])
    """
    if not self.shape.is_compatible_with(shape):
        raise ValueError(
            f"[Tensor.set_shape] a tensor keeps its shape: got {as_shape(shape)} for "
            f"{self.shape}; use tf.reshape."
        )


def _reference(self: Tensor) -> Reference:
    """Return a hashable key for this tensor, equal to no other's, whatever their values.

    Example:
        >>> x = constant(1.0)
        >>> {x.ref(): 1}[x.ref()]
        1
    """
    return Reference(self)


def _init(
    self: Tensor, array: Any, copy: bool = True, example_axis: int | None = None,
    rows_per_example: int = 1,
) -> None:  # fmt: skip
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"[Tensor] an array is needed: got {type(array).__name__} {shown(array)}; make tensors "
            "with samegrad.constant."
        )
    make(self, array, copy, example_axis, rows_per_example)


def _shorten(cls: Any) -> None:
    """Let the engine itself answer the operators where nothing is to be converted or refused."""
    for symbol, name in {
        "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floor_div", "mod": "mod",
        "pow": "pow", "truediv": "div", "matmul": "matmul", "lt": "less", "le": "less_equal",
        "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
    }.items():  # fmt: skip
        for swapped in (False, True):
            method = f"__{'r' * swapped}{symbol}__"
            if method not in vars(cls):
                continue
            setattr(cls, method, _core.operator(
                vars(cls)[method], name, swapped=swapped, numbers=symbol not in ("pow", "matmul"),
                floats=symbol == "truediv",
            ))  # fmt: skip


_DOC = """A multidimensional array of one dtype, whose values never change.

Functions such as `tf.constant` and `tf.zeros` create tensors. Operators compute element by
element and broadcast as NumPy does. In a traced function a tensor has a shape and no values.

Example:
    >>> import samegrad as tf
    >>> x = tf.constant([[1.0, 2.0]])
    >>> (x + 1.0).numpy(), x.shape, x.dtype
    (array([[2., 3.]], dtype=float32), (1, 2), samegrad.float32)
"""


def _install() -> None:
    """Give the engine's class Python's operators and properties."""
    cls: Any = Tensor
    cls.__module__ = "samegrad"
    cls.__doc__ = _DOC
    cls.__init__ = _init
    for symbol, name in {
        "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floor_div", "mod": "mod",
        "pow": "pow", "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
    }.items():  # fmt: skip
        setattr(cls, f"__{symbol}__", _operator(name))
        setattr(cls, f"__r{symbol}__", _operator(name, swapped=True))
    for name in ("add", "sub", "mul", "floordiv", "mod"):
        _size_operator(name, getattr(operator, name))
        _size_operator(f"r{name}", _swapped(getattr(operator, name)))
    cls.__pow__ = _power
    for symbol, name in {
        "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
        "eq": "equal", "ne": "not_equal", "matmul": "matmul",
    }.items():  # fmt: skip
        setattr(cls, f"__{symbol}__", _operator(name))
    cls.__rmatmul__ = _operator("matmul", swapped=True)
    cls.__truediv__, cls.__rtruediv__ = _operator("div"), _operator("div", swapped=True)
    cls.__neg__ = _negative
    cls.__abs__ = lambda self: _ops.abs(self)
    cls.__invert__ = lambda self: _ops.logical_not(self)
    cls.__hash__ = object.__hash__
    cls.__float__ = lambda self: float(_number(self))
    cls.__int__ = lambda self: int(_number(self))
    cls.__bool__ = _truth
    cls.__index__ = _index
    cls.__len__ = _length
    cls.__iter__ = _iterate
    cls.__getitem__ = _core.parts(_getitem)
    cls.__repr__ = _repr
    cls.__str__ = _str
    cls._repr_html_ = tensor_html
    cls.__array__ = _as_array
    cls.__copy__ = cls.__deepcopy__ = copies.copied
    copyreg.pickle(cls, copies.reduce)
    cls.__dlpack__ = _dlpack
    cls.__dlpack_device__ = _dlpack_device
    cls.__array_priority__ = 100
    cls.ref = _reference
    cls.set_shape = _set_shape
    cls.__format__ = _format
    cls.numpy = cls.to_numpy = _numpy  # Matplotlib asks for the latter
    cls.get_shape = _shape
    _install_properties(cls)
    _shorten(cls)


def _install_properties(cls: Any) -> None:
    cls.shape = property(_shape)
    cls.dtype = property(lambda self: as_dtype(self._dtype), doc="The `DType` of the elements.")
    cls.ndim = property(lambda self: self._rank, doc="The number of axes.")
    cls.device = property(
        lambda self: "/job:localhost/replica:0/task:0/device:CPU:0",
        doc="TensorFlow's name of the first CPU, for every tensor.",
    )


_install()

__all__ = [
    "DType", "Dim", "Tensor", "TensorLike", "TensorShape", "alike", "array_text", "constant",
    "convert_to_tensor", "code_of", "dim_of", "dims_of", "is_tensor", "match", "pair", "with_dims",
]  # fmt: skip
