"""Attention of Keras's layers: separate masks, and dropout inside the fused operation.

Keras joins the masks of queries, keys and order to one of all pairs of each sequence, and keeps the
weights of all pairs where a layer has dropout. Here neither is in memory.
"""

from __future__ import annotations

from typing import Any

from keras.src import ops
from keras.src.random.seed_generator import draw_seed

import samegrad as tf
from samegrad._tensor.example_axis import examples_axis
from samegrad._tensor.tensor import Tensor
from samegrad.nn._attention import Dropped, attend_row, causal_mask, of_each_head

_MODULES = [
    f"keras.src.layers.attention.{kind}_attention" for kind in ("multi_head", "grouped_query")
]
_PARTS = ("_compute_attention", "_compute_attention_mask", "_masked_softmax")


class Masks:
    """Masks that are joined when somebody looks.

    Args:
        layer: The layer whose they are.
        operands: Query and value before their projection.
        given: Keras's arguments of `_compute_attention_mask`.
    """

    def __init__(self, layer: Any, operands: tuple[Any, Any], given: dict[str, Any]) -> None:
        self._layer, self._operands, self._given = layer, operands, given
        self.causal = bool(given["use_causal_mask"])

    def joined(self) -> Any:
        """Keras's one mask, (batch, queries, keys), or None."""
        return self._layer._compute_attention_mask(*self._operands, **self._given)

    def parts(self) -> list[Tensor]:
        """Masks that broadcast to (batch, heads, queries, keys), but for that of the order."""
        given = self._given
        pairs = [
            ops.expand_dims(given[name], axis)
            for name, axis in (("query_mask", -1), ("value_mask", -2), ("key_mask", -2))
            if given[name] is not None
        ]
        if given["attention_mask"] is not None:
            pairs.append(given["attention_mask"])
        if _window(self._layer) is not None:
            pairs.append(self._layer._compute_sliding_window_mask(*self._operands))
        return [_of_heads(mask) for mask in pairs]


def masks_of(layer: Any, query: Any, value: Any, **given: Any) -> Any:
    """Return the masks for `_compute_attention`: one mask if a subclass overrides it."""
    own = any(
        getattr(type(layer), name) is not getattr(_keras_class(layer), name) for name in _PARTS
    )
    mask = given["attention_mask"]
    broadcasts = mask is None or len(getattr(mask, "shape", ())) in (2, 3)
    if own or not broadcasts or not isinstance(query, Tensor):
        return layer._compute_attention_mask(query, value, **given)
    return Masks(layer, (query, value), given)


def joined(mask: Any) -> Any:
    """One mask for Keras's own path."""
    return mask.joined() if isinstance(mask, Masks) else mask


def attend(
    layer: Any,
    heads: tuple[Any, Any, Any],
    mask: Any,
    causal: bool,
    training: Any,
    scores: bool,
) -> Tensor | None:
    """Compute attention of query, key and value; return None where Keras's own path does it.

    That is: scores are asked for, sequences have more than one axis, or weights are dropped while
    the examples are not on axis 0. With dropout the numbers are those of that path, to the bit in
    float32 and float64: the query is scaled, the same weights are dropped, and a query that may
    look at no key has the result 0.

    Args:
        layer: A MultiHeadAttention or GroupedQueryAttention.
        heads: Query, key and value, (batch, length, heads, width).
        mask: Masks, an array or None.
        causal: Whether a query looks at no later key, beside the masks.
        training: Whether weights are dropped.
        scores: Whether the weights are asked for.
    """
    rate, scale = _settings(layer)
    drops = rate > 0 and bool(training)
    if scores or not all(isinstance(x, Tensor) and x._rank == 4 for x in heads):
        return None
    if len({x._dtype for x in heads}) > 1:
        return None
    if rate >= 1 or (drops and examples_axis(heads[0]) != 0):
        return None
    if rate == 0 and not isinstance(mask, Masks):
        return None
    if isinstance(mask, Masks):
        causal = causal or mask.causal
        masks = mask.parts()
    else:
        masks = [] if mask is None else [_of_heads(mask)]
    query, key, value = heads
    if causal:
        masks.append(causal_mask(query, key))
    if rate > 0:  # Keras's order of the factors
        query, scale = query * ops.cast(scale, query.dtype), 1.0
    dropped = Dropped(rate, draw_seed(layer._dropout_layer.seed_generator)) if drops else None
    key, value = of_each_head(query, key, value)
    return attend_row(
        (query, key, value), masks, scale, causal, zero_blind=rate > 0, dropped=dropped
    )


def _settings(layer: Any) -> tuple[float, float]:
    """Dropout and scale."""
    if _grouped(layer):
        return float(layer.dropout), float(layer._inverse_sqrt_head_dim)
    return float(layer._dropout), float(layer._inverse_sqrt_key_dim)


def _window(layer: Any) -> Any:
    return layer.sliding_window if _grouped(layer) else layer._sliding_window


def _grouped(layer: Any) -> bool:
    return _keras_class(layer).__name__ == "GroupedQueryAttention"


def _keras_class(layer: Any) -> type:
    """Keras's layer, of which it may be a subclass; the module that has it imports this one."""
    return next(kind for kind in type(layer).__mro__ if kind.__module__ in _MODULES)


def _of_heads(mask: Any) -> Tensor:
    """A mask of pairs as one that broadcasts to (batch, heads, queries, keys)."""
    allowed = tf.cast(ops.convert_to_tensor(mask), "bool")
    while allowed._rank < 4:
        allowed = tf.expand_dims(allowed, axis=-3)
    return allowed
