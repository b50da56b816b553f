"""Damaged and hostile folders of saved models."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.saved_model import _folder

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 2**31, 2**40, 2**62, -(2**62), 2**63 - 1, -(2**63),
    2**70, 0.5, 1e300, float("inf"), float("nan"), "", "s0", "s1", "s99", "n", "float32", "int64",
    "bool", "string", "../x", "__class__", "matmul", "replay", "while_loop", "cond", "slice",
    [], {}, [[]], [0], [1, 2], [0, 1, "s0"], {"tensor": 0}, {"value": 1},
)  # fmt: skip


def model(seed: int) -> Any:
    """A module whose graphs have branches, loops, gradients, draws and windows."""
    module = tf.Module()
    rng = np.random.default_rng(seed)
    module.w = tf.Variable(rng.normal(size=(4, 4)).astype(np.float32))
    module.count = tf.Variable(0, trainable=False)
    spec = tf.TensorSpec([None, None, 4], tf.float32)

    def recurrent(x: Any) -> Any:
        rows = tf.transpose(x, [1, 0, 2])
        return tf.scan(lambda s, row: tf.tanh(s @ module.w + row), rows, tf.zeros_like(rows[0]))[-1]

    def loop(x: Any) -> Any:
        module.count.assign_add(1)
        y = x
        while tf.reduce_sum(y) < 10.0 and tf.reduce_max(module.w) < 9.0:
            y = y + tf.abs(y) + 1.0
        if tf.reduce_sum(y) > 20.0:
            y = y * 2.0
        return {"y": y + tf.random.normal([4]), "n": [tf.shape(y)[0], 1.5]}

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(recurrent(x) ** 2)
        return tape.gradient(total, module.w)

    def windows(x: Any) -> Any:
        images = tf.reshape(x, [tf.shape(x)[0], -1, 2, 2])
        images = tf.nn.conv2d(images, module.w[None, None, :2, :], 1, "SAME")
        pooled = tf.nn.max_pool2d(images, 2, 1, "SAME")
        return tf.gather(pooled, tf.constant([0, 1]), axis=3), tf.concat([x, x[:, :1]], 1)[:, ::2]

    functions = [recurrent, loop, gradient, windows]
    chosen = functions[seed % len(functions)]
    module.parts = [tf.function(chosen, input_signature=[spec]), {"v": module.w}]
    return module


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """All places of a document: a container and a key or index."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        found.append((value, key))
        if isinstance(value[key], dict | list):
            places(value[key], found)
    return found


def damage(body: Any, rng: random.Random) -> None:
    """Change a document at one place or a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        found = places(body, [])
        if not found:
            return
        container, key = rng.choice(found)
        kind = rng.randrange(6)
        if kind == 0:
            del container[key]
        elif kind == 1 and isinstance(container[key], int) and not isinstance(container[key], bool):
            container[key] += rng.choice((-2, -1, 1, 2, 1000))
        elif kind == 2 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif kind == 3:
            other, place = rng.choice(places(body, []))
            container[key] = copy.deepcopy(other[place])
        else:
            container[key] = copy.deepcopy(rng.choice(VALUES))


def write(folder: Path, body: Any) -> None:
    """Write a document whose hash is right."""
    body = {key: value for key, value in body.items() if key != "blake2b"}
    body["blake2b"] = _folder._storage._digest(_folder.encode(body))
    (folder / "saved_model.json").write_bytes(_folder.encode(body))


def spoil(folder: Path, original: bytes, rng: random.Random) -> None:
    """Change bytes of the document without its hash."""
    content = bytearray(original)
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(content))
        kind = rng.randrange(3)
        if kind == 0:
            content[at] = rng.randrange(256)
        elif kind == 1:
            del content[at : at + rng.randrange(1, 200)]
        else:
            content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
    (folder / "saved_model.json").write_bytes(bytes(content))


def document(folder: Path) -> Any:
    return json.loads((folder / "saved_model.json").read_bytes())
