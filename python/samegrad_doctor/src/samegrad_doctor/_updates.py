"""Updates of a step as one vector, small enough to solve with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samegrad_doctor._layouts import Layout, Settings, StepError, StepFailedError, described, take
from samegrad_doctor._tree import flatten

Vector = npt.NDArray[np.float64]


class Outcome(NamedTuple):
    """Return value of a step that holds more than the update.

    Args:
        update: The change of the parameters, or the applied gradient: arrays in any structure.
        loss: The reported loss, a scalar, or None.
        replicas: The update of each replica's copy, if there are several.
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
    rounding: float  # of its elements, relative
    statistics: Vector | None

    def without(self, term: Recorded) -> Recorded:
        """Less a term; its loss, which may be divided otherwise, and its lengths stay."""
        sketch, samples = self.sketch - term.sketch, self.samples - term.samples
        return replace(self, sketch=sketch, samples=samples)

    def has_length(self, limits: Sequence[float]) -> bool:
        """Return True if the update has the norm of one of the limits."""
        return any((np.abs(self.lengths - limit) <= _AS_LONG * limit).any() for limit in limits)

    def times(self, factor: float) -> Recorded:
        """All of it, but its loss, so many times."""
        scaled = ("sketch", "samples", "norm", "lengths")
        return replace(self, **{name: getattr(self, name) * factor for name in scaled})


def _numbers(leaf: Any) -> Any:
    """A row of real numbers, in the type that they have."""
    try:
        found = np.asarray(leaf)
        if found.dtype.kind == "c":
            raise TypeError("complex numbers")
        return (found if found.dtype.kind in "fiub" else found.astype(np.float64)).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise StepError(
            f"[step] the update must be arrays of real numbers: got {type(leaf).__name__} "
            f"({error}); return NumPy arrays, or what NumPy makes arrays of (detached tensors)."
        ) from error


def _one_number(loss: Any) -> float:
    try:
        return float(np.asarray(loss).reshape(()))
    except (TypeError, ValueError, RuntimeError) as error:
        raise StepError(
            f"[step] the reported loss must be one number: got {type(loss).__name__} of shape "
            f"{getattr(loss, 'shape', 'unknown')}; reduce it, or leave it out."
        ) from error


def check_finite(run: Recorded, item: Layout) -> None:
    """Raise StepError for an update that is not finite."""
    if not np.isfinite(run.sketch).all():
        raise StepError(
            f"[step] the update is not finite (NaN or inf) for {item}, though others are: look for "
            "a division by a count or weight that is 0 there."
        )


_SAMPLES = 4096  # elements that are looked at one by one
_AS_LONG = 3e-3  # by which updates may miss the length of a limit


def limited_lengths(lengths: Sequence[Vector]) -> list[float]:
    """The lengths (norm, arrays' norms, peak) that several updates have, none being longer."""
    table = np.stack([row for row in lengths if np.isfinite(row).all()])
    top = table.max(axis=0)
    hits = (table >= top * (1 - _AS_LONG)).sum(axis=0) >= 3
    arrays = hits[1:-1][top[1:-1] > 0]
    found = [float(top[place]) for place in (0, len(top) - 1) if hits[place]]
    if arrays.size and arrays.all():
        found += top[1:-1][top[1:-1] > 0].tolist()
    return found


