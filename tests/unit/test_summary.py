"""tf.summary and the TensorBoard callback: their files hold what was written, under its name."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

pytest.importorskip("tensorboardX", reason="the extra samegrad[tensorboard] is not installed")
keras = tf.keras


def _events(folder: Path) -> list[Any]:
    """The events of all files: a record is a length of 8 bytes, a checksum, content, a checksum."""
    from tensorboardX.crc32c import crc32c
    from tensorboardX.proto import event_pb2

    def masked(content: bytes) -> int:  # TensorFlow's form of checksums
        crc = crc32c(content)
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        content, place = path.read_bytes(), 0
        while place < len(content):
            size = int.from_bytes(content[place : place + 8], "little")
            record = content[place + 12 : place + 12 + size]
            check = content[place + 12 + size : place + 16 + size]
            assert int.from_bytes(check, "little") == masked(record)
            found.append(event_pb2.Event.FromString(record))
            place += 16 + size
    return found


def _values(folder: Path) -> list[tuple[str, str, int, Any]]:
    """(tag, plugin, step, value) of all summaries."""
    found = []
    for event in _events(folder):
        for value in event.summary.value:
            tensor, dims = value.tensor, [d.size for d in value.tensor.tensor_shape.dim]
            if tensor.string_val:
                content: Any = list(tensor.string_val)
            else:
                kind = {1: "float32", 2: "float64", 9: "int64"}[tensor.dtype]
                content = np.frombuffer(tensor.tensor_content, kind).reshape(dims)
            plugin = value.metadata.plugin_data.plugin_name
            found.append((value.tag, plugin, event.step, content))
    return found


def _png(content: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(content)))


def test_a_custom_loop_writes_numbers_of_its_steps(tmp_path: Path) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in range(3):
            assert tf.summary.scalar("loss", tf.constant(0.5 * step), step=step)
    values = _values(tmp_path)
    assert [(t, p, s) for t, p, s, _ in values] == [("loss", "scalars", n) for n in range(3)]
    assert [float(v) for *_, v in values] == [0.0, 0.5, 1.0]
    assert _events(tmp_path)[0].file_version == "brain.Event:2"
    assert not tf.summary.scalar("loss", 1.0, step=9)  # no writer any more


def test_the_step_is_that_of_the_context_the_variable_or_the_call(tmp_path: Path) -> None:
    step = tf.Variable(7)
    with tf.summary.create_file_writer(tmp_path).as_default(step=5):
        tf.summary.scalar("a", 1)
        tf.summary.scalar("a", 1, step=6)
        tf.summary.experimental.set_step(step)
        tf.summary.scalar("a", 1)
        step.assign_add(1)
        tf.summary.scalar("a", 1)
    assert [s for _, _, s, _ in _values(tmp_path)] == [5, 6, 7, 8]
    assert tf.summary.experimental.get_step() is None
    with (
        tf.summary.create_file_writer(tmp_path).as_default(),
        pytest.raises(ValueError, match=r"\[tf.summary\] a summary is of a step: got none"),
    ):
        tf.summary.scalar("a", 1)


def test_a_histogram_counts_every_finite_number_once(tmp_path: Path) -> None:
    draws = np.random.default_rng(0).normal(size=(100, 1000))
    with tf.summary.create_file_writer(tmp_path).as_default(step=0):
        tf.summary.histogram("many", draws)
        tf.summary.histogram("few", [1.0, 2.0, np.nan, np.inf], buckets=2)
        tf.summary.histogram("one", [3.0, 3.0])
        tf.summary.histogram("none", np.zeros((0, 4)))
    many, few, one, none = (value for *_, value in _values(tmp_path))
    assert many.shape == (30, 3)
    assert many[:, 2].sum() == draws.size
    assert many[0, 0] == draws.min()
    assert many[-1, 1] == draws.max()
    counts, _ = np.histogram(draws, 30)
    assert many[:, 2].tolist() == counts.tolist()
    assert few.tolist() == [[1.0, 1.5, 1.0], [1.5, 2.0, 1.0]]
    assert one.tolist() == [[2.5, 3.5, 2.0]]
    assert none.shape == (0, 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_are_the_pixels_that_were_given(channels: int, tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 4, 6, channels)).astype(np.uint8)
    with tf.summary.create_file_writer(tmp_path).as_default(step=0):
        tf.summary.image("bytes", pixels, max_outputs=2)
        tf.summary.image("floats", pixels / 255.0, max_outputs=9)
    (_, plugin, _, whole), (*_, floats) = _values(tmp_path)
    assert plugin == "images"
    assert whole[:2] == [b"6", b"4"]
    assert len(whole) == 2 + 2
    assert len(floats) == 2 + 5
    for content, expected in zip([*whole[2:], *floats[2:]], [*pixels[:2], *pixels], strict=True):
        assert _png(content).reshape(expected.shape).tolist() == expected.tolist()


def test_text_and_what_is_given_as_it_is(tmp_path: Path) -> None:
    from tensorboardX.proto import summary_pb2

    metadata = summary_pb2.SummaryMetadata()
    metadata.plugin_data.plugin_name = "mine"
    with tf.summary.create_file_writer(tmp_path).as_default(step=0):
        tf.summary.text("note", "**begun** ä")
        tf.summary.text("table", [["a", "b"], ["c", "d"]])
        tf.summary.write("raw", np.arange(3), metadata=metadata)
    note, table, raw = _values(tmp_path)
    assert note[:2] == ("note", "text")
    assert note[3] == ["**begun** ä".encode()]
    assert table[3] == [b"a", b"b", b"c", b"d"]
    assert raw[1] == "mine"
    assert raw[3].tolist() == [0, 1, 2]


def test_nothing_is_written_where_it_is_not_to_be_recorded(tmp_path: Path) -> None:
    step = tf.Variable(0)
    with (
        tf.summary.create_file_writer(tmp_path).as_default(step=step),
        tf.summary.record_if(lambda: int(step) % 2 == 0),
    ):
        for number in range(5):
            step.assign(number)
            assert tf.summary.scalar("a", 1.0) == (number % 2 == 0)
    assert [s for _, _, s, _ in _values(tmp_path)] == [0, 2, 4]
    with tf.summary.create_noop_writer().as_default(step=0):
        tf.summary.scalar("a", 1.0)
    assert len(list(tmp_path.iterdir())) == 1


def test_writers_of_one_folder_and_second_do_not_overwrite_each_other(tmp_path: Path) -> None:
    for number in range(3):
        writer = tf.summary.create_file_writer(tmp_path)
        with writer.as_default():
            tf.summary.scalar("a", number, step=number)
        writer.close()
        writer.close()
        with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
            tf.summary.scalar("a", number, step=number)
    assert sorted(s for _, _, s, _ in _values(tmp_path)) == [0, 1, 2]


def _step_with_summaries(x: Any, step: Any) -> Any:
    tf.summary.scalar("loss", x[0, 0, 0, 0] + 1.0, step=step)
    tf.summary.histogram("h", x, step=step)
    tf.summary.image("i", x, step=step)
    tf.summary.text("t", "begun", step=step)
    tf.summary.write("w", x[0, 0, 0], step=step)
    return x + 1.0


def test_a_function_writes_summaries_at_each_call(tmp_path: Path) -> None:
    function, x = tf.function(_step_with_summaries), tf.zeros([1, 1, 1, 3])
    writer = tf.summary.create_file_writer(tmp_path)

    @tf.function
    def within(step: Any) -> None:
        with writer.as_default(step=step), tf.summary.record_if(step > 2):
            tf.summary.scalar("within", 5.0)

    with writer.as_default():
        for step in range(2):
            y = function(x + float(step), tf.constant(step, "int64"))
            np.testing.assert_array_equal(y, x + float(step) + 1.0)
    for step in range(2, 5):
        within(tf.constant(step))
    found = [(tag, step) for tag, _, step, _ in _values(tmp_path)]
    tags = ["loss", "h", "i", "t", "w"]
    of_function = [(tag, step) for step in range(2) for tag in tags]
    assert sorted(found) == sorted([*of_function, ("within", 3), ("within", 4)])
    losses = [value for tag, _, _, value in _values(tmp_path) if tag == "loss"]
    assert [float(loss) for loss in losses] == [1.0, 2.0]


def test_a_step_writes_summaries_of_one_replica_only(tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        tf.summary.scalar("loss", x, step=1)
        return x

    x = tf.constant(1.0)
    tf.distribute.MirroredStrategy(replicas=2).run(step, args=(x,))  # no writer: nothing to write
    with tf.summary.create_file_writer(tmp_path).as_default():
        tf.distribute.MirroredStrategy(replicas=1).run(step, args=(x,))
        with pytest.raises(RuntimeError, match=r"\[tf.summary\] .* several replicas; return"):
            tf.distribute.MirroredStrategy(replicas=2).run(lambda x: step(x), args=(x,))
    assert [tag for tag, _, _, _ in _values(tmp_path)] == ["loss"]


def test_wrong_data_of_summaries_are_named(tmp_path: Path) -> None:
    with tf.summary.create_file_writer(tmp_path).as_default(step=0):
        with pytest.raises(ValueError, match=r"one number: got \(2,\)"):
            tf.summary.scalar("a", [1.0, 2.0])
        with pytest.raises(ValueError, match=r"got \(2, 2\)"):
            tf.summary.image("a", np.zeros((2, 2)))
        with pytest.raises(TypeError, match="must be strings: got 3"):
            tf.summary.text("a", 3)
        with pytest.raises(ValueError, match="at least 1: got 0"):
            tf.summary.histogram("a", [1.0], buckets=0)
    assert _values(tmp_path) == []


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"pip install 'samegrad\[tensorboard\]'"):
        tf.summary.create_file_writer(tmp_path)
    with pytest.raises(ImportError, match=r"pip install 'samegrad\[tensorboard\]'"):
        _fit(keras.callbacks.TensorBoard(tmp_path))


# The callback.


def _fit(callback: Any, replicas: int = 1) -> tuple[Any, Any]:
    x = np.random.default_rng(2).normal(size=(10, 6, 6, 1)).astype(np.float32)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = keras.Sequential(
            [
                keras.layers.Input((6, 6, 1)),
                keras.layers.Conv2D(2, 3, name="conv"),
                keras.layers.Flatten(),
                keras.layers.Dense(1, name="dense"),
            ]
        )
        model.compile(keras.optimizers.SGD(0.0078125), "mse", metrics=["mae"])
    data = x, x.sum(axis=(1, 2))
    options = {"batch_size": 4, "epochs": 2, "verbose": 0, "callbacks": [callback]}
    return model, model.fit(*data, validation_data=data, **options)


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_callback_writes_the_history(replicas: int, tmp_path: Path) -> None:
    callback = keras.callbacks.TensorBoard(tmp_path, update_freq=3, write_steps_per_second=True)
    _, history = _fit(callback, replicas)
    train = [v for v in _values(tmp_path / "train") if v[0] != "keras"]
    found = {(tag, step): float(value) for tag, _, step, value in train}
    assert np.isfinite([*found.values()]).all()
    validation = {(t, s): float(v) for t, _, s, v in _values(tmp_path / "validation")}
    for epoch in range(2):
        for name in ("loss", "mae"):
            value = history.history[name][epoch]
            assert found.pop((f"epoch_{name}", epoch)) == np.float32(value)
            value = np.float32(history.history[f"val_{name}"][epoch])
            assert validation.pop((f"epoch_{name}", epoch)) == value
            step = 3 * (epoch + 1)  # the optimizer's
            assert validation.pop((f"evaluation_{name}_vs_iterations", step)) == value
        assert found.pop(("epoch_learning_rate", epoch)) == 0.0078125
        assert found.pop(("epoch_steps_per_second", epoch)) > 0
    assert not validation
    tags = ("batch_loss", "batch_mae", "batch_steps_per_second")
    assert set(found) == {(tag, step) for tag in tags for step in (3, 6)}
    assert found["batch_loss", 6] == np.float32(history.history["loss"][1])


def test_the_callback_writes_weights_and_the_model(tmp_path: Path) -> None:
    model, _ = _fit(keras.callbacks.TensorBoard(tmp_path, histogram_freq=1, write_images=True))
    values = _values(tmp_path / "train")
    last = {tag: value for tag, _, step, value in values if step == 1}
    for weight in model.weights:
        rows = last[f"{weight.path}/histogram"]
        array = np.asarray(weight)
        assert rows[:, 2].sum() == array.size
        if array.size > 1:
            assert (rows[0, 0], rows[-1, 1]) == (array.min(), array.max())
    kernel = last["sequential/dense/kernel/image".replace("sequential", model.name)]
    assert kernel[:2] == [b"1", b"32"]  # a column: width and height
    (_, plugin, _, config), *_ = (v for v in values if v[0] == "keras")
    assert plugin == "graph_keras_model"
    assert keras.models.model_from_json(config[0].decode()).count_params() == model.count_params()


def test_embeddings_are_named_and_stored_and_profiles_refused(tmp_path: Path) -> None:
    model = keras.Sequential(
        [
            keras.layers.Input((3,)),
            keras.layers.Embedding(5, 2, name="words"),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    callback = keras.callbacks.TensorBoard(
        tmp_path, embeddings_freq=1, embeddings_metadata={"words": "words.tsv"}
    )
    model.fit(np.ones((4, 3)), np.ones((4, 3, 1)), verbose=0, callbacks=[callback])
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'metadata_path: "words.tsv"' in text
    assert (tmp_path / "train" / "keras_embedding.ckpt-0.weights.h5").exists()
    other = keras.callbacks.TensorBoard(
        tmp_path, embeddings_freq=1, embeddings_metadata={"none": "words.tsv"}
    )
    with pytest.raises(ValueError, match="Unrecognized `Embedding` layer names"):
        model.fit(np.ones((4, 3)), np.ones((4, 3, 1)), verbose=0, callbacks=[other])
    with pytest.raises(ValueError, match="Profiling is not yet available with the samegrad"):
        keras.callbacks.TensorBoard(tmp_path, profile_batch=2)


def test_traces_warn_that_nothing_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"trace_on must be called before it"):
        tf.summary.trace_export("step", step=0)
    with pytest.warns(UserWarning, match=r"^\[tf.summary.trace_on\] graphs and profiles are not"):
        tf.summary.trace_on(graph=True, profiler=True)
    with pytest.raises(ValueError, match=r"a summary is of a step: got none"):
        tf.summary.trace_export("step")
    tf.summary.trace_export("step", step=0, profiler_outdir=str(tmp_path))
    assert not list(tmp_path.iterdir())
