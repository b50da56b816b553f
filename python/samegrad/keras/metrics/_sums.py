"""Sums and means over all values that were seen, on all replicas."""

from __future__ import annotations

from samegrad import _core
from samegrad._context import get_replica_context, get_strategy
from samegrad._dtypes import DTypeLike
from samegrad._examples import as_examples
from samegrad._scaling_check import note_use
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad._variable import Variable, VariableAggregation, VariableSynchronization, step_of
from samegrad.keras.metrics._metric import Metric
from samegrad.math._reductions import reduce_mean
from samegrad.nn._loss_scaling import all_reduce_sum, elements_of, expand_weights

_ops = _core.ops


class _SumMetric(Metric):
    """Base: sums that go up by the sum over the examples of all replicas.

    The sum of a step is the root of the tree over the global batch, so the figures have the same
    bits for any number of replicas. What each replica saw itself is kept beside it, for results
    inside `run`. Sums are float64: float32 would lose counts above 2**24.
    """

    def __init__(self, name: str | None, dtype: DTypeLike | None, sums: tuple[str, ...]) -> None:
        super().__init__(name, dtype)
        self._strategy = get_strategy()
        for sum_name in sums:
            self.add_weight(
                sum_name,
                aggregation=VariableAggregation.NONE,
                synchronization=VariableSynchronization.AUTO,
                dtype="float64",
            )
        self._global = dict(self._weights)
        self._local: dict[str, Variable] = {}
        if self._strategy.num_replicas_in_sync > 1:
            for sum_name in sums:
                self._local[sum_name] = self.add_weight(f"local_{sum_name}", dtype="float64")
        self._weights = self._global

    def _add(self, local: dict[str, Tensor], known: dict[str, Tensor] | None = None) -> None:
        """Adds this replica's sums to those of the metric.

        Args:
            local: This replica's sums by name.
            known: The sums over all replicas, as far as they are known without a reduction.
        """
        if not self._inside_run():
            with self._step():
                self._assign(self._global, local)
            return
        totals = dict(known or {})
        names = [name for name in local if name not in totals]
        totals.update(zip(names, all_reduce_sum([local[name] for name in names]), strict=True))
        with self._step():
            self._assign(self._global, totals)
            self._assign(self._local, local)

    def _step(self) -> _core.AllOrNothing:
        return step_of(*self._global.values(), *self._local.values())

    def _assign(self, variables: dict[str, Variable], sums: dict[str, Tensor]) -> None:
        for name, value in sums.items():
            variables[name]._add_for_all(_ops.cast(value, dtype="float64"))

    def _sum(self, name: str) -> Tensor:
        """The sum of all replicas, or inside `run` that of this replica."""
        source = self._local if self._inside_run() else self._global
        return convert_to_tensor(source[name])

    def _inside_run(self) -> bool:
        """Whether several replicas run; checks that the metric belongs to their strategy."""
        current = get_strategy()
        if current.num_replicas_in_sync == 1 or get_replica_context() is None:
            return False
        if current is not self._strategy:
            raise ValueError(
                f"[{self.name}] the metric must be made under the strategy that runs: make it "
                "inside `with strategy.scope():`."
            )
        return True

    def reset_state(self) -> None:
        with self._step():
            super().reset_state()
            for variable in self._local.values():
                variable.assign(0.0)

    def _values(self, values: TensorLike) -> Tensor:
        tensor = as_examples(values)
        return tensor if tensor._dtype == self.dtype else _ops.cast(tensor, dtype=self.dtype)


class Sum(_SumMetric):
    """The sum of all values, on all replicas.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> metric = Sum()
        >>> metric.update_state([1.0, 3.0])
        >>> float(metric.result())
        4.0
    """

    def __init__(self, name: str | None = "sum", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype, ("total",))
        self.total = self._global["total"]

    def update_state(self, values: TensorLike, sample_weight: TensorLike | None = None) -> None:
        """Adds values.

        Args:
            values: Numbers of any shape.
            sample_weight: Their factors: as many, or one per example, or a scalar.

        Raises:
            ValueError: The weights do not fit.
        """
        tensor = self._values(values)
        if sample_weight is not None:
            tensor = tensor * expand_weights(self.name, sample_weight, tensor)
        self._add({"total": _sum_all(tensor)})

    def result(self) -> Tensor:
        """The sum; inside `run`, that of this replica's values."""
        return _ops.cast(self._sum("total"), dtype=self.dtype)


class Mean(_SumMetric):
    """The mean of all values, on all replicas.

    Fed with a replica's share of a loss (as `nn.compute_average_loss` gives it) it shows the mean
    of the shares, the loss divided by the number of replicas; feed it the losses of the examples.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> metric = Mean()
        >>> metric.update_state([1.0, 3.0])
        >>> metric.update_state([8.0])
        >>> float(metric.result())
        4.0
    """

    def __init__(self, name: str | None = "mean", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype, ("total", "count"))
        self.total = self._global["total"]
        self.count = self._global["count"]

    def update_state(self, values: TensorLike, sample_weight: TensorLike | None = None) -> None:
        """Adds values.

        Args:
            values: Numbers of any shape.
            sample_weight: Their factors: as many, or one per example, or a scalar. The mean is
                that of sum(value * factor) / sum(factor).

        Raises:
            ValueError: The weights do not fit.
        """
        tensor = self._values(values)
        note_use("mean", tensor)
        if sample_weight is None:
            axes = tuple(range(tensor._rank))
            sums = {"total": _sum_all(tensor), "count": elements_of(tensor, axes, False)}
            return self._add(sums, {"count": elements_of(tensor, axes, True)})
        tensor = _mean_of_examples(tensor, convert_to_tensor(sample_weight)._rank)
        weights = expand_weights(self.name, sample_weight, tensor)
        weights = _ops.broadcast_like(weights, tensor)
        return self._add({"total": _sum_all(tensor * weights), "count": _sum_all(weights)})

    def result(self) -> Tensor:
        """The mean, 0 if there were no values; inside `run`, that of this replica's values."""
        total, count = self._sum("total"), self._sum("count")
        zero = convert_to_tensor(0.0, "float64")
        mean = _ops.select(count == 0.0, zero, total / count)
        return _ops.cast(mean, dtype=self.dtype)


def _mean_of_examples(values: Tensor, weight_rank: int) -> Tensor:
    """Averages over the axes that the weights lack, where they are two or more, as in Keras."""
    if weight_rank == 0 or values._rank - weight_rank < 2:
        return values
    axes = tuple(range(weight_rank, values._rank))
    return reduce_mean(values, axis=axes)


def _sum_all(x: Tensor) -> Tensor:
    return _ops.reduce_sum(x, axes=tuple(range(x._rank)))
