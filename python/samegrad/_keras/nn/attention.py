"""keras.backend.nn: attention."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad import nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """softmax(scale * query · keyᵀ + bias) · value, for each head, as the mask lets it look.

    Args:
        query: Floats [n, queries, heads, width].
        key: [n, keys, heads or a divisor of them, width].
        value: [n, keys, as many heads, value width].
        bias: Broadcasts to [n, heads, queries, keys].
        mask: Booleans that do; true where a query may look.
        scale: None: 1 / sqrt(width).
        is_causal: Whether query i looks at the keys 0 … i only.
        flash_attention: Not used: no matrix of all pairs is kept anyway, unless there is a bias.
        attn_logits_soft_cap: Not used, as in Keras on all but TPUs.

    Raises:
        ValueError: The shapes do not fit.
    """
    given = [convert_to_tensor(x) for x in (query, key, value)]
    if any(x._rank != 4 for x in given):
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={given[0].shape}, key.shape={given[1].shape}, "
            f"value.shape={given[2].shape}."
        )
    kind = result_type(*(x._dtype for x in given))
    q, k, v = (tf.cast(x, kind) for x in given)
    return nn.dot_product_attention(
        q, k, v,
        bias=None if bias is None else convert_to_tensor(bias, kind),
        mask=None if mask is None else convert_to_tensor(mask, "bool"),
        scale=None if scale is None else float(scale),
        is_causal=bool(is_causal),
    )  # fmt: skip
