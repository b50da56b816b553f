"""Layers and whole models give the outputs and gradients of PyTorch in float64."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformer_cases as cases

import samegrad as tf
from samegrad.cli._translate._blocks import DecoderBlock, EncoderBlock, Sizes
from samegrad.cli._translate._model import Transformer

FOLDER = Path(__file__).parent
RECORDED = dict(np.load(FOLDER / "transformer_torch.npz"))
SIZES = {"layers": cases.LAYERS, "width": cases.WIDTH, "hidden": cases.HIDDEN,
         "heads": cases.HEADS, "dropout": 0.0}  # fmt: skip


def give(layer: Any, weights: dict[str, np.ndarray]) -> dict[str, Any]:
    """Assigns a layer's weights by name; all variables by name."""
    found = {v.path.split("/", 1)[1]: v for v in layer.trainable_variables}
    for name, value in weights.items():
        found[name].assign(value)
    return {name: found[name] for name in weights}


def apply_part(part: str, block: Any, source: Any, target: Any) -> Any:
    seen = (tf.constant(cases.SOURCE) != 0)[:, None, :]
    if part == "attention with padding":
        return block.own(source, source, attention_mask=seen)
    if part == "causal attention":
        return block.own(target, target, use_causal_mask=True)
    if part == "normalization":
        return block.own_norm(source)
    if part == "feed-forward":
        return block.feed(source)
    if part.startswith("encoder"):
        return block(source, seen)
    return block(target, source, seen)


def part_results(part: str, traced: bool) -> dict[str, np.ndarray]:
    sizes = Sizes(**SIZES, normalize_first=part.endswith("pre"))
    block = (DecoderBlock if part.startswith("decoder") else EncoderBlock)(sizes, dtype="float64")
    block.build(None)
    variables = give(block, cases.weights_of(cases.part_shapes(part)))
    named = dict(zip(("source", "target"), map(tf.constant, cases.inputs()), strict=True))

    def run(source: Any, target: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            tape.watch([source, target])
            output = apply_part(part, block, source, target)
            total = tf.reduce_sum(output * cases.numbers(tuple(output.shape), 200))
        return output, tape.gradient(total, [*variables.values(), source, target])

    output, gradients = (tf.function(run) if traced else run)(**named)
    pairs = zip([*variables, *named], gradients, strict=True)
    return {"output": output.numpy()} | {k: g.numpy() for k, g in pairs if g is not None}


def model_results(name: str, replicas: int) -> dict[str, np.ndarray]:
    before, shared = cases.MODELS[name]
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        sizes = Sizes(**SIZES, normalize_first=before, shared=shared)
        model = Transformer(cases.TOKENS, cases.TOKENS, sizes, dtype="float64")
    variables = give(model, cases.weights_of(cases.model_shapes(before, shared)))
    assert len(variables) == len(model.trainable_variables)

    def step(batch: Any) -> tuple[Any, Any, list[Any]]:
        source, target = batch
        with tf.GradientTape() as tape:
            logits = model((source, target[:, :-1]), training=True)
            losses, weights = tf.nn.padded_cross_entropy_loss(
                logits, target[:, 1:], cases.SMOOTHING, cases.TOKENS
            )
            loss = tf.nn.compute_weighted_mean_loss(losses, weights)
        gradients = tape.gradient(loss, list(variables.values()))
        return logits, *tf.distribute.get_replica_context().all_reduce("sum", [loss, gradients])

    data = tf.data.Dataset.from_tensor_slices((cases.SOURCE, cases.TARGET)).batch(3)
    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    logits, loss, gradients = strategy.run(step, (batch,))
    first = [strategy.experimental_local_results(x)[0].numpy() for x in (loss, *gradients)]
    parts = strategy.experimental_local_results(logits)
    return {"logits": np.concatenate([part.numpy() for part in parts])} | dict(
        zip(("loss", *variables), first, strict=True)
    )


def assert_as_recorded(case: str, found: dict[str, np.ndarray]) -> None:
    expected = {
        name.removeprefix(f"{case}: "): value
        for name, value in RECORDED.items()
        if name.startswith(f"{case}: ")
    }
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", cases.PARTS)
def test_a_part_is_that_of_pytorch(part: str, traced: bool) -> None:
    assert_as_recorded(part, part_results(part, traced))


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", cases.MODELS)
def test_a_model_is_that_of_pytorch(name: str, replicas: int) -> None:
    assert_as_recorded(f"model {name}", model_results(name, replicas))


def test_the_recorded_values_are_those_of_the_installed_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    file = tmp_path / "now.npz"
    script = FOLDER / "record_transformer_torch.py"
    subprocess.run([sys.executable, str(script), str(file)], check=True, cwd=FOLDER)
    now = dict(np.load(file))
    assert set(now) == set(RECORDED)
    for name, value in now.items():
        np.testing.assert_allclose(value, RECORDED[name], rtol=1e-9, atol=1e-12, err_msg=name)
