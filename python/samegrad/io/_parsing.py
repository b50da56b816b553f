"""Records of features as tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from samegrad._base.dtypes import DType, element_type, string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.host_values import on_host
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.text import Text, leaf_of, text_of
from samegrad.io._example import Example, Feature, SequenceExample

_Record = TypeVar("_Record", Example, SequenceExample)
_KINDS = {"string": "bytes_list", "float32": "float_list", "int64": "int64_list"}


class FixedLenFeature(NamedTuple):
    """A feature with as many values in all records.

    Attributes:
        shape: Its sizes.
        dtype: `tf.string`, float32 or int64.
        default_value: Of records that lack it; None: they are refused.

    Example:
        >>> FixedLenFeature([], "int64").shape
        []
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with rows of one size, as many as a record has.

    Attributes:
        shape: The sizes of a row.
        dtype: `tf.string`, float32 or int64.
        allow_missing: Must be True: a record that lacks it has no rows.
        default_value: What shorter records of a batch are filled up with; None: zeros or "".

    Example:
        >>> FixedLenSequenceFeature([2], "float32", allow_missing=True).shape
        [2]
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which becomes a `SparseTensor`.

    Attributes:
        dtype: `tf.string`, float32 or int64.

    Example:
        >>> import samegrad as tf
        >>> VarLenFeature(tf.int64).dtype
        samegrad.int64
    """

    dtype: Any


class RaggedFeature(NamedTuple):
    """A feature with any number of values: a tensor of a record, ragged rows of several.

    Attributes:
        dtype: `tf.string`, float32 or int64.
        value_key: The name that the feature has in the record. None: the name in `features`.
        partitions: Must be empty.
        row_splits_dtype: Ignored.
        validate: Ignored.

    Example:
        >>> import samegrad as tf
        >>> RaggedFeature(tf.int64).partitions
        ()
    """

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = "int32"
    validate: bool = False


class SparseFeature(NamedTuple):
    """Two features, places and values, which become a `SparseTensor`.

    Attributes:
        index_key: The name of the feature with the places (int64).
        value_key: That of the feature with the values.
        dtype: Of the values: `tf.string`, float32 or int64.
        size: Of the axis of the places.
        already_sorted: Whether the places ascend; else they are sorted.

    Example:
        >>> import samegrad as tf
        >>> SparseFeature("places", "values", tf.float32, size=10).size
        10
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


_FEATURES = (FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature, SparseFeature)


def _kind(spec: Any, name: str, who: str) -> DType:
    if not isinstance(spec, _FEATURES):
        raise TypeError(
            f"[{who}] features are {', '.join(kind.__name__ for kind in _FEATURES)}: got "
            f"{shown(spec)} for {name!r}."
        )
    if isinstance(spec, RaggedFeature) and spec.partitions:
        raise NotImplementedError(
            f"[{who}] a RaggedFeature has one ragged axis: got partitions={shown(spec.partitions)} "
            f"for {name!r}; parse values and lengths as two features."
        )
    if isinstance(spec, SparseFeature) and not isinstance(spec.index_key, str):
        raise NotImplementedError(
            f"[{who}] a SparseFeature has one axis: got index_key={shown(spec.index_key)} for "
            f"{name!r}; parse places and values as VarLenFeatures and make a SparseTensor."
        )
    kind = element_type(spec.dtype)
    if kind.name not in _KINDS:
        raise ValueError(
            f"[{who}] features are string, float32 or int64: got {kind.name} for {name!r}; use "
            "tf.cast afterwards."
        )
    return kind


def _array(values: Any, kind: DType) -> np.ndarray[Any, Any]:
    if kind is string:
        rule = "a default_value of strings is a string"
        return text_of(values, "tf.io.parse_example", rule).encoded
    return np.asarray(values, kind.as_numpy_dtype)


