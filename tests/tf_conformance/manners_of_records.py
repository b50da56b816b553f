"""How records of sequences, binary files and specs of datasets answer."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from manner_programs import manner, refused


def sequence(tf: Any, count: int, missing: bool = False) -> bytes:
    """A record with so many steps."""
    train = tf.train

    def numbers(values: Any) -> Any:
        return train.Feature(int64_list=train.Int64List(value=values))

    def floats(values: Any) -> Any:
        return train.Feature(float_list=train.FloatList(value=values))

    words = train.Feature(bytes_list=train.BytesList(value=[b"a"] * count))
    context = train.Features(feature={"id": numbers([count]), "words": words})
    steps = range(count)
    lists = {"x": train.FeatureList(feature=[floats([n, n + 0.5]) for n in steps])}
    if not missing:
        lists["w"] = train.FeatureList(feature=[numbers(range(n)) for n in steps])
    return bytes(
        train.SequenceExample(
            context=context, feature_lists=train.FeatureLists(feature_list=lists)
        ).SerializeToString()
    )


def parts(value: Any) -> Any:
    """A sparse or ragged tensor as lists."""
    if hasattr(value, "dense_shape"):
        places, sizes = value.indices, value.dense_shape
        return [[[int(n) for n in row] for row in places], [*map(int, sizes)], texts(value.values)]
    return value.to_list() if hasattr(value, "to_list") else value


def texts(values: Any) -> Any:
    """Strings as a list; others as they are."""
    return [str(v) for v in values.numpy().tolist()]


@manner
def records_of_sequences_are_parsed(tf: Any) -> Any:
    io = tf.io
    context = {"id": io.FixedLenFeature([], tf.int64), "words": io.VarLenFeature(tf.string)}
    steps = {"x": io.FixedLenSequenceFeature([2], tf.float32), "w": io.VarLenFeature(tf.int64)}
    alone = io.parse_single_sequence_example(sequence(tf, 3), context, steps)
    several = io.parse_sequence_example([sequence(tf, 3), sequence(tf, 1)], context, steps)
    ragged = io.parse_single_sequence_example(
        sequence(tf, 3), sequence_features={"w": io.RaggedFeature(tf.int64)}
    )
    return [
        [{key: parts(value) for key, value in group.items()} for group in found]
        for found in (alone, several, ragged)
    ]


@manner
def records_of_sequences_lack_features(tf: Any) -> Any:
    io, record = tf.io, sequence(tf, 2, missing=True)
    needed = {"w": io.FixedLenSequenceFeature([], tf.int64)}
    allowed = {"w": io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    wrong = {"x": io.FixedLenSequenceFeature([3], tf.float32)}
    error = tf.errors.InvalidArgumentError
    return [
        io.parse_single_sequence_example(record, None, allowed)[1],
        *io.parse_sequence_example([record], None, allowed)[1:],
        refused(lambda: io.parse_single_sequence_example(record, None, needed), error),
        refused(lambda: io.parse_sequence_example([record], None, needed), error),
        refused(lambda: io.parse_single_sequence_example(record, None, wrong), error),
        refused(lambda: io.parse_single_sequence_example(b"\x0a\xff", None, allowed), error),
    ]


@manner
def records_of_one_length(tf: Any) -> Any:
    def read(*args: Any, **options: Any) -> Any:
        data = tf.data.FixedLengthRecordDataset(path, *args, **options)
        return [str(record.numpy()) for record in data]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        Path(path).write_bytes(b"HHaabbccF")
        return [
            read(2, 2, 1),
            read(3),
            read(3, footer_bytes=3, num_parallel_reads=2),
            refused(lambda: read(4), tf.errors.InvalidArgumentError),
        ]


@manner
def elements_of_datasets_at_indices(tf: Any) -> Any:
    data = tf.data.Dataset.range(5)
    at, error = tf.data.experimental.at, tf.errors.OutOfRangeError
    return [
        at(data, 3),
        at(data.batch(2), 2),
        at(data.map(lambda x: (x, x * 2)), 1),
        refused(lambda: at(data, 5), error),
        refused(lambda: at(data, -1), error),
    ]


@manner
def specs_of_datasets(tf: Any) -> Any:
    data, spec = tf.data.Dataset.range(5), tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    return [
        spec == tf.data.DatasetSpec.from_value(data),
        spec.is_compatible_with(data),
        spec.is_compatible_with(data.batch(2)),
        spec.element_spec == data.element_spec,
        spec == data.window(2).element_spec,
    ]


@manner
def snapshots_of_datasets(tf: Any) -> Any:
    calls = []

    def made(x: Any) -> Any:
        calls.append(1)
        return x * 2

    with tempfile.TemporaryDirectory() as folder:
        data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(made, [x], tf.int64))
        kept = data.snapshot(os.path.join(folder, "kept"))
        other = data.take(2).apply(tf.data.experimental.snapshot(os.path.join(folder, "kept")))
        first = [int(x) for x in kept]
        again = [int(x) for x in kept]
        return [first, again, [int(x) for x in other], len(calls)]


@manner
def the_best_boxes_of_several_classes(tf: Any) -> Any:
    boxes = tf.constant([[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0, 0.9]], [[0.5, 0.5, 1.5, 1.5]]])
    scores = tf.constant([[0.9, 0.1], [0.8, 0.7], [0.3, 0.6]])
    several = tf.stack([boxes, boxes[::-1]]), tf.stack([scores, scores * 0.5])
    of_classes = tf.concat([boxes, boxes * 0.5], 1)[None], scores[None]
    combined = tf.image.combined_non_max_suppression
    return [
        list(found)
        for found in (
            combined(*several, 2, 4),
            combined(*several, 2, 10, score_threshold=0.2, pad_per_class=True, clip_boxes=False),
            combined(*of_classes, 3, 3, iou_threshold=0.95),
        )
    ]


@manner
def datasets_of_experimental_names(tf: Any) -> Any:
    experimental, train = tf.data.experimental, tf.train
    feature = train.Feature(int64_list=train.Int64List(value=[3]))
    example = train.Example(features=train.Features(feature={"x": feature})).SerializeToString()
    data = tf.data.Dataset.from_tensor_slices([5, 6])
    parsed = tf.data.Dataset.from_tensor_slices([example] * 3).batch(2)
    features = {"x": tf.io.FixedLenFeature([], tf.int64)}
    return [
        list(data.apply(experimental.enumerate_dataset(start=1))),
        list(parsed.apply(experimental.parse_example_dataset(features))),
        experimental.get_structure(data) == data.element_spec,
        list(data.apply(experimental.copy_to_device("/cpu:0"))),
        tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]),
        tf.ragged.row_splits_to_segment_ids(tf.constant([0, 1]), out_type=tf.int64),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2], 4),
        tf.ragged.segment_ids_to_row_splits(tf.constant([0, 0, 2])),
        tf.math.special.bessel_i0e([0.5]),
    ]
