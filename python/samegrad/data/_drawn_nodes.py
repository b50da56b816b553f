"""The stages of a dataset that draw numbers, pass over errors or count what comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.sizes import whole
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad.data._cursor import Cursor
from samegrad.data._mapped import call
from samegrad.data._nodes import INFINITE, Indexed, Node, PythonNode, Run, UncountedNode
from samegrad.data._random import all_draws, data_function, take_ordinal
from samegrad.data._structure import Structure
from samegrad.errors import FailedPreconditionError

_MOST_ERRORS = 100_000  # one after the other; then something is wrong with all elements
_SEEN_BEFORE = 10  # elements of each class that an estimate begins with


class RandomNode(PythonNode):
    """Whole numbers from 0 to 2^32 - 1, without end.

    Args:
        seed: None: derived from the process's.
        each_epoch: Whether each epoch has numbers of its own.
    """

    def __init__(self, seed: int | None, each_epoch: bool) -> None:
        super().__init__(batched=False)
        self._seed, self._each_epoch = seed, each_epoch
        if seed is None:
            self.ordinal = take_ordinal()

    @property
    def spec(self) -> Structure:
        return TensorSpec((), "int64")

    def cardinality(self) -> int:
        return INFINITE

    def python_cursor(self, run: Run) -> Cursor:
        seed = run.seed_of(self) if self._seed is None else self._seed & (1 << 64) - 1
        return _RandomCursor(seed, run.epoch if self._each_epoch else 0)


class _RandomCursor(Cursor):
    def __init__(self, seed: int, epoch: int) -> None:
        self._seed, self._epoch = seed, epoch
        self._position = 0
        self._rest: Iterator[int] | None = None

    def next(self) -> Structure:
        if self._rest is None:
            draws = all_draws(self._seed, self._epoch, self._position)
            self._rest = chain.from_iterable(block.tolist() for block in draws)
        self._position += 1
        return Tensor(np.array(next(self._rest) >> 31, np.int64), copy=False)

    def skip(self, count: int) -> int:
        self._position += count
        self._rest = None
        return count


class IgnoreErrorsNode(UncountedNode):
    """The elements that can be made.

    Args:
        child: Where they come from.
        warn: Whether what is left out is said.
    """

    def __init__(self, child: Node, warn: bool) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self._warn = child, warn

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def python_cursor(self, run: Run) -> Cursor:
        return _IgnoringCursor(self.child.cursor(run), self._warn)


class _IgnoringCursor(Cursor):
    def __init__(self, child: Cursor, warn: bool) -> None:
        self._child, self._warn = child, warn

    def next(self) -> Structure:
        for _ in range(_MOST_ERRORS):
            try:
                return self._child.next()
            except (StopIteration, MemoryError):
                raise
            except Exception as error:
                last = error
                if self._warn:
                    warn(f"[Dataset.ignore_errors] an element is left out: {error}")
        raise RuntimeError(
            f"[Dataset.ignore_errors] there must be elements without errors: got {_MOST_ERRORS} "
            "errors one after the other; look at the last one."
        ) from last


class CountedNode(Node):
    """The elements of a stage, of which somebody knows how many there are.

    Args:
        child: Where they come from.
        count: How many.
    """

    def __init__(self, child: Node, count: int) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self._count = child, count

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def cardinality(self) -> int:
        return self._count

    def index(self, run: Run) -> Indexed | None:
        return self.child.index(run) if self.child.cardinality() == self._count else None

    def python_cursor(self, run: Run) -> Cursor:
        return _CountedCursor(self.child.cursor(run), self._count)


class _CountedCursor(Cursor):
    def __init__(self, child: Cursor, count: int) -> None:
        self._child, self._count = child, count
        self._done = 0

    def next(self) -> Structure:
        try:
            element = self._child.next()
        except StopIteration:
            if self._count == INFINITE or self._done < self._count:
                raise self._other(f"{self._done}") from None
            raise
        self._done += 1
        if 0 <= self._count < self._done:
            raise self._other(f"at least {self._done}")
        return element

    def skip(self, count: int) -> int:
        done = self._child.skip(count)
        self._done += done
        return done

    def _other(self, found: str) -> FailedPreconditionError:
        wanted = "no end" if self._count == INFINITE else f"{self._count} elements"
        return FailedPreconditionError(
            f"[assert_cardinality] the dataset must have {wanted}: got {found}; assert what it has."
        )


class ResampleNode(UncountedNode):
    """Elements with their classes, of which so many are left out that classes come as wanted.

    Class c comes with probability a(c) = r(c) / max r, where r(c) is its wanted share by its share
    of the elements: the largest ones that give these shares.

    Args:
        child: Where the elements come from.
        class_func: Gets an element; returns the number of its class.
        target: The wanted share of each class.
        initial: Its share of the elements. None: counted while they come.
        seed: Of the draws; None: derived from the process's.
    """

    def __init__(
        self, child: Node, class_func: Callable[..., Any], target: np.ndarray[Any, Any],
        initial: np.ndarray[Any, Any] | None, seed: int | None,
    ) -> None:  # fmt: skip
        super().__init__(child, batched=None)
        self.child, self._class_func = child, class_func
        self._target, self._initial, self._seed = target, initial, seed
        self.ordinal = take_ordinal()

    @property
    def spec(self) -> Structure:
        return TensorSpec((), "int32"), self.child.spec

    def python_cursor(self, run: Run) -> Cursor:
        draws = run.draws_of(self)
        seed = draws if self._seed is None else self._seed & (1 << 64) - 1
        chances = all_draws(seed, run.epoch)
        return _ResampleCursor(
            self.child.cursor(run),
            lambda number, element: self._class_of(draws, number, element),
            chain.from_iterable((block / 2.0**63).tolist() for block in chances),
            self._target,
            self._initial,
        )

    def _class_of(self, seed: int, number: int, element: Structure) -> int:
        with data_function(seed, number):
            found = whole(call(self._class_func, element), "a class is an integer")
        if not 0 <= found < len(self._target):
            raise InvalidArgumentError(
                "[Dataset.rejection_resample] a class must be one of 0 … "
                f"{len(self._target) - 1}: got {found}; target_dist has a share for each."
            )
        return found


class _ResampleCursor(Cursor):
    def __init__(
        self, child: Cursor, class_of: Callable[[int, Structure], int], chances: Iterator[float],
        target: np.ndarray[Any, Any], initial: np.ndarray[Any, Any] | None,
    ) -> None:  # fmt: skip
        self._child, self._class_of, self._chances = child, class_of, chances
        self._target, self._estimates = target, initial is None
        self._counts = np.full(len(target), float(_SEEN_BEFORE)) if initial is None else initial
        self._read = 0

    def next(self) -> Structure:
        while True:
            element = self._child.next()
            self._read += 1
            chance = next(self._chances)
            found = self._class_of(self._read - 1, element)
            if self._estimates:
                self._counts[found] += 1
            # Shares that are wanted of classes that never come have no part in it.
            ratios = np.divide(
                self._target, self._counts, out=np.zeros(len(self._target)),
                where=self._counts > 0,
            )  # fmt: skip
            if chance * ratios.max() < ratios[found]:
                return Tensor(np.array(found, np.int32), copy=False), element


def shares_of(value: Any, who: str, what: str) -> np.ndarray[Any, Any]:
    """Convert class frequencies to an array; raise ValueError unless they sum to 1."""
    shares = np.array(value, np.float64)
    fits = shares.ndim == 1 and len(shares) and (shares >= 0).all()
    if not fits or not abs(shares.sum() - 1) < 1e-3:
        raise ValueError(
            f"[Dataset.{who}] {what} must be the share of each class, 1 in sum: got {shown(value)}."
        )
    return shares


__all__ = ["CountedNode", "IgnoreErrorsNode", "RandomNode", "ResampleNode", "shares_of"]
