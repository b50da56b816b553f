"""Elements that are kept: in memory, and in files."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from samegrad._base.file_errors import explained_errors
from samegrad._base.shown import shown
from samegrad._tensor.sizes import whole
from samegrad.data import _function_nodes as functions
from samegrad.data import _nodes as nodes
from samegrad.data._cursor import Cursor
from samegrad.data._drawing import Drawing
from samegrad.data._mapped import call
from samegrad.data._nested_nodes import ElementsNode, InterleaveNode
from samegrad.data._nodes import INFINITE, Node, PythonNode, Run
from samegrad.data._storage import ElementFile, ElementWriter
from samegrad.data._structure import DatasetSpec, Structure, as_examples, map_leaves
from samegrad.errors import DataLossError, InvalidArgumentError, NotFoundError
from samegrad.io.gfile import path_of

Self = TypeVar("Self", bound="Keeping")
_MANIFEST = "elements.json"
_COMPRESSIONS = (None, "", "AUTO", "NONE", "GZIP")


# The description of a pipeline by its last stage, from a module that knows all stages.
_describe: list[Callable[[Node], object]] = []


def set_description(describe: Callable[[Node], object]) -> None:
    """Set the function that describes a pipeline by its last stage."""
    _describe[:] = [describe]


class StoredNode(PythonNode):
    """The elements of a file."""

    def __init__(self, path: str, who: str) -> None:
        super().__init__(batched=None)
        self._path, self._who = path, who
        file = ElementFile(path, who)
        self._spec, self._count = file.spec, len(file)

    @property
    def spec(self) -> Structure:
        return self._spec

    def cardinality(self) -> int:
        return self._count

    def python_cursor(self, run: Run) -> Cursor:
        return _StoredCursor(self._path, self._who, None, False)


class _StoredCursor(Cursor):
    def __init__(self, path: str, who: str, spec: Structure, batched: bool) -> None:
        self._path, self._who, self._spec, self._batched = path, who, spec, batched
        self._file: ElementFile | None = None
        self._next = 0

    def next(self) -> Structure:
        file = self._opened()
        if file is None or self._next >= len(file):
            raise StopIteration
        self._next += 1
        element = file[self._next - 1]
        return map_leaves(as_examples, element) if self._batched else element

    def skip(self, count: int) -> int:
        file = self._opened()
        done = 0 if file is None else min(count, len(file) - self._next)
        self._next += done
        return done

    def _opened(self) -> ElementFile | None:
        """The file; None if it could not be read, which was said."""
        if self._file is None and self._next == 0:
            self._next = -1
            file = ElementFile(self._path, self._who)
            if self._spec is not None and not file.describes(self._spec):
                raise InvalidArgumentError(
                    f"[{self._who}] a file must hold elements of this dataset, {self._spec}: got "
                    f"those of {file.spec} in {self._path}; remove it, or choose another name."
                )
            self._file, self._next = file, 0
        return self._file


class FileCacheNode(PythonNode):
    """Keeps what the stages before made in their first run in a file.

    Args:
        child: The stages before.
        path: The file, which appears when the first run has ended.
    """

    def __init__(self, child: Node, path: str) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self._path = child, path

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def cardinality(self) -> int:
        return self.child.cardinality()

    def python_cursor(self, run: Run) -> Cursor:
        path = self._path + run.suffix
        if os.path.exists(path):
            certain = functions.sizes_are_known(self.child)
            spec = self.spec if certain else None
            return _StoredCursor(path, "Dataset.cache", spec, bool(self.batched))
        if self.child.cardinality() == INFINITE:
            return self.child.cursor(run)
        first = replace(run, epoch=0)  # whichever run comes first
        return _WritingCursor(self.child.cursor(first), path)


class _WritingCursor(Cursor):
    """Writes the elements that it gives; the file appears once all were there."""

    def __init__(self, child: Cursor, path: str) -> None:
        self._child, self._path = child, path
        self._writer: ElementWriter | None = None
        self._whole = True

    def next(self) -> Structure:
        if self._writer is None and self._whole:
            self._writer = ElementWriter(self._path, "Dataset.cache")
        try:
            element = self._child.next()
        except StopIteration:
            if self._writer is not None and self._whole:
                self._writer.close()
                self._writer, self._whole = None, False
            raise
        except Exception:
            self._drop()  # a file without this element would hide the error
            raise
        if self._writer is not None:
            try:
                self._writer.add(element)
            except BaseException:
                self._drop()
                raise
        return element

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.drop()
        self._writer, self._whole = None, False


class Keeping(Drawing):
    """Stages that keep elements, and files of elements."""

    def cache(self: Self, filename: Any = "", name: str | None = None) -> Self:
        """Cache the elements of the first run, in memory or in a file.

        In memory, the elements of a dataset of known size are computed before the first one is
        given. A file appears under its name once the first run has ended, never half-written. A run
        that is killed leaves no file, and one that is resumed from a checkpoint writes all of it.
        The file is read wherever it is found, also by other processes: remove it when earlier
        transformations change. With `AutoShardPolicy.FILE` or `OFF` each of several processes has
        its own file, whose name ends in its rank and their number, ".elements.0of2".

        Args:
            filename: Prefix of the file's name, which ends in ".elements". Empty: cache in memory.
            name: Ignored.

        Returns:
            Dataset of the same elements.

        Raises:
            TypeError: While iterating, if elements of a file hold something other than tensors and
                strings.
            DataLossError: While iterating, if the file is damaged; the message says where.
            InvalidArgumentError: While iterating, if it holds other elements.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(2).cache()]
            [0, 1]
            >>> kept = tf.data.Dataset.range(2).cache("numbers")
            >>> [int(n) for n in kept], tf.io.gfile.exists("numbers.elements")
            ([0, 1], True)
        """
        named = filename is not None and not (isinstance(filename, str) and not filename)
        path = path_of(filename, "Dataset.cache") if named else ""
        if not path:
            return self._then(functions.CacheNode(self._node))
        return self._then(FileCacheNode(self._node, f"{os.path.abspath(path)}.elements"))

    def save(
        self, path: Any, compression: str | None = None,
        shard_func: Callable[..., Any] | None = None, checkpoint_args: Any = None,
    ) -> None:  # fmt: skip
        """Write all elements into a folder, for `load`.

        Elements that were saved there before are replaced only when all are written.

        Args:
            path: Folder, created if it does not exist.
            compression: "GZIP" to compress elements, or None.
            shard_func: Maps an element (a tuple as several arguments) to the index of its file.
                None: one file for all.
            checkpoint_args: Must be None: a folder is written whole or not at all.

        Raises:
            OSError: The folder cannot be written.
            TypeError: Elements hold something other than tensors and strings.
            ValueError: The dataset is infinite, or compression is another one.

        Example:
            >>> import samegrad as tf
            >>> tf.data.Dataset.range(3).save("saved")
            >>> [int(n) for n in tf.data.Dataset.load("saved")]
            [0, 1, 2]
        """
        who = "Dataset.save"
        folder = path_of(path, who)
        if compression not in _COMPRESSIONS:
            raise ValueError(f"[{who}] compression must be None or GZIP: got {shown(compression)}.")
        if checkpoint_args is not None:
            raise NotImplementedError(
                f"[{who}] a folder is written whole or not at all: got checkpoint_args="
                f"{shown(checkpoint_args)}; leave it out."
            )
        if self._node.cardinality() == INFINITE:
            raise ValueError(f"[{who}] a dataset must have an end: got one without; see take.")
        token, writers = secrets.token_hex(4), dict[int, ElementWriter]()
        names: dict[int, str] = {}
        try:
            for element in iter(self):  # type: ignore[call-overload]
                shard = 0 if shard_func is None else whole(call(shard_func, element))
                if shard not in writers:
                    names[shard] = f"{len(writers):05}-{token}.elements"
                    target = os.path.join(folder, names[shard])
                    writers[shard] = ElementWriter(target, who, compression == "GZIP")
                writers[shard].add(element)
            for writer in writers.values():
                writer.close()
        finally:
            for writer in writers.values():
                writer.drop()
        _write_manifest(folder, [names[shard] for shard in sorted(names)], who)

    @classmethod
    def load(
        cls: type[Self], path: Any, element_spec: Structure = None, compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None, wait: bool = False,
    ) -> Self:  # fmt: skip
        """Read the elements that `save` wrote, one from each of several files in turn.

        Args:
            path: Folder that `save` wrote.
            element_spec: TensorSpecs that the elements must have. None: those of the files.
            compression: Ignored: the files record it.
            reader_func: Maps a dataset of the files' datasets to the dataset of elements.
            wait: Ignored: a folder appears when all of it is written.

        Returns:
            Dataset of the saved elements.

        Raises:
            NotFoundError: Nothing was saved there.
            DataLossError: A file is damaged, also while iterating; the message says where.
            InvalidArgumentError: The elements are not those of element_spec.

        Example:
            >>> import samegrad as tf
            >>> tf.data.Dataset.range(4).save("dealt", shard_func=lambda x: x % 2)
            >>> [int(n) for n in tf.data.Dataset.load("dealt")]
            [0, 1, 2, 3]
        """
        who = "Dataset.load"
        folder = path_of(path, who)
        files = [os.path.join(folder, name) for name in _manifest(folder, who)]
        parts = [StoredNode(file, who) for file in files]
        for part, file in zip(parts, files, strict=True):
            if element_spec is not None and not ElementFile(file, who).describes(element_spec):
                raise InvalidArgumentError(
                    f"[{who}] the elements must be those of element_spec, {element_spec}: got "
                    f"{part.spec} in {file}; leave it out."
                )
        if reader_func is not None:
            datasets = [cls._made(part) for part in parts]
            spec = DatasetSpec(parts[0].spec) if parts else None
            return reader_func(cls._made(ElementsNode(datasets, spec, None)))  # type: ignore[no-any-return]
        if len(parts) == 1:
            return cls._made(parts[0])
        if not parts:
            return cls._made(ElementsNode([], element_spec, None))
        numbers = nodes.RangeNode(0, 1, len(parts))
        turns = InterleaveNode(numbers, lambda n: parts[int(n)], len(parts), 1, parts[0].spec)
        return cls._made(turns)

    def snapshot(
        self: Self, path: Any, compression: str | None = "AUTO",
        reader_func: Callable[..., Any] | None = None,
        shard_func: Callable[..., Any] | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Cache the elements of the first run in a file of a folder, as `cache` does.

        A pipeline of other sources, transformations or arguments has another file. Functions are
        not compared: remove the folder when they change.

        Args:
            path: The folder.
            compression: Ignored.
            reader_func: None: a snapshot is one file.
            shard_func: None: a snapshot is one file.
            name: Ignored.

        Returns:
            Dataset of the same elements.

        Raises:
            NotImplementedError: `reader_func` or `shard_func` are given; see `save` and `load`.

        Example:
            >>> import samegrad as tf
            >>> data = tf.data.Dataset.range(2).snapshot("kept")
            >>> [int(n) for n in data], len(tf.io.gfile.listdir("kept"))
            ([0, 1], 1)
        """
        if reader_func is not None or shard_func is not None:
            raise NotImplementedError(
                f"[Dataset.snapshot] a snapshot is one file: got reader_func={shown(reader_func)} "
                f"and shard_func={shown(shard_func)}; use save and load."
            )
        words = repr(_describe[0](self._node)).encode()
        folder = path_of(path, "Dataset.snapshot")
        return self.cache(os.path.join(folder, hashlib.sha256(words).hexdigest()[:16]))


def _write_manifest(folder: str, names: list[str], who: str) -> None:
    """From now on the folder holds these files; others of this kind are removed."""
    target = Path(folder, _MANIFEST)
    with explained_errors(who, "write", target, "Choose another path"):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{_MANIFEST}-{secrets.token_hex(4)}.partial")
        partial.write_text(json.dumps({"version": 1, "files": names}))
        os.replace(partial, target)
        for old in target.parent.glob("*.elements"):
            if old.name not in names:
                old.unlink(missing_ok=True)


def _manifest(folder: str, who: str) -> list[str]:
    path = Path(folder, _MANIFEST)
    try:
        with explained_errors(who, "read", path, "Choose another path"):
            text = path.read_text()
        found = json.loads(text)
        return [os.path.basename(name) for name in found["files"]]
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"[{who}] a dataset must have been saved: got {folder}, where there is no {_MANIFEST}; "
            "see Dataset.save."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataLossError(
            f"[{who}] {path} is damaged: {error}; save the dataset again."
        ) from None
