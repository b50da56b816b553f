"""Elements that the engine makes alone, without Python's lock, have the bits of Python's."""

from __future__ import annotations

import collections
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import samegrad as tf
from samegrad.data import _mapped
from samegrad.data._mapped import MappedFunction

Dataset = tf.data.Dataset
RNG = np.random.default_rng(3)
COUNT = 60
CALLS = (None, 1, 2, tf.data.AUTOTUNE)
by_libraries = pytest.mark.skipif(
    "Pillow" in (tf.sysconfig()["jpeg"], tf.sysconfig()["png"]),
    reason="built without libjpeg or libpng",
)


def write(path: Path, size: tuple[int, int], kind: str) -> None:
    image = Image.fromarray(RNG.integers(0, 256, (*size, 3)).astype(np.uint8))
    if kind == "palette":
        image, kind = image.convert("P"), "PNG"
    image.save(path, kind)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Paths of JPEG and PNG files of several sizes."""
    folder = tmp_path_factory.mktemp("usual")
    for n in range(COUNT):
        kind = "PNG" if n % 2 else "JPEG"
        write(folder / f"{n:02}.{kind.lower()}", (5 + n % 7, 4 + n % 5), kind)
    return sorted(map(str, folder.iterdir()))


def load(path: Any, label: Any) -> Any:
    image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
    image = tf.image.resize(image, [6, 8])
    return tf.image.random_flip_left_right(image) / 255.0, label


def load_as_they_are(path: Any, label: Any) -> Any:
    pixels = tf.image.decode_png(tf.io.read_file(path))
    return {"label": label, "pixels": tf.image.random_flip_up_down(pixels), "path": path}


def load_alone(path: Any) -> Any:
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), (9, 3))


def load_with_label(path: Any) -> Any:
    """As TensorFlow's tutorial on images loads them: the label is the folder's name."""
    parts = tf.strings.split(path, "/")
    label = tf.argmax(parts[-2] == ["usual0", "others"])
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [5, 5]), label, path


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions of the elements in whose making Python took part."""
    found: list[int] = []
    inner = MappedFunction.with_python

    def noted(self: Any, seed: int, position: int, element: Any) -> Any:
        found.append(position)
        return inner(self, seed, position, element)

    monkeypatch.setattr(MappedFunction, "with_python", noted)
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 3)
    return found


def bits(element: Any) -> Any:
    if isinstance(element, dict):
        return {name: bits(part) for name, part in element.items()}
    if isinstance(element, tuple):
        return tuple(map(bits, element))
    return np.asarray(element.numpy()).tobytes(), tuple(element.shape)


def outcomes(make: Any) -> list[Any]:
    """The bits of two epochs, or what is said instead of an element."""
    tf.random.set_seed(4)
    dataset, found = make(), []
    for _ in range(2):
        iterator = iter(dataset)
        while True:
            try:
                found.append(bits(next(iterator)))
            except StopIteration:
                break
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
                found.append(f"{type(error).__name__}: {error}")
    return found


def made_by_python(make: Any, by_python: list[int]) -> list[int]:
    """The positions in whose making Python took part in an epoch after the programs were there.

    How many it makes before depends on how long the other threads go on while one traces.
    """
    tf.random.set_seed(4)
    dataset = make()
    for _ in range(2):
        collections.deque(dataset, maxlen=0)
    by_python.clear()
    collections.deque(dataset, maxlen=0)
    return by_python