class Recorder:
    """Runs a step and keeps a random projection of its update, of so many numbers (`width`).

    A relation that holds between updates holds between their projections, so millions of
    parameters are solved with as thousands. Updates are divided by the number of examples to the
    `power`.
    """

    def __init__(self, settings: Settings, width: int) -> None:
        self._step, self.batch, self._seed = settings.step, settings.batch, settings.seed
        self._width = width
        self._signs: list[npt.NDArray[np.int8]] = []
        self.parameters = self.power = 0
        self.notes: tuple[str, ...] = ()  # on examples that are left out
        self.norms = np.zeros(0)  # of all examples' own updates, NaN where unknown

    def run(self, arrangement: Layout) -> Recorded:
        """Run the step on a layout; StepError if the update is missing or has another structure."""
        windows = [[take(self.batch, part) for part in share] for share in arrangement.parts]
        shares = windows if arrangement.micro_batches > 1 else [window[0] for window in windows]
        try:
            result = self._step(shares)
        except StepError:
            raise
        except Exception as error:
            raise StepFailedError(
                f"[step] it raised {type(error).__name__} for {arrangement}: {error}. It is called "
                "with a list of one batch per replica (of lists of micro-batches, where there are "
                f"several), in the structure of the batch: got {described(shares)}; adapt it, or "
                "judge equal shards only (equal_shards=True), if it takes no others."
            ) from error
        outcome = result if isinstance(result, Outcome) else Outcome(result)
        arrays = self._arrays(outcome.update, arrangement)
        sketch, squares, peak = _projected(arrays, self._signs, self._width)
        norm = float(np.sqrt(squares.sum()))
        loss = None if outcome.loss is None else _one_number(outcome.loss)
        lengths = np.array([norm, *np.sqrt(squares[:64]), peak])
        stride = max(1, -(-self.parameters // _SAMPLES))
        samples = _joined([array[::stride] for array in arrays])
        below = samples[np.abs(samples) < (1 - 1e-6) * peak]  # no limit by value has set these
        found = Recorded(
            sketch, norm, loss, _drift(outcome, norm), lengths, samples,
            rounding_of(below if below.any() else samples),
            None if outcome.statistics is None else _joined(outcome.statistics),
        )  # fmt: skip
        return found.times(len(arrangement.examples) ** -self.power) if self.power else found

    def _arrays(self, update: Any, arrangement: Layout) -> list[Any]:
        leaves = flatten(update)
        if not leaves or any(leaf is None for leaf in leaves):
            raise StepError(
                f"[step] it must return the update (arrays in any structure): got {update!r:.60} "
                f"for {arrangement}; return the gradients, or the change of the parameters."
            )
        arrays = [_numbers(leaf) for leaf in leaves]
        sizes = [a.size for a in arrays]
        if not self._signs:
            self.parameters, self._signs = sum(sizes), _signs_of(sizes, self._seed)
        if sizes != (known := [signs.size for signs in self._signs]):
            raise StepError(
                f"[step] every update must have the same structure: got arrays of {sizes} elements "
                f"for {arrangement} after ones of {known}."
            )
        return arrays


_BLOCK = 256  # sketches that fit in the cache as float64


def _drift(outcome: Outcome, norm: float) -> float:
    """Return the largest difference of the replicas' copies, relative to their elements."""
    if not outcome.replicas:
        return 0.0
    copies = [flatten(copy) for copy in outcome.replicas]
    sizes = [[np.size(leaf) for leaf in copy] for copy in copies]
    if any(own != sizes[0] for own in sizes):
        raise StepError(
            "[step] the replicas' copies must have the same structure: got arrays of "
            f"{sizes} elements."
        )
    largest = 0.0
    for leaves in zip(*copies, strict=True):  # one at a time: copies may be large
        first, *others = (np.asarray(leaf).ravel() for leaf in leaves)
        for other in others:
            if not np.array_equal(first, other, equal_nan=True):
                apart = np.abs(np.subtract(first, other, dtype=np.float64)).max()
                largest = max(largest, float(apart) if np.isfinite(apart) else np.inf)
    if not largest or np.isinf(largest):
        return largest
    size = max(float(np.abs(np.asarray(leaf)).max(initial=0.0)) for leaf in copies[0])
    return largest / max(size, norm * 1e-12, 1e-300)


def _signs_of(sizes: Sequence[int], seed: int = 0) -> list[npt.NDArray[np.int8]]:
    """Return a random sign for each element of arrays of these sizes."""
    rng = np.random.default_rng(seed)
    draws = [rng.integers(0, 2, size, dtype=np.int8) for size in sizes]
    return [np.asarray(2 * draw - 1, dtype=np.int8) for draw in draws]


def _projected(
    arrays: Sequence[Any], all_signs: Sequence[Any], width: int
) -> tuple[Vector, Vector, float]:
    """Return the sketch, the square of each array, and the largest element, in one pass."""
    squares, peak, offset, total = np.zeros(len(arrays)), 0.0, 0, np.zeros(width)
    for place, (array, signs) in enumerate(zip(arrays, all_signs, strict=True)):
        head = min((-offset) % width, array.size)
        cuts = [0, *range(head, array.size, _BLOCK * width), array.size]
        for begin, end in itertools.pairwise(cuts):
            block = np.asarray(array[begin:end], dtype=np.float64)
            if not block.size:
                continue
            squares[place] += np.einsum("i,i->", block, block)  # BLAS would start threads
            peak = max(peak, float(block.max()), -float(block.min()))
            signed, first = block * signs[begin:end], (offset + begin) % width
            full = signed.size // width * width if first == 0 else 0
            total += signed[:full].reshape(-1, width).sum(axis=0)
            total[first : first + signed.size - full] += signed[full:]
        offset += array.size
    return total, squares, peak


def _joined(value: Any) -> Vector:
    return np.concatenate([_numbers(leaf) for leaf in flatten(value)]).astype(np.float64)


def rounding_of(samples: Vector) -> float:
    """The distance of neighbouring numbers, relative, in the coarsest format that holds all.

    Example:
        >>> rounding_of(np.float16([1.5, 0.1])) == 2.0**-10
        True
    """
    mantissas = np.frexp(np.asarray(samples, dtype=np.float64))[0]
    for bits in (8, 11, 24):  # of bfloat16, float16, float32
        scaled = mantissas * 2.0**bits
        if (scaled == np.round(scaled)).all():
            return 2.0 ** (1 - bits)
    return 2.0**-52


_DIGEST = 1 << 12  # numbers
_cached_signs = lru_cache(maxsize=1)(_signs_of)  # a worker sends a digest of each run


def digest(gradients: Sequence[Any]) -> Vector:
    """Return a projection that is equal where the gradients are, which are too large to send.

    A difference in any element shows, and shows how large it is.
    """
    arrays = [_numbers(gradient) for gradient in gradients]
    return _projected(arrays, _cached_signs(tuple(a.size for a in arrays)), _DIGEST)[0]
