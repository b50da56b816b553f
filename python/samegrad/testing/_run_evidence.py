"""Evidence of why one recorded step differs from another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samegrad.testing._run_frontier import shown
from samegrad.testing._run_pairs import Key, Pairs, Side, differs, listed
from samegrad.train._record_file import Operation, Program, Step

_KINDS = ("argument", "output", "gradient", "variable")
# Operations that a division into replicas adds.
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "replica_share", "gather_parts")


@dataclass(frozen=True)
class Difference:
    """Evidence of a cause.

    Attributes:
        cause: `"numerics"`, `"program"`, `"weights"`, `"assignment"`, `"draws"`, `"data"`,
            `"replicas"` or `"result"`.
        text: The values of both runs.
    """

    cause: str
    text: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.text}"


def kinds_that_differ(a: tuple[Side, Step], b: tuple[Side, Step], pairs: Pairs) -> tuple[str, ...]:
    """Return what differs at a step: `"program"`, `"before"`, `"draws"` and kinds of entries."""
    (_, x), (_, y) = a, b
    found: set[str] = set()
    if x.hashes != y.hashes or not pairs.aligned:
        found = {key[0] for key in pairs.positions if differs(x, y, pairs, key)}
    if not pairs.matched:
        found.add("program")
    if _draws(x) != _draws(y):
        found.add("draws")
    if _other_counts(x, y) or x.example_hashes != y.example_hashes:
        found.add("argument")
    before = _other_before(a, b, pairs) if x.before or y.before else []
    if before and (found or any(_is_known(key, x, y, pairs) for key in before)):
        found.add("before")
    return tuple(kind for kind in ("program", "before", "draws", *_KINDS) if kind in found)


def _other_counts(x: Step, y: Step) -> bool:
    """Return True if batches have other sizes. A division may join batches to another one."""
    return any(one != other for one, other in zip(x.examples, y.examples, strict=False))


def _draws(step: Step) -> tuple[int, int] | None:
    return None if step.draw is None else (step.seed, step.draw)


def _other_before(a: tuple[Side, Step], b: tuple[Side, Step], pairs: Pairs) -> list[Key]:
    """Return the variables whose values before a step differ."""
    return [
        key
        for key, (i, j) in pairs.variables.items()
        if a[0].before(a[1], i, pairs.slots[0]) != b[0].before(b[1], j, pairs.slots[1])
    ]


def _is_known(key: Key, x: Step, y: Step, pairs: Pairs) -> bool:
    """Return True if both runs recorded the value of a variable before a step.

    The slots of optimizers have no hash after a step, as long as nobody assigns them.
    """
    slots = pairs.variables[key]
    return key in pairs.positions or (slots[0] in x.before and slots[1] in y.before)


def evidence(
    a: tuple[Side, Step], b: tuple[Side, Step], pairs: Pairs, kinds: Sequence[str]
) -> Iterator[Difference]:
    """Yield what explains the difference of a step, the strongest first.

    Args:
        a: The one run before the step, and the step.
        b: The other run.
        pairs: The values that can be compared.
        kinds: What differs.
    """
    (side, x), (other, y) = a, b
    if text := numerics_text(side.header, other.header):
        yield Difference("numerics", text)
    if text := _program_text(x.program, y.program, pairs):
        yield Difference("program", text)
    inputs = [*_variables(a, b, pairs)] if "before" in kinds else []
    if "draws" in kinds:
        inputs.append(Difference("draws", _draws_text(x, y)))
    if "argument" in kinds:
        inputs.append(Difference("data", data_text(x, y, pairs)))
    yield from inputs
    if inputs:
        return
    if text := _other_operations(x.program, y.program, pairs):
        yield Difference("program", text)
    if reasons := _reasons(x.program, y.program):
        yield Difference("replicas", reasons)
    if results := results_text(x, y, pairs):
        yield Difference("result", f"equal inputs gave other results: {results}")


def numerics_text(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return the differing versions of the numerics; empty if all are equal."""
    named = {
        "reduction_order": "reduction order",
        "function_version": "function version",
        "fused": "fused multiply-add",
    }
    found = [f"{text} {a[n]} and {b[n]}" for n, text in named.items() if a[n] != b[n]]
    policies = a["numeric_policy"], b["numeric_policy"]
    found += [
        f"{name} {policies[0][name]} and {policies[1][name]}"
        for name in sorted(policies[0].keys() & policies[1].keys())
        if policies[0][name] != policies[1][name]
    ]
    if a["fused"] != b["fused"]:
        found.append(f"kernels {a['kernels']} and {b['kernels']}")
    return ", ".join(found)


def _program_text(a: Program, b: Program, pairs: Pairs) -> str:
    """Return the first operation that differs; empty if the programs are the same."""
    if a.hash == b.hash:
        return "" if pairs.matched else "the same operations have other results"
    if a.replicas != b.replicas and pairs.matched:
        return ""
    for number, (one, other) in enumerate(zip(a.operations, b.operations, strict=False)):
        if one[:2] != other[:2]:
            return (
                f"operation {number} is {operation_text(one)} in a and {operation_text(other)} in b"
            )
    counts = len(a.operations), len(b.operations)
    if counts[0] != counts[1]:
        longer, name = (a, "a") if counts[0] > counts[1] else (b, "b")
        first = operation_text(longer.operations[min(counts)])
        return f"{counts[0]} and {counts[1]} operations, of which {name} alone has {first}"
    return f"the {counts[0]} operations have equal types, so a constant or an attribute differs"


