"""Elements that a program makes have the bits of those that Python makes."""

from __future__ import annotations

import functools
import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import samegrad as tf
from samegrad.data import _mapped, _purity
from samegrad.data._function_nodes import MapNode

Dataset = tf.data.Dataset
RNG = np.random.default_rng(11)
IMAGES = RNG.integers(0, 256, (24, 9, 7, 3)).astype(np.uint8)
LABELS = RNG.integers(0, 5, 24)
MEAN = np.float32([0.4, 0.5, 0.6])
CONFIG = SimpleNamespace(rows=5, columns=6)
NAMES = np.array(["ants", "bees"])
TABLE = tf.constant([1.0, 10.0, 100.0, 1000.0, 10000.0])


def flip(image, label):
    return tf.image.random_flip_left_right(image), label


def both_flips(image, label):
    return tf.image.random_flip_up_down(tf.image.random_flip_left_right(image)), label


def crop(image, label):
    return tf.image.random_crop(image, [CONFIG.rows, CONFIG.columns, 3]), label


def brighter(image, label):
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.random_brightness(image, 0.3)
    return tf.image.random_contrast(image, 0.7, 1.3), label


def normalise(image, label):
    return (tf.cast(image, tf.float32) / 255.0 - MEAN) / 0.25, label


def hot(image, label):
    return tf.cast(image, tf.float32) * (1 / 127.5) - 1, tf.one_hot(label, 5)


def draw(image, label):
    noise = tf.random.normal([9, 7, 3], stddev=0.1) + tf.random.uniform([], 1, 2)
    whole = tf.random.uniform([2], maxval=100, dtype=tf.int32)
    return {"image": tf.cast(image, tf.float32) + noise, "more": (label, (whole,))}


