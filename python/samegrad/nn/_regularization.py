"""Dropout and norms."""

from __future__ import annotations

from collections.abc import Sequence

from samegrad import _core
from samegrad._context.counted_numbers import counted
from samegrad._tensor.example_axis import examples_axis
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def dropout(
    x: TensorLike,
    rate: float,
    noise_shape: Sequence[int | None] | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Set random elements to 0 and scale the others by 1 / (1 - rate).

    The samples depend on the example, not on the replica: any number of replicas drops the same
    elements. The method is that of Srivastava et al. (2014), with the scaling at training time.

    Args:
        x: A tensor of floats.
        rate: The probability that an element is dropped, in [0, 1).
        noise_shape: The shape of the random decisions: 1 where one decision holds along a whole
            axis, None (or the size itself) elsewhere.
        seed: The seed of this op, combined with the global one.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: The rate is not in [0, 1), or the noise shape does not fit.

    Example:
        >>> dropout([1.0, 2.0], rate=0.0).numpy()
        array([1., 2.], dtype=float32)
    """
    check_rate(rate)
    tensor = convert_to_tensor(x)
    if rate == 0.0:
        return tensor
    like = tensor if noise_shape is None else _draw_shape(tensor, noise_shape)
    draw = _ops.random_uniform_like(
        like, dtype=tensor._dtype, seed=seed or 0, ordinal=_core.next_ordinal()
    )
    scaled = tensor * (1.0 / (1.0 - rate))
    return _ops.select(draw >= rate, scaled, convert_to_tensor(0.0, tensor._dtype))


def check_rate(rate: float) -> None:
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"[dropout] rate must be in [0, 1): got {rate}.")


def _draw_shape(x: Tensor, noise_shape: Sequence[int | None]) -> Tensor:
    """Return a tensor with x's examples and the wanted sizes."""
    wanted = list(noise_shape)
    axis = examples_axis(x)
    fits = len(wanted) == x._rank and all(
        size is None or i == axis or size in (1, x.shape[i]) for i, size in enumerate(wanted)
    )
    if not fits or (axis is not None and wanted[axis] == 1):
        raise ValueError(
            f"[dropout] noise_shape must give for each axis None, 1 or its size, and not 1 for "
            f"that of the examples: got {tuple(noise_shape)} for shape {x._shape}."
        )
    for i, size in enumerate(wanted):
        if size == 1 and i != axis:
            x = _ops.reduce_max(x, axes=(i,), keepdims=True)
    return x


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Compute sum(t * t) / 2.

    Args:
        t: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A scalar in the dtype of `t`.

    Example:
        >>> float(l2_loss([1.0, 3.0]))
        5.0
    """
    x = convert_to_tensor(t)
    total: Tensor = _ops.reduce_sum(_ops.square(x), axes=tuple(range(x._rank)))
    return total * convert_to_tensor(counted(0.5), total._dtype)
