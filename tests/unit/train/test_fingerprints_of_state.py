"""Fingerprints: equal for equal arrays, however they were made, saved, divided or named."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad.train import _storage

OBJECTS = [1.0, -1.0, np.float32(1.0), True, 1, 1j, [1.0, 2.0], {"a": 1.0, "b": 2.0}]


def trained(replicas: int = 1, steps: int = 3) -> tf.keras.Model:
    tf.keras.utils.set_random_seed(3)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(4, activation="relu"),
                tf.keras.layers.BatchNormalization(),
                tf.keras.layers.Dropout(0.5),
                tf.keras.layers.Dense(1),
            ]
        )
        model.compile("adam", "mse", metrics=["mae"])
        data = np.random.default_rng(0)
        x, y = data.normal(size=(7, 3)).astype("float32"), data.normal(size=(7, 1))
        model.fit(x, y.astype("float32"), batch_size=4, epochs=steps, verbose=0)
    return model


def reference(arrays: dict[str, np.ndarray]) -> str:
    """The format of docs/verification.md, written from that page."""
    lines = ["samegrad fingerprint 1"]
    for path in sorted(arrays):
        array = arrays[path]
        digest = hashlib.blake2b(array.tobytes(), digest_size=32).hexdigest()
        entry = [path, str(array.dtype), list(array.shape), digest]
        lines.append(json.dumps(entry, separators=(",", ":")))
    text = "".join(f"{line}\n" for line in lines)
    return "sg1-" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def test_fingerprint_has_the_documented_format() -> None:
    arrays = {"é/b": np.arange(6, dtype="<f4").reshape(2, 3), "a": np.array([True])}
    expected = reference({"é%2Fb": arrays["é/b"], "a": arrays["a"]})
    assert tf.fingerprint(arrays) == expected
    assert tf.fingerprint(np.float64(2)) == reference({"": np.array(2.0)})


def test_fingerprint_is_the_recorded_one() -> None:
    found = tf.fingerprint({"w": np.arange(3, dtype=np.float32), "n": np.int64(2)})
    assert found == "sg1-08ca01690a619b7cdaa13d6f2318d313"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_fingerprint_of_a_checkpoint_is_that_of_the_objects(tmp_path: Path, replicas: int) -> None:
    model = trained(replicas)
    assert tf.fingerprint(model) == tf.fingerprint(trained())
    checkpoints = {
        "root": (tf.train.Checkpoint(model), model),
        "named": (tf.train.Checkpoint(model=model), model),
        "optimizer": (tf.train.Checkpoint(model.optimizer), model.optimizer),
        "both": (
            tf.train.Checkpoint(model=model, optimizer=model.optimizer),
            {"optimizer": model.optimizer, "model": model},
        ),
    }
    for name, (checkpoint, objects) in checkpoints.items():
        path = checkpoint.save(tmp_path / name / "ckpt")
        found = {tf.fingerprint(one) for one in (checkpoint, objects, path, tmp_path / name)}
        assert len(found) == 1, name


def test_fingerprint_does_not_depend_on_layers_made_before(tmp_path: Path) -> None:
    class Unnamed(tf.keras.layers.Layer):
        def build(self, shape: tuple[int, ...]) -> None:
            self.a = self.add_weight(shape=(2,), initializer="ones")
            self.b = self.add_weight(shape=(3,), initializer="ones")

    def made() -> tf.keras.layers.Layer:
        layer = Unnamed()
        layer.build((1,))
        return layer

    first = made()
    assert tf.fingerprint(first) == tf.fingerprint(made())
    restored = made()
    restored.a.assign([7.0, 8.0])
    path = tf.train.Checkpoint(layer=first).write(tmp_path / "unnamed")
    tf.train.Checkpoint(layer=restored).restore(path)
    assert restored.a.numpy().tolist() == [1.0, 1.0]


def test_fingerprint_tells_kinds_of_values_apart() -> None:
    found = {tf.fingerprint(one) for one in OBJECTS}
    assert len(found) == len(OBJECTS)
    transposed = np.ones((2, 3)), np.ones((3, 2)), np.ones((2, 3), np.float32), np.ones(6)
    assert len({tf.fingerprint(array) for array in transposed}) == len(transposed)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_fingerprint_sees_signs_of_zeros_and_one_nan(dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    zero = np.zeros(3, kind)
    assert tf.fingerprint(zero) != tf.fingerprint(-zero)
    nan = complex(np.nan, np.nan) if zero.dtype.kind == "c" else np.nan
    quiet, payload = np.array([1.0, nan, 2.0]).astype(kind), np.array([1.0, nan, 2.0]).astype(kind)
    payload.view(f"u{quiet.real.itemsize}")[2 if quiet.dtype.kind == "c" else 1] ^= 1
    negative = np.array([1.0, -nan, 2.0]).astype(kind)
    negative[1:2].view(f"i{quiet.real.itemsize}")[:] |= -1 << (8 * quiet.real.itemsize - 1)
    assert len({one.tobytes() for one in (quiet, payload, negative)}) == 3
    assert len({tf.fingerprint(one) for one in (quiet, payload, negative)}) == 1


def test_fingerprint_of_strided_and_large_arrays_is_that_of_a_copy() -> None:
    array = np.arange(3 << 20, dtype=np.float32).reshape(3, -1)
    for view in (array.T, array[:, ::2], array[::-1], np.asfortranarray(array)):
        assert tf.fingerprint(view) == tf.fingerprint(view.copy(order="C"))
    swapped = array.astype(">f4")
    assert tf.fingerprint(swapped) == tf.fingerprint(array)


def test_fingerprint_depends_on_every_bit() -> None:
    array = np.arange(8, dtype=np.float32)
    found = {tf.fingerprint(array)}
    for byte, bit in itertools.product(range(array.nbytes), range(8)):
        changed = array.copy()
        changed.view(np.uint8)[byte] ^= 1 << bit
        if not np.isnan(changed).any():
            found.add(tf.fingerprint(changed))
    assert len(found) > 8 * array.nbytes - 8


def test_fingerprint_reads_a_variable_of_replicas_as_reading_does() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    with strategy.scope():
        total = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM, trainable=False,
        )  # fmt: skip
    strategy.run(lambda: total.assign_add(2.0))
    assert tf.fingerprint(total) == tf.fingerprint(np.float32(6.0))
    with pytest.raises(TypeError, match="reduce it over the replicas"):
        tf.fingerprint(strategy.run(lambda: total + 1.0))


def test_shared_object_has_its_shortest_path() -> None:
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    deep = {"a": {"z": v}, "b": v, "c": w}
    assert tf.fingerprint(deep) == tf.fingerprint({"b": np.float32(1.0), "c": np.float32(2.0)})
    assert tf.fingerprint(dict(reversed(deep.items()))) == tf.fingerprint(deep)
    module = tf.Module()
    module.me, module.v, module.w = module, v, w
    assert tf.fingerprint(module) == tf.fingerprint({"v": v, "w": w})


def test_structure_without_numbers_is_rejected() -> None:
    cycle: list = [1.0]
    cycle.append({"again": cycle})
    deep: list = [1.0]
    for _ in range(100):
        deep = [deep]
    rejected = {
        ValueError: [cycle, deep, [], {}, [None], {1: 1.0, "1": 2.0}, tf.keras.Sequential(),
                     iter(tf.data.Dataset.range(3)), "no checkpoint", [1.0] * 70_000],
        TypeError: [None, b"x", ["x"], object(), int, {1.0}, (n for n in [1.0]), 10**30,
                    tf.constant("x"), np.longdouble(1), np.array(["a"]), np.array([None])],
    }  # fmt: skip
    for error, subjects in rejected.items():
        for subject in subjects:
            with pytest.raises(error, match=r"^\[(fingerprint|checkpoint)\]"):
                tf.fingerprint(subject)


@pytest.mark.parametrize("harm", ["cut arrays", "cut manifest", "changed byte", "no arrays"])
def test_damaged_checkpoint_is_an_error(tmp_path: Path, harm: str) -> None:
    path = Path(tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write(tmp_path / "ckpt"))
    (arrays,) = path.glob("arrays-*")
    victim = path / "manifest.json" if harm == "cut manifest" else arrays
    content = bytearray(victim.read_bytes())
    if harm == "changed byte":
        content[-1] ^= 1
    elif harm.startswith("cut"):
        del content[-3:]
    victim.write_bytes(content)
    if harm == "no arrays":
        victim.unlink()
    with pytest.raises(ValueError, match=str(path)):
        tf.fingerprint(path)
    done = command(path)
    assert (done.returncode, done.stdout) == (2, "") and "samegrad: error: [" in done.stderr


def test_info_of_a_checkpoint_is_that_of_its_writer(tmp_path: Path) -> None:
    weights = tf.Variable([1.0, 2.0])
    path = Path(tf.train.Checkpoint(w=weights).write(tmp_path / "ckpt"))
    live, stored = tf.fingerprint_info(weights), tf.fingerprint_info(path)
    assert live.processor and stored.processor is None
    assert vars(live) | {"processor": None} == vars(stored)
    assert stored.numeric_policy == {"gradient_sums": "float32", "dtype_policy": "float32"}
    assert json.loads(stored.to_json()) == vars(stored)
    assert f"kernels:          {stored.kernels}" in str(stored)
    with pytest.raises(AttributeError):
        stored.arrays = 2  # type: ignore[misc]


def test_info_has_the_settings_that_change_bits(tmp_path: Path) -> None:
    weights = tf.Variable([1.0, 2.0])
    strategy = tf.distribute.MultiWorkerMirroredStrategy
    tf.keras.config.set_dtype_policy("mixed_bfloat16")
    strategy(replicas=1, compression="bfloat16")
    try:
        path = tf.train.Checkpoint(w=weights).write(tmp_path / "ckpt")
    finally:
        tf.keras.config.set_dtype_policy("float32")
        strategy(replicas=1, compression="none")
    found = tf.fingerprint_info(path)
    assert found.numeric_policy == {"dtype_policy": "mixed_bfloat16", "gradient_sums": "bfloat16"}
    assert found.fingerprint == tf.fingerprint(weights)
    live = tf.fingerprint_info(weights).numeric_policy
    assert live == {"dtype_policy": "float32", "gradient_sums": "float32"}


def test_info_of_a_forged_manifest_is_unknown(tmp_path: Path) -> None:
    for providers in ({}, {"numerics": [1], "isa": 5, "samegrad_version": None},
                      {"numerics": {"reduction_order": "4"}, "numeric_policy": 3}):  # fmt: skip
        manifest = {"values": {}, "aliases": {}, "providers": providers}
        _storage.save(tmp_path / "forged", {"w": np.ones(2)}, manifest)
        found = tf.fingerprint_info(tmp_path / "forged")
        assert found.samegrad is found.reduction_order is found.kernels is None
        assert found.numeric_policy == {} and "kernels:          unknown" in str(found)
    _storage.save(tmp_path / "forged", {"w": np.ones(2)}, manifest | {"aliases": {"w": "w"}})
    with pytest.raises(tf.train.CorruptCheckpointError):
        tf.fingerprint(tmp_path / "forged")


def test_command_prints_the_fingerprint(tmp_path: Path) -> None:
    path = Path(tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write(tmp_path / "ckpt"))
    assert command(path).stdout == tf.fingerprint(path) + "\n"
    assert json.loads(command(path, "--json").stdout) == vars(tf.fingerprint_info(path))
    assert command(path, "--info").stdout == f"{tf.fingerprint_info(path)}\n"
    assert command(tmp_path / "nothing").returncode == 2
    assert command().returncode == 2


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "samegrad", "fingerprint", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
