"""Programs that TensorFlow's users know the answers of, beside the answers recorded of it."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import decided
import manners_of_checkpoints  # noqa: F401
import manners_of_errors  # noqa: F401
import manners_of_functions  # noqa: F401
import manners_of_generators  # noqa: F401
import manners_of_keras  # noqa: F401
import manners_of_lengths  # noqa: F401
import manners_of_loops  # noqa: F401
import manners_of_losses  # noqa: F401
import manners_of_nn  # noqa: F401
import manners_of_numpy  # noqa: F401
import manners_of_records  # noqa: F401
import manners_of_shapes  # noqa: F401
import manners_of_sparse  # noqa: F401
import manners_of_strategies  # noqa: F401
import manners_of_tables  # noqa: F401
import manners_of_tapes  # noqa: F401
import manners_of_tensors  # noqa: F401
import manners_of_test_files  # noqa: F401
import manners_of_text  # noqa: F401
import manners_of_variables  # noqa: F401
import manners_of_version_1  # noqa: F401
import numpy as np
import pytest
from manner_programs import PROGRAMS, answer

import samegrad as tf

RECORDED = json.loads(Path(__file__).with_name("tensorflow_manners.json").read_text("utf-8"))


def same(found: Any, expected: Any) -> bool:
    """Equal results, or an error that is caught as TensorFlow's is."""
    if isinstance(expected, dict) and "error" in expected and isinstance(found, dict):
        return expected["error"][0] in found.get("error", [])
    return found == expected


def answered(name: str) -> Any:
    return json.loads(json.dumps(answer(tf, PROGRAMS[name])))


def called(function: Any, calls: list[tuple[Any, ...]]) -> None:
    for args in calls:
        function(*args)


def test_every_program_is_recorded():
    assert sorted(RECORDED) == sorted(PROGRAMS)
    assert set(decided.OURS) <= set(PROGRAMS) and set(decided.LACKING) <= set(PROGRAMS)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - set(decided.OURS) - set(decided.LACKING)))
def test_the_answer_is_that_of_tensorflow(name):
    assert same(answered(name), RECORDED[name])


@pytest.mark.parametrize("name", sorted(decided.OURS))
def test_decided_differences_are_as_decided(name):
    assert answered(name) == decided.OURS[name] != RECORDED[name]


@pytest.mark.parametrize("name", sorted(decided.LACKING))
def test_what_is_lacking_is_refused_and_not_answered_wrongly(name):
    with pytest.raises((AttributeError, TypeError, ValueError)) as error:
        PROGRAMS[name](tf)
    assert decided.LACKING[name] in str(error.value)


def test_numbers_of_python_that_make_many_traces_are_named_once():
    scale = tf.function(lambda x, factor: x * factor)
    with pytest.warns(UserWarning, match=r"another number of Python 8 times as argument 1.*tensor"):
        called(scale, [(tf.constant(1.0), float(i)) for i in range(8)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(300):
            scale(tf.constant(1.0), 100.0 + i)
    assert scale.experimental_get_tracing_count() == 308
    assert len(scale._programs) <= 256  # they do not pile up
    assert float(scale(tf.constant(1.0), 0.0)) == 0.0


def test_tensors_make_one_trace_and_no_warning():
    scale = tf.function(lambda x, factor: x * factor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(50):
            scale(tf.constant(1.0), tf.constant(float(i)))
    assert scale.experimental_get_tracing_count() == 1


def test_shapes_that_make_many_traces_are_named():
    double = tf.function(lambda x: x * 2.0)
    with pytest.warns(UserWarning, match=r"another shape 32 times as argument 0"):
        called(double, [(tf.ones([n]),) for n in range(1, 33)])


def test_a_signature_has_one_trace_for_any_rows_and_their_gradients():
    count = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def step(x: Any) -> Any:
        count.append(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x)
        return tape.gradient(y, x)

    for n in (0, 1, 7, 1000):
        x = np.arange(3.0 * n, dtype="float32").reshape(n, 3)
        np.testing.assert_array_equal(step(x).numpy(), 2 * x)
    assert len(count) == 1


def test_a_signature_inside_run_takes_each_replicas_part():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def total(x: Any) -> Any:
        return tf.reduce_sum(x)

    data = tf.data.Dataset.from_tensor_slices(np.float32([1, 2, 4])).batch(3)
    (batch,) = strategy.experimental_distribute_dataset(data)
    parts = strategy.experimental_local_results(strategy.run(total, (batch,)))
    assert [float(part) for part in parts] == [3.0, 4.0]


def test_a_signature_with_a_plain_tensor_gives_each_replica_all_of_it():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, (x,)), axis=None)

    spec = tf.TensorSpec([None], tf.float32)
    x = tf.constant([1.0, 2.0, 4.0])
    plain, signed = tf.function(step)(x), tf.function(step, input_signature=[spec])(x)
    assert float(plain) == float(signed) == 14.0


def test_a_wrong_signature_says_what_it_is():
    with pytest.raises(TypeError, match=r"^\[function\] input_signature has a TensorSpec"):
        tf.function(lambda x: x, input_signature=[3])
    with pytest.raises(TypeError, match=r"^\[function\] input_signature must be a list"):
        tf.function(lambda x: x, input_signature=tf.TensorSpec([]))
    with pytest.raises(TypeError, match=r"got 2 for 1; leave the others out"):
        tf.function(lambda x: x, input_signature=[tf.TensorSpec([]), tf.TensorSpec([])])
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None, 2])])
    with pytest.raises(TypeError, match=r"must have its signature.*got shape \(2, 3\)"):
        f(tf.ones([2, 3]))


