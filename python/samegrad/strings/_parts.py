"""Strings split, joined, decoded and encoded."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor import text as texts
from samegrad._tensor.axes import axes_of, axis_in
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_rows import check_rows, rows_of
from samegrad._tensor.sizes import whole
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.strings import _hashing as hashing

_ERRORS = ("strict", "replace", "ignore")
REPLACEMENT = 0xFFFD  # the code point by which decoders replace invalid bytes


@on_host()
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Split strings at a separator.

    Args:
        input: A string scalar, or a vector of strings.
        sep: The separator; None or "": any run of white space.
        maxsplit: The largest number of splits of a string; -1: no limit.
        name: Ignored.

    Returns:
        A vector of strings for a scalar; a ragged tensor for a vector (`to_tensor`, `to_list`).

    Example:
        >>> import samegrad as tf
        >>> tf.strings.split("a,b,,c", ",").numpy().tolist()
        [b'a', b'b', b'', b'c']
        >>> tf.strings.split(["a b", "c"]).to_list()
        [[b'a', b'b'], [b'c']]
    """
    who = "tf.strings.split"
    mark = b"" if sep is None else text_of(sep, who, "sep must be one string").numpy()
    most = operator.index(maxsplit)
    found = text_of(input, who, "input must be strings")
    return rows_of(found, lambda x: x.split(mark or None, most))


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Split strings into bytes.

    Args:
        input: A string scalar, or a vector of strings.
        name: Ignored.

    Returns:
        A vector of strings for a scalar; a ragged tensor for a vector.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.bytes_split("abc").numpy().tolist()
        [b'a', b'b', b'c']
    """
    found = text_of(input, "tf.strings.bytes_split", "input must be strings")
    return rows_of(found, lambda x: [x[i : i + 1] for i in range(len(x))])


@cache
def _putting(instead: str) -> str:
    """Return the name of an error handler that replaces invalid bytes by one character."""
    name = f"samegrad.replace.{ord(instead)}"
    codecs.register_error(name, lambda error: (instead, error.end))  # type: ignore[attr-defined]
    return name


def code_point(value: Any, who: str) -> str:
    """Return the character of a code point.

    Raises:
        ValueError: The value is not a Unicode code point.
    """
    number = operator.index(value)
    if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
        raise ValueError(f"[{who}] replacement_char must be a Unicode code point: got {number}.")
    return chr(number)


def decoder(
    encoding: str, errors: str, who: str, replacement_char: int = REPLACEMENT,
    replace_control_characters: bool = False,
) -> Callable[[bytes], str]:  # fmt: skip
    """Return a function that decodes bytes, and treats invalid ones as `errors` says."""
    try:
        b"a".decode(encoding, "ignore")  # raises for codecs that make no strings as well
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"[{who}] input_encoding must be an encoding such as UTF-8, UTF-16-BE or latin-1: "
            f"got {shown(encoding)}."
        ) from None
    if errors not in _ERRORS:
        raise ValueError(f"[{who}] errors must be one of {_ERRORS}: got {shown(errors)}.")

    instead = code_point(replacement_char, who)
    way = _putting(instead) if errors == "replace" else errors
    controls = dict.fromkeys(range(0x20), "" if errors == "ignore" else instead)

    def characters(value: bytes) -> str:
        try:
            found = value.decode(encoding, way)
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"[{who}] strings must be {encoding}: got byte {value[error.start]:#04x} at index "
                f"{error.start} of {shown(value)}."
            ) from None
        return found.translate(controls) if replace_control_characters else found

    return characters


def unicode_split(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = REPLACEMENT, name: str | None = None,
) -> Any:  # fmt: skip
    """Split strings into characters.

    Args:
        input: A string scalar, or a vector of strings.
        input_encoding: "UTF-8" or another encoding that Python knows.
        errors: The handling of invalid bytes: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        name: Ignored.

    Returns:
        A vector of strings for a scalar; a ragged tensor for a vector.

    Raises:
        InvalidArgumentError: Bytes are invalid, and `errors` is "strict".
        ValueError: The encoding, `errors` or the code point is unknown.

    Example:
        >>> import samegrad as tf
        >>> [x.decode() for x in tf.strings.unicode_split("wör", "UTF-8").numpy()]
        ['w', 'ö', 'r']
    """
    who = "tf.strings.unicode_split"
    characters = decoder(input_encoding, errors, who, replacement_char)
    found = text_of(input, who, "input must be strings")
    return rows_of(found, lambda x: [c.encode(input_encoding) for c in characters(x)])


def unicode_decode(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = REPLACEMENT, replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Decode strings into code points.

    Args:
        input: A string scalar, or a vector of strings.
        input_encoding: "UTF-8" or another encoding that Python knows.
        errors: The handling of invalid bytes: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        replace_control_characters: Treat the characters below U+0020 as invalid as well.
        name: Ignored.

    Returns:
        An int32 vector for a scalar; a ragged tensor for a vector.

    Raises:
        InvalidArgumentError: Bytes are invalid, and `errors` is "strict".
        ValueError: The encoding, `errors` or the code point is unknown.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.unicode_decode("aä", "UTF-8").numpy()
        array([ 97, 228], dtype=int32)
    """
    who = "tf.strings.unicode_decode"
    characters = decoder(input_encoding, errors, who, replacement_char, replace_control_characters)
    found = text_of(input, who, "input must be strings")
    check_rows(found.encoded.shape)
    rows = [[ord(c) for c in characters(value)] for value in found.encoded.ravel()]
    if not found._rank:
        return Tensor(np.array(rows[0], np.int32), copy=False)
    flat = np.array([number for row in rows for number in row], np.int32)
    return RaggedTensor(Tensor(flat, copy=False), [*map(len, rows)])


