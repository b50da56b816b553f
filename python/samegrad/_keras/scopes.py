"""Scopes of Keras's call contexts, which end with the call, even by an exception.

Keras's scopes are written in Python: an interrupt may come to their `__exit__`, and the process
goes on as if it were still inside, with variables that nobody tracks or that are never assigned.
Tracking is switched off by a guard of the engine, which nothing can interrupt. The other scopes are
put back by the outermost calls that use them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from keras.src.backend.common import global_state

from samegrad import _core
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context

Scopes = list[tuple[str, Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_CALL = "current_call_ctx"
# Variables that get their first values when the outermost stateless scope ends.
_PENDING = "uninitialized_variables"
_BUILT = "_of_built"
_SCOPES = frozenset({
    _CALL, "autocast_scope", "custom_objects_scope_dict", "in_tf_graph_scope", "name_scope_stack",
    "remat_scope_stack", "safe_mode_saving", "shared_objects/id_to_config_map",
    "shared_objects/id_to_obj_map", "stateless_scope", "symbolic_scope", _PENDING,
    "use_legacy_config",
})  # fmt: skip


def untracked() -> _core.Guard:
    """Inside, what is assigned to attributes of Keras's objects is not tracked.

    Example:
        >>> with untracked():
        ...     is_tracking_enabled()
        False
    """
    return _context.changed(keras_tracks=False)


def is_tracking_enabled() -> bool:
    """Tell if Keras's objects track the values of their attributes.

    Example:
        >>> is_tracking_enabled()
        True
    """
    return _context.current().keras_tracks


def before_call() -> Scopes | None:
    """Keras's scopes, for `put_back`; None in a layer's call: the outermost one puts them back."""
    if vars(global_state.GLOBAL_STATE_TRACKER).get(_CALL) is not None:
        return None
    return _scopes()


def put_back(before: Scopes | None) -> None:
    """Make Keras's scopes what they were.

    In a stateless scope that goes on, variables of what was built since stay pending.
    """
    if before is not None:
        state = vars(global_state.GLOBAL_STATE_TRACKER)
        built = [variable for variable in state.get(_PENDING) or () if hasattr(variable, _BUILT)]
        for name in _SCOPES:
            state.pop(name, None)
        state.update(before)
        known = state.get(_PENDING) or []
        if built and "stateless_scope" in state:  # `in` of a list would compare values
            numbers = {id(variable) for variable in known}
            state[_PENDING] = [*known, *(v for v in built if id(v) not in numbers)]


def keep_pending() -> None:
    """Keep the variables that are pending now, whatever fails around what made them."""
    for variable in vars(global_state.GLOBAL_STATE_TRACKER).get(_PENDING) or ():
        setattr(variable, _BUILT, True)


def keeping_scopes(function: _Function) -> _Function:
    """The function, after whose exceptions Keras's scopes are those that there were before."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = before_call()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            put_back(before)
            if isinstance(error, Exception):
                keep_user_frames(error)
            raise

    return call  # type: ignore[return-value]


def _scopes() -> Scopes:
    # What is empty or false is as if it were not there.
    state = vars(global_state.GLOBAL_STATE_TRACKER)
    return [(name, _copied(value)) for name, value in state.items() if value and name in _SCOPES]


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict) else value
