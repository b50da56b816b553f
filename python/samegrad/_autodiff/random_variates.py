"""Numbers of the gamma and the Poisson distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _core, math, random
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import broadcast_to, cast, expand_dims, stop_gradient, where
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.tensor import Tensor, convert_to_tensor

# Candidates: the first accepted one counts. All are rejected with a probability below
# 1e-10 (gamma) and 1e-14 (Poisson).
_GAMMA, _POISSON = 8, 24
_SMALL = 10.0  # Poisson rates below it are drawn by adding up probabilities,
_TERMS = 64  # of so many numbers
_TINY = 1e-300

# Uniform or normal float64 of a shape, the k-th of a call: (normal, shape, k) -> Tensor.
Draw = Callable[[bool, Any, int], Tensor]


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: DTypeLike = "float32",
    seed: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Sample from the gamma distribution (Marsaglia and Tsang, 2000).

    Gradients flow to `alpha` (by implicit differentiation of the distribution function; Figurnov
    et al., 2018) and `beta`.

    Args:
        shape: The shape of the samples for each pair of alpha and beta.
        alpha: The shape parameter, above 0.
        beta: The inverse scale, above 0, broadcast with `alpha`; default 1.
        dtype: The dtype of the result, one of floats.
        seed: The seed of the op, as in `uniform`.
        name: Ignored.

    Returns:
        A tensor of shape `shape` + the broadcast shape of alpha and beta; NaN where alpha or beta
        is below 0.

    Raises:
        TypeError: The dtype is not one of floats.

    Example:
        >>> gamma([1000], [2.0, 9.0]).shape
        (1000, 2)
    """
    a, b = _parameters("gamma", dtype, alpha, 1.0 if beta is None else beta)
    sizes = [*sizes_of(shape), *a.shape]
    return cast(_gamma(sizes, a, b, _drawn(seed), alpha), dtype)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Sample from the gamma distribution as a function of a seed.

    Args:
        shape: The shape of the result; it ends with that of alpha and beta, or with one they
            broadcast to.
        seed: Two integers, as in `stateless_uniform`.
        alpha: The shape parameter, above 0.
        beta: The inverse scale, above 0, broadcast with `alpha`; default 1.
        dtype: The dtype of the result, one of floats.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Raises:
        ValueError: Alpha and beta do not broadcast to the shape.

    Example:
        >>> one, two = (stateless_gamma([3], [1, 2], 0.5) for _ in range(2))
        >>> bool((one.numpy() == two.numpy()).all())
        True
    """
    a, b = _parameters("stateless_gamma", dtype, alpha, 1.0 if beta is None else beta)
    sizes = _fitting("stateless_gamma", shape, a)
    return cast(_gamma(sizes, a, b, _decided(seed), alpha), dtype)


def poisson(
    shape: Any, lam: Any, dtype: DTypeLike = "float32", seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Sample from the Poisson distribution; the samples have no gradient.

    Rates below 10 sum probabilities. The others use transformed rejection (Hörmann, 1993).

    Args:
        shape: The shape of the samples for each rate.
        lam: The rates; a rate below 0 gives 0.
        dtype: The dtype of the result: one of floats, int32 or int64.
        seed: The seed of the op, as in `uniform`.
        name: Ignored.

    Returns:
        A tensor of shape `shape` + that of `lam`.

    Example:
        >>> poisson([1000], [2.0, 90.0]).shape
        (1000, 2)
    """
    (rate,) = _parameters("poisson", dtype, lam, whole=True)
    return cast(_poisson([*sizes_of(shape), *rate.shape], rate, _drawn(seed)), dtype)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: DTypeLike = "int32", name: str | None = None
) -> Tensor:
    """Sample from the Poisson distribution as a function of a seed.

    Args:
        shape: The shape of the result; it ends with that of `lam`, or with one it broadcasts to.
        seed: Two integers, as in `stateless_uniform`.
        lam: The rates; a rate below 0 gives 0.
        dtype: The dtype of the result: one of floats, int32 or int64.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Raises:
        ValueError: The rates do not broadcast to the shape.

    Example:
        >>> one, two = (stateless_poisson([3], [1, 2], 4.0) for _ in range(2))
        >>> bool((one.numpy() == two.numpy()).all())
        True
    """
    (rate,) = _parameters("stateless_poisson", dtype, lam, whole=True)
    sizes = _fitting("stateless_poisson", shape, rate)
    return cast(_poisson(sizes, rate, _decided(seed)), dtype)


def _drawn(seed: int | None) -> Draw:
    def draw(normal: bool, sizes: Any, number: int) -> Tensor:
        return (random.normal if normal else random.uniform)(sizes, dtype="float64", seed=seed)

    return draw


def _decided(seed: Any) -> Draw:
    def draw(normal: bool, sizes: Any, number: int) -> Tensor:
        make = random.stateless_normal if normal else random.stateless_uniform
        return make(sizes, random.fold_in(seed, number), dtype="float64")

    return draw


