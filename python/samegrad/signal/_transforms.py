"""Fourier transforms of tensors, under TensorFlow's names and with its sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops import complex_arrays
from samegrad._tensor.complex_tensor import ComplexTensor, is_complex, to_complex
from samegrad._tensor.conversion import number
from samegrad._tensor.sizes import sizes_of, whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, is_tensor
from samegrad.signal._fourier import (
    Pair,
    inverse_real_transform,
    of_length,
    real_transform,
    transform,
)

_ops = _core.ops


def real_numbers(value: TensorLike, who: str, least: int = 1) -> Tensor:
    """Return a tensor of float32 or float64 with so many axes at least.

    Raises:
        ValueError: It is of another type, or has fewer axes.
    """
    x = convert_to_tensor(value, dtype_hint="float32")
    if x._dtype not in ("float32", "float64"):
        raise ValueError(
            f"[{who}] float32 or float64 is needed: got {x._dtype} of shape {x._shape}; use "
            "samegrad.cast."
        )
    _check_axes(x, who, least)
    return x


def complex_numbers(value: Any, who: str, least: int = 1) -> ComplexTensor:
    """Return a complex tensor with so many axes at least.

    Raises:
        InvalidArgumentError: It is a real tensor, or has fewer axes.
    """
    if not is_complex(value) and isinstance(value, list | tuple) and not any(map(is_tensor, value)):
        value = complex_arrays.cast(convert_to_tensor(value, dtype_hint="float32"), "complex64")
    z = to_complex(value, who)
    _check_axes(z, who, least)
    return z


def _check_axes(x: Tensor | ComplexTensor, who: str, least: int) -> None:
    if x._rank < least:
        raise InvalidArgumentError(
            f"[{who}] a tensor with {least} or more axes is needed: got shape {x._shape}."
        )


def _lengths(given: Any, default: Sequence[int], who: str) -> list[int]:
    """Return the sizes of the axes that are transformed."""
    if given is None:
        return list(default)
    lengths = [whole(n) for n in sizes_of(given)]
    if len(lengths) != len(default) or min(lengths) < 0:
        raise InvalidArgumentError(
            f"[{who}] fft_length must be a list of sizes, as many as axes are transformed "
            f"({len(default)}): got {shown(given)}."
        )
    return lengths


def _along(pair: Pair, axis: int, change: Callable[[Tensor, Tensor], Pair]) -> Pair:
    """Return a change of the last axis, of another one (counted from the end)."""
    if axis == -1:
        return change(*pair)
    real, imag = change(*(_with_last(part, axis) for part in pair))
    return _with_last(real, axis), _with_last(imag, axis)


def _with_last(x: Tensor, axis: int) -> Tensor:
    """Return the tensor with one axis and the last one in each other's places."""
    order = list(range(x._rank))
    order[axis], order[-1] = order[-1], order[axis]
    return _ops.transpose(x, perm=order)


def _forward(a: Tensor, b: Tensor) -> Pair:
    return (a, b) if a.shape[-1] == 0 else transform(a, b, -1)


def _backward(a: Tensor, b: Tensor) -> Pair:
    size = int(a.shape[-1])
    if not size:
        return a, b
    real, imag = transform(a, b, 1)
    count = number(float(size), a._dtype)
    return _ops.div(real, count), _ops.div(imag, count)


def _of_complex(value: Any, who: str, axes: int, change: Callable[[Tensor, Tensor], Pair]) -> Any:
    pair: Pair = complex_numbers(value, who, axes).parts
    for axis in range(-1, -axes - 1, -1):
        pair = _along(pair, axis, change)
    return ComplexTensor(*pair)


def _of_real(value: TensorLike, who: str, axes: int, fft_length: Any) -> Any:
    x = real_numbers(value, who, axes)
    lengths = _lengths(fft_length, [int(n) for n in x.shape[-axes:]], who)
    for axis, length in zip(range(-axes, 0), lengths, strict=True):
        x = of_length(x, length, axis)
    pair = (x, _ops.full_like(x, value=0.0)) if lengths[-1] == 0 else real_transform(x)
    for axis in range(-2, -axes - 1, -1):
        pair = _along(pair, axis, _forward)
    return ComplexTensor(*pair)


