"""Gradients of gradients through layers of tf.keras, on one device and inside `run`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_values import cut, local, shares

import samegrad as tf

layers = tf.keras.layers
pytestmark = pytest.mark.usefixtures("float64")

# From images of 6 by 6 pixels with two channels, unless their input has another.
LAYERS: dict[str, Callable[[], list[Any]]] = {
    "strided SAME": lambda: [layers.Conv2D(3, 5, 2, "same")],
    "strided VALID": lambda: [layers.Conv2D(3, 3, 2, "valid")],
    "one channel": lambda: [layers.Conv2D(1, 3, 1, "same"), layers.Conv2D(3, 5, 2, "same")],
    "dilated": lambda: [layers.Conv2D(3, 3, padding="same", dilation_rate=2)],
    "grouped": lambda: [layers.Conv2D(4, 3, padding="same", groups=2)],
    "depthwise": lambda: [layers.DepthwiseConv2D(3, padding="same")],
    "transposed SAME": lambda: [layers.Conv2DTranspose(3, 5, 2, "same")],
    "transposed VALID": lambda: [layers.Conv2DTranspose(3, 3, 2, "valid")],
    "transposed to one channel": lambda: [layers.Conv2DTranspose(1, 4, 2, "same")],
    "layer normalization": lambda: [layers.LayerNormalization()],
    "group normalization": lambda: [layers.GroupNormalization(1)],
    "batch normalization": lambda: [layers.BatchNormalization()],
    "spectral normalization": lambda: [
        layers.SpectralNormalization(layers.Conv2D(2, 3, padding="same"))
    ],
    "LeakyReLU": lambda: [layers.LeakyReLU(0.2)],
    "PReLU": lambda: [layers.PReLU(alpha_initializer=tf.keras.initializers.Constant(0.3))],
    "ELU": lambda: [layers.ELU(0.7)],
    "GELU": lambda: [layers.Activation("gelu")],
    "softplus": lambda: [layers.Activation("softplus")],
    "average pooling": lambda: [layers.AveragePooling2D(2)],
    "max pooling": lambda: [layers.MaxPooling2D(2)],
    "upsampling": lambda: [layers.UpSampling2D(2)],
    "dense": lambda: [layers.Flatten(), layers.Dense(5, "tanh")],
}
# Its power iteration goes on with each call, and no gradient flows through it.
NO_FUNCTION = "spectral normalization"
EXAMPLES = 5


def build(name: str) -> Any:
    """Images `[n, 6, 6, 2]` to scores `[n, 1]`; the layer has curved ones on both sides."""
    tf.keras.utils.set_random_seed(2)
    return tf.keras.Sequential(
        [
            tf.keras.Input((6, 6, 2)),
            layers.Conv2D(2, 3, padding="same", activation="tanh"),
            *LAYERS[name](),
            layers.Activation("tanh"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


def images() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(EXAMPLES, 6, 6, 2))


def penalty(model: Any, x: Any) -> Any:
    """The mean distance of the norms from 1: of a gradient."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        scores = tf.tanh(model(x, training=True))
    norms = tf.norm(tape.gradient(scores, x), axis=[1, 2, 3])
    return tf.nn.compute_average_loss((norms - 1.0) ** 2)


