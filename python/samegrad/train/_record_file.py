"""Record files: one JSON object per line, each with a CRC-32 of its own.

The format is specified in docs/two-runs.md.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from samegrad._base.file_errors import explained_errors
from samegrad.errors import DataLossError
from samegrad.train._storage import Json, parse

FORMAT = "samegrad-record"
VERSION = 1
LONGEST_LINE = 64 << 20  # bytes
_MOST_ITEMS = 2_000_000  # of one line
_MOST_PROGRAM_BYTES = 256 << 20  # of all lines of programs, which stay in memory
_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"}\n')
_CRC_BYTES = len(b',"crc":"01234567"}\n')


class Entry(NamedTuple):
    """Value of a program whose hash each step records."""

    kind: str
    name: str
    slot: int
    dtype: str
    shape: str
    placement: str


class Operation(NamedTuple):
    """Operation of a traced program."""

    op: str
    type: str
    line: str


class Detail(NamedTuple):
    """Operation of a step that was run operation by operation."""

    op: str
    type: str
    line: str
    placement: str
    inputs: list[int]
    hashes: str


class Stored(NamedTuple):
    """Value that a step of the plan stores."""

    step: str
    op: str
    type: str
    line: str
    hash: str


class Program(NamedTuple):
    """Traced program of recorded steps."""

    hash: str
    replicas: int
    variables: list[str]
    entries: list[Entry]
    operations: list[Operation]
    reasons: list[list[str]]


@dataclass(frozen=True)
class Step:
    """Recorded step. Hashes are hexadecimal, 16 digits each, those of examples 8.

    Attributes:
        before: Hashes by slot of variables that changed outside of recorded steps.
        example_hashes: Hashes of all examples by the position of the argument.
        detail: The operations, if this step was recorded with all of them.
        arrays: Entries of the arrays that were saved with the operations.
    """

    index: int
    program: Program
    seed: int
    draw: int | None
    examples: list[int]
    hashes: str
    before: dict[int, str]
    example_hashes: dict[int, str]
    detail: list[Detail] | None = None
    stored: list[Stored] | None = None
    arrays: dict[str, Any] | None = None


def hexadecimal(hashes: Sequence[int], bits: int = 64) -> str:
    """Return the low bits of hashes as one string, most significant digit first.

    Example:
        >>> hexadecimal([10, 255], bits=32)
        '0000000a000000ff'
    """
    return np.array(hashes, np.uint64).astype(f">u{bits // 8}").tobytes().hex()


def encode_line(kind: str, fields: Mapping[str, Json], before: int = 0) -> tuple[bytes, int]:
    r"""Return a line and its checksum.

    The checksum covers the lines before as well: it begins with theirs. So a missing line is found.

    Args:
        kind: The kind of the line.
        fields: The fields of the line.
        before: The checksum of the line before it.

    Example:
        >>> encode_line("end", {"steps": 2, "error": None})
        (b'{"kind":"end","steps":2,"error":null,"crc":"ccf68d07"}\n', 3438710023)
    """
    content = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode()[:-1]
    crc = zlib.crc32(content, before)
    return content + b',"crc":"%08x"}\n' % crc, crc


def arrays_path(record: Path, index: int) -> Path:
    """Return the path of the arrays before a step that was recorded with all operations."""
    return record.with_name(f"{record.name}.step-{index}.safetensors")


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _input(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 32


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _strings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _or_none(rule: Any) -> Callable[[Any], bool]:
    return lambda value: value is None or _fits(value, rule)


_KIND = re.compile("argument|output|gradient|variable")
_PLACEMENT = re.compile("replicated|rows|partial|own")
_HASH = re.compile("[0-9a-f]{16}")
_HASHES = re.compile("([0-9a-f]{16})*")
_OPERATION = (_text, _text, _text)
_RULES: dict[str, dict[str, Any]] = {
    "header": {
        "format": re.compile(FORMAT), "version": _count, "samegrad": _text,
        "reduction_order": _count, "function_version": _count, "kernels": _text, "fused": _flag,
        "numeric_policy": _strings, "processor": _text, "threads": _count, "processes": _count,
        "seed": _count,
    },
    "program": {
        "program": _count, "hash": _HASH, "replicas": _count, "variables": [_text],
        "entries": [(_KIND, _text, _count, _text, _text, _PLACEMENT)],
        "operations": [_OPERATION], "reasons": [(_text, _text)],
    },
    "step": {
        "step": _count, "program": _count, "seed": _count, "draw": _or_none(_count),
        "examples": [_count], "hashes": _HASHES, "before": [(_count, _HASH)],
        "example_hashes": [(_count, re.compile("([0-9a-f]{8})*"))],
    },
    "detail": {
        "step": _count, "operations": [(*_OPERATION, _text, [_input], _HASHES)],
        "stored": [(_text, *_OPERATION, _HASH)], "arrays": _object,
    },
    "end": {"steps": _count, "error": _or_none(_text)},
}  # fmt: skip


def _fits(value: Any, rule: Any) -> bool:
    """Tell if a value has the form of a rule. Readers ignore keys without a rule."""
    if isinstance(rule, re.Pattern):
        return isinstance(value, str) and rule.fullmatch(value) is not None
    if isinstance(rule, list):
        return isinstance(value, list) and all(_fits(one, rule[0]) for one in value)
    if isinstance(rule, tuple):
        sized = isinstance(value, list) and len(value) == len(rule)
        return sized and all(map(_fits, value, rule))
    return bool(rule(value))


class RecordReader:
    """Record file that is read step by step, so that memory does not grow with the steps.

    Args:
        path: The file.
        incomplete: Accept a last line that was cut off.

    Attributes:
        path: The file.
        header: The fields of the first line.
        note: The end of the file, if the run did not reach it. Known after the last step.

    Raises:
        DataLossError: The file is not a record, is damaged, or was cut off.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path, incomplete: bool = False) -> None:
        self.path = path
        self.note: str | None = None
        self._incomplete = incomplete
        self._number = 0
        self._crc = 0
        self._programs: list[Program] = []
        self._program_bytes = 0
        self._last: Step | None = None
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise DataLossError(f"[diff_runs] a record must be a regular file: got {path}.")
        with explained_errors("diff_runs", "read", path, "Give the path of a record"):
            self._file: BinaryIO = path.open("rb")
        try:
            kind, self.header = self._next_line() or ("end", {})
            if kind != "header":
                raise self._damaged("be the header of a record", f"a line of kind {kind!r}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Step]:
        while (line := self._next_line()) is not None:
            kind, fields = line
            if kind == "program":
                self._add_program(fields)
            elif kind == "detail":
                self._last = self._detailed(fields)
            elif kind == "header":
                raise self._damaged("be a step", "a second header")
            else:
                if self._last is not None:
                    yield self._last
                if kind == "end":
                    self._end(fields)
                    return
                self._last = self._step(fields)
        if self._last is not None:
            yield self._last
        self.note = self.note or "has no end line: the run was killed, or is still running"

    def _next_line(self) -> tuple[str, dict[str, Any]] | None:
        self._number += 1
        with explained_errors("diff_runs", "read", self.path, "Look at the disk"):
            line = self._file.readline(LONGEST_LINE + 1)
        if not line:
            if self._number == 1:
                raise self._damaged("be the header of a record", "an empty file")
            return None
        if len(line) > LONGEST_LINE:
            raise self._damaged(f"have at most {LONGEST_LINE} bytes", "more")
        if not line.endswith(b"\n"):
            self._cut_off(line)
            return None
        found = _CRC.fullmatch(line[-_CRC_BYTES:])
        if found is None:
            raise self._damaged("end with a checksum", f"{line[-40:]!r}")
        self._crc = zlib.crc32(line[:-_CRC_BYTES], self._crc)
        if int(found[1], 16) != self._crc:
            got = "an altered line, or another one before it"
            raise self._damaged("have the checksum of its content", got)
        try:
            fields = parse(line, _MOST_ITEMS)
        except ValueError as error:
            raise self._damaged("be JSON", f"{error!s:.120}") from error
        kind, fields = self._checked(fields)
        if kind == "program":
            self._program_bytes += len(line)
        return kind, fields

    def _checked(self, fields: Any) -> tuple[str, dict[str, Any]]:
        kind = fields.get("kind") if isinstance(fields, dict) else None
        if not isinstance(kind, str) or kind not in _RULES:
            raise self._damaged(f"be of kind {', '.join(_RULES)}", f"{kind!r:.40}")
        if kind == "header" and fields.get("version") != VERSION:
            rule = f"have the format {FORMAT!r}, version {VERSION}"
            got = f"{fields.get('format')!r:.40}, {fields.get('version')!r:.40}"
            raise self._damaged(rule, got, "read it with the version that wrote it")
        for name, rule in _RULES[kind].items():
            if name not in fields or not _fits(fields[name], rule):
                raise self._damaged(f"have a valid {name!r}", f"{fields.get(name)!r:.80}")
        return kind, fields

    def _cut_off(self, line: bytes) -> None:
        last = "before the first step" if self._last is None else f"after step {self._last.index}"
        self.note = f"was cut off {last}"
        if self._number == 1:
            raise self._damaged("be the header of a record", f"{line[:40]!r}")
        if not self._incomplete:
            raise self._damaged(
                "be a whole line",
                f"the end of the file after {len(line)} bytes, {last}",
                "compare the complete steps with incomplete=True or `samegrad diff --incomplete`",
            )

    def _add_program(self, fields: dict[str, Any]) -> None:
        if fields["program"] != len(self._programs):
            raise self._damaged(f"be program {len(self._programs)}", f"{fields['program']}")
        if self._program_bytes > _MOST_PROGRAM_BYTES:
            raise self._damaged(f"hold at most {_MOST_PROGRAM_BYTES} bytes of programs", "more")
        entries = [Entry(*one) for one in fields["entries"]]
        of_variables = [one.slot for one in entries if one.kind in ("gradient", "variable")]
        if any(slot >= len(fields["variables"]) for slot in of_variables):
            raise self._damaged("have a name for each variable", f"{fields['variables']!r:.80}")
        self._programs.append(
            Program(
                fields["hash"],
                fields["replicas"],
                fields["variables"],
                entries,
                [Operation(*one) for one in fields["operations"]],
                fields["reasons"],
            )
        )

    def _step(self, fields: dict[str, Any]) -> Step:
        if fields["program"] >= len(self._programs):
            got = f"{fields['program']} of {len(self._programs)}"
            raise self._damaged("run a program of a line before it", got)
        if self._last is not None and fields["step"] <= self._last.index:
            raise self._damaged(f"follow step {self._last.index}", f"step {fields['step']}")
        program = self._programs[fields["program"]]
        if len(fields["hashes"]) != 16 * len(program.entries):
            got = f"{len(fields['hashes']) / 16:g}"
            raise self._damaged(f"have {len(program.entries)} hashes", got)
        before, of_examples = dict(fields["before"]), dict(fields["example_hashes"])
        if any(slot >= len(program.variables) for slot in before):
            raise self._damaged("name variables of its program", f"{[*before]!r:.80}")
        arguments = [entry for entry in program.entries if entry.kind == "argument"]
        if any(index >= len(arguments) for index in of_examples):
            raise self._damaged("name arguments of its program", f"{[*of_examples]!r:.80}")
        return Step(
            fields["step"], program, fields["seed"], fields["draw"], fields["examples"],
            fields["hashes"], before, of_examples,
        )  # fmt: skip

    def _detailed(self, fields: dict[str, Any]) -> Step:
        step = self._last
        if step is None or step.index != fields["step"] or step.detail is not None:
            raise self._damaged("follow its step", f"step {fields['step']}")
        operations = [Detail(*one) for one in fields["operations"]]
        for operation in operations:
            if any(one >= len(operations) for one in operation.inputs):
                raise self._damaged("take results of its operations", f"{operation.inputs!r:.80}")
        stored = [Stored(*one) for one in fields["stored"]]
        return replace(step, detail=operations, stored=stored, arrays=fields["arrays"])

    def _end(self, fields: dict[str, Any]) -> None:
        if fields["error"] is not None:
            self.note = f"ended with {fields['error']}"
        if self._file.read(1):
            self._number += 1
            raise self._damaged("not exist after the end", "more")

    def _damaged(self, rule: str, got: str, remedy: str = "record the run again") -> DataLossError:
        return DataLossError(
            f"[diff_runs] {self.path}, line {self._number} must {rule}: got {got}; {remedy}."
        )
