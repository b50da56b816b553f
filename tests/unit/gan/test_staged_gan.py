"""A GAN in three stages over replicas: what each stage changes, its bits, and the older words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import staged_program
from staged_program import StagedGan, bits

import samegrad as tf

STAGES = (10, 10, 10)


def train(replicas: int, threads: int, examples: int = 7 * staged_program.BATCH) -> dict[str, Any]:
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        gan = StagedGan(replicas)
        batches = gan.batches(examples)
        losses = [
            float(step(next(batches)))
            for step, count in zip(gan.steps, STAGES, strict=True)
            for _ in range(count)
        ]
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    parts = [part for pair in gan.pairs() for part in pair]
    return {"losses": losses, "bits": [bits(part) for part in parts], "step": int(gan.global_step)}


@pytest.fixture(scope="module")
def one_replica() -> dict[str, Any]:
    return train(1, 1)


@pytest.mark.parametrize(("replicas", "threads"), [(1, 2), (2, 1), (3, 2), (8, 2)])
def test_bits_of_30_steps(one_replica: Any, replicas: int, threads: int) -> None:
    assert train(replicas, threads) == one_replica


def test_short_last_batches_have_the_same_bits() -> None:
    expected = train(1, 1, examples=71)
    for replicas in (3, 4):
        assert train(replicas, 1, examples=71) == expected


def test_one_global_step_counts_all_stages_once(one_replica: Any) -> None:
    assert one_replica["step"] == 30
    assert np.isfinite(one_replica["losses"]).all()
    assert one_replica["losses"][9] < one_replica["losses"][0]


@pytest.mark.parametrize("replicas", [1, 4])
def test_a_stage_changes_no_bit_of_the_other_model(replicas: int) -> None:
    gan = StagedGan(replicas)
    batches = gan.batches()
    for stage, (trained, kept) in enumerate([(0, 1), (1, 0)]):
        before = [[bits(part) for part in pair] for pair in gan.pairs()]
        for _ in range(3):
            gan.steps[stage](next(batches))
        after = [[bits(part) for part in pair] for pair in gan.pairs()]
        assert after[kept] == before[kept]
        assert all(x != y for x, y in zip(after[trained], before[trained], strict=True))
    before = [[bits(part) for part in pair] for pair in gan.pairs()]
    gan.steps[2](next(batches))
    after = [[bits(part) for part in pair] for pair in gan.pairs()]
    assert all(
        x != y for pair in zip(after, before, strict=True) for x, y in zip(*pair, strict=True)
    )


@pytest.fixture
def gan() -> StagedGan:
    return StagedGan(2)


def run(gan: StagedGan, step: Any) -> Any:
    """What a step returns, by replicas."""
    found = gan.strategy.run(step, args=(next(gan.batches()),))
    return gan.strategy.experimental_local_results(found)


def test_gradients_that_are_none_are_told_once_and_change_nothing(gan: StagedGan) -> None:
    """All variables in one list, though the loss knows the generator only."""
    variables = gan.generator.trainable_variables + gan.discriminator.trainable_variables
    optimizer = tf.keras.optimizers.Adam(1e-2)

    def step(images: Any) -> Any:
        given, holes = staged_program.masked(images)
        with tf.GradientTape() as tape:
            loss = gan.reconstruction(images, holes, gan.generator(given, training=True))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return len([g for g in gradients if g is None])

    distributed = tf.function(lambda batch: gan.strategy.run(step, args=(batch,)))
    kept, trained = bits(gan.discriminator), bits(gan.generator)
    batches = gan.batches()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            distributed(next(batches))
    (warning,) = told
    for variable in gan.discriminator.trainable_variables:
        assert variable.path in str(warning.message)
    assert "generator/" not in str(warning.message)
    assert bits(gan.discriminator) == kept
    assert bits(gan.generator) != trained
    slots = [v for v in optimizer.variables if "discriminator" in v.path]
    assert len(slots) == 2 * len(gan.discriminator.trainable_variables)
    assert not any(np.asarray(slot).any() for slot in slots)


def test_no_gradient_at_all_is_an_error_that_names_the_variables(gan: StagedGan) -> None:
    def step(images: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = gan.discriminator_loss(images, images)
        variables = gan.generator.trainable_variables
        gradients = tape.gradient(loss, variables)
        gan.generator_optimizer.apply_gradients(zip(gradients, variables, strict=True))

    before = [bits(part) for pair in gan.pairs() for part in pair]
    with pytest.raises(ValueError, match=r"No gradients .*\[adam\w*\].*generator/conv2d\w*/kernel"):
        run(gan, step)
    assert [bits(part) for pair in gan.pairs() for part in pair] == before


def test_variables_are_picked_by_path(gan: StagedGan) -> None:
    variables = gan.generator.trainable_variables + gan.discriminator.trainable_variables
    picked = [v for v in variables if v.path.startswith("discriminator/")]
    assert picked == gan.discriminator.trainable_variables


@pytest.mark.parametrize("method", ["minimize", "compute_gradients", "apply_gradients"])
def test_a_selection_by_name_that_finds_nothing_shows_the_paths(
    gan: StagedGan, method: str
) -> None:
    variables = gan.generator.trainable_variables
    picked = [v for v in variables if "discriminator" in v.name]
    assert picked == []

    def step(images: Any) -> Any:
        optimizer = gan.generator_optimizer
        if method == "apply_gradients":
            return optimizer.apply_gradients(zip([], picked, strict=True))
        return getattr(optimizer, method)(
            lambda: gan.discriminator_loss(images, images), var_list=picked
        )

    with pytest.raises(ValueError, match="must be variables to train: got none") as error:
        run(gan, step)
    for path in ("discriminator/conv2d", "generator/conv2d"):
        assert path in str(error.value)
    assert int(gan.generator_optimizer.iterations) == 0


def by_hand(gan: StagedGan, images: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = gan.discriminator_loss(images, -images)
    gan.update(gan.discriminator_optimizer, tape, loss, gan.discriminator)
    return loss


def by_minimize(gan: StagedGan, images: Any) -> Any:
    variables = gan.discriminator.trainable_variables
    return gan.discriminator_optimizer.minimize(
        lambda: gan.discriminator_loss(images, -images), var_list=variables
    )


def by_compute_gradients(gan: StagedGan, images: Any) -> Any:
    optimizer, variables = gan.discriminator_optimizer, gan.discriminator.trainable_variables
    pairs = optimizer.compute_gradients(
        lambda: gan.discriminator_loss(images, -images), var_list=variables
    )
    return optimizer.apply_gradients(pairs)


def by_minimize_of_a_tensor(gan: StagedGan, images: Any) -> Any:
    """As in a graph of TensorFlow 1: what the loss was computed from is known without a tape."""
    loss = gan.discriminator_loss(images, -images)
    return gan.discriminator_optimizer.minimize(
        loss, var_list=gan.discriminator.trainable_variables
    )


def by_compute_gradients_of_a_tensor(gan: StagedGan, images: Any) -> Any:
    optimizer, variables = gan.discriminator_optimizer, gan.discriminator.trainable_variables
    loss = gan.discriminator_loss(images, -images)
    return optimizer.apply_gradients(optimizer.compute_gradients(loss, var_list=variables))


OLDER = [by_minimize, by_compute_gradients]
OLDER += [by_minimize_of_a_tensor, by_compute_gradients_of_a_tensor]


@pytest.mark.parametrize("program", OLDER)
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_the_older_words_make_the_same_update(program: Any, replicas: int) -> None:
    found = []
    for step in (by_hand, program):
        gan = StagedGan(replicas)
        kept = bits(gan.generator)
        run(gan, lambda images, step=step, gan=gan: step(gan, images))
        assert bits(gan.generator) == kept
        found.append((bits(gan.discriminator), bits(gan.discriminator_optimizer)))
    assert found[0] == found[1]


def test_one_optimizer_over_two_lists_one_after_the_other() -> None:
    """Slots of the second list are made when it comes; those of the first stay."""
    results = []
    for replicas in (1, 4):
        gan = StagedGan(replicas)
        optimizer = tf.keras.optimizers.Adam(1e-2)

        def step(images: Any, gan: Any = gan, optimizer: Any = optimizer) -> Any:
            given, holes = staged_program.masked(images)
            lists = [m.trainable_variables for m in (gan.generator, gan.discriminator)]
            with tf.GradientTape(persistent=True) as tape:
                made = gan.generator(given, training=True)
                losses = [
                    gan.reconstruction(images, holes, made),
                    gan.discriminator_loss(images, made),
                ]
            for loss, variables in zip(losses, lists, strict=True):
                gradients = tape.gradient(loss, variables)
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return losses

        distributed = tf.function(lambda batch, g=gan, s=step: g.strategy.run(s, args=(batch,)))
        batches = gan.batches()
        for _ in range(3):
            distributed(next(batches))
        assert int(optimizer.iterations) == 6
        both = len(gan.generator.trainable_variables + gan.discriminator.trainable_variables)
        assert len(optimizer.variables) == 2 + 2 * both
        results.append([bits(part) for part in (gan.generator, gan.discriminator, optimizer)])
    assert results[0] == results[1]


def test_a_loss_times_the_replicas_in_a_mean_reads_the_global_loss() -> None:
    """Its author undoes that a Mean divides by the replicas; there is no false positive."""
    read = []
    for replicas in (1, 2, 3):
        gan = StagedGan(replicas)
        with gan.strategy.scope():
            mean = tf.keras.metrics.Mean()

        def step(images: Any, gan: Any = gan, mean: Any = mean) -> Any:
            loss = by_hand(gan, images)
            mean.update_state(loss * gan.strategy.num_replicas_in_sync)
            return loss

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loss = sum(float(share) for share in run(gan, step))
        assert float(mean.result()) == pytest.approx(loss, rel=1e-6)
        read.append(loss)
    np.testing.assert_allclose(read, read[0], rtol=1e-6)
