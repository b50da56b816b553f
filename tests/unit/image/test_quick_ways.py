"""What goes a shorter way outside of a trace gives the bits of the longer one."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import samegrad as tf
from samegrad.image import _decode

RNG = np.random.default_rng(5)
SIZES = [((5, 7), (9, 4)), ((4, 4), (8, 8)), ((64, 48), (28, 31)), ((1, 1), (3, 2)),
         ((3, 2), (1, 1)), ((5, 3), (5, 8)), ((3, 5), (8, 5)), ((1, 9), (1, 4))]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), SIZES, ids=str)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_resize_has_the_bits_of_a_traced_one(old, new, channels, kind):
    x = (RNG.random((3, *old, channels)) * 255).astype(kind)
    at_once = tf.image.resize(x, new)
    traced = tf.function(lambda a: tf.image.resize(a, new))(x)
    assert at_once.numpy().tobytes() == traced.numpy().tobytes()
    assert at_once.shape == (3, *new, channels)
    assert at_once.dtype == tf.float32
    one = tf.image.resize(x[1], new)
    assert one.numpy().tobytes() == traced.numpy()[1].tobytes()


def test_resize_of_numbers_that_are_none():
    x = np.float32([[[np.inf], [1.0], [-0.0]], [[np.nan], [3e38], [-3e38]]])
    traced = tf.function(lambda a: tf.image.resize(a, [3, 5]))(x)
    np.testing.assert_array_equal(tf.image.resize(x, [3, 5]), traced)  # NaN is NaN of any sign


def test_resize_of_no_images_and_no_channels():
    assert tf.image.resize(np.zeros((0, 3, 3, 1), np.float32), [2, 2]).shape == (0, 2, 2, 1)
    assert tf.image.resize(np.zeros((2, 3, 3, 0), np.uint8), [2, 5]).shape == (2, 2, 5, 0)


def test_a_watched_resize_has_a_derivative():
    x = tf.Variable(np.ones((4, 4, 1), np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.resize(x, [2, 2]))
    assert float(tf.reduce_sum(tape.gradient(y, x))) == 4.0


def _file(mode: str, kind: str, **options: Any) -> bytes:
    shape = (19, 23) if mode in ("L", "P", "I;16", "1") else (19, 23, len(mode))
    pixels = RNG.integers(0, 256, shape).astype(np.uint16 if mode == "I;16" else np.uint8)
    if mode in ("P", "1"):
        image = Image.fromarray(pixels).convert(mode)
    else:
        image = Image.frombytes(mode, shape[1::-1], pixels.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


FILES = {
    "jpeg": ("RGB", "JPEG", {}), "grey": ("L", "JPEG", {}),
    "progressive": ("RGB", "JPEG", {"progressive": True}),
    "full colours": ("RGB", "JPEG", {"subsampling": 0}),
    "commented": ("RGB", "JPEG", {"comment": b"\xff\xc0 a"}),
    "four inks": ("CMYK", "JPEG", {}), "png": ("RGB", "PNG", {}), "grey png": ("L", "PNG", {}),
    "opacity": ("RGBA", "PNG", {}), "grey opacity": ("LA", "PNG", {}), "palette": ("P", "PNG", {}),
    "transparent": ("RGB", "PNG", {"transparency": (0, 0, 0)}), "16 bits": ("I;16", "PNG", {}),
    "bits": ("1", "PNG", {}), "bmp": ("RGB", "BMP", {}), "gif": ("L", "GIF", {}),
}  # fmt: skip
PLAIN = {
    "jpeg", "grey", "progressive", "full colours", "commented", "png", "grey png", "opacity",
    "grey opacity",
}  # fmt: skip


def _slow(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as changed:
        changed.setattr(_decode, "plain_pixels", lambda data, channels: None)
        return _outcome(data)


def _outcome(data: bytes) -> Any:
    found = []
    for channels in (0, 1, 3, 4):
        try:
            image = tf.io.decode_image(data, channels=channels, expand_animations=False)
            found.append((tuple(image.shape), image.numpy().tobytes()))
        except (ValueError, tf.errors.InvalidArgumentError) as error:
            found.append(str(error))
    return found


by_libraries = pytest.mark.skipif(
    "Pillow" in (tf.sysconfig()["jpeg"], tf.sysconfig()["png"]),
    reason="built without libjpeg or libpng",
)


@by_libraries
@pytest.mark.parametrize("name", FILES)
def test_the_usual_files_have_the_pixels_that_pillow_opens(name, monkeypatch):
    mode, kind, options = FILES[name]
    data = _file(mode, kind, **options)
    assert (_decode.plain_pixels(data, 0) is not None) == (name in PLAIN)
    assert _outcome(data) == _slow(data, monkeypatch)


@pytest.mark.parametrize("name", ["jpeg", "progressive", "png", "opacity"])
def test_a_file_that_is_cut_is_what_pillow_says(name, monkeypatch):
    mode, kind, options = FILES[name]
    data = _file(mode, kind, **options)
    for size in {*range(60), *range(60, len(data), 37), len(data) - 1}:
        assert _outcome(data[:size]) == _slow(data[:size], monkeypatch), size


def test_a_changed_byte_of_a_png_is_what_pillow_says(monkeypatch):
    data = _file("RGB", "PNG")
    for place in {*range(60), *range(60, len(data), 41), *range(len(data) - 20, len(data))}:
        changed = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        assert _outcome(changed) == _slow(changed, monkeypatch), place


def test_a_pipeline_of_files_knows_no_threads(tmp_path):
    for number in range(40):
        kind = "JPEG" if number % 2 else "PNG"
        (tmp_path / f"{number:02}").write_bytes(_file("RGB", kind))

    def load(path: Any) -> Any:
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        return tf.image.random_flip_left_right(tf.image.resize(image, [8, 9])) / 255.0

    def run(threads: int | None) -> bytes:
        tf.random.set_seed(2)  # before the dataset is made, whose functions draw from it
        files = tf.data.Dataset.list_files(str(tmp_path / "*"), seed=3).shuffle(40, seed=1)
        data = files.map(load, num_parallel_calls=threads).batch(7).prefetch(2)
        return b"".join(batch.numpy().tobytes() for batch in data)

    expected = run(None)
    assert len(expected) == 40 * 8 * 9 * 3 * 4
    assert {run(1), run(2), run(8), run(tf.data.AUTOTUNE)} == {expected}


def test_suppression_takes_equal_scores_in_order_and_keeps_boxes_without_area():
    boxes = np.float32([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [3, 3, 2, 2], [5, 5, 5, 6]])
    scores = np.float32([0.5, 0.5, 0.1, 0.1, 0.3])
    assert tf.image.non_max_suppression(boxes, scores, 9).numpy().tolist() == [0, 4, 2]
    soft, kept = tf.image.non_max_suppression_with_scores(boxes, scores, 9, soft_nms_sigma=0.5)
    assert soft.numpy().tolist() == [0, 4, 1, 2, 3]  # as TensorFlow 2.21
    np.testing.assert_allclose(kept, [0.5, 0.3, 0.22242905, 0.1, 0.03678795], rtol=1e-6)
    scores[0] = np.nan
    assert tf.image.non_max_suppression(boxes, scores, 9).numpy().tolist() == [1, 4, 2]


@pytest.mark.parametrize(("size", "stride", "rate"), [(2, 2, 1), (2, 3, 1), (2, 3, 2), (1, 1, 1)])
def test_patches_that_do_not_overlap_have_the_bits_of_slices(size, stride, rate):
    x = tf.constant(RNG.normal(size=(2, 7, 8, 3)).astype("float32"))
    count = [(n - (size - 1) * rate - 1) // stride + 1 for n in (7, 8)]

    def slices(x: Any) -> Any:
        starts = [(i * rate, j * rate) for i in range(size) for j in range(size)]
        parts = [x[:, i::stride, j::stride][:, : count[0], : count[1]] for i, j in starts]
        return tf.concat(parts, -1)

    def patches(x: Any) -> Any:
        grid = ([1, n, n, 1] for n in (size, stride, rate))
        return tf.image.extract_patches(x, *grid, "VALID")

    weights = RNG.choice(np.float32([-0.0, 0.0, 1.5]), slices(x).shape)  # zeros of both signs
    found = []
    for function in (slices, patches):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = function(x)
        found.append(made.numpy().tobytes() + tape.gradient(made, x, weights).numpy().tobytes())
    assert found[0] == found[1]


def test_cut_boxes_name_an_image_that_does_not_exist():
    image = np.zeros((2, 4, 4, 1), np.float32)
    with pytest.raises(ValueError, match=r"must lie in \[0, 2\): got 2 at position \(1,\)"):
        tf.image.crop_and_resize(image, [[0, 0, 1, 1.0]] * 2, [0, 2], [2, 2])
