"""How tables of tf.lookup, tf.sets and joined sparse tensors answer."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from manner_programs import manner, refused
from manners_of_text import words


def entries(tf: Any, *args: Any, **options: Any) -> Any:
    return tf.lookup.KeyValueTensorInitializer(*args, **options)


def sparse_parts(few: Any) -> Any:
    values = words(few.values) if few.values.dtype.name == "string" else few.values
    return [few.indices, values, few.dense_shape]


@manner
def a_table_says_the_values_of_its_keys(tf: Any) -> Any:
    t = tf.lookup.StaticHashTable(entries(tf, ["a", "b"], [1, 2]), -1)
    return [
        t.lookup(tf.constant(["b", "z"])),
        t[tf.constant("a")],
        t.lookup(tf.constant([["a"], ["q"]])),
        t.size(),
        sorted(zip(words(t.export()[0]), t.export()[1].numpy().tolist(), strict=True)),
        t.key_dtype.name,
        t.value_dtype.name,
        t.lookup(tf.ragged.constant([["a"], ["b", "x"]])).to_list(),
        t.lookup(tf.sparse.from_dense([["a", "q"]])).values,
        [t.lookup(word) for word in tf.constant(["b", "c"])],
        list(tf.data.Dataset.from_tensor_slices(["a", "q", "b"]).map(lambda x: t.lookup(x))),
    ]


@manner
def tables_of_all_dtypes(tf: Any) -> Any:
    def table(keys: Any, values: Any, default: Any, **options: Any) -> Any:
        return tf.lookup.StaticHashTable(entries(tf, keys, values, **options), default)

    numbers = {"key_dtype": tf.int64, "value_dtype": tf.float64}
    return [
        words(table([1, 2], ["x", "y"], "?").lookup(tf.constant([2, 5]))),
        table([1, 2], [1.5, 2.5], 0.0).lookup(tf.constant([2, 5])),
        table([1, 2], [1.5, 2.5], 0.0, **numbers).lookup(tf.constant([2, 5], tf.int64)),
        table(["a"], [True], False).lookup(tf.constant(["a", "b"])),
        words(table(["a"], ["b"], "none").lookup(tf.constant(["b", "a"]))),
        table(["a", "a"], [1, 1], 0).size(),
    ]


@manner
def what_tables_refuse(tf: Any) -> Any:
    def make(keys: Any, values: Any, default: Any) -> Any:
        return tf.lookup.StaticHashTable(entries(tf, keys, values), default)

    t, errors = make(["a"], [1], -1), tf.errors
    return [
        refused(lambda: make(["a", "a"], [1, 2], -1), errors.FailedPreconditionError),
        refused(lambda: make(["a"], [1, 2], -1), errors.InvalidArgumentError),
        refused(lambda: make(["a"], [1], "x"), TypeError),
        refused(lambda: make(["a"], [1], 2.5), TypeError),
        refused(lambda: t.lookup(tf.constant([1])), TypeError),
    ]


@manner
def numbers_are_looked_up_in_a_function(tf: Any) -> Any:
    t = tf.lookup.StaticHashTable(entries(tf, [3, 1, 7], [30.0, 10.0, 70.0]), -1.0)
    f = tf.function(lambda k: t.lookup(k) * 2.0)
    return [f(tf.constant([7, 2, 1])), f(tf.constant([[3], [9]])), f(tf.constant(1))]


@manner
def words_are_looked_up_in_a_function(tf: Any) -> Any:
    t = tf.lookup.StaticHashTable(entries(tf, ["a", "b"], [1, 2]), -1)
    f = tf.function(lambda k: t.lookup(k) + 1)
    return [f(tf.constant(["b", "z"])), f(tf.constant(["a"]))]


@manner
def words_that_are_not_there_have_numbers(tf: Any) -> Any:
    def table(keys: Any, more: int, **options: Any) -> Any:
        numbers = np.arange(len(keys))
        return tf.lookup.StaticVocabularyTable(entries(tf, keys, numbers), more, **options)

    t, numbers = table(["a", "b", "c"], 3), table(np.array([5, 6]), 4)
    narrow = table(np.array([5, 6]), 4, lookup_key_dtype=tf.int32)
    none = tf.lookup.StaticVocabularyTable(None, 5, lookup_key_dtype=tf.string)
    wrong = entries(tf, ["a"], [0])  # int32
    return [
        t.lookup(tf.constant(["c", "x", "yy", "hello", "wörld"])),
        t.lookup(tf.ragged.constant([["a"], ["x", "x"]])).to_list(),
        t.size(),
        numbers.lookup(tf.constant([6, 7, 8, 123, -4], tf.int64)),
        narrow.lookup(tf.constant([6, 7, 8])),
        none.lookup(tf.constant(["c", "x"])),
        refused(lambda: tf.lookup.StaticVocabularyTable(wrong, 1), TypeError),
        refused(lambda: table(["a"], 0), ValueError),
        refused(lambda: t.lookup(tf.constant([1])), TypeError),
    ]


@manner
def tables_of_the_lines_of_a_file(tf: Any) -> Any:
    lookup, index = tf.lookup, tf.lookup.TextFileIndex
    with tempfile.TemporaryDirectory() as folder:
        path, odd = f"{folder}/a.txt", f"{folder}/b.txt"
        with open(path, "w") as file:
            file.write("emerson 10\nlake 20\npalmer 30\n")
        with open(odd, "w") as file:
            file.write("1\t5\n2\tx\n")

        def table(default: Any, *args: Any, file: Any = path, **options: Any) -> Any:
            made = lookup.TextFileInitializer(file, *args, **options)
            return lookup.StaticHashTable(made, default)

        lines = (tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
        columns, space = (tf.string, 0, tf.int64, 1), {"delimiter": " "}
        back = table("?", tf.int64, index.LINE_NUMBER, tf.string, index.WHOLE_LINE)
        invalid = tf.errors.InvalidArgumentError
        return [
            table(-1, *columns, **space).lookup(tf.constant(["palmer", "tarkus"])),
            table(-1, *lines).lookup(tf.constant(["palmer 30", "tarkus"])),
            words(back.lookup(tf.constant([0, 2, 7], tf.int64))),
            table(-1, *lines, vocab_size=2).size(),
            table(-1, *lines, value_index_offset=5).lookup(tf.constant(["lake 20"])),
            refused(lambda: table(-1, *columns), invalid),  # one column
            refused(lambda: table(-1, *columns, file=odd), invalid),  # x
            refused(lambda: table(-1, *lines, vocab_size=9), invalid),
            refused(lambda: table(-1, *lines, file=f"{folder}/none"), tf.errors.NotFoundError),
            refused(lambda: table(-1, tf.string, -5, tf.int64, 1), ValueError),
            refused(lambda: table(-1, *lines, vocab_size=0), ValueError),
        ]


@manner
def tables_that_change(tf: Any) -> Any:
    make = tf.lookup.experimental.MutableHashTable
    t, rows = make(tf.string, tf.int64, -1), make(tf.int64, tf.float32, [0.0, 0.5])
    t.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    t.insert(["a"], [7])
    before = [t.lookup(tf.constant(["a", "b", "c"])), t.size()]
    t.remove(tf.constant(["a", "zz"]))
    rows.insert([4], [[1.0, 2.0]])
    default = tf.constant([100, 200], tf.int64)
    return [
        *before,
        words(t.export()[0]),
        t.export()[1],
        t.lookup(tf.constant(["b", "q"]), dynamic_default_values=default),
        t[tf.constant(["b"])],
        rows.lookup(tf.constant([[4, 5]], tf.int64)),
        refused(lambda: t.insert(["a"], [1, 2]), tf.errors.InvalidArgumentError),
        refused(lambda: rows.insert([4], [1.0]), tf.errors.InvalidArgumentError),
        refused(lambda: t.insert(tf.constant([1]), [1]), TypeError, ValueError),
    ]


@manner
def a_table_changes_in_a_function(tf: Any) -> Any:
    t = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)

    @tf.function
    def count(k: Any) -> Any:
        t.insert(k, t.lookup(k) + 1)
        return t.lookup(k)

    made = [count(tf.constant([n], tf.int64)) for n in (3, 5, 3)]
    return [*made, t.size()]


@manner
def rows_are_sets(tf: Any) -> Any:
    a, b = tf.constant([[1, 2, 2, 3], [5, 4, 4, 0]]), tf.constant([[2, 3, 9], [4, 7, 7]])
    few, sets = tf.sparse.from_dense(a), tf.sets
    unordered = tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [1, 2])
    return [
        *map(
            sparse_parts,
            [
                sets.intersection(a, b),
                sets.union(a, b),
                sets.difference(a, b),
                sets.difference(a, b, aminusb=False),
                sets.intersection(few, b),
                sets.difference(b, few),
                sets.difference(few, b),
                sets.union(few, tf.sparse.from_dense(b)),
                sets.union([["b", "a"]], [["c", "a"]]),
                sets.intersection([[[1, 2], [3, 4]]], [[[1, 1], [5, 5]]]),
                sets.intersection([[1]], [[2]]),
                sets.union(tf.zeros([0, 2], tf.int32), tf.zeros([0, 3], tf.int32)),
            ],
        ),
        sets.size(few),
        sets.size(unordered, validate_indices=False),
        sets.size(tf.SparseTensor(np.zeros((0, 2), "int64"), np.zeros(0, "int32"), [3, 2])),
    ]


@manner
def what_sets_refuse(tf: Any) -> Any:
    sets, invalid = tf.sets, tf.errors.InvalidArgumentError
    unordered = tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [1, 2])
    return [
        refused(lambda: sets.size(tf.constant([[1]])), TypeError),
        refused(lambda: sets.size(unordered), invalid),
        refused(lambda: sets.union([[1], [2]], [[1]]), invalid),
        refused(lambda: sets.union([1, 2], [2]), invalid),
        refused(lambda: sets.union([[1.0]], [[2.0]]), TypeError),
        refused(lambda: sets.union([[1]], tf.constant([[1]], tf.int64)), TypeError),
    ]


@manner
def sparse_tensors_are_joined(tf: Any) -> Any:
    a = tf.SparseTensor([[0, 2], [1, 0]], [1, 2], [2, 3])
    b = tf.SparseTensor([[0, 1], [1, 2]], [3, 4], [2, 4])
    concat, invalid = tf.sparse.concat, tf.errors.InvalidArgumentError
    one = tf.SparseTensor([[0, 0]], ["a"], [1, 3])
    return [
        sparse_parts(concat(1, [a, b])),
        sparse_parts(concat(-1, [b, a])),
        sparse_parts(concat(0, [a, b], expand_nonconcat_dims=True)),
        sparse_parts(concat(0, [one, one])),
        refused(lambda: concat(0, [a, b]), invalid),
        refused(lambda: concat(5, [a, a]), invalid),
        refused(lambda: concat(0, [a, tf.ones([2, 3], tf.int32)]), TypeError),
        refused(lambda: concat(0, [a, tf.SparseTensor([[0, 0]], [1.0], [2, 3])]), invalid),
    ]


@manner
def sparse_tensors_are_added(tf: Any) -> Any:
    a = tf.SparseTensor([[0, 2], [1, 0]], [1.0, 2.0], [2, 3])
    b = tf.SparseTensor([[0, 2], [1, 1]], [-1.0, 0.05], [2, 3])
    add, invalid = tf.sparse.add, tf.errors.InvalidArgumentError
    v, w, dense = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([v, w, dense])
        few = tf.SparseTensor(a.indices, v, [2, 3])
        y = add(few, tf.SparseTensor(b.indices, w, [2, 3])).values * [1.0, 2.0, 3.0]
        z = add(few, dense) * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return [
        sparse_parts(add(a, b)),
        sparse_parts(add(a, b, threshold=0.1)),
        add(a, tf.ones([2, 3])),
        add(tf.ones([2, 3]), a),
        *tape.gradient(y, [v, w]),
        *tape.gradient(z, [v, dense]),
        refused(lambda: add(tf.ones([2]), tf.ones([2])), TypeError),
        refused(lambda: add(a, tf.ones([2, 2])), invalid),
        refused(lambda: add(a, tf.SparseTensor([[0, 0]], [1.0], [2, 4])), invalid),
        refused(lambda: add(a, tf.ones([2, 3], tf.int32)), invalid),
    ]


@manner
def sparse_tensors_are_cut_and_mapped(tf: Any) -> Any:
    a = tf.SparseTensor([[0, 1], [1, 2]], [3, 4], [2, 4])
    b = tf.SparseTensor([[0, 1], [1, 3]], [3, 4], [2, 4])
    return [
        sparse_parts(tf.sparse.slice(a, [0, 1], [2, 2])),
        sparse_parts(tf.sparse.slice(a, [1, 0], [5, 5])),
        sparse_parts(tf.sparse.map_values(lambda x: x * 2, a)),
        sparse_parts(tf.sparse.map_values(tf.add, a, 5)),
        sparse_parts(tf.sparse.map_values(tf.add, a, a)),
        refused(lambda: tf.sparse.map_values(tf.add, a, b), tf.errors.InvalidArgumentError),
        refused(lambda: tf.sparse.slice(a, [0], [1]), tf.errors.InvalidArgumentError),
    ]


@manner
def sparse_tensors_have_other_axes(tf: Any) -> Any:
    a = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [-5, -3, 4], [3, 3])
    b = tf.SparseTensor([[0, 0, 1], [0, 2, 0]], ["x", "y"], [1, 3, 2])
    few, invalid = tf.sparse, tf.errors.InvalidArgumentError
    return [
        sparse_parts(few.transpose(a)),
        sparse_parts(few.transpose(b, perm=[2, 0, 1])),
        sparse_parts(few.reshape(a, [9])),
        sparse_parts(few.reshape(b, [-1, 1])),
        sparse_parts(few.expand_dims(a, 0)),
        sparse_parts(few.expand_dims(a)),
        sparse_parts(few.expand_dims(b, -2)),
        sparse_parts(few.retain(a, [True, False, True])),
        refused(lambda: few.transpose(a, [0]), ValueError),
        refused(lambda: few.reshape(a, [4]), invalid, ValueError),
    ]


@manner
def sparse_tensors_are_reduced(tf: Any) -> Any:
    v = tf.constant([-5.0, -3.0, 4.0])
    few = tf.sparse
    with tf.GradientTape() as tape:
        tape.watch(v)
        a = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], v, [3, 3])
        y = few.reduce_sum(a, 1) * [1.0, 2.0, 3.0]
    none = tf.SparseTensor(np.zeros((0, 2), "int64"), v[:0], [2, 2])
    return [
        few.reduce_max(a),
        few.reduce_max(a, axis=1),
        few.reduce_max(a, axis=[0], keepdims=True),
        few.reduce_sum(a),
        few.reduce_sum(a, [0, 1], keepdims=True),
        few.reduce_sum(a, -1),
        few.reduce_sum(none),
        few.reduce_sum(none, 0),
        sparse_parts(few.reduce_sum(a, 1, output_is_sparse=True)),
        tape.gradient(y, v),
        refused(lambda: few.reduce_sum(a, 3), tf.errors.InvalidArgumentError),
    ]


@manner
def sparse_tensors_are_arguments_of_functions(tf: Any) -> Any:
    f = tf.function(lambda x, y: tf.sparse.sparse_dense_matmul(x, y))
    a = tf.SparseTensor([[0, 2], [1, 0]], [1.0, 2.0], [2, 3])
    return f(a, tf.ones([3, 2]))
