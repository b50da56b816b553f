"""30 steps of WGAN-GP: the same bits for any replicas and threads, draws included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli._wgan._models import NOISE
from samegrad.cli._wgan._steps import WganSteps

STEPS, BATCH = 30, 32
LAYOUTS = [(1, 2), (2, 1), (2, 2), (3, 1), (5, 2), (8, 2)]


@pytest.fixture(autouse=True)
def threads() -> Any:
    before = tf.config.threading.get_intra_op_parallelism_threads()
    yield
    tf.config.threading.set_intra_op_parallelism_threads(before)


def train(
    replicas: int, threads: int, clip: bool = False, examples: int = 32 * 7
) -> dict[str, bytes]:
    """Weights, slots, figures and samples after 30 steps, as bytes."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.keras.utils.set_random_seed(5)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    steps = WganSteps(strategy, width=3, clip=clip)
    steps.penalty_weight.assign(0.0 if clip else 10.0)
    steps.clip.assign(0.05)
    for optimizer in (steps.critic_optimizer, steps.generator_optimizer):
        optimizer.learning_rate.assign(2e-3)
    rng = np.random.default_rng(1)
    images = rng.uniform(-1, 1, (examples, 28, 28, 1)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(images).shuffle(examples, seed=2).batch(BATCH)
    batches = iter(strategy.experimental_distribute_dataset(dataset.repeat()))
    figures = []
    for _ in range(STEPS):
        batch = next(batches)
        found = steps.critic_step(batch)
        figures += [float(found[name]) for name in sorted(found)]
        figures.append(float(steps.generator_step(batch)))
    noise = rng.normal(size=(5, NOISE)).astype(np.float32)
    parts = {
        "critic": steps.critic,
        "generator": steps.generator,
        "critic's slots": steps.critic_optimizer,
        "generator's slots": steps.generator_optimizer,
    }
    kept = {
        name: b"".join(np.asarray(v).tobytes() for v in part.variables)
        for name, part in parts.items()
    }
    return {**kept, "figures": np.array(figures).tobytes(), "images": steps.images(noise).tobytes()}


@pytest.fixture(scope="module")
def one_replica() -> dict[str, bytes]:
    return train(1, 1)


@pytest.mark.parametrize(("replicas", "threads"), LAYOUTS)
def test_bits_of_30_steps(one_replica: Any, replicas: int, threads: int) -> None:
    assert train(replicas, threads) == one_replica


def test_the_steps_change_something(one_replica: Any) -> None:
    figures = np.frombuffer(one_replica["figures"]).reshape(STEPS, 5)
    assert np.isfinite(figures).all()
    assert len(np.unique(figures[:, 0])) == STEPS


def test_clipped_weights_have_the_same_bits() -> None:
    assert train(4, 2, clip=True) == train(1, 1, clip=True)


def test_short_last_batches_have_the_same_bits() -> None:
    # Batches of 32, 32 and 11.
    expected = train(1, 1, examples=75)
    for replicas in (3, 4):
        assert train(replicas, 1, examples=75) == expected