def unicode_encode(
    input: Any, output_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = REPLACEMENT, name: str | None = None,
) -> Text:  # fmt: skip
    """Encode code points as strings.

    Args:
        input: Code points: integers [..., characters], or a ragged tensor of them.
        output_encoding: "UTF-8" or another encoding that Python knows.
        errors: The handling of invalid code points: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        name: Ignored.

    Returns:
        Strings of shape [...].

    Raises:
        InvalidArgumentError: A code point is invalid, and `errors` is "strict".
        ValueError: `errors` or the code point of the replacement is unknown.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.unicode_encode([119, 246], "UTF-8").numpy().decode()
        'wö'
    """
    who = "tf.strings.unicode_encode"
    if errors not in _ERRORS:
        raise ValueError(f"[{who}] errors must be one of {_ERRORS}: got {shown(errors)}.")
    instead = "" if errors == "ignore" else code_point(replacement_char, who)

    def encoded(numbers: Any) -> bytes:
        known = [0 <= n < 0xD800 or 0xE000 <= n < 0x110000 for n in numbers]
        if errors == "strict" and not all(known):
            raise InvalidArgumentError(
                f"[{who}] input must be Unicode code points: got {numbers[known.index(False)]}."
            )
        characters = (chr(n) if right else instead for n, right in zip(numbers, known, strict=True))
        return "".join(characters).encode(output_encoding)

    if isinstance(input, RaggedTensor):
        return Text(np.array([encoded(row.numpy().tolist()) for row in input], object))
    numbers = np.asarray(convert_to_tensor(input))
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(
            f"[{who}] input must be integers: got {numbers.dtype}; convert it with samegrad.cast."
        )
    if numbers.ndim < 2:
        return of_bytes(encoded(numbers.tolist()))
    made = np.empty(numbers.shape[:-1], object)
    made.ravel()[:] = [encoded(row) for row in numbers.reshape(-1, numbers.shape[-1]).tolist()]
    return of_bytes(made)


