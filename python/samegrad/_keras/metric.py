"""What samegrad adds to Keras's metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad._keras.layer import free_name
from samegrad._keras.whole import as_one_change


class StatefulMetric:
    """The mix-in of Keras's metrics: checkpoints, and changes as a whole."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("update_state", "reset_state"):
            if name in cls.__dict__:
                setattr(cls, name, as_one_change(cls.__dict__[name]))

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {}
        for variable in self._variables:  # type: ignore[attr-defined]
            parts[free_name(variable.name, parts)] = variable
        inner = list(self._metrics)  # type: ignore[attr-defined]
        return {**parts, "metrics": inner} if inner else parts

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a metric has no values beside its variables")
