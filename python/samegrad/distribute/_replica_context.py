"""The strategy, as a function sees it while it runs on the replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._base.tree import map_structure
from samegrad._context import state as _context
from samegrad._context.counted_numbers import questions
from samegrad._context.user_code import converted
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._tensor.per_replica import TracedCommon, TracedPerReplica
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.distribute._gather import all_gather
from samegrad.distribute._reduce_op import ReduceOp, reduce_name

if TYPE_CHECKING:
    from samegrad.distribute._strategy import Strategy


class ReplicaContext:
    """The view of one replica; the function is traced once for all of them."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs the function."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas that train together."""
        return questions.ask(self._strategy.num_replicas_in_sync)

    @property
    def replica_id_in_sync_group(self) -> Tensor | int:
        """The number of the replica, from 0: a tensor if there are several."""
        if self.num_replicas_in_sync == 1:
            _context.note_one_replica("replica_id_in_sync_group")
            return 0
        return _core.ops.cast(_core.ops.replica_id(), dtype="int32")

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: Any = None) -> Any:
        """Reduce a tensor, or a structure of them, over the replicas.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`, or "sum" or "mean".
            value: Tensor of one shape on all replicas, `IndexedSlices`, or a structure of them.
            options: Ignored.

        Returns:
            Reduced values on every replica, with the shapes and dtypes of value. `IndexedSlices` of
            all replicas become one; a mean divides their values.

        Raises:
            ValueError: The reduction is another one, or a tensor has a size that counts examples.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> total = strategy.run(
            ...     lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0)))
            >>> float(strategy.experimental_local_results(total)[0])
            2.0
        """
        op = reduce_name(reduce_op)
        several = self.num_replicas_in_sync > 1
        recorded = several or _context.exporting()

        def reduced(leaf: Any) -> Any:
            if isinstance(leaf, IndexedSlices):
                if not several:
                    _context.note_one_replica("all_reduce of IndexedSlices")
                return self._reduced_slices(op, leaf) if several else leaf
            tensor = convert_to_tensor(leaf)
            return _core.ops.all_reduce(tensor, op=op) if recorded else tensor

        return map_structure(reduced, value)

    def _reduced_slices(self, op: str, slices: IndexedSlices) -> IndexedSlices:
        values, indices = self.all_gather((slices.values, slices.indices), axis=0)
        if op == "mean":
            values = values / float(self.num_replicas_in_sync)
        return IndexedSlices(values, indices, slices.dense_shape)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Concatenate the tensors of all replicas along an axis, on each of them.

        Its gradient sums the gradients that all replicas return for a local value.

        Args:
            value: Tensor or a structure of them. Replicas may have different sizes along the axis,
                and must agree in all others.
            axis: Axis of the concatenation.
            options: Ignored.

        Returns:
            Concatenated values, in the dtypes of value.

        Raises:
            ValueError: The axis does not exist, or another axis counts examples.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> def gather(x):
            ...     return tf.distribute.get_replica_context().all_gather(x, axis=0)
            >>> gathered = strategy.run(gather, args=(tf.constant([1, 2]),))
            >>> strategy.experimental_local_results(gathered)[0].numpy().tolist()
            [1, 2, 1, 2]
        """
        if self.num_replicas_in_sync == 1:
            return map_structure(
                lambda v: _context.note_one_replica("all_gather", convert_to_tensor(v)), value
            )
        count = self.num_replicas_in_sync
        return map_structure(lambda v: all_gather(convert_to_tensor(v), axis, count), value)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call merge_fn(strategy, *args, **kwargs) once, in cross-replica context.

        Args:
            merge_fn: Function of the strategy and args. Tensors and NumPy arrays in args become
                `PerReplica`; Python numbers, NumPy scalars and variables stay as they are.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Returns:
            The result of merge_fn.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> counts = strategy.run(
            ...     lambda: tf.distribute.get_replica_context().merge_call(
            ...         lambda strategy: tf.constant(strategy.num_replicas_in_sync)))
            >>> int(strategy.experimental_local_results(counts)[0])
            2
        """
        _context.note_one_replica("merge_call")
        strategy = self._strategy
        trace = _core.current_trace()
        split = trace is not None and bool(trace.members)  # others may have another number
        several = strategy.num_replicas_in_sync > 1

        def wrap(value: Any) -> Any:
            if several and isinstance(value, np.ndarray):
                value = convert_to_tensor(value)
            if not isinstance(value, Tensor):
                return value
            if value._varying or split:
                return TracedPerReplica(value)
            return TracedCommon(value) if several else value

        with _context.entered(strategy, None):
            result = converted(merge_fn)(
                strategy, *map_structure(wrap, tuple(args)), **map_structure(wrap, kwargs or {})
            )
        return map_structure(lambda v: v.tensor if isinstance(v, TracedPerReplica) else v, result)