def _parameters(who: str, dtype: DTypeLike, *given: Any, whole: bool = False) -> list[Tensor]:
    """Return the parameters as float64, broadcast to one shape."""
    kind = as_dtype(dtype)
    if not kind.is_floating and not (whole and kind.name in ("int32", "int64")):
        raise TypeError(
            f"[{who}] dtype must be a float{', int32 or int64' if whole else ''}: got {kind.name}."
        )
    parts = [cast(convert_to_tensor(value), "float64") for value in given]
    sizes = np.zeros(())
    try:
        for part in parts:
            sizes = np.empty(np.broadcast_shapes(sizes.shape, [int(n) for n in part.shape]), "b")
    except ValueError:
        shapes = " and ".join(str(tuple(part.shape)) for part in parts)
        raise _core.InvalidArgumentError(
            f"[{who}] the parameters must fit each other: got the shapes {shapes}."
        ) from None
    return [broadcast_to(part, sizes.shape) for part in parts]


def _fitting(who: str, shape: Any, parameter: Tensor) -> list[Any]:
    sizes, own = list(sizes_of(shape)), list(parameter.shape)
    last = sizes[len(sizes) - len(own) :]
    if len(own) > len(sizes) or any(n not in (1, m) for n, m in zip(own, last, strict=True)):
        raise _core.InvalidArgumentError(
            f"[{who}] shape must end with that of the parameters, or one they broadcast to: got "
            f"{shown(shape)} for {tuple(own)}."
        )
    return sizes


def _first(accepted: Tensor, values: Tensor) -> Tensor:
    """Return the first of the candidates along the last axis that is accepted."""
    count = int(values.shape[-1])
    ranks = cast(accepted, "float64") * np.arange(count, 0.0, -1.0)
    best = math.reduce_max(ranks, axis=-1, keepdims=True)
    chosen = where(math.logical_and(ranks == best, accepted), values, values * 0.0)
    return math.reduce_sum(chosen, axis=-1)


def _gamma(sizes: list[Any], a: Tensor, b: Tensor, draw: Draw, alpha: Any) -> Tensor:
    fixed = stop_gradient(a)
    third = expand_dims(where(fixed < 1.0, fixed + 1.0, fixed) - 1.0 / 3.0, -1)
    x, u = draw(True, [*sizes, _GAMMA], 0), draw(False, [*sizes, _GAMMA], 1)
    cube = (1.0 + x / math.sqrt(9.0 * third)) ** 3
    safe = math.maximum(cube, _TINY)
    bound = 0.5 * x * x + third * (1.0 - cube + math.log(safe))
    accepted = math.logical_and(cube > 0.0, math.log(math.maximum(u, _TINY)) < bound)
    found = _first(accepted, third * safe)
    # Below 1: of alpha + 1, times a uniform number to the power of 1 / alpha.
    low = math.maximum(draw(False, sizes, 2), _TINY)
    found = where(fixed < 1.0, found * low ** (1.0 / math.minimum(fixed, 1.0)), found)
    found = math.maximum(found, float(np.finfo("float32").tiny))
    found = where(fixed >= 0.0, found, found * np.nan)
    if isinstance(alpha, Tensor) or hasattr(alpha, "_as_tensor"):
        found = _with_gradient(stop_gradient(found), a)
    return found / b + stop_gradient(where(b >= 0.0, b * 0.0, b * np.nan))


def _with_gradient(z: Tensor, a: Tensor) -> Tensor:
    """The numbers, with the derivative -(dP/da) / (dP/dz) of the distribution function P(a, z)."""
    below = _core.ops.igamma(broadcast_to(a, z.shape), z)
    density = math.exp((a - 1.0) * math.log(z) - z - math.lgamma(a))
    return z - (below - stop_gradient(below)) / stop_gradient(math.maximum(density, _TINY))


def _poisson(sizes: list[Any], lam: Tensor, draw: Draw) -> Tensor:
    rate = stop_gradient(math.maximum(lam, 0.0))
    small = expand_dims(math.minimum(rate, _SMALL), -1)
    counts = np.arange(float(_TERMS))
    logs = counts * math.log(math.maximum(small, _TINY)) - math.lgamma(
        convert_to_tensor(counts + 1.0)
    )
    reached = math.cumsum(math.exp(logs - small), axis=-1)
    u = expand_dims(draw(False, sizes, 0), -1)
    few = math.reduce_sum(cast(u >= reached, "float64"), axis=-1)
    found = where(rate < _SMALL, few, _many(sizes, math.maximum(rate, _SMALL), draw))
    return found + rate * 0.0  # NaN where the rate is NaN or infinite


def _many(sizes: list[Any], rate: Tensor, draw: Draw) -> Tensor:
    """Sample by Hörmann's algorithm PTRS, for rates from 10 on."""
    lam = expand_dims(rate, -1)
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    u = draw(False, [*sizes, _POISSON], 1) - 0.5
    v = draw(False, [*sizes, _POISSON], 2)
    us = math.maximum(0.5 - math.abs(u), _TINY)
    k = math.floor((2.0 * a / us + b) * u + lam + 0.43)
    at_once = math.logical_and(us >= 0.07, v <= 0.9277 - 3.6224 / (b - 2.0))
    possible = math.logical_and(k >= 0.0, math.logical_or(us >= 0.013, v <= us))
    known = math.maximum(k, 0.0)
    left = math.log(math.maximum(v, _TINY) * inverse / (a / (us * us) + b))
    right = known * math.log(lam) - lam - math.lgamma(known + 1.0)
    accepted = math.logical_or(at_once, math.logical_and(possible, left <= right))
    return _first(accepted, known)


__all__ = ["gamma", "poisson", "stateless_gamma", "stateless_poisson"]
