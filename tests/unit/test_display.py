"""Texts and HTML of tensors, values per replica and datasets; operators of values per replica."""

import operator
import time
from html.parser import HTMLParser

import numpy as np
import pytest

import samegrad as tf
from samegrad._tensor.per_replica import PerReplica

SHAPES = [
    (), (0,), (3,), (64,), (2, 3), (64, 3), (3, 64), (40, 40), (0, 5), (2, 3, 4), (9, 9, 9, 9),
]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool"]


class Reader(HTMLParser):
    """Checks that elements are closed, and gathers the rows of tables."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows, self.text = [], [], ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tensor_html_is_a_short_table_or_text(shape, dtype):
    tensor = tf.cast(tf.ones(shape), dtype)
    found = Reader(tensor._repr_html_())
    assert f"shape={shape}, dtype={dtype}" in found.text
    assert len(found.text) < 2000 and len(found.rows) <= 8
    if len(shape) == 2 and 0 not in shape:
        assert len(found.rows) == min(shape[0], 8) and len(found.rows[0]) == min(shape[1], 8)


def test_tensor_html_has_the_values():
    assert Reader(tf.constant([[1, 2], [3, 4]])._repr_html_()).rows == [["1", "2"], ["3", "4"]]
    assert Reader(tf.constant([[True, False]])._repr_html_()).rows == [["True", "False"]]


@pytest.mark.parametrize("replicas", [1, 2, 8, 9, 64])
@pytest.mark.parametrize("shape", [(), (64,), (64, 3), (8, 28, 28, 1)], ids=str)
def test_per_replica_is_abbreviated(shape, replicas):
    value = PerReplica([tf.ones(shape) for _ in range(replicas)])
    text = repr(value)
    assert text.startswith("PerReplica:{\n  0: ") and len(text.splitlines()) <= 2 + 6 * 8
    assert f"\n  {replicas - 1}: " in text or replicas == 1
    found = Reader(value._repr_html_())
    assert len(found.rows) == 1 + min(replicas, 8)
    assert found.rows[1][:3] == ["0", str(shape), "float32"]


def test_per_replica_of_few_values_is_shown_whole():
    text = repr(PerReplica([tf.constant([1.0, 2.0]), tf.constant([[3]])]))
    assert "[1., 2.]" in text and "[[3]]" in text and "..." not in text


def test_per_replica_html_shows_what_is_no_tensor():
    found = Reader(PerReplica(["<b>", 2])._repr_html_())
    assert found.rows[1:] == [["0", "str", "'<b>'"], ["1", "int", "2"]]


def test_dataset_html_is_its_element_spec():
    arrays = {"<x>": np.ones((4, 3)), "y": (np.ones(4, "float32"), np.arange(4))}
    data = tf.data.Dataset.from_tensor_slices(arrays).batch(2)
    found = Reader(data._repr_html_())
    assert found.rows == [
        ["component", "shape", "dtype"],
        ["element['<x>']", "(None, 3)", "float64"],
        ["element['y'][0]", "(None,)", "float32"],
        ["element['y'][1]", "(None,)", "int64"],
    ]


def test_dataset_html_of_a_function_that_fails_is_shown_all_the_same():
    def fails(x):
        raise RuntimeError("no element")

    data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(fails, [x], tf.int64))
    assert "Dataset of 3 elements" in Reader(data._repr_html_()).text


def test_html_of_traced_values_evaluates_nothing():
    shown = []

    @tf.function
    def step(x):
        shown.append(x._repr_html_())
        return x

    step(tf.ones((2, 2)))
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    strategy.run(step, (tf.ones((2, 2)),))
    assert all("traced" in Reader(html).text for html in shown) and shown


def test_html_of_large_values_is_cheap():
    large = tf.ones((4096, 4096))
    value = PerReplica([large] * 8)
    start = time.perf_counter()
    for _ in range(10):
        large._repr_html_(), value._repr_html_(), repr(value)
    assert time.perf_counter() - start < 2.0


def per_replica_in(place, use):
    """What using a value per replica raises, outside of a function and while one is traced."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    errors = []

    def replica_id():
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    def called():
        value = strategy.run(replica_id)
        try:
            use(value)
        except Exception as error:
            errors.append(error)

    (tf.function(called) if place == "traced" else called)()
    return errors[0] if errors else None


BINARY = [
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor",
    "lshift", "rshift", "lt", "le", "gt", "ge", "getitem",
]  # fmt: skip
IN_PLACE = [
    "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior",
    "ixor",
]  # fmt: skip


def with_one(name, swapped=False):
    function = getattr(operator, name)
    return lambda value: function(1, value) if swapped else function(value, 1)


USES = {
    **{name: with_one(name) for name in (*BINARY, *IN_PLACE)},
    **{f"r{name}": with_one(name, swapped=True) for name in BINARY[:-1]},
    **{name: getattr(operator, name) for name in ("neg", "pos", "invert", "abs", "index")},
    **{kind.__name__: kind for kind in (float, int, complex, bool, len, round, list, np.asarray)},
    "divmod": lambda v: divmod(v, 2),
    "rdivmod": lambda v: divmod(2, v),
    "contains": lambda v: 1 in v,
    "loop": lambda v: [x for x in v],  # noqa: C416
    "ufunc": lambda v: np.add(1, v),
    "setitem": lambda v: operator.setitem(v, 0, 1),
    "format": lambda v: f"{v:.3f}",
    "array scalar": lambda v: np.float32(1) + v,
    "array": lambda v: np.ones(2) * v,
    "tensor": lambda v: tf.ones(2) * v,
    "function": tf.reduce_sum,
    **{f".{name}": lambda v, name=name: getattr(v, name) for name in ("numpy", "shape", "dtype")},
}


@pytest.mark.parametrize("place", ["eager", "traced"])
@pytest.mark.parametrize("use", USES)
def test_per_replica_points_to_reduce(use, place):
    error = per_replica_in(place, USES[use])
    assert isinstance(error, AttributeError if use.startswith(".") else (TypeError, ValueError))
    assert str(error).startswith("[PerReplica] ") and "strategy.reduce('SUM'" in str(error)
    assert ("2 values, one per replica" if place == "eager" else "a value per replica") in str(
        error
    )


@pytest.mark.parametrize(
    ("use", "name"),
    [("loop", "iteration"), ("list", "iteration"), ("contains", "in"), ("getitem", "an index"),
     ("ufunc", "NumPy"), ("array", "NumPy"), ("radd", "+"), ("bool", "bool()")],
)  # fmt: skip
def test_per_replica_names_the_operation(use, name):
    error = per_replica_in("eager", USES[use])
    assert str(error).startswith(f"[PerReplica] {name} needs one value: got 2 values")
    assert not np.iterable(PerReplica([tf.ones(2)]))


def test_per_replica_keeps_identity_and_unknown_attributes():
    value = PerReplica([tf.ones(2), tf.ones(2)])
    assert value == value and value != 1 and len({value, value}) == 1
    assert not hasattr(value, "nothing") and f"{value}" == str(value)
