"""Steps of real DistributedDataParallel, over processes; a rank that fails never hangs the test."""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import samegrad
from samegrad_doctor import StepError, diagnose, layout
from samegrad_doctor._layouts import take
from samegrad_doctor.adapters import ddp_step, ddp_workers, torch_step

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import ddp_models as models  # noqa: E402

RNG = np.random.default_rng(3)
BATCH = (RNG.normal(size=(12, 6)), RNG.normal(size=(12, 2)))


@pytest.fixture(scope="module", autouse=True)
def _workers():
    with ddp_workers():
        yield
    assert not _children()


def _children():
    return multiprocessing.active_children()


def shares(*sizes):
    return [take(BATCH, part[0]) for part in layout(sizes).parts]


def test_the_mean_over_ranks_is_wrong_for_uneven_shares() -> None:
    found = diagnose(ddp_step(models.build_mean, reported=True), BATCH, max_examples=8)
    assert found.cause.name == "mean of the replicas' means", str(found)
    assert "mean of the replicas' means" in found.reported_loss_issue


def test_a_loss_that_is_returned_for_backward_is_no_report_unless_declared() -> None:
    found = diagnose(ddp_step(models.build_local_scale), BATCH, max_examples=8, replicas=(2,))
    assert found.correct and found.reported_loss_issue is None, str(found)
    step = ddp_step(models.build_local_scale, reported=True)
    found = diagnose(step, BATCH, max_examples=8, replicas=(2,))
    assert found.correct and found.reported_loss_issue is not None, str(found)


def test_the_true_count_is_right_with_empty_shares_too() -> None:
    found = diagnose(
        ddp_step(models.build_right, reported=True), BATCH, max_examples=8, empty_shard=True
    )
    assert found.correct and found.reported_loss_issue is None, str(found)


def test_batch_normalization_of_each_rank_is_named() -> None:
    found = diagnose(ddp_step(models.build_normalised), BATCH, replicas=(2,))
    assert found.cause.name == "batch statistics are not synchronised", str(found)


def test_micro_batches_are_summed_as_by_the_simulated_step() -> None:
    windows = [[take(BATCH, part) for part in parts] for parts in ([[0, 1], [2, 3, 4]], [[5], [6]])]
    simulated, real = (
        step(windows).update for step in
        (torch_step(*models.build_mean()), ddp_step(models.build_mean))
    )  # fmt: skip
    for own, other in zip(simulated, real, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)


def test_micro_batches_are_reduced_once() -> None:
    step = ddp_step(models.build_right_windows, whole_shard=True)
    found = diagnose(step, BATCH, max_examples=8, replicas=(1, 2), micro_batches=(1, 2))
    assert found.correct and found.reported_loss_issue is None, str(found)
    means = diagnose(
        ddp_step(models.build_mean), BATCH, max_examples=8, replicas=(1, 2), micro_batches=(2,)
    )
    assert means.cause.name == "micro-batches are not divided", str(means)


