"""Gradients of public functions have values where TensorFlow's have, and the same ones.

Recorded by record_tensorflow_derivatives.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from derivatives_by_name import function, gradients

import samegrad as tf

RECORDED = json.loads((Path(__file__).parent / "tensorflow_derivatives.json").read_text())
# What samegrad refuses: matrices that are not symmetric.
REFUSED = {"linalg.cholesky 1", "linalg.logdet 1"}
# Where TensorFlow has no gradient; or another one, for labels that are not distributions and for a
# beta that is not a scalar, whose gradient it sums.
OTHERWISE = {
    "math.angle 1", "image.hsv_to_rgb 1", "nn.softmax_cross_entropy_with_logits 2",
    "nn.silu 2", "nn.swish 2",
}  # fmt: skip


def known() -> list[str]:
    """Return the recorded calls whose functions samegrad has."""
    found = []
    for call in RECORDED:
        try:
            function(tf, call.split(" ")[0])
            found.append(call)
        except AttributeError:
            continue
    return found


def test_most_recorded_functions_are_there() -> None:
    assert len(known()) >= 210


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", known())
def test_gradients_exist_where_tensorflow_has_them(call: str) -> None:
    name, operands = call.split(" ")
    got, want = gradients(tf, name, int(operands)), RECORDED[call]
    if call in REFUSED:
        assert got is None
        return
    assert got is not None
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None or call in OTHERWISE
            continue
        assert g is not None
        if call not in OTHERWISE:
            np.testing.assert_allclose(g, w, rtol=0, atol=1e-4)


def test_nextafter_has_the_derivative_of_its_first_operand() -> None:
    x, to = tf.constant([1.0, -2.0]), tf.constant([2.0, -3.0])

    @tf.function
    def both(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([x, to])
            y = tf.math.nextafter(x, to)
        return [y, *tape.gradient(y, [x, to])]

    y, slope, none = (part.numpy() for part in both(x))
    np.testing.assert_array_equal(y, np.nextafter(x.numpy(), to.numpy()))
    assert slope.tolist() == [1.0, 1.0] and none.tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="must be float32 or float64: got float16"):
        tf.math.nextafter(tf.constant([1.0], tf.float16), tf.constant([2.0], tf.float16))
