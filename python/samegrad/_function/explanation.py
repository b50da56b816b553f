"""Explanation of a compiled step: its bits, plan, memory and times."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

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
        file: The name of the file of user code that called it, without its folder. None: no line
            is known, as of operations that the engine adds.
        line: The line in the file.
    """

    name: str
    type: str
    fused: tuple[str, ...] = ()
    deferred: bool = False
    parallel: bool = False
    file: str | None = None
    line: int | None = None


@dataclasses.dataclass(frozen=True)
class PlanStep:
    """Step of the plan: one or more operations that the engine runs together.

    Attributes:
        title: The line of the printed plan, up to its colon.
        kind: `"loop"` over the examples, `"all_reduce"`, `"once"`, `"side_by_side"` (several
            operations at the same time), `"rows"` (operations on the rows of all replicas),
            `"block_update"` (sum and update of a variable, block by block), `"sparse_rows"`,
            `"sparse_reduce"` or `"sparse_update"`.
        operations: The operations, in their order.
        predicted: The predicted time in seconds.
        measured: The mean of the measured runs in seconds; None if no runs were measured.
        least: The shortest measured run in seconds; None if no runs were measured.
        parallel_loops: The number of loops that threads share in a run; None if no runs were
            measured. After `tf.config.threading.set_intra_op_parallelism_threads(16)`, those of
            16 threads.
        pieces: The number of pieces of all these loops, which threads take one by one: a loop of
            fewer pieces than threads leaves some of them idle. None if no runs were measured.
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
    parallel_loops: int | None = None
    pieces: int | None = None
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

    `str` is the printed plan.

    If Python runs the function, there is no plan: `steps` is empty, `bitwise` is False with a
    reason, and all fields that follow `steps` are None.

    Attributes:
        text: The printed plan.
        bitwise: True if results and variables are bitwise identical to one replica's.
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


def explain_plan(plan: dict[str, Any], lengths: tuple[str, ...] | None = None) -> Explanation:
    """Return the explanation of a plan.

    Args:
        plan: The fields that the engine returns.
        lengths: Conditions for which the trace holds, if it was traced for many lengths.
    """
    same = ("predicted", "measured", "least", "runs", "replicas", "threads", "machine")
    return Explanation(
        text=_heading(lengths) + plan["text"],
        bitwise=not plan["reasons"],
        reasons=tuple(Reason(text, *_place(line)) for text, line in plan["reasons"]),
        steps=tuple(map(_step, plan["steps"])),
        memory=PlanMemory(plan["bytes"], plan["bytes_without_reuse"]),
        lengths=lengths,
        **{name: plan[name] for name in same},
    )


def _heading(lengths: tuple[str, ...] | None) -> str:
    if lengths is None:
        return ""
    which = "those of which this is true" if lengths else "any"
    return "".join([f"traced once for lengths, {which}\n", *(f"  {line}\n" for line in lengths)])


def _place(line: str) -> tuple[str | None, int | None]:
    """Split "train.py:31", or nothing."""
    file, _, number = line.rpartition(":")
    return (file, int(number)) if line else (None, None)


def _step(fields: dict[str, Any]) -> PlanStep:
    is_loop = fields["kind"] == "loop"
    changed = {
        "operations": tuple(map(_operation, fields["operations"])),
        "notes": tuple(fields["notes"]),
        "tile_examples": fields["tile_examples"] if is_loop else None,
        "example_bytes": fields["example_bytes"] if is_loop else None,
    }
    return PlanStep(**fields | changed)


def _operation(fields: dict[str, Any]) -> PlanOperation:
    file, line = _place(fields["line"])
    fused = tuple(fields["fused"].split())
    return PlanOperation(**fields | {"fused": fused, "file": file, "line": line})


def explain_python(why: str, line: str) -> Explanation:
    """Return the explanation of a function that Python runs, with the line that needs it."""
    reason = Reason(f"Python runs the function: {why}", *_place(line))
    return Explanation(f"{reason}\n", False, (reason,))
