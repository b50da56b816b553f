"""The call of a layer that needs little of what Keras prepares for calls of every kind.

Most layers of a step were called before and get one tensor, of the dtype that they compute in and
without a mask. Then there is nothing to be converted, built, named,
masked or recorded: what is left of `Layer.__call__` is here, in its order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from keras.src.backend.common import global_state
from keras.src.distribution.distribution_lib import GLOBAL_ATTRIBUTE_NAME as _DISTRIBUTION
from keras.src.dtype_policies.dtype_policy import DTypePolicy
from keras.src.utils import traceback_utils

from samegrad._context.user_code import converted
from samegrad._keras.signatures import parameters_of
from samegrad._tensor.conversion import Tensor

NOT_PLAIN = object()
_CALL = "current_call_ctx"
_TRAINING = "training"
_CONTEXT = {_TRAINING}
_FLAGS = frozenset({bool, type(None)})


def plain_call(layer: Any, base: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The outputs of a call, or NOT_PLAIN where Keras has to prepare it.

    Args:
        layer: Of Keras; it was called before.
        base: Keras's class of all layers.
        args: Arguments by their places.
        kwargs: Arguments by their names.
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
    if not kwargs:
        value = None if context is None else context.get_value(_TRAINING)
        if value is None:
            value = layer.phase_or(_TRAINING, defaults.get(_TRAINING))
    elif len(kwargs) == 1 and type(kwargs.get(_TRAINING, 0)) in _FLAGS:
        value = kwargs[_TRAINING]
    else:
        return NOT_PLAIN
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


@functools.cache
def _call_context() -> Any:
    from keras.src.layers.layer import CallContext  # which imports this module

    return CallContext


def _is_plain(layer: Any, base: Any, x: Tensor) -> bool:
    policy = layer._dtype_policy
    return (
        layer.built
        and type(policy) is DTypePolicy
        and policy._compute_dtype == policy._variable_dtype == x._dtype
        and getattr(x, "_keras_mask", None) is None
        and not layer._layers
        and layer._call_context_args == _CONTEXT
        and layer.activity_regularizer is None
        and not layer._remat_mode
        and layer.keeps_mask(layer, base)
    )


def _called(layer: Any, x: Tensor, named: dict[str, Any]) -> Any:
    function = converted(layer.call)
    try:
        return function(x, **named)
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
