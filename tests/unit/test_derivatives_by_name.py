"""Gradients of public functions have values where TensorFlow's have, and the same ones.

Recorded by record_tensorflow_derivatives.py.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from derivatives_by_name import POINTS, function, gradients

import samegrad as tf

RECORDED = json.loads((Path(__file__).parent / "tensorflow_derivatives.json").read_text())
# What samegrad refuses: matrices that are not symmetric, or that have no inverse.
REFUSED = {
    "linalg.cholesky 1", "linalg.cholesky 1 edges", "linalg.cholesky_solve 2 edges",
    "linalg.logdet 1", "linalg.logdet 1 edges", "linalg.triangular_solve 2 edges",
}  # fmt: skip
# Where TensorFlow has no gradient; or another one, for labels that are not distributions and for a
# beta that is not a scalar, whose gradient it sums.
OTHERWISE = {
    "image.hsv_to_rgb 1", "nn.softmax_cross_entropy_with_logits 2", "nn.silu 2", "nn.swish 2",
}  # fmt: skip
# At edges: a product with zeros and 0 to the power 0, x / 0 and bessel_i1 at 0, where TensorFlow's
# slopes are not those of the function; igamma at poles; a norm by negative limits; ties of colours.
OTHERWISE_AT_EDGES = {
    "clip_by_norm", "image.rgb_to_hsv", "math.bessel_i1", "math.cumprod", "math.igamma",
    "math.igammac", "math.pow", "math.xdivy", "pow",
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
    assert len(known()) >= 420


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", known())
def test_gradients_exist_where_tensorflow_has_them(call: str) -> None:
    name, operands, *point = call.split(" ")
    edges = " ".join(["", *point])
    got, want = gradients(tf, name, int(operands), POINTS[edges]), RECORDED[call]
    otherwise = call.removesuffix(edges) in OTHERWISE or (edges and name in OTHERWISE_AT_EDGES)
    if call in REFUSED:
        assert got is None
        return
    assert got is not None
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None or otherwise
            continue
        assert g is not None
        if not otherwise:
            np.testing.assert_allclose(g, w, rtol=0, atol=1e-4)


K = tf.keras
TARGETS = np.array([0.0, 1.0, 0.3])
# Without kinks, but made of functions that have them at 0.
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "sigmoid": lambda x: tf.nn.sigmoid_cross_entropy_with_logits(TARGETS, x),
    "weighted": lambda x: tf.nn.weighted_cross_entropy_with_logits(TARGETS, x, 3.0),
    "keras": lambda x: K.losses.binary_crossentropy(TARGETS, x, from_logits=True),
    "focal": lambda x: K.losses.binary_focal_crossentropy(TARGETS, x, from_logits=True),
    "log_cosh": lambda x: K.losses.log_cosh(TARGETS * 0.0, x),
    "huber": lambda x: K.losses.huber(TARGETS * 0.0, x),
    "logaddexp": lambda x: K.ops.logaddexp(x, x * 0.5),
    "logaddexp2": lambda x: K.ops.logaddexp2(x * 0.5, x),
    "reduce_logsumexp": lambda x: tf.reduce_logsumexp(tf.stack([x, -x]), 0),
    **{name: getattr(tf.nn, name) for name in ("softplus", "silu", "gelu", "tanh")},
    **{name: getattr(K.activations, name) for name in ("mish", "log_sigmoid", "squareplus")},
    **{name: getattr(tf.math, name) for name in ("bessel_i0", "bessel_i1", "erf", "asinh")},
    "i0": K.ops.i0,
    "sinc": K.ops.sinc,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_where_the_kinks_of_the_parts_meet(name: str) -> None:
    check_derivatives(SMOOTH[name], np.zeros(3), traced=True)


def test_i0_has_derivatives_between_its_zero_and_large_numbers() -> None:
    check_derivatives(K.ops.i0, np.array([0.5, 5.9, 6.0, 12.0]) / 4, traced=True)
    x = tf.constant([5.9, 20.0, 21.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = K.ops.i0(x)
    np.testing.assert_allclose(tape.gradient(y, x), tf.math.bessel_i1(x), rtol=1e-12)


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
