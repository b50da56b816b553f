"""How strategies and datasets answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


def mirrored(tf: Any, replicas: int = 2) -> Any:
    """A strategy of so many replicas, of either library."""
    if not hasattr(tf, "raw_ops"):
        return tf.distribute.MirroredStrategy(replicas=replicas)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def number(tf: Any) -> Any:
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


@manner
def local_results_of_a_dict(tf: Any) -> Any:
    s = mirrored(tf)
    return s.experimental_local_results(s.run(lambda: {"a": number(tf), "b": number(tf) * 2.0}))


@manner
def local_results_of_nested_structures(tf: Any) -> Any:
    s = mirrored(tf)
    return s.experimental_local_results(
        s.run(lambda: (number(tf), [number(tf), {"x": number(tf)}]))
    )


@manner
def local_results_of_a_list(tf: Any) -> Any:
    s = mirrored(tf)
    return s.experimental_local_results(s.run(lambda: [number(tf), number(tf)]))


@manner
def local_results_of_equal_numbers(tf: Any) -> Any:
    s = mirrored(tf)
    return s.experimental_local_results(s.run(lambda: {"a": number(tf), "n": 7}))


@manner
def local_results_of_one_value(tf: Any) -> Any:
    s = mirrored(tf)
    return [
        s.experimental_local_results(5),
        s.experimental_local_results(s.run(lambda: number(tf))),
    ]


@manner
def local_results_of_plain_structures(tf: Any) -> Any:
    s = mirrored(tf)
    return [s.experimental_local_results({"a": 1}), s.experimental_local_results((1, 2))]


@manner
def local_results_of_one_replica(tf: Any) -> Any:
    s = mirrored(tf, 1)
    return s.experimental_local_results(s.run(lambda: {"a": number(tf)}))


@manner
def local_results_of_the_default_strategy(tf: Any) -> Any:
    s = tf.distribute.get_strategy()
    return [
        s.experimental_local_results(s.run(lambda: {"a": number(tf)})),
        s.experimental_local_results(3.0),
    ]


@manner
def sums_of_all_replicas_in_a_dict(tf: Any) -> Any:
    s = mirrored(tf)

    def step() -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", {"a": tf.constant(1.0)})

    return s.experimental_local_results(s.run(step))


@manner
def a_captured_value_is_gathered(tf: Any) -> Any:
    s = mirrored(tf)
    parts = s.run(lambda: tf.reshape(number(tf), [1]))
    return tf.function(lambda: s.gather(parts, axis=0))()


@manner
def an_argument_is_gathered(tf: Any) -> Any:
    s = mirrored(tf)
    parts = s.run(lambda: tf.reshape(number(tf), [1]))
    return tf.function(lambda p: s.gather(p, axis=0))(parts)


@manner
def parts_differ_off_the_first_axis(tf: Any) -> Any:
    s = mirrored(tf)
    parts = s.experimental_distribute_values_from_function(
        lambda c: tf.ones([2, 1 + c.replica_id_in_sync_group])
    )
    return s.experimental_local_results(s.run(tf.reduce_sum, (parts,)))


@manner
def input_contexts_are_shown(tf: Any) -> Any:
    c = tf.distribute.InputContext(
        num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4
    )
    return str(c)


@manner
def maps_to_lists_are_tuples(tf: Any) -> Any:
    ds = tf.data.Dataset.from_tensor_slices([1, 2]).map(lambda x: [x, x + 1])
    return list(ds)


@manner
def paddings_are_whole(tf: Any) -> Any:
    ds = tf.data.Dataset.from_tensor_slices([[1, 2]])
    return refused(lambda: list(ds.padded_batch(1, padded_shapes=[-2])), ValueError)


def _range(tf: Any, n: int) -> Any:
    return tf.data.Dataset.range(n)


DATASETS = {
    "interleave": lambda tf: _range(tf, 3).interleave(
        lambda x: _range(tf, 2).map(lambda y: x * 10 + y), cycle_length=2
    ),
    "flat_map": lambda tf: _range(tf, 3).flat_map(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(2)
    ),
    "window": lambda tf: (
        _range(tf, 5).window(2, drop_remainder=True).flat_map(lambda w: w.batch(2))
    ),
    "scan": lambda tf: _range(tf, 4).scan(np.int64(0), lambda s, x: (s + x, s + x)),
    "take_while": lambda tf: _range(tf, 5).take_while(lambda x: x < 3),
    "group_by_window": lambda tf: _range(tf, 6).group_by_window(
        lambda x: x % 2, lambda k, d: d.batch(3), 3
    ),
    "bucket": lambda tf: _range(tf, 4).bucket_by_sequence_length(
        lambda x: tf.cast(x, tf.int32), [2], [2, 2]
    ),
    "rebatch": lambda tf: _range(tf, 6).batch(4).rebatch(3),
    "choose": lambda tf: tf.data.Dataset.choose_from_datasets(
        [_range(tf, 2), _range(tf, 2)], tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0]))
    ),
    "sample_one": lambda tf: tf.data.Dataset.sample_from_datasets([_range(tf, 3)], [1.0]),
    "unique": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2, 1, 3]).unique(),
    "ignore_errors": lambda tf: _range(tf, 3).ignore_errors(),
    "options": lambda tf: _range(tf, 3).with_options(tf.data.Options()),
    "zip_datasets": lambda tf: tf.data.Dataset.zip(_range(tf, 2), _range(tf, 2)),
    "zip_tuple": lambda tf: tf.data.Dataset.zip((_range(tf, 2), _range(tf, 2))),
    "zip_keyword": lambda tf: tf.data.Dataset.zip(datasets=(_range(tf, 2), _range(tf, 2))),
    "from_generator_types": lambda tf: tf.data.Dataset.from_generator(
        lambda: iter([1, 2]), output_types=tf.int32, output_shapes=[]
    ),
    "prefetch_none": lambda tf: _range(tf, 2).prefetch(None),
    "autotune": lambda tf: (
        _range(tf, 2)
        .map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    ),
    "enumerate": lambda tf: tf.data.Dataset.from_tensor_slices([5, 6]).enumerate(start=3),
    "concatenate": lambda tf: _range(tf, 2).concatenate(_range(tf, 1)),
    "filter": lambda tf: _range(tf, 5).filter(lambda x: x % 2 == 0),
    "unbatch": lambda tf: _range(tf, 4).batch(2).unbatch(),
    "shard": lambda tf: _range(tf, 5).shard(2, 1),
    "cache": lambda tf: _range(tf, 2).cache(),
    "skip_take_repeat": lambda tf: _range(tf, 5).skip(1).take(2).repeat(2),
    "apply": lambda tf: _range(tf, 2).apply(lambda d: d.map(lambda x: x + 1)),
    "none_component": lambda tf: _range(tf, 1).map(lambda x: (x, None)),
}


def _data(name: str) -> Any:
    def program(tf: Any) -> Any:
        return list(DATASETS[name](tf))

    program.__name__ = f"data_{name}"
    return program


for _name in DATASETS:
    manner(_data(_name))


@manner
def data_reduce(tf: Any) -> Any:
    return _range(tf, 4).reduce(np.int64(0), lambda s, x: s + x)


@manner
def data_single_element(tf: Any) -> Any:
    return tf.data.Dataset.from_tensors(5).get_single_element()


@manner
def data_random_and_rejection(tf: Any) -> Any:
    one = list(tf.data.Dataset.random(seed=1).take(2))
    two = list(tf.data.Dataset.random(seed=1).take(2))
    return [bool(one[0] == two[0]), bool(one[0] != one[1])]


@manner
def data_spec_of_an_empty_map(tf: Any) -> Any:
    ds = tf.data.Dataset.from_tensor_slices(np.zeros((0, 2), "float32")).map(lambda x: (x, 1))
    specs = ds.element_spec
    return [specs[0].shape.as_list(), specs[0].dtype.name, specs[1].dtype.name, len(list(ds))]


@manner
def data_specs_without_elements(tf: Any) -> Any:
    none = tf.data.Dataset.from_tensor_slices((np.zeros((0, 2), "float32"), np.zeros(0, "int64")))

    def known(ds: Any) -> Any:
        return [
            [spec.dtype.name, spec.shape.as_list()] for spec in tf.nest.flatten(ds.element_spec)
        ]

    return [
        known(none.map(lambda x, n: {"a": x[None], "b": tf.cast(n, tf.float32)})),
        known(none.batch(4).map(lambda x, n: (tf.reduce_sum(x), tf.concat([n, n], 0)))),
        known(none.map(lambda x, n: x).map(lambda x: tf.strings.as_string(x))),
        known(none.map(lambda x, n: n).scan(np.int64(0), lambda s, n: (s + n, (n, 1.0)))),
        known(none.map(lambda x, n: n).flat_map(lambda n: tf.data.Dataset.range(n).batch(2))),
        known(_range(tf, 3).filter(lambda x: x > 5).map(lambda x: x * 2)),
        len(list(none.map(lambda x, n: x))),
    ]


@manner
def sizes_of_new_batches_are_whole(tf: Any) -> Any:
    ds = _range(tf, 6).batch(4)
    return [
        list(ds.rebatch([1, 2])),
        list(ds.rebatch(tf.constant(3, tf.int64))),
        refused(lambda: list(ds.rebatch(tf.constant(2.5))), TypeError, ValueError),
        refused(lambda: list(ds.rebatch([1, 2.5])), TypeError, ValueError),
        refused(lambda: list(ds.rebatch("2")), TypeError, ValueError),
    ]


@manner
def data_cardinality(tf: Any) -> Any:
    ds = _range(tf, 5)
    return [
        int(ds.cardinality()),
        len(ds.batch(2)),
        int(ds.repeat().cardinality()),
        int(ds.filter(lambda x: x > 1).cardinality()),
    ]


@manner
def seeds_may_be_none(tf: Any) -> Any:
    tf.random.set_seed(None)
    tf.random.set_seed(1)
    return tf.random.uniform([2]).shape.as_list()


@manner
def data_as_numpy(tf: Any) -> Any:
    return list(_range(tf, 3).as_numpy_iterator())


@manner
def data_of_files(tf: Any) -> Any:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for i in range(2):
            Path(folder, f"f{i}.txt").write_text(f"a{i}\nb{i}\n")
        with tf.io.TFRecordWriter(f"{folder}/r.rec") as writer:
            writer.write(b"x")
            writer.write(b"y")
        names = tf.data.Dataset.list_files(f"{folder}/*.txt", shuffle=False)
        kept = _range(tf, 3).cache(f"{folder}/kept")
        return [
            [Path(name.decode()).name for name in names.as_numpy_iterator()],
            [line.decode() for line in tf.data.TextLineDataset(names).as_numpy_iterator()],
            [
                record.decode()
                for record in tf.data.TFRecordDataset(f"{folder}/r.rec").as_numpy_iterator()
            ],
            list(kept),
            list(kept),
        ]


@manner
def data_without_what_fails(tf: Any) -> Any:
    def checked(x: Any) -> Any:
        return tf.debugging.check_numerics(1.0 / tf.cast(x, tf.float32), "x")

    return list(_range(tf, 3).map(checked).ignore_errors())


@manner
def programs_for_tpus_fall_back(tf: Any) -> Any:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    unnamed = [
        resolver,
        lambda: resolver(tpu=""),
        resolver.connect,
        tf.tpu.experimental.initialize_tpu_system,
        tf.tpu.experimental.shutdown_tpu_system,
        tf.distribute.TPUStrategy,
        tf.distribute.experimental.TPUStrategy,
        lambda: tf.config.experimental_connect_to_cluster(3),
    ]
    found = [refused(call, ValueError) for call in unnamed]
    found.append(refused(lambda: resolver.connect("local"), tf.errors.NotFoundError))
    kinds = (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy)
    return [found, isinstance(mirrored(tf), kinds), len(tf.config.list_logical_devices("TPU"))]
