"""`export.to_onnx` and `Model.export(format="onnx")`: names, files, metadata and refusals."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_runs import flat_arrays, results_of, session_of

import samegrad as tf
from samegrad import _core
from samegrad.export import _write

SPEC = tf.TensorSpec([None, 3], tf.float32, name="x")
X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Line(tf.Module):
    """A module with a weight and functions."""

    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.w = tf.Variable(factor * tf.ones((3, 5)))
        self.count = tf.Variable(0.0)

    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return {"product": x @ self.w, "pair": (x, x + 1.0)}

    @tf.function
    def counted(self, x: Any) -> Any:
        self.count.assign_add(1.0)
        return x * self.count

    @tf.function
    def watched(self, x: Any) -> Any:
        self.count.assign_add(1.0)
        return x * 2.0


def model_of_keras() -> Any:
    inputs = [tf.keras.Input((3,), name="left"), tf.keras.Input((3,), name="right")]
    sums = tf.keras.layers.Dense(2, name="out")(tf.keras.layers.Add()(inputs))
    model = tf.keras.Model(inputs, sums)
    model([X, X])
    return model


def names_of(values: Any) -> list[str]:
    return [value.name for value in values]


# ---- names ----


def test_inputs_and_outputs_have_the_names_of_the_signature() -> None:
    model = tf.export.to_onnx(Line().__call__)
    assert names_of(model.graph.input) == ["x"]
    assert names_of(model.graph.output) == ["product", "pair_0", "pair_1"]
    sizes = model.graph.input[0].type.tensor_type.shape.dim
    assert [size.dim_param or size.dim_value for size in sizes] == ["batch", 3]
    for found, own in zip(results_of(session_of(model), [X]), (X @ (2 * np.ones((3, 5))), X, X + 1),
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(found, own)


def test_unnamed_specs_have_the_names_of_their_parameters() -> None:
    plain = tf.TensorSpec([2], tf.float32)

    def difference(left: Any, right: Any, *, scale: float = 2.0) -> Any:
        return (left - right["part"]) * scale

    model = tf.export.to_onnx(difference, [plain, {"part": plain}])
    assert names_of(model.graph.input) == ["left", "part"]
    assert names_of(model.graph.output) == ["output_0"]
    found = results_of(session_of(model), [np.ones(2, np.float32), np.zeros(2, np.float32)])
    assert found[0].tolist() == [2.0, 2.0]


def test_an_output_that_is_an_input_has_a_name_of_its_own() -> None:
    model = tf.export.to_onnx(lambda x: {"x": x}, [SPEC])
    assert names_of(model.graph.output) == ["x_"]
    np.testing.assert_array_equal(results_of(session_of(model), [X])[0], X)


def test_names_of_ports_are_not_those_of_nodes_or_of_each_other() -> None:
    names = [f"{stem}_{at}" for stem in ("relu", "matmul", "constant") for at in range(1, 5)]
    model = tf.export.to_onnx(
        lambda x, y: dict.fromkeys(names, tf.nn.relu(x @ tf.ones([2, 2])) + y + x * 3.0),
        [tf.TensorSpec([None, 2], name="mul_2"), tf.TensorSpec([2], name="relu_1")],
    )
    inputs = [np.ones((1, 2), np.float32), np.zeros(2, np.float32)]
    assert results_of(session_of(model), inputs)[0].tolist() == [[5.0, 5.0]]
    specs = [tf.TensorSpec([1], name=name) for name in ("x_2", "x", "x", "x")]
    model = tf.export.to_onnx(tf.add_n, [specs])
    assert names_of(model.graph.input) == ["x_2", "x", "x_3", "x_4"]


def test_metadata_names_the_version_and_the_reduction_order() -> None:
    model = tf.export.to_onnx(lambda x: x * 2.0, [SPEC])
    found = {one.key: one.value for one in model.metadata_props}
    assert found == {
        "samegrad": tf.__version__, "reduction_order": str(_core.reduction_order()),
    }  # fmt: skip
    assert (model.producer_name, model.producer_version) == ("samegrad", tf.__version__)


# ---- Keras ----


def test_a_model_exports_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of_keras()
    model.export(tmp_path / "m.onnx", format="onnx")
    assert f"Saved artifact at '{tmp_path / 'm.onnx'}'" in capsys.readouterr().out
    session = session_of(str(tmp_path / "m.onnx"))
    assert names_of(session.get_inputs()) == ["left", "right"]
    np.testing.assert_allclose(
        results_of(session, [X, X])[0], model([X, X]).numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_model_exports_with_a_signature_and_an_opset(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    model(X)
    signature = [tf.keras.InputSpec(shape=(4, 3), dtype="float32", name="fixed")]
    model.export(
        tmp_path / "m.onnx", format="onnx", verbose=False, input_signature=signature,
        opset_version=20,
    )  # fmt: skip
    found = onnx.load(tmp_path / "m.onnx")
    assert found.opset_import[0].version == 20
    assert names_of(found.graph.input) == ["fixed"]
    session = session_of(str(tmp_path / "m.onnx"))
    np.testing.assert_allclose(results_of(session, [X])[0], model(X).numpy(), rtol=1e-5, atol=1e-6)


def test_a_model_under_a_strategy_exports_what_one_replica_computes(tmp_path: Path) -> None:
    with tf.distribute.MirroredStrategy(replicas=3).scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        model(X)
        model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
    session = session_of(str(tmp_path / "m.onnx"))
    np.testing.assert_allclose(results_of(session, [X])[0], model(X).numpy(), rtol=1e-5, atol=1e-6)


def test_a_model_that_was_trained_under_a_strategy_exports_its_statistics() -> None:
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        model = tf.keras.Sequential([
            tf.keras.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(2),
        ])  # fmt: skip
        model.compile("sgd", "mse")
    model.fit(X, np.ones((4, 2), np.float32), batch_size=2, verbose=0)
    for function in (model, model.call):
        found = results_of(session_of(tf.export.to_onnx(function, [SPEC])), [X])
        np.testing.assert_allclose(found[0], model(X).numpy(), rtol=1e-5, atol=1e-6)


def test_a_concrete_function_is_exported_as_it_was_traced() -> None:
    concrete = Line().__call__.get_concrete_function()
    assert names_of(tf.export.to_onnx(concrete).graph.input) == ["x"]


def test_a_gradient_of_exported_operations_is_a_function_as_others() -> None:
    @tf.function
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.tanh(x) ** 2)
        return tape.gradient(total, x)

    found = results_of(session_of(tf.export.to_onnx(gradient, [SPEC])), [X])
    np.testing.assert_allclose(found[0], gradient(tf.constant(X)).numpy(), rtol=1e-5, atol=1e-6)


def test_checks_and_prints_are_left_out() -> None:
    @tf.function
    def checked(x: Any) -> Any:
        tf.debugging.assert_less(x, 5.0)
        tf.print(x)
        return x * 2.0

    assert [node.op_type for node in tf.export.to_onnx(checked, [SPEC]).graph.node] == [
        "Mul", "Identity",
    ]  # fmt: skip


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_each_opset_runs(opset: int) -> None:
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(3, 2, activation="relu"), tf.keras.layers.AveragePooling2D(2),
        tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(2),
        tf.keras.layers.Softmax(),
    ])  # fmt: skip
    images = np.random.default_rng(0).normal(size=(2, 7, 7, 3)).astype(np.float32)
    own = flat_arrays(model(images))
    spec = tf.TensorSpec([None, 7, 7, 3], tf.float32)
    found = results_of(session_of(tf.export.to_onnx(model, [spec], opset=opset)), [images])
    np.testing.assert_allclose(found[0], own[0], rtol=1e-5)


def test_layouts_are_changed_only_where_a_network_begins_and_ends() -> None:
    model = tf.keras.Sequential([tf.keras.Input((16, 16, 3))])
    for _ in range(3):
        model.add(tf.keras.layers.Conv2D(4, 3, padding="same", use_bias=False))
        model.add(tf.keras.layers.BatchNormalization())
        model.add(tf.keras.layers.ReLU(6.0))
        model.add(tf.keras.layers.MaxPooling2D())
    model.add(tf.keras.layers.GlobalAveragePooling2D())
    model.add(tf.keras.layers.Dense(2))
    found = tf.export.to_onnx(model, [tf.TensorSpec([None, 16, 16, 3], tf.float32, name="x")])
    assert sum(node.op_type == "Transpose" for node in found.graph.node) == 1


# ---- files ----


def test_weights_that_do_not_fit_inside_go_to_a_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_write, "MOST_INSIDE", 16)
    path = tmp_path / "m.onnx"
    for factor in (2.0, 3.0):
        model = Line(factor)
        tf.export.to_onnx(model.__call__, path=path)
        files = sorted(file.name for file in tmp_path.iterdir())
        assert files[0] == "m.onnx"
        assert len(files) == 2
        assert re.fullmatch(r"m\.onnx-[0-9a-f]{16}\.data", files[1])
        found = results_of(session_of(str(path)), [X])
        np.testing.assert_allclose(found[0], X @ model.w.numpy())


def test_an_export_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    tf.export.to_onnx(lambda x: x * 2.0, [SPEC], path)
    older = path.read_bytes()
    with pytest.raises(NotImplementedError):
        tf.export.to_onnx(lambda x: tf.linalg.qr(x)[0], [tf.TensorSpec([3, 3])], path)
    assert path.read_bytes() == older
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"\[export.to_onnx\] cannot write .*m.onnx"):
        tf.export.to_onnx(lambda x: x * 2.0, [SPEC], tmp_path / "file" / "m.onnx")


def test_a_variable_is_one_weight() -> None:
    w = tf.Variable(tf.ones((40, 40)))
    spec = tf.TensorSpec([None, 40], tf.float32)
    model = tf.export.to_onnx(lambda x: tf.tanh(x @ w) @ w, [spec])
    assert len(model.SerializeToString()) < 2 * 40 * 40 * 4


# ---- refusals ----


def draws(x: Any) -> Any:
    return tf.nn.dropout(x, 0.5)


def decomposes(x: Any) -> Any:
    return tf.linalg.svd(x, compute_uv=False)


def decomposes_in_a_branch(x: Any) -> Any:
    return tf.linalg.qr(x)[1] if tf.reduce_sum(x) > 0.0 else x


def gamma(x: Any) -> Any:
    return tf.math.lgamma(x)


REFUSED = {
    draws: "'random_uniform_like' cannot be exported, as ONNX has no draws",
    decomposes: "'singular_values' cannot be exported, as ONNX has no matrix decompositions",
    decomposes_in_a_branch: "'qr' cannot be exported, as ONNX has no matrix decompositions",
    gamma: "'lgamma' cannot be exported, as ONNX has no such special function",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_onnx_lacks_is_refused_by_name_with_the_line(function: Any) -> None:
    spec = tf.TensorSpec([3, 3], tf.float32)
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(NotImplementedError, match=re.escape(REFUSED[function])) as refused:
        tf.export.to_onnx(function, [spec])
    assert f"(test_onnx_export.py:{line})" in str(refused.value)


def test_a_dropout_in_training_is_refused() -> None:
    layer = tf.keras.layers.Dropout(0.5)
    with pytest.raises(NotImplementedError, match="ONNX has no draws"):
        tf.export.to_onnx(lambda x: layer(x, training=True), [SPEC])


def test_an_update_that_a_result_follows_from_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="assigns no variables that it reads"):
        tf.export.to_onnx(Line().counted, [SPEC])


def test_an_update_that_no_result_follows_from_is_left_out() -> None:
    found = results_of(session_of(tf.export.to_onnx(Line().watched, [SPEC])), [X])
    np.testing.assert_array_equal(found[0], 2 * X)


@pytest.mark.parametrize("opset", [17, 999])
def test_an_unknown_opset_is_refused(opset: int) -> None:
    with pytest.raises(ValueError, match=rf"opset must be from 18 to \d+.*got {opset}"):
        tf.export.to_onnx(lambda x: x, [SPEC], opset=opset)


def test_a_function_without_a_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="without input_signature"):
        tf.export.to_onnx(lambda x: x)
    with pytest.raises(ValueError, match="traced for 0 kinds of arguments"):
        tf.export.to_onnx(tf.function(lambda x: x))
    with pytest.raises(TypeError, match=r"a list with an entry for each parameter"):
        tf.export.to_onnx(lambda x: x, SPEC)
    with pytest.raises(TypeError, match="a function of tensors is exported: got 3"):
        tf.export.to_onnx(3, [SPEC])


def test_a_function_that_returns_no_tensors_is_refused() -> None:
    for result in (None, (), {"a": "b"}):
        with pytest.raises(ValueError, match="an exported function returns tensors"):
            tf.export.to_onnx(lambda x, result=result: result, [SPEC])


def test_an_export_inside_of_a_function_is_refused() -> None:
    @tf.function
    def inside(x: Any) -> Any:
        tf.export.to_onnx(lambda x: x, [SPEC])
        return x

    with pytest.raises(RuntimeError, match="exported outside of functions"):
        inside(tf.constant(X))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "onnx":
            raise ModuleNotFoundError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'samegrad\[onnx\]'"):
        tf.export.to_onnx(lambda x: x, [SPEC])


def test_errors_of_a_trace_name_the_export() -> None:
    data = tf.data.Dataset.range(3)
    for function, spec, error, match in (
        (lambda x: x, tf.TensorSpec(None), TypeError, "tensors of known rank"),
        (
            lambda x: x + len(list(data)),
            SPEC,
            NotImplementedError,
            "Python takes part in each call",
        ),
        (lambda x: x[: int(x.shape[0] + 0)], SPEC, ValueError, "the number of examples in Python"),
    ):
        with pytest.raises(error, match=rf"\[export\.to_onnx\] .*{match}"):
            tf.export.to_onnx(function, [spec])


def test_reductions_over_replicas_are_those_of_one_device() -> None:
    def loss(x: Any) -> Any:
        return tf.nn.compute_weighted_mean_loss(tf.reduce_sum(x, 1), x[:, 0] + 1.0)

    model = tf.export.to_onnx(loss, [SPEC])
    (found,) = session_of(model).run(None, {"x": X})
    np.testing.assert_allclose(found, loss(tf.constant(X)), rtol=1e-6)
