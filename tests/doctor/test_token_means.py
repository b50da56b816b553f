"""The mean over tokens and the common wrong ways, on one batch: their factors, their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli import doctor
from samegrad.errors import LossNormalizationWarning
from samegrad.testing import diagnose
from samegrad.testing.adapters import samegrad_step
from samegrad_doctor._catalogue import CONSTANT_FOR_WEIGHTS

V, WIDTH, LENGTH = 7, 5, 9
CONSTANT = 64.0
RNG = np.random.default_rng(0)
TABLE, START = RNG.normal(size=(V, WIDTH)), RNG.normal(size=(WIDTH, V))
TOKENS = np.array([5, 9, 1, 3, 8, 2, 9, 4, 6, 7, 1, 3])  # of each sentence


def sentences(tokens: np.ndarray, length: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Ids and labels [n, length], so many of them real in each row."""
    rng = np.random.default_rng(seed)
    real = np.arange(length) < tokens[:, None]
    return tuple(np.where(real, rng.integers(1, V, real.shape), 0) for _ in range(2))  # type: ignore[return-value]


def replicas() -> float:
    return float(tf.distribute.get_replica_context().num_replicas_in_sync)


def rows(weights: Any) -> Any:
    """The sentences of a replica, 1 for each."""
    return tf.reduce_sum(tf.ones_like(weights[:, 0]))


def of_all(value: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("sum", value)


def local_mean(losses: Any, weights: Any) -> Any:
    return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights))


Loss = Callable[[Any, Any], Any]
RIGHT = tf.nn.compute_weighted_mean_loss
WRONG: dict[str, Loss] = {
    "mean of local means": lambda losses, w: local_mean(losses, w) / replicas(),
    "local means, added": local_mean,
    "batch x length": lambda losses, w: tf.reduce_sum(losses) / (of_all(rows(w)) * LENGTH),
    "a constant": lambda losses, w: tf.reduce_sum(losses) / CONSTANT,
}
NAMES = {
    "mean of local means": "mean of the replicas' means",
    "local means, added": "mean per replica, then sum",
    "batch x length": "divided by examples instead of weights",
}


def program(loss: Loss) -> tuple[Callable[..., Any], list[Any]]:
    """A replica's step of a small model of tokens, and its weights."""
    kernel = tf.Variable(START)
    optimizer = tf.keras.optimizers.SGD(np.float64(1.0))

    def step(ids: Any, labels: Any) -> None:
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.gather(tf.constant(TABLE), ids), kernel)
            losses, weights = tf.nn.padded_cross_entropy_loss(logits, labels, 0.1, V)
            value = loss(losses, weights)
        optimizer.apply_gradients([(tape.gradient(value, kernel), kernel)])

    return step, [kernel]


def step_of(loss: Loss) -> Callable[..., Any]:
    """The step over replicas, as the doctor takes it."""
    return samegrad_step(lambda: program(loss))


