"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, transpose
from samegrad._ops.creation import range_
from samegrad._ops.gather import gather
from samegrad._tensor.example_axis import examples_axis
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.nn._regularization import check_rate, dropout

_ops = _core.ops
_WHO = "dot_product_attention"


class Dropped(NamedTuple):
    """Dropout of attention weights.

    Args:
        rate: The probability, in (0, 1).
        key: The key of the draw, to which the numbers of the examples are added.
        dtype: The dtype of the draw.
    """

    rate: float
    key: Tensor
    dtype: str = "float32"


def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    dropout_rate: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """Compute softmax(scale * query · keyᵀ + bias) · value for each head (Vaswani et al., 2017).

    The [queries, keys] matrix is never in memory, nor in the backward pass. The exceptions are a
    bias, dropout where axis 0 is not the batch axis, and second derivatives. The result is bitwise
    that of the products, the bias, the mask, the softmax and the dropout one after the other. A
    query whose keys are all masked weighs them equally. Layout and arguments are those of
    `keras.ops.dot_product_attention` and `jax.nn.dot_product_attention`.

    Args:
        query: Floats of shape [n, queries, heads, width].
        key: Floats of shape [n, keys, key heads, width]. Fewer heads than the query's must divide
            them: heads / key heads neighbouring query heads read one key head (Ainslie et al.,
            2023).
        value: Floats of shape [n, keys, key heads, value width].
        bias: Floats that broadcast to [n, heads, queries, keys], added to the scores.
        mask: Bools that broadcast to [n, heads, queries, keys], true where a query attends to a
            key; None: everywhere.
        scale: The factor of the scores; None: 1 / sqrt(width).
        is_causal: Let query i attend to the keys 0 … i only; the scores of the others are not
            computed.
        dropout_rate: The probability that a weight is set to 0; the others are scaled by 1 / (1 -
            dropout_rate). The samples are those of `dropout`, the same on any number of replicas.
        seed: The seed of the dropout, combined with the global one.

    Returns:
        A tensor [n, queries, heads, value width], in the dtype of the operands.

    Raises:
        ValueError: The shapes do not fit, or the rate is not in [0, 1).
        TypeError: The operands do not hold floats of one dtype, or the mask does not hold bools.

    Example:
        >>> x = [[[[1.0, 0.0]], [[0.0, 1.0]]]]
        >>> dot_product_attention(x, x, x, is_causal=True).numpy()[0, :, 0].round(2)
        array([[1.  , 0.  ],
               [0.33, 0.67]], dtype=float32)
    """
    q, k, v = (convert_to_tensor(x) for x in (query, key, value))
    for name, x in (("query", q), ("key", k), ("value", v)):
        if len(x._shape) != 4:
            raise ValueError(
                f"[{_WHO}] {name} must be [n, length, heads, width]: got shape {x._shape}."
            )
    if scale is None:
        width = int(q.shape[3])
        scale = 1.0 / math.sqrt(width) if width else 1.0
    k, v = of_each_head(q, k, v)
    check_rate(dropout_rate)
    masks = [] if mask is None else [_pairs("mask", mask, convert_to_tensor(mask))]
    if is_causal:
        masks.append(causal_mask(q, k))
    if bias is not None or (dropout_rate != 0.0 and examples_axis(q) != 0):
        added = None if bias is None else _pairs("bias", bias, match(bias, q))
        return _in_parts((q, k, v), added, masks, float(scale), dropout_rate, seed)
    dropped = None
    if dropout_rate != 0.0:
        made = _ops.random_key(seed=seed or 0, ordinal=_core.next_ordinal())
        dropped = Dropped(dropout_rate, made, _wide(q))
    return attend_row((q, k, v), masks, float(scale), is_causal, dropped=dropped)


def attend_row(
    heads: tuple[Tensor, Tensor, Tensor],
    masks: Sequence[Tensor],
    scale: float,
    causal: bool,
    zero_blind: bool = False,
    dropped: Dropped | None = None,
) -> Tensor:
    """Return the engine's row: no matrix of all pairs, forwards and backwards.

    Args:
        heads: Query, key and value, of as many heads.
        masks: Each broadcasts to [n, heads, queries, keys]; all of them must let a query look.
        scale: What scores are multiplied by.
        causal: Whether one of the masks is the causal one.
        zero_blind: Whether a query that may look at no key has the result 0, instead of the mean.
        dropped: With examples on axis 0 only.
    """
    keys = [] if dropped is None else [dropped.key]
    found: Tensor = _ops.dot_product_attention(
        *heads, *masks, *keys,
        scale=scale,
        causal=bool(causal),
        zero_blind=zero_blind,
        rate=0.0 if dropped is None else dropped.rate,
        draw="float32" if dropped is None else dropped.dtype,
    )  # fmt: skip
    return found


def _wide(x: Tensor) -> str:
    """Return the dtype of weights: of 16 bits the result alone is."""
    return "float64" if x._dtype == "float64" else "float32"


def _pairs(name: str, given: TensorLike, x: Tensor) -> Tensor:
    if len(x._shape) != 4:
        raise ValueError(
            f"[{_WHO}] {name} must broadcast to [n, heads, queries, keys], with 4 axes: got "
            f"{shown(given)}."
        )
    return x


def of_each_head(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat keys and values for the heads of the query."""
    heads, given = int(q.shape[2]), int(k.shape[2])
    if heads == given or v.shape[2] != given:  # if they differ, the engine says so
        return k, v
    if given == 0 or heads % given:
        raise ValueError(
            f"[{_WHO}] heads of the key must divide those of the query: got {given} and {heads} "
            f"(shapes {k._shape} and {q._shape})."
        )
    places = np.repeat(np.arange(given), heads // given)
    return gather(k, places, axis=2), gather(v, places, axis=2)


def _in_parts(
    heads: tuple[Tensor, Tensor, Tensor],
    bias: Tensor | None,
    masks: Sequence[Tensor],
    scale: float,
    rate: float,
    seed: int | None,
) -> Tensor:
    """Compute attention with the weights of all pairs in memory."""
    kind, wide = heads[0]._dtype, _wide(heads[0])
    q, k, v = (cast(transpose(x, [0, 2, 1, 3]), wide) for x in heads)
    scores = _ops.matmul(q, k, transpose_b=True) * scale
    if bias is not None:
        _check_pairs("bias", bias, scores)
        scores = scores + cast(bias, wide)
    for mask in masks:
        _check_pairs("mask", mask, scores)
        lowest = convert_to_tensor(-0.7 * float(np.finfo(wide).max), wide)
        scores = _ops.select(mask, scores, lowest)
    weights = dropout(_ops.softmax(scores), rate, seed=seed)
    return cast(transpose(_ops.matmul(weights, v), [0, 2, 1, 3]), kind)


def _check_pairs(name: str, given: Tensor, scores: Tensor) -> None:
    for axis, size in enumerate(scores._shape):
        own = given._shape[axis]
        if own not in (1, size) and None not in (own, size):
            raise ValueError(
                f"[{_WHO}] the {name} must broadcast to (batch, heads, queries, keys): got "
                f"{given._shape} for {scores._shape}."
            )


def causal_mask(q: Tensor, k: Tensor) -> Tensor:
    """Return the causal mask, bools [1, 1, queries, keys]."""
    rows, columns = range_(q.shape[1]), range_(k.shape[1])
    return rows[None, None, :, None] >= columns[None, None, None, :]
