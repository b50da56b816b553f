"""A model of Keras is planned as the same mathematics written by hand on variables are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from keras_overhead import examples, plan_steps
from keras_pairs import PAIRS, SMALL, Sizes

import samegrad as tf

# What is planned by size is planned as for the tutorial's images.
SIZES = {"cnn": Sizes(batch=8)}
FUSED = [
    "conv2d_bias", "max_pool2d_grad", "sparse_softmax_cross_entropy_grad",
    "dot_product_attention", "dot_product_attention_grad", "fused_rows", "replay",
]  # fmt: skip


def compiled(name: str) -> tuple[list[Any], tuple[Any, Any], list[list[float]]]:
    """Both steps, of Keras and as written, a batch, and the losses of three steps of each."""
    pair = PAIRS[name](tf, SIZES.get(name, SMALL))
    batch = examples(pair.inputs), examples(pair.labels)
    steps = [tf.function(model.step) for model in (pair.of_keras, pair.written)]
    return steps, batch, [[float(step(*batch)) for _ in range(3)] for step in steps]


@pytest.fixture(scope="module")
def both() -> dict[str, Any]:
    return {name: compiled(name) for name in PAIRS}


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"normalized"}))
def test_both_forms_train_alike(both: dict[str, Any], name: str) -> None:
    keras, written = both[name][2]
    np.testing.assert_allclose(keras, written, rtol=2e-6)
    assert keras[0] > keras[-1]


def test_with_dropout_both_forms_train(both: dict[str, Any]) -> None:
    for losses in both["normalized"][2]:
        assert np.isfinite(losses).all() and len(set(losses)) == 3


@pytest.mark.parametrize("name", PAIRS)
def test_keras_has_no_more_plan_steps(both: dict[str, Any], name: str) -> None:
    (keras, written), batch, _ = both[name]
    assert 0 < plan_steps(keras, *batch) <= plan_steps(written, *batch)


@pytest.mark.parametrize(("name", "most"), [("cnn", 7), ("tiny", 6)])
def test_steps_of_the_tutorials_network_and_of_a_tiny_one(
    both: dict[str, Any], name: str, most: int
) -> None:
    steps, batch, _ = both[name]
    assert all(plan_steps(step, *batch) <= most for step in steps)


@pytest.mark.parametrize("name", PAIRS)
def test_keras_takes_the_same_fused_rows(both: dict[str, Any], name: str) -> None:
    steps, batch, _ = both[name]
    plans = [str(step.explain(*batch)) for step in steps]
    for op in FUSED:
        keras, written = (len(re.findall(rf"%\d+ {op} ", plan)) for plan in plans)
        assert keras >= written if "fused" not in op else keras <= written, op


@pytest.mark.parametrize("name", PAIRS)
def test_keras_goes_through_the_examples_as_often(both: dict[str, Any], name: str) -> None:
    steps, batch, _ = both[name]
    kinds = [[step.kind for step in function.explain(*batch).steps] for function in steps]
    keras, written = (found.count("loop") for found in kinds)
    assert 0 < keras <= written


def test_what_a_layer_shows_in_another_shape_is_no_step(both: dict[str, Any]) -> None:
    (keras, _), batch, _ = both["cnn"]
    for step in keras.explain(*batch).steps:
        if step.kind in ("once", "side_by_side"):
            assert "reshape" not in str(step.operations)


def test_updates_of_counters_and_slots_are_side_by_side(both: dict[str, Any]) -> None:
    (keras, _), batch, _ = both["tiny"]
    *_, last = keras.explain(*batch).steps
    assert last.kind == "side_by_side"
    assert len(last.operations) == 5  # four weights and the number of updates
