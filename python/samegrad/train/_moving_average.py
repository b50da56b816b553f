"""Exponential moving averages of variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from samegrad._autodiff.variable import Variable, unwrapped
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.math import minimum

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Exponential moving averages of variables: average -= (1 - decay) * (average - variable).

    Args:
        decay: The decay, near 1.
        num_updates: The number of updates so far, a number or variable: the decay is at most
            (1 + num_updates) / (10 + num_updates). None: the decay alone counts.
        zero_debias: Ignored: averages of variables begin with their values.
        name: The end of the names of the averages.

    Example:
        >>> import samegrad as tf
        >>> v, averages = tf.Variable(1.0), ExponentialMovingAverage(0.9)
        >>> averages.apply([v])
        >>> _ = v.assign(2.0)
        >>> averages.apply([v])
        >>> round(float(averages.average(v)), 4)
        1.1
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """The end of the names of the averages."""
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> None:
        """Update the averages of variables; the first call makes them, with the present values.

        Args:
            var_list: The variables, which must hold floats.

        Raises:
            TypeError: An object is not a variable, or does not hold floats.
            ValueError: No variables are given.

        Example:
            >>> import samegrad as tf
            >>> v, averages = tf.Variable(1.0), ExponentialMovingAverage(0.9)
            >>> averages.apply([v])
            >>> float(averages.average(v))
            1.0
        """
        if var_list is None:
            raise ValueError(
                "[ExponentialMovingAverage.apply] var_list must be given: got None; pass "
                "model.trainable_variables."
            )
        variables = [self._checked(given) for given in var_list]
        for variable in variables:
            if variable.ref() not in self._averages:
                self._averages[variable.ref()] = Variable(
                    variable.read_value, trainable=False, name=self._plain_name(variable),
                    aggregation=variable.aggregation,
                )  # fmt: skip
        kept = self._present_decay()
        for variable in variables:
            average = self._averages[variable.ref()]
            change = (average.value() - variable.value()) * cast(1.0 - kept, variable.dtype)
            average.assign_sub(change)

    def _present_decay(self) -> Tensor:
        decay = convert_to_tensor(self._decay, "float32")
        if self._num_updates is None:
            return decay
        count = cast(convert_to_tensor(self._num_updates), "float32")
        return minimum(decay, (1.0 + count) / (10.0 + count))

    def _checked(self, given: Any) -> Variable:
        variable = unwrapped(given)
        if not isinstance(variable, Variable) or not variable.dtype.is_floating:
            raise TypeError(
                "[ExponentialMovingAverage.apply] variables of floats are averaged: got "
                f"{shown(given)}; pass tf.Variables or weights."
            )
        return variable

    def average(self, var: Any) -> Variable | None:
        """Return the variable that holds the average of a variable, or None.

        Args:
            var: The variable.

        Returns:
            The average, or None if the variable is not averaged.
        """
        return self._averages.get(unwrapped(var).ref())

    def average_name(self, var: Any) -> str:
        """Return the name of the average of a variable, without the ":0".

        Args:
            var: The variable.

        Returns:
            The name.
        """
        return self._plain_name(unwrapped(var))

    def _plain_name(self, variable: Variable) -> str:
        return f"{variable.name.partition(':')[0]}/{self._name}"

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Any] | None = None
    ) -> dict[str, Any]:
        """Return variables by the names of their averages, to restore them from those.

        Args:
            moving_avg_variables: The variables; None: those that are averaged.

        Returns:
            A dict from names to variables.
        """
        given = moving_avg_variables
        if given is None:
            given = [key.deref() for key in self._averages]
        return {self.average_name(variable): variable for variable in given}
