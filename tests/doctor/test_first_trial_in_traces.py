"""The first evaluation set in samegrad, as the check of loss normalization sees it."""

from __future__ import annotations

import warnings

import pytest
from eval_case import Case, cases
from samegrad_steps import BUILDS

import samegrad as tf
from samegrad.errors import LossNormalizationWarning

CASES = cases("first_trial", "samegrad")
NAMES = {  # as the doctor names them
    "sum_over_batch_size": "mean of the replicas' means",
    "weighted_over_sentences": "mean of the replicas' means",
    "positive_anchors": "mean of the replicas' means",
    "reduce_mean": "mean per replica, then sum",
    "masked_mean_added": "mean per replica, then sum",
    "sum_over_workers": "mean per replica, then sum",
    "one_over_gpus": "divided by the global batch, then averaged",
    "l2_on_every_replica": "regularisation counts once on every replica",
}


def said(case: Case, rows: int) -> list[str]:
    """What is said while two replicas' function is traced."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        function, _ = BUILDS[f"first_trial.in_samegrad.{case.name}"]()
    _, batch = case.make()
    data = tf.data.Dataset.from_tensor_slices(tuple(a[:rows] for a in batch)).batch(rows)
    step = tf.function(lambda parts: strategy.run(function, args=parts))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for parts in strategy.experimental_distribute_dataset(data):
            step(parts)
    return [str(w.message) for w in caught if w.category is LossNormalizationWarning]


def of_kind(kind: str, where: str = "update") -> list[Case]:
    return [case for case in CASES if case.kind == kind and case.where == where]


@pytest.mark.parametrize("case", of_kind("wrong"), ids=lambda case: case.name)
def test_a_wrong_program_is_named_before_it_runs(case: Case) -> None:
    (text,) = said(case, 7)
    assert f"{NAMES[case.name]}:" in text


@pytest.mark.parametrize("rows", [7, 12])
@pytest.mark.parametrize(
    "case", [*of_kind("right"), *of_kind("wrong", "report")], ids=lambda case: case.name
)
def test_a_program_with_the_right_update_is_left_alone(case: Case, rows: int) -> None:
    assert not said(case, rows)


@pytest.mark.parametrize("case", of_kind("even"), ids=lambda case: case.name)
def test_a_program_for_equal_shares_is_told_when_it_is_right(case: Case) -> None:
    (text,) = said(case, 12)
    assert "right while all replicas divide by the same count" in text
