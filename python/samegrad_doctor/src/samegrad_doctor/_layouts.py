"""Layouts: the examples of each replica and micro-batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from samegrad_doctor._tree import flatten, map_structure

T = TypeVar("T")


class StepError(ValueError):
    """Raised if a step, or the arguments of `diagnose`, cannot be judged; it names a remedy."""


class StepFailedError(StepError):
    """Raised if the step raises."""


def if_taken(work: Callable[[], T], otherwise: T) -> T:
    """Return work(), or the other value if the step refuses a layout, which hides nothing else."""
    try:
        return work()
    except StepError:
        return otherwise


def rows_of(batch: Any) -> int:
    """Return the number of examples in a batch.

    Raises:
        StepError: It has no arrays, or their axes 0 have different sizes.
    """
    counts = {len(leaf) if np.ndim(leaf) else -1 for leaf in flatten(batch)}
    if len(counts) != 1 or -1 in counts:
        shapes = [np.shape(leaf) for leaf in flatten(batch)]
        raise StepError(
            "[batch] arrays must have the same number of examples along axis 0: got shapes "
            f"{shapes}."
        )
    return counts.pop()


def take(batch: Any, indices: npt.ArrayLike) -> Any:
    """Return the examples with these indices, in the structure of the batch."""
    chosen = np.asarray(indices, dtype=np.intp)
    return map_structure(lambda leaf: np.asarray(leaf)[chosen], batch)


def described(structure: Any) -> str:
    """Describe a structure by the dtype and shape of each array.

    Example:
        >>> described([(np.ones((2, 3)), np.ones(2))])
        '[(float64[2, 3], float64[2])]'
    """
    named = map_structure(lambda leaf: f"{np.asarray(leaf).dtype}{list(np.shape(leaf))}", structure)
    return repr(named).replace("'", "")


def check(holds: bool, name: str, wanted: str, got: str) -> None:
    """Raise StepError for an argument of `diagnose`, unless the condition holds."""
    if not holds:
        raise StepError(f"[diagnose] {name} must be {wanted}: got {got}.")


def _is_whole(value: Any, least: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(whole and value >= least)


@dataclass(frozen=True)
class Settings:
    """Arguments of `diagnose`."""

    step: Callable[[list[Any]], Any]
    batch: Any
    weights: Sequence[float] | npt.NDArray[Any] | None
    replicas: Sequence[int]
    micro_batches: Sequence[int]
    max_examples: int
    equal_shards: bool
    seed: int

    def of(self, chosen: Sequence[int] | npt.NDArray[np.intp]) -> Settings:
        """Return the settings for some of the examples."""
        weights = None if self.weights is None else np.asarray(self.weights)[np.asarray(chosen)]
        return replace(self, batch=take(self.batch, chosen), weights=weights)

    @property
    def rows(self) -> int:
        """Return the number of examples in the batch."""
        return rows_of(self.batch)

    @property
    def divisible(self) -> int:
        """The least number of examples that all splits can deal out evenly."""
        return math.lcm(*(r * k for r in self.replicas for k in self.micro_batches))

    @property
    def multiple(self) -> int:
        """Return the divisor of all numbers of examples that are tried; 1 for unequal shards."""
        return self.divisible if self.equal_shards else 1

    def check(self) -> None:
        """Check the settings.

        Raises:
            StepError: One of them is not what it must be, or the examples are too few.
        """
        rows = self.rows
        for name in ("replicas", "micro_batches"):
            counts = getattr(self, name)
            several = isinstance(counts, Sequence | np.ndarray) and not isinstance(counts, str)
            check(several, name, "a sequence of counts, such as (2, 3)", f"{counts!r:.80}")
            whole = len(counts) > 0 and all(_is_whole(count, 1) for count in counts)
            check(whole, name, "integers >= 1", f"{tuple(counts)}")
        for name, least in (("max_examples", 1), ("seed", 0)):
            value = getattr(self, name)
            check(_is_whole(value, least), name, f"an integer >= {least}", f"{value!r:.80}")
        even = self.equal_shards
        check(isinstance(even, bool | np.bool_), "equal_shards", "True or False", f"{even!r:.80}")
        if min(rows, self.max_examples) < 3:
            raise StepError(
                f"[diagnose] at least 3 examples are needed: got a batch of {rows}, and "
                f"max_examples={self.max_examples}."
            )
        if self.weights is not None:
            try:
                weights = np.asarray(self.weights, dtype=np.float64)
            except (TypeError, ValueError):
                weights = np.zeros(())
            positive = weights.shape == (rows,) and np.isfinite(weights).all() and weights.min() > 0
            wanted = f"one positive number for each of the {rows} examples"
            got = (
                f"{self.weights!r:.80} of shape {weights.shape}; leave out examples without weight"
            )
            check(bool(positive), "weights", wanted, got)

    def usable(self, chosen: npt.NDArray[np.intp]) -> int:
        """Return the number of these examples, from the first, that the layouts can take.

        Unequal shards take slightly fewer, so that neither the examples nor their weights can be
        distributed equally: that would hide failure modes.

        Raises:
            StepError: They are too few for even shares.
        """
        count = len(chosen)
        if self.equal_shards:
            whole = self.multiple
            if count < max(whole, 3):
                raise StepError(
                    f"[diagnose] equal shards for replicas={tuple(self.replicas)} and "
                    f"micro_batches={tuple(self.micro_batches)} take a multiple of {whole} "
                    f"independent examples: got {count}; use more examples, or fewer replicas."
                )
            return count // whole * whole
        given = [] if self.weights is None else [np.asarray(self.weights)[chosen] * 1.0]
        several = [r for r in self.replicas if r > 1] or [k for k in self.micro_batches if k > 1]
        for own in (*given, np.ones(count)):
            for fewer in range(count, max(ENOUGH, count - 5) - 1, -1):
                if all(fewer % r and own[:fewer].sum() % r for r in several):
                    return fewer
        return count

    def splits(self, examples: int) -> list[Layout]:
        """Return equal or unequal splits for each number of replicas and micro-batches.

        Two splits of the same batch tell apart what one number cannot: sizes 2, 3 and 5 have no
        common divisor, so that a factor belongs to one of them only.

        Raises:
            StepError: There are none.
        """
        found: list[Layout] = []
        replicas, micro_batches = tuple(self.replicas), tuple(self.micro_batches)
        for r, k in itertools.product(replicas, micro_batches):
            size = examples // r
            splits = [[size] * r]
            if not self.equal_shards:
                last = [examples - size * (r - 1)] + [size] * (r - 1)
                splits = [*(unequal_sizes(examples, r, turn) for turn in (0, 1)), last]
            found += [layout(sizes, k) for sizes in splits if min(sizes) >= k and r * k > 1]
        several = {k for k in micro_batches if k > 1}
        more = max(several, default=0) + 1
        if len(several) == 1 and more <= examples and not (self.equal_shards and examples % more):
            found.append(layout([examples], more))  # tells a factor K from 1 / K
        if not found and max(replicas) * max(micro_batches) > 1:
            raise StepError(
                f"[diagnose] there is no split to compare with one device: got {examples} examples "
                f"that can be told apart for replicas={replicas} and "
                f"micro_batches={micro_batches}, each of which needs one; use more examples, or "
                "fewer replicas."
            )
        return list(dict.fromkeys(found))

    def turning(self, examples: int, count: int) -> list[Layout]:
        """Return splits of the examples in random orders: unequal ones in turn, or equal ones."""
        rng, even, found = np.random.default_rng(0), self.equal_shards, []
        # Another K tells a factor K from 1 / K.
        more = {k + 1 for k in self.micro_batches if k > 1} - set(self.micro_batches)
        pairs = itertools.product(self.replicas, (*self.micro_batches, *more))
        several = [(r, k) for r, k in pairs if 1 < r * k <= examples]
        for place, (r, k) in zip(range(count), itertools.cycle(several)):
            sizes = [examples // r] * r if even else unequal_sizes(examples, r, turn=place)
            if min(sizes) < k:
                sizes = [examples - k * (r - 1)] + [k] * (r - 1)
            found.append(layout(sizes, k).renumbered(rng.permutation(examples).tolist()))
        return found


@dataclass(frozen=True)
class Layout:
    """The examples of each replica in each of its micro-batches.

    Args:
        parts: The indices of the examples, parts[replica][micro-batch].
    """

    parts: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def replicas(self) -> int:
        """Return the number of replicas."""
        return len(self.parts)

    @property
    def micro_batches(self) -> int:
        """Return the number of micro-batches of each replica."""
        return len(self.parts[0])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of examples of each replica."""
        return tuple(sum(map(len, share)) for share in self.parts)

    @property
    def examples(self) -> tuple[int, ...]:
        """Return the indices of all examples, replica by replica."""
        return tuple(i for share in self.parts for part in share for i in part)

    def renumbered(self, order: Sequence[int]) -> Layout:
        """Return the same layout of examples in another order.

        Args:
            order: The new index of each example.

        Returns:
            A layout.
        """
        return Layout(tuple(tuple(tuple(order[i] for i in p) for p in s) for s in self.parts))

    def __str__(self) -> str:
        sizes = "+".join(map(str, self.sizes))
        more = f" in {self.micro_batches} micro-batches" if self.micro_batches > 1 else ""
        return f"{self.replicas} replica{'s' * (self.replicas > 1)} of {sizes}{more}"


