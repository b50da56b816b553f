"""What samegrad adds to Keras's layers and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from keras.src.backend.common.variables import standardize_dtype

from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._keras.older.layers import OlderLayer
from samegrad._keras.whole import changing
from samegrad._tensor.conversion import Tensor
from samegrad.train._trackable import restore_pending

_PLAIN, _MISSING = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty


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
    def dtype_name(x: Any) -> str:
        """The name of the dtype of a tensor of samegrad or Keras."""
        name: str = x._dtype if type(x) is Tensor else standardize_dtype(x.dtype)
        return name

    @staticmethod
    def bound(
        signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of a call by name, without the defaults and with them.

        Args:
            signature: Of the function that is called.
            args: Arguments by their places.
            kwargs: Arguments by their names.

        Raises:
            TypeError: They do not fit the signature.

        Example:
            >>> Layer.bound(inspect.signature(lambda x, training=None: x), (1,), {})
            ({'x': 1}, {'x': 1, 'training': None})
        """
        given: dict[str, Any] = {}
        whole: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            placed = len(given) < len(args)
            if parameter.kind is not _PLAIN or (placed and name in kwargs):
                return _bound(signature, args, kwargs)
            if placed:
                given[name] = whole[name] = args[len(given)]
            elif name in kwargs:
                given[name] = whole[name] = kwargs[name]
            elif parameter.default is _MISSING:
                return _bound(signature, args, kwargs)
            else:
                whole[name] = parameter.default
        if len(given) != len(args) + len(kwargs):
            return _bound(signature, args, kwargs)
        return given, whole

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


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `Layer.bound` returns, by Python's own binding."""
    bound = signature.bind(*args, **kwargs)
    given = dict(bound.arguments)
    bound.apply_defaults()
    return given, bound.arguments


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
