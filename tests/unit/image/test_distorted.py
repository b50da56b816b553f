"""Parts of images drawn at random: they are as asked for, and as often as TensorFlow's."""

import json
from pathlib import Path

import numpy as np
import pytest
from distorted_settings import DRAWS, SETTINGS

import samegrad as tf

RECORDED = json.loads(
    Path(__file__).with_name("tensorflow_distorted.json").read_text(encoding="utf-8")
)
sample = tf.image.sample_distorted_bounding_box


def drawn(size, boxes, options):
    """Rows of y, x, height and width, and the parts as boxes."""
    box = tf.constant(np.reshape(np.array(boxes, np.float32), (1, -1, 4)))
    one = tf.function(lambda: sample(size, box, **options))
    parts = [one() for _ in range(DRAWS)]
    rows = [[*begin.numpy()[:2], *part.numpy()[:2]] for begin, part, _ in parts]
    return np.array(rows, float), np.array([box.numpy()[0, 0] for _, _, box in parts])


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_parts_are_as_asked_for_and_as_tensorflow_draws_them(name):
    tf.random.set_seed(4)
    (height, width, _), boxes, options = SETTINGS[name]
    rows, ends = drawn(*SETTINGS[name])
    top, left, high, wide = rows.T
    assert (rows[:, :2] >= 0).all() and (rows[:, 2:] >= 1).all()
    assert (top + high <= height).all() and (left + wide <= width).all()
    places = np.stack([top, left, top + high, left + wide], 1)
    np.testing.assert_allclose(ends * ([height, width] * 2), places, atol=1e-4)
    part = ~((high == height) & (wide == width))
    least, most = np.array(options.get("area_range", (0.05, 1.0))) * height * width
    assert (high * wide >= least - 1e-3)[part].all() and (high * wide <= most + 1e-3)[part].all()
    narrow, broad = options.get("aspect_ratio_range", (0.75, 1.33))
    assert (wide >= high * narrow - 0.51)[part].all() and (wide <= high * broad + 0.51)[part].all()
    seen = np.zeros(len(rows))
    for y0, x0, y1, x1 in np.reshape(boxes or [[0, 0, 1, 1]], (-1, 4)) * ([height, width] * 2):
        rows_seen = np.minimum(top + high, y1) - np.maximum(top, y0)
        columns = np.minimum(left + wide, x1) - np.maximum(left, x0)
        share = rows_seen.clip(0) * columns.clip(0) / ((y1 - y0) * (x1 - x0))
        seen = np.maximum(seen, share)
    assert (seen >= options.get("min_object_covered", 0.1) - 1e-5)[part].all()
    known = RECORDED[name]
    error = 5 * np.array(known["deviation"]) * np.sqrt(2 / DRAWS) + 0.02
    assert (abs(rows.mean(0) - known["mean"]) <= error).all(), (rows.mean(0), known)
    assert abs((~part).sum() - known["whole"]) <= 5 * np.sqrt(2 * known["whole"]) + 5


def test_a_seed_decides_the_part():
    box = [[[0.1, 0.1, 0.5, 0.5]]]
    stateless = tf.image.stateless_sample_distorted_bounding_box
    parts = [stateless([40, 30, 3], box, seed=[1, s])[0].numpy().tolist() for s in (2, 2, 3, 4, 5)]
    assert parts[0] == parts[1] and len({tuple(part) for part in parts}) > 1


def test_it_crops_the_images_of_a_dataset():
    def crop(image):
        begin, size, _ = sample(tf.shape(image), tf.constant([[[0.0, 0.0, 1.0, 1.0]]]))
        return tf.image.resize(tf.slice(image, begin, size), (8, 8))

    images = np.random.default_rng(0).uniform(size=(5, 20, 24, 3)).astype(np.float32)
    made = [x.shape for x in tf.data.Dataset.from_tensor_slices(images).map(crop)]
    assert made == [(8, 8, 3)] * 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"min_object_covered": 1.5}, "from 0 to 1: got 1.5"),
        ({"area_range": (0.5, 2.0)}, "at most 1.0, the least first: got [0.5, 2.0]"),
        ({"aspect_ratio_range": (2.0, 1.0)}, "the least first: got [2.0, 1.0]"),
        ({"max_attempts": 0}, "at least 1: got 0"),
        ({"bounding_boxes": [[0.0, 0.0, 1.0, 1.0]]}, "shape (1, n, 4): got (1, 4)"),
        ({"bounding_boxes": np.zeros((1, 0, 4), "float32")}, "must hold a box: got (1, 0, 4)"),
        ({"bounding_boxes": [[[0.5, 0.0, 0.5, 1.0]]]}, "got [0.5, 0.0, 0.5, 1.0]"),
        ({"image_size": [3, 4]}, "[height, width, channels]: got [3, 4]"),
    ],
)
def test_it_refuses(options, text):
    given = {"image_size": [9, 9, 3], "bounding_boxes": [[[0.0, 0.0, 1.0, 1.0]]], **options}
    with pytest.raises(ValueError) as error:
        sample(**given)
    assert str(error.value).startswith("[sample_distorted_bounding_box]")
    assert text in str(error.value)
