"""The hashes of a step's values against hashes of the arrays themselves, and over replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

L = tf.keras.layers
RNG = np.random.default_rng(0)


def word_hash(array: np.ndarray) -> int:
    """Return the hash that docs/verification.md specifies."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "f":
        flat = np.where(np.isnan(flat), flat.dtype.type("nan"), flat)
    size = flat.dtype.itemsize
    words = flat.view(np.uint32 if size >= 4 else f"u{size}").astype(np.uint32)
    index = np.arange(len(words), dtype=np.uint64)
    with np.errstate(over="ignore"):
        key = index.astype(np.uint32) * np.uint32(0x9E3779B1)
        h = (words ^ key) * np.uint32(0xC2B2AE3D)
        h ^= h >> np.uint32(15)
        odd = np.uint32(2) * h + np.uint32(1)
        return int(np.sum(h.astype(np.uint64) * odd.astype(np.uint64), dtype=np.uint64))


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint64", "bool"],
)
@pytest.mark.parametrize("size", [0, 1, 5, 255, 1000])
def test_hash_is_that_of_the_specification(dtype: str, size: int) -> None:
    array = (RNG.normal(size=size) * 100).astype(dtype)
    if array.dtype.kind == "f" and size:
        array[size // 2] = -np.nan
    assert _core.hash_of(tf.constant(array)) == word_hash(array)


def test_hash_differs_for_each_flipped_bit_and_each_exchange() -> None:
    array = np.arange(1.0, 65.0, dtype=np.float32)
    found = {word_hash(array)}
    for bit in range(64 * 32):
        words = array.view(np.uint32).copy()
        words[bit // 32] ^= np.uint32(1 << bit % 32)
        found.add(word_hash(words.view(np.float32)))
    for first in range(63):
        order = np.arange(64)
        order[[first, 63]] = order[[63, first]]
        found.add(word_hash(array[order]))
    # Bits that make a NaN of 1.0 make one: all NaN count as equal.
    assert len(found) > 64 * 32


def _dense(width: int) -> Any:
    return [tf.keras.Input([12]), L.Dense(width, activation="relu"), L.Dense(width), L.Dense(5)]


MODELS: dict[str, tuple[Callable[[], list[Any]], tuple[int, ...], str]] = {
    "dense": (lambda: _dense(40), (12,), "float"),
    "block updates": (lambda: _dense(1200), (12,), "float"),
    "embedding": (
        lambda: [
            tf.keras.Input([6], dtype="int32"),
            L.Embedding(4000, 32),
            L.Flatten(),
            L.Dense(5),
        ],
        (6,),
        "int",
    ),
    "convolution": (
        lambda: [
            tf.keras.Input([8, 8, 3]),
            L.Conv2D(7, 3),
            L.BatchNormalization(),
            L.MaxPooling2D(),
            L.Flatten(),
            L.Dropout(0.3),
            L.Dense(5),
        ],
        (8, 8, 3),
        "float",
    ),
    "recurrent": (lambda: [tf.keras.Input([7, 3]), L.LSTM(9), L.Dense(5)], (7, 3), "float"),
}
OPTIMIZERS = {"dense": "adam", "block updates": "adam", "embedding": "sgd", "recurrent": "rmsprop"}


def _records(name: str, replicas: int, detail: int = -1) -> tuple[list[Any], Any]:
    layers, shape, kind = MODELS[name]
    tf.keras.utils.set_random_seed(3)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(37, *shape)).astype("float32")
    if kind == "int":
        x = rng.integers(0, 4000, size=(37, *shape)).astype("int32")
    y = rng.integers(0, 5, 37)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = tf.keras.Sequential(layers())
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(OPTIMIZERS.get(name, "adam"), loss)
    found: list[Any] = []

    def observe(step: Any, record: Any, arguments: Any) -> None:
        entries = _core.step_entries(step)
        assert len(entries) == len(record.hashes)
        after = [variable.numpy() for variable in model.variables]
        found.append((entries, record, arguments, after))

    _core.record_steps(observe, detail)
    try:
        model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    finally:
        _core.record_steps(None)
    return found, model


def _comparable(entries: list[Any], record: Any) -> dict[Any, int]:
    return {
        entry[:3]: hash_
        for entry, hash_ in zip(entries, record.hashes, strict=True)
        if entry[5] in ("replicated", "rows")
    }


@pytest.mark.parametrize("name", MODELS)
def test_variable_hashes_are_those_of_their_values(name: str) -> None:
    records, model = _records(name, 2)
    for entries, record, _, after in records:
        by_name: dict[str, list[int]] = {}
        for entry, hash_ in zip(entries, record.hashes, strict=True):
            if entry[0] == "variable":
                by_name.setdefault(entry[1], []).append(hash_)
        for variable, value in zip(model.variables, after, strict=True):
            if variable.name in by_name:
                assert word_hash(value) in by_name[variable.name], variable.path
        for weight in model.trainable_variables:
            assert weight.name in by_name
    names = [entry[1] for entry in records[0][0] if entry[0] == "gradient"]
    for weight in model.trainable_variables:
        assert weight.name in names, f"no gradient of {weight.path}"


@pytest.mark.parametrize("name", MODELS)
def test_hashes_are_equal_over_replicas(name: str) -> None:
    one = [_comparable(entries, record) for entries, record, *_ in _records(name, 1)[0]]
    assert one
    for replicas in (2, 3, 8):
        others = [
            _comparable(entries, record) for entries, record, *_ in _records(name, replicas)[0]
        ]
        assert len(others) == len(one)
        for step, (a, b) in enumerate(zip(one, others, strict=True)):
            common = a.keys() & b.keys()
            assert any(kind == "gradient" for kind, *_ in common)
            assert {key: a[key] for key in common} == {key: b[key] for key in common}, step


@pytest.mark.parametrize("name", MODELS)
def test_operations_of_a_step_are_equal_over_replicas(name: str) -> None:
    def hashes(replicas: int) -> dict[Any, list[int]]:
        records, _ = _records(name, replicas, detail=1)
        record = records[1][1]
        assert record.operations and record.stored and not records[0][1].operations
        found: dict[Any, list[int]] = {}
        for op, type_, line, placement, _, values in record.operations:
            if placement in ("replicated", "rows"):
                found.setdefault((op, type_, line), []).extend(values)
        return found

    one, three = hashes(1), hashes(3)
    common = one.keys() & three.keys()
    same = [key for key in common if sorted(one[key]) == sorted(three[key])]
    assert len(common) > 8
    different = [key for key in common if len(one[key]) == len(three[key]) and key not in same]
    assert not different


def test_gradient_hash_is_that_of_the_gradient() -> None:
    weights = tf.Variable(RNG.normal(size=(9, 4)).astype("float32"))
    optimizer = tf.keras.optimizers.SGD(0.1)
    x = tf.constant(RNG.normal(size=(10, 9)).astype("float32"))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ weights))
        gradient = tape.gradient(loss, weights)
        optimizer.apply_gradients([(gradient, weights)])
        return gradient

    found = []
    _core.record_steps(lambda step, record, _: found.append((_core.step_entries(step), record)))
    try:
        gradient = step(x)
    finally:
        _core.record_steps(None)
    entries, record = found[-1]
    hashes = {entry[0]: hash_ for entry, hash_ in zip(entries, record.hashes, strict=True)}
    assert hashes["gradient"] == hashes["output"] == word_hash(gradient.numpy())
    assert hashes["argument"] == word_hash(x.numpy())


