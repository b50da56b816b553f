"""Checkpoints of TensorFlow 2.21, Keras 3 and Keras 2 are read without TensorFlow."""

import json
import shutil
import tracemalloc

import crafting_bundles
import numpy as np
import pytest
import write_tensorflow_checkpoints as programs
from bundles import GRAPH_KEY, HEADER, STRING, Tensor, graph, number, part, text, write_bundle

import samegrad as tf
from samegrad.train._crc32c import crc32c
from samegrad.train._stored_tree import read_tree

FOLDER = programs.FOLDER
EXPECTED = np.load(FOLDER / "expected.npz")
CONTENTS = json.loads((FOLDER / "expected.json").read_text())
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# Keras 2 before 2.11 adds RMSprop's epsilon in another place.
TOLERANCE = {"keras2-slots-rmsprop": 1e-3}


def program(name):
    """Return model and built optimizer of a recorded program, and the path of its checkpoint."""
    make, inputs, optimizer_name, options = programs.MODELS[name]
    model = make(tf.keras)
    optimizer = getattr(tf.keras.optimizers, optimizer_name)(**options)
    saved = name if "weights" in name else f"{name}-1"
    return model, optimizer, inputs, FOLDER / saved


def restored(name, built=True):
    model, optimizer, inputs, path = program(name)
    if built:
        optimizer.build(model.trainable_variables)
    if "weights" in name:
        model.compile(optimizer, "mse")
        return model, optimizer, inputs, model.load_weights(path)
    step = tf.Variable(0, dtype="int64")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    status = checkpoint.restore(path)
    assert int(step) == 2 and int(checkpoint.save_counter) == 1
    return model, optimizer, inputs, status


@pytest.mark.parametrize("name", programs.MODELS)
def test_models_and_optimizers_continue_as_in_tensorflow(name):
    model, optimizer, inputs, status = restored(name)
    assert status.assert_existing_objects_matched() is status
    assert status.assert_consumed() is status and status.expect_partial() is status
    np.testing.assert_array_equal(programs.flat(model.weights), EXPECTED[f"{name}:weights"])
    slots = [v for v in optimizer.variables if v.shape != ()]
    np.testing.assert_array_equal(programs.flat(slots), EXPECTED[f"{name}:slots"])
    assert int(optimizer.iterations) == 2
    np.testing.assert_allclose(model(inputs), EXPECTED[f"{name}:output"], 1e-5, 1e-6)
    programs.step(tf, model, optimizer, inputs)
    rtol = TOLERANCE.get(name, 1e-5)
    after = programs.flat(model.trainable_variables)
    np.testing.assert_allclose(after, EXPECTED[f"{name}:next"], rtol, 1e-5)


# The layers in a list of keras3-rmsprop are stored by the optimizer alone.
@pytest.mark.parametrize("name", sorted(programs.MODELS.keys() - {"keras3-rmsprop"}))
def test_slots_wait_for_an_optimizer_that_is_built_later(name):
    model, optimizer, _, status = restored(name, built=False)
    with pytest.raises(AssertionError, match=r"must have an object: none for 'optimizer|SLOT"):
        status.assert_consumed()
    optimizer.build(model.trainable_variables)
    slots = [v for v in optimizer.variables if v.shape != ()]
    np.testing.assert_array_equal(programs.flat(slots), EXPECTED[f"{name}:slots"])
    status.assert_consumed()


def test_weights_wait_for_a_model_that_is_built_later():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Dense(3), layers.Activation("tanh"), layers.BatchNormalization(), layers.Dense(2)]
    )
    status = tf.train.Checkpoint(model=model).restore(FOLDER / "keras2-adam-1")
    model(programs.FEATURES)
    np.testing.assert_array_equal(programs.flat(model.weights), EXPECTED["keras2-adam:weights"])
    status.assert_existing_objects_matched()


def test_weights_of_an_exported_model_are_loaded(tmp_path):
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"a graph")
    for path in FOLDER.glob("keras3-export.*"):
        shutil.copy(path, tmp_path / "variables" / f"variables{path.suffix}")
    model = programs.functional(tf.keras)
    model.load_weights(tmp_path)
    expected = EXPECTED["keras3-export:output"]
    np.testing.assert_allclose(model(programs.FEATURES), expected, 1e-5)


def test_a_model_is_restored_under_a_strategy():
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        model, _, _, status = restored("keras3-adam")
    status.assert_consumed()
    np.testing.assert_array_equal(programs.flat(model.weights), EXPECTED["keras3-adam:weights"])


