"""How the examples of a batch are laid out over replicas and micro-batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """Which examples each replica has in each of its micro-batches.

    Args:
        parts: parts[replica][micro-batch] are numbers of examples.
    """

    parts: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def replicas(self) -> int:
        """How many replicas there are."""
        return len(self.parts)

    @property
    def micro_batches(self) -> int:
        """How many micro-batches each replica has."""
        return len(self.parts[0])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many examples each replica has."""
        return tuple(sum(map(len, share)) for share in self.parts)

    @property
    def examples(self) -> tuple[int, ...]:
        """The numbers of all examples, replica by replica."""
        return tuple(i for share in self.parts for part in share for i in part)

    def __str__(self) -> str:
        sizes = "+".join(map(str, self.sizes))
        more = f" in {self.micro_batches} micro-batches" if self.micro_batches > 1 else ""
        return f"{self.replicas} replicas of {sizes}{more}"


_MAX_REPLICAS = 1 << 16  # and micro-batches


def layout(sizes: Sequence[int], micro_batches: int = 1) -> Layout:
    """Consecutive examples for each replica, each share cut into micro-batches of about one size.

    Example:
        >>> layout([2, 3]).parts
        (((0, 1),), ((2, 3, 4),))
    """
    if not 1 <= micro_batches <= _MAX_REPLICAS:
        raise ValueError(
            f"[layout] micro_batches must be from 1 to {_MAX_REPLICAS}: got {micro_batches}; pass "
            "the number of parts that a replica's share is cut into."
        )
    parts, first = [], 0
    for size in sizes:
        cuts = [first + size * k // micro_batches for k in range(micro_batches + 1)]
        parts.append(tuple(tuple(range(a, b)) for a, b in itertools.pairwise(cuts)))
        first += size
    return Layout(tuple(parts))


def uneven_sizes(examples: int, replicas: int, turn: int = 0) -> list[int]:
    """Sizes that differ from each other as far as the examples allow, in a turned order.

    Example:
        >>> uneven_sizes(10, 3), uneven_sizes(10, 3, turn=1)
        ([2, 3, 5], [3, 5, 2])
    """
    if examples < 0 or not 1 <= replicas <= _MAX_REPLICAS:
        raise ValueError(
            f"[uneven_sizes] examples must be at least 0 and replicas from 1 to {_MAX_REPLICAS}: "
            f"got {examples} and {replicas}."
        )
    weights = np.array([2, 3, 5, 7, 11, 13, 17, 19][:replicas], dtype=float)
    if replicas > len(weights):
        weights = 2.0 + np.arange(replicas)
    sizes = np.maximum(1, np.floor(examples * weights / weights.sum())).astype(int)
    sizes[-1] += max(0, examples - sizes.sum())
    while sizes.sum() > examples:
        sizes[np.argmax(sizes / weights)] -= 1
    return [int(n) for n in np.roll(sizes, -turn)]


def layouts_for(
    examples: int, replicas: Sequence[int], micro_batches: Sequence[int], even: bool = False
) -> list[Layout]:
    """Even and uneven splits for each number of replicas; even ones alone if wished.

    Two splits of the same batch tell apart what one number cannot: sizes 2, 3 and 5 have no common
    divisor, so that a factor belongs to one of them only.
    """
    found: list[Layout] = []
    for count in replicas:
        for k in micro_batches:
            if count == 1 and k == 1:
                continue
            splits = [[examples // count] * count if even else uneven_sizes(examples, count)]
            if count > 1 and not even:
                splits.append(uneven_sizes(examples, count, turn=1))
                splits.append(
                    [examples - examples // count * (count - 1)] + [examples // count] * (count - 1)
                )
            found += [layout(sizes, k) for sizes in splits if min(sizes) >= k]
    several = {k for k in micro_batches if k > 1}
    if len(several) == 1 and (more := max(several) + 1) <= examples and not even:
        found.append(layout([examples], more))  # tells a factor K from 1 / K
    unique: list[Layout] = []
    for item in found:
        if item not in unique:
            unique.append(item)
    return unique