def join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Text:
    """Concatenate strings element by element.

    Args:
        inputs: A list of string tensors that broadcast.
        separator: The string between them.
        name: Ignored.

    Returns:
        Strings of the broadcast shape.

    Raises:
        TypeError: The inputs are not a list of strings.
        ValueError: The shapes do not broadcast.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.join(["a", ["b", "c"]], separator="-").numpy()
        array([b'a-b', b'a-c'], dtype=object)
    """
    who = "tf.strings.join"
    if isinstance(inputs, RaggedTensor):
        raise TypeError(
            f"[{who}] a list of operands is needed: got one, of shape {inputs.shape}; see "
            "reduce_join."
        )
    parts = [text_of(part, who, "each of inputs must be strings") for part in inputs]
    if not parts:
        raise ValueError(f"[{who}] inputs must have at least one string: got {shown(inputs)}.")
    return texts.joined(*parts, separator=text_of(separator, who).numpy())


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "",
    name: str | None = None,
) -> Text:  # fmt: skip
    """Concatenate strings along axes.

    Args:
        inputs: Strings of any shape, or a ragged tensor of two axes.
        axis: One axis or several, in the order of joining; None: all.
        keepdims: Keep the reduced axes, with size 1.
        separator: The string between them.
        name: Ignored.

    Returns:
        Strings without those axes, unless keepdims.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1, separator=" ").numpy()
        array([b'a b', b'c d'], dtype=object)
    """
    who = "tf.strings.reduce_join"
    mark = text_of(separator, who).numpy()
    if isinstance(inputs, RaggedTensor):
        return _joined_rows(inputs, axis, keepdims, mark)
    found = text_of(inputs, who, "inputs must be strings")
    array = found.encoded
    axes = [axis_in(array.ndim, number) for number in axes_of(found, axis)]
    if axis is not None:
        axes.reverse()  # the first one named is joined first
    kept = [n for number, n in enumerate(array.shape) if number not in axes]
    moved = np.moveaxis(array, axes, range(-len(axes), 0)) if axes else array[..., None]
    made = np.empty(kept, object)
    if made.size:
        made.ravel()[:] = [mark.join(group) for group in moved.reshape(made.size, -1)]
    if keepdims:
        made = made.reshape([1 if number in axes else n for number, n in enumerate(array.shape)])
    return of_bytes(made)


@on_host()
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Text:
    """Concatenate the strings of each segment.

    Args:
        inputs: Strings of any shape.
        segment_ids: The segment of each string: integers in the shape of the first axes.
        num_segments: The number of segments.
        separator: The string between them.
        name: Ignored.

    Returns:
        Strings [num_segments, ...]; empty segments have empty strings.

    Raises:
        InvalidArgumentError: The shapes do not fit, or an id is not in [0, num_segments).

    Example:
        >>> import samegrad as tf
        >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, "-").numpy()
        array([b'a-c', b'b'], dtype=object)
    """
    who = "tf.strings.unsorted_segment_join"
    mark, array = text_of(separator, who).numpy(), text_of(inputs, who).encoded
    (ids,), count = host_arrays(who, segment_ids), whole(num_segments)
    rest = array.shape[ids.ndim :]
    if array.shape[: ids.ndim] != ids.shape or (ids.size and (ids.min() < 0 or ids.max() >= count)):
        raise InvalidArgumentError(
            f"[{who}] segment_ids must be those of the first axes, in [0, num_segments): got shape "
            f"{ids.shape} for {array.shape}, and {count} segments."
        )
    rows = array.reshape(ids.size, -1)
    made = np.empty((count, rows.shape[1]), object)
    for number in range(count):
        chosen = rows[ids.ravel() == number]
        made[number] = [mark.join(column) for column in chosen.T]
    return of_bytes(made.reshape(count, *rest))


def _joined_rows(rows: RaggedTensor, axis: Any, keepdims: bool, mark: bytes) -> Text:
    """Concatenate the strings of a ragged tensor along rows, columns or both."""
    who = "tf.strings.reduce_join"
    if rows._rank != 2 or rows._dtype != "string":
        raise TypeError(
            f"[{who}] inputs must be strings, in rows: got {rows._dtype} of shape {rows.shape}; "
            "see tf.strings.as_string and to_tensor."
        )
    axes = [0, 1] if axis is None else [axis_in(2, number) for number in axes_of(rows, axis)]
    parts: list[list[bytes]] = rows.to_list()
    if axes == [0, 1]:
        joined = [mark.join(part for row in parts for part in row)]
    elif axes == [1]:
        joined = [mark.join(row) for row in parts]
    elif axes == [0]:
        joined = [
            mark.join(row[place] for row in parts if place < len(row))
            for place in range(max(map(len, parts), default=0))
        ]
    else:
        raise ValueError(f"[{who}] axis must be 0, 1, [0, 1] or None: got {shown(axis)} for rows.")
    made = np.array([*joined, None], object)[:-1]
    if not keepdims:
        return of_bytes(made.reshape([] if len(axes) == 2 else [-1]))
    return of_bytes(made.reshape([1 if number in axes else -1 for number in range(2)]))


