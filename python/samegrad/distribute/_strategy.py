"""Strategies: one program on N replicas."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from samegrad import _core
from samegrad._autodiff.loss_normalization_check import report
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._base.tree import is_nested, map_structure
from samegrad._context import state as _context
from samegrad._context.counted_numbers import counted, questions
from samegrad._context.devices import placement
from samegrad._context.python_runs import NeedsPython
from samegrad._context.user_code import converted
from samegrad._context.weak import WeakIds
from samegrad._function.explanation import Explanation, explain_python
from samegrad._function.function import Function
from samegrad._function.trace import TracedProgram, trace_and_run
from samegrad._surface.missing_names import missing_attribute
from samegrad._tensor.per_replica import (
    PerReplica,
    TracedPart,
    TracedPerReplica,
    captured,
    local_results,
    per_replica,
    strings_per_replica,
)
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text, text_of
from samegrad.distribute._device_names import count_replicas
from samegrad.distribute._extended import StrategyExtended
from samegrad.distribute._gather import gather_parts
from samegrad.distribute._job import gathered, warn_of_processes
from samegrad.distribute._reduce_op import ReduceOp, reduce_name
from samegrad.distribute._replica_context import ReplicaContext
from samegrad.errors import WrongTypeError

_ops = _core.ops
# Functions that left a trace of `Strategy.run` on one replica, whose later calls begin in Python:
# methods by the object that they are bound to, other callables as the object of the method None.
_by_python: WeakIds[set[Any]] = WeakIds()


class Strategy(abc.ABC):
    """Base class of strategies."""

    if not TYPE_CHECKING:
        __getattr__ = missing_attribute

    def __repr__(self) -> str:
        name = f"samegrad.distribute.{type(self).__name__}"
        return f"<{name} replicas={int(self.num_replicas_in_sync)}>"

    @property
    @abc.abstractmethod
    def num_replicas_in_sync(self) -> int:
        """Number of replicas that train together.

        It is an int that remembers its meaning. A Mean metric that is fed `loss *
        strategy.num_replicas_in_sync`, where `loss` is a per-replica loss, returns the loss of all
        examples, as it does for the per-replica loss alone. The product is rounded unless the
        number is a power of two. A literal is a factor like any other,
        even if there are as many replicas. For `loss * 2` the metric returns twice the loss on two
        replicas as on one or four, without a warning.

        Example:
            >>> import samegrad as tf
            >>> tf.distribute.MirroredStrategy(replicas=2).num_replicas_in_sync
            2
        """

    @property
    def processes(self) -> tuple[int, ...]:
        """The first replica of each process, and the number of all; empty: there is one process."""
        return ()

    @property
    def own_replicas(self) -> range:
        """The replicas of this process."""
        if not self.processes:
            return range(self.num_replicas_in_sync)
        return range(*_core.own_replicas(self.processes))

    @property
    def devices(self) -> tuple[str, ...]:
        """A name per replica."""
        return tuple(f"/device:CPU:{i}" for i in range(self.num_replicas_in_sync))

    @property
    def cluster_resolver(self) -> Any:
        """None: there is no cluster."""
        return None

    @property
    def extended(self) -> StrategyExtended:
        """Methods that libraries use."""
        return StrategyExtended(self)

    def scope(self) -> _core.Guard:
        """Return a context in which variables belong to this strategy.

        Raises:
            RuntimeError: Inside another strategy's scope, or inside `run`.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> with strategy.scope():
            ...     variable = tf.Variable(1.0)
            >>> strategy.extended.variable_created_in_scope(variable)
            True
        """
        current = _context.current().strategy
        if current is not None and current is not self:
            raise RuntimeError("[Strategy.scope] another strategy's scope is open; leave it first.")
        return _context.entered(self, None)

    def run(
        self,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Run fn on every replica; `PerReplica` arguments arrive as the replica's local value.

        The Python code of fn runs once for all replicas and is traced. Results are `PerReplica`
        where they may differ between replicas. Where Python needs a number of examples (`len(x)`,
        `if x.shape[0] == 3`) and replicas differ in it, fn runs once for each number. Collectives,
        assignments and random ops must then be the same for all, in one order. Under
        `config.run_functions_eagerly(True)` fn can evaluate tensors.

        Args:
            fn: Function to run on every replica.
            args: Positional arguments.
            kwargs: Keyword arguments.
            options: Ignored.

        Returns:
            Results of fn: tensors, `PerReplica`, or structures of them.

        Raises:
            RuntimeError: The call is inside `run`, or collectives or random ops differ with the
                number of examples.
            ValueError: The structure or dtype of results differs with the number of examples.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> values = strategy.run(lambda: tf.constant(1.0))
            >>> float(strategy.reduce("SUM", values, axis=None))
            2.0
        """
        if _context.inside_run():
            raise RuntimeError(
                "[Strategy.run] it must not be nested: got a call inside run; call it outside, in "
                "cross-replica context."
            )
        kwargs = kwargs or {}
        if _core.tracing() or (_by_python and self._is_by_python(fn)):
            return self._run_in_trace(fn, tuple(args), kwargs)
        compiled = _context.current().compiled_runs
        if compiled is not None and not _context.settings.functions_run_eagerly:
            return compiled.of(self, fn, lambda: self._compiled(fn))(*args, **kwargs)
        return trace_and_run(
            lambda *a, **k: self._run_in_trace(fn, a, k), tuple(args), kwargs,
            self.num_replicas_in_sync,
        )  # fmt: skip

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Run fn with the next global batch of an iterator, as in TensorFlow 1.

        In TensorFlow 2, `run` replaces it.

        Args:
            fn: Function to run on every replica with its batch.
            input_iterator: Iterator of a distributed dataset. None: fn takes no arguments.

        Returns:
            Results of fn, as those of `run`.

        Raises:
            OutOfRangeError: The iterator has no more batches.
            TypeError: input_iterator is another iterator, whose whole batch every replica would
                take.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> data = tf.data.Dataset.range(4).batch(4)
            >>> iterator = iter(strategy.experimental_distribute_dataset(data))
            >>> sums = strategy.experimental_run(tf.reduce_sum, iterator)
            >>> [int(part) for part in strategy.experimental_local_results(sums)]
            [1, 5]
        """
        from samegrad.distribute._input import DistributedIterator

        if input_iterator is None:
            return self.run(fn)
        if not isinstance(input_iterator, DistributedIterator):
            raise TypeError(
                "[Strategy.experimental_run] batches must be divided among the replicas: got "
                f"{shown(input_iterator)}; pass "
                "iter(strategy.experimental_distribute_dataset(dataset)), or call "
                "strategy.run(fn, args=...)."
            )
        return self.run(fn, args=(input_iterator.get_next(),))

    def _compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Fn on all replicas as a function that is traced once per signature."""
        return Function(
            lambda *a, **k: self._run_in_trace(fn, a, k), autograph=False, numbers_change=True
        )

    def explain(
        self,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
        *,
        measure: int = 0,
    ) -> Explanation:
        """Describe what `run` does with fn: its bits, phases, loops, memory and times.

        The second line says if results and variables are bitwise identical to those of one replica.
        If not, the next lines name the operations of fn that change them, such as a local mean.
        Then follow the machine that the plan was made for, and each step with its predicted time,
        by rates of this machine: of computing, of moving bytes in caches or from memory, of calls.

        Args:
            fn: Function, as for `run`.
            args: Positional arguments.
            kwargs: Keyword arguments.
            measure: Number of runs to measure, step by step. They change neither variables nor the
                random state, and print nothing. 0: do not run.

        Returns:
            The `Explanation`: `str` is the description, and its fields are `bitwise`, `reasons`,
            `steps`, `memory`, `predicted`, `measured`, ...

        Raises:
            TypeError: `measure` is not an integer.
            ValueError: `measure` is negative, or beyond a million.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=3)
            >>> add = lambda: tf.distribute.get_replica_context().all_reduce("SUM", 1.0)
            >>> plan = strategy.explain(add)
            >>> plan.bitwise, plan.reasons[0].text
            (False, 'all_reduce depends on the number of replicas')
            >>> print(str(plan).splitlines()[1])
            bitwise identical to one replica: no:
        """
        args, kwargs = tuple(args), kwargs or {}
        try:
            program = TracedProgram(
                lambda *a, **k: self._run_in_trace(fn, a, k), args, kwargs,
                self.num_replicas_in_sync, _context.settings.functions_run_eagerly,
            )  # fmt: skip
        except NeedsPython as reason:
            return explain_python(reason.why, reason.line)
        return program.explain(_core.Arguments(args, kwargs), measure)

    def join_trace(self) -> None:
        """Make the traced function one of this strategy's replicas.

        Raises:
            RuntimeError: It belongs to another number of replicas, or no function is being traced.
        """
        trace = _core.current_trace()
        if trace is None:
            raise RuntimeError("[join_trace] call it while a function is traced: got no trace.")
        if self.processes:
            trace.processes = list(self.processes)
        if trace.replicas == 1:
            trace.replicas = self.num_replicas_in_sync
        elif trace.replicas != self.num_replicas_in_sync:
            raise RuntimeError(
                f"[Strategy.run] a function runs one strategy: got {self.num_replicas_in_sync} "
                f"replicas where {trace.replicas} run already; use two functions."
            )

    def _run_in_trace(self, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Call fn as the replicas' step; without a trace, Python runs it on the only replica."""
        if _core.tracing():
            self.join_trace()

        def unwrap(value: Any) -> Any:
            if isinstance(value, PerReplica):
                value = captured(value) if _core.tracing() else value._all_parts[0]
            return value.tensor if isinstance(value, TracedPerReplica) else value

        def wrap(value: Any) -> Any:
            if hasattr(value, "_as_tensor") and not isinstance(value, TracedPart):
                value = value._as_tensor()
            several = self.num_replicas_in_sync > 1
            return TracedPerReplica(value) if several and isinstance(value, Tensor) else value

        with _context.entered(self, ReplicaContext(self)), _core.one_call():
            args, kwargs = map_structure(unwrap, (args, kwargs))
            try:
                result = converted(fn)(*args, **kwargs)
            except NeedsPython:
                with contextlib.suppress(TypeError):  # a callable without weak references
                    owner, method = _bound(fn)
                    _by_python.set(owner, {method, *(_by_python.get(owner) or ())})
                raise
            return map_structure(wrap, result)

    def _is_by_python(self, fn: Any) -> bool:
        """Tell whether the function left its trace before, and this strategy has one replica."""
        owner, method = _bound(fn)
        return method in (_by_python.get(owner) or ()) and self.num_replicas_in_sync == 1

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: Any) -> Any:
        """Reduce over replicas and, unless `axis` is None, over that axis of each local value.

        MEAN over an axis weights every example equally, whatever the size of a replica's batch.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`, or "sum" or "mean".
            value: `PerReplica` or tensor, or a structure of them.
            axis: Axis to reduce as well, or None.

        Returns:
            Tensor, or a structure of them, with the shape of a local value, less the axis.

        Raises:
            ValueError: The reduction is another one, or local values differ in shape with
                axis=None.
            RuntimeError: The call is inside `run`.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> values = strategy.run(
            ...     lambda: tf.distribute.get_replica_context().replica_id_in_sync_group + 1)
            >>> int(strategy.reduce("sum", values, axis=None))
            3
        """
        op = reduce_name(reduce_op)
        if _context.inside_run():
            raise RuntimeError(
                "[Strategy.reduce] called inside run; use "
                "samegrad.distribute.get_replica_context().all_reduce there."
            )
        return map_structure(lambda v: self._reduce_one(op, v, axis), value)

    def _reduce_one(self, op: str, value: Any, axis: Any) -> Tensor:
        if isinstance(value, Text) or getattr(value, "_has_strings", False):
            raise WrongTypeError(
                f"[Strategy.reduce] numbers are reduced: got strings for {op.upper()}; join them "
                "with strategy.gather, or read them with strategy.experimental_local_results."
            )
        if isinstance(value, int | float) and _core.tracing() and _core.current_trace().members:
            # Replicas without examples may have a number where others have a tensor.
            value = TracedPerReplica(convert_to_tensor(value))
        parts = isinstance(value, PerReplica | TracedPerReplica)
        if not parts and self.num_replicas_in_sync > 1 and axis is None:
            if op == "mean":
                return convert_to_tensor(value)
            raise ValueError(
                f"[Strategy.reduce] SUM needs a value per replica: got one value for all "
                f"{self.num_replicas_in_sync} replicas; return it from strategy.run."
            )
        if _core.tracing():
            self.join_trace()
            value = captured(value) if isinstance(value, PerReplica) else value
            tensor = (
                value.tensor if isinstance(value, TracedPerReplica) else convert_to_tensor(value)
            )
            return self._reduce_tensor(op, tensor, axis)
        total = value._total if isinstance(value, PerReplica) else None
        if op == "sum" and axis is None and total is not None:
            return total
        if op == "mean" and getattr(value, "_of_mean", False):
            report([("share_then_mean", _core.user_line())])
        parts_of = (
            value if parts else PerReplica((convert_to_tensor(value),) * self.num_replicas_in_sync)
        )
        reduced: Tensor = trace_and_run(
            lambda v: self._reduce_one(op, v, axis), (parts_of,), {}, self.num_replicas_in_sync
        )
        return reduced

    def _reduce_tensor(self, op: str, tensor: Tensor, axis: Any) -> Tensor:
        if op == "mean" and not as_dtype(tensor._dtype).is_floating:
            tensor = _ops.cast(tensor, dtype="float64")
        if axis is None:
            several = self.num_replicas_in_sync > 1
            return _ops.all_reduce(tensor, op=op) if several else tensor
        axes = [axis] if isinstance(axis, int) else list(axis)
        total = _ops.reduce_sum(tensor, axes=axes)
        if self.num_replicas_in_sync > 1:
            total = _ops.all_reduce(total, op="sum")
        if op == "sum":
            return total
        return _ops.div(
            total, _ops.cast(_ops.global_size_of(tensor, axes=axes), dtype=total._dtype)
        )

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenate the local values of all replicas along an axis.

        Args:
            value: `PerReplica` (or a structure of them) whose local values agree in all other
                sizes.
            axis: Axis of the concatenation.

        Returns:
            Tensor, or a structure of them.

        Raises:
            ValueError: The local values differ in other sizes, or have no axes.
            RuntimeError: The call is inside `run`; use the replica context's all_gather there.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> ids = strategy.experimental_distribute_values_from_function(
            ...     lambda context: tf.constant([context.replica_id_in_sync_group]))
            >>> strategy.gather(ids, axis=0).numpy()
            array([0, 1], dtype=int32)
        """
        if _context.inside_run():
            raise RuntimeError(
                "[Strategy.gather] called inside run; use "
                "samegrad.distribute.get_replica_context().all_gather there."
            )
        return map_structure(lambda v: gather_parts(self, v, axis), value)

    def experimental_local_results(self, value: Any) -> Any:
        """Return the local values as a tuple; of a structure, a structure for each replica.

        Args:
            value: `PerReplica`, tensor, or a structure of them.

        Returns:
            Tuple with one entry for each replica of this process; of a tensor, one entry. A traced
            function that computes with an entry gathers the local values, which need one shape.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> parts = strategy.run(lambda: {"n": 7})
            >>> strategy.experimental_local_results(parts)
            ({'n': 7}, {'n': 7})
        """
        if is_nested(value) or isinstance(value, TracedPerReplica):
            return local_results(value, self.own_replicas)
        return value.values if isinstance(value, PerReplica) else (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Split every batch of a dataset between the replicas.

        Over several processes the dataset's options determine the elements that each of them reads,
        see `tf.data.experimental.AutoShardPolicy`: by default, those of one process.

        Args:
            dataset: Dataset whose elements are global batches.
            options: Ignored.

        Returns:
            `DistributedDataset`, whose elements are `PerReplica`.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> batches = tf.data.Dataset.range(4).batch(4)
            >>> dataset = strategy.experimental_distribute_dataset(batches)
            >>> [[part.numpy().tolist() for part in batch.values] for batch in dataset]
            [[[0, 1], [2, 3]]]
        """
        from samegrad.distribute._input import DistributedDataset  # loads samegrad.data

        return DistributedDataset(dataset, self)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[..., Any], options: Any = None
    ) -> Any:
        """Distribute the dataset that a function makes, one of its batches per replica.

        Args:
            dataset_fn: Function of an `InputContext` that returns a dataset of per-replica batches.
            options: Ignored.

        Returns:
            `DistributedDataset`, whose elements are `PerReplica`.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> dataset = strategy.distribute_datasets_from_function(
            ...     lambda context: tf.data.Dataset.range(4).batch(2))
            >>> [[part.numpy().tolist() for part in batch.values] for batch in dataset]
            [[[0, 1], [2, 3]]]
        """
        from samegrad.distribute._input import distribute_from_function  # loads samegrad.data

        return distribute_from_function(dataset_fn, self)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[..., Any], options: Any = None
    ) -> Any:
        """Distribute a dataset: the older name of `distribute_datasets_from_function`.

        Args:
            dataset_fn: Function of an `InputContext` that returns a dataset of per-replica batches.
            options: Ignored.

        Returns:
            `DistributedDataset`, whose elements are `PerReplica`.
        """
        return self.distribute_datasets_from_function(dataset_fn, options)

    def experimental_distribute_values_from_function(self, value_fn: Callable[..., Any]) -> Any:
        """Build a `PerReplica` of value_fn's results for each replica.

        Args:
            value_fn: Function of a `ValueContext` that returns a tensor or a structure of them.

        Returns:
            `PerReplica`, or a structure of them.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> values = strategy.experimental_distribute_values_from_function(
            ...     lambda context: tf.constant(context.replica_id_in_sync_group))
            >>> [int(value) for value in values.values]
            [0, 1]
        """
        count, who = self.num_replicas_in_sync, "experimental_distribute_values_from_function"
        made = [value_fn(ValueContext(i, count)) for i in self.own_replicas]

        def join(*parts: Any) -> Any:
            if is_text(parts[0]):
                strings = [text_of(part, who) for part in parts]
                return strings_per_replica(strings) if count > 1 else strings[0]
            tensors = [convert_to_tensor(part) for part in parts]
            return per_replica(self._spread(tensors) if self.processes else tensors)

        return map_structure(join, *made)

    def _spread(self, own: list[Tensor]) -> Sequence[Tensor]:
        """The parts of all replicas, of which this process has these."""
        found = gathered("a value of each replica", [tuple(part._shape) for part in own])
        shapes = [list(shape) for of_process in found for shape in of_process]
        parts: Sequence[Tensor] = _core.spread_parts(own, self.own_replicas[0], shapes)
        return parts


