"""assert_replica_invariant: it passes right programs, and says what is wrong with others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import invariant_programs as programs
import numpy as np
import pytest

import samegrad as tf
from samegrad.testing import ReplicaInvariance, _jobs, assert_replica_invariant

FILE = Path(programs.__file__)
needs_mpi = pytest.mark.skipif(
    bool(_jobs.why_no_job(_jobs.Program(programs.loop, [], 0))), reason="there is no MPI"
)
ONE: dict[str, Any] = {"threads": (1,), "processes": (1,)}


def difference(make: Any, data: Any = programs.data, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_replica_invariant(make, data, **(ONE | {"replicas": (1, 2, 3)} | options))
    return str(caught.value)


@needs_mpi
@pytest.mark.parametrize("make", [programs.model, programs.loop, programs.Made.loop])
def test_right_program_passes_on_all_divisions(make: Any) -> None:
    found = assert_replica_invariant(make, programs.data)
    kinds = [(one.replicas, one.threads, one.processes) for one in found.outcomes]
    assert len(set(kinds)) == len(kinds) == 14
    assert found.invariant and not found.skipped
    assert str(found) == (
        "replica-invariant: yes: 14 of 14 divisions are bitwise identical to 1 replica, 1 thread, "
        "1 process, after each of 5 steps"
    )
    assert json.loads(found.to_json())["invariant"] is True


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (programs.loop, programs.as_dataset),
        (programs.loop, programs.as_dataset()),
        (programs.model, programs.as_dataset),
        (programs.of_a_dict, programs.as_dict),
        (programs.seeded_by_python, programs.data),
        (programs.loop, (programs.X[:1], programs.data[1][:1])),
    ],
    ids=["function", "dataset", "fit_dataset", "dict", "seeded", "one_row"],
)
def test_data_may_have_any_form(make: Any, data: Any) -> None:
    assert assert_replica_invariant(make, data, **ONE, steps=3).invariant


def test_batches_are_uneven_and_repeat() -> None:
    sizes: list[int] = []

    def make() -> Any:
        step, state = programs.loop()
        seen = tf.Variable(0)

        def counted(x: Any, y: Any) -> None:
            seen.assign_add(tf.shape(x)[0])
            step(x, y)

        return counted, {"seen": seen, **state}

    for size, expected in ((None, [4, 4, 3, 4, 4]), (8, [8, 3, 8, 3, 8]), (50, [11] * 5)):
        program = _jobs.Program(make, _jobs_batches(programs.data, 5, size), seed=0)
        states = program.states(_jobs.Division(1, 1, 1))
        sizes = np.diff([0, *(int(state["seen"]) for state in states)]).tolist()
        assert sizes == expected


def _jobs_batches(data: Any, steps: int, size: int | None) -> Any:
    from samegrad.testing._training import batches_of

    return batches_of(data, steps, size)


def test_local_mean_is_named() -> None:
    found = difference(programs.local_mean)
    assert "no: 1 of 3 divisions are bitwise identical" in found
    assert "first difference: 2 replicas, 1 thread, 1 process, from step 1 on:" in found
    assert "First is optimizer/variables/2[0, 0], float32, " in found
    assert "[loss normalization] mean per replica, then sum" in found
    assert "invariant_programs.py:" in found and "before the all-reduce" in found
    assert "different: 2, 3 replicas on 1 thread, 1 process: from step 1 on" in found


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (programs.local_statistic, "x - tf.reduce_mean"),
        (programs.model_with_a_statistic, "x - tf.reduce_max"),
    ],
)
def test_statistic_of_a_replica_is_named(make: Any, code: str) -> None:
    lines = FILE.read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, start=1) if code in text)
    assert f"invariant_programs.py:{line}: " in difference(make)


def test_difference_from_a_later_step_on_is_told() -> None:
    def make() -> Any:
        step, state = programs.loop()
        count = tf.Variable(0.0)

        def late(x: Any, y: Any) -> None:
            step(x, y)
            count.assign_add(1.0)
            local = tf.reduce_max(x) * tf.cast(count > 2.0, tf.float32)
            total = tf.distribute.get_replica_context().all_reduce("sum", local)
            state["w"].assign_add(tf.fill([3, 1], total))

        return late, {"count": count, **state}

    assert "from step 3 on" in difference(make)


def test_division_that_raises_is_named() -> None:
    def make() -> Any:
        if tf.distribute.get_strategy().num_replicas_in_sync == 3:
            raise KeyError("three")
        return programs.loop()

    found = difference(make)
    assert "no: 2 of 3 divisions are bitwise identical" in found
    assert "failed: 3 replicas on 1 thread, 1 process: it raised KeyError: 'three'" in found


def test_program_that_is_not_repeatable_is_told() -> None:
    found = difference(programs.unrepeatable)
    assert "two runs of one replica differ" in found and "first difference: 1 replica" in found


@pytest.mark.parametrize(
    ("make", "options", "error", "words"),
    [
        (programs.raises, {}, KeyError, "no such layer"),
        (programs.uncompiled, {}, ValueError, "make must return a compiled Keras model"),
        (programs.nothing, {}, ValueError, "got None"),
        (3, {}, ValueError, "make must be a function"),
        (programs.without_state, {}, ValueError, "at least one array"),
        (programs.loop, {"data": programs.no_rows}, ValueError, "at least one example"),
        (programs.loop, {"data": programs.as_dataset().take(0)}, ValueError, "an empty dataset"),
        (programs.loop, {"data": (np.ones(3), np.ones(4))}, ValueError, "same number of examples"),
        (programs.loop, {"data": 1.0}, ValueError, "same number of examples"),
        (programs.loop, {"replicas": ()}, ValueError, "replicas must be a sequence"),
        (programs.loop, {"replicas": 2}, ValueError, "replicas must be a sequence"),
        (programs.loop, {"threads": (0,)}, ValueError, "threads must be integers >= 1"),
        (programs.loop, {"processes": (1.5,)}, ValueError, "processes must be integers >= 1"),
        (programs.loop, {"steps": 0}, ValueError, "steps must be integers >= 1"),
        (programs.loop, {"batch_size": -1}, ValueError, "batch_size must be integers >= 1"),
        (programs.loop, {"replicas": (1,), "processes": (2,)}, ValueError, "must have a replica"),
    ],
)  # fmt: skip
def test_bad_arguments_are_errors(make: Any, options: Any, error: Any, words: str) -> None:
    arguments = {"data": programs.data, **ONE, **options}
    for _ in range(2):  # what failed leaves nothing behind
        with pytest.raises(error, match=words):
            assert_replica_invariant(make, **arguments)
    assert assert_replica_invariant(programs.loop, programs.data, (2,), (1,), (1,), 1).invariant


def test_number_of_threads_is_restored() -> None:
    before = tf.config.threading.get_intra_op_parallelism_threads()
    with pytest.raises(KeyError):
        assert_replica_invariant(programs.raises, programs.data)
    assert_replica_invariant(programs.loop, programs.data, (1,), (1, 3), (1,), 1)
    assert tf.config.threading.get_intra_op_parallelism_threads() == before


def test_divisions_without_mpi_are_skipped_with_a_reason(monkeypatch: Any) -> None:
    options: dict[str, Any] = {"replicas": (2,), "threads": (1,), "steps": 1}
    monkeypatch.setattr(_jobs, "_error_of_mpi", lambda: "")
    monkeypatch.setattr(_jobs, "_launcher", lambda: "mpiexec")
    found = assert_replica_invariant(lambda: programs.loop(), programs.data, **options)
    assert [one.outcome for one in found.outcomes] == ["identical", "skipped"]
    assert "skipped: 2 replicas on 1 thread, 2 processes: make must be a function at" in str(found)
    monkeypatch.setattr(_jobs, "_launcher", lambda: None)
    found = assert_replica_invariant(programs.loop, programs.data, **options)
    assert "there is no mpiexec" in found.skipped[0].why


def test_mpi_that_cannot_be_loaded_is_a_reason(monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise RuntimeError('cannot load MPI library')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _jobs._error_of_mpi.cache_clear()
    try:
        found = assert_replica_invariant(programs.loop, programs.data, (2,), (1,), (2,), 1)
    finally:
        _jobs._error_of_mpi.cache_clear()
    why = "there is no MPI (RuntimeError: cannot load MPI library): pip install"
    assert why in found.skipped[0].why and why in str(found)


@needs_mpi
def test_job_that_fails_is_no_pass() -> None:
    found = difference(programs.raises_elsewhere, replicas=(2,), processes=(1, 2))
    assert "failed: 2 replicas on 1 thread, 2 processes: the job ended with status" in found
    assert "no such layer" in found


@needs_mpi
def test_job_that_hangs_is_killed(monkeypatch: Any) -> None:
    monkeypatch.setattr(_jobs, "_LIMIT", 0.3)
    found = difference(programs.loop, replicas=(2,), processes=(2,))
    assert "it did not end within 0.3 s" in found


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "samegrad", "verify", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip


def test_command_reports_and_exits_by_the_outcome() -> None:
    few = ("--replicas", 1, 2, "--threads", 1, "--processes", 1, "--steps", 2)
    right = command(f"{FILE}::model", *few)
    assert (right.returncode, right.stderr) == (0, "")
    assert right.stdout.startswith("replica-invariant: yes: 2 of 2 divisions")
    wrong = command(f"{FILE}::local_mean", *few, "--data", "as_dataset", "--json")
    assert wrong.returncode == 1
    found = json.loads(wrong.stdout)
    assert not found["invariant"] and found["outcomes"][1]["outcome"] == "different"
    assert any("before the all-reduce" in reason for reason in found["reasons"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([f"{FILE}"], "must be FILE.py::NAME"),
        (["nothing.py::make"], "a Python file is needed"),
        ([f"{FILE}::no_such"], "has no 'no_such'"),
        ([f"{FILE}::loop", "--data", "no_such"], "has no 'no_such'"),
        ([f"{FILE}::raises"], "it raised KeyError: 'no such layer'"),
        ([f"{FILE}::leaves"], "it raised SystemExit"),
        ([f"{FILE}::uncompiled"], "compiled Keras model"),
        ([f"{FILE}::loop", "--data", "no_rows"], "at least one example"),
        ([f"{FILE}::loop", "--steps", "0"], "steps must be integers >= 1"),
        ([f"{FILE}::loop", "--steps", "two"], "invalid int value"),
    ],
)
def test_command_names_what_it_cannot_use(arguments: list[str], words: str) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and "Traceback" not in done.stderr


PLUGIN_TEST = """
import invariant_programs as programs
import pytest

