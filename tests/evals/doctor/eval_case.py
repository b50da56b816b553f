"""The format of a case: a training step, its source, and what its author wrote before any run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
TRIALS = ("first_trial", "second_trial", "third_trial", "fourth_trial", "fifth_trial")
SETS = (*TRIALS, "real_bugs", "held_out")
# Parts of a trial, by the module that has them; all other modules simulate ranks of PyTorch.
PARTS = {"torch": "", "processes": "in_processes", "jax": "in_jax", "samegrad": "in_samegrad"}
NEEDS = {"torch": "torch", "processes": "torch", "jax": "jax", "samegrad": "samegrad"}
_KINDS = ("wrong", "right", "even", "warned")


@dataclass(frozen=True)
class Case:
    """A step and what its author says of it.

    Args:
        name: The name of the function that holds the step.
        source: The thread that shows the program, as owner/repository#number.
        what: What is wrong, or why it is right, in words.
        formula: The weight of an example in the update (or in the report). w_i is an example's
            weight, 1 or its tokens; W the sum of all, W_r of a replica's, W_rk of a micro-batch's,
            N, n_r and n_rk the numbers of examples, R replicas, K micro-batches.
        kind: "wrong"; "right"; "even" is right for equal shards, and runs on such alone;
            "warned" agrees on all layouts, but a reader should be warned.
        make: Returns the step and its batch.
        options: The options of `diagnose`.
        where: Where a failure shows: "update", "report" or "statistics".
        named: The name that a reader compared with `what` and `formula`, or None.
        truth: A function of a Deal that returns the weights, or the kind of failure (held_out).
    """

    name: str
    source: str
    what: str
    formula: str
    kind: str
    make: Callable[[], tuple[Any, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    where: str = "update"
    named: str | None = None
    truth: Any = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"[Case] kind must be one of {_KINDS}: got {self.kind!r}.")
        if self.kind == "even":
            self.options.setdefault("equal_shards", True)


_DECORATED: dict[str, list[Case]] = {}  # by module


def decorator(
    maker: Callable[[Callable[..., Any], dict[str, Any]], Callable[[], tuple[Any, Any]]],
) -> Callable[..., Any]:
    """Return a decorator of the functions of a framework.

    Args:
        maker: maker(function, settings) returns `Case.make`; it takes its own settings out, and the
            others are options of `diagnose`.
    """

    def case(source: str, what: str, formula: str, kind: str = "wrong", **settings: Any) -> Any:
        where, named = settings.pop("where", "update"), settings.pop("named", None)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            make, name = maker(function, settings), function.__name__
            one = Case(name, source, what, formula, kind, make, settings, where, named)
            _DECORATED.setdefault(function.__module__, []).append(one)
            return function

        return decorate

    return case


def modules_of(trial: str, part: str) -> list[str]:
    """Return the modules of a part of a trial."""
    if PARTS[part]:
        return [f"{trial}.{PARTS[part]}"]
    files = sorted(path.stem for path in (FOLDER / trial).glob("[a-z]*.py"))
    return [f"{trial}.{name}" for name in files if name not in PARTS.values()]


def cases(trial: str, part: str) -> list[Case]:
    """Return the cases of a part of a trial."""
    found = []
    for module in modules_of(trial, part):
        importlib.import_module(module)
        found += _DECORATED.get(module, [])
    return found


def all_cases(wanted: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, Case]]:
    """Yield the key and the case of all wanted sets and parts, such as "first_trial/jax".

    Parts whose framework is not installed are left out.
    """
    for trial in TRIALS:
        for part, needed in NEEDS.items():
            if wanted(f"{trial}/{part}") and importlib.util.find_spec(needed) is not None:
                yield from ((f"{trial}/{part}/{one.name}", one) for one in cases(trial, part))
    for name in ("real_bugs", "held_out"):
        if wanted(name):
            listed = importlib.import_module(name).all_cases()
            yield from ((f"{name}/{i}/{one.source}", one) for i, one in enumerate(listed))
