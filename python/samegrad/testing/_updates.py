"""What a step does to the parameters, as one vector, small enough to solve with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samegrad._nest import flatten
from samegrad.testing._batches import StepError, take
from samegrad.testing._layouts import Layout

Vector = npt.NDArray[np.float64]


class Outcome(NamedTuple):
    """What a step may return, where it tells more than the update.

    Args:
        update: The change of the parameters, or the gradient that is applied: arrays in any
            structure.
        loss: The loss that it reports.
        replicas: The update of each replica's copy, where there are several.
        statistics: Moments after the step, such as the moving mean and variance of batch
            normalization: arrays in any structure.
    """

    update: Any
    loss: Any = None
    replicas: Sequence[Any] | None = None
    statistics: Any = None


Step = Callable[[list[Any]], Any]


@dataclass
class Recorded:
    """One run of the step: a sketch of its update, its norm, its loss."""

    sketch: Vector
    norm: float
    loss: float | None
    drift: float  # largest difference between the copies of the replicas, relative
    lengths: Vector  # what a limit keeps equal: the norm, the norm of each array, the peak
    samples: Vector  # some elements of the update, in order
    statistics: Vector | None


class Recorder:
    """Runs a step and keeps a random projection of its update.

    A relation that holds between updates holds between their projections, so millions of
    parameters are solved with as thousands.

    Args:
        step: Takes the replicas' batches (lists of micro-batches where there are several).
        batch: The global batch.
        width: Numbers that are kept of an update.
        seed: Of the signs.
    """

    def __init__(self, step: Step, batch: Any, width: int, seed: int = 0) -> None:
        self._step = step
        self._batch = batch
        self._width = width
        self._signs: list[npt.NDArray[np.int8]] | None = None
        self._random = np.random.default_rng(seed)
        self.parameters = 0

    def use(self, batch: Any) -> None:
        """Goes on with other examples."""
        self._batch = batch

    def run(self, arrangement: Layout) -> Recorded:
        """The step on a layout of the batch.

        Raises:
            StepError: The update is None, no number, or of another structure than before.
        """
        shares = []
        for share in arrangement.parts:
            pieces = [take(self._batch, part) for part in share]
            shares.append(pieces if arrangement.micro_batches > 1 else pieces[0])
        result = self._step(shares)
        outcome = result if isinstance(result, Outcome) else Outcome(result)
        arrays = self._arrays(outcome.update, arrangement)
        norm = float(np.sqrt(sum(float(np.vdot(a, a)) for a in arrays)))
        loss = None if outcome.loss is None else float(np.asarray(outcome.loss))
        peak = max((float(np.abs(a).max(initial=0.0)) for a in arrays), default=0.0)
        lengths = np.array([norm, *(float(np.linalg.norm(a)) for a in arrays[:64]), peak])
        return Recorded(
            self._sketch(arrays), norm, loss, self._drift(outcome, norm), lengths,
            _samples(arrays), None if outcome.statistics is None else _joined(outcome.statistics),
        )  # fmt: skip

    def _arrays(self, update: Any, arrangement: Layout) -> list[Vector]:
        leaves = flatten(update)
        if not leaves or any(leaf is None for leaf in leaves):
            raise StepError(
                f"[step] it must return the update (arrays in any structure): got {update!r:.60} "
                f"for {arrangement}; return the gradients, or the change of the parameters."
            )
        arrays = [np.asarray(leaf, dtype=np.float64).ravel() for leaf in leaves]
        sizes = [a.size for a in arrays]
        if self._signs is None:
            self.parameters = sum(sizes)
            draws = [self._random.integers(0, 2, n, dtype=np.int8) for n in sizes]
            self._signs = [np.asarray(2 * d - 1, dtype=np.int8) for d in draws]
        elif sizes != [signs.size for signs in self._signs]:
            known = [signs.size for signs in self._signs]
            raise StepError(
                f"[step] every update must have the same structure: got arrays of {sizes} elements "
                f"for {arrangement} after ones of {known}."
            )
        return arrays

    def _sketch(self, arrays: Sequence[Vector]) -> Vector:
        assert self._signs is not None
        total = np.zeros(self._width)
        offset = 0
        for array, signs in zip(arrays, self._signs, strict=True):
            signed = array * signs
            head = min((-offset) % self._width, signed.size)
            total[offset % self._width : offset % self._width + head] += signed[:head]
            rest = signed[head:]
            full = rest.size // self._width * self._width
            total += rest[:full].reshape(-1, self._width).sum(axis=0)
            total[: rest.size - full] += rest[full:]
            offset += array.size
        return total

    @staticmethod
    def _drift(outcome: Outcome, norm: float) -> float:
        if not outcome.replicas:
            return 0.0
        copies = [_joined(copy) for copy in outcome.replicas]
        largest = max(float(np.abs(copy - copies[0]).max(initial=0.0)) for copy in copies)
        scale = max(float(np.abs(copies[0]).max(initial=0.0)), norm * 1e-12, 1e-300)
        return largest / scale


_SAMPLES = 4096  # elements that are looked at one by one


def _joined(value: Any) -> Vector:
    leaves = [np.asarray(leaf, dtype=np.float64).ravel() for leaf in flatten(value)]
    return np.concatenate(leaves)


def _samples(arrays: Sequence[Vector]) -> Vector:
    stride = max(1, -(-sum(a.size for a in arrays) // _SAMPLES))
    return np.concatenate([array[::stride] for array in arrays])
