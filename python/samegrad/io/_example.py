"""`tf.train.Example`: named lists of bytes, floats or integers, as records hold them.

The bytes are those of protocol buffers (https://protobuf.dev/programming-guides/encoding): a field
is a key (its number times 8, plus its kind), and a varint (kind 0), 8 bytes (1), 4 bytes (5), or a
length and that many bytes (2).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from samegrad._base.shown import shown
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.text import Text

_BYTES, _FLOATS, _INTS = 1, 2, 3


def _varint(number: int) -> bytes:
    made = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint_at(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place behind it."""
    number = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError(f"a number that begins at byte {place - shift // 7} does not end")
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number & (1 << 64) - 1, place


def _fields_of(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, kind and content of each field."""
    place = 0
    while place < len(data):
        key, begin = _varint_at(data, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            content, place = _varint_at(data, begin)
            yield number, kind, content
            continue
        if kind == 2:
            size, begin = _varint_at(data, begin)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"byte {place} begins a field of the unknown kind {kind}")
        place = begin + size
        if place > len(data):
            raise ValueError(f"a field of {size} bytes at byte {begin} ends after {len(data)}")
        yield number, kind, data[begin:place]


def _bytes_of(serialized: Any, who: str) -> bytes:
    data = serialized.numpy() if isinstance(serialized, Text) else serialized
    if not isinstance(data, bytes):
        raise TypeError(f"[{who}.FromString] bytes are needed: got {shown(serialized)}.")
    return data


class _Values:
    """A list of values of one kind."""

    _number: ClassVar[int]

    def __init__(self, value: Any = ()) -> None:
        if isinstance(value, Tensor | Text):
            value = value.numpy()
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise TypeError(
                f"[{type(self).__name__}] value must be a list: got {shown(value)}; pass [value]."
            )
        self.value = [self._checked(entry) for entry in value]

    def _checked(self, entry: Any) -> Any:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value == self.value

    def __hash__(self) -> int:
        return hash(tuple(self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r:.200})"


class BytesList(_Values):
    """A list of bytes.

    Example:
        >>> BytesList(value=[b"a"]).value
        [b'a']
    """

    _number = _BYTES

    def _checked(self, entry: Any) -> bytes:
        entry = entry.numpy() if isinstance(entry, Text) else entry
        if not isinstance(entry, bytes):
            raise TypeError(
                f"[BytesList] entries must be bytes: got {shown(entry)}; use text.encode()."
            )
        return entry


class FloatList(_Values):
    """A list of floats (float32).

    Example:
        >>> FloatList(value=[0.5, 2]).value
        [0.5, 2.0]
    """

    _number = _FLOATS

    def _checked(self, entry: Any) -> float:
        entry = entry.numpy() if isinstance(entry, Tensor) else entry
        if not isinstance(entry, int | float | np.number | np.bool_):
            raise TypeError(f"[FloatList] entries must be numbers: got {shown(entry)}.")
        with np.errstate(over="ignore"):
            return float(np.float32(entry))


class Int64List(_Values):
    """A list of integers (int64).

    Example:
        >>> Int64List(value=[1, -2]).value
        [1, -2]
    """

    _number = _INTS

    def _checked(self, entry: Any) -> int:
        return whole(entry, "an entry of Int64List is an integer")


class Feature:
    """One list of values, of one of three kinds.

    Args:
        bytes_list: A `BytesList`.
        float_list: Or a `FloatList`.
        int64_list: Or an `Int64List`. None of them: a feature without values.

    Raises:
        ValueError: More than one is given.

    Example:
        >>> Feature(int64_list=Int64List(value=[3])).int64_list.value
        [3]
    """

    def __init__(
        self, bytes_list: BytesList | None = None, float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:  # fmt: skip
        given = [part for part in (bytes_list, float_list, int64_list) if part is not None]
        if len(given) > 1:
            raise ValueError(f"[Feature] there must be one list: got {len(given)}.")
        self.bytes_list = BytesList() if bytes_list is None else bytes_list
        self.float_list = FloatList() if float_list is None else float_list
        self.int64_list = Int64List() if int64_list is None else int64_list
        self._given: Any = given[0] if given else None

    def WhichOneof(self, name: str = "kind") -> str | None:  # noqa: N802
        """Return the name of the list: "bytes_list", "float_list", "int64_list", or None.

        Args:
            name: Ignored.

        Returns:
            Name of the list that is set, or None.

        Example:
            >>> import samegrad as tf
            >>> tf.train.Feature(int64_list=tf.train.Int64List(value=[1])).WhichOneof("kind")
            'int64_list'
        """
        kinds = {_BYTES: "bytes_list", _FLOATS: "float_list", _INTS: "int64_list"}
        return None if self._given is None else kinds[self._given._number]

    @property
    def given(self) -> Any:
        """The list there is, or None."""
        return self._given

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the feature to bytes."""
        values = self._given
        if values is None:
            return b""
        if values._number == _BYTES:
            body = b"".join(_field(1, entry) for entry in values.value)
        elif values._number == _FLOATS:
            body = np.asarray(values.value, "<f4").tobytes()
            body = _field(1, body) if body else b""
        else:
            body = b"".join(map(_varint, values.value))
            body = _field(1, body) if body else b""
        return _field(values._number, body)

    @classmethod
    def FromString(cls, serialized: bytes) -> Feature:  # noqa: N802
        """Parse a feature from bytes.

        Args:
            serialized: Serialized feature.

        Returns:
            The feature.

        Example:
            >>> import samegrad as tf
            >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
            >>> list(tf.train.Feature.FromString(feature.SerializeToString()).int64_list.value)
            [1, 2]
        """
        made = cls()
        for number, kind, body in _fields_of(_bytes_of(serialized, "Feature")):
            if kind != 2 or number not in _READERS:
                continue
            made = _READERS[number](body)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Feature) and other._given == self._given

    def __hash__(self) -> int:
        return hash(self._given)

    def __repr__(self) -> str:
        return f"Feature({self._given!r})"


