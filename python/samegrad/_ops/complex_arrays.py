"""Functions that move, select and create elements, for complex tensors as well.

A complex tensor is computed as its real and its imaginary part.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from samegrad import _core
from samegrad._base.dtypes import DType, complex_type
from samegrad._ops import arrays, contractions, creation, more_arrays, sequences, text_arrays
from samegrad._tensor import conversion
from samegrad._tensor import given as _given
from samegrad._tensor.complex_calls import (
    all_complex,
    also_complex,
    bilinear,
    in_place_of,
    linear,
    linear_of_list,
    linear_to_list,
)
from samegrad._tensor.complex_tensor import (
    ComplexTensor,
    complex_pair,
    is_complex,
    of_each_part,
    of_parts,
    own,
    product_of,
    to_complex,
)
from samegrad._tensor.composite import Composite
from samegrad._tensor.tensor import Tensor, TensorLike

_Function = TypeVar("_Function", bound=Callable[..., Any])
_ops = _core.ops

# Part by part.
reshape, expand_dims = linear(text_arrays.reshape), linear(text_arrays.expand_dims)
squeeze, identity = linear(text_arrays.squeeze), linear(text_arrays.identity)
tile, repeat = linear(text_arrays.tile), linear(text_arrays.repeat)
reverse, broadcast_to = linear(text_arrays.reverse), linear(text_arrays.broadcast_to)
gather, gather_nd = linear(text_arrays.gather), linear(text_arrays.gather_nd)
boolean_mask = linear(text_arrays.boolean_mask)
stop_gradient, roll = linear(arrays.stop_gradient), linear(sequences.roll)
slice_, strided_slice = linear(more_arrays.slice_), linear(more_arrays.strided_slice)
ensure_shape = linear(more_arrays.ensure_shape)
split, unstack = linear_to_list(text_arrays.split), linear_to_list(text_arrays.unstack)
concat, stack = linear_of_list(text_arrays.concat), linear_of_list(text_arrays.stack)
tensordot = bilinear(contractions.tensordot)


def _of_real(function: _Function) -> _Function:
    """Wrap a function that depends on the shape alone: it reads the real part."""

    def rule(value: Any, **options: Any) -> Any:
        return function(to_complex(value, function.__name__).real, **options)

    return also_complex(function, rule)


shape, size = _of_real(text_arrays.shape), _of_real(text_arrays.size)
rank = _of_real(text_arrays.rank)


def conjugate(value: ComplexTensor) -> ComplexTensor:
    """Return the imaginary part with the other sign."""
    return ComplexTensor(own(value.real), _ops.neg(value.imag))


def _transpose(a: Any, perm: Any = None, conjugate: bool = False) -> ComplexTensor:
    moved = of_each_part(lambda part: arrays.transpose(part, perm), to_complex(a, "transpose"))
    return ComplexTensor(moved.real, _ops.neg(moved.imag)) if conjugate else moved


transpose = also_complex(text_arrays.transpose, _transpose)


def _matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, **sparse: bool,
) -> ComplexTensor:  # fmt: skip
    x, y = complex_pair(a, b, "matmul")
    x, y = (conjugate(z) if adjoint else z for z, adjoint in ((x, adjoint_a), (y, adjoint_b)))
    a_turned, b_turned = transpose_a or adjoint_a, transpose_b or adjoint_b
    made: ComplexTensor = product_of(lambda p, q: arrays.matmul(p, q, a_turned, b_turned), x, y)
    return made


matmul = also_complex(arrays.matmul, _matmul, 2)


@in_place_of(contractions.einsum)
def einsum(equation: str, *inputs: TensorLike, **kwargs: Any) -> Any:
    if not any(type(x) is not Tensor and is_complex(x) for x in inputs):
        return contractions.einsum(equation, *inputs, **kwargs)
    operands = all_complex(inputs, "einsum")
    if len(operands) == 1:
        return of_each_part(lambda x: contractions.einsum(equation, x), operands[0])
    if len(operands) > 2:
        raise NotImplementedError(
            f"[einsum] complex operands are one or two: got {len(operands)}; take the product of "
            "two, and then of its result."
        )
    return product_of(lambda x, y: contractions.einsum(equation, x, y), *operands)


def _pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    found = to_complex(tensor, "pad")
    fill = to_complex(constant_values, "pad", found.dtype)
    parts = zip(found.parts, fill.parts, strict=True)
    return ComplexTensor(*(
        text_arrays.pad(part, paddings, mode, float(value)) for part, value in parts
    ))  # fmt: skip


pad = also_complex(text_arrays.pad, _pad)


@in_place_of(text_arrays.where)
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if not (is_complex(x) or is_complex(y)) or x is None or y is None:
        return text_arrays.where(condition, x, y, name)
    a, b = complex_pair(x, y, "where")
    columns = zip(a.parts, b.parts, strict=True)
    return ComplexTensor(*(arrays.where(condition, *parts) for parts in columns))


def cast(x: TensorLike, dtype: Any, name: str | None = None) -> Tensor:
    """Cast a tensor to another dtype.

    Floats are truncated towards zero when they become integers. Complex numbers lose their
    imaginary part when they become real numbers.

    Args:
        x: A tensor of any numeric dtype, or bools.
        dtype: The new dtype.
        name: Ignored.

    Returns:
        A tensor of the shape of `x` and the dtype `dtype`.

    Example:
        >>> cast([1.9], "int32").numpy()
        array([1], dtype=int32)
        >>> cast([1.5], "complex64").numpy()
        array([1.5+0.j], dtype=complex64)
    """
    wanted = complex_type(dtype)
    if wanted is None:
        given = own(to_complex(x, "cast").real) if _is_complex(x) else x
        return arrays.cast(given, dtype)
    kind = wanted.real_dtype
    if _is_complex(x):
        made: Any = of_each_part(lambda part: arrays.cast(part, kind), to_complex(x, "cast"))
    else:
        real = own(arrays.cast(x, kind))
        made = ComplexTensor(real, creation.zeros_like(real))
    return made  # type: ignore[no-any-return]


def _is_complex(value: Any) -> bool:
    return type(value) is not Tensor and is_complex(value)


def complex_(real: TensorLike, imag: TensorLike, name: str | None = None) -> Any:
    """Build a complex tensor of a real and an imaginary part, which broadcast.

    Args:
        real: The real part, float32 or float64.
        imag: The imaginary part, of the same dtype.
        name: Ignored.

    Returns:
        A complex64 tensor of float32 parts, a complex128 tensor of float64 parts.

    Raises:
        TypeError: The parts are not both float32 or both float64.

    Example:
        >>> import samegrad as tf
        >>> tf.complex([1.0, 2.0], [0.0, 0.5]).numpy()
        array([1.+0.j , 2.+0.5j], dtype=complex64)
    """
    return of_parts(real, imag, "complex")


def _filled(function: _Function) -> _Function:
    """Return zeros and ones: a complex dtype is one of two tensors."""
    signature = inspect.signature(function)

    @in_place_of(function)
    def either(*args: Any, **options: Any) -> Any:
        # Nearly all programs leave the dtype out, or have it as the second argument.
        dtype = complex_type(options.get("dtype", args[1] if len(args) > 1 else None))
        if dtype is None:
            return function(*args, **options)
        bound = signature.bind(*args, **options).arguments
        real = function(**{**bound, "dtype": dtype.real_dtype})
        return ComplexTensor(real, creation.zeros_like(real))

    return either


def _like(function: _Function) -> _Function:
    """Wrap zeros_like or ones_like."""
    who = function.__name__

    @in_place_of(function)
    def either(input: Any, dtype: Any = None, name: str | None = None) -> Any:
        wanted = None if dtype is None else complex_type(dtype)
        if wanted is None and not _is_complex(input):
            return function(input, dtype, name)
        of = to_complex(input, who).real if _is_complex(input) else input
        if dtype is not None and wanted is None:
            return function(of, dtype)
        real = function(of, None if wanted is None else wanted.real_dtype)
        return ComplexTensor(real, creation.zeros_like(real))

    return either


zeros, ones = _filled(text_arrays.zeros), _filled(creation.ones)
zeros_like, ones_like = _like(text_arrays.zeros_like), _like(creation.ones_like)


@in_place_of(creation.eye)
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = "float32",
    name: str | None = None,
) -> Any:  # fmt: skip
    wanted = complex_type(dtype)
    if wanted is None:
        return creation.eye(num_rows, num_columns, batch_shape, dtype)
    real = creation.eye(num_rows, num_columns, batch_shape, wanted.real_dtype)
    return ComplexTensor(real, creation.zeros_like(real))


@in_place_of(text_arrays.fill)
def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    if not _is_complex(value):
        return text_arrays.fill(dims, value, name)
    return of_each_part(lambda part: creation.fill(dims, part), to_complex(value, "fill"))


def _wanted(value: Any, dtype: Any) -> DType | None:
    """Return the complex dtype that the value has, or is to have."""
    if dtype is not None:
        return complex_type(dtype)
    return to_complex(value, "convert_to_tensor").dtype if _is_complex(value) else None


def _of_list(as_real: Callable[[], Any], as_complex: Callable[[], Any], value: Any) -> Any:
    """Convert a list as real numbers, and as complex ones only if that fails.

    Most lists hold no complex numbers, and converting them shows it.
    """
    try:
        return as_real()
    except (TypeError, ValueError):
        if not is_complex(value):
            raise
    return as_complex()


@in_place_of(_given.convert_to_tensor)
def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Any:
    if dtype is None and type(value) in (list, tuple):
        return _of_list(lambda: _given.convert_to_tensor(value, None, dtype_hint),
                        lambda: to_complex(value, "convert_to_tensor"), value)  # fmt: skip
    wanted = _wanted(value, dtype)
    if wanted is None:
        return _given.convert_to_tensor(value, dtype, dtype_hint)
    return to_complex(value, "convert_to_tensor", wanted)


@in_place_of(_given.constant)
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    if dtype is None and type(value) in (list, tuple):
        return _of_list(lambda: _given.constant(value, None, shape),
                        lambda: _constant(value, None, shape), value)  # fmt: skip
    wanted = _wanted(value, dtype)
    if wanted is None:
        return _given.constant(value, dtype, shape)
    return _constant(value, wanted, shape)


def _constant(value: Any, wanted: DType | None, shape: Any) -> ComplexTensor:
    made = to_complex(value, "constant", wanted)
    if shape is None:
        return made
    return of_each_part(lambda part: conversion.constant(part, shape=shape), made)


def is_tensor(x: object) -> bool:
    """Return True for a tensor (also complex, string, sparse or ragged) or a variable.

    Args:
        x: Any object.

    Returns:
        A bool.

    Example:
        >>> import samegrad as tf
        >>> tf.is_tensor(tf.constant(1.0)), tf.is_tensor(tf.constant("a")), tf.is_tensor(1.0)
        (True, True, False)
    """
    return isinstance(x, ComplexTensor | Composite) or _given.is_tensor(x)
