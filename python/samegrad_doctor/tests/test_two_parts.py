"""A loss of two parts with a count each: a mean beside a sum, examples beside tokens."""

from __future__ import annotations

import numpy as np
import pytest
from steps import REGULARISATION, W1, W2, WEIGHTS, X, Y, count, flat, mean, total

from samegrad_doctor import diagnose


def penalty(share):
    """The gradient of the sum of the squares of the hidden units."""
    x = share[0]
    hidden = np.tanh(x @ W1)
    back = 2 * hidden * (1 - hidden**2)
    return np.concatenate([(x.T @ back).ravel(), np.zeros(W2.size)])


def means(shares):
    return np.mean([mean(share) for share in shares], axis=0)


def right_mean(shares):
    return sum(map(total, shares)) / count(shares)


def right_sum(shares):
    return sum(map(penalty, shares))


PART = "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "


@pytest.mark.parametrize(
    ("step", "name", "rest"),
    [
        (lambda s: means(s) + right_sum(s) / len(s), "divided by the global batch, then averaged",
         "mean of the replicas' means"),
        (lambda s: means(s) + right_sum(s), "mean of the replicas' means", None),
        (lambda s: right_mean(s) + right_sum(s) / len(s),
         "divided by the global batch, then averaged", None),
        (lambda s: right_mean(s) + right_sum(s) * len(s), "multiplied by the replicas", None),
        (lambda s: sum(map(mean, s)) + right_sum(s), "mean per replica, then sum", None),
        (lambda s: right_mean(s) + penalty(s[0]),
         "the replicas are not reduced, though divided by all", None),
    ],
)  # fmt: skip
def test_each_part_is_named_by_itself(step, name, rest) -> None:
    found = diagnose(step, (X, Y))
    assert not found.correct
    assert found.cause is not None and found.cause.name == PART + name, str(found)
    others = f"for the rest: {rest}" if rest else "the rest is correct"
    assert others in found.cause.sentence


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_mean_beside_a_sum_is_right_where_both_are(scale) -> None:
    found = diagnose(lambda s: right_mean(s) + scale * right_sum(s), (X, Y))
    assert found.correct, str(found)


def test_statistics_of_a_share_are_no_mean_beside_a_sum() -> None:
    def centred(share):
        hidden = np.tanh(share[0] @ W1)
        middle = hidden.mean(axis=0)
        back = 2 * (hidden - middle) / len(hidden) * (1 - hidden**2)
        return np.concatenate([(share[0].T @ back).ravel(), np.zeros(W2.size)])

    found = diagnose(lambda s: np.mean([mean(p) + centred(p) for p in s], axis=0), (X, Y))
    assert found.cause.name == "batch statistics are not synchronised"


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_examples_beside_tokens_are_told_apart_where_each_share_divides_by_its_own(weights) -> None:
    def step(shares):
        parts = [mean(p) + penalty_of_tokens(p) / p[2].sum() for p in shares]
        return np.mean(parts, axis=0)

    def penalty_of_tokens(share):
        x, _, weights = share
        hidden = np.tanh(x @ W1)
        back = 2 * hidden * (1 - hidden**2) * weights[:, None]
        return np.concatenate([(x.T @ back).ravel(), np.zeros(W2.size)])

    found = diagnose(step, (X, Y, WEIGHTS), weights=weights)
    assert found.cause is not None and found.cause.name == PART + "mean of the replicas' means"
    assert "for the rest: mean of the replicas' means" in found.cause.sentence


def test_pieces_that_the_whole_batch_hides_show_in_one_example_less() -> None:
    def pieces_of_four(share):
        return np.mean([mean((share[0][i : i + 4], share[1][i : i + 4]))
                        for i in range(0, len(share[0]), 4)], axis=0)  # fmt: skip

    def step(shares):
        return sum(pieces_of_four(share) * len(share[0]) for share in shares) / count(shares)

    assert diagnose(step, (X, Y)).cause.name == "each replica splits its own shard"


def test_the_smallest_share_may_divide() -> None:
    def step(shares):
        least = min(len(share[0]) for share in shares)
        return sum(map(total, shares)) / least / len(shares)

    cause = diagnose(step, (X, Y)).cause
    assert cause is not None and cause.formula.startswith("w_i / (W_min r R)"), cause


@pytest.mark.parametrize("factor", [lambda r, k: r, lambda r, k: 1 / r, lambda r, k: k])
@pytest.mark.parametrize("size", [0.01, 0.2, 1.0])
def test_a_part_of_even_shares_with_a_factor_of_its_own_is_named(factor, size) -> None:
    """Of means, sums and terms alike; what one device makes need not be a sum of examples."""

    def step(shares):
        many = shares if isinstance(shares[0], list) else [[share] for share in shares]
        parts = [part for share in many for part in share]
        by = factor(len(many), len(many[0]))
        return right_mean(parts) + size * by * right_sum(parts)

    options = {"micro_batches": (2,)} if factor(1, 2) == 2 else {}
    found = diagnose(step, (X, Y), equal_shards=True, **options)
    assert found.cause is not None and found.cause.name.startswith(PART), str(found)


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("size", [1e-3, 0.02])
@pytest.mark.parametrize("by", [lambda r: r, lambda r: 1 / r])
def test_a_small_sum_beside_a_mean_is_no_noise(by, size, even) -> None:
    """It is not a mean of the examples, so that single examples leave some of it unexplained."""
    found = diagnose(
        lambda s: right_mean(s) + size * by(len(s)) * right_sum(s), (X, Y), equal_shards=even
    )
    assert not found.correct, str(found)
    right = diagnose(lambda s: right_mean(s) + size * right_sum(s), (X, Y), equal_shards=even)
    assert right.correct, str(right)


