"""Additions to Keras's layers and metrics."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.variables import standardize_dtype

from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._keras.leaves import LEAVES
from samegrad._keras.older.layers import OlderLayer
from samegrad._keras.plain_calls import NOT_PLAIN, is_graph, plain_call
from samegrad._keras.signatures import bound
from samegrad._keras.text_steps import call_layer
from samegrad._keras.whole import changing
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.text import Text
from samegrad.train._process_state import register_policy
from samegrad.train._trackable import restore_pending

_TENSORS = (Tensor, RaggedTensor, Text, KerasTensor)
_NUMBERED = re.compile(r"variable(_\d+)?")  # names that Keras makes up


def _dtype_policy() -> str:
    from keras.src.dtype_policies.dtype_policy import dtype_policy

    name: str = dtype_policy().name
    return name


register_policy("dtype_policy", _dtype_policy)


class Layer(OlderLayer):
    """The mix-in that Keras gives all its layers."""

    _bound = staticmethod(bound)
    _no_scope = contextlib.nullcontext()
    _not_plain = NOT_PLAIN
    _is_graph = staticmethod(is_graph)
    _plain_call = staticmethod(plain_call)
    _further_arguments = ("input_shape", "input_dim")  # of all layers, for the port check

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Keras's class of all layers calls it with what it has prepared.
        return call_layer(self, super().__call__, args, kwargs)  # type: ignore[misc]

    @staticmethod
    def _has_values(options: dict[str, Any]) -> bool:
        """Tell if keyword arguments of a call are more than flags: they may become tensors."""
        return any(value is not None and type(value) is not bool for value in options.values())

    @staticmethod
    def _dtype_name(x: Any) -> str:
        """Return the name of the dtype of a tensor of samegrad or Keras."""
        name: str = x._dtype if type(x) is Tensor else standardize_dtype(x.dtype)
        return name

    @staticmethod
    def _is_standard(inputs: Any, wanted: list[Any]) -> bool:
        """Tell if the inputs of a model are the single tensor that it expects.

        Args:
            inputs: Of any kind.
            wanted: The model's own.
        """
        if type(inputs) is not Tensor or len(wanted) != 1:
            return False
        (one,) = wanted
        return inputs._dtype == one.dtype and inputs._rank == len(one.shape) and not one.sparse

    @staticmethod
    def _all_variables(layer: Any, plain: Any) -> list[Any]:
        """Return the variables of a layer without random ops and of its sublayers, each once.

        Args:
            layer: Of Keras.
            plain: The property `variables` of Keras's class of all layers.
        """
        found: dict[int, Any] = {}
        for part in (layer._trainable_variables, layer._non_trainable_variables):
            if part:
                found.update(zip(map(id, part), part, strict=True))
        for inner in layer._layers:
            if inner._layers or inner._seed_generators or type(inner).variables is not plain:
                parts = [inner.variables]
            else:
                parts = [inner._trainable_variables, inner._non_trainable_variables]
            for part in parts:
                if part:
                    found.update(zip(map(id, part), part, strict=True))
        return list(found.values())

    @staticmethod
    def _sort_arguments(call_spec: Any, bound: dict[str, Any]) -> None:
        """Record for Keras the arguments of a call that are tensors, or structures of them.

        Args:
            call_spec: What Keras knows of the call.
            bound: All arguments by their names, in their order.

        Raises:
            ValueError: A structure has tensors and others.
        """
        tensors: dict[str, Any] = {}
        nested: list[str] = []
        eager = True
        for name, value in bound.items():
            if type(value) is Tensor:
                tensors[name] = value
            elif type(value) in LEAVES:
                continue
            elif isinstance(value, _TENSORS):
                tensors[name] = value
                eager = eager and not isinstance(value, KerasTensor)
            elif tree.is_nested(value) and len(value) > 0:
                leaves = tree.flatten(value)
                if all(leaf is None or isinstance(leaf, _TENSORS) for leaf in leaves):
                    tensors[name] = value
                    nested.append(name)
                    eager = False
                elif any(isinstance(leaf, _TENSORS) for leaf in leaves):
                    raise ValueError(
                        "In a nested call() argument, you cannot mix tensors and non-tensors. "
                        f"Received invalid mixed argument: {name}={value}"
                    )
        call_spec.arguments_dict, call_spec.argument_names = bound, list(bound)
        call_spec.tensor_arguments_dict, call_spec.tensor_arguments_names = tensors, list(tensors)
        call_spec.nested_tensor_argument_names = nested
        call_spec.first_arg = bound[call_spec.argument_names[0]]
        call_spec.eager = eager

    @staticmethod
    def _keeps_mask(layer: Any, base: Any) -> bool:
        """Tell if the mask of a layer's output is that of its input.

        Args:
            layer: Of Keras.
            base: Keras's class of all layers.
        """
        return getattr(layer.compute_mask, "__func__", None) is base.compute_mask

    @staticmethod
    def _penalty_of_output(regularizer: Any, loss: Any, output: Any) -> Any:
        """Return the penalty of the outputs of all replicas; see `penalties.penalty_of_output`."""
        from samegrad._keras.penalties import penalty_of_output

        return penalty_of_output(regularizer, loss, output)

    @staticmethod
    def _added_losses(losses: list[Any]) -> list[Any]:
        """Return the stored values of added losses; see `penalties.added_losses`."""
        from samegrad._keras.penalties import added_losses

        return added_losses(losses)

    @staticmethod
    def _assign_all(layer: Any, variables: list[Any], values: Any) -> None:
        """Assign a value to each variable, or to none of them.

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

    @property
    def _default_save_signature(self) -> Any:
        """Called by `saved_model.save`: the function by which a model is served."""
        from samegrad._keras.export import serving_function

        return serving_function(self)

    # Checkpoints: variables by their names, layers inside by their places.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for variable in [*self._trainable_variables, *self._non_trainable_variables]:  # type: ignore[attr-defined]
            if variable._value is not None:
                parts[state_name(variable, parts)] = variable
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


def state_name(variable: Any, taken: Mapping[str, Any]) -> str:
    """Return the name of a variable in its owner's state, another one than those taken.

    Keras numbers the variables without a name throughout the process. These numbers are left out,
    so that a name depends on the owner alone.

    Example:
        >>> import samegrad as tf
        >>> kernel = tf.keras.Variable(1.0, name="kernel")
        >>> state_name(kernel, {"kernel": 1}), state_name(tf.keras.Variable(1.0), {})
        ('kernel_1', 'variable')
    """
    name = "variable" if _NUMBERED.fullmatch(variable.name) else variable.name
    number = 0
    while (free := f"{name}_{number}" if number else name) in taken:
        number += 1
    return free