FEW = {"replicas": (1, 2), "threads": (1,), "steps": 1}

def test_right(samegrad_replica_invariance):
    found = samegrad_replica_invariance(programs.loop, programs.data, processes=(1,), **FEW)
    assert found.invariant

def test_skipped(samegrad_replica_invariance):
    with pytest.warns(pytest.PytestWarning, match="skipped: 2 replicas on 1 thread, 2 processes"):
        samegrad_replica_invariance(lambda: programs.loop(), programs.data, **FEW)

def test_wrong(samegrad_replica_invariance):
    samegrad_replica_invariance(programs.local_mean, programs.data, processes=(1,), **FEW)
"""


def test_fixture_runs_the_check(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PLUGIN_TEST)
    package = str(Path(tf.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "samegrad._pytest_plugin", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([package, str(FILE.parent)]),
                          "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert "2 passed" in done.stdout and "1 failed" in done.stdout, done.stdout
    assert "reduce_mean" in done.stdout or "before the all-reduce" in done.stdout


def test_report_is_a_value() -> None:
    found = assert_replica_invariant(programs.loop, programs.data, (2,), (1,), (1,), 1)
    assert isinstance(found, ReplicaInvariance)
    assert found == assert_replica_invariant(programs.loop, programs.data, (2,), (1,), (1,), 1)