def _other_operations(a: Program, b: Program, pairs: Pairs) -> str:
    """Return the operations of single programs that another division does not explain."""
    if a.replicas == b.replicas or not pairs.matched or a.reasons or b.reasons:
        return ""
    counts = [
        Counter((one.op, one.line) for one in program.operations if one.op not in _COLLECTIVES)
        for program in (a, b)
    ]
    found = []
    for name, program, more in (("a", a, counts[0] - counts[1]), ("b", b, counts[1] - counts[0])):
        only = [one for one in program.operations if (one.op, one.line) in more]
        if only:
            found.append(f"{name} alone has {operation_text(only[0])}")
    return " and ".join(found)


def operation_text(one: Operation) -> str:
    """Return "matmul at train.py:31 (float32 (3, 2))"."""
    at = f" at {shown(one.line)}" if one.line else ""
    return f"{one.op}{at} ({one.type})"


def _variables(a: tuple[Side, Step], b: tuple[Side, Step], pairs: Pairs) -> Iterator[Difference]:
    keys = _other_before(a, b, pairs)
    (side, x), (other, y) = a, b
    new = [key for key in keys if key not in side.values or key not in other.values]
    total = len(pairs.variables)
    if new:
        text = (
            f"before step {x.index}, {len(new)} of {total} variables differ: {pairs.names_of(new)}"
        )
        if x.seed != y.seed:
            text += f" (so do the seeds, {x.seed} and {y.seed})"
        yield Difference("weights", text)
    by_side: dict[str, list[Key]] = {}
    for key in keys:
        if key not in new:
            slots = zip("ab", (x, y), pairs.variables[key], strict=True)
            where = " and ".join(name for name, step, slot in slots if slot in step.before)
            by_side.setdefault(where, []).append(key)
    for where, assigned in by_side.items():
        verb = "were" if len(assigned) > 1 else "was"
        yield Difference(
            "assignment",
            f"{pairs.names_of(assigned)} {verb} assigned between steps {side.last} and {x.index}"
            f"{where and f' in {where}'}, outside of recorded steps",
        )


def _draws_text(x: Step, y: Step) -> str:
    if x.draw is not None and y.draw is not None and x.seed != y.seed:
        return f"the seeds are {x.seed} and {y.seed}"
    return f"step {x.index} draws with the numbers {x.draw} and {y.draw}"


def data_text(x: Step, y: Step, pairs: Pairs) -> str:
    """Return which arguments differ, and in which examples."""
    if _other_counts(x, y):
        return f"the batch has {_counts(x.examples)} examples in a and {_counts(y.examples)} in b"
    found = []
    keys = [key for key in pairs.positions if key[0] == "argument"]
    # Arguments with equal differences, such as swapped rows of images and labels, share a text.
    by_text: dict[str, list[int]] = {}
    for key in keys:
        one, other = x.example_hashes.get(key[2]), y.example_hashes.get(key[2])
        if one is not None and other is not None:
            if one != other:
                by_text.setdefault(_examples_text(_split(one), _split(other)), []).append(key[2])
        elif differs(x, y, pairs, key):
            by_text.setdefault("the value differs", []).append(key[2])
    for text, positions in by_text.items():
        plural = "s" if len(positions) > 1 else ""
        found.append(f"argument{plural} {listed(list(map(str, positions)))}: {text}")
    return ", ".join(found) or "the arguments differ"


def _split(hashes: str) -> list[str]:
    return [hashes[at : at + 8] for at in range(0, len(hashes), 8)]


def _examples_text(a: Sequence[str], b: Sequence[str]) -> str:
    if len(a) != len(b):
        missing, extra = (sum((Counter(s) - Counter(t)).values()) for s, t in ((a, b), (b, a)))
        only = f"{missing} are in a only and {extra} in b only"
        return f"{len(a)} examples in a and {len(b)} in b, {only}"
    at = [n for n, (one, other) in enumerate(zip(a, b, strict=True)) if one != other]
    if Counter(a) == Counter(b):
        if len(at) == 2:
            return f"examples {at[0]} and {at[1]} are swapped"
        return f"the same examples in another order, {len(at)} of {len(a)} moved, first {at[0]}"
    plural = "s" if len(at) > 1 else ""
    return f"example{plural} {listed(list(map(str, at)))} of {len(a)} differ{'' if plural else 's'}"


def _counts(examples: Sequence[int]) -> str:
    return ", ".join(map(str, examples))


def _reasons(a: Program, b: Program) -> str:
    if a.replicas == b.replicas:
        return ""
    named = [*a.reasons, *b.reasons]
    reasons = {f"{shown(line)}: {text}" if line else text for text, line in named}
    if not reasons:
        return ""
    return (
        f"the program depends on the number of replicas, {a.replicas} in a and {b.replicas} in b: "
        + ", ".join(sorted(reasons))
    )


def results_text(x: Step, y: Step, pairs: Pairs) -> str:
    """Return the names of all results that differ."""
    parts = []
    for kind in _KINDS[1:]:
        keys = [key for key in pairs.positions if key[0] == kind]
        differing = [key for key in keys if differs(x, y, pairs, key)]
        if differing:
            plural = "s" if len(keys) > 1 else ""
            parts.append(
                f"{len(differing)} of {len(keys)} {kind}{plural} ({pairs.names_of(differing)})"
            )
    return ", ".join(parts)
