"""How functions of `tf.compat` and `tf.compat.v1` answer in eager programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from manner_programs import manner, refused


@manner
def reductions_of_version_1(tf: Any) -> Any:
    v1, x = tf.compat.v1, tf.constant([[1.0, 4.0, 2.0], [8.0, 3.0, 0.0]])
    return [
        v1.reduce_sum(x, 1, True),
        v1.reduce_mean(x, reduction_indices=0),
        v1.math.reduce_max(x, [0], keep_dims=True),
        v1.reduce_all(x > 0.0, keepdims=False),
        v1.argmax(x, dimension=1),
        v1.argmin(x, 0, "name", output_type=tf.int32),
        v1.count_nonzero(x, keep_dims=True),
        v1.norm(x, axis=1, keep_dims=True),
        v1.nn.softmax(x, dim=0),
        v1.log_softmax(x) if hasattr(v1, "log_softmax") else v1.nn.log_softmax(x),
        refused(lambda: v1.reduce_sum(x, axis=0, reduction_indices=1), TypeError, ValueError),
    ]


@manner
def shapes_of_version_1(tf: Any) -> Any:
    v1, x = tf.compat.v1, tf.reshape(tf.range(6), [1, 2, 3])
    return [
        v1.expand_dims(x, dim=0).shape.as_list(),
        v1.squeeze(x, squeeze_dims=[0]),
        v1.transpose(x, [2, 0, 1], "name"),
        v1.pad(x[0], [[0, 1], [1, 0]], "CONSTANT", "name", 7),
        v1.shape(x, "name", tf.int64),
        v1.size(x),
        v1.gather(x[0], [1], axis=1),
        v1.gather(x[0], [1, 0], None, "name"),
        v1.boolean_mask(x[0], [True, False], "name"),
        v1.zeros_like(x, tf.float32),
        v1.ones_like(tensor=x),
        v1.where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]),
        v1.where([[True, False]]),
        v1.space_to_batch(tf.ones([1, 2, 2, 1]), [[0, 0], [0, 0]], 2),
        v1.reverse_sequence(x[0], [2, 3], seq_dim=1, batch_dim=0),
        v1.matrix_band_part([[1.0, 2.0], [3.0, 4.0]], 0, 0),
        v1.lin_space(0.0, 1.0, 3),
    ]


@manner
def numbers_of_version_1(tf: Any) -> Any:
    v1 = tf.compat.v1
    v = tf.Variable([1.0, 2.0])
    v1.assign(v, [3.0, 4.0])
    v1.assign_add(v, [1.0, 1.0])
    v1.assign_sub(v, [0.5, 0.0])
    step = v1.train.get_or_create_global_step()
    return [
        v1.div([7, -7], 2),
        v1.div([7.0], 2.0),
        v1.to_float([1, 2]),
        v1.to_int32([1.7, -1.7]),
        v1.to_int64([1]),
        v1.to_double([1]),
        v1.log([1.0, 2.0]),
        v1.floor_div([7], [2]),
        v1.segment_sum([1, 2, 3], [0, 0, 1]),
        v.numpy(),
        step.numpy(),
        v1.random_uniform([2, 3]).shape.as_list(),
        v1.random.poisson([1.0, 2.0], [4]).shape.as_list(),
        v1.cond(tf.constant(True), fn1=lambda: 1.0, fn2=lambda: 2.0),
        v1.executing_eagerly(),
    ]


@manner
def layers_of_version_1(tf: Any) -> Any:
    v1 = tf.compat.v1
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    kernel = tf.ones([2, 2, 1, 1])
    logits, labels = tf.constant([[1.0, 2.0]]), tf.constant([[0.0, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch([logits, labels])
        losses = v1.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    gradients = tape.gradient(losses, [logits, labels])
    return [
        v1.nn.conv2d(x, kernel, [1, 2, 2, 1], "VALID"),
        v1.nn.conv2d(x, filter=kernel, strides=1, padding="SAME", data_format="NHWC"),
        v1.nn.max_pool(value=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        v1.nn.dropout(x, keep_prob=1.0),
        refused(lambda: v1.nn.dropout(x), ValueError),
        v1.nn.moments(x, [0, 1, 2], keep_dims=True),
        v1.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), [1, 0]),
        losses,
        gradients[0],
        gradients[1] is None,
        v1.nn.in_top_k([[0.1, 0.9]], [1], 1),
        v1.nn.crelu(tf.constant([-1.0, 2.0])),
        v1.nn.relu([-1.0, 2.0]),
    ]


@manner
def settings_of_version_1(tf: Any) -> Any:
    v1 = tf.compat.v1
    v1.enable_eager_execution()
    v1.enable_v2_behavior()
    v1.enable_resource_variables()
    config = v1.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    session = v1.Session(config=config)
    session.close()
    level = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)
    found = v1.logging.get_verbosity()
    v1.logging.set_verbosity(level)
    return [found, v1.logging.INFO, v1.logging.WARN, config.gpu_options.allow_growth]


@manner
def files_and_datasets_of_version_1(tf: Any) -> Any:
    v1 = tf.compat.v1
    data = tf.data.Dataset.range(5).map(lambda x: (x, tf.cast(x, tf.float32)))
    iterator = v1.data.make_one_shot_iterator(data)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a", "b")
        v1.gfile.MakeDirs(path)
        Path(path, "c.txt").write_text("text")
        listed = v1.gfile.ListDirectory(path), v1.gfile.Exists(path), v1.gfile.IsDirectory(path)
        with v1.gfile.Open(os.path.join(path, "c.txt"), "r") as file:
            text = file.read()
        v1.gfile.DeleteRecursively(path)
        return [
            iterator.get_next(),
            [str(kind.name) for kind in v1.data.get_output_types(data)],
            [shape.as_list() for shape in v1.data.get_output_shapes(data)],
            list(listed),
            text,
            v1.gfile.Exists(path),
        ]


@manner
def strings_of_programs_for_both_versions(tf: Any) -> Any:
    compat = tf.compat
    return [
        str(compat.as_bytes("ä")),
        compat.as_text(b"a"),
        compat.as_str(b"b"),
        compat.as_str_any(3.5),
        compat.path_to_str(Path("x")),
        isinstance(1, compat.integral_types),
        isinstance(1.5, compat.real_types),
        compat.forward_compatible(2019, 1, 1),
        compat.dimension_value(tf.ones([2]).shape[0]),
        compat.v2.reduce_sum([1, 2]),
        refused(lambda: compat.as_bytes(1), TypeError),
    ]


@manner
def rows_of_variables_of_version_1(tf: Any) -> Any:
    v1, v = tf.compat.v1, tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    answers = []
    for how in ("add", "sub", "mul", "div", "min", "max", "update"):
        change = getattr(v1, f"scatter_{how}")
        answers += [
            change(v, [0, 2], [[2.0, 3.0], [4.0, 5.0]]).numpy(),
            change(v, [1], 2.0).numpy(),
            change(ref=v, indices=1, updates=[2.0, 1.0]).numpy(),
        ]
    for how in ("add", "sub", "update"):
        answers.append(getattr(v1, f"scatter_nd_{how}")(v, [[0, 1], [2, 0]], [7.0, 8.0]).numpy())
    batches = tf.Variable([[1, 2], [3, 4]])
    return [
        *answers,
        v1.batch_scatter_update(batches, [[0], [1]], [[8], [9]]).numpy(),
        v1.batch_gather([[1, 2], [3, 4]], [[1], [0]]),
        refused(lambda: v1.scatter_add(v, [9], 1.0), tf.errors.OpError),
    ]


@manner
def values_of_version_1(tf: Any) -> Any:
    v1 = tf.compat.v1
    return [
        v1.sparse_to_dense([[0, 1], [1, 0]], [2, 3], [5, 6], -1),
        v1.sparse_to_dense(2, [4], 1.5),
        refused(lambda: v1.sparse_to_dense([5], [4], 1), tf.errors.OpError),
        v1.clip_by_average_norm([[3.0, 4.0], [1.0, 0.0]], 1.0),
        v1.clip_by_average_norm([3.0, 4.0], 9.0),
        v1.multinomial([[0.0, -99.0]], 3, output_dtype=tf.int32),
        v1.random.multinomial([[0.0, 0.0]], 3).shape.as_list(),
        list(v1.SparseTensorValue([[0]], [1], [2])),
        v1.Print(tf.constant(1.0), [tf.constant([1, 2])], "message"),
        v1.sparse_segment_sum([[1, 2], [3, 4]], [0, 1], [0, 0]),
        v1.sparse.segment_mean([[1.0, 2.0], [3.0, 4.0]], [0, 1], [0, 2], None, 4),
    ]


@manner
def sizes_of_version_1(tf: Any) -> Any:
    size = tf.compat.v1.Dimension
    three, none = size(3), size(None)
    sums = [three + 4, 7 - three, three * size(2), 7 // three, three % 2, 7 % three, none + 1]
    compared = [three == 3, three != none, three < 4, none >= none, three == "3", 4 > three]  # noqa: SIM300
    shape = tf.TensorShape([three, none])
    return [
        *map(repr, [three, none, *sums]), str(three), str(none), *compared, bool(size(0)),
        int(three), list(range(three)), shape.as_list(), [repr(n) for n in shape.dims],
        shape.dims[0].value, tf.zeros([size(2), 1]), repr(three.merge_with(None)),
        three.is_compatible_with(4), tf.compat.dimension_value(three),
        repr(tf.compat.dimension_at_index(shape, 0)),
        [refused(f, TypeError) for f in (
            lambda: size("3"), lambda: size(2.5), lambda: three / 2, lambda: 7 / three,
            lambda: three + 1.5, lambda: int(none), lambda: hash(three))],
        [refused(f, ValueError) for f in (
            lambda: size(-1), lambda: three - 4, lambda: three.merge_with(4))],
    ]  # fmt: skip
