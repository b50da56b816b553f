"""Pooling to a given size."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import record_keras_adaptive_pooling as keras_values
from windows import check_derivatives, numbers

import samegrad as tf
from samegrad import nn

FUNCTIONS = {"AVG": nn.adaptive_average_pool, "MAX": nn.adaptive_max_pool}
CASES = [
    *keras_values.CASES, ((3,), (7,)), ((1,), (3,)), ((3, 8), (5, 3)), ((2, 3, 5), (3, 2, 4)),
    ((11,), (1,)), ((4, 6, 2), (2, 3, 1)), ((700,), (2,)), ((4, 5, 3), (4, 5, 3)), ((6, 6), (2, 4)),
]  # fmt: skip
each_case = pytest.mark.parametrize(("old", "new"), CASES, ids=str)
both_kinds = pytest.mark.parametrize("kind", list(FUNCTIONS))


def pooled(x: np.ndarray, new: tuple[int, ...], kind: str) -> np.ndarray:
    """Window by window, as PyTorch's documentation defines them."""
    old = x.shape[1:-1]
    y = np.zeros((len(x), *new, x.shape[-1]))
    for place in itertools.product(*map(range, new)):
        window = tuple(
            slice(i * a // b, -(-(i + 1) * a // b)) for i, a, b in zip(place, old, new, strict=True)
        )
        part = x[(slice(None), *window)]
        axes = tuple(range(1, x.ndim - 1))
        y[(slice(None), *place)] = part.max(axes) if kind == "MAX" else part.mean(axes)
    return y


@each_case
@both_kinds
def test_it_is_the_largest_or_the_mean_of_each_window(kind, old, new):
    x = numbers(3, *old, 2)
    found = FUNCTIONS[kind](x, new).numpy()
    np.testing.assert_allclose(found, pooled(x, new, kind), rtol=1e-11, atol=1e-13)
    if len(set(new)) == 1:
        np.testing.assert_array_equal(found, FUNCTIONS[kind](x, new[0]).numpy())


def test_numbers_of_keras():
    file = Path(__file__).with_name("keras_adaptive_pooling.json")
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert len(recorded) == 2 * len(keras_values.CASES)
    for kind, (old, new) in itertools.product(FUNCTIONS, keras_values.CASES):
        found = FUNCTIONS[kind](keras_values.numbers(old).astype("float32"), new).numpy()
        np.testing.assert_allclose(found.ravel(), recorded[f"{kind} {old} {new}"], atol=2e-6)


@both_kinds
def test_torch_agrees(kind):
    torch = pytest.importorskip("torch")
    x = numbers(2, 7, 5, 3)
    pool = {"AVG": torch.nn.AdaptiveAvgPool2d, "MAX": torch.nn.AdaptiveMaxPool2d}[kind]
    theirs = pool((3, 7))(torch.tensor(np.moveaxis(x, -1, 1).copy())).numpy()
    found = FUNCTIONS[kind](x, (3, 7)).numpy()
    np.testing.assert_allclose(found, np.moveaxis(theirs, 1, -1), rtol=1e-12)


@each_case
@both_kinds
def test_derivatives_are_right_to_second_order(kind, old, new):
    x = numbers(2, *old, 2)
    check_derivatives(lambda x: FUNCTIONS[kind](x, new), [x], traced=len(old) == 2)


@pytest.mark.parametrize("old", [(5,), (5, 5), (2, 3, 5), (600,)], ids=str)
def test_equal_elements_give_the_gradient_to_the_first(old):
    x = tf.constant(np.ones((1, *old, 1), "float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nn.adaptive_max_pool(x, 1)
    expected = np.zeros(x.shape, "float32")
    expected.flat[0] = 1
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


@both_kinds
def test_nan_and_infinity_are_seen_by_their_windows_only(kind):
    x = np.zeros((1, 7, 1), "float32")
    x[0, 2], x[0, 6] = np.inf, np.nan  # windows 0…2, 2…4, 4…6
    y = FUNCTIONS[kind](x, 3).numpy().ravel()
    np.testing.assert_array_equal(y, [np.inf, np.inf, np.nan])


@pytest.mark.parametrize(("old", "new"), [((7, 5), (3, 2)), ((6, 4), (3, 2)), ((5,), (3,))])
@both_kinds
def test_replicas_have_the_bits_of_one_device(kind, old, new):
    images = numbers(13, *old, 3, dtype="float32")

    def results(replicas: int) -> np.ndarray:
        where = tf.distribute.MirroredStrategy(replicas=replicas)
        with where.scope():
            w = tf.Variable(np.float32(0.5))

        def step(x):
            with tf.GradientTape() as tape:
                y = FUNCTIONS[kind](x * w, new)
                axes = list(range(1, len(y.shape)))
                loss = nn.compute_average_loss(tf.reduce_sum(y * y, axis=axes))
            g = tape.gradient(loss, w)
            w.assign_sub(1e-3 * tf.distribute.get_replica_context().all_reduce("SUM", g))

        dataset = tf.data.Dataset.from_tensor_slices(images).batch(13)
        (batch,) = where.experimental_distribute_dataset(dataset)
        for _ in range(3):
            where.run(step, (batch,))
        return w.numpy()

    for replicas in (2, 3, 4):
        np.testing.assert_array_equal(results(1), results(replicas))


@pytest.mark.parametrize("n", [0, 1, 1000])
@both_kinds
def test_any_number_of_images_is_pooled(n, kind):
    x = numbers(n, 7, 5, 3, dtype="float32")
    eager = FUNCTIONS[kind](x, (3, 4)).numpy()
    assert eager.shape == (n, 3, 4, 3)
    run = tf.function(lambda x: FUNCTIONS[kind](x, (3, 4)))
    np.testing.assert_array_equal(run(tf.constant(x)._as_examples(0, 1)).numpy(), eager)


def test_half_types_are_pooled():
    x = numbers(2, 5, 1, dtype="float32")
    for kind, function in FUNCTIONS.items():
        y = function(tf.cast(x, "bfloat16"), 2)
        assert y.dtype == tf.bfloat16
        np.testing.assert_allclose(y.numpy().astype("float32"), pooled(x, (2,), kind), rtol=0.05)


X = np.zeros((2, 5, 4, 6), "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.adaptive_max_pool(X[0, 0], 1), r"\[adaptive_max_pool\] the input must be"),
        (lambda: nn.adaptive_average_pool(X, (1, 2, 3)), "output_size must be one or two positive"),
        (lambda: nn.adaptive_average_pool(X, 0), "output_size must be one or two positive"),
        (lambda: nn.adaptive_max_pool(X, (2, -1)), "output_size must be one or two positive"),
        (lambda: nn.adaptive_max_pool(X[:, :0], 1), "must have elements to pool"),
        (lambda: nn.adaptive_max_pool(X, 1, "channels_first"), "channels last"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@both_kinds
def test_whole_numbers_are_refused(kind):
    with pytest.raises(TypeError):
        FUNCTIONS[kind](np.zeros((1, 3, 1), "int32"), 2)
