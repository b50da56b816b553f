"""Writers of files for TensorBoard, and which of them is written to."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from samegrad._context.python_runs import leave_trace

_numbers = itertools.count()
_writer: ContextVar[SummaryWriter | None] = ContextVar("summary_writer", default=None)
_step: ContextVar[Any] = ContextVar("summary_step", default=None)
_recording: ContextVar[Any] = ContextVar("summary_recording", default=True)
_scope: ContextVar[str] = ContextVar("summary_scope", default="")


def package() -> Any:
    """The package tensorboardX, with the messages of its files.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import tensorboardX
        from tensorboardX import event_file_writer  # noqa: F401
        from tensorboardX.proto import event_pb2, summary_pb2, tensor_pb2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "[tf.summary] files for TensorBoard are written by the package tensorboardX: got "
            f"{error}; pip install 'samegrad[tensorboard]'."
        ) from error
    return tensorboardX


class SummaryWriter:
    """Writes to one file in a folder, which is made with the first summary; or to none.

    Args:
        logdir: The folder; None: nothing is written.
        max_queue: After how many summaries they are brought to the disk.
        flush_millis: After how many milliseconds they are, with the next summary.
        filename_suffix: The end of the file's name.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = tf.summary.create_file_writer(folder)
        ...     with writer.as_default():
        ...         written = tf.summary.scalar("loss", 0.5, step=1)
        ...     writer.close()
        >>> bool(written)
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str] | None,
        max_queue: int | None = None,
        flush_millis: int | None = None,
        filename_suffix: str | None = None,
    ) -> None:
        self._folder = None if logdir is None else os.fspath(logdir)
        self._most = 10 if max_queue is None else int(max_queue)
        self._seconds = (120_000 if flush_millis is None else flush_millis) / 1000
        self._suffix = ".v2" if filename_suffix is None else filename_suffix
        self._events: Any = None
        self._waiting, self._flushed, self._closed = 0, time.monotonic(), False
        if self._folder is not None:
            package()

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Return a context in which summaries are written here.

        Args:
            step: The step of summaries that do not pass one.

        Returns:
            A context manager that yields this writer.
        """
        before = _writer.set(self)
        step_before = _step.set(_step.get() if step is None else step)
        try:
            yield self
        finally:
            self.flush()
            _step.reset(step_before)
            _writer.reset(before)

    def set_as_default(self, step: Any = None) -> None:
        """Write summaries here from now on.

        Args:
            step: The step of summaries that do not pass one.
        """
        _writer.set(self)
        if step is not None:
            _step.set(step)

    def init(self) -> None:
        """Make the file, if there is none yet.

        Raises:
            RuntimeError: The writer is closed.
        """
        if self._closed:
            raise RuntimeError("[tf.summary] SummaryWriter is already closed; make another one.")
        if self._events is None and self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
            name = f".{os.getpid()}.{next(_numbers)}{self._suffix}"
            prefix = os.path.join(self._folder, "events")
            self._events = package().event_file_writer.EventsWriter(prefix, name)

    def add(self, event: Any) -> None:
        """Write an event.

        Args:
            event: A message of tensorboardX, with its step.
        """
        self.init()
        if self._events is None:
            return
        event.wall_time = time.time()
        self._events.write_event(event)
        self._waiting += 1
        if self._waiting >= self._most or time.monotonic() - self._flushed > self._seconds:
            self.flush()

    def flush(self) -> None:
        """Flush buffered summaries to the disk."""
        if self._events is not None and self._waiting and not self._closed:
            self._events.flush()
            self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """End the file: nothing more can be written."""
        if self._events is not None and not self._closed:
            self._events.close()
        self._closed = True


def create_file_writer(
    logdir: str | os.PathLike[str],
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """Create a writer of summaries to a file in a folder.

    Args:
        logdir: The folder; the first summary creates it.
        max_queue: The number of summaries after which they are flushed: 10 by default.
        flush_millis: The milliseconds after which they are flushed: 120,000 by default.
        filename_suffix: The end of the file's name: ".v2" by default.
        name: Not used.

    Returns:
        The writer.

    Raises:
        ImportError: tensorboardX is not installed.

    Example:
        See `SummaryWriter`.
    """
    return SummaryWriter(logdir, max_queue, flush_millis, filename_suffix)


def create_noop_writer() -> SummaryWriter:
    """Create a writer that writes nothing.

    Example:
        >>> create_noop_writer().flush()
    """
    return SummaryWriter(None)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Flush buffered summaries to the disk.

    Args:
        writer: The writer; that of the context by default.
        name: Not used.

    Example:
        >>> flush()
    """
    writer = _writer.get() if writer is None else writer
    if writer is not None:
        writer.flush()


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Return a context in which summaries are written if a condition holds.

    Args:
        condition: A bool, or a function that returns one and is called for each summary.

    Returns:
        A context manager.

    Example:
        >>> with record_if(False):
        ...     should_record_summaries()
        False
    """
    before = _recording.set(condition)
    try:
        yield
    finally:
        _recording.reset(before)


def should_record_summaries() -> bool:
    """Tell if there is a writer, and the condition of `record_if` holds.

    A traced function that has a writer falls back to Python, which writes at each call.

    Returns:
        Whether summaries are written.

    Raises:
        RuntimeError: Inside `run` of several replicas, whose steps write nothing.

    Example:
        >>> should_record_summaries()
        False
    """
    condition: bool | Callable[[], Any] = _recording.get()
    if _writer.get() is None or condition is False:
        return False
    leave_trace(
        "[tf.summary] a summary needs the values of one replica: got a traced step of several "
        "replicas; return the value from the step, and write it outside."
    )
    return bool(condition() if callable(condition) else condition)


def writer() -> SummaryWriter:
    """Return the writer of the context, which must exist."""
    found = _writer.get()
    assert found is not None, "should_record_summaries() says whether there is one"
    return found


def get_step() -> Any:
    """Return the step of summaries that do not pass one, or None.

    Example:
        >>> get_step() is None
        True
    """
    return _step.get()


def set_step(step: Any) -> None:
    """Set the step of summaries that do not pass one.

    Args:
        step: An integer, a variable, which is read for each summary, or None.

    Example:
        >>> set_step(None)
    """
    _step.set(step)


@contextlib.contextmanager
def summary_scope(
    name: str, default_name: str = "summary", values: Any = None
) -> Iterator[tuple[str, str]]:
    """Return a context that names summaries.

    Args:
        name: The name of the summary, after the names of the scopes around it.
        default_name: The name if `name` is empty.
        values: Not used.

    Returns:
        The tag of the summary, and its scope.

    Example:
        >>> with summary_scope("train"), summary_scope("loss") as (tag, _):
        ...     tag
        'train/loss'
    """
    tag = f"{_scope.get()}{name or default_name}"
    before = _scope.set(f"{tag}/")
    try:
        yield tag, f"{tag}/"
    finally:
        _scope.reset(before)


def number_of(step: Any) -> int:
    """Convert a step to an integer.

    Args:
        step: None: that of the context.

    Raises:
        ValueError: The context has no step.
    """
    step = _step.get() if step is None else step
    if step is None:
        raise ValueError(
            "[tf.summary] a summary is of a step: got none; give step=..., or set it by "
            "tf.summary.experimental.set_step or writer.as_default(step)."
        )
    return int(np.asarray(step))
