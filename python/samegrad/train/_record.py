"""`record_run`: the hashes of a run's values, step by step, in a file."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from samegrad import _core
from samegrad._base.file_errors import explained_errors
from samegrad._base.launchers import launched
from samegrad._base.location import warn
from samegrad._base.machine import processor
from samegrad._base.shown import shown
from samegrad._context.weak import WeakIds
from samegrad.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from samegrad.train._record_file import (
    FORMAT,
    LONGEST_LINE,
    VERSION,
    arrays_path,
    encode_line,
    hexadecimal,
)
from samegrad.train._storage import Json, write_arrays
from samegrad.train.checkpoint import provided_now

_REMEDY = "Look at its folder and the disk, or give another path"
_active = threading.Lock()


@contextlib.contextmanager
def record_run(
    path: str | os.PathLike[str], detail: int | None = None, *, overwrite: bool = False
) -> Iterator[None]:
    """Record the hashes of all values of each step that runs in a `with` block.

    A step is a run of a function that `tf.function` compiles, of `Strategy.run`, or of a method of
    a Keras model such as `fit` and `evaluate`, if it reads or writes a variable. For each step, the
    file gets hashes of the arguments, the outputs, the summed gradients and the variables. Compare
    two files with `tf.diff_runs`. A hash does not depend on replicas, threads, processes or the
    machine.

    In an MPI job, all processes enter the block, and the first one writes the file.

    Args:
        path: The new file.
        detail: The number of the step, from 0, that is recorded with all its operations. Its batch
            and the variables before it are saved to `path + ".step-N.safetensors"`.
        overwrite: Replace files that exist.

    Yields:
        None.

    Raises:
        AlreadyExistsError: A file exists.
        FailedPreconditionError: Another run is being recorded.
        InvalidArgumentError: `detail` is not a number of a step.
        OSError: The file cannot be written.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable([1.0, 2.0])
        >>> step = tf.function(lambda x: w.assign_add(x))
        >>> for name in ("a.sgrec", "b.sgrec"):
        ...     _ = w.assign([1.0, 2.0])
        ...     with tf.record_run(name):
        ...         _ = [step(tf.constant([0.5, 0.5])) for _ in range(3)]
        >>> tf.diff_runs("a.sgrec", "b.sgrec").same
        True
    """
    if detail is not None and (type(detail) is not int or detail < 0):
        raise InvalidArgumentError(
            f"[record_run] detail must be the number of a step, from 0: got {shown(detail)}."
        )
    if not _active.acquire(blocking=False):
        raise FailedPreconditionError(
            "[record_run] one run is recorded at a time: got a record_run inside another; leave "
            "the first block before."
        )
    try:
        with contextlib.closing(_Recorder(Path(os.fspath(path)), detail, overwrite)) as recorder:
            _core.record_steps(recorder.observe, -1 if detail is None else detail)
            try:
                yield
            except BaseException as error:
                recorder.error = type(error).__name__
                raise
            finally:
                _core.record_steps(None)
    finally:
        _active.release()
    recorder.warn_of_missing_steps()


class _Recorder:
    """Writer of a record file; ranks of an MPI job but the first write nothing."""

    def __init__(self, path: Path, detail: int | None, overwrite: bool) -> None:
        self.error: str | None = None
        self._path = path
        self._detail = detail
        self._steps = 0
        self._crc = 0
        self._has_header = self._has_detail = False
        self._programs: dict[Any, int] = {}
        self._numbers: WeakIds[int] = WeakIds()
        self._lock = threading.Lock()  # of threads that train at the same time
        self._file: BinaryIO | None = None
        if launched().rank == 0:
            self._file = _open(path, overwrite)
            if detail is not None:
                self._reserve_arrays(overwrite)

    def observe(self, step: Any, record: Any, arguments: Any) -> None:
        """Write a step. The engine calls it after each."""
        with self._lock:
            self._steps += 1
            if self._file is None:
                self._has_detail |= record.index == self._detail
                return
            self._write("step", _step_fields(record, self._number_of(step)))
            if arguments is not None:
                self._has_detail = True
                self._write("detail", self._detail_fields(step, record, arguments))

    def close(self) -> None:
        """Write the end of the file."""
        if self._file is not None:
            self._write("end", {"steps": self._steps, "error": self.error})
            with explained_errors("record_run", "write", self._path, _REMEDY):
                self._file.close()

    def warn_of_missing_steps(self) -> None:
        """Warn if the block ran no step, or ended before the one with all operations."""
        if self._steps == 0:
            warn(
                "[record_run] no step was recorded: runs of tf.function, Strategy.run, fit, "
                "train_on_batch and evaluate that use a variable are recorded; compile the step "
                "with tf.function, and call it inside the block."
            )
        elif self._detail is not None and not self._has_detail:
            warn(
                f"[record_run] step {self._detail} was not recorded: got {self._steps} steps; give "
                "detail a lower number."
            )

    def _write(self, kind: str, fields: dict[str, Json]) -> None:
        if not self._has_header:  # at the first step, when all is set and loaded
            self._has_header = True
            self._write("header", _header())
        line, self._crc = encode_line(kind, fields, self._crc)
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"[record_run] a line must have at most {LONGEST_LINE} bytes: got {len(line)} for "
                f"a {kind}; record smaller functions."
            )
        assert self._file is not None
        with explained_errors("record_run", "write", self._path, _REMEDY):
            self._file.write(line)
            self._file.flush()  # a killed process leaves all steps before

    def _number_of(self, step: Any) -> int:
        """Return the number of a program, whose line is written before its first step."""
        if (known := self._numbers.get(step)) is not None:
            return known
        entries = _core.step_entries(step)
        key = (_core.step_hash(step), _core.step_replicas(step), tuple(entries))
        if key not in self._programs:
            number = self._programs[key] = len(self._programs)
            fields: dict[str, Json] = {
                "program": number,
                "hash": hexadecimal(key[:1]),
                "replicas": key[1],
                "variables": [*_core.step_variables(step)],
                "entries": [list(entry) for entry in entries],
                "operations": [list(operation) for operation in _core.step_operations(step)],
                "reasons": [list(reason) for reason in _core.step_reasons(step)],
            }
            self._write("program", fields)
        self._numbers.set(step, self._programs[key])
        return self._programs[key]

    def _reserve_arrays(self, overwrite: bool) -> None:
        path = arrays_path(self._path, self._detail or 0)
        if overwrite:
            path.unlink(missing_ok=True)
        elif path.exists():
            raise _exists(path)

    def _detail_fields(self, step: Any, record: Any, arguments: Any) -> dict[str, Json]:
        path = arrays_path(self._path, record.index)
        with explained_errors("record_run", "write", path, _REMEDY):
            saved = write_arrays(path, _arrays_before(step, record, arguments))
        return {
            "step": record.index,
            "operations": [
                [op, type_text, line, placement, list(inputs), hexadecimal(hashes)]
                for op, type_text, line, placement, inputs, hashes in record.operations
            ],
            "stored": [[*names, hexadecimal([last])] for *names, last in record.stored],
            "arrays": saved,
        }


def _open(path: Path, overwrite: bool) -> BinaryIO:
    with explained_errors("record_run", "write", path, _REMEDY):
        try:
            return path.open("wb" if overwrite else "xb")
        except FileExistsError:
            raise _exists(path) from None


def _exists(path: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"[record_run] a record must be a new file: got {path}, which exists; give another path, "
        "or pass overwrite=True or --overwrite."
    )


def _header() -> dict[str, Json]:
    provided = provided_now()
    numerics: Any = provided["numerics"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "samegrad": provided["samegrad_version"],
        **numerics,
        "kernels": provided["isa"],
        "fused": _core.isa_fused()[_core.isa()],
        "numeric_policy": provided["numeric_policy"],
        "processor": processor(),
        "threads": _core.thread_count(),
        "processes": launched().size,
        "seed": int(_core.random_state().seed),
    }


def _step_fields(record: Any, program: int) -> dict[str, Json]:
    return {
        "step": record.index,
        "program": program,
        "seed": record.seed,
        "draw": record.draw,
        "examples": list(record.examples),
        "hashes": hexadecimal(record.hashes),
        "before": [[slot, hexadecimal([value])] for slot, value in record.before],
        "example_hashes": [
            [argument, hexadecimal(values, 32)] for argument, values in record.example_hashes
        ],
    }


def _arrays_before(step: Any, record: Any, arguments: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the batch and the variables before a step by name.

    No process of an MPI job has the whole batch: the file has the variables only.
    """
    if launched().size > 1:
        arguments = []
    placements = [entry[5] for entry in _core.step_entries(step) if entry[0] == "argument"]
    named = [
        (f"argument {index}", placement, parts)
        for index, (placement, parts) in enumerate(zip(placements, arguments, strict=False))
    ] + [(f"variable {slot}", "replicated", parts) for slot, parts in enumerate(record.variables)]
    found: dict[str, npt.NDArray[Any]] = {}
    for name, placement, tensors in named:
        parts = [np.asarray(tensor.numpy()) for tensor in tensors]
        whole = _joined(placement, parts)
        if whole is not None:
            found[name] = whole
        else:
            found |= {f"{name}, replica {r}": part for r, part in enumerate(parts)}
    return found


def _joined(placement: str, parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any] | None:
    """Return the values of all replicas as one; None if they are values of their own."""
    if placement == "rows" and len({(part.dtype, part.shape[1:]) for part in parts}) == 1:
        return np.concatenate(parts) if parts[0].ndim else None
    return parts[0] if len(parts) == 1 else None


__all__ = ["record_run"]
