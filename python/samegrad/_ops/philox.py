"""Philox4x32-10, with its counter and key in the order of TensorFlow's generators.

Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). A block of four
words of 32 bits is a function of a counter of 128 bits and a key of 64. NumPy computes it where the
state has a value. In a traced step the engine's 64-bit integers do, with the same words.
"""

from __future__ import annotations

import numpy as np

from samegrad import _core
from samegrad._ops.arrays import cast, expand_dims, stack
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_ROUNDS = 10
_FACTORS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 1 << 32
_BITS = np.left_shift(np.uint64(1), np.arange(32, dtype=np.uint64))


def blocks(state: Tensor, places: np.ndarray) -> Tensor:
    """Return the blocks of some counters from the state's on.

    Args:
        state: int64 [3]: the counter's lower and upper 64 bits, and the key.
        places: uint64 [count]: how far behind the state's counter.

    Returns:
        uint64 [count, 4]: words below 2**32.

    Example:
        >>> blocks(convert_to_tensor(np.zeros(3, np.int64)), np.array([0], np.uint64)).numpy()[0, 0]
        np.uint64(1713891541)
    """
    if not state._symbolic:
        return convert_to_tensor(_host(np.asarray(state.numpy()).view(np.uint64), places))
    return _traced(cast(state, "uint64"), convert_to_tensor(places))


def _host(state: np.ndarray, places: np.ndarray) -> np.ndarray:
    low = state[0] + places  # modulo 2**64
    high = state[1] + (low < places).astype(np.uint64)
    half, mask = np.uint64(32), np.uint64(_WORD - 1)
    words = [low & mask, low >> half, high & mask, high >> half]
    keys = [int(state[2]) % _WORD, int(state[2]) >> 32]
    for _ in range(_ROUNDS):
        first, second = (words[2 * i] * np.uint64(_FACTORS[i]) for i in (0, 1))
        words = [
            (second >> half) ^ words[1] ^ np.uint64(keys[0]), second & mask,
            (first >> half) ^ words[3] ^ np.uint64(keys[1]), first & mask,
        ]  # fmt: skip
        keys = [(key + step) % _WORD for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack(words, axis=1)


def _traced(state: Tensor, places: Tensor) -> Tensor:
    word = convert_to_tensor(np.uint64(_WORD))
    low = state[0] + places
    high = state[1] + cast(low < places, "uint64")
    words = [low % word, low // word, high % word, high // word]
    keys = [state[2] % word, state[2] // word]
    for _ in range(_ROUNDS):
        first, second = (words[2 * i] * np.uint64(_FACTORS[i]) for i in (0, 1))
        words = [
            _parity(second // word, words[1], keys[0]), second % word,
            _parity(first // word, words[3], keys[1]), first % word,
        ]  # fmt: skip
        keys = [(key + np.uint64(s)) % word for key, s in zip(keys, _KEY_STEPS, strict=True)]
    return stack(words, axis=1)


def _parity(*words: Tensor) -> Tensor:
    """Compute the bitwise exclusive or, for which the engine has no op."""
    weights = convert_to_tensor(_BITS)
    two = convert_to_tensor(np.uint64(2))
    ones = [(expand_dims(word, -1) // weights) % two for word in words]
    total = ones[0]
    for more in ones[1:]:
        total = total + more
    return _core.ops.reduce_sum((total % two) * weights, axes=[total._rank - 1], keepdims=False)
