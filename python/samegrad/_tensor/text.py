"""Text: arrays of bytes, for what prepares data. A traced step passes it on, and never reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from samegrad._base.dtypes import DType, string
from samegrad._base.shown import shown
from samegrad._base.tree import first_leaf
from samegrad._context.python_runs import need_python
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.sizes import INDEX_RULE, index_number
from samegrad.errors import WrongTypeError

Array = np.ndarray[Any, Any]
_MOST_AXES = 32  # what all versions of NumPy take


def _encoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return bytes(value)
    try:
        return str(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"[constant] strings must be characters that UTF-8 has: got {shown(value)}, where "
            f"{error.reason}; pass bytes, or use text.encode with an error handler."
        ) from error


def _objects(values: Any) -> Array:
    """Return an array of Python's objects: of bytes NumPy's own would lose zeros at their ends."""
    if isinstance(values, Text):
        return values.encoded
    values = _without_index(values)
    if isinstance(values, np.ndarray | np.generic):
        return np.asarray(values).astype(object)
    if isinstance(values, list | tuple):
        if all(isinstance(value, str | bytes) for value in values):
            row = np.empty(len(values), object)
            row[:] = values
            return row
        parts = [_objects(value) for value in values]
        if parts and parts[0].ndim >= _MOST_AXES:
            raise ValueError(
                f"[constant] a string must have at most {_MOST_AXES} axes: got {shown(values)}."
            )
        if len({part.shape for part in parts}) > 1:
            raise ValueError(
                f"[constant] the parts of a list must have one shape: got {shown(values)}; pad "
                "the shorter ones."
            )
        return np.stack(parts)
    made = np.empty((), object)
    made[()] = values
    return made


def _without_index(value: Any) -> Any:
    """Return a column of pandas as an array; all else as it is."""
    return value.to_numpy() if type(value).__module__.partition(".")[0] == "pandas" else value


class Text:
    """An array of text, or of other bytes such as the contents of files.

    Made by `tf.constant` of strings. Text has no place in a traced step: prepare it in
    `Dataset.map`, where everything runs at once.

    Args:
        values: Text, bytes, or lists and arrays of them.

    Example:
        >>> words = Text(["a", "b"])
        >>> words.shape, words.numpy()
        ((2,), array([b'a', b'b'], dtype=object))
    """

    __slots__ = ("_bytes", "_decoded", "_origin")
    __array_ufunc__ = None  # NumPy leaves == and + to this class
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(self, values: Any) -> None:
        found = _objects(values)
        if isinstance(values, Text):
            self._bytes: Array = found
        else:
            self._bytes = np.empty(found.shape, object)
            self._bytes.ravel()[:] = [_encoded(value) for value in found.ravel()]
        self._decoded: Array | None = None
        self._origin: str | None = getattr(values, "_origin", None)

    @property
    def dtype(self) -> DType:
        """`tf.string`."""
        return string

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return TensorShape(self._bytes.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._bytes.ndim

    @property
    def _dtype(self) -> str:
        return "string"

    @property
    def _shape(self) -> tuple[int, ...]:
        sizes: tuple[int, ...] = self._bytes.shape
        return sizes

    @property
    def _rank(self) -> int:
        return self._bytes.ndim

    @property
    def origin(self) -> str | None:
        """The file whose contents it is, for what is said of them."""
        return self._origin

    def get_shape(self) -> TensorShape:
        """Return the sizes of the axes."""
        return self.shape

    @property
    def encoded(self) -> Array:
        """A NumPy array of Python's bytes, not to be written to."""
        return self._bytes

    @property
    def strings(self) -> Array:
        """A NumPy array of Python's strings.

        Raises:
            ValueError: Bytes are not UTF-8; the message names them.
        """
        if self._decoded is None:
            made = np.empty(self._bytes.shape, object)
            made.ravel()[:] = [_decoded(value) for value in self._bytes.ravel()]
            self._decoded = made
        return self._decoded

    def numpy(self) -> Any:
        """Return a NumPy array of bytes; of text without axes, the bytes."""
        return self._bytes.copy() if self._bytes.ndim else self._bytes[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._bytes.astype(object if dtype is None else dtype)

    def __len__(self) -> int:
        if not self._bytes.ndim:
            raise TypeError(f"[Text] a string without axes has no length: got {self!r}.")
        return len(self._bytes)

    def __bool__(self) -> bool:
        return bool(self._item())

    def _item(self) -> bytes:
        if self._bytes.size != 1:
            raise ValueError(f"[Text] one string is needed: got shape {self._bytes.shape}.")
        value: bytes = self._bytes.ravel()[0]
        return value

    def __iter__(self) -> Iterator[Text]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Text:
        try:
            return of_bytes(self._bytes[_as_key(key)])
        except IndexError as error:
            raise IndexError(f"[Text] {error}: got {shown(key)}.") from None

    def __eq__(self, other: object) -> Any:
        return self._compared(other, True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, False)

    def _compared(self, other: object, equal: bool) -> Any:
        if not is_text(other):
            return not equal
        pairs = np.broadcast(self._bytes, Text(other).encoded)
        same = np.array([(a == b) == equal for a, b in pairs], bool).reshape(pairs.shape)
        return Tensor(same)

    def __add__(self, other: Any) -> Text:
        return joined(self, other)

    def __radd__(self, other: Any) -> Text:
        return joined(other, self)

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else str(self.numpy())

    def __repr__(self) -> str:
        return f"<samegrad.Text: shape={self._bytes.shape}, numpy={self.numpy()!r:.200}>"


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"[Text] strings must be UTF-8: got byte {value[error.start]:#04x} at place "
            f"{error.start} of {shown(value)}."
        ) from None


