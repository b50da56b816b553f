"""Element types: `samegrad.float32` and its kin."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np

from samegrad._base.shown import did_you_mean, shown

NAMES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of that name; bfloat16 is that of ml_dtypes, as in TensorFlow."""
    if name == "bfloat16":
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(name)


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return NumPy's letter for the kind of a dtype; "f" for bfloat16, unknown to NumPy."""
    kind = dtype.kind
    # NumPy makes the name anew whenever it is asked for.
    return "f" if kind not in "fiub" and dtype.name == "bfloat16" else kind


def is_plain_number(value: Any) -> bool:
    """Tell whether all floats of 32 bits or more hold a number with at most one rounding.

    Example:
        >>> is_plain_number(0.1), is_plain_number(1e300), is_plain_number(True)
        (True, False, False)
    """
    if type(value) is float:
        return -1e38 < value < 1e38
    return type(value) is int and -(2**24) <= value <= 2**24


def _unknown(value: object) -> TypeError:
    kind = complex_type(value)
    if kind is not None:
        return TypeError(
            f"[dtype] real numbers are needed: got {kind.name}; complex values are made "
            "by tf.complex(real, imag), tf.constant or tf.cast, and tf.math.real, tf.math.imag and "
            "tf.abs take them apart."
        )
    near = did_you_mean(value, NAMES) if isinstance(value, str) else ""
    return TypeError(
        f"[dtype] dtype must be one of {', '.join(NAMES)}: got {shown(value)}; "
        + (near or "convert the data first, e.g. array.astype('float32').")
    )


class DType:
    """The dtype of a tensor's elements.

    Compares equal to its name, to NumPy's dtype and to itself.

    Attributes:
        name: As a string, e.g. "float32".

    Example:
        >>> import samegrad as tf
        >>> tf.float32 == "float32", tf.float32 == np.float32, tf.float32.size
        (True, True, 4)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if name not in NAMES:
            raise _unknown(name)
        self.name = name

    @property
    def _numpy(self) -> np.dtype[Any]:
        return numpy_dtype(self.name)

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """NumPy's scalar type; of bfloat16, that of the package `ml_dtypes`."""
        return self._numpy.type

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self._numpy.itemsize

    @property
    def is_floating(self) -> bool:
        """True for float16, bfloat16, float32 and float64."""
        return "float" in self.name

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers."""
        return "int" in self.name

    @property
    def is_unsigned(self) -> bool:
        """True for uint8, uint16, uint32 and uint64."""
        return self.name.startswith("uint")

    @property
    def is_bool(self) -> bool:
        """True for bool."""
        return self.name == "bool"

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.name.startswith("complex")

    @property
    def real_dtype(self) -> DType:
        """The type of the real and the imaginary part of a complex type; else the type itself."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def base_dtype(self) -> DType:
        """The type itself: variables have the type of their values."""
        return self

    @property
    def is_numeric(self) -> bool:
        """True for floats, integers and complex numbers."""
        return self.is_floating or self.is_integer or self.is_complex

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether another dtype is the same.

        Args:
            other: A dtype, or its name.

        Returns:
            True if it is.

        Example:
            >>> import samegrad as tf
            >>> tf.float32.is_compatible_with("float32"), tf.float32.is_compatible_with(tf.int32)
            (True, False)
        """
        return bool(self == any_dtype(other))

    @property
    def min(self) -> Any:
        """The smallest number of the dtype."""
        return self._limits.min

    @property
    def max(self) -> Any:
        """The largest number of the dtype."""
        return self._limits.max

    @property
    def _limits(self) -> Any:
        if self.name == "bfloat16":
            import ml_dtypes

            limits: Any = ml_dtypes.finfo
            return limits(self._numpy)
        return np.finfo(self._numpy) if self.is_floating else np.iinfo(self._numpy)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if not isinstance(other, str | type | np.dtype):
            return False
        if self.name == "bfloat16" and isinstance(other, str):
            return other == self.name
        try:
            return bool(self._numpy == np.dtype(other))
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"samegrad.{self.name}"


class _StringDType(DType):
    """The type of text, of which no tensor is made: `as_dtype` refuses it."""

    __slots__ = ()

    def __init__(self) -> None:
        self.name = "string"

    @property
    def _numpy(self) -> np.dtype[Any]:
        return np.dtype(object)

    @property
    def size(self) -> int:
        """1: of one letter."""
        return 1

    @property
    def _limits(self) -> Any:
        raise TypeError("[dtype] strings have no least and no greatest value.")

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other in ("string", "str"))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> str:
        return "string"


class _ComplexDType(DType):
    """The type of complex values, which are two tensors each: `as_dtype` refuses it."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _limits(self) -> Any:
        raise TypeError("[dtype] complex numbers have no least and no greatest one.")

    def __reduce__(self) -> str:
        return self.name


