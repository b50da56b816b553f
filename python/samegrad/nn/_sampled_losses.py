"""Losses over a few of very many classes, for training; evaluate with all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from samegrad import math
from samegrad._ops.arrays import cast, concat, expand_dims, matmul, stop_gradient
from samegrad._ops.creation import ones_like, zeros_like
from samegrad._ops.gather import gather
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.nn._candidates import log_uniform_candidate_sampler, row_hits
from samegrad.nn._cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: TensorLike, inputs: TensorLike, num_sampled: int,
    num_classes: int, num_true: int = 1, sampled_values: Any = None,
    remove_accidental_hits: bool = True, seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """Compute the softmax cross-entropy over the true and some sampled classes (Jean et al., 2015).

    Args:
        weights: The class weights [num_classes, width], or a list of one such tensor.
        biases: The class biases [num_classes].
        labels: The true classes: int64 [batch, num_true].
        inputs: The activations: floats [batch, width].
        num_sampled: The number of classes to sample, for the whole batch.
        num_classes: The number of classes.
        num_true: The number of true classes of each example.
        sampled_values: The result of a sampler; by default that of `log_uniform_candidate_sampler`
            without replacement.
        remove_accidental_hits: Leave out sampled classes that are true ones.
        seed: The seed of the sampler.
        name: Ignored.

    Returns:
        The losses: a tensor [batch].

    Raises:
        TypeError: The labels are not integers.
        ValueError: The shapes do not fit.

    Example:
        >>> import numpy as np
        >>> x, w = np.ones((2, 3), "float32"), np.zeros((4, 3), "float32")
        >>> sampled_softmax_loss(w, np.zeros(4, "float32"), [[0], [1]], x, 4, 4).shape
        (2,)
    """
    given = weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values
    made = _sampled_logits("sampled_softmax_loss", *given, remove_accidental_hits, seed)
    return softmax_cross_entropy_with_logits(made.shares, made.logits)


def nce_loss(
    weights: Any, biases: Any, labels: TensorLike, inputs: TensorLike, num_sampled: int,
    num_classes: int, num_true: int = 1, sampled_values: Any = None,
    remove_accidental_hits: bool = False, name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """Compute the noise-contrastive estimation loss (Gutmann and Hyvarinen, 2010).

    Args:
        weights: The class weights [num_classes, width], or a list of one such tensor.
        biases: The class biases [num_classes].
        labels: The true classes: int64 [batch, num_true].
        inputs: The activations: floats [batch, width].
        num_sampled: The number of classes to sample, for the whole batch.
        num_classes: The number of classes.
        num_true: The number of true classes of each example.
        sampled_values: The result of a sampler; by default that of `log_uniform_candidate_sampler`
            without replacement.
        remove_accidental_hits: Leave out sampled classes that are true ones.
        name: Ignored.

    Returns:
        The losses: a tensor [batch].

    Raises:
        TypeError: The labels are not integers.
        ValueError: The shapes do not fit.

    Example:
        >>> import numpy as np
        >>> x, w = np.ones((2, 3), "float32"), np.zeros((4, 3), "float32")
        >>> nce_loss(w, np.zeros(4, "float32"), [[0], [1]], x, 2, 4).shape
        (2,)
    """
    given = weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values
    made = _sampled_logits("nce_loss", *given, remove_accidental_hits, None)
    return math.reduce_sum(sigmoid_cross_entropy_with_logits(made.shares, made.logits), axis=1)


class _Sampled(NamedTuple):
    """Logits of the true and the drawn classes, and how much of its label each is."""

    logits: Tensor
    shares: Tensor


def _sampled_logits(
    who: str, weights: Any, biases: Any, labels: TensorLike, inputs: TensorLike, num_sampled: int,
    num_classes: int, num_true: int, drawn: Any, without_hits: bool, seed: int | None,
) -> _Sampled:  # fmt: skip
    """Return logits less the logarithms of their classes' expected counts, and their labels."""
    table, offsets = _single(who, weights), convert_to_tensor(biases)
    x, true = convert_to_tensor(inputs), cast(_whole_labels(who, labels), "int64")
    _check_shapes(who, table, offsets, x, true, num_classes, num_true)
    if drawn is None:
        drawn = log_uniform_candidate_sampler(
            true, num_true, num_sampled, True, num_classes, seed=seed
        )
    sampled, of_true, of_sampled = (stop_gradient(convert_to_tensor(part)) for part in drawn)
    sampled = cast(sampled, "int64")
    rows = gather(table, true)  # [batch, num_true, width]
    true_logits = math.reduce_sum(expand_dims(x, 1) * rows, axis=2) + gather(offsets, true)
    sampled_logits = matmul(x, gather(table, sampled), transpose_b=True)
    sampled_logits += gather(offsets, sampled)
    if without_hits:
        sampled_logits -= cast(row_hits(true, sampled), x._dtype) * _LARGEST
    true_logits -= math.log(cast(of_true, x._dtype))
    sampled_logits -= math.log(cast(of_sampled, x._dtype))
    shares = [ones_like(true_logits) / float(num_true), zeros_like(sampled_logits)]
    logits = concat([true_logits, sampled_logits], 1)
    return _Sampled(logits, stop_gradient(concat(shares, 1)))


_LARGEST = 3.4028235e38  # leaves exp(-x) = 0


def _single(who: str, weights: Any) -> Tensor:
    if isinstance(weights, list | tuple):
        if len(weights) != 1:
            raise ValueError(
                f"[{who}] weights must be one table: got {len(weights)}; join them with "
                "samegrad.concat."
            )
        weights = weights[0]
    return convert_to_tensor(weights)


def _whole_labels(who: str, labels: TensorLike) -> Tensor:
    true = convert_to_tensor(labels)
    if true._dtype not in ("int64", "int32"):
        raise TypeError(f"[{who}] labels must be integers: got {true._dtype}; use samegrad.cast.")
    return true


def _check_shapes(who: str, table: Tensor, offsets: Tensor, x: Tensor, true: Tensor,
                  classes: int, num_true: int) -> None:  # fmt: skip
    fits = table._rank == 2 and x._rank == 2 and table._shape[1] == x._shape[1]
    if not fits or table._shape[0] != classes or tuple(offsets._shape) != (classes,):
        raise ValueError(
            f"[{who}] weights must be (num_classes, width), biases (num_classes,) and inputs "
            f"(batch, width): got {tuple(table._shape)}, {tuple(offsets._shape)} and "
            f"{tuple(x._shape)} with num_classes={classes}; use samegrad.reshape."
        )
    if true._rank != 2 or true._shape[1] != num_true:
        raise ValueError(
            f"[{who}] labels must be (batch, num_true): got {tuple(true._shape)} with "
            f"num_true={num_true}; use samegrad.reshape."
        )


__all__ = ["nce_loss", "sampled_softmax_loss"]
