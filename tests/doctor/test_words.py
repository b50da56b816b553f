"""Every name in a remedy exists in its framework, and verdicts speak the framework's words."""

from __future__ import annotations

import importlib
import re
import types

import numpy as np
import pytest
from steps import X, Y, mean

import samegrad
from samegrad_doctor import CATALOGUE, FailureMode, StepError, _catalogue, diagnose
from samegrad_doctor._words import FRAMEWORKS, REMEDIES, remedy

OTHER = [row for row in vars(_catalogue).values() if isinstance(row, FailureMode)]
DOTTED = re.compile(r"\b(?:torch|jax|tf|keras|nn|random|optimizer|scaler)(?:\.[A-Za-z_]\w*)+")


def look_up(root, path: str) -> None:
    found = root
    for part in filter(None, path.split(".")):
        if not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)


def names(place: int) -> list[tuple[str, str]]:
    texts = {key: texts[place] for key, texts in REMEDIES.items()}
    return [(key, name) for key, text in texts.items() for name in DOTTED.findall(text)]


@pytest.mark.parametrize(("key", "name"), names(0))
def test_names_of_samegrad_exist(key: str, name: str) -> None:
    root, _, path = name.partition(".")
    look_up(samegrad, path if root == "tf" else name)


@pytest.mark.parametrize("row", [*CATALOGUE, *OTHER], ids=lambda row: row.name)
def test_names_in_the_fix_of_a_row_exist(row) -> None:
    for name in DOTTED.findall(row.fix):
        root, _, path = name.partition(".")
        look_up(samegrad, path if root == "tf" else name)


@pytest.mark.parametrize(("key", "name"), names(1))
def test_names_of_pytorch_exist(key: str, name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    importlib.import_module("torch.distributed.nn")
    root, _, path = name.partition(".")
    objects = {"optimizer": torch.optim.SGD, "scaler": torch.amp.GradScaler, "torch": torch}
    look_up(objects[root], path)


@pytest.mark.parametrize(("key", "name"), names(2))
def test_names_of_jax_exist(key: str, name: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    look_up(jax, name.partition(".")[2])


@pytest.mark.parametrize(("key", "name"), names(3))
def test_names_of_tensorflow_exist(key: str, name: str) -> None:
    tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    root, _, path = name.partition(".")
    known = {"tf": tensorflow, "optimizer": tensorflow.keras.mixed_precision.LossScaleOptimizer}
    look_up(known[root], path)


def test_every_remedy_has_words_for_all_frameworks() -> None:
    assert all(len(texts) == len(FRAMEWORKS) and all(texts) for texts in REMEDIES.values())
    assert all(row.remedy in REMEDIES for row in (*CATALOGUE, *OTHER))
    assert set(FRAMEWORKS) == {"samegrad", "pytorch", "jax", "tensorflow"}


def test_a_verdict_speaks_the_words_of_the_framework() -> None:
    def step(shares):
        return np.mean([mean(p) for p in shares], axis=0)

    found = diagnose(step, (X, Y), framework="pytorch")
    line = "loss = loss_sum * torch.distributed.get_world_size() / count"
    assert line in str(found) and remedy("count", "pytorch") in found.to_json().replace('\\"', '"')
    step.framework = "jax"
    assert "jax.lax.psum" in str(diagnose(step, (X, Y)))
    assert "nn.compute_average_loss" in str(diagnose(step, (X, Y), framework="samegrad"))
    with pytest.raises(StepError, match="framework must be one of .*got 'mxnet'"):
        diagnose(step, (X, Y), framework="mxnet")


def test_the_module_that_a_step_names_tells_the_framework() -> None:
    code = "def step(shares):\n    return sum(share.mean(axis=0) for share in shares)\n"
    for module, words in (("torch", "pytorch"), ("jax", "jax"), ("numpy", "samegrad")):
        names = {"it": types.ModuleType(module)}
        exec(code, names)  # a user's file
        found = diagnose(names["step"], np.random.default_rng(0).normal(size=(10, 20)))
        assert found.framework == words
