"""Handlers of Keras for every exception let interrupts through, and its scopes end with them.

A bare `except` takes Ctrl-C and exits for what it expects, and the program goes on as if nobody had
asked it to stop. A scope whose `__exit__` is interrupted stays on; see `scopes`.
"""

from __future__ import annotations

from samegrad._keras.patching import Span, Text

_EVERYTHING = "except:\n"
# Modules that run while a program trains, and how many handlers each has.
_MODULES = {
    "keras.src.backend.common.variables": 1,
    "keras.src.dtype_policies": 1,
    "keras.src.layers.attention.multi_head_attention": 1,
    "keras.src.layers.core.lambda_layer": 1,
    "keras.src.layers.layer": 3,
    "keras.src.models.model": 2,
    "keras.src.models.sequential": 1,
    "keras.src.ops.core": 1,
    "keras.src.trainers.compile_utils": 4,
    "keras.src.utils.python_utils": 1,
}

_HANDLERS: dict[str, list[Text]] = {
    # Other structures are what this one is about.
    "keras.src.models.functional": [Text(_EVERYTHING, "except (TypeError, ValueError):\n")],
    **{
        module: [Text(_EVERYTHING, "except Exception:\n", count)]
        for module, count in _MODULES.items()
    },
}
_IMPORT = "from samegrad._keras.scopes import keeping_scopes\n"
_FILTERING = (
    "from samegrad._base import tracebacks as _tracebacks\n"
    "from samegrad._keras import scopes as _scopes\n"
)


def _keeping(function: str, after: str, indent: str = "") -> list[Text | Span]:
    """A function that uses scopes puts them back; it is imported behind a line of the module."""
    begin = f"{indent}def {function}("
    return [Text(after, after + _IMPORT), Text(begin, f"{indent}@keeping_scopes\n{begin}")]


_API = "from keras.src.api_export import keras_export\n"
_SCOPES: dict[str, list[Text | Span]] = {
    "keras.src.utils.tracking": [
        Span(
            "class DotNotTrackScope:",
            "def no_automatic_dependency_tracking(fn):",
            "eb0c9d79befff208",
            "from samegrad._keras.scopes import is_tracking_enabled\n"
            "from samegrad._keras.scopes import untracked as DotNotTrackScope\n\n\n",
        ),
    ],
    # Calls of layers and operations, `fit`, saving.
    "keras.src.utils.traceback_utils": [
        Text(_API, _API + _FILTERING),
        # An error with the arguments of a call keeps its notes, and the cause of user code.
        Text(
            "            raise new_e.with_traceback(e.__traceback__) from None\n",
            "            if new_e is not e:\n"
            '                new_e.__notes__ = [*getattr(e, "__notes__", ())]\n'
            "            raise new_e.with_traceback(e.__traceback__) from e.__cause__\n",
        ),
        # One switch for samegrad and Keras.
        *(
            Text(
                f'    global_state.set_global_attribute("traceback_filtering", {value})\n',
                f"    _tracebacks.{verb}_traceback_filtering()\n",
            )
            for verb, value in (("enable", True), ("disable", False))
        ),
        Text(
            '    return global_state.get_global_attribute("traceback_filtering", True)\n',
            "    return _tracebacks.is_traceback_filtering_enabled()\n",
        ),
        Span(
            "    @wraps(fn)\n    def error_handler",
            "def inject_argument_info_in_traceback(",
            "ef1a7e7f0fd67f81",
            "    @wraps(fn)\n"
            "    def error_handler(*args, **kwargs):\n"
            "        before = _scopes.before_call()\n"
            "        try:\n"
            "            return fn(*args, **kwargs)\n"
            "        except BaseException as e:\n"
            "            _scopes.put_back(before)\n"
            "            if isinstance(e, Exception):\n"
            "                _tracebacks.keep_user_frames(e)\n"
            "            raise\n\n"
            "    return error_handler\n\n\n",
        ),
    ],
    "keras.src.layers.layer": _keeping("add_weight", _API, "    "),
    "keras.src.losses.loss": _keeping("__call__", _API, "    "),
    "keras.src.metrics.metric": _keeping("add_variable", _API, "    "),
    "keras.src.saving.serialization_lib": [
        Text(_API, _API + _IMPORT),
        Text(
            '        "keras.utils.deserialize_keras_object",\n    ]\n)\n',
            '        "keras.utils.deserialize_keras_object",\n    ]\n)\n@keeping_scopes\n',
        ),
    ],
    "keras.src.saving.saving_api": _keeping("load_model", _API),
}

INTERRUPTS: dict[str, list[Text | Span]] = {
    module: [*_HANDLERS.get(module, []), *_SCOPES.get(module, [])]
    for module in {**_HANDLERS, **_SCOPES}
}
