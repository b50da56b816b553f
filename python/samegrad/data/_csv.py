"""Datasets of comma-separated values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, as_dtype, string
from samegrad._base.shown import shown
from samegrad._tensor.sizes import whole
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import leaf_of, text_of
from samegrad.data._cursor import Cursor
from samegrad.data._dataset import Dataset
from samegrad.data._files import content_of
from samegrad.data._nested_nodes import FileNode
from samegrad.data._nodes import BatchNode, Node, Run, UncountedNode
from samegrad.data._ordering import at_least
from samegrad.data._structure import Structure, as_examples, map_leaves
from samegrad.io import gfile
from samegrad.io._csv import BrokenError, Table, fields_of, records_of
from samegrad.io._records import compression_of

_INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_WIDER = ("int32", "int64", "float32", "float64", "string")


class RowsNode(UncountedNode):
    """Records of a stage as tuples of their columns."""

    def __init__(self, child: Node, table: Table) -> None:
        super().__init__(child, batched=False)
        self.child, self._table = child, table

    @property
    def spec(self) -> Structure:
        return tuple(TensorSpec((), kind) for kind in self._table.kinds)

    def python_cursor(self, run: Run) -> Cursor:
        return _RowsCursor(self.child.cursor(run), self._table)


class _RowsCursor(Cursor):
    def __init__(self, child: Cursor, table: Table) -> None:
        self._child, self._table = child, table

    def next(self) -> Structure:
        record = self._child.next()
        columns = self._table.columns([record.numpy()], lambda _: record.origin, [b""])
        return tuple(map(_first, columns))

    def skip(self, count: int) -> int:
        return self._child.skip(count)


def _first(column: Any) -> Any:
    return leaf_of(column.reshape(()), copy=False)


class CsvDataset(Dataset):
    r"""The records of files of comma-separated values (RFC 4180), as tuples of their columns.

    Args:
        filenames: Paths, or a dataset of paths.
        record_defaults: For each column that is read its dtype, where a field must be there; or the
            default of an empty field. Of float32, float64, int32, int64 or text.
        compression_type: "", "GZIP" or "ZLIB".
        buffer_size: Ignored.
        header: Whether the first record of each file is left out.
        field_delim: Between fields: one character.
        use_quote_delim: Whether fields may be in double quotes; lines may end inside.
        na_value: Another spelling of an empty field.
        select_cols: The numbers of the columns that are read, ascending. None: all.
        exclude_cols: Or the numbers of those that are not.

    Raises:
        NotFoundError: While iterating, if there is no such file.
        InvalidArgumentError: While iterating, if a record has more or fewer fields, or one that is
            empty or not a number; the message names file and line.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("pets.csv", "legs,name\n4,cat\n,fish\n")
        >>> pets = tf.data.experimental.CsvDataset("pets.csv", [[0], tf.string], header=True)
        >>> [(int(legs), name.numpy()) for legs, name in pets]
        [(4, b'cat'), (0, b'fish')]
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None,
        buffer_size: int | None = None, header: bool = False, field_delim: str = ",",
        use_quote_delim: bool = True, na_value: str = "", select_cols: Any = None,
        exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        who = "CsvDataset"
        kind = compression_of(compression_type, who)
        if exclude_cols is not None:
            if select_cols is not None:
                raise ValueError(
                    f"[{who}] only one of select_cols and exclude_cols may be given: got "
                    f"{shown(select_cols)} and {shown(exclude_cols)}."
                )
            select_cols = _others(exclude_cols, len(record_defaults), who)
        table = Table(record_defaults, field_delim, use_quote_delim, na_value, select_cols, who)
        records = _records(filenames, table, kind, bool(header), None, who)
        super().__init__(RowsNode(records, table))


def _others(excluded: Any, count: int, who: str) -> list[int]:
    left_out = {whole(n, "exclude_cols are numbers of columns") for n in np.asarray(excluded).flat}
    if any(n < 0 for n in left_out):
        raise ValueError(f"[{who}] exclude_cols must be 0 or more: got {shown(excluded)}.")
    kept = (number for number in itertools.count() if number not in left_out)
    return list(itertools.islice(kept, count))


def _records(
    filenames: Any, table: Table, kind: str, header: bool, reads: int | None, who: str,
    valid: Callable[[Any], bool] | None = None,
) -> Node:  # fmt: skip
    """The records of files; only those that are valid, if that is asked for."""

    def read(path: str) -> Iterator[Any]:
        found = records_of(path, kind, header, table.quoted, who)
        return filter(valid, found) if valid else found

    return content_of(
        filenames, lambda path: FileNode(path, read), TensorSpec((), "string"), reads, who
    )