def _values(example: Example, name: str, spec: Any, kind: DType, who: str) -> np.ndarray[Any, Any]:
    feature: Feature = example.features.feature.get(name, Feature())
    shape = tuple(int(n) for n in np.atleast_1d(np.asarray(spec.shape, int)))
    size = math.prod(shape)
    if feature.given is None or not (feature.given.value or feature.WhichOneof()):
        return _default(name, spec, kind, shape, who)
    if feature.WhichOneof() != _KINDS[kind.name]:
        raise InvalidArgumentError(
            f"[{who}] feature {name!r} must be a {_KINDS[kind.name]}: got a "
            f"{feature.WhichOneof()}; ask for its dtype."
        )
    found = _array(feature.given.value, kind)
    rows = isinstance(spec, FixedLenSequenceFeature)
    if (found.size % size if rows and size else found.size != size) and not (rows and not size):
        raise InvalidArgumentError(
            f"[{who}] feature {name!r} must have {size} values{' a row' if rows else ''}, shape "
            f"{shape}: got {found.size}."
        )
    return found.reshape((-1, *shape) if rows and size else (0, *shape) if rows else shape)


def _default(
    name: str, spec: Any, kind: DType, shape: tuple[int, ...], who: str
) -> np.ndarray[Any, Any]:
    if isinstance(spec, FixedLenSequenceFeature):
        if spec.allow_missing:
            return _array([], kind).reshape((0, *shape))
        raise InvalidArgumentError(f"[{who}] feature {name!r} must be there; see allow_missing.")
    if spec.default_value is None:
        raise InvalidArgumentError(
            f"[{who}] feature {name!r} must be in each record: got one without it; give "
            "FixedLenFeature a default_value."
        )
    default = _array(spec.default_value, kind)
    return np.broadcast_to(default, shape) if default.size == 1 else default.reshape(shape)


def _all_values(example: Example, name: str, kind: DType, who: str) -> np.ndarray[Any, Any]:
    """The values of a feature, none if it is not there."""
    return _values(example, name, FixedLenSequenceFeature((), kind, True), kind, who)


