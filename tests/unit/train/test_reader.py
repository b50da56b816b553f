"""Checkpoints are read without the objects that they were made of."""

import numpy as np
import pytest

import samegrad as tf


@pytest.fixture
def folder(tmp_path):
    parts = {"weight": tf.Variable([[1.0, 2.0]]), "step": tf.Variable(3, dtype="int64")}
    checkpoint = tf.train.Checkpoint(net=tf.train.Checkpoint(**parts), name="run")
    checkpoint.save(tmp_path / "ckpt")
    parts["step"].assign(4)
    checkpoint.save(tmp_path / "ckpt")
    return tmp_path


def test_keys_have_shapes_and_dtypes(folder):
    reader = tf.train.load_checkpoint(folder / "ckpt-1")
    assert reader.get_variable_to_shape_map() == {"net/weight": [1, 2], "net/step": []}
    kinds = reader.get_variable_to_dtype_map()
    assert kinds == {"net/weight": tf.float32, "net/step": tf.int64}
    assert tf.train.list_variables(folder / "ckpt-1") == [("net/step", []), ("net/weight", [1, 2])]


def test_of_a_folder_the_latest_is_read(folder):
    assert tf.train.load_variable(str(folder), "net/step") == 4
    assert tf.train.load_variable(folder / "ckpt-1", "net/step") == 3


def test_arrays_are_copies_and_take_tensorflows_keys(folder):
    reader = tf.train.load_checkpoint(folder)
    key = "net/weight/.ATTRIBUTES/VARIABLE_VALUE"
    assert reader.has_tensor(key) and not reader.has_tensor("net")
    reader.get_tensor(key)[...] = 0
    np.testing.assert_array_equal(reader.get_tensor("net/weight"), [[1.0, 2.0]])


def test_what_is_not_there_is_named(folder, tmp_path):
    reader = tf.train.load_checkpoint(folder)
    with pytest.raises(ValueError, match=r"got 'net/wieght'; did you mean 'net/weight'"):
        reader.get_tensor("net/wieght")
    with pytest.raises(ValueError, match=r"^\[load_checkpoint\] there must be a checkpoint: got "):
        tf.train.load_checkpoint(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has none inside"):
        tf.train.list_variables(tmp_path / "empty")


def test_a_damaged_checkpoint_is_not_read(folder):
    (arrays,) = (folder / "ckpt-2").glob("*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(tf.train.CorruptCheckpointError, match="ckpt-2"):
        tf.train.load_checkpoint(folder)
