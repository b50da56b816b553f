"""Records of sequences of features as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType
from samegrad._core import InvalidArgumentError
from samegrad._tensor.host_values import on_host
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import convert_to_tensor
from samegrad._tensor.text import leaf_of, text_of
from samegrad.io import _parsing as parsing
from samegrad.io._example import Example, Feature, Features, SequenceExample

__all__ = ["parse_sequence_example", "parse_single_sequence_example"]

_Steps = list[np.ndarray[Any, Any]]


@on_host()
def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse the features of one `tf.train.SequenceExample`.

    Args:
        serialized: A string scalar: the bytes of the record.
        context_features: Features of the whole record by name, as `parse_single_example` takes.
        sequence_features: Features of each step by name: `FixedLenSequenceFeature` becomes a tensor
            [steps, ...], `VarLenFeature` a sparse tensor, `RaggedFeature` a ragged one.
        example_name: Ignored.
        name: Ignored.

    Returns:
        A pair of dicts: the features of the record, and those of its steps.

    Raises:
        InvalidArgumentError: serialized is not a record; a feature is not there, of another dtype
            or size.

    Example:
        >>> import samegrad as tf
        >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        >>> steps = tf.train.FeatureLists(
        ...     feature_list={"x": tf.train.FeatureList(feature=[step, step])})
        >>> data = tf.train.SequenceExample(feature_lists=steps).SerializeToString()
        >>> _, parsed = tf.io.parse_single_sequence_example(
        ...     data, sequence_features={"x": tf.io.FixedLenSequenceFeature([], tf.int64)})
        >>> parsed["x"].numpy()
        array([3, 3])
    """
    who = "tf.io.parse_single_sequence_example"
    text = text_of(serialized, who, "serialized must be the bytes of a record")
    if text._rank:
        raise ValueError(
            f"[{who}] one record is needed: got shape {text._shape}; see "
            "tf.io.parse_sequence_example."
        )
    record = parsing._record(SequenceExample, text, who)
    context = _context([record], context_features, who, batched=False)
    found = {}
    for key, spec in (sequence_features or {}).items():
        kind = parsing._kind(spec, key, who)
        steps = _steps(record, key, spec, kind, who)
        if isinstance(spec, parsing.FixedLenSequenceFeature):
            found[key] = leaf_of(_dense([steps], spec, kind)[0])
        elif isinstance(spec, parsing.RaggedFeature):
            found[key] = RaggedTensor(leaf_of(_joined(steps, kind)), [*map(len, steps)])
        else:
            numbers, places = _places(steps)
            sizes = [len(steps), max(map(len, steps), default=0)]
            rows = np.column_stack([numbers, places])
            found[key] = SparseTensor(rows, leaf_of(_joined(steps, kind)), sizes)
    return context, found


