"""Values of a program that depend on the division of a batch: local means, local counts."""

from __future__ import annotations

import dataclasses

from fuzz import features
from fuzz.program import Program, names_in


def own_names(program: Program) -> set[str]:
    """Values that a replica makes of all of its examples together, and what follows from them."""
    return {name for name, t in program.types().items() if not t.local}


@dataclasses.dataclass
class Tainted:
    """What may depend on the division, in the first step.

    Args:
        losses: Whether the loss does.
        gradients: Numbers of the variables whose gradients do.
        second: The same of second derivatives.
        written: The same of what is written.
    """

    losses: bool
    gradients: set[int]
    second: set[int]
    written: set[int]

    @classmethod
    def by(cls, program: Program, reasons: list[str]) -> Tainted:
        """By own values and by sums of what all replicas have, if explain() names any."""
        if not reasons:
            return cls(False, set(), set(), set())
        every = set(range(len(program.variables)))
        if any("number of examples differs" in reason for reason in reasons):
            return cls(True, every, every, every)  # each number has a trace, with sums of its own
        own, types = own_names(program), program.types()
        losses = {
            name
            for kind, name in program.losses
            if name in own or (kind == "sum" and types[name].axis < 0)
        }
        # The gradient of a product of weights is rounded after it is divided by their number.
        divided = {name for kind, name in program.losses if kind == "share"}
        rounded = any("affine_scan" in reason for reason in reasons)
        behind = ancestors(program, losses | (divided if rounded else set()))
        gradients = {int(name[1:]) for name in behind if name.startswith("w")}
        if _rounds_before_sums(program):
            gradients = every
        second = every if gradients else set[int]()
        return cls(bool(losses), gradients, second, _written(program, gradients))


def _rounds_before_sums(program: Program) -> bool:
    """Return if explain() may name gradients that leave a branch, or are rounded early."""
    switches = features.EQUAL_BITS
    control = any(s.op in ("cond", "while") for s in program.body)
    return (control and not switches["replicas_without_promise_of_control_flow"]) or (
        program.dtype == "bfloat16" and not switches["replicas_without_promise_of_bfloat16"]
    )


def ancestors(program: Program, names: set[str]) -> set[str]:
    """The names, and all that they are made of."""
    found = set(names)
    for s in reversed(program.body):
        if s.out in found:
            found |= set(names_in(s))
    return found


def _written(program: Program, gradients: set[int]) -> set[int]:
    found: set[int] = set()
    for kind, *rest in program.updates:
        if kind == "apply":
            return gradients
        a, b = rest[0], rest[-1]
        if kind == "descend" and a in gradients:
            found.add(a)
        elif kind == "swap":
            found = {{a: b, b: a}.get(i, i) for i in found}
        elif kind == "assign":
            found = found - {a} | ({a} if b in found else set())
        elif kind in ("average", "add") and b in found:
            found.add(a)
    return found
