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
        """Where variables are: one copy serves all replicas."""
        return self._strategy.devices[:1]

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Any number of examples runs."""
        return False

    def reduce_to(
        self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None
    ) -> Any:
        """`Strategy.reduce` without an axis; destinations are of no use, as memory is shared."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Iterable[Any], options: Any = None
    ) -> list[Any]:
        """`reduce_to` for each pair."""
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
        """Calls fn(var, *args) once: a variable has one copy.

        Raises:
            RuntimeError: Inside `run`; call it in a merge_call.
        """
        if not _context.in_cross_replica_context():
            raise RuntimeError(
                "[StrategyExtended.update] called in a replica context: call it in a merge_call."
            )
        return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """`Strategy.run`."""
        return self._strategy.run(fn, args=args, kwargs=kwargs)

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Iterator[None]:
        """Does nothing: all variables are in the memory of the process."""
        yield

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Whether the variable belongs to this strategy."""
        return v._strategy is self._strategy

    def value_container(self, value: Any) -> Any:
        """The value itself: a variable has no copies."""
        return value

    def read_var(self, v: Variable) -> Any:
        """The variable's value."""
        return v.read_value()
