"""Checkpoints of TensorFlow 2.21, Keras 3 and Keras 2 are read without TensorFlow."""

import json
import shutil

import numpy as np
import pytest
import write_tensorflow_checkpoints as programs

import samegrad as tf
from samegrad.train._crc32c import crc32c

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


def test_a_model_is_restored_under_a_strategy():
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        model, _, _, status = restored("keras3-adam")
    status.assert_consumed()
    np.testing.assert_array_equal(programs.flat(model.weights), EXPECTED["keras3-adam:weights"])


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
    with pytest.raises(AssertionError, match="step"):
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
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3, name="dense")])
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
    assert tf.random.get_global_generator is not None
    np.testing.assert_array_equal(tf.random.normal([4]).numpy(), expected)


def _crc_of(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 255, 1024, 1025, 65_537])
def test_checksums_are_those_of_the_definition(size):
    content = np.random.default_rng(size).bytes(size)
    assert crc32c(content) == _crc_of(content)


def test_checksums_of_several_blocks_are_those_of_their_parts():
    assert crc32c(b"123456789") == 0xE3069283
    ahead = bytes(range(256)) * 12_289  # 3 MiB and 256 bytes
    assert crc32c(ahead) == 0x0
