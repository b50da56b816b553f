"""Correct steps of any kind, sums or not, exact or rounded, never give false positives."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_noise import are_too_few, bfloat16, thousandth

from samegrad_doctor import StepError, diagnose

ROUGH = {
    "exact": lambda values, rng: values,
    "float32": lambda values, rng: np.float32(values),
    "bfloat16": lambda values, rng: bfloat16(values),
    "thousandth": thousandth,
}
LIMITS = ("hides the weights", "depend on each other", "the same size")


def centred(gradients):
    """As batch normalization does: what an example gives depends on the others."""
    spread = np.sqrt(gradients.var(axis=0) + 0.1)
    return (gradients - gradients.mean(axis=0)) / spread + 0.3 * np.tanh(gradients)


def softened(gradients, counts):
    """As a softmax over the batch does: weights that depend on all examples."""
    scores = np.exp(np.tanh(gradients.mean(axis=1)))
    return counts * scores / scores.mean()


def a_step(rng, kind, over, rough, term, limit):
    def step(shares):
        parts = [p for s in shares for p in (s if isinstance(s, list) else [s])]
        gradients, weights = (np.concatenate(leaves) for leaves in zip(*parts, strict=True))
        counts = weights if kind == "weighted" else np.ones(len(weights))
        by = {"mean": len(weights), "sum": 1, "fixed": 64, "weighted": weights.sum()}[kind]
        if over == "moments":
            gradients = centred(gradients)
        if over == "softmax":
            counts = softened(gradients, counts)
        update = counts @ gradients / by + term
        if over == "norm":
            update = update * min(1.0, limit / float(np.linalg.norm(update)))
        if over == "peak":
            update = np.clip(update, -limit / 3, limit / 3)
        pieces = [ROUGH[rough](update / len(parts), rng) for _ in parts]
        return ROUGH[rough](sum(pieces), rng)

    return step


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(3, 24),
    parameters=st.integers(16, 80),
    spread=st.sampled_from([0.0, 1.0, 2.0]),
    kind=st.sampled_from(["mean", "sum", "fixed", "weighted"]),
    over=st.sampled_from(["nothing", "moments", "softmax", "norm", "peak"]),
    rough=st.sampled_from(list(ROUGH)),
    held=st.sampled_from([0.0, 0.01, 1.0, 10.0]),
    replicas=st.sampled_from([(2, 3), (2,), (3, 4), (2, 5)]),
    micro_batches=st.sampled_from([(1,), (1, 2), (2, 3)]),
)
@example(  # beside the term bfloat16 leaves nothing of the examples
    seed=0, rows=3, parameters=16, spread=0.0, kind="fixed", over="moments", rough="bfloat16",
    held=10.0, replicas=(2, 3), micro_batches=(1,),
)  # fmt: skip
@example(  # beside the term repeats differ more than examples
    seed=0, rows=3, parameters=16, spread=0.0, kind="fixed", over="nothing", rough="thousandth",
    held=1.0, replicas=(2, 3), micro_batches=(1,),
)  # fmt: skip
def test_correct_steps_of_any_kind_are_never_accused(
    seed, rows, parameters, spread, kind, over, rough, held, replicas, micro_batches
) -> None:
    rng = np.random.default_rng(seed)
    gradients = rng.normal(size=(rows, parameters)) * np.exp(spread * rng.normal(size=(rows, 1)))
    term = held * rng.normal(size=parameters)
    step = a_step(rng, kind, over, rough, term, float(rng.uniform(0.2, 5)))
    batch = (gradients, rng.uniform(0.5, 2, rows))
    try:
        found = diagnose(step, batch, replicas=replicas, micro_batches=micro_batches)
    except StepError as error:
        if not (
            are_too_few(error, replicas, micro_batches)
            or any(words in str(error) for words in LIMITS)
        ):
            raise
    else:
        assert found.correct, str(found)
