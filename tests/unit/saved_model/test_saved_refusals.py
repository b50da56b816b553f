"""Refusals of saving and loading name their subject, and nothing half-written is left."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.saved_model import _folder

SPEC = tf.TensorSpec([None], tf.float32)


def module_of(function: Any, *specs: Any) -> Any:
    module = tf.Module()
    module.f = tf.function(function, input_signature=list(specs or [SPEC]))
    return module


def refused(tmp_path: Path, obj: Any, kind: Any, match: str, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        tf.saved_model.save(obj, tmp_path / "m", **options)
    assert os.listdir(tmp_path) == []


def test_an_object_without_state_is_refused(tmp_path: Path) -> None:
    for value in (3, [tf.Variable(1.0)], {"a": 1}, object(), tf.Variable(1.0), tf.Module):
        refused(tmp_path, value, ValueError, "Expected an object of type `Trackable`")


def test_a_variable_outside_of_the_object_is_named(tmp_path: Path) -> None:
    outside = tf.Variable(2.0, name="outside")
    refused(
        tmp_path, module_of(lambda x: x * outside), ValueError,
        r"Tried to export a function which references an 'untracked' resource.*'outside'",
    )  # fmt: skip


def test_strings_and_python_functions_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, module_of(lambda x: (x, "text")), TypeError, "class Text")
    called = tf.Module()
    called.f = tf.function(lambda x: tf.strings.length(x))
    called.f(tf.constant(["a", "bc"]))
    refused(tmp_path, called, (TypeError, NotImplementedError), "string|Text|Python takes part")


def test_a_function_that_reads_data_is_refused(tmp_path: Path) -> None:
    data = tf.data.Dataset.range(3)

    def total(x: Any) -> Any:
        for element in data:
            x = x + tf.cast(element, tf.float32)
        return x

    refused(tmp_path, module_of(total), NotImplementedError, "Python takes part in each call")
    kept = module_of(lambda x: tf.boolean_mask(x, x > 0.0))
    refused(
        tmp_path, kept, NotImplementedError, r"Python takes part .* \(\[boolean_mask\] the number"
    )


def test_an_argument_of_another_class_is_named(tmp_path: Path) -> None:
    class Options:
        scale = 2.0

    options = Options()
    module = tf.Module()
    module.f = tf.function(lambda x, options: x * options.scale)
    module.f(tf.constant(1.0), options)
    refused(tmp_path, module, TypeError, "the arguments of .* class Options")


def test_values_of_replicas_are_no_arguments(tmp_path: Path) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    module = tf.Module()
    module.f = tf.function(lambda x: strategy.run(lambda y: y * 2.0, (x,)))
    data = tf.data.Dataset.from_tensor_slices(np.ones(4, np.float32)).batch(4)
    for batch in strategy.experimental_distribute_dataset(data):
        module.f(batch)
    refused(tmp_path, module, TypeError, "values of a strategy's replicas")


def test_a_function_that_runs_on_replicas_is_refused(tmp_path: Path) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    module = module_of(lambda x: strategy.reduce("sum", strategy.run(tf.square, (x,)), axis=None))
    refused(
        tmp_path, module, NotImplementedError, "one replica: got one on 2, as it calls strategy.run"
    )


def test_an_on_read_variable_is_named(tmp_path: Path) -> None:
    module = tf.Module()
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        module.v = tf.Variable(
            1.0, synchronization=tf.VariableSynchronization.ON_READ, name="local",
            aggregation=tf.VariableAggregation.SUM,
        )  # fmt: skip
    module.f = tf.function(lambda x: x * module.v, input_signature=[SPEC])
    refused(tmp_path, module, NotImplementedError, "ON_READ variable")


def test_a_shape_without_rank_is_refused(tmp_path: Path) -> None:
    module = module_of(lambda x: x, tf.TensorSpec(None, tf.float32))
    refused(tmp_path, module, TypeError, "known rank")


def test_a_signature_is_a_function_of_tensors(tmp_path: Path) -> None:
    module = module_of(lambda x: x)
    wrong = [
        (lambda x: x, r"Python functions may be decorated with `@tf\.function"),
        ({1: module.f}, "signatures have names"),
        (tf.function(lambda x: x), "traced for 0 kinds"),
        (tf.function(lambda x: {"y": [x]}, input_signature=[SPEC]), "a dict of tensors by name"),
        (tf.function(lambda x: None, input_signature=[SPEC]), "a dict of tensors by name"),
    ]
    for signatures, match in wrong:
        refused(tmp_path, module, ValueError, match, signatures=signatures)


def test_saving_inside_a_function_is_refused(tmp_path: Path) -> None:
    module = module_of(lambda x: x)

    @tf.function
    def step() -> Any:
        tf.saved_model.save(module, tmp_path / "m")
        return tf.constant(0)

    with pytest.raises(RuntimeError, match="saved outside of functions"):
        step()


def test_a_full_disk_leaves_the_older_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_of(lambda x: x * 2.0)
    tf.saved_model.save(module, tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_folder._files, "write_new_file", full)
    with pytest.raises(OSError, match=r"\[saved_model\.save\] cannot write .*No space"):
        tf.saved_model.save(module_of(lambda x: x * 3.0), tmp_path / "m")
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
    assert os.listdir(tmp_path) == ["m"]


def test_what_is_no_saved_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="SavedModel file does not exist at"):
        tf.saved_model.load(tmp_path / "none")
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    with pytest.raises(FileNotFoundError, match="got the graph of TensorFlow"):
        tf.saved_model.load(tmp_path)


def changed(folder: Path, change: Any) -> None:
    """Write another document, with a hash that is right."""
    path = folder / "saved_model.json"
    body = json.loads(path.read_bytes())
    body.pop("blake2b")
    change(body)
    body["blake2b"] = _folder._storage._digest(_folder.encode(body))
    path.write_bytes(_folder.encode(body))


def test_another_version_of_the_format_is_refused(tmp_path: Path) -> None:
    tf.saved_model.save(module_of(lambda x: x), tmp_path / "m")
    changed(tmp_path / "m", lambda body: body.update(version=2))
    with pytest.raises(tf.saved_model.CorruptSavedModelError, match="version 1: got .*, 2; load"):
        tf.saved_model.load(tmp_path / "m")


def test_other_numerics_are_warned_of(tmp_path: Path) -> None:
    tf.saved_model.save(module_of(lambda x: x), tmp_path / "m")
    changed(tmp_path / "m", lambda body: body["model"]["numerics"].update(reduction_order=1))
    with pytest.warns(UserWarning, match=r"'reduction_order': 1.*within rounding, not to the bit"):
        tf.saved_model.load(tmp_path / "m")


def test_an_altered_byte_is_found(tmp_path: Path) -> None:
    module = module_of(lambda x: x)
    module.v = tf.Variable(np.ones(100))
    tf.saved_model.save(module, tmp_path / "m")
    (arrays,) = (tmp_path / "m").glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"\x01")
    with pytest.raises(tf.saved_model.CorruptSavedModelError, match="blake2b"):
        tf.saved_model.load(tmp_path / "m")


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    module = module_of(lambda x: x)
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, tmp_path / "m")
    (arrays,) = (tmp_path / "m").glob("*.safetensors")
    outside = tmp_path / arrays.name
    os.rename(arrays, outside)
    for name in (f"../{arrays.name}", str(outside)):
        changed(tmp_path / "m", lambda body, name=name: body.update(arrays_file=name))
        with pytest.raises(tf.saved_model.CorruptSavedModelError, match="names no array file"):
            tf.saved_model.load(tmp_path / "m")
    changed(tmp_path / "m", lambda body: body.update(arrays_file=arrays.name))
    os.symlink(outside, arrays)
    with pytest.raises(tf.saved_model.CorruptSavedModelError, match="symbolic link"):
        tf.saved_model.load(tmp_path / "m")


def test_assertions_are_checked_in_loaded_functions(tmp_path: Path) -> None:
    def positive(x: Any) -> Any:
        tf.debugging.assert_positive(x, message="only above zero")
        return x * 2.0

    tf.saved_model.save(module_of(positive), tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.f(tf.constant([1.0])), [2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="only above zero"):
        loaded.f(tf.constant([-1.0]))
    np.testing.assert_array_equal(loaded.f(tf.constant([1.5])), [3.0])
