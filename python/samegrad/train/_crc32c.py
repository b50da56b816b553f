"""CRC-32C (Castagnoli), the checksum of TensorFlow's and LevelDB's files, computed with NumPy.

A CRC is linear over GF(2): a block is split into lanes, which are processed together, two bytes a
step. The CRCs of neighbouring lanes are then merged, as often as needed for one to be left.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78  # reflected
_LANE = 256  # bytes
_BLOCK = 1 << 20  # bytes
_FEW = 1 << 10  # bytes, for which a loop is faster
_ALL_ONES = 0xFFFFFFFF


def masked_crc32c(content: bytes | memoryview) -> int:
    """Return the CRC-32C in the form in which these files store it.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'
    """
    crc = crc32c(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ALL_ONES


def crc32c(content: bytes | memoryview) -> int:
    """Return the CRC-32C of some bytes.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    if len(content) <= _FEW:
        return _by_bytes(content) ^ _ALL_ONES
    data = np.frombuffer(content, np.uint8)
    head = data.size % _BLOCK
    crc = _after_zeros(_ALL_ONES, head) ^ _of_block(data[:head])
    for begin in range(head, data.size, _BLOCK):
        crc = _after_zeros(crc, _BLOCK) ^ _of_block(data[begin : begin + _BLOCK])
    return crc ^ _ALL_ONES


def _by_bytes(content: bytes | memoryview) -> int:
    table, crc = _table_of_one(), _ALL_ONES
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def _of_block(data: npt.NDArray[np.uint8]) -> int:
    """Return the CRC without its initial and final inversion; zeros in front do not change it."""
    lanes = 1
    while lanes * _LANE < data.size:
        lanes *= 2
    padded = np.zeros(lanes * _LANE, np.uint8)
    padded[padded.size - data.size :] = data
    steps = np.ascontiguousarray(padded.view("<u2").reshape(lanes, -1).transpose())
    table = _table_of_two()
    crcs: Words = np.zeros(lanes, np.uint32)
    for words in steps:
        crcs = (crcs >> np.uint32(16)) ^ table[(crcs & np.uint32(0xFFFF)) ^ words]
    level = _LANE.bit_length() - 1
    while crcs.size > 1:
        crcs = _apply(_zeros_operator(level), crcs[::2]) ^ crcs[1::2]
        level += 1
    return int(crcs[0])


@functools.cache
def _table_of_one() -> list[int]:
    found: list[int] = _shifted(np.arange(1 << 8, dtype=np.uint32), 8).tolist()
    return found


@functools.cache
def _table_of_two() -> Words:
    """Return the CRCs of all pairs of bytes, by the pair as a little-endian integer."""
    return _shifted(np.arange(1 << 16, dtype=np.uint32), 16)


def _shifted(crcs: Words, bits: int) -> Words:
    """Return the CRCs after a number of zero bits."""
    for _ in range(bits):
        bits_out = np.where(crcs & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
        crcs = (crcs >> np.uint32(1)) ^ bits_out
    return crcs


@functools.cache
def _zeros_operator(level: int) -> Words:
    """Return what 2**level zero bytes make of each of the 32 bits of a CRC."""
    if level == 0:
        return _shifted(np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32)), 8)
    half = _zeros_operator(level - 1)
    return _apply(half, half)


def _apply(operator: Words, crcs: Words) -> Words:
    result: Any = np.zeros(crcs.shape, np.uint32)
    for bit in range(32):
        result ^= np.where((crcs >> bit) & 1, operator[bit], np.uint32(0))
    return result  # type: ignore[no-any-return]


def _after_zeros(crc: int, count: int) -> int:
    """Return the CRC after a number of zero bytes."""
    found = np.array([crc], np.uint32)
    for level in range(count.bit_length()):
        if count >> level & 1:
            found = _apply(_zeros_operator(level), found)
    return int(found[0])


__all__ = ["crc32c", "masked_crc32c"]
