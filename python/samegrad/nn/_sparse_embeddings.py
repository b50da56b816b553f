"""Embeddings of lists of ids, combined to one per list."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, concat, reshape
from samegrad._ops.creation import ones
from samegrad._ops.gather import boolean_mask, gather
from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.math._segments import segment_sum
from samegrad.nn._normalization import embedding_lookup

_ops = _core.ops
_COMBINERS = ("mean", "sqrtn", "sum")


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Look up the embeddings of lists of ids, and combine those of each list.

    Args:
        params: The table [size, ...], or a list of one table.
        sp_ids: The ids of each list, int64: a sparse tensor [lists, longest], none of them empty,
            or a ragged tensor.
        sp_weights: The weight of each id, in the structure of `sp_ids`; None: 1.
        combiner: "sum"; "mean", the default, divides by the sum of the weights; "sqrtn" divides by
            the square root of the sum of their squares.
        max_norm: Scale embeddings of a larger Euclidean norm down to it; None: keep them.
        name: Ignored.
        allow_fast_lookup: Ignored.

    Returns:
        A tensor of shape [lists, *params.shape[1:]].

    Raises:
        TypeError: The ids are neither sparse nor ragged.
        ValueError: The weights differ from the ids in their number, or the combiner is unknown.

    Example:
        >>> import samegrad as tf
        >>> ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 1], [2, 2])
        >>> embedding_lookup_sparse(tf.constant([[1.0], [3.0]]), ids, None).numpy().ravel()
        array([2., 3.], dtype=float32)
    """
    who = "embedding_lookup_sparse"
    kind = "mean" if combiner is None else combiner
    if kind not in _COMBINERS:
        raise ValueError(f"[{who}] combiner must be 'mean', 'sqrtn' or 'sum': got {kind!r}.")
    lists, ids = _entries(who, sp_ids)
    found = embedding_lookup(params, ids, max_norm)
    each = _ops.full_like(found, value=1.0)
    if sp_weights is not None:
        _, weights = _entries(who, sp_weights)
        if weights.shape != ids.shape:
            raise ValueError(
                f"[{who}] each id must have one weight: got {tuple(weights.shape)} weights for "
                f"{tuple(ids.shape)} ids."
            )
        each = each * reshape(cast(weights, found.dtype), [-1, *[1] * (found._rank - 1)])
    total = segment_sum(found * each, lists)
    if kind == "sum":
        return total
    if kind == "mean":
        return _ops.div_no_nan(total, segment_sum(each, lists))
    return _ops.div_no_nan(total, _ops.sqrt(segment_sum(each * each, lists)))


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Look up and combine embeddings as `embedding_lookup_sparse`, with empty lists.

    Negative ids are dropped, and ids without a positive weight, unless the combiner is "sum".

    Args:
        embedding_weights: The table [size, ...], or a list of one table.
        sparse_ids: The ids of each list, int64: a sparse tensor [..., longest] or a ragged tensor.
        sparse_weights: The weight of each id, in the structure of `sparse_ids`; None: 1.
        combiner: "mean", "sqrtn" or "sum".
        default_id: The id of empty lists; None: their embeddings are zeros.
        max_norm: Scale embeddings of a larger Euclidean norm down to it; None: keep them.
        name: Ignored.
        allow_fast_lookup: Ignored.

    Returns:
        A tensor of shape [..., *embedding_weights.shape[1:]].

    Raises:
        TypeError: The ids are neither sparse nor ragged.
        ValueError: The weights differ from the ids in their number, or the combiner is unknown.

    Example:
        >>> import samegrad as tf
        >>> ids = tf.SparseTensor([[0, 0], [2, 0]], [1, -1], [3, 1])
        >>> safe_embedding_lookup_sparse(tf.constant([[1.0], [3.0]]), ids).numpy().ravel()
        array([3., 0., 0.], dtype=float32)
    """
    who = "safe_embedding_lookup_sparse"
    lists, ids, sizes = *_entries(who, sparse_ids), _sizes_of_lists(sparse_ids)
    rows, numbers = host_arrays(who, lists, ids)
    keep = numbers >= 0
    weights = None if sparse_weights is None else _entries(who, sparse_weights)[1]
    if weights is not None and combiner != "sum":
        keep = keep & (host_arrays(who, weights)[0] > 0)
    count = int(np.prod(sizes, dtype=np.int64))
    every = np.arange(count)
    empty = every[np.isin(every, rows[keep], invert=True)]
    order = np.argsort(np.concatenate([rows[keep], empty]), kind="stable")
    rows = np.concatenate([rows[keep], empty])[order]
    filled = np.full(len(empty), 0 if default_id is None else default_id, numbers.dtype)
    made = np.concatenate([numbers[keep], filled])[order]
    places = np.column_stack([rows, np.arange(len(rows))])
    of_made = None
    if weights is not None:
        kept = concat([boolean_mask(weights, keep), ones([len(empty)], weights.dtype)], 0)
        of_made = SparseTensor(places, gather(kept, order), [count, len(rows)])
    sparse = SparseTensor(places, made, [count, len(rows)])
    found = embedding_lookup_sparse(embedding_weights, sparse, of_made, combiner, max_norm)
    if default_id is None and len(empty):
        known = np.isin(every, empty, invert=True)
        factor = known.reshape(-1, *[1] * (found._rank - 1))
        found = _ops.select(convert_to_tensor(factor), found, _ops.full_like(found, value=0.0))
    return reshape(found, [*sizes, *found.shape[1:]])


def _sizes_of_lists(ids: Any) -> list[int]:
    if isinstance(ids, RaggedTensor):
        return [len(ids)]
    return [int(size) for size in np.asarray(ids.dense_shape)[:-1]]


def _entries(who: str, ids: Any) -> tuple[Tensor, Tensor]:
    """Return the number of the list and the value of each entry."""
    if isinstance(ids, RaggedTensor):
        return convert_to_tensor(ids.value_rowids()), convert_to_tensor(ids.flat_values)
    if not isinstance(ids, SparseTensor):
        raise TypeError(
            f"[{who}] ids and weights must be SparseTensors or RaggedTensors: got {shown(ids)}; "
            "use samegrad.sparse.from_dense."
        )
    places = np.asarray(ids.indices)
    sizes = tuple(_sizes_of_lists(ids))
    rows = np.ravel_multi_index(tuple(places[:, :-1].T), sizes) if len(places) else places[:, 0]
    return convert_to_tensor(rows), convert_to_tensor(ids.values)


__all__ = ["embedding_lookup_sparse", "safe_embedding_lookup_sparse"]
