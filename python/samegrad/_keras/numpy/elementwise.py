"""Functions of each element of one tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.variables import standardize_dtype

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import constant, float_of, is_float, known, made, not_bool
from samegrad._ops.elementary import LOG_2, LOG_10
from samegrad._tensor.complex_tensor import is_complex
from samegrad._tensor.tensor import Tensor


def absolute(x: Any) -> Tensor:
    """The absolute value; bools and unsigned numbers stay as they are."""
    x = convert_to_tensor(x)
    return x if x._dtype == "bool" or x._dtype.startswith("uint") else tf.abs(x)


def abs(x: Any) -> Tensor:
    """The absolute value."""
    return absolute(x)


def fabs(x: Any) -> Tensor:
    """The absolute value as a float."""
    return tf.abs(float_of(x))


def negative(x: Any) -> Tensor:
    """-x; of unsigned numbers what wraps around."""
    x = convert_to_tensor(x)
    return tf.zeros_like(x) - x if x._dtype.startswith("uint") else tf.negative(x)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1 of each element."""
    x = convert_to_tensor(x)
    if not x._dtype.startswith("uint"):
        return tf.sign(x)
    return tf.cast(tf.not_equal(x, tf.zeros_like(x)), x._dtype)


def signbit(x: Any) -> Tensor:
    """Tell if the sign is a minus, including that of -0.0."""
    x = not_bool(x)
    zero = tf.zeros_like(x)
    if not is_float(x):
        return tf.less(x, zero)
    return tf.less(x, zero) | (tf.equal(x, zero) & tf.less(1.0 / x, zero))


def square(x: Any) -> Tensor:
    """x² of each element."""
    return tf.square(not_bool(x))


def sqrt(x: Any) -> Tensor:
    """The square root."""
    return tf.sqrt(float_of(x))


def cbrt(x: Any) -> Tensor:
    """Compute the cube root, including that of negative numbers."""
    x = float_of(x, wide=True)
    return tf.sign(x) * tf.pow(tf.abs(x), 1.0 / 3.0)


def reciprocal(x: Any) -> Tensor:
    """1 / x."""
    return tf.math.reciprocal(float_of(x))


def exp(x: Any) -> Tensor:
    """E to the power x."""
    return tf.exp(float_of(x))


def exp2(x: Any) -> Tensor:
    """2 to the power x."""
    x = float_of(x)
    return tf.pow(constant(2.0, x), x)


def expm1(x: Any) -> Tensor:
    """exp(x) - 1, exact near 0."""
    return tf.math.expm1(float_of(x))


def log(x: Any) -> Tensor:
    """The natural logarithm."""
    return tf.math.log(float_of(x))


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return tf.math.log(float_of(x)) / LOG_10


def log1p(x: Any) -> Tensor:
    """log(1 + x), exact near 0."""
    return tf.math.log1p(float_of(x))


def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
    return tf.math.log(float_of(x)) / LOG_2


def sin(x: Any) -> Tensor:
    """The sine of an angle in radians."""
    return tf.sin(float_of(x))


def cos(x: Any) -> Tensor:
    """The cosine of an angle in radians."""
    return tf.cos(float_of(x))


def tan(x: Any) -> Tensor:
    """The tangent of an angle in radians."""
    return tf.tan(float_of(x))


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    return tf.sinh(float_of(x))


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    return tf.cosh(float_of(x))


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return tf.tanh(float_of(x))


def arcsin(x: Any) -> Tensor:
    """The angle in [-π/2, π/2] whose sine is x."""
    return tf.asin(float_of(x))


def arccos(x: Any) -> Tensor:
    """The angle in [0, π] whose cosine is x."""
    return tf.acos(float_of(x))


def arctan(x: Any) -> Tensor:
    """The angle in (-π/2, π/2) whose tangent is x."""
    return tf.atan(float_of(x))


