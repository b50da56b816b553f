"""Steps of a Transformer: traces, schedule, windows of tokens, sparse tables, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformer_batches import TOKENS, Batch, pairs, small

import samegrad as tf
from samegrad.cli._translate._averaging import average_checkpoints, last_checkpoints
from samegrad.cli._translate._schedule import InverseSquareRoot
from samegrad.cli._translate._scores import perplexity, token_accuracy
from samegrad.cli._translate._steps import MEANS, TranslationSteps, adam

LENGTHS = (9, 1, 4, 7, 2, 2, 5, 8, 3, 6, 1, 1)


def sgd() -> Any:
    return tf.keras.optimizers.SGD(np.float64(0.1))


def steps_of(
    replicas: int = 1, optimizer: Callable[[], Any] = sgd, mean: str = "tokens",
    smoothing: float = 0.1, **options: Any,
) -> TranslationSteps:  # fmt: skip
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    return TranslationSteps(strategy, lambda: small(**options), optimizer, smoothing, mean)


def batches(steps: TranslationSteps, size: int, *given: Batch) -> list[Any]:
    """Global batches of each of the given ones, in order."""
    found = []
    for arrays in given:
        data = tf.data.Dataset.from_tensor_slices(arrays).batch(size)
        found += list(steps.strategy.experimental_distribute_dataset(data))
    return found


def weights(steps: TranslationSteps) -> list[np.ndarray]:
    return [v.numpy() for v in steps.model.trainable_variables]


def assert_close(found: Sequence[Any], expected: Sequence[Any], near: float = 1e-12) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_all_buckets_are_traced_once(replicas: int, dropout: float) -> None:
    """Batches of other sizes, short and with empty shares, run the same program."""
    steps = steps_of(replicas, dropout=dropout)
    buckets = [pairs(LENGTHS, longest=9), pairs([2, 4, 1, 3, 3, 2, 1], longest=4)]
    for _ in range(2):
        for size in (5, 4, 1):
            for batch in batches(steps, size, *buckets):
                steps.train_step(batch)
                steps.evaluate_step(batch)
    assert steps.traces == {"train": 1, "evaluate": 1, "accumulate": 0, "apply": 0}


def test_one_trace_trains_with_the_bits_of_a_trace_for_each_bucket() -> None:
    given = [pairs(LENGTHS, longest=9), pairs([2, 4, 1, 3, 3, 2, 1], longest=4), pairs([11, 3])]
    for replicas, dtype in ((1, "float32"), (2, "float32"), (3, "float64")):
        made = []
        for apart in (False, True):
            steps = steps_of(replicas, lambda: tf.keras.optimizers.Adam(0.01), dtype=dtype)
            step = steps.train_step
            if apart:
                step = tf.function(step.python_function)
            tf.random.set_seed(4)
            losses = [
                step(batch)["loss"].numpy() for size in (5, 4, 2)
                for batch in batches(steps, size, *given)
            ]  # fmt: skip
            made.append([*losses, *weights(steps)])
            assert steps.traces["train"] == (3 if apart else 1)
        for one, each in zip(*made, strict=True):
            assert np.array_equal(one, each) and one.dtype == each.dtype


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_figures_are_sums_over_the_replicas(replicas: int) -> None:
    steps = steps_of(replicas, dropout=0.0)
    batch = pairs(LENGTHS)
    (given,) = batches(steps, 12, batch)
    figures = {name: float(value) for name, value in steps.evaluate_step(given).items()}
    logits = steps.model((batch[0], batch[1][:, :-1])).numpy()
    labels, real = batch[1][:, 1:], batch[1][:, 1:] != 0
    chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    total = -np.take_along_axis(chances, labels[..., None], -1)[..., 0][real].sum()
    assert figures["tokens"] == sum(LENGTHS) == real.sum() and figures["sentences"] == 12
    assert figures["hits"] == ((logits.argmax(-1) == labels) & real).sum()
    np.testing.assert_allclose(figures["cross_entropy"], total, rtol=1e-12)
    np.testing.assert_allclose(figures["loss"], total / real.sum(), rtol=1e-12)
    found = perplexity(figures["cross_entropy"], figures["tokens"])
    np.testing.assert_allclose(found, math.exp(total / real.sum()))
    assert token_accuracy(figures["hits"], figures["tokens"]) == figures["hits"] / real.sum()


def test_scores_of_no_tokens_are_no_numbers() -> None:
    assert math.isnan(perplexity(0.0, 0)) and math.isnan(token_accuracy(0, 0))
    assert perplexity(1e9, 1) == math.inf


def test_smoothing_is_of_the_training_alone() -> None:
    steps = steps_of(dropout=0.0)
    (batch,) = batches(steps, 12, pairs(LENGTHS))
    evaluated, trained = steps.evaluate_step(batch), steps.train_step(batch)
    np.testing.assert_allclose(trained["cross_entropy"], evaluated["cross_entropy"], rtol=1e-12)
    assert abs(float(trained["loss"]) - float(evaluated["loss"])) > 1e-3


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_window_of_batches_trains_as_one_batch(mean: str, replicas: int) -> None:
    """Clipped after the sum, too; micro-batches of other lengths and numbers of tokens."""

    def clipped() -> Any:
        return tf.keras.optimizers.SGD(np.float64(0.5), global_clipnorm=0.3)

    whole = steps_of(replicas, clipped, mean, dropout=0.0)
    (one,) = batches(whole, 12, pairs(LENGTHS))
    expected = whole.train_step(one)
    parts = steps_of(replicas, clipped, mean, dropout=0.0)
    source, target = pairs(LENGTHS)
    given = batches(parts, 5, (source[:7], target[:7])) + batches(
        parts, 2, (source[7:], target[7:])
    )
    found = parts.train_window(iter(given), 10**6)
    assert found is not None and set(found) == set(expected)
    assert_close(list(found.values()), [float(expected[name]) for name in found])
    assert_close(weights(parts), weights(whole))
    assert int(parts.optimizer.iterations) == 1
    assert parts.traces["accumulate"] == parts.traces["apply"] == 1


def test_a_window_ends_with_its_budget() -> None:
    steps = steps_of()
    stream = iter(batches(steps, 1, pairs(LENGTHS)))
    tokens = []
    while (figures := steps.train_window(stream, 9)) is not None:
        tokens.append(figures["tokens"])
    assert tokens == [9, 12, 9, 11, 8]  # the last one is what is left
    assert int(steps.optimizer.iterations) == 5
    with pytest.raises(ValueError, match="at least 1 token: got 0"):
        steps.train_window(stream, 0)


def test_a_window_that_is_interrupted_leaves_nothing_in_the_next() -> None:
    def broken(given: list[Any]) -> Any:
        yield given[0]
        raise OSError("the file ends here")

    interrupted, other = steps_of(dropout=0.0), steps_of(dropout=0.0)
    with pytest.raises(OSError, match="ends here"):
        interrupted.train_window(broken(batches(interrupted, 6, pairs(LENGTHS))), 1000)
    for steps in (interrupted, other):
        steps.train_window(iter(batches(steps, 6, pairs(LENGTHS))), 1000)
    for a, b in zip(weights(interrupted), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mean", MEANS)
def test_a_window_of_padding_changes_nothing(mean: str) -> None:
    steps = steps_of(2, mean=mean)
    before = weights(steps)
    source, target = pairs([3, 4])
    target[:, 1:] = 0
    figures = steps.train_window(iter(batches(steps, 2, (source, target))), 5)
    assert figures is not None and figures["loss"] == 0.0 and figures["tokens"] == 0.0
    for a, b in zip(weights(steps), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_rate_rises_and_falls_as_published() -> None:
    rates = InverseSquareRoot(width=512, warm_up=4000, factor=2.0)
    for step in (1, 2, 100, 3999, 4000, 4001, 10**6):
        expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        np.testing.assert_allclose(float(rates(step - 1)), expected, rtol=1e-6)
    again = InverseSquareRoot.from_config(rates.get_config())
    assert float(again(123)) == float(rates(123))
    for bad in ({"width": 0}, {"warm_up": 0}, {"factor": 0.0}):
        with pytest.raises(ValueError, match="must be above 0"):
            InverseSquareRoot(**({"width": 4, "warm_up": 4} | bad))


def test_the_optimizer_follows_the_schedule_without_another_trace() -> None:
    steps = steps_of(optimizer=lambda: adam(InverseSquareRoot(8, 3), 1.0))
    optimizer = steps.optimizer
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    (batch,) = batches(steps, 12, pairs(LENGTHS))
    found = []
    for _ in range(5):
        found.append(float(optimizer.learning_rate))
        steps.train_step(batch)
    expected = [8**-0.5 * min(s**-0.5, s * 3**-1.5) for s in range(1, 6)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert steps.traces["train"] == 1


SPARSE, ALL_ROWS = "sparse, row by row", "all rows, some at a time, of a sparse gradient"


@pytest.mark.parametrize("replicas", [1, 2])
def test_gradients_of_embeddings_stay_sparse(replicas: int) -> None:
    """The tables of source and target; all rows change where one is shared with the logits."""
    big = {"width": 16, "dtype": "float32"}

    def plan(optimizer: Callable[[], Any], shared: bool) -> str:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        steps = TranslationSteps(
            strategy, lambda: small(**big, tokens=2000, shared=shared), optimizer
        )
        (batch,) = batches(steps, 12, pairs(LENGTHS))
        return str(steps.train_step.explain(batch))

    assert plan(lambda: adam(1e-3, lazy=True), False).count(SPARSE) == 2
    assert plan(lambda: tf.keras.optimizers.SGD(0.1), False).count(SPARSE) == 2
    clipped = plan(lambda: adam(1e-3, 1.0, lazy=True), False)
    assert clipped.count(SPARSE) == clipped.count("reduced, row by row") == 2
    shared = plan(lambda: adam(1e-3, lazy=True), True)
    assert (shared.count(SPARSE), shared.count(ALL_ROWS)) == (0, 1)
    # Adam moves every row in each step.
    moved = plan(lambda: adam(1e-3), False)
    assert (moved.count(SPARSE), moved.count(ALL_ROWS)) == (0, 2)


@pytest.mark.parametrize("windows", [False, True], ids=["steps", "windows"])
def test_a_run_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path: Path, windows: bool) -> None:
    def advance(steps: TranslationSteps, batch: Any) -> None:
        if windows:
            steps.train_window(iter([batch, batch]), 10**6)
        else:
            steps.train_step(batch)

    def begin() -> tuple[TranslationSteps, Any, Any]:
        steps = steps_of(2, lambda: adam(InverseSquareRoot(8, 3), 1.0), dtype="float32")
        checkpoint = tf.train.Checkpoint(model=steps.model, optimizer=steps.optimizer)
        return steps, checkpoint, batches(steps, 12, pairs(LENGTHS))[0]

    steps, checkpoint, batch = begin()
    for _ in range(2):
        advance(steps, batch)
    path = checkpoint.save(tmp_path / "ckpt")
    for _ in range(2):
        advance(steps, batch)
    for _ in range(2):  # resumed twice
        resumed, other, batch = begin()
        other.restore(path).assert_consumed()
        for _ in range(2):
            advance(resumed, batch)
        for a, b in zip(weights(resumed), weights(steps), strict=True):
            np.testing.assert_array_equal(a, b)


def test_checkpoints_are_averaged(tmp_path: Path) -> None:
    steps = steps_of(dtype="float32")
    checkpoint = tf.train.Checkpoint(model=steps.model)
    (batch,) = batches(steps, 12, pairs(LENGTHS))
    seen = []
    for _ in range(4):
        steps.train_step(batch)
        checkpoint.save(tmp_path / "ckpt")
        seen.append(weights(steps))
    paths = last_checkpoints(str(tmp_path), 3)
    assert [Path(p).name for p in paths] == ["ckpt-2", "ckpt-3", "ckpt-4"]
    average_checkpoints(steps.model, paths)
    for found, *values in zip(weights(steps), *seen[1:], strict=True):
        expected = np.mean(np.asarray(values, np.float64), axis=0).astype(np.float32)
        np.testing.assert_array_equal(found, expected)
    average_checkpoints(steps.model, paths[-1:])
    for found, expected in zip(weights(steps), seen[-1], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_checkpoints_that_cannot_be_averaged_leave_the_model_as_it_is(tmp_path: Path) -> None:
    steps = steps_of(dtype="float32")
    path = tf.train.Checkpoint(model=steps.model).save(tmp_path / "ckpt")
    for variable in steps.model.trainable_variables:
        variable.assign(variable + 1.0)
    before = weights(steps)
    other = tf.train.Checkpoint(model=tf.Variable(1.0)).save(tmp_path / "other")
    for paths in ([path, other], [path, str(tmp_path / "none-1")], []):
        with pytest.raises((AssertionError, ValueError, OSError)):
            average_checkpoints(steps.model, paths)
        for a, b in zip(weights(steps), before, strict=True):
            np.testing.assert_array_equal(a, b)
    for count in (0, 5):
        with pytest.raises(ValueError, match=f"got 2 in .* for {count}"):
            last_checkpoints(str(tmp_path), count)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_a_model_of_sixteen_bits_counts_every_token(policy: str) -> None:
    steps = steps_of(2, lambda: adam(0.01), dtype=policy)
    (batch,) = batches(steps, 12, pairs([97] * 12))
    first = steps.train_step(batch)
    assert float(first["tokens"]) == 97 * 12 and float(first["sentences"]) == 12
    for _ in range(10):
        last = steps.train_step(batch)
    assert float(last["cross_entropy"]) < float(first["cross_entropy"])
    assert {v.dtype for v in steps.model.trainable_variables} == {"float32"}


def test_a_mean_that_there_is_not_says_which_there_are() -> None:
    with pytest.raises(ValueError, match="one of tokens, sentences: got 'batch'"):
        steps_of(mean="batch")


@pytest.mark.parametrize("mean", MEANS)
def test_a_model_learns_to_copy(mean: str) -> None:
    steps = steps_of(2, lambda: adam(0.01), mean, dtype="float32", dropout=0.0, width=16)
    source, target = pairs([4, 3, 5, 2, 4, 3] * 4)
    target[:, 1:] = source
    (batch,) = batches(steps, 24, (source, target))
    first = steps.evaluate_step(batch)
    for _ in range(60):
        steps.train_step(batch)
    last = steps.evaluate_step(batch)
    assert float(last["cross_entropy"]) < 0.2 * float(first["cross_entropy"])
    assert float(last["hits"]) > 0.95 * float(last["tokens"]) > 0 and TOKENS > 3
