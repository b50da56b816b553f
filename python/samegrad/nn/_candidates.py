"""Classes that are drawn to stand for all others (Jean et al., 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from samegrad import math, random
from samegrad._ops.arrays import cast
from samegrad._ops.creation import range_, zeros_like
from samegrad._ops.elementary import log
from samegrad._ops.gather import gather
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._order import searchsorted

_MOST = 1 << 24  # float32 tells that many classes apart


class Candidates(NamedTuple):
    """Classes, and how often they and the true ones are expected among so many."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Sample classes from the uniform distribution.

    Args:
        true_classes: The true classes: int64 [batch, num_true].
        num_true: The number of true classes of each example.
        num_sampled: The number of classes to sample.
        unique: Sample without replacement.
        range_max: The number of classes.
        seed: The seed of the operation.
        name: Ignored.

    Returns:
        A named tuple: the sampled classes, int64 [num_sampled]; the expected counts of the true
        classes, float32 [batch, num_true]; those of the sampled ones, float32 [num_sampled].

    Raises:
        TypeError: The true classes are not integers.
        ValueError: The shapes do not fit, or `num_sampled` different classes do not exist.

    Example:
        >>> drawn = uniform_candidate_sampler([[0], [3]], 1, 4, True, 4)
        >>> sorted(drawn.sampled_candidates.numpy().tolist()), drawn.true_expected_count.shape
        ([0, 1, 2, 3], (2, 1))
    """
    given = true_classes, num_true, num_sampled, unique, range_max
    return _draw("uniform_candidate_sampler", _uniform, *given, seed)


def log_uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Sample classes from the log-uniform (Zipfian) distribution.

    Class k has the probability log((k + 2) / (k + 1)) / log(range_max + 1). The distribution suits
    classes that are sorted by decreasing frequency, as words are.

    Args:
        true_classes: The true classes: int64 [batch, num_true].
        num_true: The number of true classes of each example.
        num_sampled: The number of classes to sample.
        unique: Sample without replacement.
        range_max: The number of classes.
        seed: The seed of the operation.
        name: Ignored.

    Returns:
        A named tuple: the sampled classes, int64 [num_sampled]; the expected counts of the true
        classes, float32 [batch, num_true]; those of the sampled ones, float32 [num_sampled].

    Raises:
        TypeError: The true classes are not integers.
        ValueError: The shapes do not fit, or `num_sampled` different classes do not exist.

    Example:
        >>> drawn = log_uniform_candidate_sampler([[0]], 1, 2, False, 1)
        >>> drawn.sampled_candidates.numpy(), drawn.true_expected_count.numpy()
        (array([0, 0]), array([[2.]], dtype=float32))
    """
    given = true_classes, num_true, num_sampled, unique, range_max
    return _draw("log_uniform_candidate_sampler", _log_uniform, *given, seed)


def _uniform(classes: Tensor, count: int) -> Tensor:
    return cast(zeros_like(classes), "float32") + 1.0 / count


def _log_uniform(classes: Tensor, count: int) -> Tensor:
    x = cast(classes, "float32")
    return math.log1p(1.0 / (x + 1.0)) / float(log(count + 1.0))


def _draw(
    who: str, probability: Callable[[Tensor, int], Tensor], true_classes: TensorLike,
    num_true: int, number: int, unique: bool, count: int, seed: int | None,
) -> Candidates:  # fmt: skip
    """Check the arguments, and sample classes of these probabilities."""
    classes = _checked(who, true_classes, num_true, number, unique, count)
    every = range_(count, dtype="int64")
    if unique:
        # With Gumbel noise the largest are what drawing without putting back gives.
        noise = -math.log(-math.log(random.uniform([count], 1e-38, 1.0, seed=seed)))
        sampled = math.top_k(math.log(probability(every, count)) + noise, number).indices
        sampled = cast(sampled, "int64")
        tries = _tries(math.cumsum(probability(sampled, count)), seed)

        def expected(of: Tensor) -> Tensor:
            made: Tensor = -math.expm1(tries * math.log1p(-probability(of, count)))
            return made
    else:
        ends = math.cumsum(probability(every, count))
        at = random.uniform([number], seed=seed)
        sampled = math.minimum(searchsorted(ends, at, "right", "int64"), count - 1)

        def expected(of: Tensor) -> Tensor:
            made: Tensor = probability(of, count) * float(number)
            return made

    return Candidates(sampled, expected(classes), expected(sampled))


def _tries(drawn: Tensor, seed: int | None) -> Tensor:
    """Sample the number of draws with replacement until so many classes have been seen.

    The first draw is one. Each new class then takes a geometric number of draws; `drawn` is the
    probability of the classes seen so far.
    """
    seen = math.minimum(drawn[:-1], 1.0 - 1e-7)
    uniform = random.uniform(seen.shape, 1e-38, 1.0, seed=seed)
    waits = math.maximum(math.ceil(math.log(uniform) / math.log(seen)), 1.0)
    return 1.0 + math.reduce_sum(waits)


def _checked(who: str, true_classes: TensorLike, num_true: Any, num_sampled: Any, unique: Any,
             range_max: Any) -> Tensor:  # fmt: skip
    classes = convert_to_tensor(true_classes)
    if classes._dtype not in ("int64", "int32"):
        raise TypeError(
            f"[{who}] true_classes must be integers: got {classes._dtype}; use samegrad.cast."
        )
    for what, value in (("num_true", num_true), ("num_sampled", num_sampled),
                        ("range_max", range_max)):  # fmt: skip
        if whole(value, f"{what} must be an integer", "pass an int") < 1:
            raise ValueError(f"[{who}] {what} must be 1 or more: got {value}.")
    if classes._rank != 2 or classes._shape[1] != num_true:
        raise ValueError(
            f"[{who}] true_classes must have shape (batch, num_true): got "
            f"{tuple(classes._shape)} with num_true={num_true}; use samegrad.reshape."
        )
    if range_max > _MOST:
        raise ValueError(f"[{who}] range_max must be at most {_MOST}: got {range_max}.")
    if unique and num_sampled > range_max:
        raise ValueError(
            f"[{who}] there must be as many classes as different ones are drawn: got "
            f"num_sampled={num_sampled} and range_max={range_max}; pass unique=False."
        )
    return classes


def row_hits(labels: Tensor, sampled: Tensor) -> Tensor:
    """Return a bool tensor [batch, num_sampled]: true where a sampled class is a true one."""
    same = math.equal(gather(labels, [0], axis=1), sampled)
    for at in range(1, labels._shape[1]):
        same = math.logical_or(same, math.equal(gather(labels, [at], axis=1), sampled))
    return same


__all__ = [
    "Candidates",
    "log_uniform_candidate_sampler",
    "row_hits",
    "uniform_candidate_sampler",
]