def test_the_update_is_that_of_one_process() -> None:
    step = ddp_step(models.build_right, reported=True)
    parts, whole = step(shares(3, 4, 5)), step(shares(12))
    assert len(parts.replicas) == 3
    for found, expected in zip(parts.update, whole.update, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert parts.loss == pytest.approx(whole.loss)


def test_an_empty_share_counts_as_a_rank_as_in_pytorch() -> None:
    step = ddp_step(models.build_mean, reported=True)
    empty, whole = step(shares(12, 0)), step(shares(12))
    np.testing.assert_allclose(empty.update[0], whole.update[0] / 2, rtol=1e-12)
    assert np.isnan(empty.loss)


def test_ranks_that_are_never_joined_differ() -> None:
    found = diagnose(ddp_step(models.build_forgotten, whole_shard=True), BATCH, max_examples=8)
    assert "differ" in found.cause.name, str(found)


def test_build_may_take_the_rank() -> None:
    found = diagnose(ddp_step(models.build_other_start), BATCH, max_examples=8, replicas=(2,))
    assert found.cause.name == "mean of the replicas' means", str(found)


def test_a_worker_has_one_thread_and_no_engine() -> None:
    assert ddp_step(models.build_spied, reported=True)(shares(2, 2)).loss == 0.0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (models.build_raises, "(?s)rank 1 raised.*build_raises.*no data for this rank"),
        (models.build_dies, "rank 1 died with exit code 7"),
        (models.build_hangs, "(?s)must answer within 10 s.*in loss"),
        (models.build_alone, "(?s)anks disagree: rank 0 called all_reduce.*did not.*in summed"),
        (models.build_alone_deep_down, "anks disagree: rank 0 called all_reduce"),
        (models.build_number, "must return a tensor: got 1.0"),
    ],
)
def test_a_rank_that_fails_says_why_and_leaves_no_process(build, words) -> None:
    step = ddp_step(build, timeout=10)  # time to import the module on a busy machine
    began = time.monotonic()
    with pytest.raises(StepError, match=words):
        step(shares(2, 3))
    assert time.monotonic() - began < 120
    assert not _children()


def test_the_run_after_a_failure_works() -> None:
    with pytest.raises(StepError, match="no data for this rank"):
        ddp_step(models.build_raises)(shares(2, 3))
    assert np.isfinite(ddp_step(models.build_mean, reported=True)(shares(2, 3)).loss)


def test_a_function_that_no_process_can_import_is_named() -> None:
    with pytest.raises(StepError, match="can import.*write it at the top of a module"):
        ddp_step(lambda: None)
    with pytest.raises(StepError, match="more than 0 seconds"):
        ddp_step(models.build_mean, timeout=0)


PROGRAM = """
import numpy as np, torch
from samegrad_doctor.adapters import ddp_step

def build():
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 5).double()
    return model, lambda parallel, batch: ((parallel(batch[0]) - batch[1]) ** 2).mean()

rng = np.random.default_rng(0)
batch = (rng.normal(size=(12, 6)), rng.normal(size=(12, 5)))
step = ddp_step(build)
"""


def test_the_command_takes_a_file_with_such_a_step(tmp_path: Path, capsys) -> None:
    from samegrad.cli import main

    (tmp_path / "ddp_program.py").write_text(PROGRAM)
    assert main(["doctor", f"{tmp_path / 'ddp_program.py'}::step", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["cause"] == "mean of the replicas' means"


def test_processes_end_with_the_program_even_if_it_is_killed(tmp_path: Path) -> None:
    code = (
        "import numpy as np, multiprocessing, os, ddp_models, sys\n"
        "from samegrad_doctor.adapters import ddp_step\n"
        "if __name__ == '__main__':\n"
        "    batch = (np.ones((2, 6)), np.ones((2, 2)))\n"
        "    ddp_step(ddp_models.build_mean)([batch])\n"
        "    print(*[p.pid for p in multiprocessing.active_children()], flush=True)\n"
        "    if sys.argv[1] == 'killed': os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "program.py").write_text(code)
    package = Path(samegrad.__file__).parents[1]
    given = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(map(str, (package, Path(__file__).parent, given)))
    for end in ("killed", "ended"):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py"), end],
            env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        workers = [int(number) for number in done.stdout.split()]
        assert len(workers) == 2  # one replica ran: the other began beside it
        deadline = time.monotonic() + 20
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                while time.monotonic() < deadline:
                    os.kill(worker, 0)
                    time.sleep(0.1)
                pytest.fail("the worker lives on")


@pytest.mark.parametrize(("rank", "which"), [(0, "first"), (-1, "last")])
def test_a_report_of_one_rank_only_is_judged(rank: int, which: str) -> None:
    build = functools.partial(models.build_reported_by, rank)
    found = diagnose(ddp_step(build, whole_shard=True), BATCH, max_examples=8)
    assert found.correct, str(found)
    assert (
        found.reported_loss_issue
        and f"that of the {which} replica alone" in found.reported_loss_issue
    ), str(found)
