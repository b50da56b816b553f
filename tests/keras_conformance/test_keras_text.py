"""Layers that turn text and integers into places of a vocabulary."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf
from samegrad._keras import register

keras = register.load()

from samegrad.strings import _hashing as hashing  # noqa: E402


def test_fingerprints_are_those_of_tensorflow():
    texts = np.array(["", "a", "omar", "stringer", "a" * 9, "hello world 12345", "e" * 33], object)
    of_tensorflow = [
        1936946117179621455, 3694432073954588131, 3378277989609990986, 2877107343848490992,
        1010243743929222519, 87573249954529727, 2085696148661965414,
    ]  # fmt: skip
    assert hashing.buckets(texts, 2**62).tolist() == of_tensorflow


def test_long_texts_have_tensorflows_fingerprints():
    texts = np.array(["abcdefghij" * 5, "f" * 64, "g" * 65, "xyz" * 50], object)
    of_tensorflow = [
        410236181849287095, 1547595845336470181, 65932109113285398, 1424868872803578490,
    ]  # fmt: skip
    assert hashing.buckets(texts, 2**62).tolist() == of_tensorflow


def test_keyed_hashes_are_those_of_tensorflow():
    texts = np.array(["", "a", "stringer", "b" * 16, "xyz" * 50], object)
    of_tensorflow = [
        316627932347062996, 2466253977694453450, 1377567056366200697, 4595312983480271451,
        191664531564286321,
    ]  # fmt: skip
    assert hashing.buckets(texts, 2**62, (133, 137)).tolist() == of_tensorflow


def test_text_becomes_rows_of_places_in_the_vocabulary():
    layer = keras.layers.TextVectorization(output_sequence_length=4)
    layer.adapt(["the cat sat", "the dog, the END"])
    assert layer.get_vocabulary()[:3] == ["", "[UNK]", "the"]
    places = layer(["The cat", "a dog!"])
    assert places.shape == (2, 4)
    words = layer.get_vocabulary()
    assert [words[i] for i in places.numpy()[0]] == ["the", "cat", "", ""]
    assert [words[i] for i in places.numpy()[1]] == ["[UNK]", "dog", "", ""]


def test_words_are_counted():
    layer = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="count")
    np.testing.assert_array_equal(layer([["a", "a", "c"], ["b", "b", "b"]]), [[1, 2, 0], [0, 0, 3]])


def test_whole_numbers_are_looked_up_in_a_traced_function_as_outside():
    layer = keras.layers.IntegerLookup(vocabulary=[12, 36, 1138, 42])
    numbers = tf.constant([[12, 1138, 42], [42, 1000, 36]], "int64")
    expected = [[1, 3, 4], [4, 0, 2]]
    np.testing.assert_array_equal(layer(numbers), expected)
    np.testing.assert_array_equal(tf.function(lambda x: layer(x))(numbers), expected)


def test_integers_are_hashed_by_python_in_a_function_and_refused_in_run():
    layer = keras.layers.Hashing(num_bins=3)
    numbers = tf.constant([1, 2, 3])
    np.testing.assert_array_equal(tf.function(lambda x: layer(x))(numbers), layer(numbers))
    with pytest.raises(RuntimeError, match="Dataset.map or in a model that fit"):
        tf.distribute.MirroredStrategy(replicas=2).run(layer, args=(numbers,))


def test_class_weights_of_a_dataset_need_one_target_and_no_weights():
    from keras.src.trainers.data_adapters.tf_dataset_adapter import TFDatasetAdapter

    x = np.zeros((4, 2), np.float32)
    y = np.array([0, 1, 1, 0])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    weights = [w.numpy() for _, _, w in TFDatasetAdapter(data, {0: 0.5, 1: 2.0}).get_batches()]
    np.testing.assert_allclose(np.concatenate(weights), [0.5, 2, 2, 0.5])
    weighed = tf.data.Dataset.from_tensor_slices((x, y, np.ones(4, np.float32))).batch(2)
    with pytest.raises(ValueError, match="at the same time"):
        TFDatasetAdapter(weighed, {0: 0.5})


RAGGED_IDS = {  # those of TensorFlow 2.21
    "words": ({}, [[2, 3, 2], [3]]),
    "cut": ({"output_sequence_length": 2}, [[2, 3], [3]]),
    "pairs": ({"ngrams": 2, "vocabulary": ["a", "b", "a b"]}, [[2, 3, 2, 4, 1], [3]]),
    "letters": ({"split": "character"}, [[2, 1, 3, 1, 2], [3]]),
    "standardized by tf.strings": ({"standardize": tf.strings.upper}, [[1, 1, 1], [1]]),
}


@pytest.mark.parametrize("name", RAGGED_IDS)
def test_text_vectorization_returns_ragged_ids(name):
    more, expected = RAGGED_IDS[name]
    layer = tf.keras.layers.TextVectorization(**{"vocabulary": ["a", "b"], **more}, ragged=True)
    ids = layer(tf.constant(["a b a", "b"]))
    assert isinstance(ids, tf.RaggedTensor) and ids.dtype == tf.int64
    assert ids.to_list() == expected
    data = tf.data.Dataset.from_tensor_slices(["a b a", "b"]).batch(2).map(layer)
    assert [batch.to_list() for batch in data] == [expected]


@pytest.mark.parametrize(
    "name", ["TextVectorization", "StringLookup", "IntegerLookup", "HashedCrossing"]
)
def test_sparse_outputs_of_text_layers_name_the_remedy(name):
    given = {"num_bins": 5} if name == "HashedCrossing" else {}
    with pytest.raises(ValueError, match=rf"\[{name}\].*sparse=True.*tf.sparse.from_dense"):
        getattr(tf.keras.layers, name)(output_mode="multi_hot", sparse=True, **given)
