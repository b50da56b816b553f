"""The batches of an epoch, and their shares for the replicas."""

from __future__ import annotations

import contextlib
import itertools
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.variables import standardize_dtype
from keras.src.trainers import epoch_iterator
from keras.src.trainers.data_adapters import is_tf_dataset
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

import samegrad as tf
from samegrad import _core
from samegrad._base.tree import map_structure
from samegrad._keras.data_pass import Hooks, Pass, goes_on, read_again
from samegrad._keras.losses import in_replica_of_several, value_of_all
from samegrad._keras.random_states import StateTable
from samegrad._keras.text_steps import OpenText
from samegrad._tensor.per_replica import PerReplica, TracedPerReplica
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import is_text
from samegrad.data._fingerprint import content_of, description_of
from samegrad.distribute._own_data import has_own_data
from samegrad.distribute._same_data import check_same_data

_LEAVES = (np.ndarray, Tensor, PerReplica, type(None))
_PLAIN = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))


class EpochIterator(epoch_iterator.EpochIterator):  # type: ignore[misc]
    """Gives lists of as many batches as one execution takes; the last one may have fewer."""

    steps_per_execution: int
    _epoch_iterator: Any
    _current_iterator: Any  # a Pass, or None

    def __init__(
        self, x: Any, y: Any = None, sample_weight: Any = None, strategy: Any = None, **options: Any
    ) -> None:
        if is_tf_dataset(x):
            options["shuffle"] = False
        super().__init__(x, y, sample_weight, **options)
        if strategy is not None and strategy.processes:
            _compare_or_share(self.data_adapter, strategy)
            self._num_batches = self.data_adapter.num_batches
        self._hooks = Hooks(self.data_adapter)
        self._earlier: list[int] = []  # batches of the passes before
        self._first_step = 0
        self.needed_by = ""  # the method that has not got a batch yet

    def record(self) -> None:
        """From here on `place` can be asked for."""
        self._hooks.recording = True

    def place(self, step: int, table: StateTable) -> dict[str, Any]:
        """Return the position in the data, for `go_to`.

        Args:
            step: The epoch's next one; 0 between two epochs.
            table: Gets the random states that are needed.
        """
        found = {
            "step": step,
            "steps_seen": self._steps_seen,
            "num_batches": self._num_batches,
            "hooks": self._hooks.record(table),
            "earlier": self._earlier,
        }
        if self._current_iterator is not None:
            found["pass"] = self._current_iterator.place(table)
        counter = self._dataset_epochs()
        return found if counter is None else found | {"next_epoch": counter.next_epoch}

    def go_to(self, place: dict[str, Any], states: Any) -> None:
        """The next epoch begins where another iterator over the same data was.

        Args:
            place: What `place` returned.
            states: What its table held.
        """
        step = self._first_step = place["step"]
        self._hooks.replay(place["hooks"], states, within=step > 0)
        self._earlier = list(place["earlier"])
        read_again(self.data_adapter, self._earlier)
        if "pass" in place and (step or self.steps_per_epoch):
            self._current_iterator = there = Pass(self.data_adapter)
            there.go_to(place["pass"], states)
        self._steps_seen, self._num_batches = place["steps_seen"], place["num_batches"]
        counter = self._dataset_epochs()
        if counter is not None:
            counter.next_epoch = place["next_epoch"]

    def _dataset_epochs(self) -> Any:
        return getattr(getattr(self.data_adapter, "_dataset", None), "_epochs", None)

    def _get_iterator(self) -> Any:
        self._leave()
        return Pass(self.data_adapter, self._hooks.recording)

    def _leave(self) -> None:
        """Note the end of the present pass, where the next one continues after it."""
        present, self._current_iterator = self._current_iterator, None
        if self._hooks.recording and present is not None and goes_on(self.data_adapter):
            self._earlier += [present.taken] if present.taken else []

    def first_batch(self) -> Any:
        """Return a batch, for its shapes: `reset` follows.

        Raises:
            ValueError: The data are empty.
        """
        several, self.steps_per_execution = self.steps_per_execution, 1
        try:
            return next(iter(self))[2][0]
        finally:
            self.steps_per_execution = several

    def reset(self) -> None:
        """The data begin anew."""
        self._current_iterator = None
        self._num_batches = self.data_adapter.num_batches
        self._steps_seen = 0
        self._epoch_iterator = None
        self._hooks.call("on_epoch_end")
        enqueuer = getattr(self.data_adapter, "enqueuer", None)
        if enqueuer is not None:  # what workers had ready would be given in the next epoch
            enqueuer.ready_queue = queue.Queue()

    def _enumerate_iterator(self) -> Any:
        """Enumerate steps as Keras does, but from the first step of a resumed epoch."""
        first, self._first_step = self._first_step, 0
        if not first:
            self._hooks.call("on_epoch_begin")
        steps = self.steps_per_epoch or self._num_batches or -1
        count = self.steps_per_execution
        if not first and (self._current_iterator is None or not self.steps_per_epoch):
            self._open()
        for step in range(first, steps, count) if steps > 0 else itertools.count(first, count):
            if steps > 0 and self._num_batches and self._steps_seen >= self._num_batches:
                if self.steps_per_epoch:
                    self._interrupted_warning()
                break
            self._steps_seen += count
            yield step, step + count - 1, self._current_iterator
        if steps > 0 and self._num_batches and self._steps_seen >= self._num_batches:
            self._open()
        self._hooks.call("on_epoch_end")

    def _open(self) -> None:
        self._current_iterator = self._get_iterator()
        self._steps_seen = 0

    @contextlib.contextmanager
    def catch_stop_iteration(self) -> Iterator[None]:
        """End the epoch where an iterator runs out of data."""
        try:
            yield
        except StopIteration:
            if self._num_batches is None:
                self._num_batches = self._steps_seen
            self._interrupted_warning()
            self._leave()
            self._hooks.call("on_epoch_end")

    def __next__(self) -> Any:
        begin, end, iterator = next(self._epoch_iterator)
        count = self.steps_per_execution
        if self._num_batches and not self.steps_per_epoch:
            count = min(count, self._num_batches - begin)
        found: list[Any] = []
        with self.catch_stop_iteration():
            for _ in range(count):
                found.append(next(iterator))
        if not found:
            self._check_needed()
            raise StopIteration
        self.needed_by = ""
        return begin, end, found

    def _check_needed(self) -> None:
        """ValueError where a method waits for its first batch."""
        if self.needed_by:
            kind = type(self.data_adapter).__name__.removesuffix("Adapter")
            raise ValueError(
                f"[{self.needed_by}] data must have at least one batch: got none of {kind}; give "
                "some, and begin a generator anew that has come to its end."
            )


