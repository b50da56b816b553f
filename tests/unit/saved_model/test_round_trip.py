"""Objects, functions and variables that are saved and loaded."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]], np.float32)
Pair = collections.namedtuple("Pair", "first second")


class Line(tf.Module):
    """y = x w + b, with a step of training and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable([[1.0], [2.0], [-1.0]], name="weights")
        self.b = tf.Variable([0.5], name="bias")
        self.calls = tf.Variable(0, trainable=False, name="calls", dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def __call__(self, x: Any) -> Any:
        self.calls.assign_add(1)
        return x @ self.w + self.b

    @tf.function
    def norm(self, x: Any, order: int = 2, scale: Any = None) -> Any:
        norm = tf.norm(x @ self.w, order)
        return norm if scale is None else {"norm": norm * scale, "order": order}

    @tf.function
    def never(self, x: Any) -> Any:
        return x


def bits(value: Any) -> Any:
    """The bytes of an array."""
    return np.asarray(value).tobytes()


def round_trip(obj: Any, folder: Path, **options: Any) -> Any:
    tf.saved_model.save(obj, folder / "saved", **options)
    return tf.saved_model.load(folder / "saved")


def test_a_module_computes_as_before(tmp_path: Path) -> None:
    line = Line()
    loaded = round_trip(line, tmp_path)
    for rows in (1, 2, 5):
        x = np.resize(X, (rows, 3)).astype(np.float32)
        assert bits(loaded(x)) == bits(line(x))
    assert int(loaded.calls) == int(line.calls) == 3


def test_variables_keep_their_properties(tmp_path: Path) -> None:
    line = Line()
    line.total = tf.Variable(
        1.0, aggregation=tf.VariableAggregation.SUM, trainable=False, name="total", dtype=tf.float64
    )
    loaded = round_trip(line, tmp_path)
    for name in ("w", "b", "calls", "total"):
        new, old = getattr(loaded, name), getattr(line, name)
        assert (new.name, new.dtype, new.shape) == (old.name, old.dtype, old.shape)
        assert (new.trainable, new.aggregation) == (old.trainable, old.aggregation)
        assert bits(new.numpy()) == bits(old.numpy())
    assert [v.name for v in loaded.trainable_variables] == [
        v.name for v in line.trainable_variables
    ]


def test_a_function_has_a_program_for_each_kind_of_call(tmp_path: Path) -> None:
    line = Line()
    wanted = [line.norm(X), line.norm(X, 1), line.norm(X, order=1, scale=tf.constant(3.0))]
    loaded = round_trip(line, tmp_path)
    assert bits(loaded.norm(X)) == bits(wanted[0])
    assert bits(loaded.norm(X, 1)) == bits(loaded.norm(X, order=1)) == bits(wanted[1])
    scaled = loaded.norm(X, 1, tf.constant(3.0))
    assert scaled["order"] == 1 and bits(scaled["norm"]) == bits(wanted[2]["norm"])
    with pytest.raises(ValueError, match=r"Could not find matching concrete function.*3 option"):
        loaded.norm(X, 7)
    with pytest.raises(ValueError, match="saved without having been called"):
        loaded.never(X)


def test_a_function_that_others_call_is_saved_for_their_calls(tmp_path: Path) -> None:
    class Scale(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = tf.Variable(2.0)

        @tf.function
        def __call__(self, x: Any) -> Any:
            return self.v * x

    scale = Scale()
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    run = tf.function(lambda batch: strategy.run(scale, (batch,)))
    data = tf.data.Dataset.from_tensor_slices(X).batch(2)
    for batch in strategy.experimental_distribute_dataset(data):
        run(batch)
    loaded = round_trip(scale, tmp_path)
    for rows in (1, 3):
        x = np.resize(X, (rows, 3)).astype(np.float32)
        assert bits(loaded(x)) == bits(scale(x))


def test_a_gradient_is_that_of_the_original(tmp_path: Path) -> None:
    line = Line()
    loaded = round_trip(line, tmp_path)

    def gradients(model: Any) -> list[bytes]:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(tf.constant(X)) ** 3)
            first = tape.gradient(loss, [model.w, model.b])
            total = sum(tf.reduce_sum(one * one) for one in first)
        assert [v.name for v in tape.watched_variables()] == ["weights:0", "bias:0"]
        return [bits(one) for one in (*first, outer.gradient(total, model.w))]

    assert gradients(loaded) == gradients(line)


def test_signatures_have_names(tmp_path: Path) -> None:
    module = tf.Module()
    module.v = tf.Variable(2.0)

    @tf.function
    def both(a: Any, b: Any) -> Any:
        return {"sum": a + b * module.v, "difference": a - b}

    both_of = both.get_concrete_function(
        tf.TensorSpec([None], tf.float32, "left"), tf.TensorSpec([], tf.float32)
    )
    pair = tf.function(lambda x: (x, -x), input_signature=[tf.TensorSpec([2], tf.int32)])
    loaded = round_trip(module, tmp_path, signatures={"both": both_of, "pair": pair})
    assert set(loaded.signatures) == {"both", "pair"}
    found = loaded.signatures["both"](left=tf.constant([1.0, 2.0]), b=tf.constant(3.0))
    assert set(found) == {"sum", "difference"}
    np.testing.assert_array_equal(found["sum"], [7.0, 8.0])
    halves = loaded.signatures["pair"](tf.constant([1, 2]))
    np.testing.assert_array_equal(halves["output_1"], [-1, -2])
    _, named = loaded.signatures["both"].structured_input_signature
    assert named["left"] == tf.TensorSpec([None], tf.float32)
    assert set(loaded.signatures["both"].structured_outputs) == {"sum", "difference"}
    with pytest.raises(TypeError, match="by name, left, b"):
        loaded.signatures["both"](left=tf.constant([1.0]))


def test_the_only_function_with_a_signature_is_served(tmp_path: Path) -> None:
    line = Line()
    loaded = round_trip(line, tmp_path)
    found = loaded.signatures["serving_default"](x=tf.constant(X))
    assert bits(found["output_0"]) == bits(line(X))


def test_nested_objects_are_each_one_object(tmp_path: Path) -> None:
    shared = tf.Variable(1.0, name="shared")
    outer = tf.Module()
    outer.parts = [Line(), {"again": shared, "f": tf.function(lambda: shared * 2)}]
    outer.pair = (shared, Line())
    outer.loop = outer
    outer.number, outer.text = 3, "not saved"
    outer.parts[1]["f"]()
    outer.checkpoint = tf.train.Checkpoint(v=shared)
    loaded = round_trip(outer, tmp_path)
    assert loaded.loop is loaded
    assert loaded.pair[0] is loaded.parts[1]["again"] is loaded.checkpoint.v
    loaded.pair[0].assign(5.0)
    assert float(loaded.parts[1]["f"]()) == 10.0
    assert bits(loaded.parts[0](X)) == bits(outer.parts[0](X))
    assert not hasattr(loaded, "number")


def test_a_checkpoint_with_functions_is_saved(tmp_path: Path) -> None:
    v = tf.Variable(3.0)
    root = tf.train.Checkpoint(v=v)
    root.f = tf.function(lambda x: v * x, input_signature=[tf.TensorSpec([], tf.float32)])
    assert float(round_trip(root, tmp_path).f(2.0)) == 6.0


def test_results_keep_their_structure(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(
        lambda x, y: Pair([x["b"], None], {"z": (y, 1.5), "a": True}),
        input_signature=[{"a": tf.TensorSpec([]), "b": tf.TensorSpec([2])}, tf.TensorSpec([])],
    )
    given = {"a": tf.constant(1.0), "b": tf.constant([2.0, 3.0])}, tf.constant(4.0)
    found = round_trip(module, tmp_path).f(*given)
    assert found._fields == Pair._fields
    assert found.first[1] is None and bool(found.second["a"])
    assert float(found.second["z"][0]) == 4.0 and found.second["z"][1] == 1.5
    np.testing.assert_array_equal(found.first[0], [2.0, 3.0])


def test_complex_numbers_are_two_tensors_of_the_program(tmp_path: Path) -> None:
    module = tf.Module()
    spec = [tf.TensorSpec([None], tf.complex64), {"scale": tf.TensorSpec([])}]
    module.f = tf.function(
        lambda z, more: {"z": z * z, "abs": tf.abs(z) * more["scale"]}, input_signature=spec
    )
    z, more = tf.constant([1 + 2j, -3j], tf.complex64), {"scale": tf.constant(2.0)}
    loaded = round_trip(module, tmp_path)
    for name, part in module.f(z, more).items():
        assert bits(loaded.f(z, more)[name].numpy()) == bits(part.numpy())
    assert bits(loaded.f(z.numpy(), more)["z"].numpy()) == bits(module.f(z, more)["z"].numpy())


def test_large_and_small_constants_are_kept(tmp_path: Path) -> None:
    big = np.arange(30_000, dtype=np.float32)
    module = tf.Module()
    module.f = tf.function(lambda: (tf.reduce_sum(tf.constant(big) * 1.5), tf.constant([1, 2])))
    total, small = module.f()
    loaded = round_trip(module, tmp_path).f()
    assert bits(loaded[0]) == bits(total)
    np.testing.assert_array_equal(loaded[1], small)
    model = json.loads((tmp_path / "saved/saved_model.json").read_text())["model"]
    constants = model["programs"][0]["constants"]
    assert any("array" in one for one in constants) and any("bytes" in one for one in constants)


def test_a_loaded_model_is_saved_again(tmp_path: Path) -> None:
    line = Line()
    line.norm(X)
    line.norm(X, scale=tf.constant(2.0))
    loaded = round_trip(line, tmp_path / "a")
    signatures = {"twice": loaded.signatures["serving_default"]}
    again = round_trip(loaded, tmp_path / "b", signatures=signatures)
    assert bits(again(X)) == bits(line(X)) and again(X).shape == (2, 1)
    assert bits(again.norm(X)) == bits(line.norm(X))
    scaled = again.norm(X, scale=tf.constant(2.0))
    assert scaled["order"] == 2 and float(scaled["norm"]) == 2 * float(line.norm(X))
    assert again.norm.__signature__ == loaded.norm.__signature__
    assert again.signatures["twice"].structured_outputs.keys() == {"output_0"}
    assert bits(again.signatures["twice"](x=X)["output_0"]) == bits(line(X))


def test_a_second_save_replaces_the_first(tmp_path: Path) -> None:
    line = Line()
    tf.saved_model.save(line, tmp_path / "m")
    line.w.assign(line.w * 2)
    tf.saved_model.save(line, tmp_path / "m")
    assert len(os.listdir(tmp_path / "m")) == 2
    assert bits(tf.saved_model.load(tmp_path / "m")(X)) == bits(line(X))


def test_another_process_has_the_same_bits(tmp_path: Path) -> None:
    line = Line()
    tf.saved_model.save(line, tmp_path / "m")
    program = (
        "import sys, numpy as np, samegrad as tf\n"
        "loaded = tf.saved_model.load(sys.argv[1])\n"
        "x = np.frombuffer(bytes.fromhex(sys.argv[2]), np.float32).reshape(-1, 3)\n"
        "print(np.asarray(loaded(x)).tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "m"), X.tobytes().hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bits(line(X)).hex()


def test_contains_saved_model_looks_for_the_document(tmp_path: Path) -> None:
    assert not tf.saved_model.contains_saved_model(tmp_path)
    tf.saved_model.save(Line(), tmp_path / "m")
    assert tf.saved_model.contains_saved_model(tmp_path / "m")