def branch(image, label):
    return tf.cond(label > 2, lambda: image // 2, lambda: 255 - image), label


def sized(image, label):
    return tf.image.resize(image, (CONFIG.rows, CONFIG.columns)), tf.gather(TABLE, label)


def standard(image, label):
    return tf.image.per_image_standardization(image), label


def padded(image, label, rows=12):
    return tf.image.resize_with_crop_or_pad(image, rows, 12), [label, label + 1]


def only_label(image, label):
    return label * 2


def stateless(image, label):
    seed = tf.stack([tf.cast(label, tf.int32), 7])
    return tf.image.stateless_random_flip_left_right(image, seed), image


def helped(image, label):
    def scaled(x):
        return _scaled_by(x, len(IMAGES.shape[1:]))

    return scaled(image), sum(n for n in range(3)) + label


def _scaled_by(x, factor):
    return tf.cast(x, "float32") * factor


PROGRAMS = {f.__name__: f for f in (
    flip, both_flips, crop, brighter, normalise, hot, draw, branch, sized, standard, padded,
    only_label, stateless,
)} | {"partial": functools.partial(padded, rows=14)}  # fmt: skip


def stages(dataset: Any) -> list[Any]:
    return [node for node in dataset._node.walk() if isinstance(node, MapNode)]


def bits(element: Any) -> Any:
    if isinstance(element, dict):
        return {name: bits(element[name]) for name in sorted(element)}
    if isinstance(element, tuple):
        return tuple(map(bits, element))
    if isinstance(element, tf.Tensor):
        return str(element.dtype), tuple(element.shape), element.numpy().tobytes()
    return str(type(element)), np.asarray(element.numpy()).tolist()


def run(make: Any, monkeypatch: pytest.MonkeyPatch, first: int) -> tuple[list[Any], list[Any]]:
    """The bits of two epochs, and the functions of the stages that made them."""
    with monkeypatch.context() as changed:
        changed.setattr(_mapped, "_FIRST_BY_PYTHON", first)
        changed.setattr(_mapped, "_COMPARED", 0)
        tf.random.set_seed(5)
        dataset = make()
        found = [bits(element) for _ in range(2) for element in dataset]
        return found, [stage.function for stage in stages(dataset)]


def check(make: Any, monkeypatch: pytest.MonkeyPatch, programs: int | None) -> list[Any]:
    """By Python and, as far as it goes, by programs: with equal bits."""
    expected, _ = run(make, monkeypatch, 10**9)
    made, functions = run(make, monkeypatch, 0)
    assert made == expected
    counts = [function.program_count for function in functions]
    whys = [(f.why_python, [k.why for k in f._kinds.values()]) for f in functions]
    assert programs is None or counts == [programs] * len(counts), whys
    return functions


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_makes_the_elements_of_python(name, calls, monkeypatch):
    def make() -> Any:
        data = Dataset.from_tensor_slices((IMAGES, LABELS)).shuffle(24, seed=3)
        return data.map(PROGRAMS[name], num_parallel_calls=calls)

    check(make, monkeypatch, 1)


@pytest.mark.parametrize("name", ["brighter", "crop"])
def test_decorated_function_makes_the_elements_of_the_plain_one(name, monkeypatch):
    class Owner:
        @tf.function
        def method(self, image, label):
            return PROGRAMS[name](image, label)

    def elements(function: Any) -> Any:
        def make() -> Any:
            tf.random.set_seed(4)
            return Dataset.from_tensor_slices((IMAGES, LABELS)).map(function)

        return run(make, monkeypatch, 0)[0]

    plain = elements(PROGRAMS[name])
    assert elements(tf.function(PROGRAMS[name])) == plain
    assert elements(Owner().method) == plain


def test_maps_in_a_row_and_batches(monkeypatch):
    def make() -> Any:
        data = Dataset.from_tensor_slices((IMAGES, LABELS)).map(crop).map(brighter).map(hot)
        return data.shuffle(10, seed=1).batch(5).prefetch(1)

    check(make, monkeypatch, 1)


@pytest.mark.parametrize("count", [0, 1])
def test_no_and_one_element(count, monkeypatch):
    def make() -> Any:
        return Dataset.from_tensor_slices((IMAGES[:count], LABELS[:count])).map(flip)

    check(make, monkeypatch, None)


def test_a_program_for_each_of_a_few_sizes(monkeypatch):
    parts = [IMAGES[n, : 5 + n % 3] for n in range(24)]
    spec = tf.TensorSpec((None, 7, 3), tf.uint8)

    def make() -> Any:
        data = Dataset.from_generator(lambda: iter(parts), output_signature=spec)
        return data.map(lambda x: tf.image.random_flip_left_right(x) / 3)

    check(make, monkeypatch, 3)


def test_many_sizes_are_left_to_python(monkeypatch):
    parts = [RNG.random((1 + n % 20, 3)) for n in range(60)]
    spec = tf.TensorSpec((None, 3), tf.float64)

    def make() -> Any:
        data = Dataset.from_generator(lambda: iter(parts), output_signature=spec)
        return data.map(lambda x: x * 2 + tf.random.uniform([3], dtype="float64"))

    (function,) = check(make, monkeypatch, None)
    assert function.program_count <= _mapped._MOST_PROGRAMS


# What a program may not take the place of.


def _with_list(found: list[Any]) -> Any:
    return lambda x: (found.append(1), x + 1)[1]


def _counted() -> Any:
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x + count

    return function


def _in_try(x):
    try:
        return x + 1
    except ValueError:
        return x


class _Method:
    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, x):
        self.seen += 1
        return x + self.seen

    def plain(self, x):
        return x * 2


_ONE = tf.Variable(1.0)
_RAGGED = tf.ragged.constant([[1.0], [2.0, 3.0]])
BY_PYTHON = {
    "a list": lambda: _with_list([]),
    "a count": _counted,
    "an object": _Method,
    "a method": lambda: _Method().plain,
    "a look": lambda: lambda x: x + float(x),
    "an if": lambda: lambda x: x + 1 if x > 3 else x - 1,
    "NumPy": lambda: lambda x: np.sqrt(x.numpy()),
    "NumPy's numbers": lambda: lambda x: x + 0 * np.random.rand(),
    "an array": lambda: lambda x: np.asarray(x) + 1,
    "try": lambda: _in_try,
    "print": lambda: lambda x: (print(end=""), x)[1],
    "tf.print": lambda: lambda x: (tf.print(end=""), x)[1],
    "py_function": lambda: lambda x: tf.py_function(lambda a: a + 1, [x], tf.float32),
    "numpy_function": lambda: lambda x: tf.numpy_function(np.sin, [x], tf.float32),
    "a variable": lambda: lambda x: x * _ONE,
    "ragged rows": lambda: (
        lambda x: (
            _RAGGED[tf.cast(x, "int32") % 2].to_tensor()
            if False
            else _RAGGED.row_lengths() + tf.cast(x, "int64")
        )
    ),
    "text of a number": lambda: lambda x: tf.strings.as_string(x),
    "a name of a tensor": lambda: lambda x: tf.constant(len(f"{x}")),
    "a compiled function with a signature": lambda: tf.function(
        lambda x: x * tf.random.uniform([]), input_signature=[tf.TensorSpec([])]
    ),
    "a draw in a branch": lambda: (
        lambda x: tf.cond(x > 3, lambda: x + tf.random.uniform([]), lambda: x)
    ),
    "a module passed on": lambda: lambda x: _by(tf, x),
    "an import": lambda: _importing,
    "eager": lambda: lambda x: x + float(tf.executing_eagerly()),
}


