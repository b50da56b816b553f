"""Keras's attention layers run the fused row: masks apart, dropout inside, nothing of all pairs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from replica_values import examples, local, shares, strategy

import samegrad as tf
from samegrad._keras import attention as row

keras = tf.keras
LENGTH, KEYS = 9, 14
LAYERS = {
    "multi": lambda **more: keras.layers.MultiHeadAttention(4, 6, **more),
    "grouped": lambda **more: keras.layers.GroupQueryAttention(6, 4, 2, **more),
}


def valid(n: int, length: int, seed: int) -> np.ndarray:
    """Padding behind, in front and everywhere."""
    rng = np.random.default_rng(seed)
    first, last = rng.integers(0, 2, size=n), rng.integers(length // 2, length + 1, size=n)
    last[1 % n] = 0
    places = np.arange(length)
    return (places >= first[:, None]) & (places < last[:, None])


def masks(kind: str, n: int) -> dict[str, Any]:
    """The arguments of a call; arrays have the examples on axis 0."""
    pairs = np.random.default_rng(7).uniform(size=(n, LENGTH, KEYS)) < 0.7
    padding = {"query_mask": valid(n, LENGTH, 0), "value_mask": valid(n, KEYS, 1)}
    return {
        "none": {},
        "padding": padding,
        "causal": {"use_causal_mask": True},
        "pairs": {"attention_mask": pairs},
        "all": {
            **padding, "key_mask": valid(n, KEYS, 2), "attention_mask": pairs,
            "use_causal_mask": True,
        },
    }[kind]  # fmt: skip


KINDS = ["none", "padding", "causal", "pairs", "all"]


def inputs(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=(n, size, 8)).astype("float32") for size in (LENGTH, KEYS)]


def layer_of(kind: str, dropout: float, **more: Any) -> Any:
    keras.utils.set_random_seed(11)
    layer = LAYERS[kind](dropout=dropout, **more)
    layer.build((None, LENGTH, 8), (None, KEYS, 8))
    return layer


def training_step(layer: Any, names: list[str], flags: dict[str, Any]) -> Any:
    """Of arrays: the result, and the gradients summed over the replicas."""

    def step(q: Any, v: Any, *arrays: Any) -> list[Any]:
        given = dict(zip(names, arrays, strict=True))
        with tf.GradientTape() as tape:
            tape.watch([q, v])
            y = layer(q, v, training=True, **given, **flags)
            loss = tf.reduce_sum(tf.square(y))
        of_inputs, of_weights = tape.gradient(loss, ([q, v], layer.trainable_variables))
        context = tf.distribute.get_replica_context()
        return [y, of_inputs, [context.all_reduce("SUM", g) for g in of_weights]]

    return step


def trained(
    kind: str, masked: str, dropout: float, counts: tuple[int, ...]
) -> tuple[list[np.ndarray], list[np.ndarray], str]:
    """What belongs to examples, sums over all of them, and the plan."""
    n = sum(counts)
    given = masks(masked, n)
    arrays = {name: x for name, x in given.items() if isinstance(x, np.ndarray)}
    flags = {name: x for name, x in given.items() if name not in arrays}
    several = strategy(len(counts))
    with several.scope():
        layer = layer_of(kind, dropout)
    cuts = np.cumsum(counts)[:-1]
    parts = tuple(shares(*np.split(x, cuts)) for x in [*inputs(n), *arrays.values()])
    step = training_step(layer, list(arrays), flags)
    plan = str(several.explain(step, parts))
    found = []
    for _ in range(2):  # another draw in each step
        found.append(several.run(step, args=parts))
    rows = [x for y, of_inputs, _ in found for x in [y, *of_inputs]]
    sums = [x for *_, of_weights in found for x in of_weights]
    return [np.concatenate(local(x)) for x in rows], [local(x)[0] for x in sums], plan


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras's own products, softmax and dropout."""
    monkeypatch.setattr(row, "attend", lambda *_: None)
    monkeypatch.setattr(row, "masks_of", lambda x, *q, **m: x._compute_attention_mask(*q, **m))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("masked", KINDS)
