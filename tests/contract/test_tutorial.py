"""The tutorial's program runs with only its import changed, and finds TensorFlow's figures."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).parent / "tutorial_program.py"


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright square whose place is the label."""
    rng = np.random.default_rng(seed)
    images = rng.random((count, 28, 28, 1), np.float32) * np.float32(0.3)
    labels = rng.integers(0, 10, count)
    for image, label in zip(images, labels, strict=True):
        row, column = 4 + 12 * (label // 5), 2 + 5 * (label % 5)
        image[row : row + 8, column : column + 4] += 0.7
    return images, labels.astype(np.uint8)


@functools.cache
def outcome(module: str, replicas: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        # 1,000 and 200 are no multiples of a batch: the last one is short.
        train, test = pictures(1000, 0), pictures(200, 1)
        arrays = dict(zip(("train_images", "train_labels"), train, strict=True))
        arrays |= dict(zip(("test_images", "test_labels"), test, strict=True))
        path = pathlib.Path(folder) / "data.npz"
        np.savez(path, **arrays)
        done = subprocess.run(
            [sys.executable, PROGRAM, module, path, str(replicas)],
            cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        found: dict = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_it_learns_saves_and_restores(replicas: int) -> None:
    found = outcome("samegrad", replicas)
    losses, _, _, test_accuracies = zip(*found["epochs"], strict=True)
    assert losses[-1] < losses[0] and test_accuracies[-1] > 0.9
    assert found["restored"] == test_accuracies[-1]


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)
def test_one_replica_finds_the_figures_of_tensorflow() -> None:
    ours, theirs = outcome("samegrad", 1), outcome("tensorflow", 1)
    np.testing.assert_allclose(ours["epochs"], theirs["epochs"], rtol=2e-3, atol=6e-3)
