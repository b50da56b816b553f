"""Complex tensors: two real ones, which everything that walks over structures carries as such."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DType, complex64, complex128, complex_type
from samegrad._base.shown import shown
from samegrad._base.tree import values
from samegrad._core import InvalidArgumentError
from samegrad._tensor import complex_rules as rules
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.tensor import Tensor, convert_to_tensor, is_tensor, pair
from samegrad.errors import WrongTypeError

_ops = _core.ops
_OF_PARTS = {"float32": complex64, "float64": complex128}
_LARGEST_POWER = 2**31  # that is multiplied rather than computed by logarithms


class ComplexTensor(tuple[Any, Any]):
    """A tensor of complex numbers: its real and its imaginary part, of one shape.

    Made by `tf.complex`, and by `tf.constant` and `tf.cast` where they are asked for complex
    numbers. To functions that are traced, to loops and datasets it is a structure of two tensors;
    to `tf.nest` and to the program it is one value. Gradients flow through the parts: of a real
    loss with respect to x + iy it is dL/dx + i dL/dy, TensorFlow's convention.

    Args:
        real: A tensor of float32 or float64, or what stands for one in a structure.
        imag: The same.

    Example:
        >>> import samegrad as tf
        >>> z = tf.complex([3.0, 0.0], [4.0, 1.0])
        >>> z.dtype, (z * z).numpy()
        (samegrad.complex64, array([-7.+24.j, -1. +0.j], dtype=complex64))
    """

    __slots__ = ()
    __array_priority__ = 100  # NumPy leaves + and == to this class
    _fields = ("real", "imag")  # what rebuilds structures asks for them
    _is_one_value = True

    def __new__(cls, real: Any, imag: Any) -> ComplexTensor:
        return tuple.__new__(cls, (real, imag))

    def __getnewargs__(self) -> tuple[Any, Any]:
        return self.parts

    @property
    def parts(self) -> tuple[Any, Any]:
        """The real and the imaginary part."""
        real, imag = tuple.__iter__(self)
        return real, imag

    @property
    def real(self) -> Any:
        """The real part."""
        return self.parts[0]

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.parts[1]

    @property
    def dtype(self) -> DType:
        """`tf.complex64` or `tf.complex128`."""
        return _OF_PARTS[str(self.real._dtype)]

    @property
    def _dtype(self) -> str:
        return self.dtype.name

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        shape: TensorShape = self.real.shape
        return shape

    def get_shape(self) -> TensorShape:
        """Return the sizes of the axes."""
        return self.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._rank

    @property
    def device(self) -> str:
        """The name of the device, in TensorFlow's form."""
        return str(self.real.device)

    @property
    def _shape(self) -> tuple[Any, ...]:
        shape: tuple[Any, ...] = self.real._shape
        return shape

    @property
    def _rank(self) -> int:
        return len(self._shape)

    def set_shape(self, shape: Any) -> None:
        """Check that it has this shape; ValueError if it has another one."""
        self.real.set_shape(shape)

    def numpy(self) -> Any:
        """Return the values as a new NumPy array (a NumPy scalar for a tensor without axes).

        Raises:
            TypeError: It belongs to a function that is being traced.
        """
        array = self.__array__()
        return array if array.ndim else array[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        real, imag = (np.asarray(part.numpy()) for part in self.parts)
        made = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
        made.real, made.imag = real, imag
        return made if dtype is None else made.astype(dtype)

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __bool__(self) -> bool:
        return not _is_of_tensors(self) or bool(self.real != 0) or bool(self.imag != 0)

    def __repr__(self) -> str:
        kind = type(self.real)
        if _is_of_tensors(self):
            sizes = ", ".join("?" if size is None else str(size) for size in self._shape)
            comma = "," * (self._rank == 1)
            head = f"<samegrad.Tensor: shape=({sizes}{comma}), dtype={self._dtype}"
            if self.real._symbolic:
                return f"{head}, traced>"
            return f"{head}, numpy={_on_own_lines(repr(self.__array__()))}>"
        if kind.__name__ == "TensorSpec":
            return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r})"
        return f"ComplexTensor(real={self.real!r}, imag={self.imag!r})"

    def __str__(self) -> str:
        if not _is_of_tensors(self) or self.real._symbolic:
            return repr(self)
        text = _on_own_lines(str(self.numpy()))
        return f"samegrad.Tensor({text}, shape={tuple(self._shape)}, dtype={self._dtype})"

    def __format__(self, spec: str) -> str:
        traced = not _is_of_tensors(self) or self.real._symbolic
        return str(self) if traced else format(self.numpy(), spec)


