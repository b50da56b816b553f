"""One way through the data of a fit: from where it began, and how many batches were taken."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.data_adapters.generator_data_adapter import GeneratorDataAdapter

from samegrad._keras import random_states
from samegrad._keras.random_states import StateTable
from samegrad.data._iterator import ResumableIterator

Json = dict[str, Any]


class Pass(Iterator[Any]):
    """Walks through the batches of an adapter, and can say where it is.

    Args:
        adapter: Keras's, of any kind of data.
        recording: Whether `place` will be asked for.

    Attributes:
        taken: How many batches were given.
    """

    def __init__(self, adapter: Any, recording: bool = True) -> None:
        self.taken = 0
        self._recording = recording
        self._before: np.ndarray[Any, Any] | None = None  # the first batch
        self._engine: dict[str, int] = {}
        self._skipping = False
        self._in_order_already = _has_workers(adapter)
        self._batches = iter(self._opened(adapter))

    def __next__(self) -> Any:
        if self._recording and self._before is None:
            self._before = random_states.words()
            self._engine = random_states.engine_state()
        batch = next(self._batches)
        self.taken += 1
        return batch

    def place(self, table: StateTable) -> Json:
        """Return the position, from which another pass continues by `go_to`.

        Args:
            table: Gets the random state that the pass began with.
        """
        found: Json = {"taken": self.taken, "began": table.place_of(self._before)}
        if self._before is not None:
            found["engine"] = self._engine
        if isinstance(self._batches, ResumableIterator):
            found["iterator"] = dict(self._batches._checkpoint_state())
        return found

    def go_to(self, place: Json, states: np.ndarray[Any, Any]) -> None:
        """Goes to a place; datasets are positioned, other data are read up to there.

        Args:
            place: What `place` returned.
            states: What its table held.

        Raises:
            ValueError: The data end before it.
        """
        if isinstance(self._batches, ResumableIterator):
            self._batches._restore_state(place["iterator"])
        elif place["taken"]:
            if not self._in_order_already:  # they draw it as soon as the epoch has begun
                random_states.set_words(states[place["began"]])
            random_states.set_engine_state(place["engine"])
            self._read(place["taken"])
        self.taken = place["taken"]
        if place["began"] >= 0:
            self._before, self._engine = states[place["began"]].copy(), place["engine"]

    def _read(self, count: int) -> None:
        self._skipping = True
        try:
            for done in range(count):
                if next(self._batches, self) is self:
                    raise ValueError(
                        "[BackupAndRestore] the data must be those of the backup, which has taken "
                        f"{count} batches of them: got {done}; give a new iterator, or delete "
                        "backup_dir to begin anew."
                    )
        finally:
            self._skipping = False

    def _opened(self, adapter: Any) -> Any:
        if isinstance(adapter, ArrayDataAdapter):
            return self._slices(adapter)
        return getattr(adapter, "get_batches", adapter.get_numpy_iterator)()

    def _slices(self, adapter: Any) -> Any:
        """Slice as ArrayDataAdapter.get_numpy_iterator does; skipped slices are not copied."""
        inputs = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")

        def sliced(sliceable: Any, indices: Any = None) -> Any:
            return None if self._skipping else sliceable.convert_to_numpy(sliceable[indices])

        return adapter._get_iterator(sliced, inputs)


def _has_workers(adapter: Any) -> bool:
    return getattr(adapter, "enqueuer", None) is not None


class Hooks:
    """The calls of `on_epoch_begin` and `on_epoch_end` of data, which may shuffle them.

    A PyDataset's state is what these calls made of it: they are repeated when a fit resumes.

    Args:
        adapter: Keras's, of any kind of data.
    """

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self._data = getattr(adapter, "py_dataset", None)
        self.recording = False
        self._calls: list[tuple[str, np.ndarray[Any, Any] | None]] = []

    def call(self, name: str) -> None:
        """Call a hook of the adapter.

        Args:
            name: Of the method.
        """
        if not self.recording or self._data is None:
            getattr(self._adapter, name)()
            return
        before = random_states.words()
        getattr(self._adapter, name)()
        drew = not np.array_equal(before, random_states.words())
        drew = drew or _has_workers(self._adapter)  # which draw the order after the call
        self._calls.append((name, before if drew else None))

    def record(self, table: StateTable) -> list[list[Any]]:
        """The calls so far, with the places of the random states that they began with."""
        return [[name, table.place_of(before)] for name, before in self._calls]

    def replay(self, record: list[list[Any]], states: np.ndarray[Any, Any], within: bool) -> None:
        """Repeat the calls of a record.

        Args:
            record: What `record` returned.
            states: What its table held.
            within: Whether the last call began the epoch that goes on.
        """
        if self._data is None:
            return
        for number, (name, place) in enumerate(record):
            before = None if place < 0 else states[place].copy()
            if before is not None:
                random_states.set_words(before)
            last = within and number == len(record) - 1
            getattr(self._adapter if last else self._data, name)()
            self._calls.append((name, before))


def goes_on(adapter: Any) -> bool:
    """Tell if a new pass continues after the last one, as a generator's does.

    Args:
        adapter: Keras's, of any kind of data.
    """
    return isinstance(adapter, GeneratorDataAdapter)


def read_again(adapter: Any, counts: list[int]) -> None:
    """Read again what earlier passes took.

    Args:
        adapter: Keras's, of data whose passes go on.
        counts: Batches of each pass.
    """
    for count in counts:
        Pass(adapter, recording=False)._read(count)


def described(adapter: Any) -> Json:
    """Describe data to identify them: kind, sizes and, of arrays, some of the values.

    Args:
        adapter: Keras's, of any kind of data.
    """
    found: Json = {
        "kind": type(adapter).__name__,
        "batch_size": adapter.batch_size,
        "shuffle": str(getattr(adapter, "_shuffle", getattr(adapter, "shuffle", None))),
    }
    if isinstance(adapter, ArrayDataAdapter):
        found["arrays"] = [_sampled(leaf) for leaf in tree.flatten(adapter._inputs)]
    dataset: Any = getattr(adapter, "_dataset", None)
    node = getattr(dataset, "_node", None)
    if node is None:
        return found
    # Of files of its own each process has batches of its own size, and one backup is for all.
    own = getattr(dataset, "_data", None) is not None
    return found | {"elements": str(dataset.element_spec if own else node.spec)}


def _sampled(leaf: Any) -> str:
    """Shape, dtype and a hash of at most 64 rows, evenly spread."""
    if leaf is None or not hasattr(leaf, "shape"):
        return type(leaf).__name__
    rows = np.unique(np.linspace(0, max(int(leaf.shape[0]) - 1, 0), 64).astype(int))
    try:
        values = np.ascontiguousarray(np.asarray(leaf)[rows] if leaf.shape[0] else leaf)
        hashed = f"{zlib.crc32(values.tobytes()):08x}" if values.dtype != object else ""
    except (TypeError, ValueError):
        hashed = ""
    return f"{tuple(leaf.shape)} {leaf.dtype} {hashed}".strip()
