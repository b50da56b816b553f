"""What programs as users write them share: weights, data, the history of a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any, Any], dict[str, Any]]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Lists a program under its name."""
    PROGRAMS[function.__name__] = function
    return function


def drawn(shape: Any, seed: int = 0) -> Any:
    """Numbers of a normal distribution."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def start(model: Any) -> Any:
    """The model with weights that NumPy draws."""
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        value = 0.3 * rng.normal(size=tuple(weight.shape))
        weight.assign(value + 1 if "gamma" in weight.path else value)
    return model


def fitted(model: Any, x: Any, y: Any = None, epochs: int = 3, **kwargs: Any) -> dict[str, Any]:
    """The history of a fit."""
    if "steps_per_epoch" not in kwargs and not hasattr(x, "element_spec"):
        kwargs = {"batch_size": 5, **kwargs}
    history = model.fit(x, y, epochs=epochs, shuffle=False, verbose=0, **kwargs).history
    return {key: [float(np.mean(v)) for v in values] for key, values in history.items()}
