"""Gradients of public functions by their names, for record_tensorflow_derivatives.py."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

NAMESPACES = ["", "math", "nn", "linalg", "image", "signal"]
X = np.array([[0.31, 0.77, 0.52], [0.64, 0.25, 0.48], [0.19, 0.83, 0.57]])
Y = np.array([[0.42, 0.61, 0.23], [0.73, 0.36, 0.88], [0.55, 0.28, 0.67]])
# Where functions have kinks, poles and ties.
EDGES = (
    np.array([[0.0, 6.0, 1.0], [-1.0, 0.5, 0.0], [2.0, 0.0, 3.0]]),
    np.array([[0.0, 6.0, 0.0], [-1.0, 0.0, 2.0], [-2.0, 0.0, 3.0]]),
)
POINTS: dict[str, Any] = {"": (X, Y), " edges": EDGES}
# Draws, effects, and what takes functions or shapes.
LEFT_OUT = {"Variable", "GradientTape", "Module", "dropout", "recompute_grad", "grad_pass_through"}


def names(tf: Any) -> list[str]:
    """Return the public functions of the namespaces in their order."""
    found = []
    for space in NAMESPACES:
        module = getattr(tf, space) if space else tf
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            member = getattr(module, name)
            if callable(member) and not inspect.isclass(member) and name not in LEFT_OUT:
                found.append(f"{space}.{name}".lstrip("."))
    return found


def function(tf: Any, name: str) -> Any:
    """Return the function of this name."""
    for part in name.split("."):
        tf = getattr(tf, part)
    return tf


def gradients(tf: Any, name: str, operands: int, at: Any = (X, Y)) -> list[Any] | None:
    """Return the gradient by each operand; None where the call fails or has no floats."""
    inputs = [tf.constant(a) for a in at[:operands]]
    try:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            made = function(tf, name)(*inputs)
            leaves = [t for t in tf.nest.flatten(made) if np.asarray(t).dtype == np.float64]
            if not leaves:
                return None
            total = tf.add_n([tf.reduce_sum(tf.sin(t)) for t in leaves])
        found = tape.gradient(total, inputs)
    except Exception:
        return None
    return [None if g is None else np.asarray(g).round(6).tolist() for g in found]
