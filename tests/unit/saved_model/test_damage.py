"""Damaged and hostile folders: an error each, and nothing outside of the folder."""

from __future__ import annotations

import copy
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved_model_damage as damage

import samegrad as tf

ROUNDS = 450
ERRORS = (tf.saved_model.CorruptSavedModelError, FileNotFoundError)


@pytest.fixture(params=range(4))
def saved(request: Any, tmp_path: Path) -> Path:
    tf.saved_model.save(damage.model(request.param), tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.filterwarnings("ignore:.saved_model.load. the model was saved with")
def test_a_changed_document_with_its_hash_is_refused_or_runs(saved: Path) -> None:
    body = damage.document(saved)
    x = tf.constant(np.ones((3, 4, 4), np.float32))
    refused = 0
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        changed = copy.deepcopy(body)
        damage.damage(changed, rng)
        damage.write(saved, changed)
        try:
            loaded = tf.saved_model.load(saved)
            loaded.parts[0](x)
        except ERRORS:
            refused += 1
        except (ValueError, TypeError, AttributeError, IndexError, MemoryError):
            continue  # what is loaded has other parts, or takes other tensors
    assert refused > ROUNDS // 2


def test_changed_bytes_are_refused(saved: Path) -> None:
    original = (saved / "saved_model.json").read_bytes()
    for seed in range(ROUNDS // 2):
        damage.spoil(saved, original, random.Random(seed))
        if (saved / "saved_model.json").read_bytes() != original:
            with pytest.raises(ERRORS):
                tf.saved_model.load(saved)
    (saved / "saved_model.json").write_bytes(original)
    (arrays,) = saved.glob("*.safetensors")
    content = arrays.read_bytes()
    for seed in range(60):
        rng = random.Random(seed)
        spoiled = bytearray(content)
        spoiled[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        arrays.write_bytes(
            bytes(spoiled)[: rng.choice((len(content), rng.randrange(len(content))))]
        )
        with pytest.raises(ERRORS):
            tf.saved_model.load(saved)


BOMBS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "many": "[" + "0," * 5_000_000 + "0]",
    "strings": '"' + "[" * 1000 + '"',
    "large number": '{"format": "samegrad-saved-model", "version": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_document_that_would_take_much_memory_is_refused(tmp_path: Path, name: str) -> None:
    content = BOMBS[name].encode()
    (tmp_path / "saved_model.json").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(tf.saved_model.CorruptSavedModelError):
            tf.saved_model.load(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(content) + (4 << 20)
    finally:
        tracemalloc.stop()


def test_sizes_of_arrays_are_those_of_the_file(tmp_path: Path) -> None:
    module = tf.Module()
    module.v = tf.Variable(np.ones((8, 8), np.float32))
    tf.saved_model.save(module, tmp_path / "m")
    body = damage.document(tmp_path / "m")
    for shape in ([1 << 40], [1 << 61, 2], [8, 9], [], [-1], [8] * 40):
        changed = copy.deepcopy(body)
        next(iter(changed["arrays"].values()))["shape"] = shape
        damage.write(tmp_path / "m", changed)
        with pytest.raises(tf.saved_model.CorruptSavedModelError):
            tf.saved_model.load(tmp_path / "m")
