"""Derivatives along a direction, by two backward passes."""

from __future__ import annotations

import contextlib
from typing import Any

from samegrad import _core
from samegrad._autodiff.tape import GradientTape, UnconnectedGradients
from samegrad._autodiff.variable import Variable, unwrapped
from samegrad._base.tree import flatten, map_structure
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_ops = _core.ops


class ForwardAccumulator:
    """Derivatives along a direction of the tensors that its block computes.

    The gradient of Σ u · f(x) with respect to x is linear in u: its own gradient with respect to u,
    with the direction as weights, is the derivative of f along it. So each operation that has a
    gradient has this derivative as well, and accumulators nest with each other and with tapes.

    Args:
        primals: Tensors or variables of floats, in any structure.
        tangents: The direction, in the same structure and shapes.

    Raises:
        ValueError: Structures or shapes differ.

    Example:
        >>> x = convert_to_tensor([2.0, 3.0])
        >>> with ForwardAccumulator(x, convert_to_tensor([1.0, 0.0])) as accumulator:
        ...     y = x * x * x
        >>> accumulator.jvp(y).numpy()
        array([12.,  0.], dtype=float32)
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        parts = [unwrapped(x) for x in flatten(primals)]
        self._primals = [x if isinstance(x, Variable) else convert_to_tensor(x) for x in parts]
        given = flatten(tangents)
        if len(given) != len(self._primals):
            raise ValueError(
                f"[ForwardAccumulator] each primal has a tangent: got {len(self._primals)} and "
                f"{len(given)}."
            )
        self._tangents: list[Tensor] = []
        for primal, tangent in zip(self._primals, given, strict=True):
            direction = convert_to_tensor(tangent, primal.dtype)
            if tuple(direction.shape) != tuple(primal.shape):
                raise ValueError(
                    "[ForwardAccumulator] a tangent has the shape of its primal: got "
                    f"{tuple(direction.shape)} for {tuple(primal.shape)}."
                )
            self._tangents.append(direction)
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        # Around the other one, so that it records that one's gradients.
        self._linear = GradientTape(persistent=True, watch_accessed_variables=False)
        self._recording = False

    def __enter__(self) -> ForwardAccumulator:
        self._linear.__enter__()
        self._tape.__enter__()
        self._recording = True
        self._tape.watch(self._primals)
        return self

    def __exit__(self, *error: Any) -> None:
        self._recording = False
        self._tape.__exit__(*error)
        self._linear.__exit__(*error)

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Return the derivatives of tensors along the direction.

        Args:
            primals: Tensors computed in the block, in any structure.
            unconnected_gradients: NONE gives None for tensors that do not depend on the primals,
                ZERO gives zeros.

        Returns:
            Tensors of the shapes and dtypes of `primals`, in the same structure.
        """
        zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO

        def along(target: Any) -> Tensor | None:
            y = convert_to_tensor(unwrapped(target))
            found = self._along(y)
            return _ops.full_like(y, value=0.0) if found is None and zeros else found

        return map_structure(along, primals)

    def _along(self, y: Tensor) -> Tensor | None:
        weights = _ops.full_like(y, value=0.0)
        with contextlib.nullcontext() if self._recording else self._linear:
            self._linear.watch(weights)
            slopes = self._tape.gradient(y, self._primals, output_gradients=weights)
        pairs = [(g, t) for g, t in zip(slopes, self._tangents, strict=True) if g is not None]
        if not pairs:
            return None
        gradients, directions = zip(*pairs, strict=True)
        found: Tensor | None = self._linear.gradient(
            list(gradients), weights, output_gradients=list(directions)
        )
        return found
