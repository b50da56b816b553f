"""The benchmark of processes: its arithmetic, and one short job of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from processes import MATCHES, launcher, run, sides_of, summarize
from processes_model import cost, fit


def test_factor_is_the_median_of_the_pairs() -> None:
    found = summarize([10.0, 20.0, 30.0], [30.0, 40.0, 120.0], 2.5)
    assert (found["ours_ms"], found["other_ms"]) == (20.0, 40.0)
    assert (found["ours_best_ms"], found["other_best_ms"]) == (10.0, 30.0)
    assert (found["factor"], found["pairs"]) == (3.0, 3)


def test_both_sides_train_the_same() -> None:
    python = sys.executable
    if not (Path(python).parent / "mpiexec").exists():
        pytest.skip("there is no mpiexec: pip install 'samegrad[mpi]'")
    for match in MATCHES.values():
        sides = sides_of(match, python, "peer")
        assert sides["ours"][: len(launcher(python, 2))] == launcher(python, match.processes)
        assert match.workload in sides["ours"] and match.workload in sides["other"]
        assert sides["other"][0] == (python if match.other == "samegrad" else "peer")


def test_a_job_tells_its_figures() -> None:
    pytest.importorskip("mpi4py")
    if not (Path(sys.executable).parent / "mpiexec").exists():
        pytest.skip("there is no mpiexec: pip install 'samegrad[mpi]'")
    command = sides_of(MATCHES["cnn"], sys.executable, sys.executable)["ours"]
    command[command.index("cnn")] = "tiny"
    report = run([*command[: command.index("--steps")], "--steps", "20"])
    assert report["replicas"] == 2 and report["step_ms"] > 0


def test_the_models_messages_and_bytes_are_those_of_the_algorithm() -> None:
    # 2 ranks of 4 replicas each, 256 KiB: half of a subtree there, half of the sum back.
    found = cost(1 << 18, 2)
    assert (found.messages, found.sent) == (2, 1 << 18)
    # Two subtrees of a rank travel by themselves.
    assert cost(1 << 18, 2, subtrees=2).sent == 3 << 17
    # What is small goes to all at once.
    assert (cost(1000, 8).messages, cost(1000, 8).sent) == (7, 7000)
    # 64 MiB at a time on 1,024 ranks, whatever the size.
    assert cost(1 << 30, 1024).messages == 16 * 1023 * 2
    assert cost(1 << 30, 1024).memory < 1 << 30


def test_a_fit_finds_what_times_were_made_of() -> None:
    made = []
    for ranks in (2, 4, 8):
        for size in (1 << 12, 1 << 20, 1 << 24):
            of_rank = cost(size, ranks)
            turns = ranks / 2
            work = (of_rank.sent + of_rank.added) * turns
            seconds = 50e-6 + 3e-6 * of_rank.messages * turns + work / 5e9
            made.append({"ranks": ranks, "size": size, "seconds": seconds})
    found = fit(made, cores=2)
    assert found["median_error"] < 1e-9
    assert abs(found["latency_us"] - 3) < 1e-6 and abs(found["gb_per_s"] - 5) < 1e-6
