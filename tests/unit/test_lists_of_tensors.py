"""Lists with tensors in them at any depth: TensorFlow's numbers, dtypes and derivatives."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from list_programs import PROGRAMS, answer

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_lists.json").read_text())


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tensorflow(name, traced):
    found, recorded = answer(tf, name, traced), RECORDED["results"][name]
    if recorded == "error":
        assert found == "error"
        return
    assert found[0] == recorded[0]
    np.testing.assert_allclose(found[1], recorded[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], recorded[2], rtol=2e-6)


@pytest.mark.parametrize("shape", [None, [4], [1, 4]])
def test_constants_of_tensors_keep_derivatives_and_shape(shape):
    weight = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        made = tf.constant([[weight, 1.0], [weight, weight]], shape=shape)
    assert made.shape == (shape or [2, 2])
    assert float(tape.gradient(made, weight)) == 3.0


def test_the_shape_of_a_constant_of_a_tensor():
    assert tf.constant(tf.ones(4), shape=(2, 2)).shape == (2, 2)
    np.testing.assert_array_equal(tf.constant(tf.constant([7]), shape=(2, 1)), [[7], [7]])
    with pytest.raises(ValueError, match=r"one element or as many .* got 3 and \(2, 2\)"):
        tf.constant(tf.ones(3), shape=(2, 2))


def test_sizes_beside_tensors_take_their_dtype():
    @tf.function
    def sizes(x):
        return tf.convert_to_tensor([[x.shape[0], 2], [tf.reduce_sum(x), 1]])

    np.testing.assert_array_equal(sizes(tf.ones(3)), [[3, 2], [3, 1]])


def test_what_lists_of_tensors_must_be():
    with pytest.raises(TypeError, match=r"one dtype: got float32 and int32 in .*; use .*cast"):
        tf.convert_to_tensor([[tf.constant(1.0)], [tf.constant(1)]])
    with pytest.raises(ValueError, match=r"one shape: got shapes \[\(2,\), \(1,\)\]"):
        tf.convert_to_tensor([[tf.constant(1.0), 2.0], [3.0]])


@pytest.mark.parametrize("rest", [[], [1.0], [tf.constant(1.0)]], ids=["alone", "number", "tensor"])
@pytest.mark.parametrize("make", [tf.constant, tf.convert_to_tensor, tf.strings.length])
def test_a_list_that_holds_itself_is_refused(make: Any, rest: list[Any]) -> None:
    endless: list[Any] = []
    endless += [endless, endless, *rest]
    with pytest.raises((TypeError, ValueError)):
        make(endless)