@pytest.mark.parametrize("kind", LAYERS)
def test_no_bit_differs_from_what_keras_computes(
    kind: str, masked: str, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, sums, plan = trained(kind, masked, dropout, (6,))
    assert "dot_product_attention_grad" in plan
    assert "softmax" not in plan
    by_parts(monkeypatch)
    expected_rows, expected_sums, plan = trained(kind, masked, dropout, (6,))
    assert dropout == 0 or "softmax" in plan
    assert_same(rows, expected_rows)
    assert_same(sums, expected_sums)


@pytest.mark.parametrize("counts", [(4, 4), (3, 3, 3, 3), (5, 0, 3), (1,), (0, 1)])
@pytest.mark.parametrize("masked", ["none", "all"])
@pytest.mark.parametrize("kind", LAYERS)
def test_replicas_drop_what_one_device_drops(
    kind: str, masked: str, counts: tuple[int, ...]
) -> None:
    rows, sums, _ = trained(kind, masked, 0.4, counts)
    one_rows, one_sums, _ = trained(kind, masked, 0.4, (sum(counts),))
    assert_same(rows, one_rows)
    for a, b in zip(sums, one_sums, strict=True):
        if len(set(counts)) == 1:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def language_model(length: int, heads: int, width: int, dropout: float) -> Any:
    """Padding comes from the embedding, the order from the flag."""
    keras.utils.set_random_seed(1)
    numbers = keras.Input((length,), dtype="int32")
    x = keras.layers.Embedding(50, heads * width, mask_zero=True)(numbers)
    attention = keras.layers.MultiHeadAttention(heads, width, dropout=dropout)
    y = keras.layers.LayerNormalization()(x + attention(x, x, use_causal_mask=True))
    return keras.Model(numbers, keras.layers.Dense(1)(y))


def compiled_step(
    replicas: int, length: int, heads: int, width: int, n: int
) -> tuple[str, list[float]]:
    """The plan of a training step, and the losses of three."""
    several = strategy(replicas)
    with several.scope():
        model = language_model(length, heads, width, 0.1)
        optimizer = keras.optimizers.SGD(0.01)

    def step(numbers: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            errors = tf.square(model(numbers, training=True)[..., 0] - targets)
            loss = tf.nn.compute_average_loss(tf.reduce_mean(errors, 1))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    rng = np.random.default_rng(0)
    numbers = rng.integers(1, 50, size=(n, length))
    numbers[:, length - length // 4 :] = 0
    targets = rng.normal(size=(n, length)).astype("float32")
    batch = tuple(shares(*np.split(x, replicas)) for x in (numbers, targets))
    plan = str(several.explain(step, batch))
    losses = [several.run(step, args=batch) for _ in range(3)]
    return plan, [float(sum(part.sum() for part in local(loss))) for loss in losses]


def shapes_of_examples(plan: str) -> list[tuple[int, ...]]:
    found = re.findall(r"\(\?,? ?([\d, ]*)\) examples", plan)
    return [tuple(int(size) for size in shape.split(",") if size.strip()) for shape in found]


def tile_bytes(plan: str) -> float:
    """Of the values of one tile of examples that wait between operations."""
    units = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}
    tiles = re.findall(r"tiles of \d+ examples?, each with ([\d.]+) (\w+) between", plan)
    assert tiles
    return max(float(count) * units[unit] for count, unit in tiles)


def arena_bytes(plan: str) -> float:
    units = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}
    found = re.search(r"memory between steps: ([\d.]+) (\w+)", plan)
    assert found is not None
    return float(found[1]) * units[found[2]]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_training_step_has_the_row_and_no_array_of_all_pairs(replicas: int) -> None:
    length, heads, width, n = 256, 2, 4, 8
    plan, losses = compiled_step(replicas, length, heads, width, n)
    assert re.search(r"%\d+ dot_product_attention float32 \(\?, 256, 2, 4\)", plan)
    assert re.search(r"%\d+ dot_product_attention_grad ", plan)
    assert "softmax" not in plan
    assert "random" not in plan
    assert not any(shape.count(length) > 1 for shape in shapes_of_examples(plan))
    pairs = length * length  # bytes of one mask of all pairs of a single example
    assert tile_bytes(plan) < n * pairs
    assert arena_bytes(plan) < n * pairs
    assert losses[0] != losses[1]


def test_both_numbers_of_replicas_train_alike() -> None:
    assert compiled_step(1, 32, 2, 4, 8)[1] == pytest.approx(
        compiled_step(2, 32, 2, 4, 8)[1], rel=1e-6
    )


def test_sequences_of_512_with_12_heads_of_64() -> None:
    plan, losses = compiled_step(1, 512, 12, 64, 1)
    assert not any(shape.count(512) > 1 for shape in shapes_of_examples(plan))
    # What waits is 21 arrays of 1.5 MiB; with the weights of all pairs it would be 12 MiB more for
    # each of softmax, dropout and their gradients.
    assert tile_bytes(plan) < 24 * 512 * 768 * 4
    assert np.isfinite(losses).all()


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_query_that_may_look_nowhere(dropout: float) -> None:
    """Its result is Keras's: the bias alone where there is dropout, else that of the mean value."""
    layer = layer_of("multi", dropout)
    q, v = (examples(x) for x in inputs(3))
    nowhere = np.zeros((3, LENGTH, KEYS), bool)
    found = layer(q, v, attention_mask=examples(nowhere), training=True).numpy()
    bias = layer._output_dense.bias.numpy()
    if dropout:
        np.testing.assert_array_equal(found, np.broadcast_to(bias, found.shape))
    else:
        values = layer._value_dense(v).numpy().mean(1, keepdims=True)
        kernel = layer._output_dense.kernel.numpy()
        expected = np.einsum("bqhd,hdo->bqo", values, kernel) + bias
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-5)


