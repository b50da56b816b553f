"""Training runs for `assert_replica_invariant`, written as a user's program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure

Array = npt.NDArray[Any]
OP = "assert_replica_invariant"


class TrainingError(ValueError):
    """Raised if a program cannot be trained; it names a remedy."""


@dataclass(frozen=True)
class Division:
    """The way in which a run is divided.

    Args:
        replicas: The number of replicas of all processes together.
        threads: The number of threads of each process.
        processes: The number of processes.
    """

    replicas: int
    threads: int
    processes: int

    def __str__(self) -> str:
        counted = (
            (self.replicas, "replica", "s"),
            (self.threads, "thread", "s"),
            (self.processes, "process", "es"),
        )
        return ", ".join(f"{n} {name}{plural * (n != 1)}" for n, name, plural in counted)


@dataclass(frozen=True)
class Program:
    """Training program with its data.

    Args:
        make: Returns a compiled Keras model, or the function of a replica and its state.
        batches: The global batch of each step.
        seed: The random seed of each run.
    """

    make: Callable[[], Any]
    batches: list[Any]
    seed: int

    def states(self, division: Division) -> list[dict[str, Array]]:
        """Train on this process's part of a division; return all arrays after each step."""
        import samegrad as tf

        threads = tf.config.threading.get_intra_op_parallelism_threads()
        tf.config.threading.set_intra_op_parallelism_threads(division.threads)
        try:
            with warnings.catch_warnings():
                for said in _warnings_of_divisions():
                    warnings.simplefilter("ignore", said)  # the reasons say it
                return list(self._run(division))
        finally:
            tf.config.threading.set_intra_op_parallelism_threads(threads)

    def reasons(self, division: Division) -> list[str]:
        """Return the reasons that `explain` and the checks of a traced step have for a difference.

        The division is on the replicas of this process.
        """
        strategy, made = self._built(Division(division.replicas, division.threads, 1))
        (batch,) = strategy.experimental_distribute_dataset(_dataset_of(self.batches[0]))
        step, args = _step_of(made, batch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = strategy.explain(step, args=args)
        found = [str(reason) for reason in plan.reasons]
        kinds = _warnings_of_divisions()
        said = [
            str(one.message).splitlines()[0] for one in caught if issubclass(one.category, kinds)
        ]
        return list(dict.fromkeys([*found, *said]))

    def _run(self, division: Division) -> Iterator[dict[str, Array]]:
        strategy, made = self._built(division)
        if isinstance(made, tuple):
            yield from _steps_of_function(strategy, made[0], made[1], self.batches)
        else:
            yield from _steps_of_model(made, self.batches)

    def _built(self, division: Division) -> tuple[Any, Any]:
        """Return the strategy, and what `make` returned in its scope."""
        import samegrad as tf

        tf.keras.utils.set_random_seed(self.seed)
        strategy: Any
        if division.processes > 1:
            strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=division.replicas)
        else:
            strategy = tf.distribute.MirroredStrategy(replicas=division.replicas)
        with strategy.scope():
            made = _checked(self.make())
        return strategy, made


def batches_of(data: Any, steps: int, batch_size: int | None) -> list[Any]:
    """Return the global batch of each step; the first one again after the last.

    Args:
        data: Arrays, a dataset of global batches, or a function that returns one of these.
        steps: The number of batches.
        batch_size: Examples of a batch of arrays; None: two fifths of all.

    Raises:
        TrainingError: The data have no example, or arrays of different sizes.
    """
    import samegrad as tf

    if callable(data) and not isinstance(data, tf.data.Dataset):
        data = data()
    if isinstance(data, tf.data.Dataset):
        return _elements(data, steps)
    arrays = map_structure(np.asarray, data)
    counts = {len(leaf) if leaf.ndim else -1 for leaf in flatten(arrays)}
    if len(counts) != 1 or -1 in counts:
        shapes = [leaf.shape for leaf in flatten(arrays)]
        raise TrainingError(
            f"[{OP}] data must have the same number of examples along axis 0: got shapes {shapes}."
        )
    examples = counts.pop()
    if not examples:
        raise TrainingError(f"[{OP}] data must have at least one example: got none; add some.")
    size = batch_size or max(1, 2 * examples // 5)
    cuts = [slice(i, i + size) for i in range(0, examples, size)]
    batches = [map_structure(lambda leaf, cut=cut: leaf[cut], arrays) for cut in cuts]
    return [batches[step % len(cuts)] for step in range(steps)]


def _warnings_of_divisions() -> tuple[type[Warning], ...]:
    import samegrad as tf

    return tf.errors.LossNormalizationWarning, tf.errors.ReplicaDependenceWarning


def _elements(dataset: Any, steps: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < steps:
        before = len(found)
        for element in dataset:
            found.append(map_structure(_array_of, element))
            if len(found) == steps:
                break
        if len(found) == before:
            raise TrainingError(f"[{OP}] data must have at least one batch: got an empty dataset.")
    return found


def _array_of(value: Any) -> Any:
    """Return a dense tensor as an array, which can be sent to other processes."""
    import samegrad as tf

    return value.numpy() if isinstance(value, tf.Tensor) else value


def _dataset_of(batch: Any) -> Any:
    import samegrad as tf

    return tf.data.Dataset.from_tensors(batch)


def _checked(made: Any) -> Any:
    if isinstance(made, tuple) and len(made) == 2 and callable(made[0]):
        return made
    if hasattr(made, "train_step") and getattr(made, "compiled", False):
        return made
    raise TrainingError(
        f"[{OP}] make must return a compiled Keras model, or a pair of the function of a replica "
        f"and the state that it changes: got {shown(made)}; compile the model, or return the pair."
    )


def _step_of(made: Any, batch: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the function of a replica and its arguments."""
    if isinstance(made, tuple):
        return made[0], batch if isinstance(batch, tuple) else (batch,)
    return made.train_step, (batch if isinstance(batch, tuple) else (batch,),)


def _steps_of_function(
    strategy: Any, step: Any, state: Any, batches: list[Any]
) -> Iterator[dict[str, Array]]:
    import samegrad as tf

    train = tf.function(lambda *args: strategy.run(step, args=args))
    for global_batch in batches:
        for batch in strategy.experimental_distribute_dataset(_dataset_of(global_batch)):
            train(*_step_of((step, state), batch)[1])
        yield _snapshot(state)


def _steps_of_model(model: Any, batches: list[Any]) -> Iterator[dict[str, Array]]:
    for batch in batches:
        history = model.fit(_dataset_of(batch), shuffle=False, verbose=0).history
        logs = {name: np.float64(values[-1]) for name, values in history.items()}
        yield _snapshot({"logs": logs, "model": model})


def _snapshot(state: Any) -> dict[str, Array]:
    from samegrad.train._values import values_of

    arrays = values_of(state, OP).arrays
    return {path: np.array(array) for path, array in arrays.items()}


__all__ = ["OP", "Division", "Program", "TrainingError", "batches_of"]
