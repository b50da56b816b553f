"""Every layer of Keras: its weights are converted and return bit by bit, or it is rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, class_of

import samegrad as tf
from samegrad import convert

# Layers without a counterpart in PyTorch, whose weights need a layout of the user's.
REJECTED = {
    "ConvLSTM1D": ValueError,
    "ConvLSTM2D": ValueError,
    "ConvLSTM3D": ValueError,
    "GRU, backwards": NotImplementedError,  # it has reset_after=False
    "LocallyConnected1D": ValueError,
    "LocallyConnected2D": ValueError,
    "STFTSpectrogram": ValueError,
    "SpectralNormalization": ValueError,
}


def created(name: str) -> Any:
    case = CASES[name]
    layer = class_of(name)(**case.made())
    layer(*case.enter(*(tf.constant(x) for x in case.inputs)), **case.options)
    return layer


@pytest.mark.parametrize("name", sorted(CASES.keys() - REJECTED))
def test_weights_of_every_layer_return_bit_by_bit(name: str) -> None:
    layer = created(name)
    before = [variable.numpy() for variable in layer.weights]
    weights = convert.to_torch(layer)
    for variable in layer.weights:
        variable.assign(np.zeros(variable.shape, variable.numpy().dtype))
    convert.from_torch(layer, weights)
    for value, variable in zip(before, layer.weights, strict=True):
        assert value.tobytes() == variable.numpy().tobytes(), variable.path
    assert sum(a.size for a in weights.values()) >= sum(value.size for value in before)


@pytest.mark.parametrize("name", REJECTED)
def test_layer_without_a_counterpart_is_rejected(name: str) -> None:
    layer = created(name)
    with pytest.raises(REJECTED[name], match="must have a known layout|must reset after"):
        convert.to_torch(layer)