def test_an_optimizer_of_other_variables_does_not_move_weights():
    model, optimizer, _, path = program("keras3-momentum")
    optimizer.build(model.trainable_variables[::-1])
    status = tf.train.Checkpoint(model=model, optimizer=optimizer)
    with pytest.raises(ValueError, match="shapes and dtypes must match: 'optimizer/_variables/2'"):
        status.restore(path)
    del optimizer.momentums[:], optimizer._variables[2:]  # whose slots do not fit
    tf.train.Checkpoint(optimizer=optimizer, model=model).restore(path)
    weights = programs.flat(model.weights)
    np.testing.assert_array_equal(weights, EXPECTED["keras3-momentum:weights"])


def test_a_setting_that_differs_is_left_over():
    model, _, _, path = program("keras2-slots")
    optimizer = tf.keras.optimizers.Adam(0.1, beta_1=0.5)
    optimizer.build(model.trainable_variables)
    step = tf.Variable(0, dtype="int64")
    status = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step).restore(path)
    with pytest.raises(AssertionError, match=r"none for 'optimizer/beta_1'\. "):
        status.assert_consumed()


def test_slots_of_another_optimizer_are_left_over():
    model, _, _, path = program("keras2-slots")
    optimizer = tf.keras.optimizers.SGD(0.1)
    status = tf.train.Checkpoint(model=model, optimizer=optimizer).restore(path)
    with pytest.raises(AssertionError, match="OPTIMIZER_SLOT/optimizer/m"):
        status.assert_consumed()
    assert status.expect_partial() is status


def test_another_shape_changes_nothing():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(5)])
    before = programs.flat(model.weights)
    with pytest.raises(ValueError, match=r"shapes and dtypes must match: .*layer_with_weights-0"):
        tf.train.Checkpoint(model=model).restore(FOLDER / "keras2-adam-1")
    np.testing.assert_array_equal(programs.flat(model.weights), before)


def test_weights_of_other_models_are_refused():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(5)])
    with pytest.raises(AssertionError, match="must fit an object by its name"):
        model.load_weights(FOLDER / "module")


@pytest.mark.parametrize("name", ["module", "sharded"])
def test_variables_of_every_dtype_are_restored(name):
    expected = programs.module(tf)
    programs.fill(expected.variables, tf)
    found = programs.module(tf)
    status = tf.train.Checkpoint(found).read(FOLDER / name)
    for one, other in zip(found.variables, expected.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    status.assert_existing_objects_matched()
    if name == "sharded":
        status.assert_consumed()
    else:
        with pytest.raises(AssertionError, match=r"none for 'pair', 'words'|'words', 'pair'"):
            status.assert_consumed()


@pytest.mark.parametrize("name", CONTENTS)
def test_readers_see_what_tensorflows_see(name):
    path = FOLDER / name
    shapes = sorted((key, shape) for key, (_, shape) in CONTENTS[name].items())
    assert tf.train.list_variables(path) == shapes
    reader = tf.train.load_checkpoint(path)
    names = {key: dtype.name for key, dtype in reader.get_variable_to_dtype_map().items()}
    assert names == {key: dtype for key, (dtype, _) in CONTENTS[name].items()}
    for stored in [key for key in EXPECTED.files if key.startswith(f"{name}:")]:
        key = stored.partition(":")[2]
        if key in names:
            np.testing.assert_array_equal(reader.get_tensor(key), EXPECTED[stored])


def test_strings_are_read():
    words = tf.train.load_variable(FOLDER / "module", "words")
    assert words.tolist() == [b"", b"two", b"drei" * 40]
    assert tf.train.load_variable(FOLDER / "names", "words").tolist() == [b"a", b"bc"]


def test_keys_are_found_with_and_without_their_ending():
    reader = tf.train.load_checkpoint(FOLDER / "module")
    assert reader.has_tensor("weight") and reader.has_tensor(f"weight{SUFFIX}")
    np.testing.assert_array_equal(reader.get_tensor("weight"), reader.get_tensor("weight" + SUFFIX))
    with pytest.raises(ValueError, match="got 'wieght'; did you mean"):
        reader.get_tensor("wieght")


def test_a_partitioned_variable_is_one_array():
    split = tf.train.load_variable(FOLDER / "names", "split")
    expected = np.ones((7, 100), np.float32)
    expected[3:5], expected[5:] = 2, 3
    np.testing.assert_array_equal(split, expected)


def test_variables_of_version_1_are_matched_by_name():
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3, name="dense")])
    step = tf.Variable(0, dtype="int64", name="global_step")
    status = tf.train.Checkpoint(model=model, step=step).restore(FOLDER / "names")
    kernel, bias = model.get_weights()
    np.testing.assert_array_equal(kernel, np.arange(12).reshape(4, 3))
    np.testing.assert_array_equal(bias, [1, 2, 3])
    assert int(step) == 7
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="none for 'dense/kernel/Adam', 'flags'"):
        status.assert_consumed()


