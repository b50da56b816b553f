"""What samegrad adds to Keras's layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad.train._trackable import restore_pending


class Layer:
    """The mix-in that Keras gives all its layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @staticmethod
    def activity_batch_size(output: Any, dtype: Any) -> Any:
        """What the penalty of the outputs is divided by; see `losses.activity_batch_size`."""
        from samegrad._keras.losses import activity_batch_size

        return activity_batch_size(output, dtype)

    def _post_build(self) -> None:
        """Called by Keras when a layer has made its variables."""
        restore_pending(self)

    # Checkpoints: variables by their names, layers inside by their places.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for variable in [*self._trainable_variables, *self._non_trainable_variables]:  # type: ignore[attr-defined]
            if variable._value is not None:
                parts[_free_name(variable.name, parts)] = variable
        inner = list(self._layers)  # type: ignore[attr-defined]
        states = [generator.state for generator in self._seed_generators]  # type: ignore[attr-defined]
        named = {"layers": inner, "seeds": states, "optimizer": getattr(self, "optimizer", None)}
        return parts | {name: part for name, part in named.items() if part}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a layer has no values beside its variables")


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    number = 0
    while (free := f"{name}_{number}" if number else name) in taken:
        number += 1
    return free
