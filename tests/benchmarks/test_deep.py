"""The benchmark of deep models runs where graphs of Keras end."""

from __future__ import annotations

from deep import PARTS, first_step


def test_more_layers_than_calls_of_python_can_be_nested() -> None:
    parts = first_step(1100)
    assert len(parts) == len(PARTS) and min(parts) > 0
