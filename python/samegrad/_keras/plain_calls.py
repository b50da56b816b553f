"""The call of a layer that needs little of what Keras prepares for calls of every kind.

Most layers of a step, and models that are graphs of layers, were called before and get one tensor,
of the dtype that they compute in and without a mask. Then there is nothing to be converted, built,
named, masked or recorded: what is left of `Layer.__call__` is here, in its order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.common.variables import is_float_dtype
from keras.src.distribution.distribution_lib import GLOBAL_ATTRIBUTE_NAME as _DISTRIBUTION
from keras.src.dtype_policies.dtype_policy import DTypePolicy
from keras.src.utils import traceback_utils

from samegrad._base.host_read import HostRead
from samegrad._context.user_code import converted
from samegrad._keras.signatures import parameters_of
from samegrad._tensor.conversion import Tensor

NOT_PLAIN = object()
_CALL = "current_call_ctx"
_TRAINING = "training"
_CONTEXT = {_TRAINING}
_FLAGS = frozenset({bool, type(None)})


def plain_call(layer: Any, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the outputs of a call, or NOT_PLAIN where Keras has to prepare it.

    Args:
        layer: Layer of Keras that was called before, or is a graph.
        base: Keras's base class of layers.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        Outputs, or NOT_PLAIN.
    """
    if len(args) != 1 or type(args[0]) is not Tensor:
        return NOT_PLAIN
    scopes = global_state.GLOBAL_STATE_TRACKER.__dict__  # of this thread
    context = scopes.get(_CALL)
    if context is not None and context.entry_layer is layer:
        return NOT_PLAIN
    if not _is_plain(layer, base, args[0]):
        return NOT_PLAIN
    if scopes.get("autocast_scope") is not None or scopes.get(_DISTRIBUTION) is not None:
        return NOT_PLAIN
    defaults, required, _ = parameters_of(layer._call_signature)
    if not required <= {next(iter(defaults), None)}:
        return NOT_PLAIN
    if "mask" in kwargs and kwargs["mask"] is None and defaults.get("mask", 0) is None:
        kwargs = {name: value for name, value in kwargs.items() if name != "mask"}
    if not kwargs:
        value = None if context is None else context.get_value(_TRAINING)
        if value is None:
            value = layer._phase_or(_TRAINING, defaults.get(_TRAINING))
    elif len(kwargs) == 1 and type(kwargs.get(_TRAINING, 0)) in _FLAGS:
        value = kwargs[_TRAINING]
    else:
        return NOT_PLAIN
    if not _fits(layer, base, args[0]):
        layer._assert_input_compatibility(args[0])
    given = _TRAINING in defaults and (kwargs or value is not None)
    named = {_TRAINING: value} if given else {}
    if context is not None:
        context.set_value(_TRAINING, value)
        return _called(layer, args[0], named)
    context = scopes[_CALL] = _call_context()(entry_layer=layer)
    context.set_value(_TRAINING, value)
    try:
        layer._clear_losses()
        return _called(layer, args[0], named)
    finally:
        scopes[_CALL] = None


# What follows imports this module.


@functools.cache
def _call_context() -> Any:
    from keras.src.layers.layer import CallContext

    return CallContext


@functools.cache
def _input_spec() -> Any:
    from keras.src.layers.input_spec import InputSpec

    return InputSpec


@functools.cache
def _calls_of_graphs() -> frozenset[Any]:
    """The `call` of models that go through a graph of layers, all of which were called then."""
    from keras.src.models.functional import Functional
    from keras.src.models.sequential import Sequential

    return frozenset({Functional.call, Sequential.call})


def is_graph(layer: Any) -> bool:
    """Tell if a call of the layer runs a graph of layers.

    Args:
        layer: Layer of Keras.

    Returns:
        True for functional and sequential models.
    """
    return type(layer).call in _calls_of_graphs() and bool(getattr(layer, "_functional", layer))


def _fits(layer: Any, base: Any, x: Tensor) -> bool:
    """Tell if the input meets the layer's spec; if not, Keras checks it once more."""
    if type(layer)._assert_input_compatibility is not base._assert_input_compatibility:
        return False
    spec = layer.input_spec
    if spec is None:
        return True
    if type(spec) is not _input_spec() or spec.shape or spec.dtype or spec.max_ndim is not None:
        return False
    sizes = x._shape
    if spec.ndim is not None and spec.ndim != len(sizes):
        return False
    if (spec.min_ndim or 0) > len(sizes):
        return False
    return all(
        size is None or (-len(sizes) <= axis < len(sizes) and sizes[axis] == size)
        for axis, size in spec.axes.items()
    )


def _is_cast(layer: Any, x: Tensor) -> bool:
    """Tell if Keras casts an input of another dtype to that of the layer."""
    return bool(layer._convert_input_args) and is_float_dtype(x._dtype)


def _is_plain(layer: Any, base: Any, x: Tensor) -> bool:
    policy = layer._dtype_policy
    return (
        layer.built
        and type(policy) is DTypePolicy
        and policy._compute_dtype == policy._variable_dtype
        and (policy._compute_dtype == x._dtype or not _is_cast(layer, x))
        and getattr(x, "_keras_mask", None) is None
        # Others may make variables, which get names of their scope.
        and (not layer._layers or is_graph(layer))
        and layer._call_context_args == _CONTEXT
        and layer.activity_regularizer is None
        and not layer._remat_mode
        and layer._keeps_mask(layer, base)
    )


def _called(layer: Any, x: Tensor, named: dict[str, Any]) -> Any:
    function = converted(layer.call)
    try:
        return function(x, **named)
    except HostRead as read:
        return read.calls.outputs(layer, (x,), named)
    except Exception as error:
        if not traceback_utils.is_traceback_filtering_enabled():
            raise
        failing = _failing(function, error)
        name = f"{type(layer).__name__}.call()"
        traceback_utils.inject_argument_info_in_traceback(failing, name)(x, **named)
        raise AssertionError("an error is raised with the arguments of the call") from error


def _failing(function: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """A function of the same signature that raises."""

    @functools.wraps(function)
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail
