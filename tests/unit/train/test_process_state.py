"""A checkpoint holds the random state, and says when the kernels are others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import write_checkpoints

import samegrad as tf
from samegrad import _core
from samegrad._base.numerics import numerics
from samegrad.train import _process_state, _storage

FOLDERS = sorted(write_checkpoints.FOLDER.glob("reduction-*"))
X = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)


def training() -> tuple[tf.train.Checkpoint, Any, list[Any]]:
    """A checkpoint, a step with dropout, and the weights."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Dense(8), layers.Dropout(0.5), layers.Dense(1)])
        model.build((None, 6))
        optimizer = tf.keras.optimizers.Adam()
    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(X).batch(16)
    )

    def step(rows: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(model(rows, training=True)), axis=1)
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    run = tf.function(lambda rows: strategy.run(step, args=(rows,)))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    return checkpoint, lambda: run(batch), model.trainable_variables


def test_dropout_goes_on_where_it_stopped(tmp_path) -> None:
    tf.random.set_seed(4)
    checkpoint, run, weights = training()
    for _ in range(3):
        run()
    path = checkpoint.save(tmp_path / "ckpt")
    for _ in range(3):
        run()

    tf.random.set_seed(99)
    resumed, run_again, found = training()
    resumed.restore(path)
    for _ in range(3):
        run_again()
    for one, other in zip(weights, found, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_reading_leaves_the_random_state_as_it_is(tmp_path) -> None:
    checkpoint, _, _ = training()
    path = checkpoint.save(tmp_path / "ckpt")
    tf.random.set_seed(99)
    checkpoint.read(path)
    assert _core.random_state().seed == 99


def test_the_manifest_names_version_and_kernels(tmp_path) -> None:
    path = tf.train.Checkpoint(w=np.ones(2)).save(tmp_path / "ckpt")
    providers = _storage.load(path)[1]["providers"]
    assert providers["samegrad_version"] == _core.__version__
    assert providers["isa"] == _core.isa()


def fused_here(fused: bool) -> bool:
    """Whether a variant of this processor has, or lacks, fused multiply-add."""
    return any(_core.isa_fused()[isa] == fused for isa in _core.isa_supported())


@pytest.mark.skipif(
    not (fused_here(True) and fused_here(False)), reason="all kernels here have the same bits"
)
def test_a_checkpoint_of_other_kernels_is_restored_with_a_warning(tmp_path) -> None:
    write = (
        "import sys, numpy, samegrad as tf; tf.train.Checkpoint(w=numpy.ones(2)).save(sys.argv[1])"
    )
    fused = _core.isa_fused()
    other = next(v for v in _core.isa_supported() if fused[v] != fused[_core.isa()])
    environment = os.environ | {"SAMEGRAD_ISA": other.removeprefix("x86-64-")}
    prefix = str(tmp_path / "ckpt")
    subprocess.run([sys.executable, "-c", write, prefix], env=environment, check=True)
    checkpoint = tf.train.Checkpoint(w=np.zeros(2))
    with pytest.warns(UserWarning, match="SAMEGRAD_ISA"):
        checkpoint.restore(tf.train.latest_checkpoint(tmp_path))
    np.testing.assert_array_equal(checkpoint.w, np.ones(2))


PROCESSORS = [
    ["x86-64-v2"],
    ["x86-64-v2", "x86-64-v3"],
    ["x86-64-v2", "x86-64-v3", "x86-64-v4"],
    ["generic", "neon"],
    ["generic"],
]


@pytest.mark.parametrize("supported", PROCESSORS, ids="+".join)
@pytest.mark.parametrize("written", [*sorted(_core.isa_fused()), "sve2"])
def test_advice_on_kernels_can_be_followed_where_it_is_read(
    monkeypatch, written, supported
) -> None:
    fused = _core.isa_fused()
    assert set(fused) == {name for names in PROCESSORS for name in names}
    monkeypatch.setattr(_core, "isa_supported", lambda: supported)
    for here in supported:
        monkeypatch.setattr(_core, "isa", lambda here=here: here)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _process_state._check_isa(written)
        texts = [str(one.message) for one in caught]
        assert len(texts) == (fused.get(written) != fused[here])
        for text in texts:
            advised = re.search(r"SAMEGRAD_ISA=(\S+)", text)
            same = [name for name in supported if fused[name] == fused.get(written)]
            assert (advised[1] in same) if advised else not same
            assert written in text and here in text


def test_a_checkpoint_of_the_same_kernels_is_restored_silently(tmp_path) -> None:
    checkpoint = tf.train.Checkpoint(w=np.ones(2))
    path = checkpoint.save(tmp_path / "ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint.restore(path)


def warned(checkpoint: tf.train.Checkpoint, path: Any) -> list[str]:
    """The warnings about the numerics when a checkpoint is restored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint.restore(path).assert_consumed()
    return [text for one in caught if "reduction order" in (text := str(one.message))]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_checkpoint_of_each_version_resumes_and_names_the_changes(folder) -> None:
    order, functions = (int(part) for part in folder.name.split("-")[1::2])
    here = numerics()
    checkpoint, step = write_checkpoints.training()
    found = warned(checkpoint, folder)
    assert float(tf.reduce_sum(tf.abs(checkpoint.optimizer.variables[2]))) > 0
    step()
    if {"reduction_order": order, "function_version": functions} == here:
        assert not found
        return
    (text,) = found
    assert f"written with reduction order {order} and function version {functions}: got" in text
    assert f"got reduction order {here['reduction_order']} and function version " in text
    for version in range(2, here["reduction_order"] + 1):
        assert (f"(reduction order {version})" in text) == (version > order)
    for version in range(2, here["function_version"] + 1):
        assert (f"(function version {version})" in text) == (version > functions)


def test_the_folders_have_a_checkpoint_of_each_version() -> None:
    names = [folder.name for folder in FOLDERS]
    for name, newest in zip(("reduction", "functions"), numerics().values(), strict=True):
        known = {int(re.search(rf"{name}-(\d+)", folder)[1]) for folder in names}
        assert known == set(range(1, newest + 1))
    assert write_checkpoints.name_of(numerics()) in names, "run write_checkpoints.py"


@pytest.mark.parametrize("name", ["reduction_order", "function_version"])
def test_a_checkpoint_of_a_newer_version_is_restored_with_a_warning(
    tmp_path, monkeypatch, name
) -> None:
    checkpoint = tf.train.Checkpoint(w=np.ones(2))
    newer = numerics()[name] + 1
    with monkeypatch.context() as patch:
        patch.setattr(_core, name, lambda: newer)
        path = checkpoint.write(tmp_path / "ckpt")
    assert _storage.load(path)[1]["providers"]["numerics"][name] == newer
    (text,) = warned(checkpoint, path)
    assert f"{name.replace('_', ' ')} {newer}" in text.partition(": got")[0]
    assert "Changed since" not in text
