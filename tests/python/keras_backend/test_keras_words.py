"""Layers of words and of numbers that stand for them, with the engine alone."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import samegrad as tf

CASES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "Hashing": ({"num_bins": 1}, [[1], [2]], [[0], [0]]),
    "HashedCrossing": ({"num_bins": 1}, ([1, 2], [3, 4]), [0, 0]),
    "IntegerLookup": ({"vocabulary": [5, 7]}, [5, 7, 9], [1, 2, 0]),
    "StringLookup": ({"vocabulary": ["a", "b"]}, ["b", "a", "z"], [2, 1, 0]),
    "TextVectorization": ({"vocabulary": ["a", "b"]}, ["A b!", "b", "?"], [[2, 3], [3, 0], [0, 0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_known_words_have_their_numbers(name: str) -> None:
    arguments, given, expected = CASES[name]
    layer = getattr(tf.keras.layers, name)(**arguments)
    arrays = tuple(map(np.array, given)) if isinstance(given, tuple) else np.array(given)
    found = layer(arrays)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == tf.int64
    assert "tensorflow" not in sys.modules


def test_a_vocabulary_is_learnt_from_text() -> None:
    layer = tf.keras.layers.TextVectorization(output_mode="count")
    layer.adapt(["the cat", "the dog", "the cat sat"])
    assert layer.get_vocabulary()[:3] == ["[UNK]", "the", "cat"]
    np.testing.assert_array_equal(layer(["the the bird"])[0, :3], [1, 2, 0])


def test_numbers_are_looked_up_in_a_compiled_function() -> None:
    layer = tf.keras.layers.IntegerLookup(vocabulary=[5, 7])
    np.testing.assert_array_equal(tf.function(layer)(tf.constant([9, 7, 5])), [0, 2, 1])
