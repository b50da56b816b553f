"""Handlers of Keras for every exception let interrupts through.

A bare `except` takes Ctrl-C and exits for what it expects, and the program goes on as if nobody had
asked it to stop.
"""

from __future__ import annotations

from samegrad._keras.patching import Text

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

INTERRUPTS: dict[str, list[Text]] = {
    # Other structures are what this one is about.
    "keras.src.models.functional": [Text(_EVERYTHING, "except (TypeError, ValueError):\n")],
    **{
        module: [Text(_EVERYTHING, "except Exception:\n", count)]
        for module, count in _MODULES.items()
    },
}