def update(loss: Loss, *shares: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The change of the weights by one batch."""
    return np.asarray(step_of(loss)(list(shares)).update[0])


def test_wrong_ways_are_wrong_by_known_factors() -> None:
    """5 tokens on one replica, 500 on another, in sentences of length 9 and fewer."""
    few = sentences(np.array([5]), LENGTH)
    many = sentences(np.array([9] * 55 + [5]), LENGTH, seed=2)
    tokens, count = 505, 57
    assert sum((labels != 0).sum() for _, labels in (few, many)) == tokens
    right = update(RIGHT, few, many)
    one_device = tuple(np.concatenate(pair) for pair in zip(few, many, strict=True))
    np.testing.assert_allclose(right, update(RIGHT, one_device), rtol=1e-12)  # type: ignore[arg-type]

    def of(share: Any, other: Any) -> np.ndarray:
        """What the tokens of one replica are worth in the right update."""
        return update(RIGHT, share, (other[0], np.zeros_like(other[1])))

    few_alone, many_alone = of(few, many) * 5 / tokens, of(many, few) * 500 / tokens
    np.testing.assert_allclose(few_alone + many_alone, right, rtol=1e-12)
    factors = {
        "mean of local means": (tokens / (2 * 5), tokens / (2 * 500)),  # 50.5 and 0.505
        "local means, added": (tokens / 5, tokens / 500),
        "batch x length": (tokens / (count * LENGTH),) * 2,
        "a constant": (tokens / CONSTANT,) * 2,
    }
    for name, loss in WRONG.items():
        a, b = factors[name]
        found = update(loss, few, many)
        np.testing.assert_allclose(found, a * few_alone + b * many_alone, rtol=1e-10, err_msg=name)
        assert np.linalg.norm(found - right) > 0.01 * np.linalg.norm(right)


def test_the_right_way_is_right() -> None:
    found = diagnose(step_of(RIGHT), sentences(TOKENS, LENGTH), weights=TOKENS, replicas=(2, 3, 4))
    assert found.correct and not found.notes and not found.warnings, str(found)


@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_way_is_named(name: str) -> None:
    step = step_of(WRONG[name])
    found = diagnose(step, sentences(TOKENS, LENGTH), weights=TOKENS)
    assert found.cause is not None and found.cause.name == NAMES[name], str(found)
    assert found.per_replica and max(abs(row.factor - 1) for row in found.per_replica) > 0.05


def test_local_means_that_are_added_are_named_before_they_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    data = tf.data.Dataset.from_tensor_slices(sentences(TOKENS, LENGTH)).batch(12)
    (batch,) = strategy.experimental_distribute_dataset(data)
    with strategy.scope():
        step, _ = program(local_mean)
    with pytest.warns(LossNormalizationWarning, match="mean per replica, then sum"):
        strategy.run(step, batch)


def added(losses: Any, weights: Any) -> Any:
    """A sum that is divided by nothing."""
    return tf.reduce_sum(losses)


@pytest.mark.parametrize("loss", [WRONG["a constant"], added], ids=["constant", "nothing"])
def test_a_constant_is_named_as_a_caution(loss: Loss) -> None:
    """Replicas agree with one device, so that it is right; batches of few tokens count less."""
    found = diagnose(step_of(loss), sentences(TOKENS, LENGTH), weights=TOKENS)
    assert found.correct and found.cause is None
    (warning,), (note,) = found.warnings, found.notes
    assert warning is CONSTANT_FOR_WEIGHTS
    assert "by itself up to 9 times (weights from 1 to 9)" in note
    said = str(found).splitlines()
    assert said[1] == f"warning: {warning.name}: {warning.sentence}."
    formula, _, legend = said[2].partition("  (")
    assert formula == "maths: w_i / C  instead of  w_i / W"
    assert legend == "w_i: weight of example i, W: sum of the weights, C: a constant)"
    assert said[3].startswith("fix:   ") and "compute_weighted_mean_loss" in said[3]
    assert json.loads(found.to_json())["warnings"] == [warning.name]


def test_a_constant_that_is_the_mean_is_no_caution() -> None:
    """Sentences of one length, or no weights given: nothing says that the constant is wrong."""
    even = np.full(len(TOKENS), LENGTH)
    for weights in (even, None):
        found = diagnose(step_of(WRONG["a constant"]), sentences(even, LENGTH), weights=weights)
        assert found.correct and not found.warnings and "convention" in found.notes[0]


def test_a_constant_beside_a_mistake_is_named_too() -> None:
    """Divided by a constant, and once more by the replicas."""

    def averaged(losses: Any, weights: Any) -> Any:
        return tf.reduce_sum(losses) / (CONSTANT * replicas())

    found = diagnose(step_of(averaged), sentences(TOKENS, LENGTH), weights=TOKENS)
    assert not found.correct and found.cause is not None
    assert [row.name for row in found.warnings] == ["divided by a constant instead of the weights"]
    assert str(found).index("cause: ") < str(found).index("warning: ")


def test_sentences_that_count_alike_are_not_tokens_that_do() -> None:
    """Of sentences of other lengths that is another loss, right with weights of 1."""

    def per_sentence(losses: Any, weights: Any) -> Any:
        return tf.nn.compute_average_loss(tf.nn.mean_over_tokens(losses, weights))

    step, batch = step_of(per_sentence), sentences(TOKENS, LENGTH)
    assert diagnose(step, batch, weights=np.ones(len(TOKENS))).correct
    found = diagnose(step, batch, weights=TOKENS)
    assert found.cause is not None
    assert found.cause.name == "divided by examples instead of weights"


PROGRAM = """
import numpy as np

TABLE, OUT = np.random.default_rng(0).normal(size=(2, 7, 7))
TOKENS = np.array([5, 9, 1, 3, 8, 2, 9, 4])
REAL = np.arange(9) < TOKENS[:, None]
DRAW = np.random.default_rng(1)
BATCH = tuple(np.where(REAL, DRAW.integers(1, 7, REAL.shape), 0) for _ in range(2))


def total(share):
    ids, labels = share
    inputs = TABLE[ids]
    chances = np.exp(inputs @ OUT)
    chances /= chances.sum(-1, keepdims=True)
    error = (chances - np.eye(7)[labels]) * (labels != 0)[..., None]
    return np.einsum("ntd,ntv->dv", inputs, error)


def tokens(share):
    return max((share[1] != 0).sum(), 1)


def right(shares):
    return sum(map(total, shares)) / sum((s[1] != 0).sum() for s in shares)


def local_means(shares):
    return sum(total(s) / tokens(s) for s in shares) / len(shares)


def padded(shares):
    longest = max((s[1] != 0).sum(1).max(initial=0) for s in shares)
    return sum(map(total, shares)) / (sum(len(s[0]) for s in shares) * max(longest, 1))


def constant(shares):
    return sum(map(total, shares)) / 100
"""
SAID = {
    "right": (0, "correct;"),
    "local_means": (1, "cause: mean of the replicas' means"),
    "padded": (1, "cause: padding counts as tokens of the global batch"),
    "constant": (0, "warning: divided by a constant instead of the weights"),
}


@pytest.mark.parametrize("name", SAID)
def test_the_command_names_them(name: str, tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "token_program.py"
    file.write_text(PROGRAM)
    code = doctor.run(
        step=f"{file}::{name}", batch="BATCH", weights="TOKENS", replicas=(2, 3),
        micro_batches=(1,), json=False,
    )  # fmt: skip
    wanted, words = SAID[name]
    assert code == wanted and words in capsys.readouterr().out


def test_two_counts_are_told_without_weights_from_pairs_of_examples() -> None:
    """The loss of tokens is right; that of sentences is a mean of the replicas' means."""
    rng = np.random.default_rng(3)
    tokens, lengths = rng.normal(size=(2, 12, 60))
    count = rng.integers(2, 9, size=12)

    def step(shares):
        rows = np.concatenate(shares)
        first = count[rows] @ tokens[rows] / count[rows].sum()
        return first + np.mean([lengths[share].mean(axis=0) for share in shares], axis=0)

    found = diagnose(step, np.arange(12))
    assert found.cause is not None, str(found)
    assert found.cause.name.startswith("a part of the loss"), str(found)
    assert found.cause.name.endswith("mean of the replicas' means"), str(found)
    assert "the rest is correct" in found.cause.sentence


def test_a_name_that_larger_splits_refute_is_not_given() -> None:
    """Soft scores: a maximum with 1 of the replicas' mean count binds in small batches."""
    rng = np.random.default_rng(4)
    rows, scores = rng.normal(size=(12, 60)), np.linspace(0.05, 0.19, 12)

    def step(shares):
        every = np.concatenate(shares)
        mean = max(scores[every].sum() / len(shares), 1.0)
        return sum(scores[share] @ rows[share] for share in shares) / mean / len(shares)

    found = diagnose(step, np.arange(12))
    assert found.cause is not None and found.cause.name == "a factor on the whole update", str(
        found
    )
