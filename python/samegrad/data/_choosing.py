"""Datasets made of datasets, and elements that depend on those before them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import Text
from samegrad.data import _nested_nodes as nested
from samegrad.data import _nodes as nodes
from samegrad.data import _state_nodes as states
from samegrad.data._batching import Batching
from samegrad.data._mapped import call, to_element
from samegrad.data._names import with_names
from samegrad.data._options import merged
from samegrad.data._ordering import at_least, calls_at_once
from samegrad.data._structure import Structure
from samegrad.io import gfile

Self = TypeVar("Self", bound="Choosing")

_CYCLE = 16  # datasets open at once, if nobody says: the same on all machines


class Choosing(Batching):
    """Stages that open other datasets, choose between them, or carry a state along."""

    def flat_map(self: Self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """Map each element to a dataset, and concatenate these datasets.

        Args:
            map_func: Maps an element (a tuple as several arguments) to a dataset. Its random ops
                depend on the seed and the element's index only.
            name: Ignored.

        Returns:
            Dataset of the elements of the mapped datasets.

        Raises:
            TypeError: While iterating, if map_func does not return a dataset.

        Example:
            >>> import samegrad as tf
            >>> rows = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]])
            >>> [int(n) for n in rows.flat_map(tf.data.Dataset.from_tensor_slices)]
            [1, 2, 3, 4]
        """
        return self._opened("flat_map", map_func, 1, 1)

    def interleave(
        self: Self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Map each element to a dataset, and interleave the elements of these datasets.

        Args:
            map_func: As for `flat_map`.
            cycle_length: Number of datasets that are read in turn. None or `AUTOTUNE`:
                num_parallel_calls, else 16 on every machine, where TensorFlow takes the number of
                cores.
            block_length: Number of consecutive elements from each. None: 1.
            num_parallel_calls: The default of cycle_length, if it is positive.
            deterministic: Ignored; the order is always the same.
            name: Ignored.

        Returns:
            Dataset of the elements of the mapped datasets.

        Raises:
            InvalidArgumentError: cycle_length, block_length or num_parallel_calls is less than 1.
            TypeError: While iterating, if map_func does not return a dataset.

        Example:
            >>> import samegrad as tf
            >>> numbers = tf.data.Dataset.range(1, 4).interleave(
            ...     lambda n: tf.data.Dataset.from_tensors(n).repeat(3), cycle_length=2)
            >>> [int(n) for n in numbers]
            [1, 2, 1, 2, 1, 2, 3, 3, 3]
        """
        calls = -1 if num_parallel_calls is None else operator.index(num_parallel_calls)
        cycle = calls if cycle_length in (None, -1) else operator.index(cycle_length)
        cycle = _CYCLE if cycle == -1 else cycle
        block = 1 if block_length is None else operator.index(block_length)
        at_least(cycle, 1, "interleave", "cycle_length")
        at_least(block, 1, "interleave", "block_length")
        calls_at_once(num_parallel_calls, "interleave")
        return self._opened("interleave", map_func, cycle, block)

    def _opened(self: Self, who: str, function: Callable[..., Any], cycle: int, block: int) -> Self:
        function = with_names(function)

        def node_of(element: Structure) -> nodes.Node:
            return _node_of(call(function, element), who, "map_func must return a Dataset")

        return self._then(nested.InterleaveNode(self._node, node_of, cycle, block))

    def window(
        self: Self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Group neighbouring elements into datasets, one for each component.

        Args:
            size: Number of elements of a window.
            shift: Distance from the start of one window to that of the next. None: size.
            stride: Distance from one element of a window to the next.
            drop_remainder: If True, drop windows that are not full.
            name: Ignored.

        Returns:
            Dataset of windows; each component of a window is a dataset.

        Raises:
            InvalidArgumentError: size, shift or stride is less than 1.

        Example:
            >>> import samegrad as tf
            >>> windows = tf.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
            >>> [batch.numpy().tolist() for batch in windows.flat_map(lambda w: w.batch(3))]
            [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        count = at_least(operator.index(size), 1, "window", "size")
        step = count if shift is None else operator.index(shift)
        at_least(step, 1, "window", "shift")
        gap = at_least(operator.index(stride), 1, "window", "stride")
        node = nested.WindowsNode(self._node, count, step, gap, bool(drop_remainder), self._then)
        return self._then(node)

    def take_while(self: Self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Return the elements before the first one whose predicate is false.

        Args:
            predicate: Maps an element (a tuple as several arguments) to a bool, or a bool tensor of
                shape [].
            name: Ignored.

        Returns:
            Dataset that ends before the first element with a false predicate.

        Raises:
            ValueError: While iterating, if the predicate does not return one bool.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(9).take_while(lambda x: x < 2)]
            [0, 1]
        """
        return self._then(states.TakeWhileNode(self._node, with_names(predicate)))

    def scan(
        self: Self, initial_state: Structure, scan_func: Callable[..., Any], name: str | None = None
    ) -> Self:
        """Map each element and a running state to an element and the next state.

        Args:
            initial_state: Tensors, or tuples and dicts of them.
            scan_func: Maps (state, element) to (next state, output element).
            name: Ignored.

        Returns:
            Dataset of the output elements.

        Raises:
            TypeError: While iterating, if scan_func returns something else, or a state of other
                dtypes.

        Example:
            >>> import samegrad as tf
            >>> sums = tf.data.Dataset.range(4).scan(
            ...     tf.constant(0, tf.int64), lambda total, x: (total + x, total + x))
            >>> [int(n) for n in sums]
            [0, 1, 3, 6]
        """
        state = to_element(initial_state, "Dataset.scan")
        return self._then(states.ScanNode(self._node, state, with_names(scan_func)))

    def reduce(
        self, initial_state: Structure, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Structure:
        """Combine all elements into one value.

        Args:
            initial_state: Tensors, or tuples and dicts of them.
            reduce_func: Maps (state, element) to the next state.
            name: Ignored.

        Returns:
            The last state, with the structure and dtypes of initial_state.

        Raises:
            TypeError: reduce_func returns a state of another structure or of other dtypes.

        Example:
            >>> import samegrad as tf
            >>> total = tf.data.Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)
            >>> int(total)
            10
        """
        state = to_element(initial_state, "Dataset.reduce")
        for element in iter(self):  # type: ignore[call-overload]
            state = states.next_state(state, reduce_func(state, element), "Dataset.reduce")
        return state

    def unique(self: Self, name: str | None = None) -> Self:
        """Drop elements that occurred before.

        Returns:
            Dataset of the distinct elements, in the order of their first occurrence.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2]).unique()]
            [1, 37, 2]
        """
        return self._then(states.UniqueNode(self._node))

    def rebatch(
        self: Self,
        batch_size: int | Sequence[int],
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Split and merge batches into batches of other sizes.

        Args:
            batch_size: Number of examples in a batch, or several numbers, which repeat.
            drop_remainder: If True, drop a last batch that has fewer examples.
            name: Ignored.

        Returns:
            Dataset of batches, with the examples in the same order.

        Raises:
            TypeError: A size is not an integer.
            InvalidArgumentError: A size is less than 1.

        Example:
            >>> import samegrad as tf
            >>> batches = tf.data.Dataset.range(7).batch(4).rebatch(3)
            >>> [batch.numpy().tolist() for batch in batches]
            [[0, 1, 2], [3, 4, 5], [6]]
        """
        given = np.asarray(batch_size)
        if given.dtype.kind not in "iu" or given.ndim > 1 or not given.size:
            raise TypeError(
                "[Dataset.rebatch] batch_size must be an integer, or a list of them: got "
                f"{shown(batch_size)}; pass an int."
            )
        sizes = [at_least(n, 1, "rebatch", "batch_size") for n in given.reshape(-1).tolist()]
        return self._then(states.RebatchNode(self._node, sizes, bool(drop_remainder)))

    def get_single_element(self, name: str | None = None) -> Structure:
        """Return the only element of the dataset.

        Returns:
            The element.

        Raises:
            InvalidArgumentError: The dataset is empty, or has more than one element.

        Example:
            >>> import samegrad as tf
            >>> tf.data.Dataset.range(3).batch(3).get_single_element().numpy()
            array([0, 1, 2])
        """
        found = [element for element, _ in zip(iter(self), range(2))]  # type: ignore[call-overload]  # noqa: B905
        if len(found) != 1:
            raise InvalidArgumentError(
                "[Dataset.get_single_element] there must be one element: got "
                f"{'none' if not found else 'more'}; see take and batch."
            )
        return found[0]

    @classmethod
    def choose_from_datasets(
        cls: type[Self], datasets: Sequence[Any], choice_dataset: Any,
        stop_on_empty_dataset: bool = True,
    ) -> Self:  # fmt: skip
        """Choose elements from several datasets by a dataset of their indices.

        Args:
            datasets: Non-empty list of datasets.
            choice_dataset: Dataset of int64 scalars: indices into datasets.
            stop_on_empty_dataset: If True, stop at the first dataset that has no more elements.

        Returns:
            Dataset of the chosen elements.

        Raises:
            TypeError: A member of datasets, or choice_dataset, is not a dataset; or the choices are
                not integers.
            ValueError: datasets is empty. While iterating, if an index is out of range.

        Example:
            >>> import samegrad as tf
            >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)
            >>> choices = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0]))
            >>> [int(n) for n in tf.data.Dataset.choose_from_datasets([a, b], choices)]
            [0, 10, 11, 1]
        """
        who = "choose_from_datasets"
        inputs, choices = _nodes_of(datasets, who), _node_of(choice_dataset, who)
        spec = choices.spec
        if not isinstance(spec, TensorSpec) or spec.shape.rank or not spec.dtype.is_integer:
            raise TypeError(
                f"[Dataset.{who}] an element of choice_dataset must be one integer: got "
                f"{shown(spec)}; use samegrad.cast."
            )
        made = states.ChooseNode(inputs, choices, [], None, bool(stop_on_empty_dataset))
        return _with_options(cls._made(made), [*datasets, choice_dataset])

    @classmethod
    def sample_from_datasets(
        cls: type[Self], datasets: Sequence[Any], weights: Any = None, seed: int | None = None,
        stop_on_empty_dataset: bool = False, rerandomize_each_iteration: bool | None = None,
    ) -> Self:  # fmt: skip
        """Sample elements from several datasets at random.

        The samples are a pure function of seed, epoch and index. They differ from TensorFlow's.

        Args:
            datasets: Non-empty list of datasets.
            weights: Relative frequency of each dataset, shape [len(datasets)]. None: all equal.
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            stop_on_empty_dataset: If True, stop at the first dataset that has no more elements;
                otherwise skip it from there on.
            rerandomize_each_iteration: Ignored; each epoch has its own samples.

        Returns:
            Dataset of the sampled elements.

        Raises:
            TypeError: A member of datasets is not a dataset.
            ValueError: datasets is empty, or the weights are not one nonnegative number for each.

        Example:
            >>> import samegrad as tf
            >>> a, b = tf.data.Dataset.range(2), tf.data.Dataset.range(10, 12)
            >>> sorted(int(n) for n in tf.data.Dataset.sample_from_datasets([a, b], [0.7, 0.3]))
            [0, 1, 10, 11]
        """
        who = "sample_from_datasets"
        inputs = _nodes_of(datasets, who)
        given = [1.0] * len(inputs) if weights is None else np.asarray(weights, float).tolist()
        if np.shape(given) != (len(inputs),) or not min(given) >= 0 or not 0 < sum(given) < np.inf:
            raise ValueError(
                f"[Dataset.{who}] there must be one weight for each dataset, none negative: got "
                f"{shown(given)} for {len(inputs)} datasets."
            )
        fixed = None if seed is None else operator.index(seed)
        made = states.ChooseNode(inputs, None, given, fixed, bool(stop_on_empty_dataset))
        return _with_options(cls._made(made), datasets)

    @classmethod
    def list_files(
        cls: type[Self], file_pattern: Any, shuffle: bool | None = None, seed: int | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """List the paths that match a pattern.

        Args:
            file_pattern: Pattern with *, ? and [...], or several patterns.
            shuffle: If True or None, shuffle the paths, anew in each epoch; otherwise sort them.
            seed: Seed of the order, as for `shuffle`.
            name: Ignored.

        Returns:
            Dataset of paths, string scalars.

        Raises:
            InvalidArgumentError: No file matches.

        Example:
            >>> import samegrad as tf
            >>> tf.io.write_file("cats/1.txt", "text"), tf.io.write_file("cats/2.txt", "text")
            (None, None)
            >>> [x.numpy() for x in tf.data.Dataset.list_files("cats/*.txt", shuffle=False)]
            [b'cats/1.txt', b'cats/2.txt']
        """
        paths = gfile.glob(file_pattern)
        if not paths:
            raise InvalidArgumentError(
                f"[Dataset.list_files] a pattern must match a file: got {shown(file_pattern)}; "
                "look at the working folder."
            )
        listed = cls._made(nodes.SliceNode(Text(paths), len(paths)))
        return listed if shuffle is False else listed.shuffle(len(paths), seed)


def _with_options(made: Self, parts: Sequence[Any]) -> Self:
    """The dataset with the options of its parts."""
    made._options = merged(*(part._options for part in parts))
    return made


def _node_of(dataset: Any, who: str, rule: str = "a Dataset is needed") -> nodes.Node:
    if not isinstance(dataset, Choosing):
        raise TypeError(f"[Dataset.{who}] {rule}: got {type(dataset).__name__}.")
    return dataset._node


def _nodes_of(datasets: Any, who: str) -> list[nodes.Node]:
    if not isinstance(datasets, list | tuple):
        raise TypeError(
            f"[Dataset.{who}] a list of datasets is needed: got {shown(datasets)}; pass [a, b]."
        )
    found = [_node_of(dataset, who) for dataset in datasets]
    if not found:
        raise ValueError(f"[Dataset.{who}] at least one dataset is needed: got none.")
    return found