def _compare_or_share(adapter: Any, strategy: Any) -> None:
    """Give each process its part of a dataset whose options say that it reads no more.

    Other datasets and arrays are compared: each process takes its rows of the same batches. What
    generators yield cannot be known.
    """
    dataset = getattr(adapter, "_dataset", None)
    if isinstance(dataset, tf.data.Dataset) and has_own_data(dataset):
        shared = strategy.experimental_distribute_dataset(dataset)
        shared._epochs = dataset._epochs
        adapter._dataset = shared
        return
    found: list[tuple[str, str]] = []
    if isinstance(dataset, tf.data.Dataset):
        found = description_of(dataset._node)
    elif isinstance(adapter, ArrayDataAdapter):
        options = f"batch_size={adapter._batch_size}, shuffle={adapter._shuffle}"
        found = [("arrays", content_of(adapter._inputs)), ("batches", options)]
        if adapter._shuffle:
            state = content_of(np.random.get_state(legacy=False)["state"])
            found.append(("order, which keras.utils.set_random_seed makes the same", state))
    check_same_data("data of fit, evaluate or predict", found)


def shares(batch: Any, strategy: Any) -> Any:
    """Split a global batch between the replicas of a strategy.

    Args:
        batch: A structure of arrays, of as many rows each; None stays.
        strategy: Whose replicas they are for.
    """
    count = strategy.num_replicas_in_sync
    own = _core.own_replicas(strategy.processes)

    def share(leaf: Any) -> Any:
        if leaf is None or getattr(leaf, "_is_per_replica", False):
            return leaf
        tensor = _of_examples(leaf)
        if count == 1 or not tensor._rank:
            return tensor
        bounds = _core.share_bounds(int(tensor._shape[0]), count)
        return PerReplica(_core.split_rows(tensor, bounds, own))

    if type(batch) is tuple and all(type(part) in _LEAVES for part in batch):
        return tuple(map(share, batch))  # what most data are, without a walk
    return map_structure(share, batch)


def _of_examples(leaf: Any) -> Tensor:
    """The array as a tensor with its examples on axis 0."""
    if type(leaf) is np.ndarray and leaf.ndim and leaf.dtype in _PLAIN:
        return Tensor(leaf, True, 0)
    tensor = leaf if isinstance(leaf, Tensor) else tf.convert_to_tensor(np.asarray(leaf))
    if tensor._rank and tensor._example_axis is None:
        marked: Tensor = tensor._as_examples(0, 1)
        return marked
    return tensor


def symbolic(batch: Any) -> Any:
    """The shapes and types of a batch, whose number of examples is left open."""

    def spec(leaf: Any) -> Any:
        if leaf is None or is_text(leaf):
            return leaf if leaf is None else OpenText(leaf)
        part = leaf.values[0] if isinstance(leaf, PerReplica) else leaf
        sizes = tuple(part.shape)
        return KerasTensor((None, *sizes[1:]) if sizes else (), standardize_dtype(part.dtype))

    return tree.map_structure(spec, batch)


def of_all(name: str, value: Any) -> Any:
    """One value of what the replicas return: what is equal on all, or the sum of their shares.

    Args:
        name: Of the value, for messages.
        value: A number, or a replica's tensor.

    Raises:
        ValueError: It differs, and the step does not show that it is a share.
    """
    if not in_replica_of_several() or not isinstance(value, Tensor) or not value._varying:
        return value
    if value._rank or _core.current_trace().loss_normalization(value) != "share":
        raise ValueError(
            f"[train_step] {name!r} differs between the replicas, and the step does not show what "
            "it is of all examples: return the result() of a metric, or a replica's share of the "
            "loss (of compute_loss, or samegrad.nn.compute_average_loss)."
        )
    return value_of_all(value)


def of_first(value: Any) -> Any:
    """The first of the replicas' values, which are equal."""
    if isinstance(value, TracedPerReplica):
        return value.tensor
    return value.values[0] if isinstance(value, PerReplica) else value