def _as_key(key: Any) -> Any:
    """Return an index as NumPy takes it."""
    if isinstance(key, tuple):
        return tuple(_as_key(part) for part in key)
    if isinstance(key, Tensor) and key._rank:
        return key._numpy()
    if key is None or key is Ellipsis or isinstance(key, slice | list | np.ndarray):
        return key
    return index_number(key, INDEX_RULE)


class UnreadText(Text):
    """Strings of a traced step, which are arguments and results and are never read.

    Args:
        source: Where the strings of a call are found.
    """

    __slots__ = ("source",)

    def __init__(self, source: Any) -> None:
        self.source, self._origin = source, None

    def _read(self) -> NoReturn:
        """Leave the trace, whose steps contain no strings."""
        need_python(
            "[Strategy.run] steps of several replicas pass strings on and do not read them: got "
            "some that are read; read them in Dataset.map, or outside of run.",
            RuntimeError,
        )

    @property
    def _bytes(self) -> Any:  # type: ignore[override]
        self._read()

    @property
    def _decoded(self) -> Any:  # type: ignore[override]
        self._read()

    def __repr__(self) -> str:
        return "<samegrad.Text: in a trace>"


def of_bytes(array: Any, origin: str | None = None) -> Text:
    """Wrap bytes, or an array of them, as strings; `origin` is the file they come from."""
    made = Text.__new__(Text)
    if not isinstance(array, np.ndarray):
        made._bytes = np.empty((), object)
        made._bytes[()] = array
    else:
        made._bytes = array
    made._decoded = None
    made._origin = origin
    return made


def array_of(leaf: Any) -> Array:
    """Return the numbers of a tensor, the bytes of text.

    Example:
        >>> array_of(Text(["a"])).tolist()
        [b'a']
    """
    return leaf.encoded if isinstance(leaf, Text) else np.asarray(leaf)


def leaf_of(array: Any, copy: bool = True) -> Any:
    """Return a tensor of an array of numbers, text of one of bytes.

    Args:
        array: Of numbers, or of objects that are bytes.
        copy: Whether a tensor gets memory of its own; text never does.

    Example:
        >>> leaf_of(np.array([b"a"], object)).shape, leaf_of(np.array([1, 2])).shape
        ((1,), (2,))
    """
    return of_bytes(array) if array.dtype == object else Tensor(array, copy=copy)


def joined(*parts: Any, separator: bytes = b"") -> Text:
    """Concatenate strings element by element, broadcast.

    Raises:
        TypeError: A part is not a string.

    Example:
        >>> joined(["a", "b"], ".txt").numpy().tolist()
        [b'a.txt', b'b.txt']
    """
    wrong = [part for part in parts if not is_text(part)]
    if wrong:
        raise WrongTypeError(
            f"[Text] strings go with strings only: got {shown(wrong[0])}; use as_string."
        )
    try:
        rows = np.broadcast(*(Text(part).encoded for part in parts))
    except ValueError:
        shapes = ", ".join(str(Text(part)._shape) for part in parts)
        raise ValueError(f"[Text] shapes must fit each other: got {shapes}.") from None
    made = np.empty(rows.shape, object)
    made.ravel()[:] = [separator.join(row) for row in rows]
    return of_bytes(made)


def is_text(value: Any) -> bool:
    """Tell whether a value is a string tensor, a string, or a list or array that begins with one.

    Example:
        >>> is_text("a"), is_text([[b"a"]]), is_text([1, "a"]), is_text([])
        (True, True, False, False)
    """
    value = first_leaf(value)
    if isinstance(value, Text | str | bytes):
        return True
    value = _without_index(value)
    if not isinstance(value, np.ndarray | np.generic):
        return False
    return value.dtype.kind in "US" or (
        value.dtype.kind == "O" and value.size > 0 and isinstance(value.ravel()[0], str | bytes)
    )


def text_of(value: Any, who: str, rule: str = "strings are needed") -> Text:
    """Return the value as a tensor of strings.

    Args:
        value: Text, strings, bytes, or lists and arrays of them; nothing else among them.
        who: Who asks.
        rule: What the argument must be.

    Raises:
        TypeError: It is something else.

    Example:
        >>> text_of("a", "tf.strings.lower").numpy()
        b'a'
    """
    if isinstance(value, Text):
        return value
    found = _objects(value) if is_text(value) or _is_empty(value) else None
    if found is None or not all(isinstance(part, str | bytes) for part in found.ravel()):
        raise TypeError(
            f"[{who}] {rule}: got {shown(value)}; pass a string, bytes, a list or an array of them."
        )
    return Text(found)


def _is_empty(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return not value
    return isinstance(value, np.ndarray) and not value.size and value.dtype.kind in "OUS"


def shown_text(value: Text) -> str:
    """Format strings as `tf.print` shows them.

    Example:
        >>> shown_text(Text(["a", "b"]))
        '["a" "b"]'
    """
    if not value._rank:
        return f'"{value.strings[()]}"'
    return f"[{' '.join(map(shown_text, value))}]"