def one_device(examples: Sequence[int]) -> Layout:
    """These examples on one device."""
    return Layout(((tuple(examples),),))


ENOUGH = 6  # independent examples tell shares of different sizes apart
_MAX_REPLICAS = 1 << 16  # and micro-batches


def layout(sizes: Sequence[int], micro_batches: int = 1) -> Layout:
    """Split consecutive examples over replicas, and each shard over micro-batches.

    Args:
        sizes: The number of examples of each replica.
        micro_batches: The number of micro-batches, of nearly equal sizes, of each replica.

    Returns:
        The layout.

    Raises:
        ValueError: `micro_batches` is below 1 or too large.

    Example:
        >>> layout([2, 3]).parts
        (((0, 1),), ((2, 3, 4),))
    """
    if not 1 <= micro_batches <= _MAX_REPLICAS:
        raise ValueError(
            f"[layout] micro_batches must be from 1 to {_MAX_REPLICAS}: got {micro_batches}; pass "
            "the number of micro-batches of a shard."
        )
    parts, first = [], 0
    for size in sizes:
        cuts = [first + size * k // micro_batches for k in range(micro_batches + 1)]
        parts.append(tuple(tuple(range(a, b)) for a, b in itertools.pairwise(cuts)))
        first += size
    return Layout(tuple(parts))


def unequal_sizes(examples: int, replicas: int, turn: int = 0) -> list[int]:
    """Return per-replica batch sizes that differ as far as the examples allow.

    Args:
        examples: The number of examples.
        replicas: The number of replicas.
        turn: The number of positions by which the sizes are rotated.

    Returns:
        A list with the size of each per-replica batch.

    Raises:
        TypeError: An argument is not an integer.
        ValueError: `examples` is negative, or `replicas` is below 1 or too large.

    Example:
        >>> unequal_sizes(10, 3), unequal_sizes(10, 3, turn=1)
        ([2, 3, 5], [3, 5, 2])
    """
    for name, value in (("examples", examples), ("replicas", replicas), ("turn", turn)):
        if not isinstance(value, int | np.integer):
            raise TypeError(f"[unequal_sizes] {name} must be an integer: got {value!r:.80}.")
    if examples < 0 or not 1 <= replicas <= _MAX_REPLICAS:
        raise ValueError(
            f"[unequal_sizes] examples must be >= 0 and replicas from 1 to {_MAX_REPLICAS}: "
            f"got {examples} and {replicas}."
        )
    primes = [2, 3, 5, 7, 11, 13, 17, 19][:replicas]
    weights = np.array(primes) if len(primes) == replicas else 2 + np.arange(replicas)
    sizes = np.maximum(1, np.floor(examples * weights / weights.sum())).astype(int)
    sizes[-1] += max(0, examples - sizes.sum())
    while sizes.sum() > examples:
        sizes[np.argmax(sizes / weights)] -= 1
    return [int(n) for n in np.roll(sizes, -turn)]


Groups = Callable[[Layout], list[tuple[int, ...]]]


def of_shares(item: Layout) -> list[tuple[int, ...]]:
    """The examples of each replica."""
    return [tuple(i for part in share for i in part) for share in item.parts]


def of_parts(item: Layout) -> list[tuple[int, ...]]:
    """The examples of each micro-batch of each replica."""
    return [part for share in item.parts for part in share]


def of_windows(item: Layout) -> list[tuple[int, ...]]:
    """The examples of each micro-batch, of all replicas together."""
    return [tuple(i for part in parts for i in part) for parts in zip(*item.parts, strict=True)]
