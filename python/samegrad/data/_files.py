"""Datasets of what is in files."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from samegrad._tensor.text import text_of
from samegrad.data._dataset import Dataset
from samegrad.data._nested_nodes import FileNode, InterleaveNode
from samegrad.data._ordering import at_least
from samegrad.io._records import compression_of, opened, records_of, taken
from samegrad.io.gfile import existing

_CHUNK = 1 << 20


def _lines(path: str, compression: str) -> Iterator[bytes]:
    """The lines of a file without their ends."""
    rest, place = b"", 0
    with opened(path, compression, "TextLineDataset") as file:
        while chunk := taken(file, _CHUNK, "TextLineDataset", path, place):
            place += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r")
    if rest:
        yield rest.removesuffix(b"\r")


def _of_files(
    filenames: Any, read: Callable[[str], Iterable[bytes]], reads: int | None, who: str
) -> Dataset:
    if isinstance(filenames, Dataset):
        paths = filenames
    else:
        names = text_of(filenames, who, "filenames must be text, or a dataset of it").encoded
        paths = Dataset.from_tensor_slices(text_of(names.reshape(-1), who))

    def content(path: Any) -> FileNode:
        return FileNode(existing(path, who), read)

    turns = 1 if reads is None else at_least(operator.index(reads), 1, who, "num_parallel_reads")
    spec = FileNode("", read).spec
    return Dataset(InterleaveNode(paths._node, content, turns, 1, spec))


class TextLineDataset(Dataset):
    r"""The lines of files, as text, without the ends of lines.

    Args:
        filenames: Paths, or a dataset of paths.
        compression_type: "", "GZIP" or "ZLIB".
        buffer_size: Ignored.
        num_parallel_reads: How many files are read in turn; None: one after the other.
        name: Ignored.

    Raises:
        NotFoundError: While iterating, if there is no such file.
        DataLossError: While iterating, if a compressed file is damaged.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("lines.txt", "one\ntwo\n")
        >>> [line.numpy() for line in tf.data.TextLineDataset("lines.txt")]
        [b'one', b'two']
    """

    def __new__(
        cls, filenames: Any, compression_type: Any = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> Any:  # fmt: skip
        kind = compression_of(compression_type, "TextLineDataset")
        return _of_files(
            filenames, lambda path: _lines(path, kind), num_parallel_reads, "TextLineDataset"
        )


class TFRecordDataset(Dataset):
    """The records of files that `tf.io.TFRecordWriter` wrote, as text.

    Args:
        filenames: Paths, or a dataset of paths.
        compression_type: "", "GZIP" or "ZLIB".
        buffer_size: Ignored.
        num_parallel_reads: How many files are read in turn; None: one after the other.
        name: Ignored.

    Raises:
        NotFoundError: While iterating, if there is no such file.
        DataLossError: While iterating, if a file is damaged; the message says where.

    Example:
        >>> import samegrad as tf
        >>> with tf.io.TFRecordWriter("a.tfrecord") as writer:
        ...     writer.write(b"one")
        >>> [record.numpy() for record in tf.data.TFRecordDataset(["a.tfrecord"])]
        [b'one']
    """

    def __new__(
        cls, filenames: Any, compression_type: Any = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> Any:  # fmt: skip
        kind = compression_of(compression_type, "TFRecordDataset")
        return _of_files(
            filenames, lambda path: records_of(path, kind), num_parallel_reads, "TFRecordDataset"
        )
