"""What replicas make together in every micro-batch, what depends on places, pairs and order."""

from __future__ import annotations

import numpy as np
import pytest
from steps import W1, X, Y, count, flat, total

from samegrad_doctor import Outcome, diagnose

WINDOWS = {"replicas": (2,), "micro_batches": (2,)}
STATISTICS = "batch statistics are those of each micro-batch"


def windows_of(shares):
    """The micro-batches of all replicas together, of a step that may have one each."""
    many = shares if isinstance(shares[0], list) else [[share] for share in shares]
    return [
        tuple(
            np.concatenate(arrays) for arrays in zip(*(window[k] for window in many), strict=True)
        )
        for k in range(len(many[0]))
    ]


def of_centred(share):
    """The gradient of a mean over examples whose hidden units are centred over the batch."""
    x, y = share
    hidden = np.tanh(x @ W1)
    centred = hidden - hidden.mean(axis=0)
    error = 2 * centred * np.square(y).sum(axis=1, keepdims=True) / len(x)
    back = (error - error.mean(axis=0)) * (1 - hidden**2)
    return np.concatenate([(x.T @ back).ravel(), np.zeros(10)])


def of_windows(shares):
    parts = windows_of(shares)
    return sum(len(part[0]) * of_centred(part) for part in parts) / count(parts)


def test_statistics_of_each_micro_batch_over_all_replicas_are_named() -> None:
    found = diagnose(of_windows, (X, Y), **WINDOWS)
    assert found.cause is not None and found.cause.name == STATISTICS, str(found)


def test_the_same_step_without_micro_batches_is_right() -> None:
    assert diagnose(of_windows, (X, Y)).correct


def test_a_part_that_is_made_for_each_micro_batch_is_told_from_the_rest() -> None:
    def step(shares):
        parts = windows_of(shares)
        return np.mean([*map(of_centred, parts)], axis=0) + sum(map(total, parts)) / count(parts)

    found = diagnose(step, (X, Y), **WINDOWS)
    assert found.cause is not None and found.cause.name == f"in a part of the loss, {STATISTICS}"


def test_a_limit_in_every_reduced_micro_batch_is_named() -> None:
    def step(shares):
        parts = windows_of(shares)
        made = [total(part) / count(parts) for part in parts]
        return sum(g * min(1.0, 1.0 / np.linalg.norm(g)) for g in made)

    found = diagnose(step, (X, Y), **WINDOWS)
    assert (
        found.cause is not None and found.cause.name == "gradients are clipped in every micro-batch"
    )


def test_roots_of_reduced_micro_batches_are_named_in_reports() -> None:
    def step(shares):
        parts = windows_of(shares)
        roots = [np.sqrt(np.square(part[1]).mean()) for part in parts]
        sizes = [len(part[0]) for part in parts]
        return Outcome(sum(map(total, parts)) / count(parts), loss=np.average(roots, weights=sizes))

    found = diagnose(step, (X, Y), **WINDOWS)
    assert found.correct and "each step's micro-batch makes it by itself" in (
        found.reported_loss_issue or ""
    )


