"""Noise of a thousandth, float32 and bfloat16 change no verdict; what noise hides is said."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from real_bugs import all_cases, is_named
from steps import REGULARISATION, WEIGHTS, X, Y, count, flat, mean, total
from test_loss_normalization_catalogue import MICRO, PLAIN, WEIGHTED, cases, windows

from samegrad._base.tree import map_structure
from samegrad_doctor import Outcome, StepError, diagnose


def bfloat16(values: Any) -> np.ndarray:
    """Rounded to eight bits, as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return kept.astype(np.uint32).view(np.float32)


def thousandth(values: Any, rng: np.random.Generator) -> np.ndarray:
    return values * (1 + 1e-3 * rng.normal(size=np.shape(values)))


def repeated(step):
    """Noise that is the same for the same update, as rounding is."""

    def run(shares):
        update = np.asarray(step(shares))
        return thousandth(update, np.random.default_rng(zlib.crc32(update.tobytes())))

    return run


def drawn(step):
    """Noise that is another one in each call, as of sums in any order."""
    rng = np.random.default_rng(0)
    return lambda shares: thousandth(np.asarray(step(shares)), rng)


NOISES = {
    "repeated": repeated,
    "drawn": drawn,
    "bfloat16": lambda step: lambda shares: bfloat16(step(shares)),
    "float32": lambda step: lambda shares: np.float32(step(shares)),
}
NOISY = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


@NOISY
@pytest.mark.parametrize(("name", "step"), cases(PLAIN))
def test_mistakes_over_replicas_are_named_in_noise(name, step, noise) -> None:
    found = diagnose(noise(step), (X, Y))
    assert found.cause and found.cause.name == name, str(found)


@NOISY
@pytest.mark.parametrize(("name", "step"), cases(MICRO))
def test_mistakes_over_micro_batches_are_named_in_noise(name, step, noise) -> None:
    step = noise(windows(step))
    found = diagnose(step, (X, Y), replicas=(1, 2, 3), micro_batches=(1, 2), max_examples=14)
    assert found.cause and found.cause.name == name, str(found)


@NOISY
@pytest.mark.parametrize(("name", "step"), cases(WEIGHTED))
def test_mistakes_with_weights_are_named_in_noise(name, step, noise) -> None:
    found = diagnose(noise(step), (X, Y, WEIGHTS), weights=WEIGHTS)
    assert found.cause and found.cause.name == name, str(found)


def clipped(shares):
    if len(shares) == 1:
        return mean(shares[0])
    parts = [total(p) / count(shares) for p in shares]
    return sum(g * min(1.0, 3.0 / np.linalg.norm(g)) for g in parts)


def clipped_windows(all_windows):
    parts = [total(p) / count(flat(all_windows)) for p in flat(all_windows)]
    if len(parts) == 1:
        return parts[0]
    return sum(g * min(1.0, 2.0 / np.linalg.norm(g)) for g in parts)


@NOISY
@pytest.mark.parametrize(
    ("step", "words", "options"),
    [
        (lambda s: sum(total(p) / count(s) + REGULARISATION for p in s), "once on every replica",
         {}),
        (lambda s: sum(total(p) / 64 + REGULARISATION for p in s), "once on every replica", {}),
        (lambda s: sum(total(p) for p in s) / count(s) + REGULARISATION / len(s),
         "divided by the replicas", {}),
        (lambda s: sum(total(p) for p in s) / 64 + REGULARISATION / len(s),
         "divided by the replicas", {}),
        (lambda s: sum(mean(p) for p in s) + REGULARISATION, "mean per replica, then sum", {}),
        (lambda s: sum(total(p) for p in s) / count(s) / len(s) + REGULARISATION,
         "divided by the global batch, then averaged", {}),
        (clipped, "clipped before", {}),
        (windows(clipped_windows), "every micro-batch",
         {"replicas": (1, 2), "micro_batches": (1, 2), "max_examples": 14}),
    ],
)  # fmt: skip
def test_terms_and_limits_are_named_in_noise(step, words, options, noise) -> None:
    found = diagnose(noise(step), (X, Y), **options)
    assert found.cause and words in found.cause.name, str(found)


@pytest.mark.parametrize("noise", ["drawn", "bfloat16"])
@pytest.mark.parametrize("bug", all_cases(), ids=lambda bug: bug.source.replace("/", "-"))
def test_a_real_bug_is_named_in_noise(bug, noise) -> None:
    rng = np.random.default_rng(0)

    def rough(values):
        values = np.asarray(values, np.float64)
        return thousandth(values, rng) if noise == "drawn" else bfloat16(values)

    def step(shares):
        result = bug.make()[0](shares)
        found = result if isinstance(result, Outcome) else Outcome(result)
        copies = found.replicas
        if copies is not None and noise == "bfloat16":  # equal copies stay equal
            copies = [map_structure(rough, copy) for copy in copies]
        return found._replace(update=map_structure(rough, found.update), replicas=copies)

    found = diagnose(step, bug.make()[1], **bug.options)
    assert is_named(bug, found), f"{bug.source}: wanted {bug.named!r}\n{found}"