def _to_real(value: Any, who: str, axes: int, fft_length: Any) -> Tensor:
    z = complex_numbers(value, who, axes)
    sizes = [int(n) for n in z.shape[-axes:]]
    lengths = _lengths(fft_length, [*sizes[:-1], max(0, 2 * (sizes[-1] - 1))], who)
    kept = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
    real, imag = z.parts
    for axis, length in zip(range(-axes, 0), kept, strict=True):
        real, imag = of_length(real, length, axis), of_length(imag, length, axis)
    pair: Pair = real, imag
    for axis in range(-2, -axes - 1, -1):
        pair = _along(pair, axis, _backward)
    if not lengths[-1]:
        return pair[0]
    found: Tensor = inverse_real_transform(*pair, lengths[-1]) / float(lengths[-1])
    return found


def fft(input: TensorLike, name: str | None = None) -> Any:
    """Compute the discrete Fourier transform along the last axis: Σ x[n] exp(-2πi k n / size).

    Args:
        input: A complex64 or complex128 tensor of shape [..., size].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has no axis.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.fft(tf.constant([1.0, 2.0, 3.0], tf.complex64)).numpy().round(2)
        array([ 6. +0.j  , -1.5+0.87j, -1.5-0.87j], dtype=complex64)
    """
    return _of_complex(input, "fft", 1, _forward)


def ifft(input: TensorLike, name: str | None = None) -> Any:
    """Compute the inverse discrete Fourier transform: Σ x[k] exp(2πi k n / size) / size.

    Args:
        input: A complex64 or complex128 tensor of shape [..., size].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has no axis.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.ifft(tf.constant([6.0, 0.0], tf.complex64)).numpy()
        array([3.+0.j, 3.+0.j], dtype=complex64)
    """
    return _of_complex(input, "ifft", 1, _backward)


def fft2d(input: TensorLike, name: str | None = None) -> Any:
    """Compute `fft` along the last two axes.

    Args:
        input: A complex64 or complex128 tensor of shape [..., height, width].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has fewer axes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.fft2d(tf.ones([2, 2], tf.complex64)).numpy().real.tolist()
        [[4.0, 0.0], [0.0, 0.0]]
    """
    return _of_complex(input, "fft2d", 2, _forward)


