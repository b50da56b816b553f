"""How tensors answer."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
from manner_programs import manner, refused


@manner
def a_scalar_in_a_formatted_string_is_its_number(tf: Any) -> Any:
    t = tf.constant(0.5)
    return [
        f"Loss: {t}",
        f"{t}",
        f"{t.numpy():.3f}",
        f"{t:.2f}",
        str(tf.constant(3)).removeprefix("samegrad").removeprefix("tf"),
    ]


@manner
def a_vector_in_a_formatted_string_is_its_numbers(tf: Any) -> Any:
    v, m = tf.constant([1.0, 2.0]), tf.constant([[1, 2], [3, 4]])
    return [f"{v}", f"{v}", f"{m}", f"{tf.constant([True, False])}", f"{tf.zeros([0, 2])}"]


@manner
def numbers_of_all_kinds_in_formatted_strings(tf: Any) -> Any:
    values = [0.1, 1e-8, 1e20, float("nan"), 1 / 3]
    kinds = [tf.float32, tf.float64, tf.float16]
    return [
        f"{tf.constant(x, k)}" for x in values for k in kinds if not (x > 1e9 and k == tf.float16)
    ]


@manner
def everything_takes_a_name(tf: Any) -> Any:
    return [
        tf.constant(1.0, name="x"),
        tf.convert_to_tensor(1.0, name="x"),
        tf.zeros([1], name="z"),
        tf.add(1.0, 2.0, name="a"),
        tf.reduce_sum([1.0], name="s"),
        tf.cast(1, tf.float32, name="c"),
        tf.matmul([[1.0]], [[2.0]], name="m"),
        tf.nn.relu(-1.0, name="r"),
        tf.concat([[1], [2]], 0, name="k"),
        tf.range(2, name="n"),
        tf.one_hot([0], 2, name="o"),
        tf.where(True, 1, 2, name="w"),
        tf.random.uniform([0], name="u"),
        tf.split([1, 2], 2, name="q")[0],
        tf.stack([1], name="t"),
    ]


@manner
def no_tensor_is_none(tf: Any) -> Any:
    t = tf.constant(1.0)
    return [t == None, t != None, t is None]  # noqa: E711


@manner
def gradients_are_clipped_together(tf: Any) -> Any:
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
    return [
        clipped[0],
        clipped[1],
        clipped[2],
        norm,
        tf.linalg.global_norm([tf.constant([3.0, 4.0])]),
    ]


@manner
def new_axes(tf: Any) -> Any:
    x = tf.constant([1, 2])
    return [x[:, tf.newaxis], x[tf.newaxis], x[..., tf.newaxis], tf.newaxis is None]


@manner
def rows_by_a_mask(tf: Any) -> Any:
    x, m = tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([True, False, True])
    return [
        tf.boolean_mask(x, m),
        tf.boolean_mask(x, [[True, False]] * 3),
        tf.boolean_mask(x, [False, True], axis=1),
    ]


@manner
def numbers_and_bools_are_taken_for_each_other(tf: Any) -> Any:
    return [
        tf.boolean_mask([1.0, 2.0, 3.0], [1, 0, 2]),
        tf.argmax([False, True]),
        tf.argmin([True, False]),
    ]


@manner
def arrays_of_tensors(tf: Any) -> Any:
    a = tf.TensorArray(tf.float32, size=2, dynamic_size=True)
    for i in range(3):
        a = a.write(i, float(i))
    return [a.stack(), a.size(), a.read(1)]


@manner
def generators_of_random_numbers(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1)
    h = tf.random.Generator.from_seed(1)
    a, b = g.normal([3]), g.normal([3])
    same = bool(tf.reduce_all(a == h.normal([3])))
    state = tf.random.Generator.from_seed(2)
    state.reset_from_seed(1)
    parts = tf.random.Generator.from_seed(1).split(2)
    return [
        same,
        bool(tf.reduce_any(a != b)),
        bool(tf.reduce_all(state.normal([3]) == a)),
        len(parts),
        g.uniform([2], 0, 10, tf.int32).shape.as_list(),
        g.uniform([], 5, 6, tf.int32),
        g.truncated_normal([2]).shape.as_list(),
        g.state.dtype.name,
        tf.random.get_global_generator().normal([1]).shape.as_list(),
    ]


@manner
def products_of_sparse_matrices(tf: Any) -> Any:
    values, b = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    places = [[0, 0], [0, 2], [1, 1], [3, 0]]
    product = tf.sparse.sparse_dense_matmul
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([values, b])
        few = tf.sparse.SparseTensor(places, values, [4, 3])
        y = product(few, b)
        loss = tf.reduce_sum(y * y)
    wrong = (ValueError, tf.errors.InvalidArgumentError)
    return [
        y,
        product(few, tf.transpose(b), adjoint_b=True),
        product(few, tf.ones([4, 2]), adjoint_a=True),
        product(tf.ones([2, 4]), few),
        product(tf.ones([3, 2]), few, adjoint_a=True, adjoint_b=True),
        product(tf.sparse.SparseTensor(np.zeros((0, 2), "int64"), values[:0], [2, 3]), b),
        tape.gradient(loss, values),
        tape.gradient(loss, b),
        refused(lambda: product(few, tf.ones([2, 2])), *wrong),
        refused(lambda: product(few, tf.ones([3, 2], tf.int32)), TypeError, *wrong),
    ]


@manner
def functions_over_rows(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [
        tf.map_fn(lambda r: r * 2, x),
        tf.foldl(lambda a, r: a + r, x),
        tf.foldr(lambda a, r: a - r, x),
    ]


@manner
def embeddings_are_looked_up(tf: Any) -> Any:
    return tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), [1, 0, 1])


@manner
def diagonals(tf: Any) -> Any:
    return [tf.linalg.diag([1.0, 2.0]), tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]])]


@manner
def elements_by_their_places(tf: Any) -> Any:
    x = tf.constant([[1, 2], [3, 4]])
    return [
        tf.gather_nd(x, [[0, 1], [1, 0]]),
        tf.searchsorted([1, 3, 5], [2, 3]),
        tf.sequence_mask([1, 2], 3),
    ]


@manner
def sums_of_segments(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        tf.math.segment_sum(x, [0, 0, 1]),
        tf.math.segment_mean(x, [0, 0, 1]),
        tf.math.unsorted_segment_sum(x, [1, 0, 1], 3),
        tf.math.unsorted_segment_max(x, [1, 0, 1], 2),
    ]


@manner
def sums_of_tensors_of_any_sequence(tf: Any) -> Any:
    return [
        tf.add_n({"a": tf.constant(1.0), "b": tf.constant(2.0)}.values()),
        tf.add_n((tf.constant(1), tf.constant(2))),
    ]


@manner
def sums_of_a_generator_of_tensors(tf: Any) -> Any:
    return tf.add_n(tf.constant(float(i)) for i in range(3))


@manner
def repeats_of_their_own(tf: Any) -> Any:
    x = tf.constant([1, 2])
    return [
        tf.repeat(x, [2]),
        tf.repeat(x, [2, 1]),
        tf.repeat([1, 2], [2, 1]),
        tf.repeat([[1, 2]], [3, 0], axis=1),
    ]


@manner
def transposed_by_negative_axes(tf: Any) -> Any:
    return tf.transpose(tf.reshape(tf.range(6), [1, 2, 3]), perm=[-1, -3, -2])


@manner
def gathered_in_batches(tf: Any) -> Any:
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return [
        tf.gather(x, [[2, 0], [1, 1]], batch_dims=1),
        tf.gather(x, [2, 0], axis=1),
        tf.gather(x, tf.constant([1])),
    ]


@manner
def empty_tensors_are_reshaped(tf: Any) -> Any:
    return tf.reshape(tf.zeros([0, 6]), [0, -1, 3])


@manner
def tensors_are_seen_as_memory(tf: Any) -> Any:
    return np.asarray(memoryview(tf.constant([1.0, 2.0])))


@manner
def whole_numbers_are_not_divided_by_zero(tf: Any) -> Any:
    return tf.constant(1) // tf.constant(0)


@manner
def whole_numbers_have_no_negative_powers(tf: Any) -> Any:
    return tf.pow(5, -2)


@manner
def a_remainder_by_zero(tf: Any) -> Any:
    return tf.constant(1) % tf.constant(0)


@manner
def one_hot_values_have_one_dtype(tf: Any) -> Any:
    return tf.one_hot([0], 2, on_value=1.0, off_value=0)


@manner
def structures_keep_their_kinds(tf: Any) -> Any:
    class Own(dict):
        pass

    pair = collections.namedtuple("pair", "a b")
    ordered = tf.nest.map_structure(lambda x: x + 1, collections.OrderedDict([("b", 1), ("a", 2)]))
    own = tf.nest.map_structure(lambda x: x + 1, Own(a=1))
    named = tf.nest.map_structure(lambda x: x + 1, pair(1, 2))
    table = tf.nest.map_structure(lambda x: x + 1, collections.defaultdict(int, a=1))
    return [
        type(ordered).__name__,
        list(ordered),
        type(own).__name__,
        type(named).__name__,
        type(table).__name__,
    ]


@manner
def structures_of_other_kinds_differ(tf: Any) -> Any:
    return [
        refused(lambda: tf.nest.assert_same_structure((0, 1), [0, 1]), TypeError),
        refused(lambda: tf.nest.assert_same_structure([0, 1], [0]), ValueError),
        tf.nest.assert_same_structure((0, 1), [0, 1], check_types=False),
    ]


@manner
def mismatches_are_invalid_arguments(tf: Any) -> Any:
    kind = tf.errors.InvalidArgumentError
    return [
        refused(lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), kind),
        refused(lambda: tf.reshape(tf.ones([3]), [2, 2]), kind),
        refused(lambda: tf.ones([2]) + tf.ones([3]), kind),
        refused(lambda: tf.concat([tf.ones([1, 2]), tf.ones([1, 3])], 0), kind),
        refused(lambda: tf.stack([tf.ones([2]), tf.ones([3])]), kind),
        refused(lambda: tf.gather(tf.ones([2]), [5]), kind),
    ]


@manner
def elements_by_a_mask_in_brackets(tf: Any) -> Any:
    x = tf.constant([1, 2, 3])
    return x[tf.constant([True, False, True])]


@manner
def elements_by_a_list_in_brackets(tf: Any) -> Any:
    return tf.constant([1, 2, 3])[[0, 1]]


@manner
def tensors_are_drawn(tf: Any) -> Any:
    t = tf.constant([1.0, 2.0])
    return [
        np.isscalar(t),
        len(list(t)),
        np.atleast_1d(t),
        np.stack([t, t]),
        [float(x) for x in t],
        np.array(t).ndim,
    ]


@manner
def means_weigh_rows_and_losses_need_equal_shapes(tf: Any) -> Any:
    mean = tf.keras.metrics.Mean()
    mean.update_state(tf.ones([2, 3, 3]), sample_weight=[1.0, 0.0])
    mean.update_state(tf.zeros([2, 1, 1]), sample_weight=[1.0, 1.0])
    loss = tf.keras.losses.CategoricalCrossentropy()
    thirds = tf.fill([3, 3], 1 / 3)
    return [
        float(mean.result()),
        refused(lambda: loss([[1.0], [0.0], [1.0]], thirds), ValueError),
        refused(lambda: loss([1.0, 0.0, 1.0], thirds), ValueError),
    ]


@manner
def names_of_dtypes(tf: Any) -> Any:
    t = tf.constant([1.0])
    return [
        str(t.dtype),
        repr(t.dtype),
        t.dtype.name,
        t.dtype == "float32",
        t.dtype == np.float32,
        t.dtype.is_floating,
    ]


@manner
def the_type_of_one_number(tf: Any) -> Any:
    return [
        type(tf.constant(1.0).numpy()).__name__,
        type(tf.constant(1).numpy()).__name__,
        float(tf.constant(0.5)),
    ]


class Column:
    """What tables of other libraries are: neither a list nor an array of NumPy."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._values if dtype is None else self._values.astype(dtype)