def _on_own_lines(values: str) -> str:
    return "\n" + values if "\n" in values else values


def _is_of_tensors(value: ComplexTensor) -> bool:
    """Tell whether the parts are tensors, rather than placeholders of a structure."""
    return type(value.real) is Tensor


def is_complex(value: Any) -> bool:
    """Tell whether a tensor, number, array or list holds complex numbers.

    Example:
        >>> is_complex([1.0, 2j]), is_complex(np.ones(2)), is_complex([1.0])
        (True, False, False)
    """
    if isinstance(value, ComplexTensor | complex | np.complexfloating):
        return True
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "c")
    return isinstance(value, list | tuple) and _holds_complex(value, set())


def _holds_complex(value: Any, seen: set[int]) -> bool:
    kinds = set(map(type, value))  # few, where there are many numbers
    if any(issubclass(kind, ComplexTensor | complex | np.complexfloating) for kind in kinds):
        return True
    if not any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        return False
    if id(value) in seen:  # it holds itself, or has been looked at
        return False
    seen.add(id(value))
    arrays = (part for part in value if isinstance(part, np.ndarray))
    lists = (part for part in value if isinstance(part, list | tuple))
    return any(part.dtype.kind == "c" for part in arrays) or any(
        _holds_complex(part, seen) for part in lists
    )


def of_parts(real: Any, imag: Any, who: str) -> ComplexTensor:
    """Build a complex tensor of a real and an imaginary part, which broadcast.

    Raises:
        TypeError: They are not both float32 or float64.
        InvalidArgumentError: Their shapes do not fit each other.
    """
    a, b = pair(real, imag)
    if a._dtype != b._dtype or a._dtype not in _OF_PARTS:
        raise TypeError(
            f"[{who}] both parts must be float32, or both float64: got {a._dtype} and {b._dtype}; "
            "use samegrad.cast."
        )
    if tuple(a._shape) != tuple(b._shape):
        true = convert_to_tensor(True)
        try:
            a, b = _ops.select(true, a, b), _ops.select(true, b, a)
        except ValueError:
            raise InvalidArgumentError(
                f"[{who}] both parts must have one shape, or broadcast to one: got {a._shape} and "
                f"{b._shape}."
            ) from None
    return ComplexTensor(own(a), own(b))


def own(part: Tensor) -> Tensor:
    """Return the same numbers as a tensor of its own, so that gradients by both stay apart."""
    found: Tensor = _ops.identity(part)
    return found


def _of_array(array: np.ndarray[Any, Any], kind: DType) -> ComplexTensor:
    wanted = kind.real_dtype.as_numpy_dtype
    with np.errstate(over="ignore"):  # what is too large is infinite
        parts = (np.array(part, wanted) for part in (array.real, array.imag))
        return ComplexTensor(*(Tensor(part, copy=False) for part in parts))