DTypeLike: TypeAlias = "DType | str | np.dtype[Any] | type[Any]"

float32 = DType("float32")
float64 = DType("float64")
float16 = half = DType("float16")
bfloat16 = DType("bfloat16")
int8 = DType("int8")
int16 = DType("int16")
int32 = DType("int32")
int64 = DType("int64")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = DType("uint32")
uint64 = DType("uint64")
bool_ = DType("bool")
string = _StringDType()
complex64 = _ComplexDType("complex64")
complex128 = _ComplexDType("complex128")

_BY_NAME = {
    t.name: t
    for t in (
        float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, bool_,
    )
}  # fmt: skip
# All but bfloat16, whose package is loaded where it is needed.
_BY_NUMPY = {np.dtype(name): t for name, t in _BY_NAME.items() if name != "bfloat16"}
_BY_PYTHON = {float: float32, int: int32, bool: bool_}
# TensorFlow's numbers of dtypes, which its users give by position: tf.zeros(1, 1).
BY_NUMBER = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128",
    19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
_COMPLEX_BY_NAME = {t.name: t for t in (complex64, complex128)}
_COMPLEX_BY_CHAR = {np.dtype(name).char: t for name, t in _COMPLEX_BY_NAME.items()}


def as_dtype(value: DTypeLike) -> DType:
    """Convert a name, a NumPy dtype or a Python type to a `DType` (float is float32).

    Raises:
        TypeError: samegrad has no such type.

    Example:
        >>> as_dtype("float64")
        samegrad.float64
    """
    if isinstance(value, DType):
        if value is string:
            raise TypeError(
                "[dtype] numbers are needed: got strings (tf.string); turn them into numbers with "
                "tf.strings.to_number or a lookup layer."
            )
        if value.is_complex:
            raise _unknown(value)
        return value
    if type(value) is str and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        dtype = np.dtype(value)
        if dtype in _BY_NUMPY:
            return _BY_NUMPY[dtype]
        name = dtype.name
    except (TypeError, ValueError):  # the latter of what has a dtype that NumPy does not know
        name = _name_of(value)
    if name not in _BY_NAME:
        raise _unknown(value)
    return _BY_NAME[name]


def complex_type(value: Any) -> DType | None:
    """Return the complex `DType` of a name, a NumPy dtype or a Python type; None for others.

    Example:
        >>> complex_type("complex64"), complex_type(complex), complex_type(float)
        (samegrad.complex64, samegrad.complex128, None)
    """
    if isinstance(value, DType):
        return value if value.is_complex else None
    if isinstance(value, str) or value is None:
        return _COMPLEX_BY_NAME.get(value or "")
    try:
        return _COMPLEX_BY_CHAR.get(np.dtype(value).char)  # whose name takes NumPy longer to make
    except (TypeError, ValueError):
        return _COMPLEX_BY_NAME.get(_name_of(value))


def _name_of(value: object) -> str:
    """Return the name of the dtype of a number, or the value as text."""
    return BY_NUMBER.get(value, str(value)) if type(value) is int else str(value)


def any_dtype(type_value: Any) -> DType:
    """Convert a name, a NumPy dtype or a Python type to a `DType`.

    Args:
        type_value: A name such as "float32", a NumPy dtype, a Python type or a `DType`.

    Returns:
        A `DType`.

    Raises:
        TypeError: samegrad lacks this dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.as_dtype("complex64"), tf.as_dtype(float)
        (samegrad.complex64, samegrad.float32)
    """
    return complex_type(type_value) or as_dtype(type_value)


def element_type(value: DTypeLike) -> DType:
    """Return the `DType` of elements of datasets: `as_dtype`, or `string`.

    Example:
        >>> element_type("string"), element_type(float)
        (samegrad.string, samegrad.float32)
    """
    if value is string or value is str or value is bytes or value is np.object_:
        return string
    if isinstance(value, str) and value in ("string", "str"):
        return string
    if isinstance(value, np.dtype) and value.kind in "OSU":
        return string
    return as_dtype(value)