class ValueContext:
    """Context of a value function: the replica's index and the number of replicas.

    Args:
        replica_id_in_sync_group: Index of the replica.
        num_replicas_in_sync: Number of replicas.
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync


class MirroredStrategy(Strategy):
    """Synchronous training of one model on N replicas, with one copy of each variable.

    Args:
        devices: Names of devices, one per replica, such as "/gpu:0". All replicas run on the CPUs;
            the first name of another device is warned of. None or an empty list: one replica for
            each logical CPU, see `tf.config.set_logical_device_configuration`; by default one.
        cross_device_ops: Ignored: see `CrossDeviceOps`.
        replicas: How many replicas, instead of devices.

    Raises:
        TypeError: `devices` is not a list of names, or `replicas` is not an integer.
        ValueError: No replica or too many, or `devices` and `replicas` differ.
        InvalidArgumentError: The machine lacks a device, and soft placement is off.

    Example:
        >>> MirroredStrategy(replicas=4).num_replicas_in_sync
        4
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        cross_device_ops: Any = None,
        *,
        replicas: int | None = None,
    ) -> None:
        count = count_replicas("MirroredStrategy", devices, replicas, placement.logical_cpus)
        self._replicas = counted(count, replicas=1)
        warn_of_processes()

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas that train together."""
        return questions.ask(self._replicas)


class DefaultStrategy(Strategy):
    """One replica: what holds outside any scope."""

    @property
    def num_replicas_in_sync(self) -> int:
        """One."""
        return questions.ask_one()


_DEFAULT = DefaultStrategy()
_context.set_default(_DEFAULT, ReplicaContext(_DEFAULT))

__all__ = ["DefaultStrategy", "MirroredStrategy", "Strategy", "ValueContext"]


def _bound(fn: Any) -> tuple[Any, Any]:
    """Return the object and the function of a bound method, which is made anew in each access."""
    method = getattr(fn, "__func__", None)
    return (fn, None) if method is None else (fn.__self__, method)
