"""The mistakes of WGAN-GP over replicas, on the steps of the command themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli._wgan._models import NOISE, create_critic, create_generator
from samegrad.cli._wgan._steps import critic_losses
from samegrad.testing import Diagnosis, diagnose
from samegrad.testing.adapters import samegrad_step

average = tf.nn.compute_average_loss
local = tf.reduce_mean
PENALTY = 10.0
RNG = np.random.default_rng(3)
REAL = RNG.uniform(-1, 1, (10, 28, 28, 1)).astype(np.float64)
DRAWN = RNG.normal(size=(10, NOISE)), RNG.uniform(size=(10, 1, 1, 1))


@pytest.fixture(autouse=True)
def float64() -> Any:
    tf.keras.config.set_floatx("float64")
    yield
    tf.keras.config.set_floatx("float32")


Loss = Callable[..., Any]


def by_average(critic: Any, real: Any, fake: Any, mix: Any) -> Any:
    return average(critic_losses(critic, real, fake, mix, PENALTY)["critic_loss"])


def penalty_by_local_mean(critic: Any, real: Any, fake: Any, mix: Any) -> Any:
    each = critic_losses(critic, real, fake, mix, PENALTY)
    return PENALTY * local(each["penalty"]) - average(each["wasserstein"])


def all_by_local_mean(critic: Any, real: Any, fake: Any, mix: Any) -> Any:
    return local(critic_losses(critic, real, fake, mix, PENALTY)["critic_loss"])


def update(optimizer: Any, tape: Any, loss: Any, model: Any) -> None:
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def given_numbers(critic_loss: Loss, of_generator: Loss | None = None, width: int = 2) -> Diagnosis:
    """Judges a step whose noise and interpolation factors are part of the batch."""

    def build() -> Any:
        critic, generator = create_critic(width), create_generator(width)
        optimizer = tf.keras.optimizers.SGD(1.0)

        def step(real: Any, noise: Any, mix: Any) -> Any:
            fake = generator(noise, training=False)
            with tf.GradientTape() as tape:
                loss = critic_loss(critic, real, fake, mix)
            # Before any update: with the critic of afterwards, the generator's gradient were no
            # sum over the examples.
            with tf.GradientTape() as generator_tape:
                scores = critic(generator(noise, training=False), training=True)
                generator_loss = (of_generator or average)(-tf.squeeze(scores, 1))
            gradients = tape.gradient(loss, critic.trainable_variables)
            of_scores = generator_tape.gradient(generator_loss, generator.trainable_variables)
            optimizer.apply_gradients(zip(gradients, critic.trainable_variables, strict=True))
            if of_generator is not None:
                weights = generator.trainable_variables
                optimizer.apply_gradients(zip(of_scores, weights, strict=True))
            return None

        variables = [*critic.trainable_variables]
        if of_generator is not None:
            variables += generator.trainable_variables
        return step, variables

    return diagnose(samegrad_step(seeded(build)), (REAL, *DRAWN))


def seeded(build: Any) -> Any:
    def again() -> Any:
        tf.keras.utils.set_random_seed(1)
        return build()

    return again


def drawn_numbers(draw: Callable[[Any], Any]) -> Diagnosis:
    """Judges a critic's step that draws its interpolation factors."""

    def build() -> Any:
        critic, generator = create_critic(2), create_generator(2)
        optimizer = tf.keras.optimizers.SGD(1.0)

        def step(real: Any, noise: Any) -> None:
            fake = generator(noise, training=False)
            with tf.GradientTape() as tape:
                loss = by_average(critic, real, fake, draw(tf.shape(real)[0]))
            update(optimizer, tape, loss, critic)

        return step, critic.trainable_variables

    return diagnose(samegrad_step(seeded(build)), (REAL, DRAWN[0]))


def cause(found: Diagnosis) -> str:
    assert not found.correct, str(found)
    assert found.cause is not None, str(found)
    return found.cause.name


def test_the_steps_of_the_command_are_right() -> None:
    assert given_numbers(by_average).correct


def test_a_penalty_averaged_per_replica_and_summed_is_named() -> None:
    assert cause(given_numbers(penalty_by_local_mean)) == (
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean per replica, then sum"
    )


def test_a_loss_averaged_per_replica_and_summed_is_named() -> None:
    assert cause(given_numbers(all_by_local_mean)) == "mean per replica, then sum"


def test_critic_and_generator_scaled_alike_are_right() -> None:
    assert given_numbers(by_average, average).correct


def test_critic_and_generator_scaled_differently_are_named() -> None:
    assert "a part of the parameters" in cause(given_numbers(by_average, local))


def test_factors_drawn_for_the_rows_of_all_replicas_are_right() -> None:
    found = drawn_numbers(lambda count: tf.random.uniform((count, 1, 1, 1), dtype="float64"))
    assert found.correct, str(found)


def test_factors_shared_by_replicas_are_named() -> None:
    factors = tf.constant(RNG.uniform(size=(64, 1, 1, 1)))  # as of one seed on every replica

    def draw(count: Any) -> Any:
        return factors[:count]

    assert cause(drawn_numbers(draw)) == "dropout or noise is equal on all replicas"


def test_one_factor_for_all_examples_of_a_replica_is_named() -> None:
    found = drawn_numbers(lambda count: tf.random.uniform((1, 1, 1, 1), dtype="float64"))
    assert cause(found) == "one random factor per replica, shared by its examples"


def test_factors_of_replicas_drawn_outside_of_their_function_are_named() -> None:
    factors = tf.constant(RNG.uniform(size=(8, 1, 1, 1)))

    def draw(count: Any) -> Any:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.gather(factors, [replica])

    assert cause(drawn_numbers(draw)) == "one random factor per replica, shared by its examples"


def test_one_factor_for_all_replicas_is_another_loss_on_one_device_as_well() -> None:
    found = drawn_numbers(lambda count: tf.constant(0.37, "float64", shape=(1, 1, 1, 1)))
    assert found.correct, str(found)
