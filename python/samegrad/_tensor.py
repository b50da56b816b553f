"""Tensors: the engine's class with Python's operators, and conversion to it."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from samegrad import _context, _core
from samegrad._counts import counts_of
from samegrad._dim import Dim, code_of, dim_of, dims_of, with_dims
from samegrad._dtypes import DType, DTypeLike, as_dtype, is_plain_number, kind_of
from samegrad._reference import Reference
from samegrad._shown import shown

Tensor = _core.Tensor
TensorLike: TypeAlias = Any
Shape: TypeAlias = Iterable[Any]
_ops = _core.ops


class TensorShape(tuple):  # type: ignore[type-arg]
    """The sizes of a tensor's axes: a tuple with TensorFlow's extras.

    Example:
        >>> TensorShape((2, 3)).num_elements()
        6
    """

    __slots__ = ()

    def __new__(cls, dims: Shape = ()) -> TensorShape:
        return super().__new__(cls, dims)

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return len(self)

    @property
    def ndims(self) -> int:
        """How many axes there are."""
        return len(self)

    def as_list(self) -> list[int | None]:
        """The sizes; None where the number of examples decides."""
        return [None if isinstance(size, Dim) else size for size in self]

    def num_elements(self) -> int:
        """The product of the sizes."""
        product = 1
        for size in self:
            product *= size
        return product

    def __getitem__(self, key: Any) -> Any:
        try:
            item = super().__getitem__(key)
        except (IndexError, TypeError) as error:
            kind = IndexError if isinstance(error, IndexError) else TypeError
            raise kind(
                f"[TensorShape] a place is a whole number in [{-len(self)}, {len(self)}), or a "
                f"slice: got {shown(key)}."
            ) from error
        return TensorShape(item) if isinstance(key, slice) else item


def is_tensor(value: object) -> bool:
    """Whether the value is a tensor or a variable.

    Example:
        >>> is_tensor(constant(1.0)), is_tensor(1.0)
        (True, False)
    """
    return isinstance(value, Tensor) or hasattr(value, "_as_tensor")


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    """NumPy's array of numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"[convert_to_tensor] the parts of a list must have one shape: got {shown(value)} "
            f"({error}); pad the shorter ones."
        ) from error
    if kind_of(array.dtype) not in "fiub":
        raise TypeError(
            f"[convert_to_tensor] a number, an array or a tensor is needed: got "
            f"{type(value).__name__} {value!r:.80}."
        )
    return array