def test_without_training_nothing_is_dropped() -> None:
    q, v = (examples(x) for x in inputs(4))
    with_dropout, without = layer_of("multi", 0.4), layer_of("multi", 0.0)
    without.set_weights(with_dropout.get_weights()[: len(without.get_weights())])
    np.testing.assert_allclose(
        with_dropout(q, v, use_causal_mask=True).numpy(),
        without(q, v, use_causal_mask=True).numpy(),
        rtol=2e-5, atol=2e-6,
    )  # fmt: skip


def test_weights_are_given_where_they_are_asked_for() -> None:
    layer = layer_of("multi", 0.0)
    q, v = (examples(x) for x in inputs(4))
    given = {"query_mask": examples(valid(4, LENGTH, 0)), "use_causal_mask": True}
    found, weights = layer(q, v, return_attention_scores=True, **given)
    assert weights.shape == (4, 4, LENGTH, KEYS)
    seen = valid(4, LENGTH, 0)[:, :, None]
    np.testing.assert_allclose(
        np.where(seen, found.numpy(), 0), np.where(seen, layer(q, v, **given).numpy(), 0),
        rtol=2e-5, atol=2e-6,
    )  # fmt: skip


def test_a_subclass_with_its_own_attention_gets_one_mask() -> None:
    seen = []

    class Own(keras.layers.MultiHeadAttention):  # type: ignore[misc]
        def _compute_attention(self, query, key, value, attention_mask=None, *more, **named):  # type: ignore[no-untyped-def]
            seen.append(attention_mask)
            return super()._compute_attention(query, key, value, attention_mask, *more, **named)

    keras.utils.set_random_seed(11)
    layer = Own(4, 6, dropout=0.4)
    q, v = (examples(x) for x in inputs(4))
    layer(q, v, use_causal_mask=True, value_mask=examples(valid(4, KEYS, 1)), training=True)
    assert tuple(seen[0].shape) == (4, LENGTH, KEYS)


def test_images_that_are_cut_into_windows_drop_as_keras_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Axis 0 counts windows, several of each example."""
    x = np.random.default_rng(0).normal(size=(6, 4, 5, 8)).astype("float32")

    def attended() -> list[np.ndarray]:
        layer = layer_of("multi", 0.4)

        @tf.function
        def step(images: Any) -> Any:
            windows = tf.reshape(images, [-1, 5, 8])
            return layer(windows, windows, training=True)

        return [step(examples(x)).numpy()]

    found = attended()
    by_parts(monkeypatch)
    assert_same(found, attended())


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_other_dtypes_train(policy: str) -> None:
    layer = layer_of("multi", 0.4, dtype=policy)
    q, v = (examples(x) for x in inputs(4))
    step = tf.function(training_step(layer, [], {"use_causal_mask": True}))
    y, *_ = step(q, v)
    assert y.dtype.name == policy.removeprefix("mixed_")
    assert np.isfinite(y.numpy().astype("float64")).all()


def test_the_derivative_of_the_derivative_drops_the_same() -> None:
    """Beside differences of the first one, which is the row's."""
    layer = layer_of("multi", 0.4, dtype="float64")
    q, v = (examples(x.astype("float64")) for x in inputs(2))
    seed = layer._dropout_layer.seed_generator.state
    key = seed.numpy()

    def first(x: Any) -> Any:
        seed.assign(key)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(layer(x, v, training=True, use_causal_mask=True)))
        return tape.gradient(loss, x)

    def second(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.square(first(x)))
        return tape.gradient(total, x)

    found = tf.function(second)(q).numpy()
    step = 1e-6
    for place in [(0, 0, 0), (1, 4, 3), (0, 8, 7)]:
        sides = []
        for sign in (1, -1):
            moved = q.numpy()
            moved[place] += sign * step
            sides.append(float(tf.reduce_sum(tf.square(first(examples(moved))))))
        slope = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found[place], slope, rtol=1e-5, atol=1e-5)
