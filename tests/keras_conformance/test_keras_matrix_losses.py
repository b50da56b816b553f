"""Every loss of Keras, with masks and weights, on shares of a batch: the figures of one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras
from matrix_programs import (
    SHARES,
    assert_finite,
    assert_near,
    masked,
    on_one_device,
    on_replicas,
    public_classes,
    total,
)
from training_cases import HEADS, LOSSES, targets_for

import samegrad as tf

ops = keras.ops
LEFT_OUT = {"Loss": "it is the base class"}
NO_SEQUENCES = ("Circle", "CTC")  # they take a batch of vectors, or of whole sequences
REDUCTIONS = ["sum_over_batch_size", "mean_with_sample_weight", "sum"]


def _batch(count: int, inner: tuple[int, ...], targets: str) -> dict[str, Any]:
    """Inputs of 4 features, targets for 3 classes, a mask and weights for each value."""
    rng = np.random.default_rng(count + len(inner))
    shape = (count, *inner)
    y = targets_for(targets, shape, rng)
    x = rng.normal(size=(count, 5, 4) if targets == "words" else (*shape, 4))
    mask = rng.random(shape) < 0.6
    mask[-1] = False
    mask[0] = True
    weights = np.round(2 * rng.random(shape), 2)
    return {"x": x, "y": y, "mask": mask, "weight": weights}


def _step(name: str, head: str, arguments: dict[str, Any], weights: Any) -> Any:
    def step(x: Any, y: Any, mask: Any, weight: Any) -> dict[str, Any]:
        found = {}
        given = {"": (None, None), "mask": (mask, None), "weight": (None, weight)}
        for case, (m, w) in {**given, "mask and weight": (mask, weight)}.items():
            for reduction in REDUCTIONS:
                loss = getattr(keras.losses, name)(reduction=reduction, **arguments)
                with tf.GradientTape() as tape:
                    value = loss(y, masked(HEADS[head](ops.matmul(x, weights)), m), w)
                found[f"{case} {reduction}"] = value
                found[f"{case} {reduction} gradient"] = tape.gradient(value, weights)
        return found

    return step


def test_every_loss_of_keras_is_in_the_table() -> None:
    assert {case[0] for case in LOSSES} | LEFT_OUT.keys() == public_classes(keras.losses)


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize(("name", "head", "targets", "arguments"), LOSSES)
def test_a_loss_over_shares_is_that_of_the_batch(
    float64: None, name: str, head: str, targets: str, arguments: Any, inner: Any, traced: bool
) -> None:
    if inner and name in NO_SEQUENCES:
        return
    weights = tf.Variable(np.random.default_rng(7).normal(size=(4, 3)))
    step = _step(name, head, arguments, weights)
    for sizes in SHARES if traced else [[3, 2]]:
        batch = _batch(total(sizes), inner, targets)
        wanted = on_one_device(step, batch)
        assert_finite(wanted, sizes)
        assert_near(on_replicas(step, batch, sizes, traced=traced), wanted, sizes)