def ngrams(
    data: Any, ngram_width: int | Sequence[int], separator: str = " ",
    pad_values: str | tuple[str, str] | None = None, padding_width: int | None = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Join each run of `ngram_width` consecutive strings.

    Args:
        data: Strings of shape [n] or [batch, n], or a ragged tensor.
        ngram_width: The number of strings of a run, or a list of numbers, one after the other.
        separator: The string between them.
        pad_values: The string with which both ends of a sequence are padded, or one for the left
            and one for the right end. None: no padding.
        padding_width: The number of strings of padding at each end, at most `ngram_width - 1`,
            which is the default.
        preserve_short_sequences: If True, a sequence that is too short for any run makes one run of
            all its strings, unless it is empty.
        name: Ignored.

    Returns:
        Strings of shape [runs] or [batch, runs], or a ragged tensor.

    Raises:
        ValueError: A width is below 1, or there is a `padding_width` without `pad_values`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.ngrams(["a", "b", "c"], 2).numpy().tolist()
        [b'a b', b'b c']
    """
    who = "tf.strings.ngrams"
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    mark = text_of(separator, who).numpy()
    least = min(widths, default=1)
    if least < 1 or (padding_width is not None and (padding_width < 1 or pad_values is None)):
        raise ValueError(
            f"[{who}] ngram_width and padding_width must be at least 1, and padding_width needs "
            f"pad_values: got {shown(ngram_width)}, {shown(padding_width)} and "
            f"{shown(pad_values)}."
        )
    pads = (pad_values,) * 2 if isinstance(pad_values, str | bytes) else pad_values
    left, right = text_of(list(pads), who).encoded.tolist() if pads is not None else (b"", b"")

    def padded(words: list[bytes], count: int) -> list[bytes]:
        return [left] * count + words + [right] * count if pads is not None else words

    def runs(words: list[bytes]) -> list[bytes]:
        made = []
        for width in widths:
            count = min(width - 1, width - 1 if padding_width is None else padding_width)
            row = padded(words, count)
            made += [mark.join(row[i : i + width]) for i in range(len(row) - width + 1)]
        if made or not words or not preserve_short_sequences:
            return made
        return [mark.join(padded(words, padding_width or 0))]

    if not isinstance(data, RaggedTensor):
        data = text_of(data, who, "data must be strings")
        if not data.encoded.size:  # TensorFlow does not pad what holds no string at all
            return Text(np.empty((*data.encoded.shape[:-1], 0), object))
        if data._rank < 2:
            return Text(np.array(runs(data.encoded.ravel().tolist()), object))
    rows = [runs(row.encoded.tolist()) for row in data]
    if isinstance(data, RaggedTensor):
        return RaggedTensor(Text([x for row in rows for x in row]), [*map(len, rows)])
    return Text(rows)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Hash strings to buckets by FarmHash.

    Args:
        input: Strings of any shape.
        num_buckets: The number of buckets, at least 1.
        name: Ignored.

    Returns:
        Bucket numbers in [0, num_buckets), int64, of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.to_hash_bucket_fast(["a", "b"], 10).numpy()
        array([9, 2])
    """
    found = text_of(input, "tf.strings.to_hash_bucket_fast", "input must be strings")
    return Tensor(hashing.buckets(found.encoded, operator.index(num_buckets)), copy=False)


def to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """Hash strings to buckets by SipHash, whose key makes collisions hard to construct.

    Args:
        input: Strings of any shape.
        num_buckets: The number of buckets, at least 1.
        key: Two integers.
        name: Ignored.

    Returns:
        Bucket numbers in [0, num_buckets), int64, of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> int(tf.strings.to_hash_bucket_strong("a", 10, key=[1, 2])) < 10
        True
    """
    found = text_of(input, "tf.strings.to_hash_bucket_strong", "input must be strings")
    return Tensor(hashing.buckets(found.encoded, operator.index(num_buckets), key), copy=False)