def test_text_without_a_tensor_is_printed_each_time_in_the_branch_taken():
    @tf.function
    def step(x: Any) -> Any:
        tf.print("step")
        if x > 0.0:
            tf.print("positive")
        else:
            tf.print("negative")
        return x

    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        for value in (1.0, -1.0, 2.0):
            step(tf.constant(value))
    lines = out.getvalue().split()
    assert lines == ["step", "positive", "step", "negative", "step", "positive"]


def test_local_results_of_a_structure_leave_a_function():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def step() -> Any:
        shares = strategy.run(lambda: {"id": number(), "n": 7})
        return strategy.experimental_local_results(shares)

    def number() -> Any:
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    assert [(int(part["id"]), part["n"]) for part in step()] == [(0, 7), (1, 7)]


def test_a_part_of_local_results_computes_in_a_function():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def step() -> Any:
        parts = strategy.experimental_local_results(strategy.run(lambda: [number()]))
        return parts[0][0] + 10, parts[1][0] * parts[1][0] + 10

    def number() -> Any:
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    assert [int(part) for part in step()] == [10, 11]


def test_copies_of_variables_train_on_their_own():
    v = tf.Variable([1.0, 2.0])
    teacher = copy.deepcopy(v)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v) + tf.reduce_sum(teacher)
    gradients = tape.gradient(y, [v, teacher])
    np.testing.assert_array_equal(gradients[0].numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(gradients[1].numpy(), [1.0, 1.0])


def test_a_variable_of_each_replica_keeps_its_whole_in_copies():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(
            1.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
        v.assign(6.0)
        restored = pickle.loads(pickle.dumps(v))
    assert float(copy.deepcopy(v)) == float(v) == float(restored) == 6.0


def test_a_tensor_of_a_trace_has_no_pickle():
    with pytest.raises(TypeError):
        tf.function(lambda x: pickle.dumps(x))(tf.constant(1.0))


def test_a_part_that_is_no_variables_cannot_be_assigned():
    with pytest.raises(AttributeError, match=r"^\[Tensor.assign\] a tensor never changes"):
        tf.constant([1.0])[0].assign(2.0)


def test_a_part_is_assigned_in_a_function():
    v = tf.Variable([1.0, 2.0, 3.0])
    tf.function(lambda x: v[1:].assign(x).value())(tf.constant([7.0, 8.0]))
    np.testing.assert_array_equal(v.numpy(), [1.0, 7.0, 8.0])


def test_rows_that_are_no_slices_are_refused():
    with pytest.raises(TypeError, match=r"^\[Variable.scatter_add\].*got int; pass tf.IndexedSl"):
        tf.Variable([1.0]).scatter_add(3)


def test_assertions_of_a_step_come_when_it_is_over():
    @tf.function
    def step(x: Any) -> Any:
        tf.debugging.assert_less(x, 2.0, message="too large")
        return x

    assert float(step(tf.constant(1.0))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        step(tf.constant(3.0))


def test_a_device_has_a_name():
    with pytest.raises(ValueError, match=r"^\[device\] a device is a CPU, GPU or TPU"):
        tf.device("x")


def test_variables_are_named_by_their_scopes():
    with tf.name_scope("a"), tf.name_scope("b"):
        v = tf.Variable(1.0, name="w")
    assert v.name == "a/b/w:0" and tf.Variable(1.0, name="w").name == "w:0"


def test_repeats_that_do_not_fit_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[repeat\].*got \[1, 2, 3\]"):
        tf.repeat([1, 2], [1, 2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[repeat\].*got \[1, -1\]"):
        tf.repeat([1, 2], [1, -1])
    with pytest.raises(TypeError, match=r"^\[repeat\] repeats must be an integer"):
        tf.repeat([1, 2], [1.5, 2.0])


def test_a_mask_has_the_shape_of_the_first_axes():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"got \(2,\) for shape \(3,\)"):
        tf.constant([1, 2, 3])[np.array([True, False])]


def test_replicas_do_not_draw_from_one_generator():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    g = tf.random.Generator.from_seed(1)
    with pytest.raises(RuntimeError, match=r"^\[Generator\] replicas would all draw the same"):
        strategy.run(lambda: g.normal([2]))
    assert g.state.numpy().tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g: g.uniform([2], 5, 5, "int32"), "minval must be below maxval: got 5 and 5"),
        (lambda g: g.uniform([2], 1, None, "int32"), "has two ends: got minval=1, maxval=None"),
        (lambda g: g.normal([2], dtype="int32"), "must be a float: got int32"),
        (lambda g: g.uniform_full_int([2], "uint8"), "got uint8"),
        (lambda g: tf.random.Generator.from_seed("a"), "integers: got 'a'"),
        (lambda g: tf.random.Generator.from_seed([1.0, [2]]), "integers: got [1.0, [2]]"),
        (lambda g: tf.random.Generator.from_state([1, 2]), "three integers"),
        (lambda g: tf.random.Generator.from_seed(1, alg="threefry"), "must be 'philox'"),
        (lambda g: tf.random.Generator(), "a state is needed"),
        (lambda g: tf.random.set_global_generator(3), "a Generator is needed: got 3"),
    ],
)
def test_generators_refuse(make, words):
    g = tf.random.Generator.from_seed(1)
    with pytest.raises((ValueError, TypeError)) as error:
        make(g)
    assert words in str(error.value) and str(error.value).startswith("[")
    assert g.state.numpy().tolist() == [1, 0, 0]  # nothing was drawn


def test_a_traced_generator_draws_the_same_truncated_and_wide_numbers():
    for draw in (
        lambda g: g.truncated_normal([5]),
        lambda g: g.normal([3], dtype="float64"),
        lambda g: g.uniform([2, 2], 0, 2**40, "int64"),
    ):
        eager = draw(tf.random.Generator.from_state([-2, 7, -9]))
        g = tf.random.Generator.from_state([-2, 7, -9])
        np.testing.assert_array_equal(tf.function(lambda g=g, d=draw: d(g))(), eager)
        assert g.state.numpy().tolist()[1] == 8  # the counter went on into its upper half


def test_python_does_not_run_in_a_step_of_replicas():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    step = tf.function(lambda: strategy.run(lambda: tf.py_function(abs, [1.0], tf.float32)))
    with pytest.raises(RuntimeError, match=r"^\[py_function\] a step of replicas runs without"):
        step()
    text = tf.function(lambda x: strategy.run(lambda v: [tf.strings.as_string(v)], (x,)))
    with pytest.raises(RuntimeError, match=r"^\[tf.strings.as_string\] a step of replicas has no"):
        text(tf.constant(1.0))


def test_a_tape_around_replicas_watches_what_they_read():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(2.0, name="v")
    for run in (strategy.run, tf.function(strategy.run)):
        with tf.GradientTape() as tape:
            run(lambda: v * 3.0)
        assert [variable.name for variable in tape.watched_variables()] == ["v:0"]


def test_tapes_know_the_variables_of_thousands():
    table = [tf.Variable(float(i)) for i in range(3000)]
    with tf.GradientTape() as tape:
        _ = tf.add_n(table[::-1]) + table[7]
    assert [float(v) for v in tape.watched_variables()] == [float(i) for i in range(3000)]


def test_a_folder_of_tensorflows_checkpoints_is_left_alone(tmp_path):
    state = tmp_path / "checkpoint"
    state.write_text('model_checkpoint_path: "ckpt-1"\nall_model_checkpoint_paths: "ckpt-1"\n')
    kept, v = state.read_bytes(), tf.Variable(1.0)
    with pytest.raises(
        tf.train.CorruptCheckpointError, match=r"a file of TensorFlow's.* another folder"
    ):
        tf.train.Checkpoint(v=v).save(str(tmp_path / "ckpt"))
    assert state.read_bytes() == kept


def test_a_tape_that_is_reset_watches_anew():
    v, w = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="w")
    with tf.GradientTape() as tape:
        _ = v * 1.0
        tape.reset()
        _ = w * 1.0
    assert [variable.name for variable in tape.watched_variables()] == ["w:0"]
    tape.reset()
    assert tape.watched_variables() == ()


def test_a_concrete_function_of_a_variable_changes_it():
    counter = tf.Variable(0)

    @tf.function
    def increment(counter: Any, by: int = 1) -> Any:
        return counter.assign_add(by)

    concrete = increment.get_concrete_function(counter)
    assert [int(concrete()), int(concrete(counter)), int(counter)] == [1, 2, 2]
    assert counter.name in repr(concrete) and not concrete.inputs
