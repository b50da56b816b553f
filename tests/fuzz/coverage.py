"""Which path of the plan each operation took, from what explain() says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fuzz.worker import Mode, Outcome

_NODE = re.compile(r"    %\d+ (\w+) ([^:\n]*)(?:: '([^']*)')?")
_INNER = re.compile(r"nodes (\d+)-(\d+) one example at a time")


def paths_of(mode: Mode, outcome: Outcome) -> Iterator[tuple[str, str]]:
    """(row, path) once for each node of the program's plans.

    Paths: "tile" and "inner" in the loop over the examples, "deferred" after it, "rows" for those
    of all replicas at once, "whole" for a replica at once, "reduced" over replicas, "update" for
    reductions and updates block by block, "sparse" for those of rows; "eager" without a plan.
    """
    if mode.kind == "function":  # operations one at a time are those of its trace
        yield from ((name, "eager") for name in outcome.operations)
    where, position = "whole", 0
    inner: list[tuple[int, int]] = []
    for line in outcome.plan.splitlines():
        if line.startswith("  loop"):
            where, position = "tile", 0
            inner = [(int(a), int(b)) for a, b in _INNER.findall(line)]
        elif line.startswith("  once"):
            where = "whole"
        elif line.startswith("  all-reduce"):
            where = "reduced"
        elif line.startswith("  rows of all replicas"):
            where = "rows"
        elif line.startswith("  block by block"):
            where = "update"
        elif line.startswith(("  sparse", "  all rows", "  reduced")):
            where = "sparse"
        elif found := _NODE.match(line):
            path = where
            if where == "tile":
                path = "inner" if any(a <= position <= b for a, b in inner) else "tile"
                position += 1
            elif "deferred from the loop" in line and where == "whole":
                path = "deferred"
            fused = found[1].startswith("fused") and found[3]
            for name in [found[1], *(fused.split() if fused else [])]:
                yield name, path
