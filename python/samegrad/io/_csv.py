"""Comma-separated values as tensors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, element_type, string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import convert_to_tensor
from samegrad._tensor.text import Text, is_text, leaf_of, of_bytes, text_of
from samegrad.io._records import lines_of
from samegrad.strings._numbers import numbers_of

_KINDS = ("float32", "float64", "int32", "int64", "string")
Array = np.ndarray[Any, Any]


class BrokenError(ValueError):
    """Fault of a record; the reader adds its position."""


@lru_cache(maxsize=16)
def _field(delimiter: bytes) -> re.Pattern[bytes]:
    """A field and what follows it: in quotes, of which two stand for one, or without any."""
    end = re.escape(delimiter)
    return re.compile(rb'(?:"((?:[^"]|"")*)"|([^"\r\n' + end + rb"]*))(" + end + rb"|\Z)")


def fields_of(record: bytes, delimiter: bytes, quoted: bool) -> list[bytes]:
    """The fields of a record (RFC 4180).

    Raises:
        BrokenError: A quote or the end of a line is where none may be.

    Example:
        >>> fields_of(b'1,"a ""b"", c",', b",", True)
        [b'1', b'a "b", c', b'']
    """
    if not quoted or b'"' not in record:
        if b"\n" in record or b"\r" in record:
            raise BrokenError("a line ends in it outside of quotes")
        return record.split(delimiter)
    pattern, place, fields = _field(delimiter), 0, []
    while True:
        found = pattern.match(record, place)
        if found is None:
            raise BrokenError(_wrong_quote(record, place))
        inside = found[1]
        fields.append(found[2] if inside is None else inside.replace(b'""', b'"'))
        if not found[3]:
            return fields
        place = found.end()


def _wrong_quote(record: bytes, place: int) -> str:
    field = shown(record[place : place + 40])
    if record[place : place + 1] != b'"':
        return f"a field without quotes around it has a quote or the end of a line in it: {field}"
    return (
        "a field in quotes must end with a quote before the next delimiter, and a quote in it "
        f"must be written twice: {field}"
    )


def records_of(path: str, compression: str, header: bool, quoted: bool, who: str) -> Iterator[Text]:
    """The records of a file, each with its place; a line ends one unless it ends in quotes.

    Args:
        path: The file.
        compression: As `opened` takes it.
        header: Whether the first record is left out.
        quoted: Whether fields may be in quotes.
        who: The caller, for errors.

    Raises:
        InvalidArgumentError: There should be a header, and the file is empty.
    """
    held: list[bytes] = []
    first, is_open = 1, False
    for number, line in enumerate(lines_of(path, compression, who), 1):
        if quoted and line.count(b'"') % 2:
            is_open = not is_open
        held.append(line)
        if is_open:
            continue
        if header:
            header = False
        else:
            yield of_bytes(_without_end(b"".join(held)), f"{path}, line {first}")
        held, first = [], number + 1
    if held:
        raise InvalidArgumentError(
            f"[{who}] a quote must be closed before the file ends: got one that begins in {path}, "
            f"line {first}, and is open at the end; repair the file."
        )
    if header:
        raise InvalidArgumentError(
            f"[{who}] a file with a header must have a first line: got the empty file {path}; "
            "remove it, or pass header=False."
        )


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


class Table:
    """Format of records: their columns, and the defaults of empty fields.

    Args:
        defaults: For each column that is read its dtype, where it must not be empty; or its
            default value, as a tensor, a number, text, or a list of one or none of these.
        delimiter: Between fields: one character.
        quoted: Whether fields may be in quotes.
        na_value: What stands for an empty field, as an empty one does.
        selected: Ascending numbers of the columns that are read. None: all.
        who: The caller, for errors.

    Raises:
        ValueError: Something of this is not so.
    """

    def __init__(
        self, defaults: Any, delimiter: Any, quoted: bool, na_value: Any, selected: Any, who: str
    ) -> None:
        self._who = who
        if not isinstance(defaults, list | tuple) or not defaults:
            raise ValueError(
                f"[{who}] record_defaults must be a list with a default or a dtype for each "
                f"column: got {shown(defaults)}."
            )
        columns = [_default(value, number, who) for number, value in enumerate(defaults)]
        self.kinds = [kind for kind, _ in columns]
        self._defaults = [default for _, default in columns]
        self.delimiter = text_of(delimiter, who, "field_delim must be a string").numpy()
        if not isinstance(self.delimiter, bytes) or len(self.delimiter) != 1:
            raise ValueError(f"[{who}] field_delim must be one character: got {shown(delimiter)}.")
        self.quoted = bool(quoted)
        self._na = text_of(na_value, who, "na_value must be a string").numpy()
        self._selected = None if selected is None else _selection(selected, len(columns), who)

    def columns(
        self, records: Sequence[bytes], place: Callable[[int], str], blank: Sequence[bytes] = ()
    ) -> list[Array]:
        """One array per column that is read.

        Args:
            records: Without the ends of their lines.
            place: Says where the n-th record is.
            blank: The fields of an empty record.

        Raises:
            InvalidArgumentError: A record has more or fewer fields, or one that is not such a
                number.
        """
        rows = [self._fields(record, place, n, blank) for n, record in enumerate(records)]
        return [
            self._column([row[number] for row in rows], number, place)
            for number in range(len(self.kinds))
        ]

    def _fields(
        self, record: bytes, place: Callable[[int], str], n: int, blank: Sequence[bytes]
    ) -> Sequence[bytes]:
        try:
            fields = fields_of(record, self.delimiter, self.quoted) if record else blank
        except BrokenError as error:
            raise self._wrong("a record must be fields with a delimiter between them", error,
                              place(n)) from None  # fmt: skip
        if self._selected is not None:
            if len(fields) <= self._selected[-1]:
                rule = f"a record must have more than {self._selected[-1]} fields, for select_cols"
                raise self._wrong(rule, len(fields), place(n))
            return [fields[number] for number in self._selected]
        if len(fields) != len(self.kinds):
            rule = f"a record must have {len(self.kinds)} fields, as record_defaults"
            raise self._wrong(rule, len(fields), place(n))
        return fields

    def _column(self, fields: list[bytes], number: int, place: Callable[[int], str]) -> Array:
        kind, default, na = self.kinds[number], self._defaults[number], self._na
        empty = [n for n, field in enumerate(fields) if not field or field == na]
        if empty and default is None:
            rule = f"field {number} must not be empty, because record_defaults has no default"
            raise self._wrong(rule, fields[empty[0]], place(empty[0]))
        if kind is string:
            made = np.empty(len(fields), object)
            made[:] = fields
            if empty:
                made[empty] = [default] * len(empty)
            return made
        for n in empty:
            fields[n] = b"0"
        numbers = numbers_of(fields, kind.as_numpy_dtype)
        if isinstance(numbers, int):
            rule = f"field {number} must be a {kind.name}"
            raise self._wrong(rule, fields[numbers], place(numbers))
        numbers[empty] = default if empty else 0
        return numbers

    def _wrong(self, rule: str, found: Any, place: str) -> InvalidArgumentError:
        value = found if isinstance(found, int | BrokenError) else shown(found)
        return InvalidArgumentError(
            f"[{self._who}] {rule}: got {value} in {place}; repair the record, or see "
            "Dataset.ignore_errors."
        )


def _default(value: Any, number: int, who: str) -> tuple[DType, Any]:
    """The dtype and the default of a column; None for one that must be there."""
    if isinstance(value, DType | type) or (isinstance(value, str) and value in _KINDS):
        kind, found = element_type(value), None
    elif is_text(value):
        kind, found = string, Text(value).encoded
    else:
        tensor = convert_to_tensor(value)
        kind, found = element_type(tensor._dtype), tensor._numpy()
    if kind.name not in _KINDS or (found is not None and found.size > 1):
        raise ValueError(
            f"[{who}] each of record_defaults must be one of {', '.join(_KINDS)}, or one value of "
            f"these or none: got {shown(value)} for column {number}."
        )
    return kind, found.ravel()[0] if found is not None and found.size else None


def _selection(selected: Any, count: int, who: str) -> list[int]:
    given = np.asarray(selected)
    numbers = [int(n) for n in given.ravel()] if given.dtype.kind in "iu" else []
    ascending = all(a < b for a, b in itertools.pairwise(numbers))
    if not numbers or len(numbers) != count or not ascending or numbers[0] < 0:
        raise ValueError(
            f"[{who}] select_cols must be ascending indices of columns, as many as "
            f"record_defaults has: got {shown(selected)} for {count} defaults."
        )
    return numbers


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "", select_cols: Any = None, name: str | None = None,
) -> list[Any]:  # fmt: skip
    """Parse records of comma-separated values (RFC 4180) into columns.

    Args:
        records: Strings of any shape, each a record without its line break.
        record_defaults: Default of an empty field for each column, of float32, float64, int32,
            int64 or string; an empty list or tensor, or a dtype, for a required field.
        field_delim: The character between fields.
        use_quote_delim: If True, fields may be in double quotes; two of them inside mean one.
        na_value: Another spelling of an empty field.
        select_cols: Ascending indices of the columns to read. None: all.
        name: Ignored.

    Returns:
        A list with a tensor per column, each of the shape of the records.

    Raises:
        InvalidArgumentError: A record has more or fewer fields, a field is empty that must not be,
            or is not a number; the message says which.
        ValueError: The defaults, the delimiter or the columns are invalid.

    Example:
        >>> import samegrad as tf
        >>> numbers, words = tf.io.decode_csv(["1,a", ',"b, c"'], [[0], [""]])
        >>> numbers.numpy(), words.numpy()
        (array([1, 0], dtype=int32), array([b'a', b'b, c'], dtype=object))
    """
    who = "tf.io.decode_csv"
    table = Table(record_defaults, field_delim, use_quote_delim, na_value, select_cols, who)
    texts = text_of(records, who, "records must be strings")
    shape, origin = texts._shape, texts.origin
    rows = texts.encoded.ravel().tolist()
    columns = table.columns(rows, lambda n: origin or f"record {n}")
    return [leaf_of(column.reshape(shape), copy=False) for column in columns]