def test_a_variable_without_a_name_in_version_1_is_reported():
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0, name="other"))
    status = checkpoint.restore(FOLDER / "names")
    with pytest.raises(AssertionError, match="none for 'v'"):
        status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="must fit an object by its name"):
        status.assert_nontrivial_match()


@pytest.mark.parametrize("ending", ["", ".index", ".data-00000-of-00001"])
def test_a_checkpoint_is_given_by_its_prefix_or_a_file(ending):
    assert tf.train.load_variable(f"{FOLDER / 'module'}{ending}", "count").dtype == np.int64


def test_the_latest_of_tensorflows_folder_is_found(tmp_path):
    for path in FOLDER.glob("keras[23]-adam-1.*"):
        shutil.copy(path, tmp_path)
    state = b'model_checkpoint_path: "/elsewhere/keras3-adam-1"\nall_model_checkpoint_paths: "b"\n'
    (tmp_path / "checkpoint").write_bytes(state)
    latest = tf.train.latest_checkpoint(tmp_path)
    assert latest == str(tmp_path / "keras3-adam-1")
    assert tf.train.load_variable(tmp_path, "step") == 2
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "gone"\n')
    assert tf.train.latest_checkpoint(tmp_path) is None
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: ".."\n')
    with pytest.raises(tf.train.CorruptCheckpointError, match="name the latest checkpoint"):
        tf.train.latest_checkpoint(tmp_path)


def test_a_folder_of_one_checkpoint_is_that_checkpoint(tmp_path):
    for path in FOLDER.glob("module.*"):
        shutil.copy(path, tmp_path)
    assert tf.train.load_variable(tmp_path, "weight").shape == (3, 4)


def test_samegrad_does_not_save_into_tensorflows_folder(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "ckpt-1"\n')
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(tf.train.CorruptCheckpointError, match="samegrad's own"):
        checkpoint.save(tmp_path / "ckpt")


def test_checkpoints_of_tensorflow_have_a_fingerprint():
    found = tf.fingerprint(FOLDER / "module")
    assert found == tf.fingerprint(FOLDER / "module") != tf.fingerprint(FOLDER / "keras3-adam-1")
    assert tf.fingerprint_info(FOLDER / "module").samegrad is None


def test_the_random_state_is_not_touched():
    tf.random.set_seed(3)
    expected = tf.random.normal([4]).numpy()
    tf.random.set_seed(3)
    restored("keras3-adam")
    np.testing.assert_array_equal(tf.random.normal([4]).numpy(), expected)


def _bit_by_bit(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def _crc_of(content):
    table, crc = [_bit_by_bit(byte) for byte in range(256)], 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 255, 1024, 1025, 65_537, 1 << 20, (2 << 20) + 300])
def test_checksums_are_those_of_the_definition(size):
    content = np.random.default_rng(size).bytes(size)
    assert crc32c(content) == _crc_of(content)


# Faults of files, by what is written instead of a good bundle.
def _damaged(prefix, **changes):
    tensor = Tensor((4,), np.arange(4, dtype=np.float32).tobytes())._replace(**changes)
    write_bundle(prefix, {b"w": tensor, b"x": Tensor((), bytes(4))})


FAULTS = {
    "a shape beyond memory": (lambda p: _damaged(p, shape=(1 << 40, 1 << 40)), "w"),
    "a shape without elements": (lambda p: _damaged(p, shape=(0, 1 << 61), size=0), "w"),
    "a negative size": (lambda p: _damaged(p, size=-1), "negative position"),
    "a size beyond the file": (lambda p: _damaged(p, size=1 << 40), "bytes of its own"),
    "bytes of another tensor": (lambda p: _damaged(p, offset=8), "bytes of its own"),
    "another data file": (lambda p: _damaged(p, shard=7), "one of 1 data files"),
    "another checksum": (lambda p: _damaged(p, checksum=1), "another checksum"),
    "more axes than arrays have": (lambda p: _damaged(p, shape=(1,) * 33), "has the shape"),
    "an infinite slice": (lambda p: _damaged(p, more=part(7, part(1, number(1, 1)))), "slice"),
    "more strings than bytes": (lambda p: _damaged(p, dtype=STRING, shape=(1 << 40,)), "strings"),
    "compressed blocks": (lambda p: write_bundle(p, {}, compression=1), "compressed by Snappy"),
    "big-endian numbers": (lambda p: write_bundle(p, {}, b"\x10\1" + HEADER), "big-endian"),
    "a later version": (lambda p: write_bundle(p, {}, b"\x1a\4\x08\x09\x10\2"), "version"),
    "no header": (lambda p: write_bundle(p, {}, b""), "version"),
    "a graph without objects": (lambda p: _write_graph(p, graph()), "0 objects"),
    "an object that is not there": (
        lambda p: _write_graph(p, graph({"children": {"a": 1 << 40}})), "1 objects"
    ),
    "a variable that is not there": (lambda p: _write_graph(p, graph({"key": "gone"})), "gone"),
}  # fmt: skip


