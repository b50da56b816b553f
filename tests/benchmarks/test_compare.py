"""The arithmetic of the comparison; the comparison itself is run by hand (README.md)."""

from __future__ import annotations

from typing import Any

import pytest
from duels import DUELS, Duel, Goal, Side, cnn_flop_per_image, flop_per_unit, work_per_unit
from table import judge, row, summarize


def report(step_ms: float, memory: float = 100.0) -> dict[str, Any]:
    return {
        "step_ms": step_ms,
        "best_step_ms": step_ms / 2,
        "per_second": 128e3 / step_ms,
        "best_per_second": 256e3 / step_ms,
        "peak_memory_mib": memory,
        "start_s": 1.0,
    }


def test_flop_of_the_cnn() -> None:
    assert cnn_flop_per_image() == 14_778_624


def test_flop_of_a_dense_network() -> None:
    forward = 2 * (784 * 1024 + 1024 * 1024 + 1024 * 10)
    assert flop_per_unit("dense_1024") == 3 * forward - 2 * 784 * 1024


def test_speedup_is_the_median_of_the_pairs() -> None:
    # In the second pair the machine was busy: both sides slow down, the ratio stays.
    figures = summarize(
        [report(10), report(50), report(10)], [report(20), report(110), report(30)], []
    )
    assert figures["speedup"] == pytest.approx(2.2)
    assert figures["step_us"] == pytest.approx(10e3)
    assert "peak_share" not in figures


def test_share_of_the_peak_is_taken_pair_by_pair() -> None:
    peak = {"gflops": 200.0, "best_gflops": 200.0}
    figures = summarize([report(20)], [report(20)], [peak], flop_per_unit("cnn"))
    assert figures["peak_share"] == pytest.approx(6400 * 14_778_624 / 200e9)


def test_share_of_the_memory_bandwidth() -> None:
    duel = next(duel for duel in DUELS if duel.name == "given-25")
    meter = {"gb_per_s": 28.0, "best_gb_per_s": 28.0}
    ours = report(20) | {"per_second": 4e8}
    figures = summarize([ours], [report(20)], [meter], work_per_unit(duel))
    assert figures["peak_share"] == pytest.approx(4e8 * 4 * 14 / 28e9)


def test_a_goal_that_was_not_measured_is_missed() -> None:
    goals = (Goal("speedup", 2), Goal("step_us", 30, at_most=True), Goal("peak_share", 0.45))
    met = [verdict["met"] for verdict in judge(goals, {"speedup": 2.0, "step_us": 31.0})]
    assert met == [True, False, False]


def test_a_row_has_a_cell_per_column() -> None:
    duel = Duel("cnn-tf", "cnn", Side("samegrad", 2, 64), Side("tf", 2, 64), (Goal("speedup", 2),))
    figures = summarize([report(10)], [report(15)], [])
    complete = row(duel, {"summary": figures, "goals": judge(duel.goals, figures)})
    assert complete.count("|") == row(duel, {"error": "no module"}).count("|") == 11
    assert "MISSED: speedup ≥ 2 (1.5)" in complete
