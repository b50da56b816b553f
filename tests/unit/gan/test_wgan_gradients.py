"""The gradients of a WGAN-GP, double backward included, on any replicas."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgan_programs
from replica_values import cut, shares

import samegrad as tf
from samegrad.cli._wgan._steps import critic_losses

SHARES = {
    "1 replica": (7,),
    "2 uneven": (4, 3),
    "3, one of them 1": (3, 3, 1),
    "4, one of them empty": (3, 3, 1, 0),
    "4 uneven": (2, 2, 2, 1),
}


def build(framework: str) -> tuple[Any, Any]:
    """Critic and generator with the given weights."""
    critic, generator = wgan_programs.models(tf, framework)
    given = wgan_programs.arrays(framework)
    for model, name in ((critic, "critic"), (generator, "generator")):
        for variable, value in zip(model.trainable_variables, given[name], strict=True):
            variable.assign(value)
    return critic, generator


def by_samegrad(framework: str, counts: tuple[int, ...]) -> list[np.ndarray]:
    """As `wgan_programs.by_torch`, with the examples distributed."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    with strategy.scope():
        critic, generator = build(framework)

    def step(real: Any, noise: Any, mix: Any) -> Any:
        average = tf.nn.compute_average_loss
        fake = generator(noise, training=True)
        with tf.GradientTape(persistent=True) as tape:
            each = critic_losses(critic, real, fake, mix, wgan_programs.PENALTY)
            loss, penalty = average(each["critic_loss"]), average(each["penalty"])
        with tf.GradientTape() as generator_tape:
            made = critic(generator(noise, training=True), training=True)
            generator_loss = average(-tf.squeeze(made, 1))
        zero = tf.UnconnectedGradients.ZERO
        found = tape.gradient(loss, critic.trainable_variables)
        found += tape.gradient(penalty, critic.trainable_variables, unconnected_gradients=zero)
        found += generator_tape.gradient(generator_loss, generator.trainable_variables)
        return tf.distribute.get_replica_context().all_reduce("sum", found)

    given = wgan_programs.arrays(framework)
    values = [given[name] for name in ("real", "noise", "mix")]
    if len(counts) > 1:
        parts = [shares(*cut(value, counts)) for value in values]
    else:
        parts = [tf.constant(value)._as_examples(0, 1) for value in values]
    found = strategy.run(step, args=tuple(parts))
    return [strategy.experimental_local_results(value)[0].numpy() for value in found]


def expected(framework: str) -> list[np.ndarray]:
    """Recorded by record_wgan_gradients.py."""
    path = Path(__file__).with_name(f"wgan_gradients_{framework}.json")
    return [np.array(value) for value in json.loads(path.read_text())["gradients"]]


def assert_equal(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        scale = max(np.abs(theirs).max(), 1e-3)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10 * scale)


@pytest.mark.parametrize("counts", SHARES.values(), ids=SHARES.keys())
@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_the_gradients_are_those_recorded(float64: None, framework: str, counts: Any) -> None:
    assert_equal(by_samegrad(framework, counts), expected(framework))


@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_the_framework_still_finds_what_was_recorded(framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    found = {"tensorflow": wgan_programs.by_tensorflow, "torch": wgan_programs.by_torch}
    assert_equal(found[framework](), expected(framework))


def test_the_gradients_are_those_of_finite_differences(float64: None) -> None:
    framework = "torch"
    critic, generator = build(framework)
    given = {
        name: tf.constant(wgan_programs.arrays(framework)[name])
        for name in ("real", "noise", "mix")
    }
    fake = generator(given["noise"], training=True)
    variables = critic.trainable_variables

    def loss() -> Any:
        each = critic_losses(critic, given["real"], fake, given["mix"], 10.0)
        return tf.reduce_mean(each["critic_loss"])

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, variables)
    rng = np.random.default_rng(0)
    for variable, gradient in zip(variables, gradients, strict=True):
        start, way = variable.numpy(), rng.normal(size=variable.shape)
        ends = []
        for step in (1e-6, -1e-6):
            variable.assign(start + step * way)
            ends.append(float(loss()))
        variable.assign(start)
        wanted = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(
            float(tf.reduce_sum(gradient * way)), wanted, rtol=2e-6, atol=1e-7
        )