def to_complex(value: Any, who: str, dtype: DType | None = None) -> ComplexTensor:
    """Return a complex tensor of complex or real numbers.

    Args:
        value: A complex tensor; numbers, arrays and lists of them.
        who: Who asks.
        dtype: complex64 or complex128; None: complex128 of Python's numbers and float64, as NumPy
            has it.

    Raises:
        TypeError: It is another complex tensor, or a real one.
        ValueError: The parts of a list differ in shape.

    Example:
        >>> to_complex([1.0, 2j], "f").numpy()
        array([1.+0.j, 0.+2.j])
    """
    if isinstance(value, ComplexTensor):
        if dtype is not None and value.dtype != dtype:
            raise TypeError(
                f"[{who}] {dtype.name} is needed: got {value._dtype} of shape {value._shape}; use "
                "samegrad.cast."
            )
        return value
    if is_tensor(value):
        tensor = convert_to_tensor(value)
        wanted = "complex128" if tensor._dtype == "float64" else "complex64"
        raise WrongTypeError(
            f"[{who}] complex numbers are needed: got {tensor._dtype} of shape {tensor._shape}; "
            f"use samegrad.cast(x, samegrad.{wanted})."
        )
    if isinstance(value, list | tuple) and _holds_tensors(value):
        return _stacked([to_complex(part, who, dtype or _first(value)) for part in value], who)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"[{who}] the parts of a list must have one shape: got {shown(value)} ({error}); pad "
            "the shorter ones."
        ) from error
    if array.dtype.kind not in "fiubc":
        raise TypeError(f"[{who}] complex numbers are needed: got {shown(value)}.")
    small = array.dtype.itemsize <= 4 if array.dtype.kind == "f" else array.dtype == np.complex64
    return _of_array(array, dtype or (complex64 if small else complex128))


def _holds_tensors(value: Any) -> bool:
    return any(
        isinstance(part, ComplexTensor)
        or is_tensor(part)
        or (isinstance(part, list | tuple) and _holds_tensors(part))
        for part in value
    )


def _first(value: Any) -> DType | None:
    """Return the type of the first complex tensor in a list."""
    for part in value:
        if isinstance(part, ComplexTensor):
            return part.dtype
        if isinstance(part, list | tuple) and (found := _first(part)) is not None:
            return found
    return None


def _stacked(members: list[ComplexTensor], who: str) -> ComplexTensor:
    shapes = [tuple(each._shape) for each in members]
    if len(set(shapes)) > 1:
        raise ValueError(
            f"[{who}] the parts of a list must have one shape: got shapes {shown(shapes)}; pad the "
            "shorter ones."
        )
    columns = zip(*(each.parts for each in members), strict=True)
    return ComplexTensor(*(
        _ops.concat(*[_ops.expand_dims(part, axes=(0,)) for part in column], axis=0)
        for column in columns
    ))  # fmt: skip


def without_complex_arrays(structure: Any, who: str) -> Any:
    """Return the structure with complex tensors for NumPy's complex arrays; None if it has none.

    Args:
        structure: Arguments of a function.
        who: Which function.
    """

    def is_array(leaf: Any) -> bool:
        return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "c"

    if not any(map(is_array, values.flatten(structure))):
        return None
    return values.map_structure(
        lambda leaf: to_complex(leaf, who) if is_array(leaf) else leaf, structure
    )


def complex_pair(a: Any, b: Any, who: str) -> tuple[ComplexTensor, ComplexTensor]:
    """Convert both operands; numbers, arrays and lists take the complex tensor's dtype.

    Raises:
        TypeError: Their types differ, or one is a real tensor.
    """
    if isinstance(a, ComplexTensor):
        return a, to_complex(b, who, a.dtype)
    if isinstance(b, ComplexTensor):
        return to_complex(a, who, b.dtype), b
    first = to_complex(a, who)
    return first, to_complex(b, who, first.dtype)


def computed(rule: Callable[..., rules.Pair], *operands: ComplexTensor) -> ComplexTensor:
    """Return the complex tensor that a rule makes of the parts of others."""
    return ComplexTensor(*rule(*(each.parts for each in operands)))


def power(x: Any, y: Any, who: str) -> ComplexTensor:
    """Raise x to the power y; integer powers are computed by multiplication."""
    whole = type(y) in (int, float) or isinstance(y, np.integer | np.floating)
    if whole and 1 <= abs(y) <= _LARGEST_POWER and y == int(y):
        return ComplexTensor(*rules.whole_power(to_complex(x, who).parts, int(y)))
    return computed(rules.power, *complex_pair(x, y, who))


def equal(x: Any, y: Any, who: str) -> Tensor:
    """Test both parts for equality, element by element."""
    a, b = complex_pair(x, y, who)
    found: Tensor = _ops.logical_and(_ops.equal(a.real, b.real), _ops.equal(a.imag, b.imag))
    return found


