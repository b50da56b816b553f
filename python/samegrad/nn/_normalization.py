"""Moments, what is normalized by them or by neighbours, and rows of tables."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, squeeze
from samegrad._ops.creation import zeros_like
from samegrad._ops.gather import gather
from samegrad._ops.norms import clip_by_norm
from samegrad._ops.padding import pad
from samegrad._tensor.axes import axes_of
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.math._binary import divide_no_nan
from samegrad.math._reductions import mean_and_variance, reduce_sum

_ops = _core.ops


def moments(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the mean and the variance (mean squared distance from the mean) over axes.

    Inside `strategy.run`, moments along the batch axis are those of this replica's examples.

    Args:
        x: A tensor of floats.
        axes: The axes, negative from the last.
        shift: Ignored: the variance is computed from the distances to the mean.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        The mean and the variance, in the dtype of `x`.

    Raises:
        TypeError: x does not hold floats.
        ValueError: There is no such axis.

    Example:
        >>> mean, variance = moments([[1.0, 3.0], [2.0, 6.0]], [1])
        >>> mean.numpy(), variance.numpy()
        (array([2., 4.], dtype=float32), array([1., 4.], dtype=float32))
    """
    value = _floats("moments", "x", x)
    over = axes_of(value, axes)
    return mean_and_variance(value, over, keepdims)


def weighted_moments(
    x: TensorLike, axes: Any, frequency_weights: TensorLike, keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the weighted mean and variance over axes.

    Inside `strategy.run`, moments along the batch axis are those of this replica's examples.

    Args:
        x: A tensor of floats.
        axes: The axes, negative from the last.
        frequency_weights: The weight of each element: 0 or more, broadcast with `x`.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        The mean and the variance, in the dtype of `x`; 0 where the weights sum to 0.

    Raises:
        TypeError: x does not hold floats.
        ValueError: The shapes do not fit, or there is no such axis.

    Example:
        >>> mean, variance = weighted_moments([1.0, 3.0], [0], [1.0, 3.0])
        >>> float(mean), float(variance)
        (2.5, 0.75)
    """
    given = _floats("weighted_moments", "x", x)
    weights = cast(convert_to_tensor(frequency_weights), given._dtype)
    narrow = given._dtype in ("float16", "bfloat16")
    value = cast(given, "float32") if narrow else given
    weights = cast(weights, value._dtype) + zeros_like(value)
    over = axes_of(weights, axes)

    def mean_of(values: Tensor) -> Tensor:
        total = reduce_sum(weights * values, over, keepdims=True)
        return divide_no_nan(total, reduce_sum(weights, over, keepdims=True))

    mean = mean_of(value)
    variance = mean_of(_ops.square(value - mean))
    if not keepdims:
        mean, variance = squeeze(mean, over), squeeze(variance, over)
    return cast(mean, given._dtype), cast(variance, given._dtype)


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Compute scale * (x - mean) / sqrt(variance + variance_epsilon) + offset.

    Args:
        x: A tensor of floats of shape [..., channels].
        mean: The mean, broadcast with `x`: [channels], or the shape that `moments` returns.
        variance: The variance, in the shape of the mean.
        offset: The offset to add, broadcast with `x`; None: 0.
        scale: The factor, broadcast with `x`; None: 1.
        variance_epsilon: A small positive number, against division by 0.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: x does not hold floats.
        ValueError: The shapes do not fit.

    Example:
        >>> batch_normalization([1.0, 3.0], 2.0, 1.0, 0.5, 2.0, 0.0).numpy()
        array([-1.5,  2.5], dtype=float32)
    """
    value = _floats("batch_normalization", "x", x)
    factor = _ops.rsqrt(match(variance, value) + match(variance_epsilon, value))
    if scale is not None:
        factor = factor * match(scale, value)
    shift = match(mean, value) * factor
    if offset is None:
        return value * factor - shift
    return value * factor + (match(offset, value) - shift)


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide by (bias + alpha * Σ squares of the nearby channels) ** beta.

    The formula is that of Krizhevsky et al. (2012), section 3.3.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        depth_radius: The number of channels on each side in the sum.
        bias: A positive offset, against division by 0.
        alpha: The factor of the sum.
        beta: The exponent.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        TypeError: The images do not hold floats.
        ValueError: The images do not have four axes, or the radius is negative.

    Example:
        >>> local_response_normalization([[[[3.0, 4.0]]]], 1, 0.0).numpy().round(1).ravel()
        array([0.6, 0.8], dtype=float32)
    """
    who = "local_response_normalization"
    x, radius = _floats(who, "input", input), whole(depth_radius)
    if x._rank != 4:
        raise ValueError(
            f"[{who}] input must be [n, rows, columns, channels]: got shape {x._shape}."
        )
    if radius < 0:
        raise ValueError(f"[{who}] depth_radius must not be negative: got {shown(depth_radius)}.")
    channels = int(x.shape[3])
    radius = min(radius, max(channels - 1, 0))
    squares = pad(_ops.square(x), [[0, 0], [0, 0], [0, 0], [radius, radius]])
    near = squares[..., :channels]
    for place in range(1, 2 * radius + 1):
        near = near + squares[..., place : place + channels]
    return x / _ops.pow(near * float(alpha) + float(bias), match(float(beta), x))


def embedding_lookup(
    params: Any, ids: TensorLike, max_norm: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Look up the embeddings of ids in a table.

    Args:
        params: The table [size, ...], or a list of one table.
        ids: Integers of any shape, in [0, size).
        max_norm: Scale embeddings of a larger Euclidean norm down to it; None: keep them.
        name: Ignored.

    Returns:
        A tensor of shape ids.shape + params.shape[1:].

    Raises:
        ValueError: There are several tables.
        InvalidArgumentError: An id is not in [0, size).

    Example:
        >>> embedding_lookup([[[1.0], [2.0]]], [1, 0, 1]).numpy().ravel()
        array([2., 1., 2.], dtype=float32)
    """
    several = isinstance(params, list | tuple)
    if several and len(params) != 1:
        raise ValueError(
            f"[embedding_lookup] params must be one table: got {len(params)}; join them with "
            "samegrad.concat."
        )
    table = convert_to_tensor(params[0] if several else params)
    rows = gather(table, ids)
    if max_norm is None:
        return rows
    first = rows._rank - table._rank + 1
    return clip_by_norm(rows, max_norm, list(range(first, rows._rank)))


def _floats(who: str, what: str, value: TensorLike) -> Tensor:
    x = convert_to_tensor(value)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(f"[{who}] {what} must hold floats: got {x._dtype}; use samegrad.cast.")
    return x