def _by(module: Any, x: Any) -> Any:
    return module.abs(x)


def _importing(x):
    import math

    return x + math.pi


@pytest.mark.parametrize("name", BY_PYTHON)
def test_what_is_left_to_python(name, monkeypatch):
    def make() -> Any:
        return Dataset.range(12, output_type="float32").map(BY_PYTHON[name]())

    expected, _ = run(make, monkeypatch, 10**9)
    made, functions = run(make, monkeypatch, 0)
    assert functions[-1].program_count == 0
    if name != "NumPy's numbers":
        assert made == expected


def test_python_code_runs_for_each_element(monkeypatch):
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 0)
    found: list[int] = []
    assert len(list(Dataset.range(20).map(_with_list(found)))) == 20
    assert len(found) == 20


def test_what_objects_hold_may_change(monkeypatch):
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 2)
    factors, config, rest = np.float32([1, 1]), SimpleNamespace(more=100), [10]
    function = lambda x: x * factors + rest[0] + config.more  # noqa: E731
    data = Dataset.range(10, output_type="float32").map(function)

    def last() -> list[float]:
        return list(data)[-1].numpy().tolist()

    assert last() == [119.0, 119.0]
    assert stages(data)[-1].function.program_count == 1
    factors[1] = 2
    assert last() == [119.0, 128.0]
    rest[0] = 20
    assert last() == [129.0, 138.0]
    config.more = 200
    assert last() == [229.0, 238.0]
    factors[0] = 3
    assert last() == [247.0, 238.0]
    assert stages(data)[-1].function.why_python is not None  # it changes all the time


def test_a_traced_element_that_differs_is_left_to_python(monkeypatch):
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 1)
    right = _mapped._Program.run
    monkeypatch.setattr(
        _mapped._Program,
        "run",
        lambda *args: right(*args) + 1,  # as of a wrong program
    )
    data = Dataset.range(10, output_type="float32").map(lambda x: x * 2)
    assert [float(x) for x in data] == [2.0 * n for n in range(10)]
    assert stages(data)[-1].function.program_count == 0


# Files.


def _folder(tmp_path: Any, sizes: list[tuple[int, int]]) -> str:
    for number, (rows, columns) in enumerate(sizes):
        image = Image.fromarray(RNG.integers(0, 256, (rows, columns, 3)).astype(np.uint8))
        kind = ("JPEG", "PNG", "BMP")[number % 3]
        image.save(tmp_path / f"{NAMES[number % 2]}_{number:02}.{kind.lower()}", kind)
    return str(tmp_path / "*")


def load(path):
    image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
    image = tf.image.resize(image, [6, 8])
    name = tf.strings.split(tf.strings.split(path, "/")[-1], "_")[0]
    label = tf.argmax(tf.cast(name == NAMES, tf.int32))
    return tf.image.random_flip_left_right(image) / 255.0, label, path


@pytest.mark.parametrize("calls", [None, 2, tf.data.AUTOTUNE])
def test_files_of_any_size_have_one_program(tmp_path, calls, monkeypatch):
    pattern = _folder(tmp_path, [(9 + n % 7, 8 + n % 5) for n in range(30)])

    def make() -> Any:
        data = Dataset.list_files(pattern, seed=2).shuffle(30, seed=4)
        return data.map(load, num_parallel_calls=calls)

    check(make, monkeypatch, 1)


