"""Random programs of the fuzzer in onnxruntime: right, or refused by name."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fuzz.generate import generate
from fuzz.program import Program, input_data, variable_data
from fuzz.source import mapped_text, setup_text
from onnx_runs import FACTOR, flat_arrays, results_of, session_of

import samegrad as tf

PROGRAMS = 80


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Losses and collectives of these programs are normalized as the fuzzer likes."""
    tf.config.set_loss_normalization_check("off")
    tf.config.set_replica_dependence_check("off")
    yield
    tf.config.set_loss_normalization_check("warn")
    tf.config.set_replica_dependence_check("warn")


def function_of(program: Program) -> Any:
    """The values and the loss of a program as a function with an open batch."""
    streams = {1000 + i: data for i, data in enumerate(variable_data(program))}
    space: dict[str, Any] = {
        "tf": tf, "np": np, "FLOAT": getattr(tf, program.dtype), "data": streams,
    }  # fmt: skip
    setup = setup_text(program)
    for stream in streams:
        setup = re.sub(
            rf"tf\.Variable\(\(draw64\({stream}.*$",
            f"tf.Variable(data[{stream}], dtype=FLOAT)", setup, flags=re.M,
        )  # fmt: skip
    exec(setup, space)
    exec(compile(mapped_text(program), "<program>", "exec"), space)
    specs = [
        tf.TensorSpec([None, *x.shape[1:]], x.dtype, name=f"x{i}")
        for i, x in enumerate(input_data(program, 0))
    ]
    return tf.function(space["mapped"], autograph=False, input_signature=specs)


def is_right(found: Any, own: Any, exact: Any) -> bool:
    """Tell if an export is as exact as ours; sums of the program may cancel."""
    if not np.issubdtype(own.dtype, np.floating):
        return np.array_equal(found, own)
    finite = np.isfinite(exact)
    if not np.array_equal(np.isfinite(found), finite):
        return False
    ours = np.max(np.abs(own - exact)[finite], initial=0.0)
    allowed = FACTOR * ours + 1e-5 * max(1.0, np.max(np.abs(exact)[finite], initial=0.0))
    return bool(np.max(np.abs(found - exact)[finite], initial=0.0) <= allowed)


def test_random_programs_are_right_or_refused(unchecked: None) -> None:
    ran = 0
    for seed in range(PROGRAMS):
        program = dataclasses.replace(generate(seed), dtype="float32")
        inputs = input_data(program, 0)
        function = function_of(program)
        own = flat_arrays(function(*inputs))
        try:
            model = tf.export.to_onnx(function)
        except (NotImplementedError, ValueError) as error:
            text = str(error)
            refused = "cannot be exported, as" in text or "asks for the number of examples" in text
            assert refused, (seed, text)
            continue
        ran += 1
        wide = dataclasses.replace(program, dtype="float64")
        exact = flat_arrays(
            function_of(wide)(*(x.astype("float64") if x.dtype.kind == "f" else x for x in inputs))
        )
        found = results_of(session_of(model), inputs)
        for one, ours, right in zip(found, own, exact, strict=True):
            assert one.dtype == ours.dtype
            assert is_right(one, ours, right), (seed, mapped_text(program))
    assert ran > PROGRAMS // 2
