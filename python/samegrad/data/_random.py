"""Seeds of a run through a dataset, and the random state that its functions draw from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from samegrad import _core

_DRAWS_AT_ONCE = 256
_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """One number of 63 bits for some integers; other integers give an unrelated one.

    The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014), applied number by number.
    """
    state = 0
    for number in numbers:
        state = (state + (number & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1


def take_ordinal() -> int:
    """The number of this draw among those of the process since its seed was set."""
    return int(_core.random_state().take_ordinal())


def process_seed() -> int:
    """Return the seed that samegrad.random.set_seed has set."""
    return int(_core.random_state().seed)


def all_draws(seed: int, epoch: int, first: int = 0) -> Iterator[Any]:
    """Arrays of the numbers of 63 bits that belong to the places from `first` on, without end."""
    while True:
        yield np.asarray(_core.shuffle_draws(seed, epoch, first, _DRAWS_AT_ONCE), np.uint64)
        first += _DRAWS_AT_ONCE


def data_function(seed: int, position: int) -> _core.Guard:
    """Around a user's function: what it draws depends on seed and position only.

    It runs at once, whatever is being traced or watched.
    """
    return _core.data_function(seed, position)
