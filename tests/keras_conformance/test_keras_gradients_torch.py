"""The gradients of the tutorial's network agree with PyTorch's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli.fashion_mnist import create_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def by_torch(images: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> list[np.ndarray]:
    """The gradients of the mean loss; kernels are moved to PyTorch's order and back."""
    functional = torch.nn.functional
    leaves = [torch.tensor(w, requires_grad=True) for w in weights]
    conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4 = leaves
    x = torch.tensor(images).permute(0, 3, 1, 2)
    x = functional.max_pool2d(torch.relu(functional.conv2d(x, conv1.permute(3, 2, 0, 1), bias1)), 2)
    x = functional.max_pool2d(torch.relu(functional.conv2d(x, conv2.permute(3, 2, 0, 1), bias2)), 2)
    x = x.permute(0, 2, 3, 1).flatten(1)
    x = torch.relu(x @ dense1 + bias3) @ dense2 + bias4
    functional.cross_entropy(x, torch.tensor(labels)).backward()
    return [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("replicas", [1, 4])
def test_the_cnns_gradients_are_those_of_pytorch(float64: None, replicas: int) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(24, 28, 28, 1)), rng.integers(0, 10, 24)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = create_model()
        model.build((None, 28, 28, 1))
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_object(y, model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        return tf.distribute.get_replica_context().all_reduce("sum", gradients)

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(24)
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))
    found = [strategy.experimental_local_results(g)[0].numpy() for g in strategy.run(step, batch)]
    expected = by_torch(images, labels, [v.numpy() for v in model.trainable_variables])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())