def expected_of(make: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    with monkeypatch.context() as changed:
        changed.setattr(_mapped, "_FIRST_BY_PYTHON", 10**9)
        return outcomes(make)


@by_libraries
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("function", [load, load_alone, load_with_label])
def test_usual_files_are_made_by_the_engine_alone(usual, function, calls, by_python, monkeypatch):
    def make() -> Any:
        parts = (usual, np.arange(COUNT)) if function is load else usual
        data = Dataset.from_tensor_slices(parts).shuffle(COUNT, seed=1)
        return data.map(function, num_parallel_calls=calls)

    expected = expected_of(make, monkeypatch)
    by_python.clear()
    assert outcomes(make) == expected
    assert len(expected) == 2 * COUNT
    assert made_by_python(make, by_python) == []


@by_libraries
@pytest.mark.parametrize("calls", CALLS)
def test_a_size_that_no_program_is_for_is_left_to_python(usual, calls, by_python, monkeypatch):
    def make() -> Any:
        few = [path for n, path in enumerate(usual) if n % 7 in (0, 3) and n % 5 in (0, 1)]
        data = Dataset.from_tensor_slices((few * 8, np.arange(len(few) * 8)))
        return data.map(load_as_they_are, num_parallel_calls=calls)

    expected = expected_of(make, monkeypatch)
    by_python.clear()
    assert outcomes(make) == expected
    assert 0 < len(by_python) < len(expected)


@by_libraries
@pytest.mark.parametrize("calls", CALLS)
def test_files_that_are_not_usual_are_made_by_python(tmp_path, calls, by_python, monkeypatch):
    for n in range(COUNT):
        odd = ("BMP", "palette", "GIF")[n // 6 % 3] if n % 6 == 5 else ""
        write(tmp_path / f"{n:02}", (7, 5), odd or ("PNG" if n % 2 else "JPEG"))
    (tmp_path / "40").write_bytes(b"no image")
    whole = (tmp_path / "42").read_bytes()
    (tmp_path / "42").write_bytes(whole[:-30])
    names = [str(tmp_path / f"{n:02}") for n in range(COUNT)]
    (tmp_path / "44").unlink()

    def make() -> Any:
        data = Dataset.from_tensor_slices((names, np.arange(COUNT)))
        return data.map(load, num_parallel_calls=calls)

    expected = expected_of(make, monkeypatch)
    by_python.clear()
    assert outcomes(make) == expected
    for n in (40, 42, 44):
        assert str(tmp_path / str(n)) in expected[n]
    odd = {n for n in range(COUNT) if n % 6 == 5} | {40, 42, 44}
    assert odd <= set(by_python)
    second = by_python[-len(odd) :]
    assert sorted(second) == sorted(odd)  # the whole second epoch


@by_libraries
def test_images_of_a_directory_are_made_by_the_engine_alone(usual, by_python, monkeypatch):
    def make() -> Any:
        return tf.keras.utils.image_dataset_from_directory(
            Path(usual[0]).parent, labels=None, image_size=(6, 7), batch_size=8, seed=1,
            verbose=False,
        )  # fmt: skip

    expected = expected_of(make, monkeypatch)
    by_python.clear()
    assert outcomes(make) == expected
    assert len(expected) == 2 * -(-COUNT // 8)
    assert made_by_python(make, by_python) == []


def test_numbers_are_made_by_the_engine_alone(by_python, monkeypatch):
    images = RNG.integers(0, 256, (COUNT, 5, 6, 3)).astype(np.uint8)

    def augmented(image: Any) -> Any:
        image = tf.cast(image, tf.float32) / 255.0
        return tf.image.random_brightness(tf.image.random_flip_left_right(image), 0.2)

    def make() -> Any:
        return Dataset.from_tensor_slices(images).map(augmented)

    expected = expected_of(make, monkeypatch)
    by_python.clear()
    assert outcomes(make) == expected
    assert by_python == list(range(7))  # three, the traced one, two compared, the first offered


def test_what_the_function_reads_may_change_while_the_engine_makes_elements(by_python):
    factor = [2.0]
    made = iter(Dataset.range(40).map(lambda x: tf.cast(x, tf.float32) * factor[0]))
    assert [float(next(made)) for _ in range(20)] == [2.0 * n for n in range(20)]
    factor[0] = 3.0
    assert [float(next(made)) for _ in range(20)] == [3.0 * n for n in range(20, 40)]


def test_a_row_that_python_changes_is_not_the_one_that_was_made(usual):
    data = Dataset.from_tensor_slices((usual, np.arange(COUNT))).map(load, num_parallel_calls=2)
    first = [bits(element) for element in data]
    assert first != [bits(element) for element in data]  # another epoch flips others
    assert len(first) == COUNT


@by_libraries
def test_an_image_of_more_pixels_than_pillow_allows_is_left_to_it(monkeypatch):
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((10, 10, 3), np.uint8)).save(buffer, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    with pytest.raises(tf.errors.InvalidArgumentError, match="exceeds limit"):
        tf.io.decode_png(buffer.getvalue())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert tf.io.decode_png(buffer.getvalue()).shape == (10, 10, 3)


def test_elements_of_another_structure_are_left_to_python():
    function = MappedFunction(lambda x, y: (tf.cast(x, tf.float32) * 2.0, y))
    for n in range(20):
        function(0, n, (tf.constant(n), tf.constant(1)))
    assert function.by_engine(0, [(20, (tf.constant(3), tf.constant(1)))]) != [None]
    ragged = tf.ragged.constant([[1], [2, 3]])
    others = [tf.constant(3), {"x": 1}, (tf.constant(3),), (ragged, tf.constant(1)),
              (tf.constant(3.0), tf.constant(1)), (tf.constant("a"), tf.constant(1))]  # fmt: skip
    assert function.by_engine(0, list(enumerate(others))) == [None] * len(others)
