"""Checkpoints and models of other libraries, given where a checkpoint of samegrad should be."""

import numpy as np
import pytest

import samegrad as tf

# What a path holds: files in the folder, the path given, and the words.
FILES = {
    "a SavedModel": (("saved_model.pb",), "", "a SavedModel of TensorFlow"),
    "a model of Keras": (("model.keras",), "model.keras", "a model of Keras"),
    "weights of Keras": (("model.weights.h5",), "model.weights.h5", "a file of Keras"),
    "weights of PyTorch": (("model.pt",), "model.pt", "a file of PyTorch"),
    "weights in safetensors": (("w.safetensors",), "w.safetensors", "a file of safetensors"),
    "arrays of NumPy": (("arrays.npz",), "arrays.npz", "arrays of NumPy"),
}
REMEDY = {
    "TensorFlow": "save_weights('model.weights.h5')",
    "Keras": "load_",
    "PyTorch": "convert.from_torch",
    "safetensors": "convert.from_torch",
    "NumPy": "numpy.load",
}


def restore(path):
    tf.train.Checkpoint(v=tf.Variable(1.0)).restore(path)


def read(path):
    tf.train.Checkpoint(v=tf.Variable(1.0)).read(path)


READERS = (restore, read, tf.train.load_checkpoint, tf.train.list_variables)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_library_is_named(tmp_path, name, reader):
    files, given, words = FILES[name]
    for file in files:
        (tmp_path / file).write_bytes(b"\0" * 64)
    with pytest.raises((OSError, ValueError)) as error:
        reader(tmp_path / given)
    text = str(error.value)
    assert f", {words}; " in text and REMEDY[words.split()[-1]] in text


def test_a_missing_checkpoint_is_not_of_another_library(tmp_path):
    np.savez(tmp_path / "arrays.npz", a=1)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        restore(tmp_path / "ckpt")
