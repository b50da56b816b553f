"""Records of features as tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from samegrad._base.dtypes import DType, element_type, string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.io._example import Example, Feature

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


def _kind(spec: Any, name: str, who: str) -> DType:
    if not isinstance(spec, FixedLenFeature | FixedLenSequenceFeature):
        raise NotImplementedError(
            f"[{who}] features are FixedLenFeature or FixedLenSequenceFeature: got {shown(spec)} "
            f"for {name!r}; rows of different lengths are FixedLenSequenceFeature([], dtype, "
            "allow_missing=True)."
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
        return text_of(values, "tf.io.parse_example", "a default_value of text is text").encoded
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


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    return of_bytes(array) if array.dtype == object else Tensor(np.array(array), copy=False)


def _example(serialized: Any, who: str) -> Example:
    try:
        return Example.FromString(serialized)
    except ValueError as error:
        text = str(error).removeprefix("[Example.FromString]")
        raise InvalidArgumentError(f"[{who}]{text}") from None


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The features of a record.

    Args:
        serialized: The bytes of a `tf.train.Example`, text without axes.
        features: By name, `FixedLenFeature` or `FixedLenSequenceFeature`.
        name: Ignored.

    Raises:
        InvalidArgumentError: It is no record; a feature is not there, of another dtype or size.

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
    example = _example(text, who)
    return {
        each: _tensor(_values(example, each, spec, kinds[each], who))
        for each, spec in features.items()
    }


def parse_example(
    serialized: Any, features: Mapping[str, Any], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of several records, side by side.

    Args:
        serialized: The bytes of records, text with one axis; or without, for one record.
        features: By name, `FixedLenFeature` or `FixedLenSequenceFeature`, whose rows are filled up
            to those of the longest record.
        example_names: Ignored.
        name: Ignored.

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
    examples = [_example(row, f"{who}, record {n}") for n, row in enumerate(text)]
    return {
        each: _joined(
            [_values(e, each, spec, kinds[each], f"{who}, record {n}")
             for n, e in enumerate(examples)],
            spec, kinds[each],
        )
        for each, spec in features.items()
    }  # fmt: skip


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
    return _tensor(made)