def arcsinh(x: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return tf.asinh(float_of(x))


def arccosh(x: Any) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    return tf.acosh(float_of(x))


def arctanh(x: Any) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return tf.atanh(float_of(x))


def sinc(x: Any) -> Tensor:
    """sin(πx) / πx, and 1 at 0."""
    x = float_of(x)
    at_zero = tf.equal(x, tf.zeros_like(x))
    angle = tf.where(at_zero, tf.ones_like(x), x * math.pi)
    series = 1.0 - tf.square(x * math.pi) * (1.0 / 6.0)  # for its derivatives at 0
    return tf.where(at_zero, series, tf.sin(angle) / angle)


def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
    return float_of(x, wide=True) * (math.pi / 180.0)


def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
    return float_of(x, wide=True) * (180.0 / math.pi)


def angle(x: Any) -> Tensor:
    """The angle of a number in the complex plane: of real ones 0, and π of negative ones."""
    return tf.math.angle(x if is_complex(x) else float_of(x))


def real(x: Any) -> Tensor:
    """The real part: a real number itself."""
    return tf.math.real(x if is_complex(x) else convert_to_tensor(x))


def imag(x: Any) -> Tensor:
    """The imaginary part: 0 of real numbers."""
    return tf.math.imag(x) if is_complex(x) else tf.zeros_like(convert_to_tensor(x))


def conjugate(x: Any) -> Tensor:
    """The complex conjugate: a real number itself."""
    return tf.math.conj(x if is_complex(x) else convert_to_tensor(x))  # type: ignore[no-any-return]


def conj(x: Any) -> Tensor:
    """The complex conjugate: a real number itself."""
    return conjugate(x)


def copy(x: Any) -> Tensor:
    """The same values."""
    return tf.identity(convert_to_tensor(x))


def ceil(x: Any) -> Tensor:
    """Round up to an integer, as a float."""
    return tf.math.ceil(float_of(x))


def floor(x: Any) -> Tensor:
    """Round down to an integer, as a float."""
    return tf.floor(float_of(x))


def trunc(x: Any) -> Tensor:
    """Round towards 0 to an integer."""
    tensor = convert_to_tensor(x)
    if not is_float(tensor):
        return tensor
    return tf.where(tf.less(tensor, tf.zeros_like(tensor)), tf.math.ceil(tensor), tf.floor(tensor))


def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest number with so many decimals; halves go to the even one.

    Args:
        x: Numbers; whole ones stay as they are unless `decimals` is negative.
        decimals: Negative: places before the point.
    """
    tensor = convert_to_tensor(x)
    if is_float(tensor) and decimals == 0:
        return tf.round(tensor)
    if not is_float(tensor) and decimals >= 0:
        return tensor
    factor = float(f"1e{int(decimals)}")
    return tf.cast(tf.round(float_of(tensor) * factor) / factor, tensor._dtype)


def nan_to_num(
    x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """The numbers, with others for NaN and the infinities.

    Args:
        x: Numbers.
        nan: For NaN.
        posinf: For infinity; None: the largest number.
        neginf: For minus infinity; None: the least number.
    """
    tensor = convert_to_tensor(x)
    if not is_float(tensor):
        return tensor
    limits = tf.as_dtype(tensor._dtype)
    most = float(limits.max) if posinf is None else posinf
    least = float(limits.min) if neginf is None else neginf
    zero = tf.zeros_like(tensor)
    tensor = tf.where(tf.math.is_nan(tensor), constant(nan, tensor), tensor)
    tensor = tf.where(
        tf.math.is_inf(tensor) & tf.greater(tensor, zero), constant(most, tensor), tensor
    )
    return tf.where(tf.math.is_inf(tensor) & tf.less(tensor, zero), constant(least, tensor), tensor)


def isfinite(x: Any) -> Tensor:
    """Tell if each element is neither infinite nor NaN."""
    x = convert_to_tensor(x)
    return tf.math.is_finite(x) if is_float(x) else tf.ones_like(x, "bool")


def isinf(x: Any) -> Tensor:
    """Tell if each element is infinite."""
    x = convert_to_tensor(x)
    return tf.math.is_inf(x) if is_float(x) else tf.zeros_like(x, "bool")


def isnan(x: Any) -> Tensor:
    """Tell if each element is NaN."""
    x = convert_to_tensor(x)
    return tf.math.is_nan(x) if is_float(x) else tf.zeros_like(x, "bool")


def isposinf(x: Any) -> Tensor:
    """Tell if each element is infinity."""
    x = convert_to_tensor(x)
    return tf.equal(x, constant(math.inf, x)) if is_float(x) else tf.zeros_like(x, "bool")


def isneginf(x: Any) -> Tensor:
    """Tell if each element is minus infinity."""
    x = convert_to_tensor(x)
    return tf.equal(x, constant(-math.inf, x)) if is_float(x) else tf.zeros_like(x, "bool")


def isreal(x: Any) -> Tensor:
    """Tell if each element is real: all are."""
    return tf.ones_like(convert_to_tensor(x), "bool")


def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind and order 0."""
    x = float_of(x, wide=True)
    return tf.cast(tf.math.bessel_i0(tf.cast(x, result_type(x._dtype, "float32"))), x._dtype)


def view(x: Any, dtype: Any = None) -> Tensor:
    """The bytes of the elements as another dtype; the last axis has as many bytes as before.

    Raises:
        ValueError: The bytes of the last axis are not those of whole elements.
        TypeError: In a traced function, with another dtype.
    """
    tensor = convert_to_tensor(x)
    wanted = tf.as_dtype(tensor._dtype if dtype is None else standardize_dtype(dtype))
    if wanted.name == tensor._dtype:
        return tensor
    values = np.ascontiguousarray(known("view", tensor))
    size = values.itemsize
    fits = wanted.size == size or (values.ndim and values.shape[-1] * size % wanted.size == 0)
    if not fits:
        raise ValueError(
            f"[keras.ops.view] the bytes of the last axis must be those of whole elements: got "
            f"shape {tuple(tensor.shape)} of {tensor._dtype} for {wanted.name}."
        )
    return made(values.reshape(tensor.shape).view(wanted.as_numpy_dtype), wanted.name)