def ifft2d(input: TensorLike, name: str | None = None) -> Any:
    """Compute the inverse of `fft2d`.

    Args:
        input: A complex64 or complex128 tensor of shape [..., height, width].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has fewer axes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.ifft2d(tf.ones([2, 2], tf.complex64)).numpy().real.tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    return _of_complex(input, "ifft2d", 2, _backward)


def fft3d(input: TensorLike, name: str | None = None) -> Any:
    """Compute `fft` along the last three axes.

    Args:
        input: A complex64 or complex128 tensor of shape [..., depth, height, width].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has fewer axes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.fft3d(tf.ones([1, 1, 2], tf.complex64)).numpy().real.tolist()
        [[[2.0, 0.0]]]
    """
    return _of_complex(input, "fft3d", 3, _forward)


def ifft3d(input: TensorLike, name: str | None = None) -> Any:
    """Compute the inverse of `fft3d`.

    Args:
        input: A complex64 or complex128 tensor of shape [..., depth, height, width].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: The tensor is real, or has fewer axes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.ifft3d(tf.ones([1, 1, 2], tf.complex64)).numpy().real.tolist()
        [[[1.0, 0.0]]]
    """
    return _of_complex(input, "ifft3d", 3, _backward)


def rfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """Compute the first half of the Fourier transform of a real signal; the other half mirrors it.

    Args:
        input_tensor: A float32 or float64 tensor of shape [..., size].
        fft_length: [length], to which the axis is cropped or zero-padded; None: its size.
        name: Ignored.

    Returns:
        A complex64 or complex128 tensor [..., length // 2 + 1].

    Raises:
        ValueError: The tensor is not of floats, or fft_length is not one size.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.rfft([1.0, 2.0, 3.0, 2.0]).numpy()
        array([ 8.+0.j, -2.+0.j,  0.+0.j], dtype=complex64)
    """
    return _of_real(input_tensor, "rfft", 1, fft_length)


def irfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft`.

    Args:
        input_tensor: A complex64 or complex128 tensor of shape [..., length // 2 + 1].
        fft_length: [length]; None: 2 * (size - 1), which is even.
        name: Ignored.

    Returns:
        A float32 or float64 tensor [..., length].

    Example:
        >>> import samegrad as tf
        >>> tf.signal.irfft(tf.signal.rfft([1.0, 2.0, 3.0]), [3]).numpy().round(5)
        array([1., 2., 3.], dtype=float32)
    """
    return _to_real(input_tensor, "irfft", 1, fft_length)


def rfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """Compute `rfft` along the last axis and `fft` along the one before.

    Args:
        input_tensor: A float32 or float64 tensor of shape [..., height, width].
        fft_length: The two sizes to which the axes are cropped or zero-padded; None: their own
            sizes.
        name: Ignored.

    Returns:
        A complex64 or complex128 tensor [..., height, width // 2 + 1].

    Raises:
        ValueError: The tensor is not of floats, or fft_length does not have two sizes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.rfft2d(tf.ones([3, 4])).shape
        (3, 3)
    """
    return _of_real(input_tensor, "rfft2d", 2, fft_length)


def irfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft2d`.

    Args:
        input_tensor: A complex64 or complex128 tensor of shape [..., height, width // 2 + 1].
        fft_length: The two sizes of the result; None: those of the input, the last one 2 * (size -
            1).
        name: Ignored.

    Returns:
        A float32 or float64 tensor [..., height, width].

    Raises:
        ValueError: The tensor is not complex, or fft_length does not have two sizes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.irfft2d(tf.signal.rfft2d(tf.ones([3, 4]))).shape
        (3, 4)
    """
    return _to_real(input_tensor, "irfft2d", 2, fft_length)


def rfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """Compute `rfft` along the last axis and `fft` along the two before.

    Args:
        input_tensor: A float32 or float64 tensor of shape [..., depth, height, width].
        fft_length: The three sizes to which the axes are cropped or zero-padded; None: their own
            sizes.
        name: Ignored.

    Returns:
        A complex64 or complex128 tensor [..., depth, height, width // 2 + 1].

    Raises:
        ValueError: The tensor is not of floats, or fft_length does not have three sizes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.rfft3d(tf.ones([2, 3, 4])).shape
        (2, 3, 3)
    """
    return _of_real(input_tensor, "rfft3d", 3, fft_length)


def irfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse of `rfft3d`.

    Args:
        input_tensor: A complex64 or complex128 tensor of shape [..., depth, height, width // 2 +
            1].
        fft_length: The three sizes of the result; None: those of the input, the last one 2 * (size
            - 1).
        name: Ignored.

    Returns:
        A float32 or float64 tensor [..., depth, height, width].

    Raises:
        ValueError: The tensor is not complex, or fft_length does not have three sizes.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.irfft3d(tf.signal.rfft3d(tf.ones([2, 3, 4]))).shape
        (2, 3, 4)
    """
    return _to_real(input_tensor, "irfft3d", 3, fft_length)


def _shifted(x: Any, axes: Any, sign: int, who: str) -> Any:
    value = to_complex(x, who) if is_complex(x) else convert_to_tensor(x)
    chosen = range(value._rank) if axes is None else [whole(n) for n in sizes_of(axes)]
    for axis in chosen:
        if not -value._rank <= axis < value._rank:
            raise ValueError(f"[{who}] axes must be some of {value._rank}: got {shown(axes)}.")
        half = int(value.shape[axis]) // 2
        value = complex_arrays.roll(value, sign * half, axis % value._rank)
    return value


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Any:
    """Shift frequency 0 to the middle of the axes.

    Args:
        x: A tensor of any dtype.
        axes: One axis or a list; None: all.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.fftshift([0, 1, 2, -2, -1]).numpy()
        array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted(x, axes, 1, "fftshift")


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Any:
    """Shift frequency 0 back to the start of the axes, the inverse of `fftshift`.

    Args:
        x: A tensor of any dtype.
        axes: One axis or a list; None: all.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.ifftshift([-2, -1, 0, 1, 2]).numpy()
        array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted(x, axes, -1, "ifftshift")