class _Batches:
    """Makes batches of records: a dict of columns, and the label beside it."""

    def __init__(self, table: Table, names: Sequence[str], label: str | None) -> None:
        self._table, self._names, self._label = table, names, label

    @property
    def spec(self) -> Structure:
        """The TensorSpecs of a row."""
        return self._arranged([TensorSpec((), kind) for kind in self._table.kinds])

    def batch(self, records: list[Any]) -> Structure:
        """The columns of some records."""
        texts = [record.numpy() for record in records]
        columns = self._table.columns(texts, lambda n: str(records[n].origin), [b""])
        return map_leaves(
            as_examples, self._arranged([leaf_of(column, copy=False) for column in columns])
        )

    def is_valid(self, record: Any) -> bool:
        """Tell if a record can be parsed."""
        try:
            self._table.columns([record.numpy()], str, [b""])
        except ValueError:
            return False
        return True

    def _arranged(self, parts: list[Any]) -> Structure:
        features = dict(zip(self._names, parts, strict=True))
        if self._label is None:
            return features
        label = features.pop(self._label)
        return features, label


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Sequence[str] | None = None,
    column_defaults: Any = None, label_name: str | None = None, select_columns: Any = None,
    field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None, sloppy: bool = False,
    num_rows_for_inference: int | None = 100, compression_type: Any = None,
    ignore_errors: bool = False, encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
    r"""Read CSV files into batches: dicts of columns.

    Args:
        file_pattern: Path, which may have *, ? and [...], or several.
        batch_size: Number of records in a batch.
        column_names: Names of the columns. None: those of the first line.
        column_defaults: As `CsvDataset`'s record_defaults. None: the narrowest of int32, int64,
            float32, float64 and string that fits the first records, and 0 or "" for empty fields.
        label_name: Name of the column that is the label: elements are (dict, label).
        select_columns: Names or indices of the columns to read. None: all.
        field_delim: Delimiter of fields: one character.
        use_quote_delim: If True, fields may be in double quotes.
        na_value: Another spelling of an empty field.
        header: If True, files begin with a line of names.
        num_epochs: Number of passes over the files. None: without end, in full batches.
        shuffle: If True, shuffle the records, anew in each epoch.
        shuffle_buffer_size: As for `Dataset.shuffle`.
        shuffle_seed: As for `Dataset.shuffle`.
        prefetch_buffer_size: Number of batches to prefetch. None: chosen by samegrad; 0: none.
        num_parallel_reads: Number of files that are read in turn.
        sloppy: Ignored; the order is always the same.
        num_rows_for_inference: Number of records from which dtypes are inferred. None: all.
        compression_type: "", "GZIP" or "ZLIB".
        ignore_errors: If True, skip records that cannot be parsed.
        encoding: Encoding of the column names.

    Returns:
        A dataset of dicts, or of (dict, label): each column of shape [batch].

    Raises:
        InvalidArgumentError: No file matches; while iterating, as `CsvDataset`.
        ValueError: A column name is a duplicate, is missing, or differs between files.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("table.csv", "x,y\n1,0.5\n2,1.5\n")
        >>> table = tf.data.experimental.make_csv_dataset(
        ...     "table.csv", batch_size=2, label_name="y", num_epochs=1, shuffle=False)
        >>> [(features["x"].numpy(), y.numpy()) for features, y in table]
        [(array([1, 2], dtype=int32), array([0.5, 1.5], dtype=float32))]
    """
    who = "make_csv_dataset"
    size = at_least(whole(batch_size), 1, who, "batch_size")
    paths = _matching(file_pattern, who)
    probe = _Probe(paths, compression_of(compression_type, who), field_delim, use_quote_delim, who)
    names = list(column_names) if column_names is not None else probe.names(header, encoding)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"[{who}] each column must have a name of its own: got {shown(twice)}.")
    selected = None if select_columns is None else _places(select_columns, names, who)
    if column_defaults is None:
        kept = range(len(names)) if selected is None else selected
        column_defaults = probe.defaults(len(names), kept, na_value, header, num_rows_for_inference)
    table = Table(column_defaults, field_delim, use_quote_delim, na_value, selected, who)
    names = names if selected is None else [names[n] for n in selected]
    if len(names) != len(table.kinds):
        raise ValueError(
            f"[{who}] there must be a default for each column: got {len(table.kinds)} for "
            f"{len(names)} columns."
        )
    if label_name is not None and label_name not in names:
        raise ValueError(
            f"[{who}] label_name must be one of the columns: got {shown(label_name)}, and columns "
            f"{shown(names)}."
        )
    batches = _Batches(table, names, label_name)
    files: Dataset = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    valid = batches.is_valid if ignore_errors else None
    records = Dataset(_records(files, table, probe.kind, header, num_parallel_reads, who, valid))
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    made = Dataset(BatchNode(records._node, size, num_epochs is None, batches.batch, batches))
    return made if prefetch_buffer_size == 0 else made.prefetch(prefetch_buffer_size)