def are_too_few(error, replicas, micro_batches) -> bool:
    """Whether a refusal says, and truly, that there are fewer examples than parts of any split."""
    told = re.search(r"there is no split .*: got (\d+) examples", str(error))
    parts = [r * k for r in replicas for k in micro_batches if r * k > 1]
    assert told is None or int(told[1]) < min(parts), str(error)
    return told is not None


def a_correct_step(rng, gradients, weights, term, kind, noise):
    """By the sum over all parts; each part is as noisy as the whole."""
    rough = {
        "thousandth": lambda g: thousandth(g, rng),
        "bfloat16": bfloat16,
        "float32": np.float32,
    }[noise]

    def step(shares):
        parts = [p for s in shares for p in (s if isinstance(s, list) else [s])]
        seen = np.concatenate([w for _, w in parts])
        by = {"mean": len(seen), "sum": 1, "fixed": 64, "weighted": seen.sum()}[kind]
        own = [(w if kind == "weighted" else np.ones(len(g))) @ g / by for g, w in parts]
        return rough(sum(rough(part + term / len(parts)) for part in own))

    return step


NOISE = st.sampled_from(["thousandth", "bfloat16", "float32"])
KIND = st.sampled_from(["mean", "sum", "fixed", "weighted"])
MICRO_BATCHES = st.sampled_from([(1,), (1, 2), (2, 3)])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(4, 20),
    parameters=st.integers(60, 400),
    kind=KIND,
    noise=NOISE,
    replicas=st.lists(st.integers(2, 4), min_size=1, max_size=2, unique=True),
    micro_batches=MICRO_BATCHES,
    held=st.sampled_from([0.0, 0.1, 1.0]),
    known=st.booleans(),
)
def test_correct_steps_are_correct_in_noise(
    seed, rows, parameters, kind, noise, replicas, micro_batches, held, known
) -> None:
    rng = np.random.default_rng(seed)
    gradients, weights = rng.normal(size=(rows, parameters)), rng.uniform(0.5, 2, rows)
    term = held * rng.normal(size=parameters) / (64 if kind == "fixed" else 1)
    step = a_correct_step(rng, gradients, weights, term, kind, noise)
    given_weights = weights if known and kind == "weighted" else None
    try:
        found = diagnose(
            step, (gradients, weights), replicas=replicas, micro_batches=micro_batches,
            weights=given_weights,
        )  # fmt: skip
    except StepError as error:  # nothing else is let through
        assume(not are_too_few(error, replicas, micro_batches))
        raise
    assert found.correct, str(found)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(4, 20),
    features=st.integers(6, 20),
    outputs=st.integers(1, 4),
    kind=KIND,
    noise=NOISE,
    micro_batches=MICRO_BATCHES,
    spread=st.sampled_from([0.0, 2.0]),
    held=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_correct_steps_are_never_accused_where_noise_hides_much(
    seed, rows, features, outputs, kind, noise, micro_batches, spread, held
) -> None:
    rng = np.random.default_rng(seed)
    x, error = rng.normal(size=(rows, features)), rng.normal(size=(rows, outputs))
    gradients = np.einsum("nf,no->nfo", x, error).reshape(rows, -1)  # few directions
    gradients *= np.exp(spread * rng.normal(size=(rows, 1)))
    weights, term = rng.uniform(0.5, 2, rows), held * rng.normal(size=gradients.shape[1])
    term /= 64 if kind == "fixed" else 1
    step = a_correct_step(rng, gradients, weights, term, kind, noise)
    try:
        found = diagnose(step, (gradients, weights), micro_batches=micro_batches)
    except StepError as limit:
        if not any(words in str(limit) for words in ("hides the weights", "depend on each other")):
            raise
    else:
        assert found.correct, str(found)


def test_what_noise_hides_is_said() -> None:
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(8, 100))
    term = 1e4 * rng.normal(size=100)
    with pytest.raises(StepError, match="noise in the updates .*hides the weights.*exact to"):
        diagnose(lambda s: thousandth(np.concatenate(s).mean(axis=0) + term, rng), gradients)
    rows = rng.normal(size=(8, 100))
    with pytest.raises(StepError, match="rounding hides the weights"):
        diagnose(lambda s: bfloat16(np.concatenate(s).sum(axis=0) / 1e4 + 1.0), rows)
