"""The hashes by which TensorFlow puts text into buckets: FarmHash64 and SipHash-2-4."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotated(x: int, bits: int) -> int:
    return ((x >> bits) | (x << (64 - bits))) & _MASK


def _mixed(x: int) -> int:
    return x ^ (x >> 47)


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 8], "little")


def _pair(u: int, v: int, factor: int) -> int:
    a = _mixed(((u ^ v) * factor) & _MASK)
    b = _mixed(((v ^ a) * factor) & _MASK)
    return (b * factor) & _MASK


def fingerprint(text: bytes) -> int:
    """Return FarmHash's 64-bit fingerprint of a string.

    Example:
        >>> fingerprint(b"")
        11160318154034397263
    """
    size = len(text)
    if size <= 16:
        return _up_to_16(text, size)
    if size > 64:
        return _long(text, size)
    factor = (_K2 + 2 * size) & _MASK
    first = _K1 if size <= 32 else _K2
    a, b = (_word(text, 0) * first) & _MASK, _word(text, 8)
    c = (_word(text, size - 8) * factor) & _MASK
    d = (_word(text, size - 16) * _K2) & _MASK
    y = (_rotated((a + b) & _MASK, 43) + _rotated(c, 30) + d) & _MASK
    z = _pair(y, (a + _rotated((b + _K2) & _MASK, 18) + c) & _MASK, factor)
    if size <= 32:
        return z
    e, f = (_word(text, 16) * factor) & _MASK, _word(text, 24)
    g = ((y + _word(text, size - 32)) * factor) & _MASK
    h = ((z + _word(text, size - 24)) * factor) & _MASK
    left = (_rotated((e + f) & _MASK, 43) + _rotated(g, 30) + h) & _MASK
    return _pair(left, (e + _rotated((f + a) & _MASK, 18) + g) & _MASK, factor)


def _up_to_16(text: bytes, size: int) -> int:
    factor = (_K2 + 2 * size) & _MASK
    if size >= 8:
        a, b = (_word(text, 0) + _K2) & _MASK, _word(text, size - 8)
        c = (_rotated(b, 37) * factor + a) & _MASK
        return _pair(c, ((_rotated(a, 25) + b) * factor) & _MASK, factor)
    if size >= 4:
        first = int.from_bytes(text[:4], "little")
        return _pair(size + (first << 3), int.from_bytes(text[-4:], "little"), factor)
    if size:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return (_mixed(((y * _K2) ^ (z * _K0)) & _MASK) * _K2) & _MASK
    return _K2


def _weak(text: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = struct.unpack_from("<4Q", text, place)
    a = (a + w) & _MASK
    b = _rotated((b + a + z) & _MASK, 21)
    c = a
    a = (a + x + y) & _MASK
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def _long(text: bytes, size: int) -> int:
    y = (81 * _K1 + 113) & _MASK
    z = (_mixed((y * _K2 + 113) & _MASK) * _K2) & _MASK
    x = (81 * _K2 + _word(text, 0)) & _MASK
    v, w = (0, 0), (0, 0)
    last = (size - 1) // 64 * 64
    factor = _K1
    # The last round covers the last 64 bytes, with constants of its own.
    for s in [*range(0, last, 64), size - 64]:
        final = s + 64 == size
        nine = 9 if final else 1
        if final:
            factor = (_K1 + ((z & 0xFF) << 1)) & _MASK
            w = (w[0] + ((size - 1) & 63)) & _MASK, w[1]
            v = (v[0] + w[0]) & _MASK, v[1]
            w = (w[0] + v[0]) & _MASK, w[1]
        x = (_rotated((x + y + v[0] + _word(text, s + 8)) & _MASK, 37) * factor) & _MASK
        y = (_rotated((y + v[1] + _word(text, s + 48)) & _MASK, 42) * factor) & _MASK
        x ^= (w[1] * nine) & _MASK
        y = (y + v[0] * nine + _word(text, s + 40)) & _MASK
        z = (_rotated((z + w[0]) & _MASK, 33) * factor) & _MASK
        v = _weak(text, s, (v[1] * factor) & _MASK, (x + w[0]) & _MASK)
        w = _weak(text, s + 32, (z + w[1]) & _MASK, (y + _word(text, s + 16)) & _MASK)
        z, x = x, z
    left = (_pair(v[0], w[0], factor) + _mixed(y) * _K0 + z) & _MASK
    return _pair(left, (_pair(v[1], w[1], factor) + x) & _MASK, factor)


def joined(first: int, second: int) -> int:
    """Combine two fingerprints into one."""
    k = 0xC6A4A7935BD1E995
    result = first ^ k
    result ^= (_mixed((second * k) & _MASK) * k) & _MASK
    result = (result * k) & _MASK
    return _mixed((_mixed(result) * k) & _MASK)


def keyed(text: bytes, key: tuple[int, int]) -> int:
    """Return SipHash-2-4 of a string, with two words as the key."""
    v = [
        key[0] ^ 0x736F6D6570736575, key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261, key[1] ^ 0x7465646279746573,
    ]  # fmt: skip
    whole = len(text) - len(text) % 8
    ending = text[whole:].ljust(7, b"\0") + bytes([len(text) & 0xFF])
    for word in struct.unpack(f"<{whole // 8 + 1}Q", text[:whole] + ending):
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        v[0] = (v[0] + v[1]) & _MASK
        v[1] = _rotated(v[1], 51) ^ v[0]
        v[0] = _rotated(v[0], 32)
        v[2] = (v[2] + v[3]) & _MASK
        v[3] = _rotated(v[3], 48) ^ v[2]
        v[0] = (v[0] + v[3]) & _MASK
        v[3] = _rotated(v[3], 43) ^ v[0]
        v[2] = (v[2] + v[1]) & _MASK
        v[1] = _rotated(v[1], 47) ^ v[2]
        v[2] = _rotated(v[2], 32)


def old_hash(text: bytes) -> int:
    """Return MurmurHash64A (Appleby) of a string, with TensorFlow's seed."""
    m = 0xC6A4A7935BD1E995
    h = 0xDECAFCAFFE ^ (len(text) * m & _MASK)
    whole = len(text) // 8
    for word in struct.unpack(f"<{whole}Q", text[: 8 * whole]):
        k = word * m & _MASK
        h = (h ^ ((k ^ k >> 47) * m & _MASK)) * m & _MASK
    if len(text) % 8:
        h = (h ^ int.from_bytes(text[8 * whole :], "little")) * m & _MASK
    h = (h ^ h >> 47) * m & _MASK
    return h ^ h >> 47


def buckets(
    texts: Any, count: int, key: Any = None, plain: Callable[[bytes], int] = fingerprint
) -> Any:
    """Return the bucket of each string, below `count`.

    Args:
        texts: An array of strings.
        count: The number of buckets.
        key: Two integers that choose another hash; None: `plain`.
        plain: The hash without a key.
    """
    flat = list(texts.ravel())
    known = dict.fromkeys(flat, 0)
    for text in known:
        data = text if isinstance(text, bytes) else str(text).encode()
        value = plain(data) if key is None else keyed(data, (key[0], key[1]))
        known[text] = value % count
    return np.array([known[text] for text in flat], np.int64).reshape(texts.shape)
