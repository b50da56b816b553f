"""Every row of the op table, through a file and back."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from op_samples import array_of
from saved_model_damage import damage

import samegrad as tf
from samegrad import _core
from samegrad._function.export import export_program
from samegrad._function.function import Function

# Rows that passes make; a trace has none of them.
OF_PASSES = {row["name"] for row in _core.op_table() if row["version"] == 0}
ROWS = [row for row in _core.op_table() if row["samples"] and row["version"] > 0]
CASES = [(row["name"], index) for row in ROWS for index in range(len(row["samples"]))]
TABLE = {row["name"]: row for row in ROWS}


def operand(sample: dict[str, Any], place: int, rng: Any) -> Any:
    """One operand of a sample, with examples on axis 0 where the sample says so."""
    tensor = tf.constant(array_of(sample, place, rng))
    batched = place < len(sample["batched"]) and sample["batched"][place]
    return tensor._as_examples(0, 1) if batched else tensor


def spec_of(tensor: Any) -> tf.TensorSpec:
    shape = list(tensor.shape)
    if tensor._example_axis is not None:
        shape[0] = None
    return tf.TensorSpec(shape, tensor.dtype)


def run_of(call: Any, operands: list[Any]) -> list[bytes]:
    results = Function(call, autograph=False)(*operands)
    return [np.asarray(part.numpy()).tobytes() for part in tf.nest.flatten(results)]


def reloaded(program: Any) -> Any:
    """The program after a way through text."""
    data = json.loads(json.dumps(program.graph))
    return _core.SavedProgram(data, program.constants)


@pytest.mark.parametrize(("name", "index"), CASES)
def test_an_operation_keeps_its_bits_through_a_file(name: str, index: int) -> None:
    row = TABLE[name]
    sample = row["samples"][index]
    rng = np.random.default_rng(index)
    operands = [operand(sample, place, rng) for place in range(len(sample["shapes"]))]

    def call(*given: Any) -> Any:
        return getattr(_core.ops, name)(*given, **sample["attrs"])

    try:
        tf.random.set_seed(1)
        wanted = run_of(call, operands)
    except tf.errors.InvalidArgumentError:
        pytest.skip("the numbers drawn here are none that the operation takes")
    program = export_program(Function(call, autograph=False), tuple(map(spec_of, operands)), {})
    loaded = reloaded(program)
    tf.random.set_seed(1)
    assert run_of(lambda *given: loaded.replay(list(given), []), operands) == wanted


def test_a_row_that_promises_the_bits_of_its_decomposition_is_saved_as_that() -> None:
    specs = (tf.TensorSpec([None, 10]), tf.TensorSpec([None, 10]))
    call = Function(_core.ops.softmax_cross_entropy, autograph=False)
    names = [node["operation"] for node in export_program(call, specs, {}).graph["nodes"]]
    assert "softmax_cross_entropy" not in names and "log_softmax" in names


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_row_that_rounds_once_stays_one_row(dtype: str) -> None:
    rng = np.random.default_rng(0)
    operands = [tf.cast(rng.normal(size=(40, 10)), dtype) for _ in range(2)]
    specs = (tf.TensorSpec([40, 10], dtype),) * 2
    program = export_program(Function(_core.ops.softmax_cross_entropy, autograph=False), specs, {})
    loaded = reloaded(program)
    wanted = run_of(_core.ops.softmax_cross_entropy, operands)
    assert run_of(lambda *given: loaded.replay(list(given), []), operands) == wanted


def test_a_row_of_another_version_is_refused_by_name() -> None:
    program = export_program(Function(tf.tanh), (tf.TensorSpec([2]),), {})
    program.graph["operations"]["tanh"] = 2
    with pytest.raises(ValueError, match="'tanh' must be of version 1: got 2"):
        reloaded(program)


def test_an_unknown_row_is_refused_by_name() -> None:
    program = export_program(Function(tf.tanh), (tf.TensorSpec([2]),), {})
    for name in ("tanhh", "all_gather", *OF_PASSES):
        program.graph["nodes"][0]["operation"] = name
        with pytest.raises(ValueError, match=f"'{name}' is not known here"):
            reloaded(program)


def test_rows_of_a_table_have_versions_in_the_file() -> None:
    graph = export_program(Function(lambda x: tf.tanh(x) + 1), (tf.TensorSpec([2]),), {}).graph
    assert graph["operations"] == {"tanh": 1, "add": 1}


@pytest.mark.parametrize("name", TABLE)
def test_a_damaged_operation_is_refused_or_runs(name: str) -> None:
    """Attributes, operands and types of a file may be any: the process goes on."""
    row = TABLE[name]
    refused = 0
    for index, sample in enumerate(row["samples"]):
        rng = np.random.default_rng(index)
        operands = [operand(sample, place, rng) for place in range(len(sample["shapes"]))]

        def call(*given: Any, sample: Any = sample) -> Any:
            return getattr(_core.ops, name)(*given, **sample["attrs"])

        program = export_program(Function(call, autograph=False), tuple(map(spec_of, operands)), {})
        for seed in range(12):
            changed = json.loads(json.dumps(program.graph))
            parts = {"nodes": changed["nodes"], "sources": changed["sources"]}
            damage(parts, random.Random(f"{name} {index} {seed}"))
            try:
                loaded = _core.SavedProgram(changed, program.constants)
                run_of(lambda *given, loaded=loaded: loaded.replay(list(given), []), operands)
            except (ValueError, TypeError, IndexError, MemoryError, NotImplementedError):
                refused += 1
    assert refused > 0