def _sparse_row(
    example: Example, name: str, spec: Any, kind: DType, who: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Places and values of one record."""
    if isinstance(spec, VarLenFeature):
        values = _all_values(example, name, kind, who)
        return np.arange(len(values)), values
    places = _all_values(example, spec.index_key, element_type("int64"), who)
    values = _all_values(example, spec.value_key, kind, who)
    if len(places) != len(values):
        raise InvalidArgumentError(
            f"[{who}] {spec.index_key!r} and {spec.value_key!r} must have as many values: got "
            f"{len(places)} and {len(values)}."
        )
    order = slice(None) if spec.already_sorted else np.argsort(places, kind="stable")
    return places[order], values[order]


def _single(example: Example, name: str, spec: Any, kind: DType, who: str) -> Any:
    """A feature of one record."""
    if isinstance(spec, RaggedFeature):
        return leaf_of(_all_values(example, spec.value_key or name, kind, who))
    if isinstance(spec, VarLenFeature | SparseFeature):
        places, values = _sparse_row(example, name, spec, kind, who)
        size = len(values) if isinstance(spec, VarLenFeature) else int(spec.size)
        return SparseTensor(places[:, None], leaf_of(values), [size])
    return leaf_of(_values(example, name, spec, kind, who))


def _several(examples: list[Example], name: str, spec: Any, kind: DType, who: str) -> Any:
    """A feature of several records, side by side."""
    who_of = [f"{who}, record {n}" for n in range(len(examples))]
    pairs = list(zip(examples, who_of, strict=True))
    none = _array([], kind)
    if isinstance(spec, RaggedFeature):
        rows = [_all_values(e, spec.value_key or name, kind, each) for e, each in pairs]
        return RaggedTensor(leaf_of(np.concatenate([none, *rows])), [*map(len, rows)])
    if isinstance(spec, VarLenFeature | SparseFeature):
        found = [_sparse_row(e, name, spec, kind, each) for e, each in pairs]
        numbers = np.repeat(np.arange(len(found)), [len(values) for _, values in found])
        places = np.concatenate([np.zeros(0, np.int64), *(places for places, _ in found)])
        longest = max((len(values) for _, values in found), default=0)
        size = longest if isinstance(spec, VarLenFeature) else int(spec.size)
        values = leaf_of(np.concatenate([none, *(values for _, values in found)]))
        return SparseTensor(np.column_stack([numbers, places]), values, [len(found), size])
    return _joined([_values(e, name, spec, kind, each) for e, each in pairs], spec, kind)


def _record(kind: type[_Record], serialized: Any, who: str) -> _Record:
    try:
        return kind.FromString(serialized)
    except ValueError as error:
        text = str(error).removeprefix(f"[{kind.__name__}.FromString]")
        raise InvalidArgumentError(f"[{who}]{text}") from None


@on_host()
def parse_single_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse the features of one `tf.train.Example`.

    Args:
        serialized: A string scalar: the bytes of the record.
        features: By name, `FixedLenFeature`, `FixedLenSequenceFeature` and `RaggedFeature`, which
            become tensors, and `VarLenFeature` and `SparseFeature`, which become sparse tensors.
        example_names: Ignored.
        name: Ignored.

    Returns:
        A dict with a tensor, ragged tensor or sparse tensor for each name of `features`.

    Raises:
        InvalidArgumentError: serialized is not a record; a feature is not there, of another dtype
            or size.

    Example:
        >>> import samegrad as tf
        >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        >>> example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
        >>> parsed = tf.io.parse_single_example(
        ...     example.SerializeToString(), {"label": tf.io.FixedLenFeature([], tf.int64)})
        >>> int(parsed["label"])
        3
    """
    who = "tf.io.parse_single_example"
    text = text_of(serialized, who, "serialized must be the bytes of a record")
    if text._rank:
        raise ValueError(
            f"[{who}] one record is needed: got shape {text._shape}; see tf.io.parse_example."
        )
    kinds = {each: _kind(spec, each, who) for each, spec in features.items()}
    example = _record(Example, text, who)
    return {each: _single(example, each, spec, kinds[each], who) for each, spec in features.items()}


def parse_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse the features of several `tf.train.Example` records into batches.

    Args:
        serialized: A string vector: the bytes of the records. A scalar is one record.
        features: By name, `FixedLenFeature`; `FixedLenSequenceFeature`, whose rows are filled up
            to those of the longest record; `RaggedFeature`, whose rows are not; `VarLenFeature` and
            `SparseFeature`, which become sparse tensors.
        example_names: Ignored.
        name: Ignored.

    Returns:
        A dict with a tensor, ragged tensor or sparse tensor for each name of `features`; axis 0 is
        the batch axis.

    Raises:
        InvalidArgumentError: As `parse_single_example`; the message says which record.

    Example:
        >>> import samegrad as tf
        >>> records = [
        ...     tf.train.Example(features=tf.train.Features(feature={
        ...         "x": tf.train.Feature(float_list=tf.train.FloatList(value=[n]))}))
        ...     for n in range(2)]
        >>> data = [record.SerializeToString() for record in records]
        >>> tf.io.parse_example(data, {"x": tf.io.FixedLenFeature([], tf.float32)})["x"].numpy()
        array([0., 1.], dtype=float32)
    """
    who = "tf.io.parse_example"
    text = text_of(serialized, who, "serialized must be the bytes of records")
    if not text._rank:
        return parse_single_example(text, features)
    if text._rank > 1:
        raise ValueError(f"[{who}] records must lie along one axis: got shape {text._shape}.")
    kinds = {each: _kind(spec, each, who) for each, spec in features.items()}
    examples = [_record(Example, row, f"{who}, record {n}") for n, row in enumerate(text)]
    return {
        each: _several(examples, each, spec, kinds[each], who) for each, spec in features.items()
    }


def _joined(rows: Iterable[np.ndarray[Any, Any]], spec: Any, kind: DType) -> Any:
    parts = list(rows)
    sequence = isinstance(spec, FixedLenSequenceFeature)
    tail = tuple(np.atleast_1d(np.asarray(spec.shape, int)).tolist())
    longest = max((len(part) for part in parts), default=0) if sequence else 0
    shape = (len(parts), longest, *tail) if sequence else (len(parts), *tail)
    default = spec.default_value if spec.default_value is not None else b"" if kind is string else 0
    filler = Text(default).numpy() if kind is string and sequence else default
    made = np.full(shape, filler if sequence else None if kind is string else 0,
                   object if kind is string else kind.as_numpy_dtype)  # fmt: skip
    for place, part in enumerate(parts):
        if sequence:
            made[place, : len(part)] = part
        else:
            made[place] = part if part.ndim else part[()]
    return leaf_of(made)
