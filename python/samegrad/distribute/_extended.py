"""`Strategy.extended`: what libraries on top of tf.distribute use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from samegrad._autodiff.variable import Variable
from samegrad._base.shown import shown
from samegrad._context import state as _context

if TYPE_CHECKING:
    from samegrad.distribute._strategy import Strategy


class StrategyExtended:
    """More methods of a strategy.

    Example:
        >>> import samegrad as tf
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> strategy.extended.worker_devices
        ('/device:CPU:0', '/device:CPU:1')
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """A name per replica."""
        return self._strategy.devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Devices of the variables: one, as one copy serves all replicas."""
        return self._strategy.devices[:1]

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Any number of examples runs."""
        return False

    def reduce_to(
        self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None
    ) -> Any:
        """Reduce over replicas: `Strategy.reduce` without an axis.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`.
            value: `PerReplica`, or a structure of them.
            destinations: Ignored: memory is shared.
            options: Ignored.

        Returns:
            Tensor, or a structure of them, in the shapes of the local values.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> values = strategy.run(
            ...     lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
            >>> int(strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM, values))
            1
        """
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Iterable[Any], options: Any = None
    ) -> list[Any]:
        """Apply `reduce_to` to each pair of a value and its destination.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`.
            value_destination_pairs: List of (value, destination).
            options: Ignored.

        Returns:
            List of reduced values.

        Raises:
            TypeError: A member of value_destination_pairs is not a pair.
        """
        pairs = list(value_destination_pairs)
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise TypeError(
                    "[StrategyExtended.batch_reduce_to] pairs of a value and its destination are "
                    f"needed: got {shown(pair)}; pass [(value, variable), ...]."
                )
        return [self.reduce_to(reduce_op, value) for value, _ in pairs]

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call fn(var, *args, **kwargs) once: a variable has one copy.

        Args:
            var: Variable to update.
            fn: Function of the variable and args.
            args: Positional arguments.
            kwargs: Keyword arguments.
            group: Ignored.

        Returns:
            The result of fn.

        Raises:
            RuntimeError: Inside `run`; call it in a merge_call.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> variable = tf.Variable(1.0)
            >>> with strategy.scope():
            ...     updated = strategy.extended.update(
            ...         variable, lambda v, x: v.assign_add(x), args=(2.0,))
            >>> float(updated)
            3.0
        """
        if not _context.in_cross_replica_context():
            raise RuntimeError(
                "[StrategyExtended.update] called in a replica context: call it in a merge_call."
            )
        return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run fn on every replica: `Strategy.run`.

        Args:
            fn: Function to run.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Returns:
            Results of fn, as those of `Strategy.run`.
        """
        return self._strategy.run(fn, args=args, kwargs=kwargs)

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Iterator[None]:
        """Return a context that does nothing: all variables are in the memory of the process.

        Args:
            colocate_with_variable: Ignored.

        Returns:
            Context manager.
        """
        yield

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Tell if the variable belongs to this strategy.

        Args:
            v: Variable.

        Returns:
            True if it was created in the strategy's scope.

        Example:
            >>> import samegrad as tf
            >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
            >>> strategy.extended.variable_created_in_scope(tf.Variable(1.0))
            False
        """
        return v._strategy is self._strategy

    def value_container(self, value: Any) -> Any:
        """Return the value itself: a variable has no copies.

        Args:
            value: Any value.

        Returns:
            The same value.
        """
        return value

    def read_var(self, v: Variable) -> Any:
        """Return the variable's value.

        Args:
            v: Variable.

        Returns:
            Tensor with the variable's shape and dtype.
        """
        return v.read_value()