def of_each_part(function: Callable[..., Any], value: ComplexTensor) -> ComplexTensor:
    """Apply a linear function with real coefficients to each part."""
    return ComplexTensor(*map(function, value.parts))


def product_of(function: Callable[[Any, Any], Any], a: ComplexTensor, b: ComplexTensor) -> Any:
    """Return a function that is linear in both operands, such as a product of matrices."""
    real = function(a.real, b.real) - function(a.imag, b.imag)
    return ComplexTensor(real, function(a.real, b.imag) + function(a.imag, b.real))


def _added(x: rules.Pair, y: rules.Pair) -> rules.Pair:
    return x[0] + y[0], x[1] + y[1]


def _subtracted(x: rules.Pair, y: rules.Pair) -> rules.Pair:
    return x[0] - y[0], x[1] - y[1]


BINARY: dict[str, Callable[..., rules.Pair]] = {
    "add": _added, "sub": _subtracted, "mul": rules.multiply, "truediv": rules.divide,
}  # fmt: skip


def _refused(symbol: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        raise TypeError(
            f"[{symbol}] complex numbers have no order and no integer parts: got {shown(self)} and "
            f"{shown(other)}; compare samegrad.abs, samegrad.math.real or samegrad.math.imag."
        )

    return method


def _install() -> None:
    """Install Python's operators, instead of those of tuples."""
    cls: Any = ComplexTensor
    for name in BINARY:
        setattr(cls, f"__{name}__", functools.partialmethod(_operator, name, False))
        setattr(cls, f"__r{name}__", functools.partialmethod(_operator, name, True))
    for symbol in ("lt", "le", "gt", "ge", "floordiv", "mod", "rfloordiv", "rmod"):
        setattr(cls, f"__{symbol}__", _refused(symbol))
    cls.__pow__ = lambda self, other: power(self, other, "pow")
    cls.__rpow__ = lambda self, other: power(other, self, "pow")
    cls.__matmul__ = lambda self, other: _matmul(self, other)
    cls.__rmatmul__ = lambda self, other: _matmul(other, self)
    cls.__neg__ = lambda self: of_each_part(operator.neg, self)
    cls.__pos__ = lambda self: self
    cls.__abs__ = lambda self: rules.absolute(self.parts)
    cls.__eq__, cls.__ne__, cls.__hash__ = _equals, _differs, _hash
    cls.__getitem__, cls.__iter__, cls.__len__, cls.__contains__ = _item, _rows, _length, _in


def _operator(self: Any, name: str, swapped: bool, other: Any) -> Any:
    if getattr(other, "_is_per_replica", False):
        return NotImplemented
    a, b = (other, self) if swapped else (self, other)
    return computed(BINARY[name], *complex_pair(a, b, name))


def _matmul(a: Any, b: Any) -> Any:
    return product_of(_ops.matmul, *complex_pair(a, b, "matmul"))


def _equals(self: ComplexTensor, other: Any) -> Any:
    if not _is_of_tensors(self):
        return tuple.__eq__(self, other)
    return False if other is None else equal(self, other, "equal")


def _differs(self: ComplexTensor, other: Any) -> Any:
    if not _is_of_tensors(self):
        return tuple.__ne__(self, other)
    return True if other is None else _ops.logical_not(equal(self, other, "not_equal"))


def _hash(self: ComplexTensor) -> int:
    return hash((ComplexTensor, *self.parts))  # of tensors by identity


def _item(self: ComplexTensor, key: Any) -> ComplexTensor:
    return of_each_part(lambda part: part[key], self)


def _rows(self: ComplexTensor) -> Iterator[ComplexTensor]:
    return (self[row] for row in range(len(self)))


def _length(self: ComplexTensor) -> int:
    return len(self.real)


def _in(self: ComplexTensor, value: Any) -> bool:
    raise TypeError(
        "[ComplexTensor] whether a number is in a tensor is asked of its elements: got "
        f"{shown(value)}; use samegrad.reduce_any(z == value)."
    )


_install()

__all__ = [
    "BINARY", "ComplexTensor", "complex_pair", "complex_type", "computed", "equal", "is_complex",
    "of_each_part", "of_parts", "own", "power", "product_of", "to_complex",
]  # fmt: skip
