"""Scaled dot-product attention."""

from __future__ import annotations

import math

from samegrad import _core
from samegrad._creation import range_
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops
_WHO = "dot_product_attention"


def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """softmax(scale * query · keyᵀ) · value, for each head (Vaswani et al., 2017).

    No matrix of all pairs of queries and keys is in memory, in the derivative neither; the bits are
    those of the products, the mask and the softmax one after the other. A query all of whose keys
    are masked weighs them equally. Layout, mask and scale are those of
    `keras.ops.dot_product_attention` and `jax.nn.dot_product_attention`.

    Args:
        query: Floats [n, queries, heads, width].
        key: [n, keys, heads, width].
        value: [n, keys, heads, value width].
        mask: Booleans that broadcast to [n, heads, queries, keys], true where a query may look;
            None: everywhere.
        scale: What scores are multiplied by; None: 1 / sqrt(width).
        is_causal: Whether query i looks at the keys 0 … i only.

    Returns:
        [n, queries, heads, value width].

    Raises:
        ValueError: The shapes do not fit.
        TypeError: The operands are no floats of one dtype, or the mask is not of booleans.

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
        width = int(q._shape[3])
        scale = 1.0 / math.sqrt(width) if width else 1.0
    operands = [q, k, v]
    allowed = None if mask is None else convert_to_tensor(mask)
    if allowed is not None and len(allowed._shape) != 4:
        raise ValueError(
            f"[{_WHO}] mask must broadcast to [n, heads, queries, keys], with 4 axes: got "
            f"{shown(mask)}."
        )
    if is_causal:
        causal = _causal(q, k)
        allowed = causal if allowed is None else _ops.logical_and(allowed, causal)
    if allowed is not None:
        operands.append(allowed)
    return _ops.dot_product_attention(*operands, scale=float(scale))


def _causal(q: Tensor, k: Tensor) -> Tensor:
    """Booleans [1, 1, queries, keys]."""
    rows, columns = range_(q.shape[1]), range_(k.shape[1])
    return rows[None, None, :, None] >= columns[None, None, None, :]
