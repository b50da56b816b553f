"""Tensors of a loop that grow from round to round, as its `shape_invariants` allow.

What a step computes has one size in every round. A function with such a loop is run by Python,
operation by operation; on replicas it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samegrad._base.shown import shown
from samegrad._base.tree import variables
from samegrad._context.python_runs import leave_trace
from samegrad._tensor.shape import TensorShape, as_shape

Place = tuple[int, int]  # which value, which of its leaves
Shapes = Mapping[Place, TensorShape]


def shapes_of_variables(who: str, given: Any, values: Sequence[Any]) -> Shapes:
    """Return the shapes that loop variables may take, from a structure like theirs.

    Raises:
        ValueError: It has another structure.

    Example:
        >>> shapes_of_variables("while_loop", ([None], {"a": [2]}), (0, {"a": 1}))[1, 0].as_list()
        [2]
    """
    if given is None:
        return {}
    if not isinstance(given, list | tuple) or len(given) != len(values):
        raise ValueError(
            f"[{who}] shape_invariants must be a shape for each loop variable: got {shown(given)} "
            f"for {len(values)}."
        )
    found = {}
    for i, (value, shapes) in enumerate(zip(values, given, strict=True)):
        for k, shape in enumerate(_leaf_shapes(who, value, shapes)):
            found[i, k] = shape
    return found


def shapes_of_pairs(who: str, pairs: Any, values: Sequence[Any]) -> Shapes:
    """Return the shape invariants of the variables of a loop, given as pairs.

    Raises:
        TypeError: The invariants are not a list of pairs.
    """
    found = {}
    for pair in pairs or ():
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                f"[{who}] shape_invariants are pairs of a variable and its shape: got {shown(pair)}"
                "; pass [(x, tf.TensorShape([None]))]."
            )
        for i, value in enumerate(values):
            if value is pair[0]:
                for k, shape in enumerate(_leaf_shapes(who, value, pair[1])):
                    found[i, k] = shape
    return found


def _leaf_shapes(who: str, value: Any, shapes: Any) -> list[TensorShape]:
    """A shape for each leaf of a value. A shape is a tuple, too: the value says what is a leaf."""
    if not variables.is_nested(value):
        return [as_shape(getattr(shapes, "shape", shapes))]  # of a TensorSpec
    parts = variables.parts(value)
    others = variables.parts(shapes) if variables.is_nested(shapes) else []
    if len(parts) != len(others):
        raise ValueError(
            f"[{who}] shape_invariants must have the structure of the loop variables: got "
            f"{shown(shapes)} for {len(parts)} parts."
        )
    return [s for part, other in zip(parts, others, strict=True)
            for s in _leaf_shapes(who, part, other)]  # fmt: skip


def check_start(who: str, name: str, begins: Any, allowed: TensorShape) -> None:
    """A loop variable begins with a shape that it may take.

    Raises:
        ValueError: It does not.
    """
    if not allowed.is_compatible_with(TensorShape(begins)):
        raise ValueError(
            f"[{who}] {name} must begin with the shape that shape_invariants say: got "
            f"{tuple(begins)} for {allowed}."
        )


def leave_if_it_may(who: str, name: str, before: Any, after: Any, allowed: Any) -> None:
    """Fall back to Python if an iteration grows a tensor to a shape that its invariant allows.

    Raises:
        NeedsPython: The function falls back to Python.
        RuntimeError: The loop is in a step of replicas, which cannot.
    """
    if allowed is None or not allowed.is_compatible_with(TensorShape(after)):
        return
    leave_trace(
        f"[{who}] {name} grows from round to round, from {tuple(before)} to {tuple(after)}, and a "
        "step of replicas has fixed sizes: fill a tf.TensorArray, or a tensor of the final size."
    )


__all__ = ["check_start", "leave_if_it_may", "shapes_of_pairs", "shapes_of_variables"]
