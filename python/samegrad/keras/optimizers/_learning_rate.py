"""What a learning rate may be, and its value at a step."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from samegrad._context import init_scope
from samegrad._shown import shown
from samegrad._tensor import Tensor, convert_to_tensor, is_tensor
from samegrad._user_code import converted
from samegrad._variable import Variable
from samegrad.keras.backend import floatx
from samegrad.keras.optimizers.schedules import LearningRateSchedule


class LearningRate:
    """A number kept in a variable (so that changing it retraces nothing), or a function.

    Args:
        value: A number; a variable; a schedule or a function of the number of steps done; a
            function without arguments.

    Raises:
        ValueError: It is a number, but not a finite one of at least 0.

    Example:
        >>> float(LearningRate(0.5).at(0))
        0.5
    """

    def __init__(self, value: Any) -> None:
        self.variable: Variable | None = None
        self.function: Callable[..., Any] | None = None
        if isinstance(value, Variable):
            self.variable = value
        elif isinstance(value, LearningRateSchedule) or (callable(value) and not is_tensor(value)):
            self.function = value
        else:
            with init_scope():
                self.variable = Variable(
                    convert_to_tensor(_number(value), floatx()),
                    trainable=False,
                    name="learning_rate",
                )

    def set(self, value: Any) -> LearningRate:
        """The learning rate with another value; the same variable if it holds numbers."""
        is_number = not callable(value) and not isinstance(value, Variable)
        if self.variable is None or not is_number:
            return LearningRate(value)
        if is_tensor(value):
            self.variable.assign(value)
        else:
            kind = self.variable.dtype
            self.variable.assign(convert_to_tensor(_number(value), kind))
        return self

    def read(self, iterations: Any) -> Any:
        """What `optimizer.learning_rate` is: the variable, or the function's present value."""
        return self.variable if self.variable is not None else self.at(iterations)

    def at(self, iterations: Any) -> Tensor:
        """The rate after so many steps, a scalar."""
        if self.variable is not None:
            return convert_to_tensor(self.variable)
        assert self.function is not None
        takes_step = isinstance(self.function, LearningRateSchedule) or _takes_argument(
            self.function
        )
        function = converted(self.function)
        value = function(iterations) if takes_step else function()
        return convert_to_tensor(value)

    def config(self) -> Any:
        """A number, or the function."""
        return self.function if self.variable is None else float(self.variable.numpy())


def _takes_argument(function: Callable[..., Any]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        p.kind in kinds and p.default is inspect.Parameter.empty
        for p in inspect.signature(function).parameters.values()
    )


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ValueError(
            f"[Optimizer] learning_rate must be a number of at least 0: got {shown(value)}."
        )
    return number