def _write_graph(prefix, content, **tensors):
    named = {name.encode() + SUFFIX.encode(): tensor for name, tensor in tensors.items()}
    write_bundle(prefix, {GRAPH_KEY: text(content), **named})


def _read_everything(prefix):
    reader = tf.train.load_checkpoint(prefix)
    for key in reader.get_variable_to_shape_map():
        reader.get_tensor(key)
    tf.train.Checkpoint(w=tf.Variable(1.0, name="other")).read(prefix)


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_files_are_named(tmp_path, fault):
    write, words = FAULTS[fault]
    write(tmp_path / "ckpt")
    with pytest.raises(tf.train.CorruptCheckpointError, match=words):
        _read_everything(tmp_path / "ckpt")


def test_the_writer_of_damaged_files_can_write_whole_ones(tmp_path):
    _damaged(tmp_path / "ckpt")
    np.testing.assert_array_equal(tf.train.load_variable(tmp_path / "ckpt", "w"), np.arange(4))
    nodes = {"children": {"w": 1, "self": 0}}, {"key": "w" + SUFFIX, "children": {"up": 0}}
    _write_graph(tmp_path / "graph", graph(*nodes), w=Tensor((), np.float32(3).tobytes()))
    w = tf.Variable(1.0)
    tf.train.Checkpoint(w=w).read(tmp_path / "graph").assert_consumed()
    assert float(w) == 3.0


def test_cyclic_graphs_end(tmp_path):
    names = {f"n{i}": (i * 7 + 1) % 300 for i in range(300)}
    nodes = [{"children": names}] * 299 + [{"key": "w" + SUFFIX}]
    _write_graph(tmp_path / "ckpt", graph(*nodes), w=Tensor((), bytes(4)))
    checkpoint = tf.train.Checkpoint(n1=tf.train.Checkpoint(n2=tf.Variable(1.0)))
    status = checkpoint.read(tmp_path / "ckpt")
    with pytest.raises(AssertionError, match="none for 'n1/n2'"):
        status.assert_existing_objects_matched()
    assert tf.fingerprint(tmp_path / "ckpt").startswith("sg1-")


def test_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    _damaged(outside / "ckpt")
    inside = tmp_path / "inside"
    inside.mkdir()
    for path in outside.iterdir():
        (inside / path.name).symlink_to(path)
    with pytest.raises(tf.train.CorruptCheckpointError, match="symbolic link"):
        tf.train.load_checkpoint(inside / "ckpt")
    (inside / "ckpt.index").unlink()
    shutil.copy(outside / "ckpt.index", inside)
    with pytest.raises(tf.train.CorruptCheckpointError, match="symbolic link"):
        tf.train.load_checkpoint(inside / "ckpt")


def test_a_missing_data_file_is_named(tmp_path):
    _damaged(tmp_path / "ckpt")
    (tmp_path / "ckpt.data-00000-of-00001").unlink()
    with pytest.raises(tf.train.CorruptCheckpointError, match="data-00000-of-00001 must exist"):
        tf.train.load_checkpoint(tmp_path / "ckpt")


def test_changed_checkpoints_are_refused_or_read():
    outcomes = crafting_bundles.run(300, seed=43)
    assert sum(outcomes.values()) == 300 and len(outcomes) > 6


def test_memory_is_at_most_twice_the_file(tmp_path):
    values = np.arange(1 << 22, dtype=np.float32)
    tensors = {b"a": Tensor((values.size,), values.tobytes())}
    write_bundle(tmp_path / "ckpt", tensors)
    size = values.nbytes
    tracemalloc.start()
    tree = read_tree(tmp_path / "ckpt")[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(tree.children["a"].value, values)
    assert peak < 2 * size
