"""The states of the random generators of a process, as arrays that a checkpoint stores."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from samegrad import _core

WORDS = 1256  # of a state: 628 for each of NumPy's and Python's Mersenne Twisters
_FIELDS = ("seed", "step", "ordinal", "created")


def words() -> np.ndarray[Any, Any]:
    """The states of `numpy.random` and `random`: shape (1256,), uint32.

    Each is the 624 words of its Mersenne Twister (Matsumoto and Nishimura, 1998), the place in
    them, and whether a normally distributed number is held, and which (a float64, in two words).

    Raises:
        ValueError: `numpy.random` has another generator (`numpy.random.set_bit_generator`).

    Example:
        >>> before = words()
        >>> first = random.random(), float(np.random.rand())
        >>> set_words(before)
        >>> (random.random(), float(np.random.rand())) == first
        True
    """
    state: Any = np.random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(
            "[BackupAndRestore] numpy.random must be the Mersenne Twister, whose state is stored: "
            f"got {state['bit_generator']}; leave it as it is, and use a Generator of your own."
        )
    twister = state["state"]
    own = _packed(twister["key"], twister["pos"], bool(state["has_gauss"]), state["gauss"])
    _, inner, gauss = random.getstate()
    return np.concatenate([own, _packed(inner[:-1], inner[-1], gauss is not None, gauss or 0.0)])


def set_words(state: np.ndarray[Any, Any]) -> None:
    """Set both generators to a state that `words` returned.

    Args:
        state: Shape (1256,), uint32.
    """
    key, place, held, gauss = _unpacked(state[: WORDS // 2])
    np.random.set_state(("MT19937", key, place, int(held), gauss))
    key, place, held, gauss = _unpacked(state[WORDS // 2 :])
    random.setstate((3, (*map(int, key), place), gauss if held else None))


def engine_state() -> dict[str, int]:
    """Samegrad's own random state."""
    state = _core.random_state()
    return {field: int(getattr(state, field)) for field in _FIELDS}


def set_engine_state(values: dict[str, int]) -> None:
    """Set samegrad's own random state to what `engine_state` returned."""
    state = _core.random_state()
    for field in _FIELDS:
        setattr(state, field, int(values[field]))


class StateTable:
    """States, each stored once, that others name by their places.

    Example:
        >>> table = StateTable()
        >>> table.place_of(words()) == table.place_of(words())
        True
    """

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}

    def place_of(self, state: np.ndarray[Any, Any] | None) -> int:
        """The place of a state, which is added if it is new; -1: no state."""
        if state is None:
            return -1
        return self._places.setdefault(state.tobytes(), len(self._places))

    def array(self) -> np.ndarray[Any, Any]:
        """All of them: shape (states, 1256), uint32."""
        joined = np.frombuffer(b"".join(self._places), np.uint32)
        states: np.ndarray[Any, Any] = joined.reshape(len(self._places), WORDS).copy()
        return states


def _packed(key: Any, place: int, held: bool, gauss: float) -> np.ndarray[Any, Any]:
    rest = np.array([place, held], np.uint32)
    return np.concatenate(
        [np.asarray(key, np.uint32), rest, np.float64(gauss).reshape(1).view(np.uint32)]
    )


def _unpacked(part: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int, bool, float]:
    return part[:624], int(part[624]), bool(part[625]), float(part[626:].copy().view(np.float64)[0])
