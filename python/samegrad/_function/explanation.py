"""Explanation of a compiled step: its bits, plan, memory and times."""

from __future__ import annotations

import dataclasses
import json
import re

# Changes of the keys that `to_json` writes; new keys keep the number.
_JSON_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Reason:
    """Operation that keeps a step from being bitwise identical to one replica.

    Attributes:
        text: The operation, and how it depends on the replicas.
        file: The name of the file of user code, without its folder. None: no line is known.
        line: The line in the file.
    """

    text: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.file is None else f"{self.file}:{self.line}: {self.text}"


@dataclasses.dataclass(frozen=True)
class PlanOperation:
    """Operation of a step of the plan.

    Attributes:
        name: The name of the operation.
        type: The dtype and shape of its result, its batch axis and its placement.
        fused: The names of the operations that were fused into it.
        deferred: True if it follows the loop over the examples instead of running in it.
        parallel: True if all threads share it.
    """

    name: str
    type: str
    fused: tuple[str, ...] = ()
    deferred: bool = False
    parallel: bool = False


@dataclasses.dataclass(frozen=True)
class PlanStep:
    """Step of the plan: one or more operations that the engine runs together.

    Attributes:
        title: The line of the printed plan, without its colon.
        kind: `"loop"` over the examples, `"all_reduce"`, `"once"`, `"side_by_side"` (several
            operations at the same time), `"rows"` (operations on the rows of all replicas),
            `"block_update"` (sum and update of a variable, block by block), `"sparse_rows"`,
            `"sparse_reduce"` or `"sparse_update"`.
        operations: The operations, in their order.
        predicted: The predicted time in seconds.
        measured: The mean of the measured runs in seconds; None if no runs were measured.
        least: The shortest measured run in seconds; None if no runs were measured.
        tile_examples: The number of examples that a loop passes through at a time; else None.
        example_bytes: The bytes per example that a loop holds between its operations; else None.
        notes: Further lines of the printed plan: why the planner chose the size of the tiles, or
            a step of its own.
    """

    title: str
    kind: str
    operations: tuple[PlanOperation, ...]
    predicted: float
    measured: float | None = None
    least: float | None = None
    tile_examples: int | None = None
    example_bytes: int | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PlanMemory:
    """Memory that holds values between the steps of the plan.

    Attributes:
        bytes: The bytes that a run allocates: values that are never needed together share them.
        bytes_without_reuse: The bytes if each value had memory of its own.
    """

    bytes: int
    bytes_without_reuse: int


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Plan, bits, memory and times of a compiled step, as `explain` returns them.

    `str` is the printed plan. Times and bytes have the precision of this string: 0.1 µs below 1 ms
    and 10 µs above, a tenth of a KiB, MiB, ...

    If Python runs the function, there is no plan: `steps` is empty, `bitwise` is False with a
    reason, and all fields that follow `steps` are None.

    Attributes:
        text: The printed plan.
        bitwise: True if the step is bitwise identical to one replica.
        reasons: The operations that prevent it; empty if `bitwise` is True.
        steps: The steps of the plan, in their order.
        memory: The memory between the steps.
        predicted: The predicted time of the whole step in seconds.
        measured: The mean of the measured runs in seconds; None if no runs were measured.
        least: The sum of the shortest measured times of all steps in seconds; None if no runs were
            measured.
        runs: The number of measured runs.
        replicas: The number of replicas.
        threads: The number of threads.
        machine: The sizes of the caches for which the plan was made.
        lengths: Conditions on the lengths of arguments for which the trace holds; None if the
            function was traced for fixed lengths.

    Example:
        >>> import samegrad as tf
        >>> double = tf.function(lambda x: x * 2)
        >>> plan = double.explain(tf.ones([3]), measure=2)
        >>> plan.bitwise, [step.kind for step in plan.steps], plan.measured > 0
        (True, ['once'], True)
    """

    text: str
    bitwise: bool
    reasons: tuple[Reason, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    memory: PlanMemory | None = None
    predicted: float | None = None
    measured: float | None = None
    least: float | None = None
    runs: int | None = None
    replicas: int | None = None
    threads: int | None = None
    machine: str | None = None
    lengths: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        count = f"{len(self.steps)} steps"
        return f"<Explanation: bitwise={self.bitwise}, {len(self.reasons)} reasons, {count}>"

    def _repr_html_(self) -> str:
        from samegrad._function.explanation_html import explanation_html

        return explanation_html(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the fields as JSON, without the printed plan.

        Args:
            indent: The number of spaces for each level. None: one line.

        Returns:
            A JSON object with the names of the fields as keys, and `"version"`.

        Example:
            >>> import json
            >>> import samegrad as tf
            >>> plan = tf.function(lambda x: x * 2).explain(tf.ones([3]))
            >>> found = json.loads(plan.to_json())
            >>> found["version"], found["bitwise"], found["steps"][0]["kind"]
            (1, True, 'once')
        """
        fields = dataclasses.asdict(self)
        del fields["text"]
        return json.dumps({"version": _JSON_VERSION, **fields}, indent=indent)