def gradients(model: Any, x: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        loss = penalty(model, x)
    weights = model.trainable_variables
    zero = tf.UnconnectedGradients.ZERO
    return list(tape.gradient(loss, weights, unconnected_gradients=zero))


@pytest.mark.parametrize("name", [name for name in LAYERS if name != NO_FUNCTION])
def test_the_gradient_of_a_penalty_is_that_of_finite_differences(name: str) -> None:
    model, x = build(name), tf.constant(images())
    kept = [v.numpy() for v in model.non_trainable_variables]

    def value() -> float:
        for variable, old in zip(model.non_trainable_variables, kept, strict=True):
            variable.assign(old)
        return float(penalty(model, x))

    value()
    for variable, old in zip(model.non_trainable_variables, kept, strict=True):
        variable.assign(old)
    found = gradients(model, x)
    rng = np.random.default_rng(1)
    some = False
    for variable, gradient in zip(model.trainable_variables, found, strict=True):
        start, way = variable.numpy(), rng.normal(size=variable.shape)
        ends = []
        for step in (1e-5, -1e-5):
            variable.assign(start + step * way)
            ends.append(value())
        variable.assign(start)
        wanted = (ends[0] - ends[1]) / 2e-5
        assert float(tf.reduce_sum(gradient * way)) == pytest.approx(wanted, rel=1e-5, abs=1e-8)
        some = some or abs(wanted) > 1e-4
    assert some


# Statistics of the batch make each score depend on all examples: inside `run`, the gradient by
# the images of a replica is then that of its own scores.
OF_ONE_EXAMPLE = [name for name in LAYERS if name != "batch normalization"]


@pytest.mark.parametrize("counts", [(3, 2), (2, 2, 1, 0)])
@pytest.mark.parametrize("name", OF_ONE_EXAMPLE)
def test_replicas_find_the_gradients_of_one_device(name: str, counts: tuple[int, ...]) -> None:
    expected = gradients(build(name), tf.constant(images())._as_examples(0, 1))
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    with strategy.scope():
        model = build(name)

    def step(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("sum", gradients(model, x))

    found = strategy.run(step, args=(shares(*cut(images(), counts)),))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(local(one)[0], other.numpy(), rtol=1e-9, atol=1e-12)


def on_replicas(step: Callable[[Any], Any], x: np.ndarray, counts: tuple[int, ...]) -> list[Any]:
    """The rows that all replicas return, joined."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    found = strategy.run(step, args=(shares(*cut(x, counts)),))
    return [np.concatenate(local(value)) for value in found]


@pytest.mark.parametrize("counts", [(4, 3), (3, 3, 1)])
def test_tapes_nest_to_any_depth(counts: tuple[int, ...]) -> None:
    """All derivatives of sin up to the fifth."""

    def derivatives(x: Any, depth: int) -> list[Any]:
        if depth == 0:
            return [tf.sin(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            values = derivatives(x, depth - 1)
        return [*values, tape.gradient(values[-1], x)]

    x = np.linspace(-2, 2, 7)
    found = on_replicas(lambda share: derivatives(share, 5), x, counts)
    for order, value in enumerate(found):
        np.testing.assert_allclose(value, np.sin(x + order * math.pi / 2), atol=1e-13)


def test_jacobians_of_layers_inside_run() -> None:
    dense = layers.Dense(3, "tanh")
    dense.build((None, 4))
    x = np.random.default_rng(5).normal(size=(5, 4))

    def step(share: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(share)
            y = dense(share)
            sums = tf.reduce_sum(y, axis=0)
        return tape.batch_jacobian(y, share), tape.jacobian(sums, dense.kernel)

    by_images, by_weights = on_replicas(step, x, (3, 2))
    slope = 1 - np.tanh(x @ dense.kernel.numpy()) ** 2
    wanted = slope[:, :, None] * dense.kernel.numpy().T
    np.testing.assert_allclose(by_images, wanted, rtol=1e-12)
    wanted = np.einsum("no,ni,op->noip", slope, x, np.eye(3))
    found = by_weights.reshape(2, 3, 4, 3)  # of each replica
    for value, rows in zip(found, cut(wanted, (3, 2)), strict=True):
        np.testing.assert_allclose(value, rows.sum(axis=0), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("traced", [False, True], ids=["run", "function"])
@pytest.mark.parametrize("counts", [(2, 2), (3, 2), (3, 1, 0)])
def test_jacobians_of_rows_inside_run(counts: tuple[int, ...], traced: bool) -> None:
    """Of as many rows as the replica has examples: by weights, and by the examples themselves."""
    dense = layers.Dense(3, "tanh")
    dense.build((None, 4))
    x = np.random.default_rng(5).normal(size=(sum(counts), 4))
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))

    def step(share: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(share)
            y = dense(share)
        return tape.jacobian(y, dense.kernel), tape.jacobian(y, share)

    def distributed(parts: Any) -> Any:
        return strategy.run(step, args=(parts,))

    run = tf.function(distributed) if traced else distributed
    by_weights, by_rows = run(shares(*cut(x, counts)))
    kernel = dense.kernel.numpy()
    for rows, found, other in zip(cut(x, counts), local(by_weights), local(by_rows), strict=True):
        slope = 1 - np.tanh(rows @ kernel) ** 2
        wanted = np.einsum("no,ni,op->noip", slope, rows, np.eye(3))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
        wanted = np.einsum("no,io,nm->nomi", slope, kernel, np.eye(len(rows)))
        np.testing.assert_allclose(other, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("counts", [(5,), (3, 2), (2, 2, 1)])
def test_hessian_vector_products_inside_run(counts: tuple[int, ...]) -> None:
    """Of the mean of tanh(x w), whose Hessian is known."""
    x = np.random.default_rng(6).normal(size=(5, 4))
    weights, way = np.random.default_rng(7).normal(size=(2, 4))
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    with strategy.scope():
        w = tf.Variable(weights)

    def step(share: Any) -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                each = tf.tanh(tf.reduce_sum(share * w, 1))
                loss = tf.nn.compute_average_loss(each)
            product = tf.reduce_sum(inner.gradient(loss, w) * way)
        return tf.distribute.get_replica_context().all_reduce("sum", outer.gradient(product, w))

    parts = shares(*cut(x, counts)) if len(counts) > 1 else tf.constant(x)._as_examples(0, 1)
    found = local(strategy.run(step, args=(parts,)))[0]
    t = np.tanh(x @ weights)
    wanted = ((-2 * t * (1 - t**2) * (x @ way))[:, None] * x).mean(axis=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_the_penalty_at_a_critic_that_is_flat_has_no_nan() -> None:
    """All norms are 0: their gradients are 0."""
    model = build("LeakyReLU")
    for variable in model.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    for gradient in gradients(model, tf.constant(images())):
        np.testing.assert_array_equal(gradient.numpy(), 0)
