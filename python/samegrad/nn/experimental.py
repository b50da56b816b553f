"""Dropout with a seed or a sampler of one's own, under the names of tf.nn.experimental."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.nn._regularization import check_rate
from samegrad.random import stateless_uniform

_ops = _core.ops


def general_dropout(
    x: TensorLike,
    rate: Any,
    uniform_sampler: Callable[..., Any],
    noise_shape: Sequence[int | None] | None = None,
    name: str | None = None,
) -> Tensor:
    """Set random elements to 0 and scale the others by 1 / (1 - rate), with samples of one's own.

    Args:
        x: A tensor of floats.
        rate: The probability that an element is dropped, in [0, 1): a number or a scalar tensor.
        uniform_sampler: A function of `shape` and `dtype`, given by name, that returns samples of
            the uniform distribution on [0, 1).
        noise_shape: The shape of the samples, which broadcasts to that of `x`; None in it is the
            size of `x`.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: The rate is not in [0, 1), or `x` has no floats.

    Example:
        >>> import samegrad as tf
        >>> half = lambda shape, dtype: tf.fill(shape, tf.cast(0.5, dtype))
        >>> general_dropout([1.0, 3.0], 0.25, half).numpy().round(2)
        array([1.33, 4.  ], dtype=float32)
    """
    who = "general_dropout"
    tensor = convert_to_tensor(x)
    if not as_dtype(tensor._dtype).is_floating:
        raise ValueError(f"[{who}] x must hold floats: got {tensor._dtype}; use samegrad.cast.")
    if isinstance(rate, int | float):
        check_rate(rate)
        if rate == 0.0:
            return tensor
    chance = convert_to_tensor(rate, tensor._dtype)
    sizes: Any = tensor.shape
    if noise_shape is not None:
        given = list(noise_shape)
        sizes = [sizes[i] if size is None else size for i, size in enumerate(given)]
    draw = convert_to_tensor(uniform_sampler(shape=sizes, dtype=tensor.dtype))
    scaled = tensor * (1.0 / (1.0 - chance))
    return _ops.select(draw >= chance, scaled, convert_to_tensor(0.0, tensor._dtype))


def stateless_dropout(
    x: TensorLike,
    rate: Any,
    seed: TensorLike,
    rng_alg: str | None = None,
    noise_shape: Sequence[int | None] | None = None,
    name: str | None = None,
) -> Tensor:
    """Set random elements to 0 and scale the others by 1 / (1 - rate); a seed decides which.

    Args:
        x: A tensor of floats.
        rate: The probability that an element is dropped, in [0, 1): a number or a scalar tensor.
        seed: Two integers; the same seed drops the same elements.
        rng_alg: "auto_select" or "philox"; None: "auto_select".
        noise_shape: The shape of the samples, which broadcasts to that of `x`; None in it is the
            size of `x`.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: The rate is not in [0, 1), or the algorithm is unknown.

    Example:
        >>> stateless_dropout([1.0, 2.0, 3.0, 4.0], 0.5, seed=[1, 0]).numpy()
        array([2., 0., 6., 8.], dtype=float32)
    """
    alg = "auto_select" if rng_alg is None else rng_alg

    def sampler(shape: Any, dtype: Any) -> Tensor:
        return stateless_uniform(shape, seed, dtype=dtype, alg=alg)

    return general_dropout(x, rate, sampler, noise_shape)


__all__ = ["general_dropout", "stateless_dropout"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
