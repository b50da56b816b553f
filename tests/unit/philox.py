"""The draws of `stateless_*` by the formulas that are promised for ever, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Words = np.ndarray  # of uint32, in uint64


def philox(counter: Sequence[Words], key: tuple[int, int]) -> list[Words]:
    """Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers" (SC 2011)."""
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1 = (p1 >> half) ^ c1 ^ np.uint64(k0), p1 & low
        c2, c3 = (p0 >> half) ^ c3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


def _words(
    key: tuple[int, int], rows: np.ndarray, n: int, parts: int, attempt: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """What the four words are for each element of rows of n, and which part of them it is."""
    e = np.arange(n, dtype=np.uint64)
    block = np.uint64(16 * parts)
    c = e // block * np.uint64(16) + e % np.uint64(16)
    c, r = np.broadcast_arrays(c, np.asarray(rows, np.uint64)[:, None])
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    second = (c >> half) + np.uint64(attempt << 16)
    words = np.stack(philox([c & low, second, r & low, r >> half], key))
    return words, np.broadcast_to((e % block // np.uint64(16)).astype(int), c.shape)


def _unit(words: np.ndarray, part: np.ndarray, parts: int) -> np.ndarray:
    pick = lambda p: np.take_along_axis(words, p[None], 0)[0]  # noqa: E731
    if parts == 4:
        return (pick(part) >> np.uint64(8)).astype(float) / 2**24
    high, low = pick(2 * part) >> np.uint64(5), pick(2 * part + 1) >> np.uint64(6)
    return (high.astype(float) * 2**26 + low.astype(float)) / 2**53


def uniform(key: tuple[int, int], rows: Sequence[int], n: int, parts: int = 4) -> np.ndarray:
    """Rows of n numbers; parts: 4 of float32, 2 of float64."""
    return _unit(*_words(key, np.asarray(rows), n, parts), parts)


def normal(
    key: tuple[int, int], rows: Sequence[int], n: int, parts: int = 4, attempt: int = 0
) -> np.ndarray:
    """As float64, whatever the parts are of."""
    words, part = _words(key, np.asarray(rows), n, parts, attempt)
    even = part - part % 2
    if parts == 4:
        first = (np.take_along_axis(words, even[None], 0)[0] >> np.uint64(1)).astype(float)
        first = (first + 0.5) / 2**31
    else:
        first = _unit(words, even, parts) + 2**-54
    angle = 2 * np.pi * _unit(words, even + 1, parts)
    return np.sqrt(-2 * np.log(first)) * np.where(part % 2, np.sin(angle), np.cos(angle))


def truncated_normal(
    key: tuple[int, int], rows: Sequence[int], n: int, parts: int = 4
) -> np.ndarray:
    drawn = normal(key, rows, n, parts)
    attempt = 1
    while (abs(drawn) > 2).any():
        drawn = np.where(abs(drawn) > 2, normal(key, rows, n, parts, attempt), drawn)
        attempt += 1
    return drawn


def integers(key: tuple[int, int], rows: Sequence[int], n: int, low: int, high: int) -> np.ndarray:
    """Python's integers; low + bits where low == high."""
    words, part = _words(key, np.asarray(rows), n, 2)
    words = words.astype(object)
    bits = np.where(part, words[2] + (words[3] << 32), words[0] + (words[1] << 32))
    return low + (bits if low == high else (bits * (high - low)) >> 64)
