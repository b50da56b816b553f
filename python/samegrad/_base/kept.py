"""Results that are kept as long as they are small enough in all."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_within(most_bytes: int) -> Callable[[Function], Function]:
    """Keep what a function of hashable arguments gives: arrays, or tuples of them.

    Args:
        most_bytes: Of all arrays that are kept. Those that were asked for least recently go first;
            a result that is larger by itself is made anew at each call.

    Example:
        >>> @kept_within(100)
        ... def zeros(size):
        ...     return np.zeros(size)
        >>> zeros(3) is zeros(3), zeros(30) is zeros(30)
        (True, False)
    """

    def keeping(function: Function) -> Function:
        kept: OrderedDict[Hashable, Any] = OrderedDict()
        lock = threading.Lock()
        taken = 0

        @functools.wraps(function)
        def found(*arguments: Any) -> Any:
            nonlocal taken
            with lock:
                if arguments in kept:
                    kept.move_to_end(arguments)
                    return kept[arguments]
            made = function(*arguments)
            size = _bytes_of(made)
            with lock:
                if size <= most_bytes and arguments not in kept:
                    kept[arguments] = made
                    taken += size
                    while taken > most_bytes:
                        taken -= _bytes_of(kept.popitem(last=False)[1])
            return made

        found.kept = kept  # type: ignore[attr-defined]
        return found  # type: ignore[return-value]

    return keeping


def _bytes_of(result: Any) -> int:
    arrays = result if isinstance(result, tuple) else (result,)
    return sum(np.asarray(array).nbytes for array in arrays)