def test_decoded_sizes_that_the_program_sees_have_programs_of_their_own(tmp_path, monkeypatch):
    pattern = _folder(tmp_path, [(9 + n % 2, 10) for n in range(20)])

    def make() -> Any:
        return Dataset.list_files(pattern, seed=2).map(
            lambda path: tf.image.random_crop(tf.io.decode_image(tf.io.read_file(path)), [5, 5, 3])
        )

    check(make, monkeypatch, 2)


def test_records(tmp_path, monkeypatch):
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for number in range(20):
            image = tf.io.encode_png(IMAGES[number]).numpy()
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    wanted = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        found = tf.io.parse_single_example(record, wanted)
        image = tf.image.decode_png(found["image"], channels=3)
        return tf.cast(image, tf.float32) / 255.0, found["label"]

    check(lambda: tf.data.TFRecordDataset(str(tmp_path / "a")).map(parse), monkeypatch, 1)


@pytest.mark.parametrize("calls", [None, 2])
def test_a_damaged_file_is_named_and_the_next_element_comes(tmp_path, calls, monkeypatch):
    pattern = _folder(tmp_path, [(9, 9)] * 20)
    (tmp_path / "bees_11.bmp").write_bytes(b"no image")
    (tmp_path / "ants_14.bmp").unlink()
    names = [str(tmp_path / f"{NAMES[n % 2]}_{n:02}.{('jpeg', 'png', 'bmp')[n % 3]}")
             for n in range(20)]  # fmt: skip

    def outcomes(first: int) -> list[Any]:
        monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", first)
        tf.random.set_seed(3)
        found: list[Any] = []
        iterator = iter(Dataset.from_tensor_slices(names).map(load, num_parallel_calls=calls))
        while True:
            try:
                found.append(bits(next(iterator)))
            except StopIteration:
                return found
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
                found.append((type(error).__name__, str(error)))

    assert pattern
    expected = outcomes(10**9)
    assert outcomes(2) == expected
    assert "bees_11.bmp" in expected[11][1] and "ants_14.bmp" in expected[14][1]
    assert len(expected) == 20


def test_an_iterator_goes_on_from_a_checkpoint(monkeypatch):
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 2)
    data = Dataset.from_tensor_slices((IMAGES, LABELS)).shuffle(24, seed=1).map(crop, 2).batch(2)
    iterator = iter(data)
    for _ in range(6):
        next(iterator)
    state = iterator._checkpoint_state()
    rest = [bits(batch) for batch in iterator]
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 10**9)
    other = iter(data)
    other._restore_state(state)
    assert [bits(batch) for batch in other] == rest and len(rest) == 6


def test_png_rows_of_every_filter_have_pillows_pixels():
    smooth = np.add.outer(np.arange(40), np.arange(30))[..., None] * np.uint8([1, 2, 3])
    for pixels in (IMAGES[0], smooth.astype(np.uint8), np.zeros((5, 4, 4), np.uint8)):
        for level in (0, 1, 9):
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "PNG", compress_level=level)
            np.testing.assert_array_equal(tf.io.decode_png(buffer.getvalue()), pixels)


@pytest.mark.parametrize("name", [
    "STORE_ATTR", "STORE_GLOBAL", "IMPORT_NAME", "LOAD_NAME", "SETUP_FINALLY", "PUSH_EXC_INFO",
    "BEFORE_WITH", "LOAD_SPECIAL", "SEND", "FORMAT_SIMPLE", "BUILD_STRING", "LOAD_BUILD_CLASS",
    "LOAD_SUPER_ATTR", "PRINT_EXPR", "OF_A_LATER_PYTHON",
])  # fmt: skip
def test_instructions_that_nobody_listed_are_left_to_python(name):
    assert not _purity._only_computes(SimpleNamespace(opname=name, argrepr=""))


@pytest.mark.parametrize(("what", "computes"), [
    ("INTRINSIC_LIST_TO_TUPLE", True), ("INTRINSIC_PRINT", False), ("INTRINSIC_IMPORT_STAR", False),
])  # fmt: skip
def test_calls_of_the_interpreter_itself_are_known_by_name(what, computes):
    step = SimpleNamespace(opname="CALL_INTRINSIC_1", argrepr=what)
    assert _purity._only_computes(step) == computes
