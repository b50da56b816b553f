"""The block of BERT that is measured: PyTorch's numbers, the same model on any replicas, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bert_cases as cases
import numpy as np
import pytest
from tf_bert import block_model, tagging_step
from workloads import BATCH, BERT, TAGS, EncoderSizes, Job, load

import samegrad as tf

FOLDER = Path(__file__).parent
RECORDED = dict(np.load(FOLDER / "bert_torch.npz"))
NAMES = {"attention_output": "output"}


def named(model: Any) -> dict[str, Any]:
    """The variables by the names of `bert_cases.weights`."""
    found = {}
    for layer in ("attend", "rise", "fall", "norm1", "norm2", "tags"):
        for variable in getattr(model, layer).trainable_variables:
            *_, part, name = variable.path.split("/")
            part = f"{NAMES.get(part, part)}/" if layer == "attend" else ""
            found[f"{layer}/{part}{name}"] = variable
    return found


def build(sizes: EncoderSizes, dtype: str) -> Any:
    model = block_model(tf, sizes, dtype=dtype)
    model(tf.zeros((1, 2, sizes.width), dtype), tf.constant([[True, True]]))
    return model


def batches(strategy: Any, arrays: Any, size: int) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(size)
    return iter(strategy.experimental_distribute_dataset(dataset))


def test_a_block_of_full_size_is_that_of_pytorch() -> None:
    """Outputs, losses while it trains, and all gradients, in float64."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = build(cases.SIZES, "float64")
        optimizer = tf.keras.optimizers.SGD(cases.RATE)
    variables = named(model)
    weights = cases.weights()
    assert set(variables) == set(weights)
    for name, value in weights.items():
        variables[name].assign(value)
    train = tagging_step(tf, model, optimizer)
    x, labels = cases.sentences()
    logits = model(tf.constant(x), tf.constant(labels != 0), training=True).numpy()

    @tf.function
    def step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(train, args=(batch,)), axis=None)

    losses, gradients = [], {}
    for _ in range(cases.STEPS):
        losses.append(float(step(next(batches(strategy, (x, labels), 2)))))
        if not gradients:  # gradient descent tells its gradients
            gradients = {n: (weights[n] - v.numpy()) / cases.RATE for n, v in variables.items()}
    found = cases.results(logits, losses, gradients)
    assert set(found) == set(RECORDED)
    for name, value in RECORDED.items():
        scale = max(np.abs(value).max(), 1e-6)  # that of the keys' biases is 0
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9 * scale, err_msg=name)


def test_the_recorded_block_is_that_of_the_installed_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    file, script = tmp_path / "now.npz", FOLDER / "record_bert_torch.py"
    subprocess.run([sys.executable, str(script), str(file)], check=True, cwd=FOLDER)
    now = dict(np.load(file))
    assert set(now) == set(RECORDED)
    for name, value in now.items():
        np.testing.assert_allclose(value, RECORDED[name], rtol=1e-9, atol=1e-12, err_msg=name)


def trained(replicas: int, steps: int) -> tuple[list[float], list[Any]]:
    """Losses and weights of a small block with dropout."""
    tf.keras.utils.set_random_seed(3)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = build(EncoderSizes(width=24, heads=4, hidden=48), "float32")
        optimizer = tf.keras.optimizers.Adam(1e-2)
    train = tagging_step(tf, model, optimizer)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 20, 24), np.float32)
    labels = 1 + x[:, :, :TAGS].argmax(-1).astype(np.int32)
    for row in range(12):
        labels[row, 20 - row :] = 0

    @tf.function
    def step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(train, args=(batch,)), axis=None)

    losses = [float(step(next(batches(strategy, (x, labels), 12)))) for _ in range(steps)]
    return losses, [variable.numpy() for variable in model.trainable_variables]


def test_a_block_learns_to_tag() -> None:
    losses, _ = trained(2, 60)
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_replicas_train_the_block_of_one_device(replicas: int) -> None:
    """Dropout included, whose random numbers belong to sentences, not to replicas."""
    losses, weights = trained(replicas, 3)
    expected, of_one = trained(1, 3)
    assert losses == expected
    for a, b in zip(weights, of_one, strict=True):
        np.testing.assert_array_equal(a, b)


def test_attention_keeps_no_array_of_all_pairs() -> None:
    """Forwards and backwards, with dropout and the padding mask: one row each."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = build(BERT, "float32")
        train = tagging_step(tf, model, tf.keras.optimizers.Adam(1e-4))
    step = tf.function(lambda batch: strategy.run(train, args=(batch,)))
    x, labels = cases.sentences()
    plan = str(step.explain(next(batches(strategy, (x.astype(np.float32), labels), 2))))
    assert "dot_product_attention float32" in plan and "dot_product_attention_grad" in plan
    pairs = f"{BERT.heads}, {BERT.length}, {BERT.length}"
    assert pairs not in plan


def test_every_framework_gets_sentences_that_differ_in_length() -> None:
    x, labels = load("bert_block")
    lengths = (labels != 0).sum(1)
    assert x.shape == (24, BERT.length, BERT.width) and x.dtype == np.float32
    assert 384 <= lengths.min() < lengths.max() <= 512
    assert set(np.unique(labels)) == set(range(TAGS + 1))
    job = Job("bert_block", "samegrad", 2, BATCH["bert_block"])
    assert job.units_per_step == 2 * 8 * 512


def test_one_step_of_full_size_takes_little_memory() -> None:
    """Less than the 837 MiB of PyTorch without dropout of the attention's weights (README.md)."""
    command = [sys.executable, str(FOLDER / "peers.py"), "bert_block", "samegrad", "--steps"]
    done = subprocess.run(
        [*command, "--replicas", "2", "--batch", "4", "--threads", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["peak_memory_mib"] < 837
    assert np.isfinite(report["loss"])
