"""NumPy's functions on tensors, under the names of tf.experimental.numpy.

Dtypes are NumPy's: integers of Python are int64, its floats float64, and two dtypes have a common
one. The functions are those of `keras.ops.numpy`, which are loaded with the first of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import random as _random
from samegrad._base.dtypes import as_dtype
from samegrad._base.tree import flatten as _leaves
from samegrad._ops.arrays import cast
from samegrad._ops.arrays import reshape as _reshape
from samegrad._surface.missing_names import message
from samegrad._tensor.tensor import Tensor, convert_to_tensor

# Functions of arrays of real or complex numbers, whose integers become float64.
_OF_FLOATS = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "rad2deg",
    "reciprocal",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
# Functions of one array, whose dtype they keep, and other arguments.
_OF_ONE = [
    "abs",
    "absolute",
    "angle",
    "argsort",
    "bitwise_not",
    "clip",
    "conj",
    "conjugate",
    "copy",
    "count_nonzero",
    "diag",
    "diagflat",
    "diagonal",
    "diff",
    "expand_dims",
    "fabs",
    "flip",
    "fliplr",
    "flipud",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "logical_not",
    "moveaxis",
    "ndim",
    "negative",
    "nonzero",
    "pad",
    "ptp",
    "ravel",
    "real",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "round",
    "sign",
    "signbit",
    "size",
    "sort",
    "split",
    "hsplit",
    "vsplit",
    "dsplit",
    "square",
    "squeeze",
    "swapaxes",
    "take",
    "take_along_axis",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "vander",
    "broadcast_to",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
]
# Functions of two arrays, which get one dtype.
_OF_TWO = [
    "add",
    "allclose",
    "arctan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cross",
    "divide",
    "dot",
    "equal",
    "floor_divide",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "inner",
    "isclose",
    "kron",
    "lcm",
    "less",
    "less_equal",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "matmul",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nextafter",
    "not_equal",
    "outer",
    "power",
    "subtract",
    "tensordot",
    "true_divide",
    "vdot",
    "append",
]
_OF_FLOAT_PAIRS = {"arctan2", "divide", "heaviside", "hypot", "logaddexp", "logaddexp2",
                   "nextafter", "true_divide"}  # fmt: skip
_OF_LISTS = ["concatenate", "stack", "vstack", "hstack", "dstack", "meshgrid"]
_REDUCTIONS = [
    "all",
    "amax",
    "amin",
    "any",
    "max",
    "mean",
    "min",
    "nanmean",
    "nanprod",
    "nansum",
    "prod",
    "std",
    "sum",
    "var",
]
_MADE_BY_NUMPY = [
    "arange",
    "empty",
    "eye",
    "full",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "ones",
    "tri",
    "zeros",
]
_RENAMED = {
    "around": "round", "remainder": "mod", "flatten": "ravel", "asarray": "array",
    "asanyarray": "array", "ascontiguousarray": "array",
}  # fmt: skip
_CONSTANTS = [
    "bool_",
    "complex128",
    "complex64",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "inexact",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isscalar",
    "issubdtype",
    "newaxis",
    "object_",
    "pi",
    "promote_types",
    "result_type",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]


def _array(value: Any, dtype: Any = None) -> Tensor:
    """Return a value as a tensor, with the dtype that NumPy gives it."""
    parts = value if isinstance(value, list | tuple) else ()
    given = isinstance(value, Tensor) or hasattr(value, "_as_tensor")
    if given or any(isinstance(part, Tensor) for part in _leaves(parts)):
        found = convert_to_tensor(value)
    else:
        found = convert_to_tensor(np.asarray(value))
    return found if dtype is None else cast(found, as_dtype(dtype).name)


def _common(values: Any) -> list[Tensor]:
    """Return values as tensors of the dtype that NumPy gives them together."""
    scalars = [type(value) in (bool, int, float, complex) for value in values]
    found = [_array(value) for value in values]
    kinds = [
        value if scalar and not all(scalars) else np.empty((), as_dtype(tensor._dtype).name)
        for value, scalar, tensor in zip(values, scalars, found, strict=True)
    ]
    kind = np.result_type(*kinds).name
    return [cast(tensor, kind) for tensor in found]


def _as_float(x: Tensor) -> Tensor:
    kind = as_dtype(x._dtype)
    return cast(x, "float64") if kind.is_integer or kind.is_bool else x


def _reduced(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(
        a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = None
    ) -> Tensor:
        x = _array(a, dtype)
        kind = as_dtype(x._dtype)
        if name in ("mean", "nanmean", "std", "var"):
            x = _as_float(x)
        elif name in ("sum", "prod") and dtype is None and (kind.is_integer or kind.is_bool):
            x = cast(x, "uint64" if kind.name.startswith("uint") else "int64")
        return function(x, axis=axis, keepdims=bool(keepdims))  # type: ignore[no-any-return]

    return reduced


def _cumulated(function: Callable[..., Any]) -> Callable[..., Any]:
    def cumulated(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
        x = _array(a, dtype)
        kind = as_dtype(x._dtype)
        if dtype is None and kind.is_bool:
            x = cast(x, "int64")
        return function(x if axis is not None else _reshape(x, [-1]), 0 if axis is None else axis)  # type: ignore[no-any-return]

    return cumulated


def _made(name: str) -> Callable[..., Any]:
    function = getattr(np, "zeros" if name == "empty" else name)

    def made(*args: Any, **kwargs: Any) -> Tensor:
        return convert_to_tensor(function(*args, **kwargs))

    return made


def _adapted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Keras with the dtypes of NumPy."""
    if name in _REDUCTIONS:
        return _reduced(name, function)
    if name in ("cumsum", "cumprod"):
        return _cumulated(function)

    def adapted(*args: Any, **kwargs: Any) -> Any:
        if name in _OF_TWO:
            first = _common(args[:2])
            if name in _OF_FLOAT_PAIRS:
                first = [_as_float(x) for x in first]
            return function(*first, *args[2:], **kwargs)
        if name in _OF_LISTS:
            values = args if name == "meshgrid" else args[0]
            values = list(values) if isinstance(values, list | tuple) else [*_array(values)]
            parts = _common(values)
            return function(*parts, **kwargs) if name == "meshgrid" else function(
                parts, *args[1:], **kwargs)  # fmt: skip
        x = _array(args[0])
        if name in ("argmax", "argmin", "argsort", "count_nonzero"):
            return cast(function(x, *args[1:], **kwargs), "int64")
        if name == "nonzero":
            return tuple(cast(places, "int64") for places in function(x))
        return function(_as_float(x) if name in _OF_FLOATS else x, *args[1:], **kwargs)

    return adapted


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Convert a value to a tensor, with the dtype that NumPy gives it.

    Args:
        val: A tensor, an array, a number, or lists of them.
        dtype: The dtype of the result; None: that of NumPy.
        copy: Ignored: tensors never change.
        ndmin: The least number of axes; new ones are the first.

    Returns:
        A tensor.

    Example:
        >>> array([1, 2], ndmin=2).numpy(), array(1.5).dtype
        (array([[1, 2]]), samegrad.float64)
    """
    x = _array(val, dtype)
    missing = max(ndmin - x._rank, 0)
    return _reshape(x, [*[1] * missing, *x.shape]) if missing else x


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Choose elements of two arrays, or find the indices of true elements.

    Args:
        condition: A bool array.
        x: The values where it is true.
        y: The values where it is false.

    Returns:
        A tensor; without values a tuple with the indices along each axis.

    Example:
        >>> where([True, False], [1, 2], 0.5).numpy()
        array([1. , 0.5])
    """
    chosen = cast(_array(condition), "bool")
    if x is None and y is None:
        return _function("nonzero")(chosen)
    return _function("where")(chosen, *_common([x, y]))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Compute Einstein's sum of products.

    Args:
        subscripts: The axes of operands and result, as "ij,jk->ik".
        *operands: Arrays.
        **kwargs: Ignored.

    Returns:
        A tensor.
    """
    return _keras().einsum(subscripts, *_common(operands))  # type: ignore[no-any-return]


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Compute a weighted mean.

    Args:
        a: An array.
        axis: The axis; None: all.
        weights: The weights; None: 1.
        returned: Return the sum of the weights as well.

    Returns:
        A tensor, or a pair of them.
    """
    if weights is None:
        mean = _function("mean")(a, axis)
        count = _array(a).shape.num_elements() / max(mean.shape.num_elements(), 1)
        return (mean, _array(float(count))) if returned else mean
    x, factor = (_as_float(part) for part in _common([a, weights]))
    found = _keras().average(x, axis=axis, weights=factor)
    return (found, _function("sum")(factor, axis)) if returned else found


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Test whether two arrays have the same shape and elements.

    Args:
        a1: An array.
        a2: An array.

    Returns:
        A bool scalar.
    """
    one, other = _common([a1, a2])
    if tuple(one._shape) != tuple(other._shape):
        return convert_to_tensor(False)
    return _function("all")(one == other)  # type: ignore[no-any-return]


def atleast_1d(*arys: Any) -> Any:
    """Give arrays at least one axis.

    Args:
        *arys: Arrays.

    Returns:
        A tensor, or a list of them.
    """
    made = [array(each, ndmin=1) for each in arys]
    return made[0] if len(made) == 1 else made


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of an array.

    Args:
        a: An array.

    Returns:
        A tuple.
    """
    return tuple(_array(a).shape)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give tensors NumPy's methods: `astype`, `reshape`, `ravel`, `transpose`, `T`, `tolist`, ...

    Operators between dtypes are refused as before: use `astype`.

    Args:
        prefer_float32: Must be False.
        dtype_conversion_mode: "legacy".

    Raises:
        ValueError: Another conversion is asked for.
    """
    if prefer_float32 or dtype_conversion_mode != "legacy":
        raise ValueError(
            "[experimental_enable_numpy_behavior] dtypes are NumPy's: got prefer_float32="
            f"{prefer_float32} and dtype_conversion_mode={dtype_conversion_mode!r}; leave both out."
        )
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)


def _of_shape(x: Tensor, *sizes: Any) -> Tensor:
    return _reshape(x, sizes[0] if len(sizes) == 1 else sizes)


def _with_axes(x: Tensor, *axes: Any) -> Tensor:
    order = axes[0] if len(axes) == 1 else axes or None
    return _function("transpose")(x, order)  # type: ignore[no-any-return]


def _method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: _function(name)(x, *args, **kwargs)


_METHODS: dict[str, Any] = {
    "T": property(lambda x: _with_axes(x)),
    "astype": lambda x, dtype: _array(x, dtype),
    "reshape": _of_shape,
    "size": property(lambda x: _array(x.shape.num_elements())),
    "tolist": lambda x: x.numpy().tolist(),
    "transpose": _with_axes,
    "data": property(lambda x: x),
    **{name: _method(name) for name in ("clip", "max", "mean", "min", "ravel")},
}


def _sample(size: Any, draw: Callable[[list[int]], Tensor]) -> Tensor:
    sizes = [] if size is None else [size] if isinstance(size, int) else list(size)
    return draw(sizes)


class _Draws(types.ModuleType):
    """`tf.experimental.numpy.random`."""

    @staticmethod
    def seed(s: int) -> None:
        """Set the global seed."""
        _random.set_seed(s)

    @staticmethod
    def rand(*size: int) -> Tensor:
        """Sample uniformly from [0, 1): float64."""
        return _random.uniform(size, dtype="float64")

    @staticmethod
    def random(size: Any = None) -> Tensor:
        """Sample uniformly from [0, 1): float64."""
        return _sample(size, lambda sizes: _random.uniform(sizes, dtype="float64"))

    @staticmethod
    def randn(*args: int) -> Tensor:
        """Sample from the standard normal distribution: float64."""
        return _random.normal(args, dtype="float64")

    @staticmethod
    def standard_normal(size: Any = None) -> Tensor:
        """Sample from the standard normal distribution: float64."""
        return _sample(size, lambda sizes: _random.normal(sizes, dtype="float64"))

    @staticmethod
    def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Sample from a normal distribution: float64."""
        drawn = _sample(size, lambda sizes: _random.normal(sizes, dtype="float64"))
        return drawn * _array(scale, "float64") + _array(loc, "float64")

    @staticmethod
    def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
        """Sample uniformly from [low, high): float64."""
        drawn = _sample(size, lambda sizes: _random.uniform(sizes, dtype="float64"))
        first = _array(low, "float64")
        return drawn * (_array(high, "float64") - first) + first

    @staticmethod
    def randint(
        low: int, high: int | None = None, size: Any = None, dtype: Any = "int64"
    ) -> Tensor:
        """Sample integers from [low, high), or from [0, low)."""
        ends = (0, low) if high is None else (low, high)
        drawn = _sample(size, lambda sizes: _random.uniform(sizes, *ends, dtype="int64"))
        return cast(drawn, as_dtype(dtype).name)


random = sys.modules[f"{__name__}.random"] = _Draws(f"{__name__}.random", _Draws.__doc__)
ndarray = Tensor
_OWN = [
    "array",
    "array_equal",
    "atleast_1d",
    "average",
    "einsum",
    "experimental_enable_numpy_behavior",
    "ndarray",
    "random",
    "shape",
    "where",
]


@functools.cache
def _keras() -> types.ModuleType:
    importlib.import_module("samegrad.keras")
    return importlib.import_module("samegrad._keras.numpy")


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    name = _RENAMED.get(name, name)
    if name == "array":
        return array
    if name in _MADE_BY_NUMPY:
        return _made(name)
    return _adapted(name, getattr(_keras(), name))


__all__ = sorted({
    *_OWN, *_RENAMED, *_CONSTANTS, *_OF_FLOATS, *_OF_ONE, *_OF_TWO, *_OF_LISTS, *_REDUCTIONS,
    *_MADE_BY_NUMPY, "argmax", "argmin", "cumprod", "cumsum",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _CONSTANTS:
        return getattr(np, name)
    if name in __all__:
        return _function(name)
    raise AttributeError(message(__name__, name), name=None, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return __all__
