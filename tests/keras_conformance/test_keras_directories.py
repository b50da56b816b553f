"""Folders as datasets, and layers that learn vocabularies: TensorFlow's elements and ids."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from directory_programs import DATASETS, LAYERS, elements, of_layer, write_folders

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_directories.json").read_text())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders")
    write_folders(folder)
    return folder


@pytest.mark.parametrize("name", DATASETS)
def test_elements_of_folders_are_those_of_tensorflow(name, root):
    pytest.importorskip("PIL")
    found, expected = elements(DATASETS[name](tf, root)), RECORDED["datasets"][name]
    if "mixed" in name:  # the order of `shuffle` is samegrad's own
        found, expected = sorted(found, key=json.dumps), sorted(expected, key=json.dumps)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            if "text" in other:
                assert mine == other
                continue
            assert (mine["shape"], mine["dtype"]) == (other["shape"], other["dtype"])
            grey = 1.0 if name == "images grey" else 0.0  # libpng rounds down what Pillow rounds
            np.testing.assert_allclose(mine["values"], other["values"], atol=2e-3 + grey)


@pytest.mark.parametrize("name", LAYERS)
def test_vocabularies_and_ids_are_those_of_tensorflow(name, root):
    found, expected = of_layer(tf, name, root), RECORDED["layers"][name]
    assert found["words"] == expected["words"]
    assert found["given"]["shape"] == expected["given"]["shape"]
    np.testing.assert_allclose(found["given"]["values"], expected["given"]["values"], atol=2e-3)


@pytest.mark.parametrize("name", LAYERS)
def test_configurations_are_those_of_tensorflow_and_are_loaded(name, root):
    expected = {k: v for k, v in RECORDED["layers"][name]["config"].items() if k != "name"}
    config = json.loads(json.dumps(of_layer(tf, name, root)["config"]))
    assert {k: v for k, v in config.items() if k != "name"} == expected
    kinds = {"strings": "StringLookup", "numbers": "IntegerLookup"}
    kind = getattr(tf.keras.layers, kinds.get(name.split()[0], "TextVectorization"))
    again = json.loads(json.dumps(kind.from_config(dict(expected)).get_config()))
    learnt = ("name", "vocabulary_size")
    assert {k: v for k, v in again.items() if k not in learnt} == {
        k: v for k, v in expected.items() if k not in learnt
    }


def test_everything_recorded_is_there():
    assert set(RECORDED["datasets"]) == set(DATASETS) and set(RECORDED["layers"]) == set(LAYERS)


def test_a_model_learns_from_texts_in_a_folder(root):
    layer = tf.keras.layers.TextVectorization(output_mode="multi_hot")
    data = tf.keras.utils.text_dataset_from_directory(str(root / "text"), batch_size=4, seed=1)
    layer.adapt(data.map(lambda text, label: text))
    numbers = data.map(lambda text, label: (layer(text), label))
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile(tf.keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=["accuracy"])
    losses = model.fit(numbers, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


def test_a_damaged_image_of_a_folder_is_named(root, tmp_path):
    pytest.importorskip("PIL")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "broken.png").write_bytes(b"no image")
    data = tf.keras.utils.image_dataset_from_directory(str(tmp_path), shuffle=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a/broken.png"):
        next(iter(data))