def _matching(pattern: Any, who: str) -> list[str]:
    """The paths of all patterns; a path that is there twice is read twice."""
    given = text_of(pattern, who, "file_pattern must be a string").encoded.ravel().tolist()
    found = [path for each in given for path in gfile.glob(each)]
    if not found:
        raise ValueError(
            f"[{who}] a pattern must match a file: got {shown(pattern)}; look at the working "
            "folder."
        )
    return sorted(found)


class _Probe:
    """Looks at the first rows of files."""

    def __init__(self, paths: list[str], kind: str, delimiter: str, quoted: bool, who: str) -> None:
        self.kind = kind
        self._paths, self._quoted, self._who = paths, quoted, who
        self._delimiter = text_of(delimiter, who).numpy()

    def names(self, header: bool, encoding: str) -> list[str]:
        """The names in the first line of each file."""
        if not header:
            raise ValueError(f"[{self._who}] files without a header need column_names.")
        found = []
        for path in self._paths:
            first = next(self._rows(path, False), None)
            if first is None:
                raise ValueError(
                    f"[{self._who}] a file must have a line of names: got the empty file {path}; "
                    "remove it, or pass column_names and header=False."
                )
            found.append([name.decode(encoding) for name in first])
        other = next((n for n, names in enumerate(found) if names != found[0]), None)
        if other is not None:
            raise ValueError(
                f"[{self._who}] all files must have the same names in their first lines: got "
                f"{shown(found[other])} in {self._paths[other]} and {shown(found[0])} in "
                f"{self._paths[0]}; pass column_names."
            )
        return found[0]

    def defaults(
        self, count: int, kept: Sequence[int], na_value: str, header: bool, most: int | None
    ) -> list[Any]:
        """0 or "" for each column, of the narrowest dtype that fits its fields."""
        kinds: list[str | None] = [None] * len(kept)
        rows = itertools.chain.from_iterable(self._rows(path, header) for path in self._paths)
        for row in itertools.islice(rows, most):
            if len(row) != count:
                raise ValueError(
                    f"[{self._who}] each row must have a field for each of the {count} columns: "
                    f"got {len(row)} in {shown(row)}; repair the file, or pass column_defaults."
                )
            for place, number in enumerate(kept):
                kinds[place] = _widened(kinds[place], row[number], na_value)
        return [_zero(as_dtype(kind) if kind not in (None, "string") else string) for kind in kinds]

    def _rows(self, path: str, header: bool) -> Iterator[list[bytes]]:
        for record in records_of(path, self.kind, header, self._quoted, self._who):
            try:
                yield fields_of(record.numpy(), self._delimiter, self._quoted)
            except BrokenError as error:
                raise ValueError(
                    f"[{self._who}] a record must be fields with a delimiter between them: got "
                    f"{error} in {record.origin}; repair the file."
                ) from None


def _zero(kind: DType) -> Any:
    return "" if kind is string else np.zeros((), kind.as_numpy_dtype)


def _widened(kind: str | None, field: bytes, na_value: str) -> str | None:
    """Return the narrowest dtype that fits this field and the earlier ones."""
    if field in (b"", na_value.encode()):
        return kind
    fits = next(name for name in _WIDER if _is(field, name))
    return fits if kind is None else max(kind, fits, key=_WIDER.index)


def _is(field: bytes, kind: str) -> bool:
    if kind == "string":
        return True
    try:
        if kind in _INTEGERS:
            low, high = _INTEGERS[kind]
            return low <= int(field) <= high
        with np.errstate(over="ignore"):
            return bool(np.dtype(kind).type(float(field)) < np.inf)
    except ValueError:
        return False


def _places(columns: Any, names: list[str], who: str) -> list[int]:
    """The numbers of columns, ascending."""
    found = []
    for column in columns:
        number = names.index(column) if isinstance(column, str) and column in names else column
        if isinstance(number, str) or not 0 <= whole(number) < len(names):
            raise ValueError(
                f"[{who}] select_columns must be names or numbers of the columns {shown(names)}: "
                f"got {shown(column)}."
            )
        found.append(whole(number))
    if len(set(found)) < len(found):
        raise ValueError(f"[{who}] select_columns must not repeat: got {shown(columns)}.")
    return sorted(found)


__all__ = ["CsvDataset", "make_csv_dataset"]
