"""Every operation of the op table: converted to ONNX, or refused by name with its reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_runs import results_of, session_of
from onnxruntime.capi import onnxruntime_pybind11_state as state
from op_samples import array_of

import samegrad as tf
from samegrad import _core
from samegrad._function.function import Function
from samegrad.export import _convert  # noqa: F401 - it fills the table
from samegrad.export._table import REFUSED, ROWS

TABLE = {row["name"]: row for row in _core.op_table()}
# Samples of a converted operation that ONNX lacks all the same.
DROPOUT = ("dot_product_attention", 4)
CASES = [(name, index) for name, row in TABLE.items() for index in range(len(row["samples"]))
         if name not in REFUSED and (name, index) != DROPOUT]  # fmt: skip
# The place of the largest element is of use to gradients only.
FIRST_ONLY = ("max_pool2d",)


def operand(sample: dict[str, Any], place: int, rng: Any) -> Any:
    """One operand of a sample, with examples on axis 0 where the sample says so."""
    array = array_of(sample, place, rng)
    if sample["name"] == "search_sorted" and place == 0:
        array = np.sort(array)
    return tf.constant(array)


def is_batched(sample: dict[str, Any], place: int) -> bool:
    return place < len(sample["batched"]) and bool(sample["batched"][place])


@pytest.mark.parametrize(("name", "index"), CASES)
def test_an_operation_runs_in_onnxruntime(name: str, index: int) -> None:
    sample = {"name": name, **TABLE[name]["samples"][index]}
    rng = np.random.default_rng(index)
    operands = [operand(sample, place, rng) for place in range(len(sample["shapes"]))]
    specs = []
    for place, tensor in enumerate(operands):
        shape = [None, *tensor.shape[1:]] if is_batched(sample, place) else tensor.shape
        specs.append(tf.TensorSpec(shape, tensor.dtype, name=f"x{place}"))

    def call(*given: Any) -> Any:
        found = getattr(_core.ops, name)(*given, **sample["attrs"])
        return found[0] if name in FIRST_ONLY else found

    function = Function(call, autograph=False)
    examples = [x._as_examples(0, 1) if is_batched(sample, place) else x
                for place, x in enumerate(operands)]  # fmt: skip
    try:
        own = [np.asarray(part.numpy()) for part in tf.nest.flatten(function(*examples))]
    except tf.errors.InvalidArgumentError:
        pytest.skip("the numbers drawn here are none that the operation takes")
    session = session_of(tf.export.to_onnx(function, specs))
    found = results_of(session, [x.numpy() for x in operands])
    for one, ours in zip(found, own, strict=True):
        assert one.dtype == ours.dtype
        np.testing.assert_allclose(
            one.astype(np.float64), ours.astype(np.float64), rtol=tolerance(ours), atol=1e-6
        )


DTYPES = (
    "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64", "bool",
)  # fmt: skip


def results_in(name: str, dtype: str) -> Any:
    """A function, its operands and its results in a dtype; None: the operation takes others."""
    sample = {"name": name, **TABLE[name]["samples"][0]}
    given = [*sample["dtypes"], *["float32"] * len(sample["shapes"])][: len(sample["shapes"])]
    sample["dtypes"] = [dtype if one == "float32" else one for one in given]
    sample["integer_high"] = sample["integer_high"] or 100
    if sample["dtypes"] == given:
        return None
    rng = np.random.default_rng(1)
    operands = [operand(sample, place, rng) for place in range(len(given))]
    narrow = [x.dtype == tf.bfloat16 for x in operands]
    operands = [tf.cast(x, "float32") if one else x
                for x, one in zip(operands, narrow, strict=True)]  # fmt: skip

    def call(*given: Any) -> Any:
        own = [tf.cast(x, "bfloat16") if one else x for x, one in zip(given, narrow, strict=True)]
        found = getattr(_core.ops, name)(*own, **sample["attrs"])
        found = found[0] if name in FIRST_ONLY else found
        return tf.nest.map_structure(
            lambda part: tf.cast(part, "float32") if part.dtype == tf.bfloat16 else part, found
        )

    function = Function(call, autograph=False)
    try:
        own = [np.asarray(part.numpy()) for part in tf.nest.flatten(function(*operands))]
    except (TypeError, ValueError, RuntimeError):
        return None
    return function, operands, own


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_run_in_each_dtype_or_are_refused(dtype: str) -> None:
    ran, refused = 0, {}
    for name in sorted({name for name, _ in CASES}):
        found = results_in(name, dtype)
        if found is None:
            continue
        function, operands, own = found
        specs = [tf.TensorSpec(x.shape, x.dtype, f"x{at}") for at, x in enumerate(operands)]
        try:
            session = session_of(tf.export.to_onnx(function, specs))
        except (NotImplementedError, state.NotImplemented) as error:
            refused[name] = str(error)
            continue
        ran += 1
        for one, ours in zip(results_of(session, [x.numpy() for x in operands]), own, strict=True):
            assert one.dtype == ours.dtype, name
            narrow = 2e-2 if dtype == "bfloat16" else tolerance(ours)
            np.testing.assert_allclose(
                one.astype(np.float64), ours.astype(np.float64), rtol=narrow, atol=1e-6,
                err_msg=name,
            )  # fmt: skip
    assert ran > 20
    # Of what ONNX has, onnxruntime computes some in float32 only.
    reason = {"uint64": "uint64 is not computed by ONNX runtimes", "float64": "implementation for"}
    assert all(dtype in reason and reason[dtype] in text for text in refused.values()), refused


def tolerance(array: np.ndarray) -> float:
    if not np.issubdtype(array.dtype, np.floating) and array.dtype.kind in "biu":
        return 0.0
    return {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3}.get(array.dtype.name, 2e-2)


def test_each_operation_is_converted_or_refused_with_a_reason() -> None:
    assert set(ROWS) | set(REFUSED) == set(TABLE)
    assert not set(ROWS) & set(REFUSED)


@pytest.mark.parametrize("name", [name for name in REFUSED if TABLE[name]["samples"]])
def test_a_refused_operation_is_named_with_its_reason(name: str) -> None:
    sample = {"name": name, **TABLE[name]["samples"][0]}
    rng = np.random.default_rng(0)
    operands = [operand(sample, place, rng) for place in range(len(sample["shapes"]))]

    def call(*given: Any) -> Any:
        return getattr(_core.ops, name)(*given, **sample["attrs"])

    specs = [tf.TensorSpec(x.shape, x.dtype) for x in operands]
    with pytest.raises(NotImplementedError, match=f"'{name}' cannot be (exported|saved), as"):
        tf.export.to_onnx(Function(call, autograph=False), specs)


def test_a_dropout_of_attention_is_refused() -> None:
    name, index = DROPOUT
    sample = {"name": name, **TABLE[name]["samples"][index]}
    rng = np.random.default_rng(0)
    operands = [operand(sample, place, rng) for place in range(len(sample["shapes"]))]
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) if is_batched(sample, place) else
             tf.TensorSpec(x.shape, x.dtype) for place, x in enumerate(operands)]  # fmt: skip

    def call(*given: Any) -> Any:
        return getattr(_core.ops, name)(*given, **sample["attrs"])

    with pytest.raises(NotImplementedError, match=r"cannot be exported, as .*draws"):
        tf.export.to_onnx(Function(call, autograph=False), specs)