@pytest.mark.parametrize("replicas", [1, 3])
def test_examples_have_hashes_of_their_own(replicas: int) -> None:
    records, _ = _records("dense", replicas, detail=1)
    _, record, arguments, _ = records[1]
    rows = np.concatenate([part.numpy() for part in arguments[0]])
    assert len(rows) == 16
    assert record.example_hashes[0] == (0, [word_hash(row) for row in rows])
    assert record.hashes[0] == word_hash(rows)


def test_assignments_outside_steps_are_noticed() -> None:
    weights = tf.Variable([1.0, 2.0])
    step = tf.function(lambda: weights.assign_add([1.0, 1.0]))
    found = []
    _core.record_steps(lambda step, record, _: found.append(record))
    try:
        step()
        step()
        weights.assign([5.0, 6.0])
        step()
    finally:
        _core.record_steps(None)
    start, changed = np.float32([1, 2]), np.float32([5, 6])
    assert [record.before for record in found] == [
        [(0, word_hash(start))],
        [],
        [(0, word_hash(changed))],
    ]


def test_steps_without_variables_are_not_recorded() -> None:
    found = []
    double = tf.function(lambda x: 2 * x)
    _core.record_steps(lambda step, record, _: found.append(record))
    try:
        double(tf.constant(1.0))
    finally:
        _core.record_steps(None)
    assert not found


def test_failing_observer_raises_after_the_step() -> None:
    weights = tf.Variable(1.0)
    step = tf.function(lambda: weights.assign_add(1.0))

    def fail(*_: Any) -> None:
        raise OSError("no space")

    _core.record_steps(fail)
    try:
        with pytest.raises(OSError, match="no space"):
            step()
    finally:
        _core.record_steps(None)
    assert weights.numpy() == 2.0
    assert step().numpy() == 3.0