@pytest.mark.parametrize(
    ("divisor", "formula"),
    [
        (lambda n, r, k: -(-n // r) * r, "⌈W/R⌉"),
        (lambda n, r, k: n // (r * k) * r * k, "⌊W/RK⌋"),
    ],
)
def test_a_quotient_that_is_rounded_shows_in_the_formula(divisor, formula) -> None:
    def step(shares):
        many = shares if isinstance(shares[0], list) else [[share] for share in shares]
        parts = flat(many)
        return sum(map(total, parts)) / divisor(count(parts), len(many), len(many[0]))

    found = diagnose(step, (X, Y), replicas=(2, 3), micro_batches=(1, 2))
    assert found.cause is not None and formula in found.cause.formula, str(found)


@pytest.mark.parametrize("partner", [lambda a: np.roll(a, 1, axis=0), lambda a: a[::-1]])
def test_examples_that_are_mixed_with_others_of_their_share_are_told_from_noise(partner) -> None:
    def step(shares):
        mixed = [(0.6 * x + 0.4 * partner(x), y) for x, y in shares]
        return sum(map(total, mixed)) / count(shares)

    found = diagnose(step, (X, Y))
    assert found.cause is not None
    assert found.cause.name == "each replica pairs the examples of its own shard"


def test_noise_for_each_row_of_a_share_keeps_its_name() -> None:
    noise = np.random.default_rng(2).normal(size=X.shape)

    def step(shares):
        return sum(total((x + noise[: len(x)], y)) for x, y in shares) / count(shares)

    found = diagnose(step, (X, Y))
    assert found.cause is not None
    assert found.cause.name == "dropout or noise is equal on all replicas"


def test_a_penalty_of_the_first_half_of_a_share_is_named() -> None:
    def penalty(share):
        half = tuple(a[: max(1, len(a) // 2)] for a in share)
        return total(half) / len(half[0])

    def step(shares):
        rest = sum(total((x, 2 * y)) for x, y in shares) / count(shares)
        return rest + sum(map(penalty, shares)) / len(shares)

    found = diagnose(step, (X, Y))
    assert found.cause is not None
    assert found.cause.name == "each replica splits its own shard", str(found)
    assert "a part of the loss" in str(found)


def attention(shares, gradient_of_others):
    """Every example is drawn to all others: the gradient with regard to the own and to theirs."""
    hidden = [np.tanh(share[0] @ W1) for share in shares]
    gradients = [np.zeros_like(own) for own in hidden]
    for r, own in enumerate(hidden):
        for s, other in enumerate(hidden):
            weights = np.exp(own @ other.T)
            gradients[r] += weights @ other
            if r == s or gradient_of_others:
                gradients[s] += weights.T @ own
    made = [
        (share[0].T @ (gradient * (1 - own**2))).ravel()
        for share, own, gradient in zip(shares, hidden, gradients, strict=True)
    ]
    return sum(made) / count(shares) ** 2


def test_pairs_of_examples_tell_that_no_gradient_passes_between_replicas() -> None:
    assert diagnose(lambda shares: attention(shares, True), (X, Y)).correct
    found = diagnose(lambda shares: attention(shares, False), (X, Y))
    assert found.cause is not None, str(found)
    assert found.cause.name == "no gradient passes through what the replicas exchange"


def test_a_step_in_every_micro_batch_is_named() -> None:
    def step(windows):
        (window,) = windows
        moved, parts = np.zeros(40), window if isinstance(window, list) else [window]
        for x, y in parts:
            now = W1 - 0.05 * moved[:30].reshape(6, 5)
            hidden = np.tanh(x @ now)
            error = 2 * (hidden[:, :2] - y) / len(parts) / len(x)
            back = np.pad(error, ((0, 0), (0, 3))) * (1 - hidden**2)
            moved = moved + np.concatenate([(x.T @ back).ravel(), np.zeros(10)])
        return moved

    found = diagnose(step, (X, Y), replicas=(1,), micro_batches=(2, 3))
    assert found.cause is not None, str(found)
    assert found.cause.name == "the parameters change between micro-batches"


def test_what_is_halved_with_each_micro_batch_is_named() -> None:
    def step(windows):
        (window,) = windows
        found = np.zeros(40)
        for part in window if isinstance(window, list) else [window]:
            found = found / 2 + total(part) / 11
        return found

    found = diagnose(step, (X, Y), replicas=(1,), micro_batches=(2, 3))
    assert found.cause is not None and "halved" in found.cause.name, str(found)


@pytest.mark.parametrize("even", [True, False])
def test_a_part_of_the_parameters_is_told_of_shares_of_any_size(even) -> None:
    def step(shares):
        made = sum(map(total, shares)) / count(shares)
        return np.concatenate([made[:30] * len(shares), made[30:]])

    found = diagnose(step, (X, Y), equal_shards=even)
    assert found.cause is not None
    assert found.cause.name.startswith("a part of the parameters"), str(found)


def test_a_step_for_even_batches_alone_is_not_tried_on_others() -> None:
    def step(shares):
        made = []
        for x, y in shares:
            halves = zip(x.reshape(2, -1, 6), y.reshape(2, -1, 2), strict=True)
            made.append(sum(map(total, halves)))
        return sum(made) / count(shares)

    assert diagnose(step, (X, Y), equal_shards=True).correct
