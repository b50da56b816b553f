"""keras.backend.random: draws are functions of a seed's state and of the global row alone.

A `SeedGenerator` keeps its state in a variable, which is the key of the draw, goes on within the
compiled step, and is in every checkpoint. The same rows of a global batch get the same numbers for
any number of replicas. What a layer draws for no example is the same on all of them; rows of a
plain number, outside of layers, are drawn as by `samegrad.random.stateless_uniform`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

import samegrad as tf
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.conversion import shape as shape_of
from samegrad._tensor.tensor import Tensor

# Of each number of a gamma draw; all are refused with a probability below 1e-10.
_CANDIDATES = 8


def _alike(shape: Any = ()) -> Any:
    """Inside, replicas draw the same where no size follows from the examples.

    So they do in layers, and single numbers anywhere.
    """
    single = isinstance(shape, list | tuple) and not shape
    if single or global_state.get_global_attribute("current_call_ctx") is not None:
        return _context.changed(replica_context=None, one_replica=None)
    return contextlib.nullcontext()


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Tensor:
    """Normally distributed numbers."""
    kind, key = dtype or floatx(), draw_seed(seed)
    with _alike(shape):
        return tf.random.stateless_normal(shape, key, mean, stddev, kind)


def uniform(
    shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Tensor:
    """Uniform numbers in [minval, maxval)."""
    kind, key = dtype or floatx(), draw_seed(seed)
    with _alike(shape):
        return tf.random.stateless_uniform(shape, key, minval, maxval, kind)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Tensor:
    """Normally distributed numbers within two deviations."""
    kind, key = dtype or floatx(), draw_seed(seed)
    with _alike(shape):
        return tf.random.stateless_truncated_normal(shape, key, mean, stddev, kind)


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Whole numbers in [minval, maxval)."""
    key = draw_seed(seed)
    with _alike(shape):
        drawn = tf.random.stateless_uniform(shape, key, int(minval), int(maxval), "int64")
    return tf.cast(drawn, dtype)


def categorical(logits: Any, num_samples: int, dtype: Any = "int64", seed: Any = None) -> Tensor:
    """Classes by their unnormalized log-probabilities: shape (batch, num_samples).

    The largest of logits + Gumbel noise is one class's with its probability (Gumbel, 1954).
    """
    x = convert_to_tensor(logits)
    rows, classes = shape_of(x)
    noise = uniform((rows, num_samples, classes), dtype="float32", seed=seed)
    tiny = 1e-30
    gumbel = -tf.math.log(-tf.math.log(tf.maximum(noise, tiny)) + tiny)
    scores = tf.cast(tf.expand_dims(x, 1), "float32") + gumbel
    return tf.cast(tf.argmax(scores, -1), dtype)


def dropout(
    inputs: Any, rate: float, noise_shape: Sequence[Any] | None = None, seed: Any = None
) -> Tensor:
    """Elements become 0 with the probability `rate`; the others are scaled by 1 / (1 - rate)."""
    x = convert_to_tensor(inputs)
    sizes = shape_of(x)
    if noise_shape is not None:
        sizes = tuple(
            size if wanted is None else wanted
            for size, wanted in zip(sizes, noise_shape, strict=True)
        )
    if rate >= 1.0:
        return tf.zeros_like(x)
    with _alike():
        kept = uniform(sizes, dtype="float32", seed=seed) >= rate
    return tf.where(kept, x * (1.0 / (1.0 - rate)), tf.zeros_like(x))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Tensor:
    """The parts along an axis in another order, any of which is as likely."""
    value = convert_to_tensor(x)
    with _alike():
        draws = uniform((shape_of(value)[axis],), dtype="float32", seed=seed)
    return tf.gather(value, tf.argsort(draws), axis=axis)


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the gamma distribution with scale 1 (Marsaglia and Tsang, 2000).

    Each is the first of eight candidates that is accepted; below 1, `alpha` is raised by 1 and the
    number multiplied by a uniform one to the power of 1 / alpha.
    """
    kind, key = dtype or floatx(), draw_seed(seed)
    a = tf.broadcast_to(convert_to_tensor(alpha, "float64"), tuple(shape))
    raised = tf.where(a < 1.0, a + 1.0, a)
    third = tf.expand_dims(raised - 1.0 / 3.0, -1)
    sizes = (*tuple(shape), _CANDIDATES)
    with _alike(shape):
        x = tf.random.stateless_normal(sizes, _part(key, 0), dtype="float64")
        u = tf.random.stateless_uniform(sizes, _part(key, 1), dtype="float64")
        last = tf.random.stateless_uniform(tuple(shape), _part(key, 2), dtype="float64")
    cube = (1.0 + x / tf.sqrt(9.0 * third)) ** 3
    safe = tf.maximum(cube, 1e-300)
    bound = 0.5 * x * x + third * (1.0 - cube + tf.math.log(safe))
    accepted = tf.logical_and(cube > 0.0, tf.math.log(tf.maximum(u, 1e-300)) < bound)
    first = tf.one_hot(tf.argmax(tf.cast(accepted, "int32"), -1), _CANDIDATES, dtype="float64")
    found = tf.reduce_sum(first * third * cube, -1)
    lowered = found * tf.maximum(last, 1e-300) ** (1.0 / tf.where(a < 1.0, a, tf.ones_like(a)))
    return tf.cast(tf.where(a < 1.0, lowered, found), kind)


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the beta distribution, as gamma draws x / (x + y)."""
    kind, key = dtype or floatx(), draw_seed(seed)
    x = _gamma_of(shape, alpha, _part(key, 3))
    y = _gamma_of(shape, beta, _part(key, 4))
    return tf.cast(x / (x + y), kind)


def binomial(
    shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None
) -> Tensor:
    """Count successes among `counts` trials, which are drawn one by one.

    Raises:
        TypeError: The counts are not known while a function is traced.
    """
    kind = dtype or floatx()
    n = tf.broadcast_to(convert_to_tensor(counts, "float32"), tuple(shape))
    p = tf.broadcast_to(convert_to_tensor(probabilities, "float32"), tuple(shape))
    most = int(tf.reduce_max(convert_to_tensor(counts, "int64")).numpy())
    draws = uniform((*tuple(shape), most), dtype="float32", seed=seed)
    trials = tf.cast(tf.range(most), "float32") < tf.expand_dims(n, -1)
    wins = tf.logical_and(trials, draws < tf.expand_dims(p, -1))
    return tf.cast(tf.reduce_sum(tf.cast(wins, "int32"), -1), kind)


def _part(key: Tensor, number: int) -> Tensor:
    """A key of its own for one of several draws by one seed."""
    return tf.cast(key, "uint32") + tf.constant([0, 0x9E3779B1 * (number + 1) % 2**32], "uint32")


def _gamma_of(shape: Any, alpha: Any, key: Tensor) -> Tensor:
    return gamma(shape, alpha, "float64", _Drawn(key))


class _Drawn(SeedGenerator):  # type: ignore[misc]
    """A key that was drawn already, where a seed is asked for."""

    def __init__(self, key: Tensor) -> None:
        self._key = key

    def next(self, ordered: bool = True) -> Tensor:
        """The key."""
        return self._key


__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "draw_seed", "dropout", "gamma",
    "make_default_seed", "normal", "randint", "shuffle", "truncated_normal", "uniform",
]  # fmt: skip
