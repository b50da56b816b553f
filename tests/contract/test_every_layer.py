"""What holds for every layer; a new one is tested as soon as it is public."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, LEFT_OUT, PHOTOS, ROWS, WORD_LAYERS, class_of, name_of
from public_classes import public_classes

import samegrad as tf

layers = tf.keras.layers
NOT_IN_CONFIG = {"Lambda"}
each = pytest.mark.parametrize("name", CASES)


def create(name: str) -> Any:
    tf.keras.utils.set_random_seed(5)
    return class_of(name)(**CASES[name].made())


def call(name: str, layer: Any, parts: Any, **options: Any) -> Any:
    case = CASES[name]
    return layer(*case.enter(*parts), **case.options, **options)


def training(layer: Any) -> dict[str, bool]:
    return {"training": True} if layer._call_has_training_arg else {}


def flat(results: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in tf.nest.flatten(results)]


def constants(name: str, begin: int = 0, end: int = ROWS) -> list[Any]:
    return [tf.constant(x[begin:end]) for x in CASES[name].inputs]


def test_every_public_layer_has_a_case_or_a_reason() -> None:
    known = {name_of(case) for case in CASES}
    assert not known & {*LEFT_OUT, *WORD_LAYERS}
    assert sorted({*known, *LEFT_OUT, *WORD_LAYERS}) == public_classes(layers, layers.Layer)


@pytest.fixture
def float64() -> Iterator[None]:
    tf.keras.config.set_floatx("float64")
    tf.keras.config.set_dtype_policy("float64")
    yield
    tf.keras.config.set_floatx("float32")
    tf.keras.config.set_dtype_policy("float32")


# With another type of their own; with a product of float32 and float64, as on TensorFlow an error.
NOT_WIDE = (
    "Discretization", "Dense, in 16 bits", "MelSpectrogram", "RandAugment", "RandomRotation",
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_WIDE])
def test_64_bits_stay_64_bits(float64: None, name: str) -> None:
    wide = [x.astype(x.dtype.kind + "8") for x in CASES[name].inputs]
    layer = create(name)
    told = tf.nest.flatten(
        call(name, layer, [tf.keras.KerasTensor((None, *x.shape[1:]), x.dtype.name) for x in wide])
    )
    found = tf.nest.flatten(call(name, layer, [tf.constant(x) for x in wide]))
    types = [tf.as_dtype(spec.dtype) for spec in told], [result.dtype for result in found]
    assert types[0] == types[1]
    types[1].extend(tf.as_dtype(v.dtype) for v in layer.trainable_variables)
    assert not {tf.float32, tf.int32} & {*types[1]}


@each
def test_its_configuration_makes_an_equal_one(name: str) -> None:
    if name in NOT_IN_CONFIG:
        pytest.skip("its configuration holds the bytes of a function of Python")
    layer, saving = create(name), tf.keras.saving
    again = saving.deserialize_keras_object(saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert saving.serialize_keras_object(again) == saving.serialize_keras_object(layer)


@each
def test_an_unknown_argument_is_named(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match="colour"):
        class_of(name)(**CASES[name].made(), colour="red")


@each
def test_the_shapes_and_types_of_its_results_are_known_before(name: str) -> None:
    layer = create(name)
    specs = [tf.keras.KerasTensor((None, *x.shape[1:]), x.dtype) for x in CASES[name].inputs]
    told = tf.nest.flatten(call(name, layer, specs))
    found = tf.nest.flatten(call(name, layer, constants(name)))
    assert len(told) == len(found)
    for spec, result in zip(told, found, strict=True):
        assert spec.shape[0] is None and tuple(spec.shape)[1:] == tuple(result.shape)[1:]
        assert tf.as_dtype(spec.dtype) == result.dtype


@each
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    if CASES[name].mixes:
        pytest.skip("its rows depend on one another")
    layer = create(name)
    options = {"training": False} if layer._call_has_training_arg else {}
    whole = flat(call(name, layer, constants(name), **options))
    parts = [
        flat(call(name, layer, constants(name, *bounds), **options)) for bounds in ((0, 5), (5, 12))
    ]
    for one, *others in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(one, np.concatenate(others))


def loss_of(layer: Any, results: list[Any]) -> Any:
    """The mean of a function of all results in which no element counts as another."""
    total = 0.0
    for result in results:
        rows = tf.reshape(tf.cast(result, "float32"), (tf.shape(result)[0], -1))
        weights = np.cos(np.arange(rows.shape[1]), dtype=np.float32)
        total = total + tf.reduce_sum(rows * weights + tf.square(rows) * 0.1, axis=1)
    loss = tf.nn.compute_average_loss(total)
    penalties = layer.losses
    return loss + tf.nn.scale_regularization_loss(penalties) if penalties else loss


def learn(name: str, replicas: int, eagerly: bool = False) -> list[np.ndarray]:
    """One step in training: results and gradients of rows, gradients of weights, then the state."""
    case = CASES[name]
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        layer = create(name)
        call(name, layer, constants(name))
    dataset = tf.data.Dataset.from_tensor_slices(case.inputs).batch(ROWS)
    (batch,) = strategy.experimental_distribute_dataset(dataset)

    def step(*parts: Any) -> Any:
        with tf.GradientTape() as tape:
            if case.learns:
                tape.watch(list(parts))
            results = tf.nest.flatten(call(name, layer, parts, **training(layer)))
            loss = loss_of(layer, results)
        sources = list(parts) if case.learns else []
        of_rows, of_weights = tape.gradient(loss, [sources, layer.trainable_variables])
        total = tf.distribute.get_replica_context().all_reduce("sum", of_weights)
        return [*results, *of_rows], total

    tf.keras.utils.set_random_seed(7)  # some layers draw what they do with Python's generator
    tf.config.run_functions_eagerly(eagerly)
    try:
        of_rows, of_weights = strategy.run(tf.function(step), args=batch)
    finally:
        tf.config.run_functions_eagerly(False)
    local = strategy.experimental_local_results
    joined = [np.concatenate([part.numpy() for part in local(x)]) for x in of_rows]
    sums = [local(gradient)[0].numpy() for gradient in of_weights]
    return [*joined, *sums, *(np.asarray(v) for v in layer.non_trainable_variables)]


@each
def test_replicas_give_the_bits_of_one_device(name: str) -> None:
    expected = learn(name, 1)
    assert all(np.isfinite(x).all() for x in expected if x.dtype.kind == "f")
    for replicas in (2, 3):
        for one, other in zip(expected, learn(name, replicas), strict=True):
            np.testing.assert_array_equal(one, other)


@each
def test_operations_one_at_a_time_give_the_bits_of_the_compiled_step(name: str) -> None:
    for one, other in zip(learn(name, 1), learn(name, 1, eagerly=True), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("name", "axis"), [("RandomHeight", 1), ("RandomWidth", 2)])
def test_a_drawn_size_falls_back_to_python_in_a_function(name: str, axis: int) -> None:
    layer = getattr(layers, name)(0.5, seed=3)
    sizes = {tuple(layer(PHOTOS, training=True).shape) for _ in range(8)}
    assert len({size[axis] for size in sizes}) > 1
    assert all(size[0] == ROWS and size[3] == 3 and 4 <= size[axis] <= 12 for size in sizes)
    stretched = tf.function(lambda x: layer(x, training=True))
    assert len({stretched(tf.constant(PHOTOS)).shape[axis] for _ in range(8)}) > 1
    assert "Python runs the function" in str(stretched.explain(tf.constant(PHOTOS)))
