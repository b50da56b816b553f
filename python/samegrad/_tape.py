"""Gradients: record what is computed, then walk back."""

from __future__ import annotations

import enum
from typing import Any

from samegrad import _core
from samegrad._nest import flatten, map_structure
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad._variable import Variable


class UnconnectedGradients(enum.Enum):
    """What a gradient is where target and source are not connected."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records operations for differentiation; tapes nest, for derivatives of any order.

    Args:
        persistent: Whether `gradient` may be called more than once.
        watch_accessed_variables: Whether trainable variables are watched when read.

    Example:
        >>> x = convert_to_tensor(3.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._tape = _core.Tape(persistent, watch_accessed_variables)
        self._watch_variables = watch_accessed_variables
        self._watched: set[int] = set()

    def __enter__(self) -> GradientTape:
        self._tape.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._tape.stop()

    def watch(self, tensor: Any) -> None:
        """Makes a tensor (or a structure of them) a source of gradients."""
        for part in flatten(tensor):
            if isinstance(part, Variable):
                self._watched.add(id(part))
            else:
                self._tape.watch(convert_to_tensor(part))

    def stop_recording(self) -> Any:
        """A context in which nothing is recorded."""
        return _Paused(self._tape)

    def reset(self) -> None:
        """Forgets everything recorded so far."""
        recording = self._tape.recording
        self._tape.stop()
        self.__init__()  # type: ignore[misc]
        if recording:
            self._tape.start()

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of the sum of the targets, in the structure of `sources`.

        Args:
            target: A tensor or a structure of tensors.
            sources: Variables and tensors, in any structure.
            output_gradients: The weight of each target's elements; default ones.
            unconnected_gradients: NONE gives None where nothing connects, ZERO gives zeros.

        Raises:
            RuntimeError: A second use of a tape that is not persistent.
        """
        targets = [convert_to_tensor(t) for t in flatten(target)]
        seeds: list[Tensor | None] = [None] * len(targets)
        if output_gradients is not None:
            seeds = [None if s is None else convert_to_tensor(s) for s in flatten(output_gradients)]
        flat = flatten(sources)
        origins = [s._cell if isinstance(s, Variable) else convert_to_tensor(s) for s in flat]
        found = self._tape.gradient(targets, seeds, origins)
        for i, source in enumerate(flat):
            if isinstance(source, Variable) and not self._watches(source):
                found[i] = None
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            found = [
                _core.ops.full_like(convert_to_tensor(s), value=0.0) if g is None else g
                for g, s in zip(found, flat, strict=True)
            ]
        gradients = iter(found)
        return map_structure(lambda _: next(gradients), sources)

    def _watches(self, variable: Variable) -> bool:
        return (self._watch_variables and variable.trainable) or id(variable) in self._watched


class _Paused:
    def __init__(self, tape: Any) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._tape.stop()

    def __exit__(self, *error: object) -> None:
        self._tape.start()
