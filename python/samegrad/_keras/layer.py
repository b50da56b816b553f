"""What samegrad adds to Keras's layers and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._keras.older.layers import OlderLayer
from samegrad._keras.whole import changing
from samegrad.train._trackable import restore_pending


class Layer(OlderLayer):
    """The mix-in that Keras gives all its layers."""

    _further_arguments = ("input_shape", "input_dim")  # of all layers, for the port check

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @staticmethod
    def has_values(options: dict[str, Any]) -> bool:
        """Whether arguments of a call by name are more than flags: they may become tensors."""
        return any(value is not None and type(value) is not bool for value in options.values())

    @staticmethod
    def penalty_of_output(regularizer: Any, loss: Any, output: Any) -> Any:
        """The penalty of the outputs of all replicas; see `penalties.penalty_of_output`."""
        from samegrad._keras.penalties import penalty_of_output

        return penalty_of_output(regularizer, loss, output)

    @staticmethod
    def added_losses(losses: list[Any]) -> list[Any]:
        """What is held of added losses; see `penalties.added_losses`."""
        from samegrad._keras.penalties import added_losses

        return added_losses(losses)

    @staticmethod
    def assign_all(layer: Any, variables: list[Any], values: Any) -> None:
        """Assigns a value to each variable, or to none of them.

        Raises:
            ValueError: A value has another shape than its variable.
        """
        arrays = [np.asarray(value) for value in values]
        for variable, value in zip(variables, arrays, strict=True):
            if tuple(variable.shape) != value.shape:
                raise ValueError(
                    f"Layer {layer.name} weight shape {variable.shape} is not compatible with "
                    f"provided weight shape {value.shape}."
                )
        with changing(variables):
            for variable, value in zip(variables, arrays, strict=True):
                variable.assign(value)

    def _setattr_hook(self, name: str, value: Any) -> tuple[str, Any]:
        """Called by Keras before an attribute is set: variables are named after their attribute."""
        if isinstance(value, EngineVariable):
            from samegrad._keras.variable import tracked_wrapper

            tracked_wrapper(value, name)
        return name, value

    def _post_build(self) -> None:
        """Called by Keras when a layer has made its variables."""
        self._take_first_weights()
        restore_pending(self)

    # Checkpoints: variables by their names, layers inside by their places.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for variable in [*self._trainable_variables, *self._non_trainable_variables]:  # type: ignore[attr-defined]
            if variable._value is not None:
                parts[free_name(variable.name, parts)] = variable
        # A Sequential gets its InputLayer when it is built.
        layers = self._layers  # type: ignore[attr-defined]
        inner = [layer for layer in layers if type(layer).__name__ != "InputLayer"]
        states = [generator.state for generator in self._seed_generators]  # type: ignore[attr-defined]
        named = {
            "layers": inner,
            "seeds": states,
            "metrics": list(self._metrics),  # type: ignore[attr-defined]
            "optimizer": getattr(self, "optimizer", None),
        }
        return parts | {name: part for name, part in named.items() if part}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a layer has no values beside its variables")


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name, or the name with the first number that makes it another than those taken.

    Example:
        >>> free_name("kernel", {"kernel": 1})
        'kernel_1'
    """
    number = 0
    while (free := f"{name}_{number}" if number else name) in taken:
        number += 1
    return free
