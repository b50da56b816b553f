"""Gradients: record what is computed, then walk back."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._autodiff.jacobian import batch_jacobian, jacobian
from samegrad._autodiff.trace_agreement import zeros
from samegrad._autodiff.variable import Variable, in_order_of_creation, unwrapped, variable_of
from samegrad._base.dtypes import as_dtype
from samegrad._base.enums import Choice
from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure, values
from samegrad._context import state as _context
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.sizes import may_be_as_large
from samegrad._tensor.tensor import Tensor, convert_to_tensor, match


class UnconnectedGradients(Choice):
    """Value of a gradient whose target and source are not connected."""

    NONE = "none"
    ZERO = "zero"


class _Enter:
    """The engine's `__enter__`, whole: an interrupt cannot come between it and the block.

    What is noted before is noted while Python looks the method up.
    """

    def __get__(self, tape: Any, owner: Any = None) -> Any:
        if tape is None:
            return self
        if tape._first_read is None:
            tape._first_read = _core.count_reads()
        return _core.Tape.__enter__.__get__(tape)


class GradientTape(_core.Tape):
    """Record operations for differentiation; tapes nest, for derivatives of any order.

    Args:
        persistent: Allow more than one call of `gradient`.
        watch_accessed_variables: Watch trainable variables when they are read.

    Example:
        >>> x = convert_to_tensor(3.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        super().__init__(persistent)
        self._watch_variables = watch_accessed_variables
        self._watched: dict[int, Variable] = {}
        self._first_read: int | None = None  # of the trace's, since the tape was entered

    __enter__ = _Enter()

    def watch(self, tensor: Any) -> None:
        """Watch a tensor, or a structure of tensors, as a source of gradients.

        Args:
            tensor: A tensor or variable, or a structure of them.
        """
        for part in map(unwrapped, flatten(tensor)):
            if isinstance(part, Variable):
                self._watched[id(part)] = part
            else:
                tensor = convert_to_tensor(part)
                _warn_unless_floating(tensor, "watch", "tensor")
                self._watch(tensor)

    def stop_recording(self) -> _core.Guard:
        """Return a context in which nothing is recorded."""
        return _core.paused(self)

    def reset(self) -> None:
        """Forget everything recorded so far."""
        self._watched = {}
        self._reset()
        self._first_read = None if self._first_read is None else _core.count_reads()

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that gradients reach: watched and trainable ones that were read.

        In a function, reads between the end of the tape's block and this call count as well.

        Returns:
            A tuple of the variables, each once, in the order of their creation.

        Raises:
            RuntimeError: The tape recorded in a function that has ended.

        Example:
            >>> v, w = Variable(2.0, name="v"), Variable(3.0, name="w")
            >>> with GradientTape() as tape:
            ...     y = w * w
            >>> [x.name for x in tape.watched_variables()]
            ['w:0']
        """
        found = dict(self._watched)
        for cell in self._cells_read() if self._watch_variables else ():
            variable = variable_of(cell)
            if variable is not None and variable.trainable:
                found[id(variable)] = variable
        return tuple(in_order_of_creation(found.values()))

    def _cells_read(self) -> list[Any]:
        return [] if self._first_read is None else self._reads_since(self._first_read)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Compute the gradient of the sum of the targets.

        The gradient by a complex x + iy is dL/dx + i dL/dy, L being the real part of a complex
        target, as in TensorFlow.

        Args:
            target: A tensor or a structure of tensors.
            sources: Variables and tensors, in any structure.
            output_gradients: The weight of each target's elements, in its shape; default ones.
            unconnected_gradients: NONE gives None where nothing connects, ZERO gives zeros.

        Returns:
            The gradients, in the structure of `sources`, each of the shape and dtype of its source.

        Raises:
            RuntimeError: A second use of a tape that is not persistent, or a use after the function
                that it recorded in.
            ValueError: `output_gradients` are not one per target, of its shape.
            UserWarning: A target has no floats; nothing flows through it.
        """
        return self._gradients(target, sources, output_gradients, unconnected_gradients)

    def _gradients(
        self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any,
        again: bool = False,
    ) -> Any:  # fmt: skip
        """Return the gradients; `again`: as one more part of the last use of the tape."""
        unconnected = _unconnected(unconnected_gradients)
        target = target if output_gradients is not None else _real_parts(target)
        targets = [self._target(t) for t in flatten(target)]
        for tensor in targets:
            _warn_unless_floating(tensor, "gradient", "target")
        seeds = _seeds(targets, output_gradients)
        flat = [unwrapped(source) for source in flatten(sources)]
        origins = [s._cell if isinstance(s, Variable) else convert_to_tensor(s) for s in flat]
        found = self._gradient(targets, seeds, origins, again)
        for i, source in enumerate(flat):
            if isinstance(source, Variable) and not self._watches(source):
                found[i] = None
        if unconnected is UnconnectedGradients.ZERO:
            found = [zeros(s) if g is None else g for g, s in zip(found, flat, strict=True)]
        agreement = _context.current().agreement
        if agreement is not None:
            found = agreement.gradients(found, flat)
        gradients = iter(found)
        made = map_structure(lambda _: next(gradients), sources)
        return _with_both_parts(made) if any(g is None for g in found) else made

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Compute the derivative of every element of the target by every element of the sources.

        Args:
            target: A tensor. One with a batch axis binds a traced program to its size: another size
                is traced again.
            sources: Variables and tensors, in any structure.
            unconnected_gradients: As in `gradient`.
            parallel_iterations: Ignored: one backward pass per element.
            experimental_use_pfor: Ignored.

        Returns:
            Tensors of shape target.shape + source.shape, in the structure of `sources`.

        Raises:
            RuntimeError: A second use of a tape that is not persistent.

        Example:
            >>> x = convert_to_tensor([1.0, 2.0])
            >>> with GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            >>> tape.jacobian(y, x).numpy()
            array([[2., 0.],
                   [0., 4.]], dtype=float32)
        """
        found = jacobian(self, self._target(target), sources, unconnected_gradients)
        return _with_both_parts(found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Compute the derivative of each example of the target by the same example of the source.

        Args:
            target: A tensor of shape [n, ...]; example i must depend on example i of the source
                only.
            source: A tensor of shape [n, ...].
            unconnected_gradients: Ignored: unconnected elements have zeros.
            parallel_iterations: Ignored.
            experimental_use_pfor: Ignored.

        Returns:
            A tensor of shape [n, *target.shape[1:], *source.shape[1:]].

        Raises:
            RuntimeError: A second use of a tape that is not persistent.
            ValueError: Target and source differ in n, or have fewer than two axes.

        Example:
            >>> x = convert_to_tensor([[1.0], [2.0]])
            >>> with GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            >>> tape.batch_jacobian(y, x).numpy().tolist()
            [[[2.0]], [[4.0]]]
        """
        return batch_jacobian(self, self._target(target), source)

    def _target(self, target: Any) -> Tensor:
        """Return the tensor that the tape knows the target as: a variable is its read value."""
        target = unwrapped(target)
        if isinstance(target, Variable) and target._cell.component_count == 1:
            return self._value_of(target._cell)
        return convert_to_tensor(target)

    def _watches(self, variable: Variable) -> bool:
        return (self._watch_variables and variable.trainable) or id(variable) in self._watched


_context.set_tape(lambda: GradientTape(persistent=True))


def _warn_unless_floating(tensor: Tensor, method: str, what: str) -> None:
    if not as_dtype(tensor._dtype).is_floating:
        warn(
            f"[GradientTape.{method}] only floats have gradients: got a {what} of {tensor._dtype}; "
            "use samegrad.cast before."
        )


def _real_parts(target: Any) -> Any:
    """The targets, of complex ones their real parts: the others have no weight of their own."""
    return values.map_structure(
        lambda leaf: leaf.real if isinstance(leaf, ComplexTensor) else leaf, target
    )


def _with_both_parts(gradients: Any) -> Any:
    """The gradients, of complex sources None if neither part is connected, else both parts."""

    def complete(gradient: Any) -> Any:
        if not isinstance(gradient, ComplexTensor):
            return gradient
        known = next((part for part in gradient.parts if part is not None), None)
        if known is None:
            return None
        zero = _core.ops.full_like(known, value=0.0)
        return ComplexTensor(*(zero if part is None else part for part in gradient.parts))

    return values.map_structure(complete, gradients)


def _unconnected(given: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(given)
    except ValueError:
        raise ValueError(
            "[GradientTape.gradient] unconnected_gradients must be UnconnectedGradients.NONE or "
            f"ZERO: got {shown(given)}."
        ) from None


def _seeds(targets: list[Tensor], given: Any) -> list[Tensor | None]:
    """Return the weights of the targets' elements; None: ones."""
    if given is None:
        return [None] * len(targets)
    seeds = flatten(given)
    if len(seeds) != len(targets):
        raise ValueError(
            f"[GradientTape.gradient] output_gradients must be one per target: got {len(seeds)} "
            f"for {len(targets)}."
        )
    return [
        None if seed is None else _seed(match(seed, target), target)
        for seed, target in zip(seeds, targets, strict=True)
    ]


def _seed(seed: Tensor, target: Tensor) -> Tensor:
    if seed._dtype != target._dtype or not may_be_as_large(seed, target):
        raise ValueError(
            "[GradientTape.gradient] output_gradients must have the shape and dtype of their "
            f"targets: got {seed._dtype} {seed._shape} for {target._dtype} {target._shape}."
        )
    return seed
