"""The base of all metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from samegrad._context import init_scope
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._tensor import Tensor
from samegrad._user_code import converted
from samegrad._variable import Variable, VariableAggregation, VariableSynchronization, step_of
from samegrad.keras import initializers
from samegrad.keras._names import snake_case, unique_name
from samegrad.keras.backend import floatx


class Metric:
    """Base: subclass it, create variables in `__init__`, change them in `update_state`.

    Args:
        name: None: made of the class name.
        dtype: Of the result. None: that of `keras.backend.floatx()`.

    Example:
        >>> import samegrad as tf
        >>> class Largest(tf.keras.metrics.Metric):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.largest = self.add_weight("largest")
        ...     def update_state(self, values):
        ...         self.largest.assign(tf.maximum(self.largest, tf.reduce_max(values)))
        ...     def result(self):
        ...         return self.largest.read_value()
        >>> metric = Largest()
        >>> metric.update_state(tf.constant([1.0, 3.0]))
        >>> float(metric.result())
        3.0
    """

    def __init__(self, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        self._name = name or unique_name(snake_case(type(self).__name__))
        self._dtype = as_dtype(dtype).name if dtype is not None else floatx()
        self._weights: dict[str, Variable] = {}

    @property
    def name(self) -> str:
        """The metric's name."""
        return self._name

    @property
    def dtype(self) -> str:
        """The name of the result's dtype."""
        return self._dtype

    @property
    def variables(self) -> list[Variable]:
        """The variables that hold what was collected."""
        return list(self._weights.values())

    weights = variables

    def add_weight(
        self,
        name: str,
        shape: Sequence[int] = (),
        aggregation: Any = VariableAggregation.SUM,
        synchronization: Any = VariableSynchronization.ON_READ,
        initializer: Any = "zeros",
        dtype: DTypeLike | None = None,
    ) -> Variable:
        """Creates a variable of the metric.

        Args:
            name: Of the variable.
            shape: Its sizes.
            aggregation: What becomes of the replicas' values when it is read outside `run`.
            synchronization: ON_READ: each replica has its own value.
            initializer: Its first value.
            dtype: None: the metric's.

        Returns:
            The variable.
        """
        with init_scope():
            value = initializers.get(initializer)(tuple(shape), dtype=dtype or self.dtype)
            variable = Variable(
                value,
                trainable=False,
                name=f"{self.name}/{name}",
                aggregation=aggregation,
                synchronization=synchronization,
            )
        self._weights[name] = variable
        return variable

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Collects the values of a batch."""
        raise NotImplementedError(f"[{type(self).__name__}] define update_state.")

    def result(self) -> Tensor:
        """The figure so far, a scalar."""
        raise NotImplementedError(f"[{type(self).__name__}] define result.")

    def reset_state(self) -> None:
        """Begins anew: sets all variables to 0."""
        with step_of(*self.variables):
            for variable in self.variables:
                variable.assign(np.zeros(tuple(variable.shape), variable.dtype.as_numpy_dtype))

    def reset_states(self) -> None:
        """Begins anew, as `reset_state`."""
        self.reset_state()

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Collects the values of a batch and returns the figure so far."""
        with step_of(*self.variables):
            converted(self.update_state)(*args, **kwargs)
        figure: Tensor = converted(self.result)()
        return figure

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Metric:
        """A metric made with these arguments."""
        return cls(**config)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return dict(self._weights)

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a metric has no values beside its variables")
