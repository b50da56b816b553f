"""`export.to_tensorflow`: files by TensorFlow's definitions, results that it gave, refusals.

TensorFlow is not needed: `record_tensorflow_models.py` recorded what it knows and computes.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_samples import array_of
from tensorflow_files import Model, check_model, read_model
from tensorflow_programs import OPERATIONS, PROGRAMS, RESULTS

import samegrad as tf
from samegrad import _core
from samegrad._function.function import Function
from samegrad.export import _to_tensorflow
from samegrad.export._table import REFUSED
from samegrad.export._tensorflow_graph import DTYPES
from samegrad.export._tensorflow_model import TARGET

TABLE = {row["name"]: row for row in _core.op_table()}
SPEC = tf.TensorSpec([None, 3], tf.float32, name="x")
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def export(function: Any, specs: Any, folder: Any) -> Model:
    tf.export.to_tensorflow(function, folder, specs)
    return read_model(folder)


def sample_model(name: str, index: int, folder: Any) -> Model:
    """The model of one operation, for a sample of the table."""
    sample = {"name": name, **TABLE[name]["samples"][index]}
    rng = np.random.default_rng(index)
    specs = []
    for place in range(len(sample["shapes"])):
        array = array_of(sample, place, rng)
        is_batched = place < len(sample["batched"]) and sample["batched"][place]
        shape = [None, *array.shape[1:]] if is_batched else array.shape
        specs.append(tf.TensorSpec(shape, array.dtype, name=f"x{place}"))

    def call(*given: Any) -> Any:
        found = getattr(_core.ops, name)(*given, **sample["attrs"])
        return found[0] if name == "max_pool2d" else found

    return export(Function(call, autograph=False), specs, folder)


def exported_operations() -> list[str]:
    """Names of all operations of TensorFlow in the samples and programs."""
    import tempfile

    found = set()
    with tempfile.TemporaryDirectory() as folder:
        for name, row in TABLE.items():
            for index in range(len(row["samples"]) if name in TARGET.rows else 0):
                try:
                    found |= {node.op for node in sample_model(name, index, folder).nodes}
                except NotImplementedError:
                    continue
        for make in PROGRAMS.values():
            program = make()
            model = export(program.function, program.signature, folder)
            found |= {node.op for node in model.nodes}
    return sorted(found)


# ---- operations ----


def test_each_operation_is_exported_as_tensorflow_defines_it(tmp_path: Path) -> None:
    definitions = json.loads(OPERATIONS.read_text())
    tried = 0
    for name, row in TABLE.items():
        if name in TARGET.rows and row["samples"]:
            check_model(sample_model(name, 0, tmp_path), definitions)
            tried += 1
    assert tried > 130


def test_each_operation_has_a_row_or_a_reason() -> None:
    assert set(TARGET.rows) | set(REFUSED) == set(TABLE)


def refused(name: str, folder: Path) -> str:
    with pytest.raises(NotImplementedError) as error:
        sample_model(name, 0, folder)
    assert not any(folder.iterdir())
    return str(error.value)


@pytest.mark.parametrize("name", ["qr", "random_normal", "segment_last"])
def test_operations_that_tensorflow_lacks_are_refused_by_name(name: str, tmp_path: Path) -> None:
    assert name not in TARGET.rows
    text = refused(name, tmp_path)
    assert re.match(rf"\[export.to_tensorflow\] the operation '{name}' .*TensorFlow ", text)
    assert "ONNX" not in text


# ---- programs ----


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_results_that_tensorflow_gave(name: str, tmp_path: Path) -> None:
    program, recorded = PROGRAMS[name](), json.loads(RESULTS.read_text())[name]
    model = export(program.function, program.signature, tmp_path)
    check_model(model, json.loads(OPERATIONS.read_text()))
    assert set(model.inputs) == set(program.calls[0])
    for call, results in zip(program.calls, recorded, strict=True):
        own = program.function(*(tf.constant(array) for array in call.values()))
        own = own if isinstance(own, dict) else {"output_0": own}
        assert set(own) == set(results) == set(model.outputs)
        for key, value in own.items():
            assert model.outputs[key][0] == DTYPES[value.dtype.name]
            np.testing.assert_allclose(value.numpy(), results[key], rtol=1e-5, atol=1e-5)


_RUN = """
import json, sys
import numpy as np, tensorflow as tf
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
call = {key: tf.constant(value) for key, value in np.load(sys.argv[2]).items()}
print(json.dumps({key: value.numpy().tolist() for key, value in serve(**call).items()}))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_in_tensorflow(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]()
    tf.export.to_tensorflow(program.function, tmp_path / "model", program.signature)
    for call in program.calls:
        np.savez(tmp_path / "call.npz", **call)
        paths = [str(tmp_path / part) for part in ("model", "call.npz")]
        command = [sys.executable, "-c", _RUN, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        own = program.function(*(tf.constant(array) for array in call.values()))
        own = own if isinstance(own, dict) else {"output_0": own}
        for key, found in json.loads(done.stdout.splitlines()[-1]).items():
            np.testing.assert_allclose(own[key].numpy(), found, rtol=1e-5, atol=1e-5)


# ---- signatures and files ----


def test_a_signature_names_inputs_outputs_and_open_sizes(tmp_path: Path) -> None:
    w = tf.Variable(tf.ones((3, 5)))
    model = export(lambda x: {"product": x @ w, "pair": (x, x + 1.0)}, [SPEC], tmp_path)
    assert model.inputs == {"x": (1, [-1, 3], "serving_default_x:0")}
    shapes = {name: shape for name, (_, shape, _) in model.outputs.items()}
    assert shapes == {"product": [-1, 5], "pair_0": [-1, 3], "pair_1": [-1, 3]}
    placeholder = next(node for node in model.nodes if node.op == "Placeholder")
    assert placeholder.name == "serving_default_x"


def test_names_that_tensorflow_does_not_take_are_changed_in_the_graph_only(tmp_path: Path) -> None:
    spec = tf.TensorSpec([2], tf.float32, name="my x")
    model = export(lambda x: {"a b": x + 1.0, "Add": x + 2.0}, [spec], tmp_path)
    assert set(model.inputs) == {"my x"}
    assert set(model.outputs) == {"a b", "Add"}
    names = [node.name for node in model.nodes]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", name) for name in names)


def test_a_model_of_keras_needs_no_signature(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    found = export(model, None, tmp_path / "deep" / "served")
    assert [shape for _, shape, _ in found.inputs.values()] == [[-1, 3]]
    assert [shape for _, shape, _ in found.outputs.values()] == [[-1, 2]]


def test_relations_of_sizes_that_a_trace_took_for_granted_are_checked(tmp_path: Path) -> None:
    open_sizes = tf.TensorSpec([None, None], tf.float32)
    model = export(lambda x, y: x + y, [open_sizes, open_sizes], tmp_path)
    assert any("sizes_must_meet" in node.name and node.op == "GatherV2" for node in model.nodes)


def test_an_export_replaces_the_file_at_once_or_not_at_all(tmp_path: Path) -> None:
    export(lambda x: x * 2.0, [SPEC], tmp_path)
    older = (tmp_path / "saved_model.pb").read_bytes()
    with pytest.raises(NotImplementedError, match="'qr'"):
        export(lambda x: tf.linalg.qr(x)[0], [tf.TensorSpec([3, 3])], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["saved_model.pb"]
    assert (tmp_path / "saved_model.pb").read_bytes() == older
    export(lambda x: x * 3.0, [SPEC], tmp_path)
    assert (tmp_path / "saved_model.pb").read_bytes() != older


def test_a_folder_may_hold_a_model_for_both_loaders(tmp_path: Path) -> None:
    module: Any = tf.Module()
    module.serve = tf.function(lambda x: x * 2.0, input_signature=[SPEC])
    tf.saved_model.save(module, tmp_path)
    export(module.serve, None, tmp_path)
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).serve(X).numpy(), 2 * X)


def test_a_model_beyond_two_gibibytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_to_tensorflow, "_MOST", 100)
    with pytest.raises(ValueError, match=r"less than 2 GiB: got \d+ bytes"):
        export(lambda x: x * 2.0, [SPEC], tmp_path)
    assert not any(tmp_path.iterdir())


def test_errors_name_the_export(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"\[export.to_tensorflow\] cannot write .*file"):
        tf.export.to_tensorflow(lambda x: x, tmp_path / "file" / "model", [SPEC])
    with pytest.raises(ValueError, match=r"\[export.to_tensorflow\] .*without input_signature"):
        tf.export.to_tensorflow(lambda x: x, tmp_path)
    count = tf.Variable(0.0)
    with pytest.raises(NotImplementedError, match="assigns no variables that it reads"):
        tf.export.to_tensorflow(lambda x: x * count.assign_add(1.0), tmp_path, [SPEC])


def test_only_exports_to_onnx_need_its_package() -> None:
    folder = Path(_to_tensorflow.__file__).parent
    imported = re.compile(r"^ *(from|import) onnx\b", re.MULTILINE)
    importing = {path.name for path in folder.glob("*.py") if imported.search(path.read_text())}
    assert importing == {"_onnx_model.py", "_to_onnx.py", "_write.py"}