@manner
def columns_of_tables_keep_their_dtype(tf: Any) -> Any:
    columns = [Column([1, 2]), Column([0.5]), Column(np.array([3], np.uint8))]
    return [*map(tf.constant, columns), *map(tf.convert_to_tensor, columns)]


@manner
def tensors_that_stay_what_they_are(tf: Any) -> Any:
    x = tf.constant([1.5, 2.5])
    rounded = tf.grad_pass_through(tf.round)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = rounded(x) * 3.0
    with tf.name_scope("a"), tf.name_scope("b"):
        path = tf.get_current_name_scope()
    return [
        tf.tuple([x, None]),
        tf.guarantee_const(x),
        y,
        tape.gradient(y, x),
        [path, tf.get_current_name_scope()],
        tf.broadcast_dynamic_shape([2, 1], [3]),
        refused(lambda: tf.broadcast_dynamic_shape([2], [3]), tf.errors.InvalidArgumentError),
        tf.is_symbolic_tensor(x),
    ]


@manner
def kinds_of_dtypes(tf: Any) -> Any:
    kinds = [tf.float32, tf.uint8, tf.bool, tf.complex64, tf.string]
    return [
        [[d.is_numeric, d.base_dtype == d, d.is_compatible_with("float32")] for d in kinds],
        refused(lambda: tf.float32.is_compatible_with("nonsense"), TypeError),
    ]


@manner
def complex_numbers_by_segments_and_diagonals(tf: Any) -> Any:
    z = tf.complex([[1.0, 2.0], [3.0, 0.0], [-1.0, 0.5]], [[0.0, 1.0], [-2.0, 0.0], [4.0, 2.0]])
    zero = tf.complex([[0.0, 1.0]], [[0.0, 0.0]])
    ids = tf.constant([0, 0, 1])
    found = [
        tf.math.divide_no_nan(z, zero),
        tf.math.divide_no_nan(zero, z),
        tf.math.segment_sum(z, ids),
        tf.math.segment_mean(z, ids),
        tf.math.unsorted_segment_sum(z, ids, 3),
        tf.linalg.diag(z[0]),
        tf.linalg.diag_part(z),
        tf.linalg.band_part(z, 0, 1),
    ]
    return [
        *[part for each in found for part in (tf.math.real(each), tf.math.imag(each))],
        tf.math.reduce_variance(z, 0),
        tf.math.reduce_std(z),
        refused(lambda: tf.divide(z, tf.constant([1, 2])), TypeError),
        tf.round([3, -4]),
    ]