@pytest.mark.parametrize("options", [{}, {"micro_batches": (2, 3)}])
@pytest.mark.parametrize("size", [0.05, 0.3])
def test_a_small_part_of_token_means_is_no_noise(size, options) -> None:
    """Each replica divides it by its own tokens, beside a mean over all examples."""

    def tokens(share):
        x, _, weights = share
        hidden = np.tanh(x @ W1)
        back = 2 * hidden * (1 - hidden**2) * weights[:, None]
        return np.concatenate([(x.T @ back).ravel(), np.zeros(W2.size)])

    def step(shares, local):
        many = shares if isinstance(shares[0], list) else [[share] for share in shares]
        parts = flat(many)
        sums, counts = (
            [sum(map(tokens, s)) for s in many],
            [sum(p[2].sum() for p in s) for s in many],
        )
        means = np.mean([a / b for a, b in zip(sums, counts, strict=True)], axis=0)
        return right_mean(parts) + size * (means if local else sum(sums) / sum(counts))

    found = diagnose(lambda s: step(s, True), (X, Y, WEIGHTS), **options)
    assert not found.correct, str(found)
    assert found.cause is not None and found.cause.name.endswith("mean of the replicas' means")
    assert diagnose(lambda s: step(s, False), (X, Y, WEIGHTS), **options).correct


def test_a_sum_that_is_no_term_is_not_called_one() -> None:
    """All layouts of a batch add the same examples up; another batch has another sum."""
    found = diagnose(lambda s: right_mean(s) + 0.02 / len(s) * right_sum(s), (X, Y))
    assert "part of the loss" in found.cause.name, str(found)


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        (flat, "micro-batch, then averaged"),
        (lambda windows: [(np.concatenate([x for x, _ in w]),) for w in windows], "replica, then "),
    ],
)
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("size", [0.05, 1.0])
def test_a_term_that_examples_divide_is_no_limit(groups, name, even, size) -> None:
    """One device divides it by all of them; each share or micro-batch by its own."""

    def step(shares):
        many = shares if isinstance(shares[0], list) else [[share] for share in shares]
        own = [len(group[0]) for group in groups(many)]
        return right_mean(flat(many)) + size * np.mean([REGULARISATION / n for n in own], axis=0)

    found = diagnose(step, (X, Y), equal_shards=even, replicas=(2,), micro_batches=(1, 2))
    assert not found.correct
    wanted = f"regularisation counts divided by the examples of each {name}"
    assert found.cause is not None and found.cause.name.startswith(wanted), str(found)
    right = diagnose(
        lambda s: right_mean(s) + size * REGULARISATION / count(s), (X, Y), equal_shards=even
    )
    assert right.correct, str(right)


def test_one_even_split_is_too_few_to_tell_parts_by() -> None:
    found = diagnose(
        lambda s: right_mean(s) + right_sum(s) * len(s), (X, Y), equal_shards=True, replicas=(2,)
    )
    assert not found.correct


def test_a_function_of_each_share_is_no_part_with_a_factor_in_even_shares() -> None:
    """Where all splits have two replicas, a factor fits what one order of the examples makes."""

    def spread(share):
        x = share[0]
        hidden = np.tanh(x @ W1)
        own = (hidden - hidden.mean(axis=0)) / len(x) / np.sqrt(hidden.var(axis=0) + 0.01)
        return np.concatenate([(x.T @ (own * (1 - hidden**2))).ravel(), np.zeros(W2.size)])

    def step(shares):
        many = shares if isinstance(shares[0], list) else [[share] for share in shares]
        joined = [tuple(np.concatenate(a) for a in zip(*s, strict=True)) for s in many]
        return right_mean(joined) + np.mean([spread(share) for share in joined], axis=0)

    found = diagnose(step, (X, Y), equal_shards=True, replicas=(2,), micro_batches=(1, 2))
    assert found.cause is not None
    assert found.cause.name == "batch statistics are not synchronised", str(found)


@pytest.mark.parametrize("size", [0.05, 0.5])
def test_weights_that_differ_by_a_bend_of_the_loss_are_even(size) -> None:
    def negatives(share):
        x = share[0]
        hidden = np.tanh(x @ W1)
        scores = np.exp(hidden @ hidden.T)
        back = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(x))
        back = (back @ hidden + back.T @ hidden) / len(x)
        return np.concatenate([(x.T @ (back * (1 - hidden**2))).ravel(), np.zeros(W2.size)])

    found = diagnose(
        lambda s: right_mean(s) + size * sum(len(p[0]) * negatives(p) for p in s) / count(s), (X, Y)
    )
    assert not found.correct
    assert "instead of weights" not in str(found), str(found)
