"""First and second derivatives of the blocks, by inputs and weights, beside differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives

import samegrad as tf
from samegrad.cli._translate._blocks import DecoderBlock, EncoderBlock, Sizes

SEEN = np.array([[[True, True, True]], [[True, False, False]]])
# One of each kind: attention, normalization, feed-forward.
WEIGHTS = ("own/query/kernel", "own/attention_output/bias", "own_norm/gamma", "rise/bias")


def numbers(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def with_weights(block: Any, names: tuple[str, ...]) -> Any:
    """The block as a function of some of its weights."""
    paths = [v.path.split("/", 1)[1] for v in block.trainable_variables]
    arrays = [v.numpy() for v in block.trainable_variables]
    others = [v.numpy() for v in block.non_trainable_variables]

    def call(weights: Any, *inputs: Any) -> Any:
        given = [tf.constant(array) for array in arrays]
        for name, weight in zip(names, weights, strict=True):
            given[paths.index(name)] = weight
        return block.stateless_call(given, others, *inputs)[0]

    values = dict(zip(paths, arrays, strict=True))
    return call, [values[name] + numbers(*values[name].shape, seed=9) * 0.3 for name in names]


@pytest.mark.parametrize("before", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_derivatives_of_a_block_are_those_of_differences(kind: str, before: bool) -> None:
    tf.keras.utils.set_random_seed(0)
    sizes = Sizes(1, 4, 5, 2, dropout=0.0, normalize_first=before)
    block = (EncoderBlock if kind == "encoder" else DecoderBlock)(sizes, dtype="float64")
    block.build(None)
    call, weights = with_weights(block, WEIGHTS)
    source, target = numbers(2, 3, 4, seed=1), numbers(2, 2, 4, seed=2)

    def encode(x: Any, *given: Any) -> Any:
        return call(given, x, SEEN)

    def decode(x: Any, memory: Any, *given: Any) -> Any:
        return call(given, x, memory, SEEN)

    if kind == "encoder":
        check_derivatives(encode, source, *weights, traced=True, tolerance=2e-6)
    else:
        check_derivatives(decode, target, source, *weights, traced=True, tolerance=2e-6)
