"""Nested structures: tf.nest is TensorFlow's, and one walk serves functions, loops and datasets."""

import json
import subprocess
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from nest_cases import Point, record

import samegrad as tf
from samegrad._base.tree import elements, variables

RECORDED = json.loads(Path(__file__).with_name("tensorflow_nest.json").read_text())["results"]


@pytest.fixture(scope="module")
def found():
    return record(tf.nest)


@pytest.mark.parametrize("case", RECORDED)
def test_structures_are_those_of_tensorflow(found, case):
    recorded = RECORDED[case]
    if recorded.startswith("OrderedDict("):  # Python 3.12 writes it otherwise
        recorded = repr(eval(recorded, {"OrderedDict": OrderedDict}))
    assert found[case] == recorded


def test_every_recorded_case_is_compared(found):
    assert list(found) == list(RECORDED) and len(found) > 200


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda d: defaultdict(list, d)])
def test_functions_keep_the_types_of_arguments_and_results(kind):
    given = kind({"b": tf.constant(1.0), "a": [None, Point(tf.constant(2.0), "text")]})
    seen = []

    @tf.function
    def double(values):
        seen.append(type(values))
        return tf.nest.map_structure(lambda x: 2.0 * x if tf.is_tensor(x) else x, values)

    for _ in range(2):
        result = double(given)
        assert type(result) is type(given) and list(result) == ["b", "a"]
        assert float(result["b"]) == 2.0 and result["a"][0] is None
        assert type(result["a"][1]) is Point and float(result["a"][1].x) == 4.0
    assert seen == [type(given)]


def calls_of(function, *args):
    """How many functions are called by it."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return calls


def wide_structure(size):
    return {i: [i, (i, {"x": i})] for i in reversed(range(size))}


def test_many_leaves_are_walked_in_their_order():
    wide = wide_structure(20_000)
    leaves = tf.nest.flatten(wide)
    assert leaves == [i for i in range(20_000) for _ in range(3)]
    assert tf.nest.pack_sequence_as(wide, leaves) == wide


def flatten_and_pack(structure):
    return tf.nest.pack_sequence_as(structure, tf.nest.flatten(structure))


@pytest.mark.parametrize("walk", [tf.nest.flatten, flatten_and_pack])
def test_the_work_of_a_walk_grows_with_its_leaves_alone(walk):
    few, many = wide_structure(200), wide_structure(2_000)
    assert calls_of(walk, many) < 11 * calls_of(walk, few)


def test_a_structure_in_itself_is_refused():
    endless = [1]
    endless.append(endless)
    with pytest.raises(ValueError, match="contains itself"):
        tf.nest.flatten(endless)


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_elements_of_a_generator_go_by_their_keys(order):
    def rows():
        for i in range(3):
            row = {"x": np.float32(i), "y": np.float32(10 * i)}
            yield {key: row[key] for key in order}

    spec = {key: tf.TensorSpec((), tf.float32) for key in "yx"}
    dataset = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(3)
    (batch,) = list(dataset)
    assert batch["x"].numpy().tolist() == [0.0, 1.0, 2.0]
    assert batch["y"].numpy().tolist() == [0.0, 10.0, 20.0]


def test_lists_in_elements_stand_for_tensors():
    assert elements.flatten(([1, 2], {"b": [3], "a": 4})) == [[1, 2], 4, [3]]
    (element,) = tf.data.Dataset.from_tensors(([1, 2], 3))
    assert element[0].numpy().tolist() == [1, 2]


def test_branches_may_give_keys_in_another_order():
    @tf.function
    def choose(x):
        return tf.cond(x > 0, lambda: {"a": x, "b": 2 * x}, lambda: {"b": 3 * x, "a": 4 * x})

    for x, a, b in ((1.0, 1.0, 2.0), (-1.0, -4.0, -3.0)):
        result = choose(tf.constant(x))
        assert (float(result["a"]), float(result["b"])) == (a, b)


def test_variables_of_a_loop_may_have_any_keys():
    @tf.function
    def total(n):
        state = {1: tf.constant(0.0), "one": tf.constant(1.0), None: "text"}
        for _ in tf.range(n):
            state = {**state, 1: state[1] + state["one"]}
        return state[1], state[None]

    value, text = total(tf.constant(5))
    assert float(value) == 5.0 and text == "text"
    assert variables.flatten({1: 2, "a": 3}) == [2, 3]


def test_the_walk_loads_neither_the_engine_nor_optree():
    code = "import sys, samegrad._base.tree; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {"samegrad._core", "optree", "keras"} & loaded
