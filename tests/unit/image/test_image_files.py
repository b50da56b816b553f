"""tf.image and tf.io: TensorFlow's results, and what damaged files are told."""

from __future__ import annotations

import base64
import json
import pathlib

import numpy as np
import pytest
from image_programs import CASES, DECODED, IMAGE, PIXELS, files, floats, unpacked

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_images.json").read_text())
FILES = files()


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_tensorflow(name):
    expected, found = unpacked(RECORDED["cases"][name]), CASES[name](tf.image).numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    else:  # products are rounded down, so the last bit of a float may decide
        assert np.abs(found.astype(np.int64) - expected).max() <= (1 if "bytes" in name else 0)


@pytest.mark.parametrize("name", DECODED)
def test_files_have_tensorflows_pixels(name):
    pytest.importorskip("PIL")
    expected = unpacked(RECORDED["decoded"][name])
    found = DECODED[name](tf.io, FILES[name.split()[0]]).numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape
    difference = np.abs(found.astype(np.float64) - expected)
    if "jpg" in name.split()[0]:  # TensorFlow takes a faster and coarser cosine transform
        assert difference.max() <= 6 and difference.mean() < 2
    else:
        assert difference.max() <= (1e-6 if expected.dtype.kind == "f" else 0)


def test_every_recorded_program_is_there():
    assert set(RECORDED["cases"]) == set(CASES) and set(RECORDED["decoded"]) == set(DECODED)


def test_an_image_is_written_and_read_again(tmp_path):
    pytest.importorskip("PIL")
    for channels in (1, 3, 4):
        image = np.ascontiguousarray(np.resize(PIXELS, (5, 4, channels)))
        path = str(tmp_path / "folder" / f"{channels}.png")
        tf.io.write_file(path, tf.io.encode_png(image))
        np.testing.assert_array_equal(tf.io.decode_png(tf.io.read_file(path)), image)
    jpeg = tf.io.decode_jpeg(tf.io.encode_jpeg(np.full((8, 8, 3), 90, np.uint8)))
    assert np.abs(jpeg.numpy().astype(int) - 90).max() <= 2


@pytest.mark.parametrize("share", [0, 0.05, 0.25, 0.5])
@pytest.mark.parametrize("name", ["rgb.png", "rgb.jpg", "still.gif", "rgb.bmp"])
def test_a_damaged_file_is_named(tmp_path, name, share):
    pytest.importorskip("PIL")
    path = tmp_path / name
    path.write_bytes(FILES[name][: int(len(FILES[name]) * share)])
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"bytes of {path}"):
        tf.io.decode_image(tf.io.read_file(str(path)))


def test_no_bytes_of_any_kind_crash_the_decoder():
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    for name, content in FILES.items():
        for _ in range(20):
            data = bytearray(content)
            for place in rng.integers(0, len(data), 3):
                data[place] = rng.integers(256)
            said = "an image of this kind is needed"
            try:
                assert tf.io.decode_image(bytes(data)).shape.rank in (3, 4), name
            except tf.errors.InvalidArgumentError as error:
                said = str(error)
            assert "an image of this kind is needed" in said


def test_random_flips_and_crops_depend_on_the_seed_only():
    def draws():
        tf.random.set_seed(3)
        data = tf.data.Dataset.from_tensor_slices(floats(count=30))
        data = data.map(tf.image.random_flip_left_right).map(
            lambda x: tf.image.random_crop(x, [3, 2, 3])
        )
        return [x.numpy() for x in data]

    first, second = draws(), draws()
    np.testing.assert_array_equal(first, second)
    flipped = [
        bool((tf.image.random_flip_left_right(IMAGE).numpy() != IMAGE).any()) for _ in range(60)
    ]
    assert 10 < sum(flipped) < 50
    corners = {tuple(tf.image.random_crop(np.arange(4), [2]).numpy()) for _ in range(60)}
    assert corners == {(0, 1), (1, 2), (2, 3)}


def test_each_image_of_a_batch_is_flipped_by_itself():
    batch = np.repeat(IMAGE[None], 64, axis=0)
    same = (tf.image.random_flip_left_right(batch, seed=1).numpy() == batch).all(axis=(1, 2, 3))
    assert 15 < same.sum() < 49


