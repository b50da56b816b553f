"""Additions to Keras's metrics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keras.src import tree
from keras.src.backend.common.variables import standardize_dtype

from samegrad import cast, zeros_like
from samegrad._keras.layer import state_name
from samegrad._keras.whole import as_one_change
from samegrad._tensor.tensor import Tensor


def _by_older_name(reset_states: Any) -> Any:
    def reset_state(self: Any) -> None:
        reset_states(self)

    reset_state._is_older = True  # type: ignore[attr-defined]
    return reset_state


# Metrics of Keras whose sums are wider than they are there: see `metric_patches`.
_COUNTING = frozenset(
    f"keras.src.metrics.{kind}_metrics"
    for kind in ("reduction", "confusion", "f_score", "regression")
)


def _counts(kind: type) -> bool:
    """Tell if this is a metric of Keras, whose variables are sums and counts."""
    return kind.__module__ in _COUNTING


def _in_own_dtype(result: Callable[..., Any]) -> Callable[..., Any]:
    """The result of a metric, float64 inside, in the dtype that its variables have in Keras."""

    @functools.wraps(result)
    def cast_result(self: Any) -> Any:
        dtype = dtype_of_values(self._variables) if self._variables else self.dtype

        def own(value: Any) -> Any:
            wide = isinstance(value, Tensor) and value._dtype == "float64"
            return cast(value, dtype) if wide and "float" in dtype else value

        return tree.map_structure(own, result(self))

    return cast_result


def dtype_of_values(variables: Iterable[Any]) -> str:
    """The dtype in which a metric compares and weighs: what its variables have in Keras.

    Args:
        variables: Of the metric, at least one.

    Example:
        >>> import samegrad as tf
        >>> precision = tf.keras.metrics.Precision()
        >>> dtype_of_values(precision.variables), precision.true_positives.dtype
        ('float32', 'float64')
    """
    first = next(iter(variables))
    dtype: str = getattr(first, "_dtype_of_values", first.dtype)
    return dtype


class StatefulMetric:
    """The mix-in of Keras's metrics: checkpoints, changes as a whole, older names."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "reset_states" in cls.__dict__ and "reset_state" not in cls.__dict__:
            cls.reset_state = _by_older_name(cls.__dict__["reset_states"])  # type: ignore[attr-defined]
        for name in ("update_state", "reset_state"):
            if name in cls.__dict__:
                setattr(cls, name, as_one_change(cls.__dict__[name]))
        if "result" in cls.__dict__ and _counts(cls):
            cls.result = _in_own_dtype(cls.__dict__["result"])  # type: ignore[attr-defined]

    @staticmethod
    def _dtype_of_sums(metric: Any, dtype: Any) -> Any:
        """Return the dtype of a variable: sums and counts are float64, exact beyond 2**24.

        Args:
            metric: Whose variable it is.
            dtype: None, or what is asked for.
        """
        inexact = "float" in standardize_dtype(dtype)
        counts = inexact and any(_counts(kind) for kind in type(metric).__mro__)
        return "float64" if counts else dtype

    @staticmethod
    def _note_dtype(variable: Any, dtype: Any) -> None:
        """Store the requested dtype, which `_dtype_of_sums` made wider."""
        variable._dtype_of_values = standardize_dtype(dtype)

    def reset_states(self) -> None:
        """Reset the state: the name of `reset_state` before Keras 2.5."""
        if getattr(type(self).reset_state, "_is_older", False):  # type: ignore[attr-defined]
            for variable in self.variables:  # type: ignore[attr-defined]
                variable.assign(zeros_like(variable))
        else:
            self.reset_state()  # type: ignore[attr-defined]

    @staticmethod
    def _older_order(args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """Return shape, initializer, dtype and name of `add_weight`, where the name may be first.

        Args:
            args: The positional arguments.
            named: The others.

        Raises:
            TypeError: One is given twice, or is not known.
        """
        order = ["shape", "initializer", "dtype", "name"]
        given = ["name", *order[:3]] if args and isinstance(args[0], str) else order
        placed = dict(zip(given, args, strict=False))
        wrong = [key for key in named if key in placed or key not in order]
        if wrong or len(args) > len(order):
            raise TypeError(
                "[add_weight] shape, initializer, dtype and name are needed once: got "
                f"{len(args)} arguments and {', '.join(named)}."
            )
        values = {"shape": (), "initializer": "zeros", **placed, **named}
        return [values.get(key) for key in order]

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for variable in self._variables:  # type: ignore[attr-defined]
            parts[state_name(variable, parts)] = variable
        inner = list(self._metrics)  # type: ignore[attr-defined]
        return {**parts, "metrics": inner} if inner else parts

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a metric has no values beside its variables")
