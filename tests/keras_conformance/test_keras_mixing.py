"""Draws, mixtures and counts of images over shares of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared

import samegrad as tf
from samegrad._keras import mixing

PHOTOS = np.random.default_rng(0).uniform(0, 255, (7, 6, 8, 3)).astype("float32")


def on_replicas(fn: Any, array: Any, sizes: list[int]) -> list[np.ndarray]:
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))
    found = strategy.run(tf.function(fn), args=(shared(array, sizes),))
    return [np.asarray(part) for part in strategy.experimental_local_results(found)]


@pytest.mark.parametrize("sizes", [[7], [4, 3], [5, 0, 2]])
def test_partners_are_one_permutation_of_the_examples_of_all_replicas(sizes: list[int]) -> None:
    def fn(x: Any) -> Any:
        return mixing.rows_of(x, mixing.partners(x.shape[0], keras.random.SeedGenerator(3)))

    (alone,) = on_replicas(fn, PHOTOS, [7])
    order = [next(i for i, x in enumerate(PHOTOS) if np.array_equal(x, y)) for y in alone]
    assert sorted(order) == list(range(7)) and order != list(range(7))
    np.testing.assert_array_equal(np.concatenate(on_replicas(fn, PHOTOS, sizes)), alone)


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_images_and_labels_are_mixed_alike_with_those_of_all_replicas(name: str) -> None:
    layer = getattr(keras.layers, name)(seed=5)
    labels = np.eye(7, dtype="float32")
    parts = shared(PHOTOS, [4, 3]), shared(labels, [4, 3])
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    mixed = strategy.run(lambda x, y: layer({"images": x, "labels": y}, training=True), args=parts)
    images, shares = (strategy.gather(mixed[key], axis=0).numpy() for key in ("images", "labels"))
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
    if name == "MixUp":
        wanted = np.einsum("ij,jhwc->ihwc", shares, PHOTOS)
        np.testing.assert_allclose(images, wanted, rtol=1e-4)
        return
    for image, share, own in zip(images, shares, range(7), strict=True):
        other = int(np.argmax(share * (np.arange(7) != own)))
        kept = (image == PHOTOS[own]).all(-1)
        assert (kept | (image == PHOTOS[other]).all(-1)).all()


def test_a_histogram_counts_the_numbers_of_all_replicas() -> None:
    numbers = np.array([0, 2, 2, 3, 1, 2, 0])
    for part in on_replicas(lambda x: mixing.histogram(x, 5), numbers, [4, 3]):
        np.testing.assert_array_equal(part, np.bincount(numbers, minlength=5))


def test_colours_are_spread_as_by_the_cumulated_histogram() -> None:
    found = on_replicas(lambda x: keras.layers.Equalization()(x), PHOTOS, [4, 3])
    for channel in range(3):
        values = PHOTOS[..., channel]
        places = (values * (255 / 255)).astype(int)
        steps = np.bincount(places.ravel(), minlength=256).cumsum()
        least = steps[steps > 0][0]
        table = np.clip(np.round((steps - least) * 255 / (steps[-1] - least)), 0, 255)
        wanted = table[places]
        np.testing.assert_allclose(np.concatenate(found)[..., channel], wanted, atol=1)


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
@pytest.mark.parametrize("batched", [True, False])
def test_a_part_of_images_begins_at_a_known_or_a_drawn_place(layout: str, batched: bool) -> None:
    x = PHOTOS if batched else PHOTOS[0]
    wanted = x[..., 1:4, 2:7, :]
    if layout == "channels_first":
        x, wanted = np.moveaxis(x, -1, -3), np.moveaxis(wanted, -1, -3)
    for top, left in ((1, 2), (tf.constant(1), tf.constant(2))):
        found = mixing.cropped(x, top, left, (3, 5), layout)
        np.testing.assert_array_equal(found, wanted)
    assert mixing.cropped(PHOTOS, 4, 0, (3, 5), "channels_last").shape == (7, 2, 5, 3)


def draws(fn: Any, sizes: list[int]) -> list[np.ndarray]:
    generator = keras.random.SeedGenerator(4)
    return on_replicas(lambda x: fn(x, generator), PHOTOS, sizes)


class Draws(keras.layers.Layer):
    """Adds numbers that no example has."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.random.SeedGenerator(4)

    def call(self, x: Any) -> Any:
        return keras.random.normal((2, 3), seed=self.generator) + 0 * x[0, 0, 0, 0]


def test_what_layers_draw_for_no_example_is_the_same_on_all_replicas() -> None:
    (alone,) = on_replicas(Draws(), PHOTOS, [7])
    for part in on_replicas(Draws(), PHOTOS, [4, 3]):
        np.testing.assert_array_equal(part, alone)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, g: keras.random.uniform((), seed=g) + 0 * x[0, 0, 0, 0],
        lambda x, g: keras.random.shuffle(tf.range(9), seed=g),
        lambda x, g: keras.random.dropout(tf.ones((1, 5)), 0.5, seed=g),
    ],
    ids=["a number", "an order", "a mask"],
)
def test_single_numbers_orders_and_masks_are_the_same_on_all_replicas(fn: Any) -> None:
    (alone,) = draws(fn, [7])
    for part in draws(fn, [4, 3]):
        np.testing.assert_array_equal(part, alone)


def test_rows_of_a_plain_number_are_those_that_one_device_draws() -> None:
    (alone,) = draws(lambda x, g: keras.random.normal((4, 3), seed=g) + 0 * x[0, 0, 0], [7])
    parts = draws(lambda x, g: keras.random.normal((2, 3), seed=g) + 0 * x[0, 0, 0], [4, 3])
    np.testing.assert_array_equal(np.concatenate(parts), alone)
