"""The benchmark of records measures a step with and without one."""

from __future__ import annotations

import pytest
from record_cost import WORKLOADS, measure


def test_record_cost_prints_both_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make, _, _ = WORKLOADS["cnn"]
    monkeypatch.setitem(WORKLOADS, "cnn", (make, 8, 2))
    measure("cnn", 1)
    printed = capsys.readouterr().out
    assert printed.startswith("cnn") and "recorded" in printed and "for 3 steps" in printed
