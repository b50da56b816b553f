"""Datasets of what is in files."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from samegrad._tensor.sizes import whole
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import text_of
from samegrad.data._dataset import Dataset
from samegrad.data._nested_nodes import FileNode, InterleaveNode
from samegrad.data._nodes import Node
from samegrad.data._ordering import at_least
from samegrad.data._structure import Structure
from samegrad.errors import InvalidArgumentError
from samegrad.io._records import compression_of, lines_of, records_of
from samegrad.io.gfile import existing


def _lines(path: str, compression: str) -> Iterator[bytes]:
    """The lines of a file without their ends."""
    for line in lines_of(path, compression, "TextLineDataset"):
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def content_of(
    filenames: Any, node_of: Callable[[str], Node], spec: Structure, reads: int | None, who: str
) -> Node:
    """Read files, one after the other or in turn.

    Args:
        filenames: Paths, or a dataset of paths.
        node_of: Makes the stage of one of them.
        spec: The TensorSpecs of its elements.
        reads: How many are read in turn; None: one after the other.
        who: The caller, for errors.
    """
    if isinstance(filenames, Dataset):
        paths = filenames
    else:
        names = text_of(filenames, who, "filenames must be strings, or a dataset of them").encoded
        paths = Dataset.from_tensor_slices(text_of(names.reshape(-1), who))
    turns = 1 if reads is None else at_least(operator.index(reads), 1, who, "num_parallel_reads")
    return InterleaveNode(
        paths._node, lambda path: node_of(existing(path, who)), turns, 1, spec, of_files=True
    )


def _texts_of(
    filenames: Any, read: Callable[[str], Iterable[bytes]], reads: int | None, who: str
) -> Node:
    spec = TensorSpec((), "string")
    return content_of(filenames, lambda path: FileNode(path, read), spec, reads, who)


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

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = compression_of(compression_type, "TextLineDataset")
        super().__init__(
            _texts_of(
                filenames, lambda path: _lines(path, kind), num_parallel_reads, "TextLineDataset"
            )
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

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = compression_of(compression_type, "TFRecordDataset")
        super().__init__(
            _texts_of(
                filenames,
                lambda path: records_of(path, kind),
                num_parallel_reads,
                "TFRecordDataset",
            )
        )


class FixedLengthRecordDataset(Dataset):
    """The records of one length of binary files, as strings.

    Args:
        filenames: Paths, or a dataset of paths.
        record_bytes: The length of a record in bytes.
        header_bytes: The bytes to skip at the start of a file.
        footer_bytes: The bytes to leave out at its end.
        buffer_size: Ignored.
        compression_type: "", "GZIP" or "ZLIB".
        num_parallel_reads: How many files are read in turn; None: one after the other.
        name: Ignored.

    Raises:
        ValueError: A length is negative, or that of a record is 0.
        NotFoundError: While iterating, if there is no such file.
        InvalidArgumentError: While iterating, if a file does not hold complete records.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("records.bin", b"#aabbcc")
        >>> [record.numpy() for record in tf.data.FixedLengthRecordDataset("records.bin", 2, 1)]
        [b'aa', b'bb', b'cc']
    """

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None,
        footer_bytes: Any = None, buffer_size: int | None = None, compression_type: Any = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        who = "FixedLengthRecordDataset"
        kind = compression_of(compression_type, who)
        size = at_least(whole(record_bytes), 1, who, "record_bytes")
        ends = [at_least(whole(given or 0), 0, who, what) for given, what in (
            (header_bytes, "header_bytes"), (footer_bytes, "footer_bytes"))]  # fmt: skip

        def records(path: str) -> Iterator[bytes]:
            data = b"".join(lines_of(path, kind, who))
            body = data[ends[0] : len(data) - ends[1]]
            if len(data) < sum(ends) or len(body) % size:
                raise InvalidArgumentError(
                    f"[{who}] a file must hold complete records: got {len(data)} bytes in {path}, "
                    f"of which {ends[0]} are the header, {ends[1]} the footer and {size} a record."
                )
            return (body[at : at + size] for at in range(0, len(body), size))

        super().__init__(_texts_of(filenames, records, num_parallel_reads, who))
