"""Loops of Lightning, Accelerate, transformers and one's own, with their real classes."""

from __future__ import annotations

import numpy as np
import pytest

from samegrad_doctor import StepError, diagnose
from samegrad_doctor.adapters import accelerate_step, ddp_workers, lightning_step, loop_step

pytest.importorskip("torch", reason="PyTorch is not installed")

import loop_models as models

RNG = np.random.default_rng(3)
BATCH = (RNG.normal(size=(12, 6)), RNG.normal(size=(12, 2)))
FEW = {"max_examples": 7, "replicas": (1, 2), "micro_batches": (1, 2)}


@pytest.fixture(scope="module", autouse=True)
def _workers():
    with ddp_workers():
        yield


def need(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed")


def test_lightnings_mean_is_wrong_for_uneven_shares() -> None:
    need("lightning")
    found = diagnose(lightning_step(models.lightning_mean, report="loss"), BATCH, max_examples=7)
    assert found.cause and found.cause.name == "mean of the replicas' means", str(found)
    assert (
        found.reported_loss_issue and "mean of the replicas' means" in found.reported_loss_issue
    ), str(found)


def test_a_lightning_module_that_counts_is_right() -> None:
    need("lightning")
    found = diagnose(lightning_step(models.lightning_right, report="loss"), BATCH, max_examples=7)
    assert found.correct and found.reported_loss_issue is None, str(found)


def test_lightning_divides_micro_batches_by_their_number() -> None:
    need("lightning")
    step = lightning_step(models.lightning_mean)
    found = diagnose(step, BATCH, max_examples=7, replicas=(1,), micro_batches=(2,))
    assert found.cause and found.cause.name == "mean of the micro-batches' means", str(found)


def test_lightnings_limit_is_met_by_the_whole_update() -> None:
    need("lightning")
    step = lightning_step(models.lightning_right, gradient_clip_val=0.05)
    found = diagnose(step, BATCH, replicas=(2,))
    assert found.correct and "limited" in str(found), str(found)


def test_lightning_says_what_is_logged() -> None:
    need("lightning")
    with pytest.raises(StepError, match=r"report must be .*got 'los'; the module logs \['loss'\]"):
        diagnose(lightning_step(models.lightning_mean, report="los"), BATCH)


def test_accelerates_loop_counts_micro_batches_alike() -> None:
    need("accelerate")
    found = diagnose(accelerate_step(models.accelerate_mean), BATCH, **FEW)
    assert found.cause and found.cause.name == "mean of the micro-batches' means", str(found)


def test_an_accelerate_loop_that_counts_is_right() -> None:
    need("accelerate")
    found = diagnose(accelerate_step(models.accelerate_right), BATCH, **FEW)
    assert found.correct, str(found)


def test_accelerates_limit_in_every_micro_batch_is_wrong() -> None:
    need("accelerate")
    found = diagnose(
        accelerate_step(models.accelerate_clipped), BATCH, replicas=(1, 2), micro_batches=(2,)
    )
    assert not found.correct, str(found)


def test_transformers_trainer_averages_the_ranks() -> None:
    need("transformers")
    found = diagnose(loop_step(models.transformers_mean), BATCH, max_examples=7)
    assert found.cause and found.cause.name == "mean of the replicas' means", str(found)


def test_a_loop_of_ones_own_is_right() -> None:
    found = diagnose(loop_step(models.own_loop), BATCH, **FEW)
    assert found.correct, str(found)


@pytest.mark.parametrize(
    ("build", "words"),
    [(models.no_update, "no optimizer of torch.optim"), (models.two_updates, "updated again")],
)
def test_a_loop_must_update_once(build, words) -> None:
    with pytest.raises(StepError, match=rf"\[loop_step\] the loop must update once: .*{words}"):
        diagnose(loop_step(build), BATCH)


@pytest.mark.parametrize("adapter", [accelerate_step, lightning_step, loop_step])
def test_a_failure_names_the_adapter_that_was_called(adapter) -> None:
    with pytest.raises(StepError) as caught:
        diagnose(adapter(models.fails), BATCH)
    assert str(caught.value).startswith(f"[{adapter.__name__}] rank ")
    assert "[ddp_step]" not in str(caught.value)


@pytest.mark.parametrize("adapter", [accelerate_step, loop_step])
def test_ranks_that_wait_name_the_adapter_that_was_called(adapter) -> None:
    with pytest.raises(
        StepError, match=rf"^\[{adapter.__name__}\] ranks \[.*must answer within 5 s"
    ):
        diagnose(adapter(models.waits, timeout=5), BATCH)