def _cast_exactly(array: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array in another dtype that can hold its numbers."""
    if kind_of(array.dtype) == "f" and wanted.kind in "iub":
        raise TypeError(
            f"[convert_to_tensor] the values are {array.dtype}: got dtype={wanted.name}, which "
            "would lose their fractions; use samegrad.cast."
        )
    whole = array.dtype.kind in "iu" and wanted.kind in "iu"
    if whole and array.size and not np.can_cast(array.dtype, wanted):
        least, most = array.min(), array.max()
        limits = np.iinfo(wanted)
        if least < limits.min or most > limits.max:
            raise ValueError(
                f"[convert_to_tensor] {wanted.name} holds numbers from {limits.min} to "
                f"{limits.max}: got {least} to {most}; use another dtype."
            )
    with np.errstate(over="ignore"):  # what is too large is infinite
        return array.astype(wanted, copy=False)


def _large_whole(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Python's whole numbers that NumPy made floats of, as some are beyond int64."""
    exact = np.asarray(value, dtype=object)
    if all(type(n) is int and 0 <= n < 2**64 for n in exact.ravel()):
        return exact.astype(np.uint64)
    return array


def _default_array(value: Any, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
    """NumPy's array of a Python or NumPy value, with TensorFlow's defaults for Python numbers."""
    typed = isinstance(value, np.ndarray | np.generic)
    if dtype is not None:
        wanted = as_dtype(dtype)._numpy
        array = _numbers(value)
        if wanted == np.uint64 and array.dtype == np.float64 and not typed:
            array = _large_whole(value, array)
        return _cast_exactly(array, wanted)
    array = _numbers(value)
    if not typed and array.dtype == np.float64 and not _holds_float64(value):
        return array.astype(np.float32)
    if not typed and array.dtype == np.int64:
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return array.astype(np.int32) if fits else array
    return array


def _holds_float64(value: Any) -> bool:
    """Whether a (nested) list holds NumPy's float64 numbers rather than Python's."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray | np.float64)


def convert_to_tensor(value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of the value: number, nested list, NumPy array, variable or tensor.

    Python floats become float32 and ints int32, as in TensorFlow; NumPy arrays keep their dtype.
    The data is copied.

    Raises:
        TypeError: The value has another dtype than the one asked for, or none samegrad knows.
        ValueError: Parts of a list differ in shape, or a number is too large for the dtype.

    Example:
        >>> convert_to_tensor([1.0, 2.0]).dtype
        samegrad.float32
    """
    if dtype is None and type(value) is Tensor:
        return value
    if isinstance(value, Dim):
        size = value._as_tensor()
        return size if dtype is None else _ops.cast(size, dtype=as_dtype(dtype).name)
    if hasattr(value, "_as_tensor"):
        value = value._as_tensor()
    if isinstance(value, Tensor):
        if dtype is not None and value._dtype != as_dtype(dtype).name:
            raise TypeError(
                f"[convert_to_tensor] the tensor is {value._dtype}: got dtype="
                f"{as_dtype(dtype).name}; use samegrad.cast."
            )
        return value
    if isinstance(value, list | tuple) and any(is_tensor(part) for part in value):
        parts = [_ops.expand_dims(convert_to_tensor(part, dtype), axes=(0,)) for part in value]
        return _ops.concat(*parts, axis=0)
    array = _default_array(value, dtype)
    as_dtype(array.dtype)
    made_of = counts_of(value)
    return Tensor(array) if made_of is None else Tensor(array)._of_counts(*made_of)


def constant(value: TensorLike, dtype: DTypeLike | None = None, shape: Any = None) -> Tensor:
    """A tensor with the value, repeated to `shape` if it is given.

    Example:
        >>> constant(2.0, shape=(2,)).numpy()
        array([2., 2.], dtype=float32)
    """
    array = _default_array(value, dtype) if not is_tensor(value) else value
    if shape is not None and isinstance(array, np.ndarray):
        sizes = tuple(shape) if isinstance(shape, Iterable) else (-1,)
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ValueError(
                "[constant] shape must be a tuple of sizes, which are not negative: got "
                f"{shown(shape)}; pass one, and use reshape for -1."
            )
        if array.size not in (1, math.prod(shape)):
            raise ValueError(
                f"[constant] the value must have one element or as many as the shape: got "
                f"{array.size} and {tuple(shape)}."
            )
        array = np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
    return convert_to_tensor(array, dtype)


def number(value: float, dtype: str) -> Tensor:
    """A plain number (`is_plain_number`) as a tensor of a float's dtype, without further checks.

    Example:
        >>> number(0.5, "float64").dtype
        samegrad.float64
    """
    made = Tensor.__new__(Tensor)
    _make(made, np.array(value, dtype), True, None, 1)
    return made


def match(value: TensorLike, like: Tensor) -> Tensor:
    """The operand of an operator as a tensor with the dtype of the other one."""
    if is_plain_number(value) and like._dtype in ("float32", "float64"):
        return number(value, like._dtype)
    if is_tensor(value) and not isinstance(value, Dim):
        return convert_to_tensor(value)
    if isinstance(value, np.ndarray):
        return convert_to_tensor(value, like._dtype)
    if isinstance(value, float) and as_dtype(like._dtype).is_integer:
        raise TypeError(
            f"[tensor] a float and a tensor of {like._dtype} do not mix: got {value}; "
            "use samegrad.cast."
        )
    return convert_to_tensor(value, like._dtype)


def pair(a: TensorLike, b: TensorLike) -> tuple[Tensor, Tensor]:
    """Both operands as tensors; a Python number takes the dtype of the other one."""
    if is_tensor(a) and not (isinstance(a, Dim) and is_tensor(b)):
        a = convert_to_tensor(a)
        return a, match(b, a)
    if is_tensor(b):
        b = convert_to_tensor(b)
        return match(a, b), b
    first = convert_to_tensor(a)
    return first, match(b, first)


def _operator(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    operation = getattr(_ops, name)

    def method(self: Any, other: Any) -> Any:
        if type(other) is Tensor:
            return operation(other, self) if swapped else operation(self, other)
        if is_plain_number(other) and self._dtype in ("float32", "float64"):
            plain = number(other, self._dtype)
            return operation(plain, self) if swapped else operation(self, plain)
        if getattr(other, "_is_per_replica", False):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        return operation(*pair(a, b))

    return method


def _size_operator(name: str, operation: Callable[[Any, Any], Any]) -> None:
    """What is computed from sizes is a size: tf.shape(x)[0] * 2."""
    plain = getattr(Tensor, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        result = plain(self, other)
        if not isinstance(result, Tensor) or not result._symbolic or result._rank > 1:
            return result
        if not as_dtype(result._dtype).is_integer:
            return result
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


def _truediv(a: Tensor, b: Tensor) -> Tensor:
    kind = as_dtype(a._dtype)
    if kind.is_integer:
        a, b = (_ops.cast(t, dtype="float32" if kind.size < 4 else "float64") for t in (a, b))
    return _ops.div(a, b)


def _power(self: Tensor, exponent: Any) -> Any:
    if isinstance(exponent, int | float) and exponent == 2:
        return _ops.square(self)  # no logarithm, and a derivative without one
    return _operator("pow")(self, exponent)


def _numpy(self: Tensor) -> np.ndarray[Any, Any]:
    """The values as a new NumPy array (a NumPy scalar for a tensor without axes).

    Raises:
        TypeError: The tensor belongs to a function that is being traced, where values cannot be
            looked at (see `config.run_functions_eagerly`) or differ between replicas.
    """
    array = self._numpy()
    return array if array.ndim else array[()]


def _shape(self: Tensor) -> TensorShape:
    sizes = self._shape
    if None in sizes:
        sizes = tuple(dim_of(self, i) if size is None else size for i, size in enumerate(sizes))
    return tuple.__new__(TensorShape, sizes)


def _repr(self: Tensor) -> str:
    if self._looks:
        with contextlib.suppress(TypeError):  # of a branch or loop
            return _shown(self._look(anywhere=True))
    shape = ", ".join("?" if size is None else str(size) for size in self._shape)
    shape = f"({shape},)" if self._rank == 1 else f"({shape})"
    if self._symbolic:
        return f"<samegrad.Tensor: shape={shape}, dtype={self._dtype}, traced>"
    return f"<samegrad.Tensor: shape={shape}, dtype={self._dtype}, numpy=\n{self._view()!r}>"


def _shown(parts: list[Tensor]) -> str:
    from samegrad._values import PerReplica

    return repr(parts[0] if len(parts) == 1 else PerReplica(parts))


def _str(self: Tensor) -> str:
    """As repr; inside `run` a TypeError where there is no value: print() would never show one."""
    if self._symbolic and _context.printing_needs_values():
        return _shown(self._look())
    return _repr(self)


def _format(self: Tensor, spec: str) -> str:
    return format(self._item(), spec) if spec else _str(self)


def _number(self: Tensor) -> Any:
    """The element; of a size (`tf.shape(x)[0]`) while tracing, what it is for Python."""
    dims = getattr(self, "_dims", None) if self._symbolic and not self._looks else None
    return dims[0] if dims and self._rank == 0 else self._item()


def _truth(self: Tensor) -> bool:
    if self._symbolic and not self._looks:
        from samegrad.autograph._convert import why_unchanged

        raise TypeError(
            "[Tensor] this tensor has no value yet: it belongs to a function that is being traced, "
            f"and Python cannot decide by it; {why_unchanged()}. Decide with samegrad.cond, "
            "samegrad.while_loop, or samegrad.where for each element; return it to look at it, or "
            "let Python decide by values under samegrad.config.run_functions_eagerly(True)."
        )
    return bool(self._item())


def _length(self: Tensor) -> int:
    if self._rank == 0:
        raise TypeError(
            f"[Tensor] a tensor without axes has no length, and is no list: got {_repr(self)[:80]}."
        )
    return int(_shape(self)[0])


def _iterate(self: Tensor) -> Iterator[Tensor]:
    for i in range(_length(self)):
        yield self[i]


def _as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self._numpy()
    if dtype is None:
        return array
    return array.astype(dtype.as_numpy_dtype if isinstance(dtype, DType) else dtype)


def _getitem(self: Tensor, key: Any) -> Tensor:
    from samegrad._indexing import get_item

    return get_item(self, key)


def _dlpack(self: Tensor, **options: Any) -> Any:
    from samegrad._dlpack import export

    return export(self, **options)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    from samegrad._dlpack import device

    return device(self)


def _reference(self: Tensor) -> Reference:
    """Stands for this tensor as a key: equal to no other's, whatever their values.

    Example:
        >>> x = constant(1.0)
        >>> {x.ref(): 1}[x.ref()]
        1
    """
    return Reference(self)


_make = Tensor.__init__


def _init(
    self: Tensor, array: Any, copy: bool = True, example_axis: int | None = None,
    rows_per_example: int = 1,
) -> None:  # fmt: skip
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"[Tensor] an array is needed: got {type(array).__name__} {shown(array)}; make tensors "
            "with samegrad.constant."
        )
    _make(self, array, copy, example_axis, rows_per_example)


def _install() -> None:
    """Gives the engine's class its Python face."""
    cls: Any = Tensor
    cls.__module__ = "samegrad"
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
    cls.__truediv__ = lambda self, other: _truediv(*pair(self, other))
    cls.__rtruediv__ = lambda self, other: _truediv(*pair(other, self))
    cls.__neg__ = lambda self: _ops.neg(self)
    cls.__abs__ = lambda self: _ops.abs(self)
    cls.__invert__ = lambda self: _ops.logical_not(self)
    cls.__hash__ = object.__hash__
    cls.__float__ = lambda self: float(_number(self))
    cls.__int__ = lambda self: int(_number(self))
    cls.__bool__ = _truth
    cls.__index__ = lambda self: int(_number(self))
    cls.__len__ = _length
    cls.__iter__ = _iterate
    cls.__getitem__ = _getitem
    cls.__repr__ = _repr
    cls.__str__ = _str
    cls.__array__ = _as_array
    cls.__dlpack__ = _dlpack
    cls.__dlpack_device__ = _dlpack_device
    cls.__array_priority__ = 100
    cls.ref = _reference
    cls.__format__ = _format
    cls.numpy = _numpy
    cls.shape = property(_shape)
    cls.dtype = property(lambda self: as_dtype(self._dtype))
    cls.ndim = property(lambda self: self._rank)
    cls.get_shape = _shape


_install()

__all__ = [
    "DType", "Dim", "Tensor", "TensorLike", "TensorShape", "constant", "convert_to_tensor",
    "code_of", "dim_of", "dims_of", "is_tensor", "match", "pair", "with_dims",
]  # fmt: skip
