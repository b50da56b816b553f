"""`tf.data.Dataset`: where batches come from."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast as cast_to
from samegrad._tensor.display import specs_html
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.sparse import SparseRows, SparseTensor
from samegrad._tensor.tensor import Tensor, constant, convert_to_tensor
from samegrad._tensor.text import Text, is_text, of_bytes, text_of
from samegrad.data import _function_nodes as functions
from samegrad.data import _nodes as nodes
from samegrad.data._iterator import DatasetIterator
from samegrad.data._keeping import Keeping
from samegrad.data._names import with_names
from samegrad.data._options import Options, merged
from samegrad.data._ordering import at_least, calls_at_once
from samegrad.data._ragged_rows import OneRow, RaggedRowsNode
from samegrad.data._structure import (
    Structure,
    is_made,
    leaves_of,
    map_leaves,
    map_values,
    signature_of,
    with_complex_parts,
)

Self = TypeVar("Self", bound="Dataset")


class Dataset(Keeping):
    """Elements, one after the other: tensors, or tuples and dicts of them.

    A dataset only describes what to do; an iterator does it. Slicing, shuffling, repeating and
    batching are done by the engine: it gathers the next batches on a thread of its own while a
    step runs. Functions (`map`, `filter`, `from_generator`) run in Python; see `map`.

    Every iterator is an epoch of its own: the first one shuffles as epoch 0, the next one as epoch
    1. What comes at which place of which epoch depends on the seeds only, so an iterator restored
    from a checkpoint goes on with the very same elements.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> images, labels = np.zeros((5, 2, 2), np.float32), np.arange(5)
        >>> dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(2)
        >>> for image, label in dataset:
        ...     print(image.shape, label.numpy())
        (2, 2, 2) [0 1]
        (2, 2, 2) [2 3]
        (1, 2, 2) [4]
    """

    _options: Options | None = None

    @classmethod
    def _made(cls: type[Self], node: nodes.Node) -> Self:
        return cast("Self", Dataset(node))

    @staticmethod
    def from_tensor_slices(tensors: Structure, name: str | None = None) -> Dataset:
        """Slice tensors along axis 0 into elements.

        NumPy arrays are **borrowed**, not copied: changing one changes the elements not gathered
        yet. Arrays that are not contiguous in memory are copied once.

        Args:
            tensors: Arrays, tensors or lists of shape [n, ...], or tuples and dicts of them.
                Elements of a `tf.RaggedTensor` have different lengths (see `padded_batch` and
                `ragged_batch`), those of a `tf.sparse.SparseTensor` are sparse.
            name: Ignored.

        Returns:
            Dataset of n elements, with components of shape [...].

        Raises:
            ValueError: A tensor has no axis, or the lengths differ.
            TypeError: samegrad does not have the dtype.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3.0, 4.0]})
            >>> [(int(e["a"]), float(e["b"])) for e in dataset]
            [(1, 3.0), (2, 4.0)]
        """

        def rows_of(value: Any) -> Any:
            if isinstance(value, SparseTensor) and value._rank:
                return SparseRows(value, "Dataset.from_tensor_slices")
            return (
                value if isinstance(value, RaggedTensor) else _borrow(value, "from_tensor_slices")
            )

        borrowed = map_leaves(rows_of, with_complex_parts(tensors, "Dataset.from_tensor_slices"))
        leaves = leaves_of(borrowed)
        sizes = {leaf._shape[0] if leaf._rank else -1 for leaf in leaves}
        if len(sizes) != 1 or -1 in sizes:
            raise ValueError(
                "[Dataset.from_tensor_slices] all tensors must have the same length along axis 0: "
                f"got shapes {', '.join(str(leaf._shape) for leaf in leaves) or 'of no tensor'}."
            )
        if any(isinstance(leaf, RaggedTensor | SparseRows) for leaf in leaves):
            return Dataset(RaggedRowsNode(borrowed, sizes.pop()))
        return Dataset(nodes.SliceNode(borrowed, sizes.pop()))

    @staticmethod
    def from_tensors(tensors: Structure, name: str | None = None) -> Dataset:
        """Create a dataset of one element: the tensors as they are.

        Args:
            tensors: Array, tensor, list, or tuples and dicts of them.
            name: Ignored.

        Returns:
            Dataset of one element.

        Example:
            >>> import samegrad as tf
            >>> len(tf.data.Dataset.from_tensors([1, 2, 3]))
            1
        """

        def as_row(value: Any) -> Any:
            borrowed = _borrow(value, "from_tensors")
            if isinstance(borrowed, Text):
                return of_bytes(borrowed.encoded[None])
            return Tensor(borrowed._view()[None], copy=False)

        given = with_complex_parts(tensors, "Dataset.from_tensors")
        if any(isinstance(leaf, RaggedTensor | SparseTensor) for leaf in leaves_of(given)):
            elements = map_leaves(
                lambda leaf: OneRow(leaf if is_made(leaf) else _borrow(leaf, "from_tensors")), given
            )
            return Dataset(RaggedRowsNode(elements, 1))
        rows = map_leaves(as_row, given)
        if not leaves_of(rows):
            raise ValueError(
                f"[Dataset.from_tensors] an element must hold a tensor: got {shown(tensors)}."
            )
        return Dataset(nodes.SliceNode(rows, 1, batched=None))

    @staticmethod
    def range(*args: Any, output_type: DTypeLike = "int64", name: str | None = None) -> Dataset:
        """Count with the arguments of Python's `range`.

        Args:
            *args: (stop), (start, stop) or (start, stop, step).
            output_type: Dtype of the elements.
            name: Ignored.

        Returns:
            Dataset of scalars.

        Raises:
            InvalidArgumentError: The step is 0.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(1, 8, 3)]
            [1, 4, 7]
        """
        if not 1 <= len(args) <= 3:
            raise TypeError(
                f"[Dataset.range] one to three integers are needed: got {len(args)}; the "
                "call is Dataset.range(start, stop, step)."
            )
        bounds = [whole(arg, "the bounds are integers") for arg in args]
        if len(bounds) == 3 and bounds[2] == 0:
            raise InvalidArgumentError("[Dataset.range] step must not be 0: got 0.")
        numbers = range(*bounds)
        counted = Dataset(nodes.RangeNode(numbers.start, numbers.step, len(numbers)))
        wanted = as_dtype(output_type)
        return counted if wanted.name == "int64" else counted.map(lambda n: cast_to(n, wanted))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Structure = None,
        output_shapes: Structure = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Structure = None,
        name: str | None = None,
    ) -> Dataset:
        """Create a dataset of what `generator(*args)` yields, called anew by each iterator.

        Args:
            generator: Callable that returns an iterable.
            output_types: Deprecated form of a signature: dtypes in the structure of an element.
            output_shapes: With output_types: shapes in that structure. None: of any size, with the
                rank of the first element, which is generated once more to see it.
            args: Arguments of generator.
            output_signature: TensorSpecs in the structure of an element.
            name: Ignored.

        Returns:
            Dataset of the yielded elements.

        Raises:
            TypeError: generator is not callable, or there is no signature, or one and types. While
                iterating, TypeError and ValueError where an element does not fit it.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_generator(
            ...     lambda: iter([1.0, 2.0]), output_signature=tf.TensorSpec((), tf.float32))
            >>> [float(x) for x in dataset]
            [1.0, 2.0]
        """
        given = signature_of(output_types, output_shapes, output_signature)
        if not callable(generator) or given is None:
            raise TypeError(
                "[Dataset.from_generator] a function and output_signature=TensorSpec(shape, dtype) "
                "(or a tuple or dict of them), or dtypes as output_types without one, are needed: "
                f"got {type(generator).__name__}, {output_signature!r} and {output_types!r}."
            )
        arguments = () if args is None else tuple(args)
        return Dataset(functions.GeneratorNode(lambda: generator(*arguments), given))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Combine several datasets element by element, until the shortest ends.

        Args:
            args: Several datasets, or one tuple or dict of them.
            datasets: The tuple or dict by keyword.
            name: Ignored.

        Returns:
            Dataset of tuples, or of the structure of datasets.

        Raises:
            TypeError: An argument is not a dataset.

        Example:
            >>> import samegrad as tf
            >>> a, b = tf.data.Dataset.range(2), tf.data.Dataset.range(5, 9)
            >>> [(int(x), int(y)) for x, y in tf.data.Dataset.zip((a, b))]
            [(0, 5), (1, 6)]
        """
        if bool(args) == (datasets is not None):
            raise TypeError(
                f"[Dataset.zip] datasets are given one after the other or by name: got {len(args)} "
                f"and datasets={shown(datasets)}; pass Dataset.zip((a, b))."
            )
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        made = Dataset(nodes.ZipNode(map_leaves(_node_of, structure)))
        made._options = merged(*(dataset._options for dataset in leaves_of(structure)))
        return made

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Append the elements of another dataset.

        Args:
            dataset: Dataset of elements with the same structure and dtypes.
            name: Ignored.

        Returns:
            Dataset of all elements.

        Example:
            >>> import samegrad as tf
            >>> both = tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9))
            >>> [int(n) for n in both]
            [0, 1, 7, 8]
        """
        made = self._then(functions.ConcatenateNode(self._node, _node_of(dataset)))
        made._options = merged(self._options, dataset._options)
        return made

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Apply a function to every element.

        Python calls the function. One that only computes is traced after some elements, and the
        engine runs it for the others, bitwise identical: much faster for images from files. A
        function that evaluates values, writes anything outside or reads what changes falls back to
        Python.

        Global names are captured now, as in TensorFlow: `for change in changes: data =
        data.map(lambda x: change(x))` makes all changes. Attributes of objects are read for each
        element, and so is all that `py_function` and `numpy_function` call.

        A tuple is passed as several arguments. The function may use samegrad's operations, NumPy
        (through `tensor.numpy()`), or both. After `batch` it receives whole batches, which is much
        faster. Its random ops depend on the seed and the element's index only. A later `shuffle`,
        `take`, `skip` or `repeat` is applied first, so only elements that are needed are computed.

        Args:
            map_func: Maps tensors, or tuples and dicts of them, to such.
            num_parallel_calls: Number of threads, at most one per core, that run the function ahead
                of the consumer; `AUTOTUNE`: the number measured as fastest, or none where the
                function is quick. The function must then be thread-safe. Elements that are made
                quickly are handed over in blocks, up to 96 of them per thread ahead.
            deterministic: Ignored; the order is always the same.
            synchronous: If True, run on the consumer's thread, whatever num_parallel_calls says.
            use_unbounded_threadpool: Ignored.
            name: Ignored.

        Returns:
            Dataset of the results.

        Raises:
            TypeError: While iterating, if the result holds something that is not a tensor.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(3).map(lambda x: x * 2)]
            [0, 2, 4]
        """
        calls = calls_at_once(None if synchronous else num_parallel_calls, "map")
        return self._then(functions.MapNode(self._node, with_names(map_func), calls))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keep the elements whose predicate is true.

        Args:
            predicate: Maps an element (a tuple as several arguments) to a bool, or a bool tensor of
                shape [].
            name: Ignored.

        Returns:
            Dataset of the kept elements.

        Raises:
            ValueError: While iterating, if the predicate does not return one bool.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(5).filter(lambda x: x % 2 == 1)]
            [1, 3]
        """
        return self._then(functions.FilterNode(self._node, with_names(predicate)))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Dataset:
        """Prepare elements ahead of the consumer, on another thread.

        The engine's batches are always prefetched; this sets their number. For Python functions it
        adds the thread.

        Args:
            buffer_size: Maximum number of prefetched elements; `AUTOTUNE` and None leave it to
                samegrad.
            name: Ignored.

        Returns:
            Dataset of the same elements.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(2).prefetch(tf.data.AUTOTUNE)]
            [0, 1]
        """
        ahead = at_least(operator.index(buffer_size or 0), -1, "prefetch", "buffer_size")
        return self._then(functions.PrefetchNode(self._node, max(0, ahead)))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Apply a transformation: `transformation_func(self)`.

        Args:
            transformation_func: Maps a dataset to a dataset.

        Returns:
            The result of transformation_func.

        Example:
            >>> import samegrad as tf
            >>> len(tf.data.Dataset.range(9).apply(lambda dataset: dataset.take(2)))
            2
        """
        return transformation_func(self)

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Set options, such as how processes shard the elements (`AutoShardPolicy`).

        Args:
            options: Options to copy. They override earlier ones, except where they have default
                values. A dataset made of several has the options of all; the last prevail.
            name: Ignored.

        Returns:
            Dataset of the same elements, with the options.

        Raises:
            TypeError: options is not a tf.data.Options.

        Example:
            >>> import samegrad as tf
            >>> len(tf.data.Dataset.range(2).with_options(tf.data.Options()))
            2
        """
        if not isinstance(options, Options):
            raise TypeError(
                f"[Dataset.with_options] tf.data.Options are needed: got {shown(options)}; make "
                "them with tf.data.Options()."
            )
        made: Dataset = self._made(self._node)
        made._epochs, made._options = self._epochs, merged(self._options, options)
        return made

    def options(self) -> Options:
        """Return a copy of the options that `with_options` has set.

        Example:
            >>> import samegrad as tf
            >>> options = tf.data.Options()
            >>> options.deterministic = True
            >>> tf.data.Dataset.range(2).with_options(options).batch(2).options().deterministic
            True
        """
        return merged(self._options) or Options()

    def cardinality(self) -> Tensor:
        """Return the number of elements.

        Returns:
            int64 tensor of shape []. `INFINITE_CARDINALITY` if there is no end,
            `UNKNOWN_CARDINALITY` after `filter`, `from_generator` and the like.

        Example:
            >>> import samegrad as tf
            >>> int(tf.data.Dataset.range(10).batch(4).cardinality())
            3
        """
        return constant(np.int64(self._node.cardinality()))

    def __len__(self) -> int:
        size = self._node.cardinality()
        if size < 0:
            known = "endless" if size == nodes.INFINITE else "known by iterating only"
            raise TypeError(f"[Dataset] len() needs a known number of elements: got one {known}.")
        return size

    def __bool__(self) -> bool:
        return True

    @property
    def element_spec(self) -> Structure:
        """Shapes and dtypes of an element, in its structure.

        The result of a `map` is known from its first element, which this makes.

        Example:
            >>> import samegrad as tf
            >>> tf.data.Dataset.range(5).batch(2).element_spec
            TensorSpec(shape=(None,), dtype=samegrad.int64)
        """
        return self._node.spec

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self._node, self._epochs)

    def as_numpy_iterator(self) -> Iterator[Structure]:
        """Iterate over the elements as NumPy arrays and scalars.

        Example:
            >>> import samegrad as tf
            >>> next(tf.data.Dataset.range(5).batch(3).as_numpy_iterator())
            array([0, 1, 2])
        """
        # Not a generator, whose frame would be part of tracebacks.
        return map(functools.partial(map_values, lambda leaf: leaf.numpy()), self)

    def __repr__(self) -> str:
        return f"<Dataset of {self._node.cardinality()} elements>"

    def _repr_html_(self) -> str:
        try:
            spec = self.element_spec
        except Exception:  # of the user's functions, which make the first element
            spec = {}
        return specs_html(repr(self).strip("<>"), spec)


def _borrow(value: Any, who: str) -> Any:
    """A tensor of the value, sharing the memory of an array; text of text."""
    if isinstance(value, Text) or is_text(value):
        return text_of(value, f"Dataset.{who}")
    if isinstance(value, np.ndarray):
        return Tensor(value, copy=False)
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"[Dataset.{who}] needs arrays, tensors or lists of numbers of one shape: got "
            f"{type(value).__name__}. {error}"
        ) from error


def _node_of(dataset: Any) -> nodes.Node:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"[Dataset] a Dataset is needed: got {type(dataset).__name__}.")
    return dataset._node
