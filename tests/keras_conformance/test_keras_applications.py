"""Whole models of keras.applications: TensorFlow's gradients, and the same bits on any replicas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import record_keras_applications as programs
from keras_programs import keras

import samegrad as tf

RECORDED = Path(__file__).with_name("keras_applications.npz")


@pytest.mark.parametrize("name", programs.NAMES)
def test_gradients_and_statistics_are_those_of_tensorflow(float64: None, name: str) -> None:
    with np.load(RECORDED) as wanted:
        for key, found in programs.recorded(keras, tf, name).items():
            true = wanted[key]
            assert found.shape == true.shape
            if not true.ndim:
                np.testing.assert_allclose(found, true, rtol=1e-12)
                continue
            norms = true[:, :1]
            # A bias before a batch normalization has a gradient of 0, but for rounding.
            allowed = 1e-9 * norms + 1e-13 * norms.max()
            worst = (np.abs(found - true) / allowed).max()
            assert worst <= 1, f"{key}: {worst:.2g} times what is allowed"


def _bits(name: str, replicas: int) -> str:
    """The hash of all weights after an epoch of two batches of 16 images, with dropout."""
    keras.utils.set_random_seed(3)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = programs.application(keras, name, 32, drop=True)
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    images, labels = programs.examples(32, 32, "float32")
    model.fit(images, labels, batch_size=16, verbose=0)
    weights = [np.asarray(weight.value) for weight in model.weights]
    assert all(np.isfinite(weight).all() for weight in weights)
    return tf.fingerprint(weights)


@pytest.mark.parametrize("name", programs.NAMES)
def test_an_epoch_has_the_same_bits_on_any_replicas(name: str) -> None:
    assert len({_bits(name, replicas) for replicas in (1, 2, 3)}) == 1