def _bytes_feature(body: bytes) -> Feature:
    return Feature(bytes_list=BytesList([part for _, kind, part in _fields_of(body) if kind == 2]))


def _float_feature(body: bytes) -> Feature:
    parts = b"".join(part for _, kind, part in _fields_of(body) if kind in (2, 5))
    if len(parts) % 4:
        raise ValueError(f"a list of floats has {len(parts)} bytes, which is not a multiple of 4")
    return Feature(float_list=FloatList(np.frombuffer(parts, "<f4").tolist()))


def _int_feature(body: bytes) -> Feature:
    numbers = []
    for _, kind, part in _fields_of(body):
        if kind == 0:
            numbers.append(part)
            continue
        place = 0
        while place < len(part):
            number, place = _varint_at(part, place)
            numbers.append(number)
    signed = [n - (1 << 64) if n >= 1 << 63 else n for n in numbers]
    return Feature(int64_list=Int64List(signed))


_READERS = {_BYTES: _bytes_feature, _FLOATS: _float_feature, _INTS: _int_feature}


class Features:
    """Features by their names.

    Args:
        feature: A dict of `Feature`.

    Example:
        >>> Features(feature={"a": Feature()}).feature["a"]
        Feature(None)
    """

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature: dict[str, Feature] = dict(feature or {})
        for name, value in self.feature.items():
            if not isinstance(name, str) or not isinstance(value, Feature):
                raise TypeError(
                    f"[Features] feature must be a dict of names and Features: got {shown(name)}: "
                    f"{shown(value)}."
                )

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the features to bytes, sorted by name."""
        entries = [
            _field(1, name.encode()) + _field(2, self.feature[name].SerializeToString())
            for name in sorted(self.feature)
        ]
        return b"".join(_field(1, entry) for entry in entries)

    @classmethod
    def FromString(cls, serialized: bytes) -> Features:  # noqa: N802
        """Parse features from bytes.

        Args:
            serialized: Serialized features.

        Returns:
            The features.
        """
        found: dict[str, Feature] = {}
        for number, kind, entry in _fields_of(_bytes_of(serialized, "Features")):
            if number == 1 and kind == 2:
                parts = {n: part for n, each, part in _fields_of(entry) if each == 2}
                name = parts.get(1, b"").decode("utf-8")
                found[name] = Feature.FromString(parts.get(2, b""))
        return cls(found)

    def __repr__(self) -> str:
        return f"Features({self.feature!r})"


class Example:
    """A record: named lists of values.

    Args:
        features: A `Features`.

    Example:
        >>> import samegrad as tf
        >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        >>> example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
        >>> tf.train.Example.FromString(example.SerializeToString()).features.feature["label"]
        Feature(Int64List(value=[3]))
    """

    def __init__(self, features: Features | None = None) -> None:
        self.features = Features() if features is None else features

    def SerializeToString(self, deterministic: bool = True) -> bytes:  # noqa: N802
        """Serialize the record to bytes, with names in sorted order.

        Args:
            deterministic: Ignored: the order is always the same.

        Returns:
            Serialized record.

        Example:
            >>> import samegrad as tf
            >>> len(tf.train.Example().SerializeToString())
            2
        """
        return _field(1, self.features.SerializeToString())

    @classmethod
    def FromString(cls, serialized: Any) -> Example:  # noqa: N802
        """Parse a record from bytes.

        Args:
            serialized: Serialized record: bytes, or a string tensor of shape [].

        Returns:
            The record.

        Raises:
            ValueError: The bytes are not a record; the message tells where.

        Example:
            >>> import samegrad as tf
            >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
            >>> record = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
            >>> parsed = tf.train.Example.FromString(record.SerializeToString())
            >>> list(parsed.features.feature["x"].int64_list.value)
            [1, 2]
        """
        data = _bytes_of(serialized, "Example")
        try:
            parts = [part for number, kind, part in _fields_of(data) if (number, kind) == (1, 2)]
            return cls(Features.FromString(b"".join(parts)))
        except (ValueError, struct.error) as error:
            origin = getattr(serialized, "origin", None)
            place = f" of {origin}" if origin else ""
            raise ValueError(
                f"[Example.FromString] an Example is needed: got {len(data)} bytes{place}, in "
                f"which {error}."
            ) from None

    def ParseFromString(self, serialized: Any) -> int:  # noqa: N802
        """Replace the features by those of a serialized record.

        Args:
            serialized: Serialized record: bytes, or a string tensor of shape [].

        Returns:
            Number of bytes read.
        """
        self.features = self.FromString(serialized).features
        return len(serialized.numpy() if isinstance(serialized, Text) else serialized)

    def __repr__(self) -> str:
        return f"Example({self.features!r})"


class FeatureList:
    """A list of features: the steps of a sequence.

    Args:
        feature: The features.

    Example:
        >>> FeatureList(feature=[Feature()]).feature
        [Feature(None)]
    """

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature = list(feature)
        for value in self.feature:
            if not isinstance(value, Feature):
                raise TypeError(f"[FeatureList] features are needed: got {shown(value)}.")

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the list to bytes."""
        return b"".join(_field(1, feature.SerializeToString()) for feature in self.feature)

    @classmethod
    def FromString(cls, serialized: bytes) -> FeatureList:  # noqa: N802
        """Parse a list from bytes.

        Args:
            serialized: Serialized list.

        Returns:
            The list.
        """
        fields = _fields_of(_bytes_of(serialized, "FeatureList"))
        return cls(Feature.FromString(part) for n, kind, part in fields if (n, kind) == (1, 2))

    def __repr__(self) -> str:
        return f"FeatureList({self.feature!r})"