@on_host()
def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parse the features of several `tf.train.SequenceExample` records into batches.

    Args:
        serialized: A string vector: the bytes of the records.
        context_features: Features of whole records by name, as `parse_example` takes.
        sequence_features: Features of each step by name: `FixedLenSequenceFeature` becomes a tensor
            [records, longest, ...], filled up with zeros or "", `VarLenFeature` a sparse tensor.
        example_names: Ignored.
        name: Ignored.

    Returns:
        Three dicts: the features of the records, those of their steps, and the number of steps
        [records], int64, of those that became tensors.

    Raises:
        InvalidArgumentError: As `parse_single_sequence_example`; the message says which record.
        ValueError: `serialized` is not a vector, or a feature of steps is ragged.

    Example:
        >>> import samegrad as tf
        >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        >>> data = [tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(
        ...     feature_list={"x": tf.train.FeatureList(feature=[step] * n)})).SerializeToString()
        ...     for n in (2, 1)]
        >>> _, parsed, lengths = tf.io.parse_sequence_example(
        ...     data, sequence_features={"x": tf.io.FixedLenSequenceFeature([], tf.int64)})
        >>> parsed["x"].numpy().tolist(), lengths["x"].numpy()
        ([[3, 3], [3, 0]], array([2, 1]))
    """
    who = "tf.io.parse_sequence_example"
    text = text_of(serialized, who, "serialized must be the bytes of records")
    if text._rank != 1:
        raise ValueError(f"[{who}] records must be a vector: got shape {text._shape}.")
    records = [
        parsing._record(SequenceExample, row, f"{who}, record {n}") for n, row in enumerate(text)
    ]
    context = _context(records, context_features, who, batched=True)
    found, lengths = {}, {}
    for key, spec in (sequence_features or {}).items():
        kind = parsing._kind(spec, key, who)
        rows = [_steps(record, key, spec, kind, f"{who}, record {n}")
                for n, record in enumerate(records)]  # fmt: skip
        if isinstance(spec, parsing.FixedLenSequenceFeature):
            found[key] = leaf_of(_dense(rows, spec, kind))
            lengths[key] = convert_to_tensor(np.array([*map(len, rows)], np.int64))
        elif isinstance(spec, parsing.RaggedFeature):
            raise ValueError(
                f"[{who}] ragged tensors have one ragged axis here: got {key!r}, whose steps and "
                "values both vary; use VarLenFeature, or parse_single_sequence_example."
            )
        else:
            found[key] = _sparse(rows, kind)
    return context, found, lengths


def _context(
    records: list[SequenceExample], specs: Mapping[str, Any] | None, who: str, batched: bool
) -> dict[str, Any]:
    examples = [Example(record.context) for record in records]
    found = {}
    for key, spec in (specs or {}).items():
        kind = parsing._kind(spec, key, who)
        found[key] = (
            parsing._several(examples, key, spec, kind, who)
            if batched
            else parsing._single(examples[0], key, spec, kind, who)
        )
    return found


def _steps(record: SequenceExample, key: str, spec: Any, kind: DType, who: str) -> _Steps:
    """Return the values of each step of a feature."""
    dense = isinstance(spec, parsing.FixedLenSequenceFeature)
    name = getattr(spec, "value_key", None) or key
    listed = record.feature_lists.feature_list.get(name)
    if listed is None and dense and not spec.allow_missing:
        raise InvalidArgumentError(
            f"[{who}] a list of features must be there: got none of the name {name!r}; pass "
            "allow_missing=True."
        )
    each = parsing.FixedLenFeature(spec.shape, spec.dtype) if dense else None
    steps: list[Feature] = [] if listed is None else listed.feature
    found = []
    for number, feature in enumerate(steps):
        example = Example(Features(feature={name: feature}))
        of_step = f"{who}, step {number} of {name!r}"
        if each is not None:
            found.append(np.asarray(parsing._values(example, name, each, kind, of_step)))
        else:
            found.append(parsing._all_values(example, name, kind, of_step))
    return found


def _joined(steps: _Steps, kind: DType) -> np.ndarray[Any, Any]:
    return np.concatenate([parsing._array([], kind), *steps])


def _dense(rows: list[_Steps], spec: Any, kind: DType) -> np.ndarray[Any, Any]:
    tail = tuple(np.atleast_1d(np.asarray(spec.shape, int)).tolist())
    shape = (len(rows), max(map(len, rows), default=0), *tail)
    empty = parsing._array([], kind)
    made = np.full(shape, b"" if empty.dtype == object else 0, empty.dtype)
    for number, steps in enumerate(rows):
        for step, values in enumerate(steps):
            made[number, step] = values if values.ndim else values[()]
    return made


def _places(steps: _Steps) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the number of the step and the position in it of each value."""
    numbers = np.repeat(np.arange(len(steps)), [*map(len, steps)])
    places = [np.arange(len(values)) for values in steps]
    return numbers, np.concatenate([np.zeros(0, np.int64), *places])


def _sparse(rows: list[_Steps], kind: DType) -> SparseTensor:
    indices = []
    for number, steps in enumerate(rows):
        at, places = _places(steps)
        indices.append(np.column_stack([np.full(len(at), number), at, places]))
    flat = [values for steps in rows for values in steps]
    sizes = [len(rows), max(map(len, rows), default=0), max(map(len, flat), default=0)]
    joined = np.concatenate([np.zeros((0, 3), np.int64), *indices])
    return SparseTensor(joined, leaf_of(_joined(flat, kind)), sizes)
