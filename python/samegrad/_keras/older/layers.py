"""Layers as older programs spell them: arguments, weights, the learning phase."""

from __future__ import annotations

import inspect
from typing import Any

from keras.src import backend

from samegrad import _core
from samegrad._context import state as _context
from samegrad._context.user_code import converted

_standing: list[bool | None] = [None]
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
# The order of the arguments of add_weight after the name.
_ORDER = ("shape", "dtype", "initializer", "regularizer", "trainable", "constraint")


class OlderLayer:
    """The mix-in of Keras's layers."""

    _first_weights: Any = None

    @staticmethod
    def _take_older_arguments(layer: Any, arguments: dict[str, Any]) -> None:
        """Take `batch_input_shape` and `weights` out of the arguments of a layer.

        Args:
            layer: Which is being made.
            arguments: What its class left over.
        """
        shape = arguments.pop("batch_input_shape", None)
        if shape is not None:
            arguments.setdefault("input_shape", tuple(shape)[1:])
        arguments.pop("batch_size", None)
        weights = arguments.pop("weights", None)
        if weights is not None:
            object.__setattr__(layer, "_first_weights", list(weights))

    @staticmethod
    def _older_weight(args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        """Name the arguments of `add_weight(name, shape, dtype, initializer, ...)`.

        Args:
            args: The positional ones; the first is the name.
            given: The others, with Keras's defaults.

        Raises:
            TypeError: One is given twice, or there are too many.
        """
        names = ("shape", "initializer", "dtype", "trainable", "autocast", "regularizer")
        arguments = {key: given[key] for key in (*names, "constraint", "aggregation")}
        if given["name"] is not None or len(args) > 1 + len(_ORDER):
            raise TypeError(
                "[add_weight] a name, a shape, a dtype and an initializer go first: got "
                f"{len(args)} arguments and name={given['name']!r}; give all but the first by name."
            )
        for name, value in zip(_ORDER, args[1:], strict=False):
            if given[name] not in (None, True):
                raise TypeError(f"[add_weight] {name} is needed once: got it twice.")
            arguments[name] = value
        return {**arguments, "name": args[0]}

    @staticmethod
    def _phase_or(name: str, default: Any) -> Any:
        """Return the default of an argument of `call`: of `training` the learning phase."""
        phase = current_phase() if name == "training" else None
        return default if phase is None else phase

    @staticmethod
    def _build_by_call(layer: Any, input_shape: Any) -> bool:
        """Build the layers of a subclassed model, which has no `build`, by calling it.

        Args:
            layer: The model; anything else is left alone.
            input_shape: One shape, or a structure of shapes.

        Returns:
            Whether it was such a model, and its call takes one input.
        """
        from keras.src.layers.layer import might_have_unbuilt_state
        from keras.src.models import Functional, Model

        if input_shape is None or not isinstance(layer, Model) or isinstance(layer, Functional):
            return False
        if not might_have_unbuilt_state(layer):  # a call has built its layers
            return False
        arguments = inspect.signature(layer.call).parameters.values()
        if sum(one.kind is _POSITIONAL and one.default is one.empty for one in arguments) > 1:
            return False
        inputs = _tensors(input_shape, layer.input_dtype)
        backend.compute_output_spec(converted(layer.call), inputs)
        return True

    def _take_first_weights(self) -> None:
        if self._first_weights is not None:
            self.set_weights(self._first_weights)  # type: ignore[attr-defined]


def _tensors(shape: Any, dtype: Any) -> Any:
    if isinstance(shape, dict):
        return {key: _tensors(part, dtype) for key, part in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return backend.KerasTensor(tuple(shape), dtype)
    return [_tensors(part, dtype) for part in shape]


def current_phase() -> bool | None:
    """Return the learning phase of layers without `training`; None: their own default."""
    phase = _context.current().learning_phase
    return _standing[0] if phase is None else phase


def learning_phase() -> int:
    """Return 1 if layers without `training` train, otherwise 0.

    Example:
        >>> learning_phase()
        0
    """
    return int(current_phase() or False)


def set_learning_phase(value: Any) -> None:
    """Set the learning phase of layers without `training`; prefer to pass `training`.

    Args:
        value: 0 or 1, False or True.
    """
    _standing[0] = _checked(value)


def learning_phase_scope(value: Any) -> _core.Guard:
    """Return a context with a learning phase; prefer to pass `training`.

    Args:
        value: 0 or 1, False or True.

    Returns:
        Context manager.

    Example:
        >>> with learning_phase_scope(1):
        ...     learning_phase()
        1
    """
    return _context.changed(learning_phase=_checked(value))


def _checked(value: Any) -> bool:
    if value not in {0, 1}:
        raise ValueError(f"[learning_phase] it must be 0 or 1: got {value!r}.")
    return bool(value)
