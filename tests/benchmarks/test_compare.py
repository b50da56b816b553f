"""The arithmetic of the comparison; the comparison itself is run by hand (README.md)."""

from __future__ import annotations

import json
import sys
from typing import Any

import compare
import pytest
import table
from duels import DUELS, Goal, cnn_flop_per_image, flop_per_unit
from models import MODELS, Weights

DUEL = {duel.name: duel for duel in DUELS}


def side(backend: str, *step_ms: float, memory: float = 100.0) -> dict[str, Any]:
    turn = {"peak_memory_mib": memory, "load": 0.5}
    return {
        "backend": backend,
        "version": "1",
        "replicas": 2,
        "batch": 64,
        "start_s": 1.0,
        "base_memory_mib": 50.0,
        "turns": [turn | {"step_ms": each} for each in step_ms],
    }


def found(*sides: dict[str, Any], name: str = "cnn", **more: Any) -> dict[str, Any]:
    machine = {"processor": "P", "cores": 2, "date": "2026-11-28", "pairs": 3}
    return machine | {"duels": {name: {"sides": list(sides), "peaks": [], **more}}}


def test_every_duel_has_a_title() -> None:
    assert all(duel.title for duel in DUELS)


def test_flop_of_the_cnn() -> None:
    assert cnn_flop_per_image() == 14_778_624


def test_flop_of_a_dense_network() -> None:
    forward = 2 * (784 * 1024 + 1024 * 1024 + 1024 * 10)
    assert flop_per_unit("dense_1024") == 3 * forward - 2 * 784 * 1024


def test_speedup_is_the_median_of_the_pairs_with_the_fastest_peer() -> None:
    # In the second pair the machine was busy: all sides slow down, the ratio stays.
    sides = [side("samegrad", 10, 50, 10), side("tf", 20, 110, 30, memory=150)]
    result = {"sides": [*sides, side("torch", 40, 200, 40)], "peaks": []}
    figures = table.summarize(DUEL["cnn"], result)
    assert (figures["speedup"], figures["speedup_tf"], figures["speedup_torch"]) == (2.2, 2.2, 4)
    assert figures["step_us"] == pytest.approx(10e3)
    assert figures["memory_ratio"] == pytest.approx(1.0)
    assert "peak_share" not in figures


def test_share_of_the_peak_is_taken_pair_by_pair() -> None:
    result = {"sides": [side("samegrad", 20), side("tf", 20)], "peaks": [{"gflops": 200.0}]}
    figures = table.summarize(DUEL["cnn"], result)
    assert figures["peak_share"] == pytest.approx(6400 * 14_778_624 / 200e9)


def test_share_of_the_memory_bandwidth() -> None:
    result = {"sides": [side("samegrad", 62.5), side("ddp", 20)], "peaks": [{"gb_per_s": 28.0}]}
    figures = table.summarize(DUEL["given_25"], result)
    assert figures["peak_share"] == pytest.approx(4e8 * 4 * 14 / 28e9)


def test_a_goal_that_was_not_measured_is_missed() -> None:
    goals = (Goal("speedup", 2), Goal("step_us", 30, at_most=True), Goal("peak_share", 0.45))
    assert table.judge(goals, {"speedup": 2.0, "step_us": 31.0}) == (
        "met: speedup ≥ 2; MISSED: step_us ≤ 30 (31); MISSED: peak_share ≥ 0.45 (not measured)"
    )


def test_report_has_a_row_for_each_contestant_and_names_a_failure() -> None:
    text = table.markdown(found(side("samegrad", 10), side("tf", 15))).replace("\xa0", " ")
    assert "| CNN of the tutorial | samegrad 2\xd764 | 10.0 ms | 100 (50) | 1.0 s |  |" in text
    assert "|  | TensorFlow 2\xd764 | 15.0 ms | 100 (50) | 1.0 s | 1.50 |" in text
    assert "- cnn: 1.50 times as fast; MISSED: speedup_tf ≥ 2 (1.5)" in text
    assert "- cnn: failed: no module" in table.markdown(found(error="no module"))


def test_report_compares_predicted_with_measured_times() -> None:
    explained = {"loop": {"steps": 2, "predicted": 1e-3, "least": 3e-3}}
    text = table.explained(found(side("samegrad", 1), name="lstm", explained=explained))
    assert "| lstm | loop | 2 | 1.000 | 3.000 | 3.00 |" in text


def test_tables_of_the_docs_are_those_of_the_results() -> None:
    for page in table.PAGES:
        assert table.with_tables(page.read_text()) == page.read_text(), (
            f"{page.name}: run python tests/benchmarks/table.py --docs"
        )


def test_marked_tables_are_replaced(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    report = found(side("samegrad", 10), side("tf", 15))
    (tmp_path / "r.json").write_text(json.dumps(report))
    page = "Text\n<!-- table: r.json cnn -->\nold\n<!-- end -->\nmore\n"
    made = table.with_tables(page)
    assert "old" not in made and made.startswith("Text\n") and made.endswith("\nmore\n")
    assert table.table(report, ["cnn"]) in made and table.with_tables(made) == made
    short = table.with_tables(page.replace("table:", "summary:"))
    row = "| CNN of the tutorial, 2\xd764 | 10.0 ms | TensorFlow 2\xd764: 15.0 ms | 1.50 |"
    assert row in short.replace("\xa0", " ").splitlines()


def test_frameworks_get_equal_kernels_and_data() -> None:
    assert len(MODELS) == 16
    first, second = Weights(), Weights()
    assert (first.draw(3, 4) == second.draw(3, 4)).all()
    for name, model in MODELS.items():
        if name != "dlrm":
            arrays = model.arrays(2)
            assert [len(each) for each in arrays] == [2] * len(model.inputs)


FAKE = """
import json, sys
backend = sys.argv[2]
if backend == "jax":
    sys.exit("no such module")
print(json.dumps({"backend": backend, "replicas": 1, "batch": 1, "version": "1", "start_s": 1.0,
                  "base_memory_mib": 1.0}), flush=True)
for line in sys.stdin:
    ms = 100.0 if backend == "samegrad" else 300.0
    print(json.dumps({"steps": int(line), "step_ms": ms, "peak_memory_mib": 9.0}), flush=True)
"""


def test_contestants_take_turns_and_a_peer_that_fails_is_left_out(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "peers.py").write_text(FAKE)
    monkeypatch.setattr(compare, "HERE", tmp_path)
    arguments = ["compare.py", "--pairs", "3", "--turn", "0.6", "--only", "cnn", "--priority", "0"]
    monkeypatch.setattr(sys, "argv", arguments)
    result = compare.run_duel(DUEL["cnn"], compare.parse_arguments(), None)
    assert [side["backend"] for side in result["sides"]] == ["samegrad", "tf", "torch", "ddp"]
    assert [[t["steps"] for t in side["turns"]] for side in result["sides"]] == [
        [6] * 3, *[[2] * 3] * 3
    ]  # fmt: skip
    assert result["failed"] == {"jax 2x64": "['cnn', 'jax']: no such module"}
    assert table.summarize(DUEL["cnn"], result)["speedup"] == 3
    result = compare.run_duel(DUEL["tiny"], compare.parse_arguments(), None)
    assert result["error"] == "['tiny', 'jax']: no such module"
