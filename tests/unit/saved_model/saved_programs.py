"""Random programs of the fuzzer, as functions of an object that is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from fuzz.generate import generate
from fuzz.program import input_data
from fuzz.source import text

import samegrad as tf


class RefusedError(Exception):
    """The program cannot be saved, and the error says why."""


def module_of(seed: int) -> tuple[Any, list[Any]]:
    """The program of a seed as a module, and its arguments."""
    program = generate(seed)
    code = text(program, "function").rsplit("\nprint(", 1)[0]
    space: dict[str, Any] = {}
    exec(compile(code, f"<program {seed}>", "exec"), space)  # text of the fuzzer's own
    module = tf.Module()
    module.weights = [space[f"w{i}"] for i in range(len(program.variables))]
    if "optimizer" in space:
        module.optimizer = space["optimizer"]
    module.step = tf.function(space["step"])
    dtype = getattr(tf, program.dtype)
    tensors = [
        tf.constant(x, tf.int32 if x.dtype == np.int32 else dtype) for x in input_data(program, 0)
    ]
    if program.examples:
        tensors = [tensor._as_examples(0, 1) for tensor in tensors]
    return module, tensors


def values_of(module: Any, arguments: list[Any]) -> list[bytes]:
    """The bits of all results of a step, and of the variables after it."""
    tf.random.set_seed(1)
    results = tf.nest.flatten([module.step(*arguments), module.weights])
    return [b"" if one is None else np.asarray(one.numpy()).tobytes() for one in results]


def differences(seed: int, folder: Path) -> list[int]:
    """Return the results of a loaded program that differ from those of the original.

    Raises:
        RefusedError: It cannot be saved.
    """
    module, arguments = module_of(seed)
    values_of(module, arguments)
    try:
        tf.saved_model.save(module, folder)
    except (ValueError, NotImplementedError) as error:
        if "asks for the number of examples" in str(error):
            raise RefusedError(str(error)) from None
        raise
    loaded = tf.saved_model.load(folder)
    wanted, found = values_of(module, arguments), values_of(loaded, arguments)
    if len(wanted) != len(found):
        return [-1]
    return [i for i, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b]