class FeatureLists:
    """Lists of features by their names.

    Args:
        feature_list: A dict of `FeatureList`.

    Example:
        >>> FeatureLists(feature_list={"a": FeatureList()}).feature_list["a"]
        FeatureList([])
    """

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list: dict[str, FeatureList] = dict(feature_list or {})
        for name, value in self.feature_list.items():
            if not isinstance(name, str) or not isinstance(value, FeatureList):
                raise TypeError(
                    "[FeatureLists] feature_list must be a dict of names and FeatureLists: got "
                    f"{shown(name)}: {shown(value)}."
                )

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Serialize the lists to bytes, sorted by name."""
        entries = [
            _field(1, name.encode()) + _field(2, self.feature_list[name].SerializeToString())
            for name in sorted(self.feature_list)
        ]
        return b"".join(_field(1, entry) for entry in entries)

    @classmethod
    def FromString(cls, serialized: bytes) -> FeatureLists:  # noqa: N802
        """Parse lists from bytes.

        Args:
            serialized: Serialized lists.

        Returns:
            The lists.
        """
        found: dict[str, FeatureList] = {}
        for number, kind, entry in _fields_of(_bytes_of(serialized, "FeatureLists")):
            if (number, kind) == (1, 2):
                parts = {n: part for n, each, part in _fields_of(entry) if each == 2}
                found[parts.get(1, b"").decode("utf-8")] = FeatureList.FromString(parts.get(2, b""))
        return cls(found)

    def __repr__(self) -> str:
        return f"FeatureLists({self.feature_list!r})"


class SequenceExample:
    """A record of sequences: features of all of it, and lists of features by step.

    Args:
        context: The `Features` of the whole record.
        feature_lists: The `FeatureLists`.

    Example:
        >>> import samegrad as tf
        >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        >>> steps = tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=[step])})
        >>> data = tf.train.SequenceExample(feature_lists=steps).SerializeToString()
        >>> tf.train.SequenceExample.FromString(data).feature_lists.feature_list["x"]
        FeatureList([Feature(Int64List(value=[3]))])
    """

    def __init__(
        self, context: Features | None = None, feature_lists: FeatureLists | None = None
    ) -> None:
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists

    def SerializeToString(self, deterministic: bool = True) -> bytes:  # noqa: N802
        """Serialize the record to bytes, with names in sorted order.

        Args:
            deterministic: Ignored: the order is always the same.

        Returns:
            Serialized record.
        """
        lists = self.feature_lists.SerializeToString()
        return _field(1, self.context.SerializeToString()) + _field(2, lists)

    @classmethod
    def FromString(cls, serialized: Any) -> SequenceExample:  # noqa: N802
        """Parse a record from bytes.

        Args:
            serialized: Serialized record: bytes, or a string tensor of shape [].

        Returns:
            The record.

        Raises:
            ValueError: The bytes are not a record; the message tells where.
        """
        data = _bytes_of(serialized, "SequenceExample")
        try:
            parts = [(number, part) for number, kind, part in _fields_of(data) if kind == 2]
            context, lists = (b"".join(p for n, p in parts if n == field) for field in (1, 2))
            return cls(Features.FromString(context), FeatureLists.FromString(lists))
        except (ValueError, struct.error) as error:
            raise ValueError(
                f"[SequenceExample.FromString] a SequenceExample is needed: got {len(data)} bytes, "
                f"in which {error}."
            ) from None

    def __repr__(self) -> str:
        return f"SequenceExample({self.context!r}, {self.feature_lists!r})"
