"""Permutations of integers that are computed element by element.

They are TensorFlow's: the Simon block cipher (https://eprint.iacr.org/2013/404) with a fixed key
size and four rounds. It is walked along its cycles until the result is in the interval.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.errors import InvalidArgumentError

Words = NDArray[np.uint64]
_FIRST_WORD = 498247692
_ROUNDS = 4
_LEAST_BITS = 16
_Z = 0x7369F885192C0EF5


def index_shuffle(index: TensorLike, seed: TensorLike, max_index: TensorLike) -> Tensor:
    """Return the index of elements in a pseudorandom permutation of [0, ..., max_index].

    A `function` that computes it from values falls back to Python.

    Args:
        index: Integers from 0 to max_index: a scalar or a vector.
        seed: Two integers, which choose the permutation.
        max_index: The largest index: an integer of 0 or more, or one for each index.

    Returns:
        Integers in the shape and dtype of `index`.

    Raises:
        InvalidArgumentError: An index or max_index is negative, or an index is above max_index.
        TypeError: An argument has no integers.
        ValueError: The seed is not two integers.

    Example:
        >>> index_shuffle([0, 1, 2, 3], seed=[5, 9], max_index=3).numpy()
        array([2, 0, 1, 3], dtype=int32)
    """
    given = convert_to_tensor(index)
    indices, seeds, largest = host_arrays("index_shuffle", given, seed, max_index)
    for name, values in (("index", indices), ("seed", seeds), ("max_index", largest)):
        if values.dtype.kind not in "iu":
            raise TypeError(f"[index_shuffle] {name} must be integers: got {values.dtype}.")
    if seeds.shape != (2,):
        raise ValueError(f"[index_shuffle] seed must be two integers: got shape {seeds.shape}.")
    at, limits = np.broadcast_arrays(indices, largest)
    if (at < 0).any() or (limits < 0).any() or (at > limits).any():
        rule = "index" if (at < 0).any() else "max_index"
        bound = "index" if rule == "max_index" and (limits >= 0).all() else "0"
        raise InvalidArgumentError(
            f"[index_shuffle] {rule} must be >= {bound}: got index {indices.tolist()} and "
            f"max_index {largest.tolist()}."
        )
    key = [_FIRST_WORD, *(int(word) % 2**32 for word in seeds)]
    found = np.zeros(at.shape, np.uint64)
    for limit in np.unique(limits):
        chosen = limits == limit
        found[chosen] = _permuted(at[chosen].astype(np.uint64), key, int(limit))
    return convert_to_tensor(found.astype(indices.dtype))


def _permuted(values: Words, key: list[int], limit: int) -> Words:
    if limit == 0:
        return np.zeros_like(values)
    bits = math.ceil(math.log2(limit))
    half = min(max(bits + bits % 2, _LEAST_BITS), 64) // 2
    keys = _round_keys(key, half)
    found = _encrypted(values, keys, half)
    while (outside := found > limit).any():
        found[outside] = _encrypted(found[outside], keys, half)
    return found


def _round_keys(key: list[int], half: int) -> list[np.uint64]:
    mask = 2**half - 1
    keys = [word & mask for word in key]
    for i in range(3, _ROUNDS):
        last = keys[i - 1]
        turned = [(last >> n) | (last << (half - n)) for n in (3, 4)]
        bit = (_Z & mask) >> (i - 3) & 1
        keys.append((0xFFFFFFFC ^ bit ^ keys[i - 3] ^ turned[0] ^ turned[1]) & mask)
    return [np.uint64(word) for word in keys]


def _encrypted(values: Words, keys: list[Any], half: int) -> Words:
    size, mask = np.uint64(half), np.uint64(2**half - 1)

    def left_turned(x: Words, count: int) -> Words:
        n = np.uint64(count)
        return ((x << n) | (x >> (size - n))) & mask

    def mixed(x: Words) -> Words:
        return (left_turned(x, 1) & left_turned(x, 8)) ^ left_turned(x, 2)

    left, right = values >> size & mask, values & mask
    for first, second in zip(keys[::2], keys[1::2], strict=True):
        left = left ^ mixed(right) ^ first
        right = right ^ mixed(left) ^ second
    return left << size | right


__all__ = ["index_shuffle"]
