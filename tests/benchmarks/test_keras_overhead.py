"""The comparison of Keras with the written models runs, whatever its times are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keras_overhead import by_turns, main, report, summary


def test_every_model_is_measured_in_both_forms(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "figures.json"
    few = ["--pairs", "2", "--block", "0", "--first-calls", "1", "--fit-steps", "3", "--small"]
    found = main([*few, "--json", str(file)])
    assert list(found) == ["cnn", "tiny", "normalized", "transformer", "lstm", "fit"]
    for name, figures in found.items():
        assert min(figures["keras_best_us"], figures["written_best_us"]) > 0
        if name != "fit":
            assert min(figures["plan_steps"]) > 0 and min(figures["first_call_ms"]) > 0
    assert json.loads(file.read_text()) == found
    assert capsys.readouterr().out.strip() == report(found)


def test_blocks_take_turns() -> None:
    order: list[str] = []
    times = by_turns(
        (lambda: order.append("keras"), lambda: order.append("written")), 4, 0.0, lambda: 0.0
    )
    assert [len(each) for each in times] == [4, 4]
    assert order[2:] == ["written", "keras", "keras", "written"] * 2


def test_the_median_of_the_pairs_leaves_out_what_was_disturbed() -> None:
    found = summary([2e-6, 9e-6, 3e-6], [1e-6, 8e-6, 2e-6])
    assert found["more_us"] == pytest.approx(1.0)
    assert found["ratio"] == pytest.approx(1.5)
    assert found["keras_best_us"] == pytest.approx(2.0)
