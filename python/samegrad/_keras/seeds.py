"""Seeds of generators that were given none."""

from __future__ import annotations

import numpy as np

from samegrad import _core


def default_seed() -> int:
    """A seed that `tf.random.set_seed` decides, and how many objects drew one since.

    It is the same in every thread and process that makes the same objects in the same order.

    Example:
        >>> default_seed() > 0
        True
    """
    state = _core.random_state()
    words = np.random.SeedSequence([state.seed, _core.take_created()]).generate_state(1)
    return int(words[0]) % 10**9 + 1
