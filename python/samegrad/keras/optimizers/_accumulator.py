"""One update for several batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from samegrad import _core
from samegrad._context import init_scope
from samegrad._control_flow import cond
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad._variable import Variable, VariableAggregation, VariableSynchronization, step_of
from samegrad.keras.initializers import Zeros
from samegrad.keras.optimizers._optimizer import Optimizer, check_on_replica, not_among, pairs_of
from samegrad.nn._loss_scaling import all_reduce_sum
from samegrad.train._trackable import restore_pending

_ops = _core.ops


class GradientAccumulator:
    """Sums gradients over a window of batches and replicas, then makes one update.

    The gradients are those of *sums* (numerators), and each comes with its count: of examples,
    tokens, or the sum of weights. At the end of a window both are summed over the replicas, once,
    and divided once, so that K batches give the update of one batch with all their examples,
    however many each has. Averaging K means instead lets a short batch weigh too much.

    Every replica sums up what it sees before the replicas are joined: results agree with one
    replica within rounding.

    Args:
        optimizer: Makes the updates; limits of its own apply to the joined gradients.
        steps: How many batches a window has.

    Raises:
        ValueError: `steps` is not a whole number above 0.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable(0.0)
        >>> accumulator = GradientAccumulator(tf.keras.optimizers.SGD(1.0), steps=2)
        >>> for x in ([1.0, 2.0, 3.0], [10.0]):
        ...     with tf.GradientTape() as tape:
        ...         total = tf.reduce_sum(w * tf.constant(x))
        ...     gradient = tape.gradient(total, w)
        ...     accumulator.apply_gradients([(gradient, w)], count=len(x))
        >>> float(w)  # minus the mean of four numbers
        -4.0
    """

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ValueError(
                f"[GradientAccumulator] steps must be a whole number above 0: got {shown(steps)}."
            )
        self.optimizer = optimizer
        self.steps = steps
        self._trained: list[Variable] = []
        self._sums: list[Variable] = []
        with init_scope():
            zero = convert_to_tensor(0, "int64")
            self.pending = Variable(zero, trainable=False, name="pending")
            self._count = self._per_replica(convert_to_tensor(0.0, "float64"), "count")

    @staticmethod
    def _per_replica(value: Tensor, name: str) -> Variable:
        return Variable(
            value,
            trainable=False,
            name=name,
            synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.SUM,
        )

    def build(self, var_list: Iterable[Variable]) -> None:
        """Creates the sums of variables; `apply_gradients` does it where it is still to be done.

        Args:
            var_list: The variables.
        """
        new = not_among(self._trained, var_list)
        if not new:
            return
        self.optimizer.build(new)
        with init_scope(), _core.all_or_nothing(self):
            for variable in new:
                zeros = Zeros()(tuple(variable.shape), dtype=variable.dtype)
                name = f"{variable.name.partition(':')[0]}/sum"
                self._sums = [*self._sums, self._per_replica(zeros, name)]
            self._trained = [*self._trained, *new]
            restore_pending(self)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Tensor | None, Variable]], count: TensorLike
    ) -> None:
        """Adds a replica's gradients of a sum; updates the variables where the window is full.

        Args:
            grads_and_vars: Pairs of a gradient and a variable, the same variables in every call.
                Gradients that are None are left out, with a warning.
            count: What the sum has to be divided by, here and on this replica: a scalar.

        Raises:
            RuntimeError: Called in cross-replica context.
            ValueError: All gradients are None, one has not its variable's shape, or the count is
                no scalar.
        """
        check_on_replica("GradientAccumulator", "apply_gradients needs a replica's sums")
        pairs = self.optimizer._connected(pairs_of(grads_and_vars))
        self.build([variable for _, variable in pairs])
        number = convert_to_tensor(count)
        if number._rank:
            raise ValueError(
                "[GradientAccumulator] count must be a scalar, the sum over this replica's "
                f"examples: got shape {tuple(number._shape)}."
            )
        sums = {id(v): total for v, total in zip(self._trained, self._sums, strict=True)}
        with self._step():
            for gradient, variable in pairs:
                sums[id(variable)].assign_add(self.optimizer._checked(gradient, variable))
            self._count.assign_add(_ops.cast(number, dtype="float64"))
            self.pending._add_for_all(convert_to_tensor(1, "int64"))
            full = convert_to_tensor(self.pending) >= self.steps
            cond(full, self._update, lambda: None)

    def flush(self) -> None:
        """Makes the update of a window that is not full, with its true count; none if it is empty.

        Call it in `strategy.run` after the last batch.

        Raises:
            RuntimeError: Called in cross-replica context.
        """
        check_on_replica("GradientAccumulator", "flush needs a replica's sums")
        with self._step():
            cond(convert_to_tensor(self.pending) > 0, self._update, lambda: None)

    def _step(self) -> _core.AllOrNothing:
        own = (*self._sums, self._count, self.pending)
        return step_of(*own, *self._trained, *self.optimizer.variables)

    def _update(self) -> None:
        local = [convert_to_tensor(total) for total in self._sums]
        *totals, count = all_reduce_sum([*local, convert_to_tensor(self._count)])
        means = [_ops.div_no_nan(t, _ops.cast(count, dtype=t._dtype)) for t in totals]
        self.optimizer.apply_gradients(
            zip(means, self._trained, strict=True), skip_gradients_aggregation=True
        )
        for total in (*self._sums, self._count):
            total.assign(_ops.full_like(convert_to_tensor(total), value=0.0))
        self.pending.assign(convert_to_tensor(0, "int64"))

    # Checkpoints.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {
            "optimizer": self.optimizer,
            "pending": self.pending,
            "count": self._count,
            "sums": self._sums,
        }

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("its state is that of its variables")
