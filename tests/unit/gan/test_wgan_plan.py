"""The penalty's double backward runs on the kernels, in the loops and tiles, of the first one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli._wgan._models import SIZE
from samegrad.cli._wgan._steps import WganSteps

layers = tf.keras.layers
CONVOLUTIONS = {
    "conv2d", "conv2d_bias", "conv2d_transpose", "conv2d_input_grad", "conv2d_filter_grad",
}  # fmt: skip
# What the penalty may bring besides: the norm's mathematics, the dense layer's products, shapes.
BESIDES = {
    "add", "broadcast_like", "cast", "expand_dims", "full_like", "fused_elementwise", "fused_rows",
    "matmul", "mul", "neg", "reduce_sum", "reshape_like", "size_of",
}  # fmt: skip
ROW = re.compile(r"    %\d+ (\w+) (\w+) (\(.*?\))(.*)")


class Row(NamedTuple):
    """A row of a plan, and the step that it is in."""

    step: int
    head: str
    op: str
    shape: str
    more: str


def rows_of(plan: str) -> list[Row]:
    """All rows of what `explain` prints."""
    found, step, head = [], -1, ""
    for line in plan.splitlines():
        if re.match(r"  \S.*:$", line):
            step, head = step + 1, line.strip(" :")
        elif row := ROW.match(line):
            op, _, shape, more = row.groups()
            found.append(Row(step, head, op, shape, more))
    assert found, plan
    return found


def convolutions(rows: list[Row]) -> Counter[str]:
    return Counter(row.op for row in rows if row.op in CONVOLUTIONS)


def check(
    first: list[Row], second: list[Row], plain: dict[str, int], added: dict[str, int]
) -> None:
    """The penalty adds these convolutions to the one loop, and no other kernels."""
    assert convolutions(first) == plain
    assert convolutions(second) == Counter(plain) + Counter(added)
    loops = {row.step for row in second if row.op in CONVOLUTIONS}
    assert len(loops) == 1  # tiles go through both orders, forward and back
    more = {row.op for row in second} - {row.op for row in first}
    assert more <= CONVOLUTIONS | BESIDES, more - CONVOLUTIONS - BESIDES
    for row in second:
        if row.op in CONVOLUTIONS:
            assert row.head.startswith("loop over the examples"), row


def by_windows(x: Any, kernel: Any) -> Any:
    """A convolution as a product of windows with the kernel."""
    size = x.shape[1] - 2
    windows = [x[:, i : i + size, j : j + size] for i in range(3) for j in range(3)]
    return tf.concat(windows, 3) @ tf.reshape(kernel, (-1, kernel.shape[-1]))


def one_by_one(x: Any, kernel: Any) -> Any:
    return tf.map_fn(lambda row: tf.nn.conv2d(row[None], kernel, 1, "VALID")[0], x)


def in_place(x: Any, kernel: Any) -> Any:
    return tf.nn.conv2d(x, kernel, 1, "VALID")


class FallsBack(layers.Layer):  # type: ignore[misc]
    """A convolution whose second derivative is computed by another function."""

    def __init__(self, second: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._second = second

    def call(self, x: Any) -> Any:
        kernel = tf.constant(np.ones((3, 3, x.shape[-1], 8), np.float32))
        sizes = x.shape[1:]

        @tf.custom_gradient
        def back(gradients: Any) -> Any:
            count = tf.shape(gradients)[0]
            found = tf.nn.conv2d_transpose(gradients, kernel, (count, *sizes), 1, "VALID")
            return found, lambda second: self._second(second, kernel)

        @tf.custom_gradient
        def forward(x: Any) -> Any:
            return tf.nn.conv2d(x, kernel, 1, "VALID"), back

        return forward(x)


def slope() -> Any:
    return layers.LeakyReLU(0.2)


# The critic's layers on images of 16 by 16 with two channels; the convolutions of the plan without
# a penalty, and those that it adds: the gradient by the images (its chain of all layers), for each
# layer one kernel more in the direction of the forward pass, and one more gradient of its kernel.
Layers = Callable[[], list[Any]]
KINDS: dict[str, tuple[Layers, dict[str, int], dict[str, int]]] = {
    "strided": (
        lambda: [layers.Conv2D(8, 5, 2, "same"), slope(), layers.Conv2D(16, 3, 2, "same"), slope()],
        {"conv2d_bias": 2, "conv2d_input_grad": 1, "conv2d_filter_grad": 2},
        {"conv2d_input_grad": 2, "conv2d": 2, "conv2d_filter_grad": 2},
    ),
    "one channel": (
        lambda: [layers.Conv2D(1, 3, 1, "same"), slope(), layers.Conv2D(8, 3, 1, "same"), slope()],
        {"conv2d_bias": 2, "conv2d_input_grad": 1, "conv2d_filter_grad": 2},
        {"conv2d_input_grad": 2, "conv2d": 2, "conv2d_filter_grad": 2},
    ),
    "transposed": (
        lambda: [
            layers.Conv2D(8, 5, 2, "same"), slope(), layers.Conv2DTranspose(4, 4, 2, "same"),
            slope(),
        ],
        {"conv2d_bias": 1, "conv2d_transpose": 1, "conv2d": 1, "conv2d_filter_grad": 2},
        {"conv2d_input_grad": 2, "conv2d": 2, "conv2d_filter_grad": 2},
    ),
    # A curved activation brings another way back from the penalty, through the forward pass.
    "curved": (
        lambda: [layers.Conv2D(8, 5, 2, "same", activation="tanh"),
                 layers.Conv2D(16, 3, 2, "same", activation="tanh")],
        {"conv2d_bias": 2, "conv2d_input_grad": 1, "conv2d_filter_grad": 2},
        {"conv2d_input_grad": 3, "conv2d": 2, "conv2d_filter_grad": 4},
    ),
    "normalized": (
        lambda: [layers.Conv2D(8, 5, 2, "same"), layers.LayerNormalization(), slope(),
                 layers.Conv2D(16, 3, 2, "same"), layers.LayerNormalization(), slope()],
        {"conv2d_bias": 2, "conv2d_input_grad": 1, "conv2d_filter_grad": 2},
        {"conv2d_input_grad": 3, "conv2d": 2, "conv2d_filter_grad": 4},
    ),
}  # fmt: skip


def plans(create: Layers, replicas: int) -> list[list[Row]]:
    """The rows of a step without a penalty, and with one."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        inputs = tf.keras.Input((16, 16, 2))
        critic = tf.keras.Sequential([inputs, *create(), layers.Flatten(), layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)
    weights = critic.trainable_variables

    def penalties(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = critic(x, training=True)
        return (tf.norm(tape.gradient(scores, x), axis=[1, 2, 3]) - 1.0) ** 2

    def step(x: Any, penalized: bool) -> None:
        with tf.GradientTape() as tape:
            losses = -tf.squeeze(critic(x, training=True), 1)
            loss = tf.nn.compute_average_loss(losses + penalties(x) if penalized else losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    images = np.random.default_rng(0).normal(size=(32, 16, 16, 2)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(images).batch(32)
    (batch,) = strategy.experimental_distribute_dataset(data)
    steps = [tf.function(lambda b, p=penalized: strategy.run(step, (b, p))) for penalized in (0, 1)]
    return [rows_of(str(distributed.explain(batch))) for distributed in steps]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_of_convolutions_are_convolutions_of_the_same_loop(
    kind: str, replicas: int
) -> None:
    create, plain, added = KINDS[kind]
    first, second = plans(create, replicas)
    check(first, second, plain, added)


@pytest.mark.parametrize("second_derivative", [in_place, by_windows, one_by_one])
def test_a_second_derivative_by_another_function_is_seen(second_derivative: Any) -> None:
    """The message of the test above for an op that is not a kernel of the loop."""
    create = lambda: [layers.Conv2D(4, 3), slope(), FallsBack(second_derivative), slope()]  # noqa: E731
    first, second = plans(create, 2)
    plain = {"conv2d_bias": 1, "conv2d": 1, "conv2d_transpose": 1, "conv2d_filter_grad": 1}
    # The function forward twice, as it is called in two places, and two second derivatives.
    added = {"conv2d": 3, "conv2d_transpose": 1, "conv2d_input_grad": 1, "conv2d_filter_grad": 1}
    if second_derivative is in_place:
        check(first, second, plain, added)
    else:
        assert convolutions(first) == plain
        with pytest.raises(AssertionError):
            check(first, second, plain, added)


@pytest.fixture(scope="module")
def command() -> dict[int, list[Row]]:
    """The rows of the critic's step of `samegrad wgan-gp`, by replicas."""
    found = {}
    images = np.random.default_rng(0).uniform(-1, 1, (64, SIZE, SIZE, 1)).astype(np.float32)
    for replicas in (1, 2, 3):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        steps = WganSteps(strategy, width=32)
        data = tf.data.Dataset.from_tensor_slices(images).batch(64)
        (batch,) = strategy.experimental_distribute_dataset(data)
        found[replicas] = rows_of(str(steps.critic_step.explain(batch)))
    return found


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_kernels_of_the_critics_step(command: dict[int, list[Row]], replicas: int) -> None:
    """Three layers: real, fake and mixed images forward; the gradient by the mixed ones."""
    rows = command[replicas]
    own = [row for row in rows if row.op != "conv2d_transpose"]  # the generator's two layers
    assert convolutions(own) == {
        "conv2d_bias": 3 * 3,
        "conv2d_input_grad": 2 + 2 + 3,
        "conv2d": 3,
        "conv2d_filter_grad": 3 * 3,
    }
    assert not {row.op for row in rows} & {"replay", "unstack_rounds", "while", "scan", "gather"}


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_tiles_of_the_critics_step_go_through_both_orders(
    command: dict[int, list[Row]], replicas: int
) -> None:
    rows = command[replicas]
    (by_images,) = [
        row
        for row in rows
        if row.op == "conv2d_input_grad" and row.shape == f"(?, {SIZE}, {SIZE}, 1)"
    ]
    assert by_images.head.startswith("loop over the examples")
    loop = [row for row in rows if row.step == by_images.step]
    counts = convolutions(loop)
    # The penalty's chain to the images, its derivative, and the first order of the other losses'.
    assert counts["conv2d"] == 3
    assert counts["conv2d_input_grad"] >= 3 + 2
    assert counts["conv2d_filter_grad"] >= 1
    # Gradients of kernels that do not fit into the cache leave their loops, in both orders alike.
    places: dict[str, Counter[str]] = {}
    for row in rows:
        if row.op == "conv2d_filter_grad":
            places.setdefault(row.shape, Counter())[row.head.split(",")[0]] += 1
    assert len(places) == 3
    for heads in places.values():
        assert list(heads.values()) == [3], heads