def test_colours_have_derivatives_in_a_traced_step():
    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.image.adjust_contrast(x, 2.0) * tf.image.rot90(x, 2))
        return tape.gradient(total, x)

    found = slope(tf.constant(floats(rows=4, columns=4))).numpy()
    assert found.shape == (4, 4, 3) and np.abs(found).max() > 0


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.image.flip_left_right([[1]]), ValueError, r"\[rows, columns, channels\]"),
        (lambda: tf.image.rgb_to_grayscale(floats(channels=1)), ValueError, "3 channels"),
        (lambda: tf.image.grayscale_to_rgb(IMAGE), ValueError, "1 channel"),
        (lambda: tf.image.central_crop(IMAGE, 0.0), ValueError, "central_fraction"),
        (lambda: tf.image.crop_to_bounding_box(IMAGE, 3, 0, 3, 1), ValueError, "lie in the image"),
        (lambda: tf.image.crop_to_bounding_box(IMAGE, -1, 0, 3, 1), ValueError, "at least 0"),
        (lambda: tf.image.pad_to_bounding_box(IMAGE, 1, 0, 5, 4), ValueError, "must fit in"),
        (lambda: tf.image.random_crop(IMAGE, [9, 1, 1]), ValueError, "no larger than it"),
        (lambda: tf.image.random_hue(IMAGE, 0.7), ValueError, "at most 0.5"),
        (lambda: tf.image.random_contrast(IMAGE, 2, 1), ValueError, "lower < upper"),
        (lambda: tf.image.convert_image_dtype([True], "float32"), TypeError, "numbers"),
        (lambda: tf.io.decode_jpeg(b"text"), ValueError, "begins with"),
        (lambda: tf.io.decode_png(5), TypeError, "bytes of a file"),
        (lambda: tf.io.decode_png(FILES["rgb.png"], channels=7), ValueError, "channels must be"),
        (lambda: tf.io.decode_png(FILES["rgb.png"], dtype="float32"), ValueError, "uint8 or"),
        (lambda: tf.io.encode_png(IMAGE), ValueError, "uint8 or uint16"),
        (lambda: tf.io.read_file("/nowhere/1.png"), FileNotFoundError, "/nowhere/1.png"),
        (lambda: tf.io.read_file(5), TypeError, "a path is needed"),
        (lambda: tf.io.read_file("gs://bucket/1"), NotImplementedError, "this machine"),
        (lambda: tf.io.decode_raw([b"abc"], "int16"), ValueError, "multiple of 2"),
        (lambda: tf.image.rgb_to_yiq(IMAGE[..., :2]), ValueError, "3 channels.*got shape"),
        (lambda: tf.image.yuv_to_rgb(PIXELS), TypeError, "floats: got dtype uint8"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_raw_bytes_are_numbers():
    data = np.array([[1, -2], [300, 4]], np.int16)
    texts = [row.tobytes() for row in data]
    np.testing.assert_array_equal(tf.io.decode_raw(texts, tf.int16), data)
    np.testing.assert_array_equal(
        tf.io.decode_raw(b"\x01\x00", tf.int16, little_endian=False), [256]
    )
    padded = tf.io.decode_raw([b"a", b"abc"], tf.uint8, fixed_length=2)
    np.testing.assert_array_equal(padded, [[97, 0], [97, 98]])
    assert base64.b64encode(tf.constant(b"\x00\x01").numpy()) == b"AAE="


def test_files_and_folders(tmp_path):
    root = str(tmp_path)
    tf.io.gfile.makedirs(f"{root}/a/b")
    tf.io.gfile.makedirs(f"{root}/a/b")  # again
    tf.io.write_file(f"{root}/a/1.txt", "x")
    with tf.io.gfile.GFile(f"{root}/a/2.txt", "w") as file:
        file.write("ä\r\n")
    assert tf.io.gfile.GFile(f"{root}/a/2.txt", "rb").read() == b"\xc3\xa4\r\n"
    assert tf.io.gfile.listdir(f"{root}/a") == ["1.txt", "2.txt", "b"]
    assert tf.io.gfile.glob([f"{root}/a/*.txt"]) == [f"{root}/a/1.txt", f"{root}/a/2.txt"]
    assert tf.io.matching_files(f"{root}/a/?.txt").shape == (2,)
    assert tf.io.gfile.isdir(f"{root}/a") and not tf.io.gfile.isdir(f"{root}/a/1.txt")
    assert [files for _, _, files in tf.io.gfile.walk(root)] == [[], ["1.txt", "2.txt"], []]
    tf.io.gfile.copy(f"{root}/a/1.txt", f"{root}/3.txt")
    with pytest.raises(tf.errors.AlreadyExistsError, match="overwrite"):
        tf.io.gfile.copy(f"{root}/a/1.txt", f"{root}/3.txt")
    tf.io.gfile.rename(f"{root}/3.txt", f"{root}/4.txt")
    tf.io.gfile.remove(f"{root}/4.txt")
    with pytest.raises(tf.errors.NotFoundError, match="4.txt"):
        tf.io.gfile.remove(f"{root}/4.txt")
    tf.io.gfile.rmtree(f"{root}/a")
    assert not tf.io.gfile.exists(f"{root}/a")
