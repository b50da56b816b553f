"""`diff_runs`: the first step at which two recorded runs differ, and the cause."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samegrad.errors import DataLossError
from samegrad.testing._run_evidence import (
    Difference,
    evidence,
    kinds_that_differ,
    numerics_text,
    results_text,
)
from samegrad.testing._run_frontier import FrontierOperation, first_stored, frontier, shown
from samegrad.testing._run_pairs import Pairs, Side, pair
from samegrad.testing._same_bits import compare
from samegrad.train._record_file import RecordReader, Step, arrays_path
from samegrad.train._storage import CorruptCheckpointError, read_arrays

# Changes of the keys that `to_json` writes. New keys keep the number.
_JSON_VERSION = 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHOWN = 12  # operations of the frontier
_ENVIRONMENT = ("samegrad", "kernels", "processor", "threads", "processes")


@dataclasses.dataclass(frozen=True)
class RunDiff:
    """Comparison of two recorded runs.

    Attributes:
        same: True if all values that can be compared are equal in all steps of both files.
        compared: The number of steps in both files.
        step: The number of the first step that differs; None if `same` is True.
        cause: The cause: `"numerics"`, `"program"`, `"weights"` (before the first step),
            `"assignment"` (of a variable between two steps), `"draws"` (of random numbers),
            `"data"`, `"replicas"` (the program depends on their number) or `"result"` (of equal
            inputs). None if `same` is True.
        differences: All evidence, that of the cause first.
        frontier: The operations of this step whose results differ although all that they are made
            of agrees. Empty unless both files have all operations of this step.
        results: The names of the results that differ at this step.
        values: The first element that differs in the batch and the variables before this step;
            empty unless both runs saved them.
        environment: Facts about the machines that differ, by name.
        notes: What else the reader must know, such as files of different lengths.
        by_step: What differs at each compared step, of `"program"`, `"before"` (variables before
            the step), `"draws"`, `"argument"`, `"output"`, `"gradient"` and `"variable"`.
    """

    same: bool
    compared: int
    step: int | None = None
    cause: str | None = None
    differences: tuple[Difference, ...] = ()
    frontier: tuple[FrontierOperation, ...] = ()
    results: str = ""
    values: str = ""
    environment: dict[str, tuple[Any, Any]] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_step: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        # Names are of a file that anybody may have written.
        return "\n".join(_CONTROL.sub("?", line) for line in self._lines())

    def _lines(self) -> list[str]:
        steps = f"{self.compared} step{'' if self.compared == 1 else 's'} compared"
        if self.same:
            return [f"same: yes, {steps}", *(f"note: {note}" for note in self.notes)]
        lines = [f"same: no, from step {self.step} on, {steps}", f"cause: {self.differences[0]}"]
        lines += [f"also: {one}" for one in self.differences[1:]]
        if self.results and all(one.cause != "result" for one in self.differences):
            lines.append(f"results that differ: {self.results}")
        lines += [f"frontier: {one}" for one in self.frontier[:_SHOWN]]
        if len(self.frontier) > _SHOWN:
            lines.append(f"frontier: {len(self.frontier) - _SHOWN} more")
        if self.values:
            lines += f"values before the step: {self.values}".split("\n")
        for name, (a, b) in self.environment.items():
            lines.append(f"{name}: {a} in a, {b} in b")
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def to_json(self, indent: int | None = None) -> str:
        """Return the fields as JSON, without `by_step`.

        Args:
            indent: The number of spaces for each level. None: one line.

        Returns:
            A JSON object with the names of the fields as keys, and `"version"`.
        """
        fields = dataclasses.asdict(self)
        del fields["by_step"]
        return json.dumps({"version": _JSON_VERSION, **fields}, indent=indent)


def diff_runs(
    a: str | os.PathLike[str], b: str | os.PathLike[str], *, incomplete: bool = False
) -> RunDiff:
    """Compare two files of `record_run` and name the first step that differs, and its cause.

    Steps are compared in their order. If one file has more steps than the other, the rest is not
    compared. Values of single replicas are compared if both runs have equal replicas and
    processes.

    Args:
        a: Path of a record.
        b: Path of the other record.
        incomplete: Accept files whose last line was cut off.

    Returns:
        `RunDiff`. `str` of it is what `samegrad diff` prints.

    Raises:
        DataLossError: A file is not a record, is damaged, or was cut off.
        OSError: A file cannot be read.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable([1.0, 2.0])
        >>> step = tf.function(lambda x: w.assign_add(x))
        >>> for name in ("c.sgrec", "d.sgrec"):
        ...     _ = w.assign([1.0, 2.0])
        ...     with tf.record_run(name):
        ...         _ = step(tf.constant([0.5, 0.5]))
        ...         _ = step(tf.constant([0.5, 0.5 if name == "c.sgrec" else 0.25]))
        >>> found = tf.diff_runs("c.sgrec", "d.sgrec")
        >>> found.step, found.cause
        (1, 'data')
    """
    with contextlib.ExitStack() as opened:
        readers = []
        for path in (a, b):
            reader = RecordReader(Path(os.fspath(path)), incomplete)
            opened.callback(reader.close)
            readers.append(reader)
        return _Comparison(*readers).result()


class _Comparison:
    """Two records, read step by step."""

    def __init__(self, a: RecordReader, b: RecordReader) -> None:
        self._readers = a, b
        self._sides = Side(a.header), Side(b.header)
        self._pairs: dict[tuple[int, int], Pairs] = {}
        self._found: RunDiff | None = None

    def result(self) -> RunDiff:
        """Read both files to their ends."""
        by_step: list[tuple[str, ...]] = []
        lengths = [0, 0]
        for x, y in itertools.zip_longest(*self._readers):
            lengths[0] += x is not None
            lengths[1] += y is not None
            if x is not None and y is not None:
                by_step.append(self._compared(x, y))
        notes = [
            f"{name} {reader.note}"
            for name, reader in zip("ab", self._readers, strict=True)
            if reader.note
        ]
        if lengths[0] != lengths[1]:
            notes.append(f"a has {lengths[0]} steps and b has {lengths[1]}")
        for count, reader in zip(lengths, self._readers, strict=True):
            if count == 0:
                raise DataLossError(
                    f"[diff_runs] a record must have at least one step: got {reader.path} with "
                    "none; call compiled functions inside the block of record_run."
                )
        found = self._found or RunDiff(True, 0)
        if found.same and (text := numerics_text(*(side.header for side in self._sides))):
            notes.append(f"the numerics differ, the values do not: {text}")
        return dataclasses.replace(
            found, compared=len(by_step), by_step=tuple(by_step), notes=(*found.notes, *notes)
        )

    def _compared(self, x: Step, y: Step) -> tuple[str, ...]:
        """Return what differs at a step."""
        pairs = self._pairs_of(x, y)
        a, b = self._sides
        kinds = kinds_that_differ((a, x), (b, y), pairs)
        if kinds and self._found is None:
            self._found = self._first(x, y, pairs, kinds)
        a.pass_step(x, pairs.slots[0])
        b.pass_step(y, pairs.slots[1])
        return kinds

    def _pairs_of(self, x: Step, y: Step) -> Pairs:
        programs = id(x.program), id(y.program)  # the readers keep them
        if programs not in self._pairs:
            self._pairs[programs] = pair(x.program, y.program, self._same_division(x, y))
        return self._pairs[programs]

    def _same_division(self, x: Step, y: Step) -> bool:
        processes = [side.header["processes"] for side in self._sides]
        return x.program.replicas == y.program.replicas and processes[0] == processes[1]

    def _first(self, x: Step, y: Step, pairs: Pairs, kinds: tuple[str, ...]) -> RunDiff:
        a, b = self._sides
        differences = tuple(evidence((a, x), (b, y), pairs, kinds))
        operations: list[FrontierOperation] = []
        notes: list[str] = []
        if not {"before", "draws", "argument"} & set(kinds):
            operations, notes = self._frontier(x, y)
        return RunDiff(
            same=False,
            compared=0,
            step=x.index,
            cause=differences[0].cause,
            differences=differences,
            frontier=tuple(operations),
            results=results_text(x, y, pairs),
            values=self._values(x, y, pairs),
            environment=_environment(a.header, b.header, x, y),
            notes=tuple(notes),
        )

    def _frontier(self, x: Step, y: Step) -> tuple[list[FrontierOperation], list[str]]:
        """Return the operations that differ, or how to record them."""
        if x.detail is None or y.detail is None:
            sides = zip("ab", (x, y), strict=True)
            command = f"samegrad record --detail {x.index} -o NEW.sgrec PROGRAM.py"
            missing = " and ".join(name for name, step in sides if step.detail is None)
            return [], [
                f"{missing} without the operations of step {x.index}: record each of them again "
                f"with `{command}` or record_run(detail={x.index}), and compare the new files"
            ]
        found, compared = frontier(x.detail, y.detail, self._same_division(x, y))
        if found:
            return found, []
        if compared == 0:
            return [], ["the runs have no operations in common"]
        notes = [f"all {compared} operations that can be compared agree one by one"]
        first = first_stored(x.stored or [], y.stored or [])
        if first is not None:
            at = f" at {shown(first.line)}" if first.line else ""
            notes.append(f"the plan differs first in {first.step}: {first.op}{at} ({first.type})")
        return [], notes

    def _values(self, x: Step, y: Step, pairs: Pairs) -> str:
        """Compare the batch and the variables before a step, if both runs saved them."""
        arrays = []
        for side, (reader, step) in enumerate(zip(self._readers, (x, y), strict=True)):
            path = arrays_path(reader.path, step.index)
            if step.arrays is None or not path.exists():
                return ""
            try:
                saved = read_arrays(path, step.arrays)
            except CorruptCheckpointError as error:
                raise DataLossError(
                    f"[diff_runs] {path} must hold the values before step {step.index} of "
                    f"{reader.path}: got another file ({error}); delete it, or record again."
                ) from error
            names = {
                f"variable {slots[side]}": pairs.names_of([key])
                for key, slots in pairs.variables.items()
            }
            arrays.append({names.get(name, name): array for name, array in saved.items()})
        return compare(*arrays) or ""


def _environment(
    a: Mapping[str, Any], b: Mapping[str, Any], x: Step, y: Step
) -> dict[str, tuple[Any, Any]]:
    facts = {name: (a[name], b[name]) for name in _ENVIRONMENT}
    facts["replicas"] = x.program.replicas, y.program.replicas
    return {name: sides for name, sides in facts.items() if sides[0] != sides[1]}


__all__ = ["RunDiff", "diff_runs"]
