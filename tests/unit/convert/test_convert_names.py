"""Names and layouts of converted weights: what a map does, and what is reported about it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import samegrad as tf
from samegrad import convert
from samegrad.convert._names import NameMap

layers = tf.keras.layers


def dense(name="head", width=3):
    model = tf.keras.Sequential([layers.Input((2,)), layers.Dense(width, name=name)])
    model.layers[0].bias.assign(np.arange(width))
    return model


@pytest.mark.parametrize(
    ("names", "path", "expected"),
    [
        ({}, "a.b", ("a.b", None)),
        ({"a": "x"}, "a.b", ("x.b", None)),
        ({"a": "x"}, "ab.c", ("ab.c", None)),
        ({"a.b": "x", "a": "y"}, "a.b", ("x", None)),
        ({"a": "y", "a.b": "x"}, "a.b", ("y.b", None)),
        ({"block{i}": "layer.{i-1}"}, "block12.w", ("layer.11.w", None)),
        ({"block{i}": "layer.{i+1}"}, "block0", ("layer.1", None)),
        ({"{a}.{b}": "{b}.{a}"}, "x.y.z", ("y.x.z", None)),
        ({"{a}.{a}": "{a}"}, "x.x.z", ("x.z", None)),
        ({"{a}.{a}": "{a}"}, "x.y.z", ("x.y.z", None)),
        ({"c{s}_{n}_conv": "{s}.{n}"}, "c2_1_0_conv.w", ("2.1_0.w", None)),
        ({"q": "qkv[1]"}, "q.weight", ("qkv.weight", 1)),
        ({"q.{p}": "in_{p}[2]"}, "q.bias", ("in_bias", 2)),
        ({"a+b(": "x"}, "a+b(.c", ("x.c", None)),
    ],
)
def test_map_renames_a_path(names, path, expected):
    assert NameMap("f", names)(path) == expected


@pytest.mark.parametrize(
    "names",
    [
        {"a.{i-1}": "b.{i}"},
        {"a": "b.{i}"},
        {"a.{": "b"},
        {"a.{}": "b"},
        {"a": None},
        {1: "b"},
    ],
)
def test_map_with_a_wrong_pattern_is_rejected(names):
    with pytest.raises(ValueError, match=r"\[to_torch\] a pattern"):
        convert.to_torch(dense(), names)


def test_map_that_shifts_a_word_is_rejected():
    with pytest.raises(ValueError, match="'head' is not one"):
        convert.to_torch(dense(), {"{i}": "{i-1}"})


def test_map_of_another_type_is_rejected():
    with pytest.raises(TypeError, match="names must be"):
        convert.to_torch(dense(), [("head", "fc")])


def test_every_name_that_does_not_match_is_listed_and_nothing_is_assigned():
    model = tf.keras.Sequential(
        [layers.Input((2,))] + [layers.Dense(3, name=name) for name in "abcd"]
    )
    before = [v.numpy() for v in model.weights]
    weights = convert.to_torch(model)
    weights["a.weight"] = np.ones((3, 2), np.float32)
    weights["b.weight"] = np.ones((4, 3), np.float32)
    weights["c.bias"] = np.ones(3, np.int32)
    weights["other.bias"] = weights.pop("d.bias")
    with pytest.raises(ValueError, match="got 1 missing, 1 unexpected, 2 another") as error:
        convert.from_torch(model, weights, {"d": "d", "e.{i}": "f"})
    lines = str(error.value).split("\n  ")
    assert lines[1:] == [
        "missing: d.bias (3,)",
        "unexpected: other.bias (3,)",
        "another shape or dtype: b.weight (4, 3) instead of (3, 3)",
        "another shape or dtype: c.bias int32 instead of float32",
        "pattern without a path: 'e.{i}'",
    ]
    for one, other in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


def test_path_of_the_model_is_listed_where_its_name_differs():
    with pytest.raises(ValueError, match=r"missing: fc.weight \(3, 2\), for head.weight"):
        convert.from_torch(dense(), {}, {"head": "fc"})


def test_ignored_names_are_neither_read_nor_expected():
    model = dense()
    weights = {"head.weight": np.ones((3, 2)), "cls.bias": np.ones(1), "head.bias": np.ones(7)}
    convert.from_torch(model, weights, ignore=["cls", "head.bias"])
    np.testing.assert_array_equal(model.layers[0].bias.numpy(), [0, 1, 2])
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), np.ones((2, 3)))
    convert.from_torch(model, {}, ignore="head")


def test_a_failed_assignment_takes_back_the_others(monkeypatch):
    model = dense()
    before = [v.numpy() for v in model.weights]
    kind = type(model.weights[0])
    assign = kind.assign

    def failing(self, value):
        if self is model.weights[1] and np.asarray(value)[0] == 9:
            raise MemoryError
        return assign(self, value)

    monkeypatch.setattr(kind, "assign", failing)
    with pytest.raises(MemoryError):
        convert.from_torch(model, {"head.weight": np.ones((3, 2)), "head.bias": np.full(3, 9.0)})
    for one, other in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_floating_point_arrays_are_cast(dtype):
    from samegrad._base.dtypes import numpy_dtype

    model = dense()
    value = np.array([[0.1, 2.0], [3.0, 4.0], [5.0, 6.0]]).astype(numpy_dtype(dtype))
    convert.from_torch(model, {"head.weight": value, "head.bias": np.zeros(3)})
    assert model.layers[0].kernel.dtype == "float32"
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), value.T.astype(np.float32))


def test_integers_are_cast_if_they_stay_equal():
    class Counted(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable([1, 2], dtype="int32")

    module = Counted()
    convert.from_torch(module, {"count": np.array([3, 4])})
    assert module.count.numpy().tolist() == [3, 4]
    with pytest.raises(ValueError, match="int64 instead of int32"):
        convert.from_torch(module, {"count": np.array([3, 2**40])})
    with pytest.raises(ValueError, match="float64 instead of int32"):
        convert.from_torch(module, {"count": np.array([3.0, 4.0])})


class Table(layers.Layer):
    def __init__(self):
        super().__init__()
        self.table = self.add_weight(shape=(2, 3))
        self.scale = self.add_weight(shape=(3,))

    def call(self, x):
        return x @ self.table * self.scale


def test_matrix_of_an_unknown_layer_needs_a_layout():
    model = tf.keras.Sequential([layers.Input((2,)), Table()])
    remedy = re.escape("pass layouts={Table: {'table': ('table', (0, 1))}}")
    with pytest.raises(ValueError, match=remedy):
        convert.to_torch(model)
    given = {Table: {"table": ("weight", (1, 0)), "scale": "gain"}}
    weights = convert.to_torch(model, layouts=given)
    assert {name: a.shape for name, a in weights.items()} == {
        "table.weight": (3, 2), "table.gain": (3,)
    }  # fmt: skip
    np.testing.assert_array_equal(weights["table.weight"].T, model.layers[0].table.numpy())
    weights["table.weight"] = weights["table.weight"] + 1
    convert.from_torch(model, weights, layouts=given)
    np.testing.assert_array_equal(weights["table.weight"].T, model.layers[0].table.numpy())


@pytest.mark.parametrize("layout", [1, ("w",), ("w", (0, 0)), ("w", (1, 2)), ("w", (1, 0), 3)])
def test_wrong_layout_is_rejected(layout):
    model = tf.keras.Sequential([layers.Input((2,)), Table()])
    with pytest.raises(ValueError, match="layout must be"):
        convert.to_torch(model, layouts={Table: {"table": layout}})


def test_layout_of_another_rank_is_rejected():
    model = tf.keras.Sequential([layers.Input((2,)), Table()])
    with pytest.raises(ValueError, match="with 2 axes must order all"):
        convert.to_torch(model, layouts={Table: {"table": ("w", (0, 2, 1))}})


def test_given_layout_replaces_that_of_keras():
    model = dense()
    weights = convert.to_torch(model, layouts={layers.Dense: {"kernel": "kernel"}})
    assert weights["head.kernel"].shape == (2, 3)


def test_two_arrays_of_one_name_are_rejected():
    model = tf.keras.Sequential([layers.Input((2,))] + [layers.Dense(2, name=n) for n in "ab"])
    with pytest.raises(ValueError, match="name of its own: got 'x.weight' for 'b.weight' and 'a"):
        convert.to_torch(model, {"{any}": "x"})
    with pytest.raises(ValueError, match=r"numbered from 0: got \[0, 2\] for 'x.weight'"):
        convert.to_torch(model, {"a": "x[0]", "b": "x[2]"})


def test_pieces_of_one_array_are_split_by_their_sizes():
    model = tf.keras.Sequential(
        [layers.Input((2,)), layers.Dense(3, name="a"), layers.Dense(4, name="b")]
    )
    model.get_layer("a").bias.assign([1.0, 2.0, 3.0])
    names = {"a.bias": "bias[1]", "b.bias": "bias[0]"}
    weights = convert.to_torch(model, names)
    assert weights["bias"].tolist() == [0, 0, 0, 0, 1, 2, 3]
    weights["bias"] = np.arange(7.0)
    convert.from_torch(model, weights, names)
    assert model.get_layer("b").bias.numpy().tolist() == [0, 1, 2, 3]
    assert model.get_layer("a").bias.numpy().tolist() == [4, 5, 6]


def test_path_is_made_of_attributes_lists_and_names():
    class Inner(layers.Layer):
        def __init__(self):
            super().__init__()
            self.parts = {"x": layers.Dense(2), "y": [layers.Dense(2), layers.Dense(2)]}
            self._hidden = layers.Dense(2, name="hidden")
            self.again = self.parts["x"]
            self.stack = tf.keras.Sequential([layers.Dense(2), layers.Dense(2), layers.Dense(2)])

        def call(self, x):
            for one in (self.parts["x"], *self.parts["y"], self._hidden, self.stack):
                x = one(x)
            return x

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.step = tf.Variable(0)

    outer = Outer()
    outer.inner(tf.ones((1, 2)))
    assert [name for name in convert.to_torch(outer) if not name.endswith(".bias")] == [
        "step",
        "inner.parts.x.weight",
        "inner.parts.y.0.weight",
        "inner.parts.y.1.weight",
        "inner.stack.dense.weight",
        "inner.stack.dense_1.weight",
        "inner.stack.dense_2.weight",
        "inner.hidden.weight",
    ]


def test_every_variable_of_a_layer_has_a_name_of_its_own():
    class Layer(layers.Layer):
        def __init__(self):
            super().__init__()
            self._first = self.add_weight(shape=(1,), name="scale")
            self.scale = self.add_weight(shape=(2,), name="other")
            self._third = self.add_weight(shape=(3,))
            self._fourth = self.add_weight(shape=(4,))

        def call(self, x):
            return x

    layer = Layer()
    layer(tf.ones((1, 2)))
    assert {name: a.shape for name, a in convert.to_torch(layer).items()} == {
        "scale_1": (1,),
        "scale": (2,),
        "variable": (3,),
        "variable_1": (4,),
    }


def test_list_of_layers_may_have_any_name():
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.operations = [layers.Dense(2, use_bias=False), layers.Dense(2, use_bias=False)]

        def call(self, x):
            return self.operations[1](self.operations[0](x))

    model = Model()
    model(tf.ones((1, 2)))
    assert [*convert.to_torch(model)] == ["operations.0.weight", "operations.1.weight"]


def test_names_that_keras_makes_up_do_not_depend_on_other_models():
    def names():
        model = tf.keras.Sequential([layers.Input((2,)), layers.Dense(2), layers.Dense(2)])
        return [*convert.to_torch(model)]

    assert names() == names() == ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"]


def test_variable_of_several_paths_has_one_name():
    shared = layers.Dense(2, name="shared")
    x = layers.Input((2,))
    model = tf.keras.Model(x, shared(shared(x)))
    assert [*convert.to_torch(model)] == ["shared.weight", "shared.bias"]


def test_variable_that_a_layer_takes_from_its_sublayer_has_the_layout_of_the_sublayer():
    class Tied(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3, use_bias=False)
            self.dense.build((None, 2))
            self.kernel = self.dense.kernel

        def call(self, x):
            return self.dense(x)

    tied = Tied()
    tied(tf.ones((1, 2)))
    assert {n: a.shape for n, a in convert.to_torch(tied).items()} == {"dense.weight": (3, 2)}


def test_gru_that_resets_before_the_product_is_rejected():
    model = tf.keras.Sequential([layers.Input((3, 2)), layers.GRU(2, reset_after=False)])
    with pytest.raises(NotImplementedError, match="reset_after=True"):
        convert.to_torch(model)


def test_einsum_that_is_not_a_product_is_rejected():
    model = tf.keras.Sequential([layers.Input((3, 2)), layers.EinsumDense("abc,bcd->abd", (3, 4))])
    with pytest.raises(NotImplementedError, match="summed or new"):
        convert.to_torch(model)


def test_model_that_is_not_built_is_rejected():
    model = tf.keras.Sequential([layers.Dense(2)])
    with pytest.raises(ValueError, match="must be built"):
        convert.to_torch(model)
    with pytest.raises(ValueError, match="must be built"):
        convert.from_torch(model, {})


def test_calls_inside_functions_are_rejected():
    model = dense()
    with pytest.raises(RuntimeError, match="outside of functions"):
        tf.function(lambda: convert.to_torch(model))()
    with pytest.raises(RuntimeError, match="outside of functions"):
        tf.distribute.MirroredStrategy(replicas=2).run(lambda: convert.from_torch(model, {}))


@pytest.mark.parametrize("model", [None, 3, [1], "model", tf.constant([1.0])])
def test_object_that_is_not_a_model_is_rejected(model):
    for call in (lambda: convert.to_torch(model), lambda: convert.from_torch(model, {})):
        with pytest.raises(TypeError, match="must be a Keras model"):
            call()


@pytest.mark.parametrize("weights", [None, 3, [("head.weight", 1)]])
def test_weights_of_another_type_are_rejected(weights):
    with pytest.raises(TypeError, match="weights must be arrays by name"):
        convert.from_torch(dense(), weights)


def test_converted_weights_are_copies():
    model = dense()
    weights = convert.to_torch(model)
    weights["head.bias"][:] = 7
    assert model.layers[0].bias.numpy().tolist() == [0, 1, 2]
