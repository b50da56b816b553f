"""Gradients of what a function has computed so far: `gradients` and `hessians`."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._autodiff.tape import GradientTape, UnconnectedGradients
from samegrad._autodiff.variable import Variable, unwrapped
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._tensor.tensor import Tensor, convert_to_tensor

__all__ = ["gradients", "hessians"]

_ops = _core.ops


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Compute the gradients of the sum of tensors, in a function that computes them.

    Args:
        ys: A tensor that the function has computed, or a list of them.
        xs: Sources, alone or in a list: arguments of the function, variables, and tensors that the
            function computes from these.
        grad_ys: The weight of each target's elements, in its shape; default ones.
        name: Ignored.
        gate_gradients: Ignored.
        aggregation_method: Ignored.
        stop_gradients: None: use `stop_gradient` where nothing shall flow through.
        unconnected_gradients: NONE gives None where nothing connects, ZERO gives zeros.

    Returns:
        A list of the gradients, each of the shape and dtype of its source.

    Raises:
        RuntimeError: Called in eager code.
        ValueError: A source is a constant, or `stop_gradients` are given.

    Example:
        >>> import samegrad as tf
        >>> slope = tf.function(lambda x: tf.gradients(x * x, x)[0])
        >>> float(slope(tf.constant(3.0)))
        6.0
    """
    tape = _program_tape("gradients", ys)
    if stop_gradients is not None:
        raise ValueError(
            f"[gradients] stop_gradients must be None: got {shown(stop_gradients)}; use "
            "samegrad.stop_gradient on the tensors."
        )
    targets, sources = _listed(ys), _listed(xs)
    found: list[Any] = tape.gradient(targets, sources, grad_ys, unconnected_gradients)
    for source, gradient in zip(sources, found, strict=True):
        if gradient is None:
            _check_known(tape, source)
    return found


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list[Any]:
    """Compute the matrices of second derivatives, in a function that computes the tensors.

    Args:
        ys: A tensor that the function has computed, or a list of them, which is summed.
        xs: Sources, alone or in a list, as `gradients` takes them.
        gate_gradients: Ignored.
        aggregation_method: Ignored.
        name: Ignored.

    Returns:
        A list of tensors [*x.shape, *x.shape], one for each source.

    Raises:
        RuntimeError: Called in eager code.
        ValueError: A source is a constant.

    Example:
        >>> import samegrad as tf
        >>> f = tf.function(lambda x: tf.hessians(tf.reduce_sum(x**3), x)[0])
        >>> f(tf.constant([1.0, 2.0])).numpy()
        array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    tape = _program_tape("hessians", ys)
    sources = _listed(xs)
    first = gradients(ys, sources)
    return [
        None if slope is None else tape.jacobian(slope, source, UnconnectedGradients.ZERO)
        for slope, source in zip(first, sources, strict=True)
    ]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _program_tape(who: str, ys: Any) -> GradientTape:
    tape = _context.current().program_tape
    if tape is None or not _core.tracing():
        raise RuntimeError(
            f"[{who}] a samegrad.function records what it computes, eager code does not: got "
            f"{shown(ys)}; use a GradientTape, or call it inside of a function."
        )
    return tape


def _check_known(tape: GradientTape, source: Any) -> None:
    """Check that a gradient is None because nothing connects, not because nobody watched."""
    if isinstance(unwrapped(source), Variable):
        return
    x: Tensor = convert_to_tensor(source)
    if tape.gradient(_ops.add(x, _ops.full_like(x, value=0.0)), x) is None:
        raise ValueError(
            "[gradients] sources are arguments, variables and what is computed from them: got a "
            f"constant of shape {tuple(x._shape)}; make it an argument, or use GradientTape.watch."
        )