_TIME = r"([0-9.]+ (?:us|ms))"
_BYTES = r"([0-9.]+ (?:bytes|[KMGT]iB))"
# Only the reasons hold names of user code. `.*` is greedy: a name that imitates the lines below
# it ends before the last ones, which are the engine's.
_PLAN = re.compile(
    r"(?P<replicas>\d+) replica\(s\), \d+ operations, \d+ steps\n"
    r"bitwise identical to one replica: (?P<bitwise>yes|no)(?P<reasons>.*)\n"
    r"machine: (?P<machine>[^\n]+), (?P<threads>\d+) thread\(s\)\n"
    rf"memory between steps: {_BYTES} \(of {_BYTES} without reuse\)\n"
    rf"time: predicted {_TIME}(?:, measured {_TIME} \(mean of (\d+) runs that changed nothing; "
    rf"least {_TIME}\))?\n"
    r"(?P<steps>.*)",
    re.DOTALL,
)
# The name of a variable may have several lines.
_REASONS = re.compile(r"\n  - (variable '.*?' has a value per replica|.*?)(?=\n  - |\Z)", re.DOTALL)
_REASON = re.compile(r"(?!variable ')(?P<file>.+):(?P<line>\d+): (?P<text>[^:]+)", re.DOTALL)
_STEP = re.compile(
    r"  (?P<title>[^\n]+?):?\n(?P<lines>(?:    [^\n]+\n)*)"
    rf"    predicted {_TIME}(?:, measured {_TIME} \(least {_TIME}\))?\n"
)
_OPERATION = re.compile(
    r"%\d+ (?P<name>\S+) (?P<type>[^']+?)(?P<deferred> deferred from the loop)?"
    r"(?P<parallel> by all threads)?(?:: '(?P<parts>[^']*)')?"
)
_TILE = re.compile(rf"tiles of (\d+) examples, each with {_BYTES} ")
# Beginnings of titles, the longer of two first.
_KINDS = {
    "loop over the examples": "loop",
    "all-reduce": "all_reduce",
    "once, side by side": "side_by_side",
    "once": "once",
    "rows of all replicas": "rows",
    "block by block": "block_update",
    "rows that have a gradient": "sparse_rows",
    "sparse, row by row": "sparse_update",
    "all rows, some at a time, of a sparse gradient": "sparse_update",
    "reduced, row by row": "sparse_reduce",
}
_PER_SECOND = {"us": 1e6, "ms": 1e3}
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def read_plan(plan: str, lengths: tuple[str, ...] | None = None) -> Explanation:
    """Return the explanation that the engine printed.

    Args:
        plan: The engine's description of the plan.
        lengths: Conditions for which the trace holds, if it was traced for many lengths.
    """
    found = _PLAN.fullmatch(plan)
    assert found is not None, plan
    memory, without_reuse, predicted, measured, runs, least = found.groups()[5:11]
    return Explanation(
        _heading(lengths) + plan,
        found["bitwise"] == "yes",
        tuple(map(_reason, _REASONS.findall(found["reasons"]))),
        tuple(map(_step, _STEP.finditer(found["steps"]))),
        PlanMemory(_bytes(memory), _bytes(without_reuse)),
        _seconds(predicted),
        _seconds(measured) if measured else None,
        _seconds(least) if least else None,
        int(runs or 0),
        int(found["replicas"]),
        int(found["threads"]),
        found["machine"],
        lengths,
    )


def _heading(lengths: tuple[str, ...] | None) -> str:
    if lengths is None:
        return ""
    which = "those of which this is true" if lengths else "any"
    return "".join([f"traced once for lengths, {which}\n", *(f"  {line}\n" for line in lengths)])


def _reason(text: str) -> Reason:
    located = _REASON.fullmatch(text)
    if located is None:
        return Reason(text)
    return Reason(located["text"], located["file"], int(located["line"]))


def _step(found: re.Match[str]) -> PlanStep:
    title, _, predicted, measured, least = found.groups()
    lines = [line.strip() for line in found["lines"].splitlines()]
    notes = [line for line in lines if not line.startswith("%")]
    tile = next(filter(None, map(_TILE.match, notes)), None)
    return PlanStep(
        title,
        next(kind for start, kind in _KINDS.items() if title.startswith(start)),
        tuple(_operation(line) for line in lines if line.startswith("%")),
        _seconds(predicted),
        _seconds(measured) if measured else None,
        _seconds(least) if least else None,
        int(tile[1]) if tile else None,
        _bytes(tile[2]) if tile else None,
        tuple(notes),
    )


def _operation(line: str) -> PlanOperation:
    found = _OPERATION.fullmatch(line)
    assert found is not None, line
    name, kind, deferred, parallel, parts = found.groups()
    fused = parts.split() if name.startswith("fused") else ()
    return PlanOperation(name, kind, tuple(fused), deferred is not None, parallel is not None)


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) / _PER_SECOND[unit]


def _bytes(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * _UNITS[unit])


def explain_python(text: str) -> Explanation:
    """Return the explanation of a function that Python runs."""
    return Explanation(text, False, (Reason(text.rstrip("\n")),))
