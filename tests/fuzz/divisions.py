"""Divides global batches over replicas at random and holds each division against one replica.

    python tests/fuzz/divisions.py --draws 5000 [--seed N] [--failures FOLDER] [--shrink SECONDS]

Prints the draws by kind and each kind of difference with a program, shrunk; ends with 1 if there
was a difference.
"""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import pathlib
import re
import sys
import time
from collections.abc import Iterator

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz.bits import bytes_of, first_difference
from fuzz.difference import Difference
from fuzz.division import Shares, Trial, trials
from fuzz.own import Tainted, own_names
from fuzz.processes import Workers
from fuzz.program import Program
from fuzz.shrink import lower, retyped, simpler
from fuzz.source import divided_text
from fuzz.worker import Mode, Outcome

# ---- judgement ----


def outcomes(trial: Trial, workers: Workers) -> list[Outcome]:
    """Return the results of each mode."""
    return workers.run(trial.program, {trial.environment: trial.modes})[trial.environment]


def check(trial: Trial, workers: Workers) -> list[tuple[Mode, Difference]]:
    """The differences between one replica and each division."""
    one, *others = outcomes(trial, workers)
    found = []
    for mode, outcome in zip(trial.modes[1:], others, strict=True):
        if said := differs(trial.program, one, outcome, mode.shares):
            kind = said.partition(":")[0].rstrip("0123456789[] ")
            found.append((mode, Difference(kind, f"{mode} ({trial.environment})", said)))
    return found


def differs(program: Program, one: Outcome, outcome: Outcome, shares: Shares) -> str:
    """Return the differences between a division and one replica that explain() does not name."""
    if one.error or outcome.error:
        # What a replica computes of its own examples may need one: the last one, their maximum.
        needs = 0 in shares and own_names(program)
        same = one.error.partition(":")[0] == outcome.error.partition(":")[0]
        return "" if needs or same else f"error: {one.error or outcome.error}"
    return unequal(program, one, outcome, Tainted.by(program, named(outcome)))


def named(outcome: Outcome) -> list[str]:
    """The lines that explain() names."""
    return re.findall(r"^  - (.*:\d+: .*)", outcome.plan, re.M)


def unequal(program: Program, one: Outcome, outcome: Outcome, tainted: Tainted) -> str:
    """The first difference between two outcomes that is not in what may depend on the division."""
    for number, (a, b) in enumerate(zip(one.steps, outcome.steps, strict=True)):
        for name, x, y in _pairs(program, a, b, tainted):
            if said := _first(x, y):
                return f"{name}: in step {number}: {said}"
        if tainted.gradients:
            break  # what follows is made of other weights
    return ""


Values = list[np.ndarray] | None


def _pairs(
    program: Program, a: dict, b: dict, tainted: Tainted
) -> Iterator[tuple[str, Values, Values]]:  # fmt: skip
    """Yield the name of each compared value of a step, and it on one and on several replicas."""
    types, own = program.types(), own_names(program)
    count = len(program.outputs)
    (*outputs, loss), metrics = (list(zip(a["values"], b["values"], strict=True))[k] for k in (
        slice(count + 1), slice(count + 1, None)))  # fmt: skip
    for name, (x, y) in zip(program.outputs, outputs, strict=True):
        axis = types[name].axis
        if name not in own:
            yield name, *([np.concatenate(v, axis)] if axis >= 0 else v for v in (x, y))
    for k, (x, y) in enumerate(metrics):
        yield f"metric {k}", x, y
    if not tainted.losses:
        yield "loss", *loss
    for which, skipped in (("g", tainted.gradients), ("h", tainted.second)):
        for i, (x, y) in enumerate(zip(a[which], b[which], strict=True)):
            if i not in skipped:
                yield f"{which}[{i}]", x, y
    for i, (w, v) in enumerate(zip(a["w"], b["w"], strict=True)):
        if i not in tainted.written:
            yield f"w{i}", [w], [v]


def _first(x: Values, y: Values) -> str:
    if x is None or y is None:
        return "" if x is y else f"{x} and {y}"
    for part in y:  # where there are no examples, all replicas have the same
        if bytes_of(x) != bytes_of([part]):
            return first_difference(x[0], part)
    return ""


# ---- small programs ----


def shrink(trial: Trial, mode: Mode, found: Difference, workers: Workers, seconds: float) -> Trial:
    """The smallest trial of one division found in the time that fails in the same way."""
    end = time.monotonic() + seconds
    best = dataclasses.replace(trial, modes=[trial.modes[0], mode])

    def fails(candidate: Trial) -> bool:
        if time.monotonic() > end or not retyped(candidate.program):
            return False
        return any(d.kind == found.kind for _, d in check(candidate, workers))

    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in _smaller(best):
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def _smaller(trial: Trial) -> Iterator[Trial]:
    one, mode = trial.modes
    plain = {"threads": 1, "hides": False, "resized": False, "layout": "slices"}
    for field, value in plain.items():
        changed = [dataclasses.replace(m, **{field: value}) for m in trial.modes]
        if changed != trial.modes:
            yield dataclasses.replace(trial, modes=changed)
    if trial.environment != "usual":
        yield dataclasses.replace(trial, environment="usual")
    for shares in _fewer(mode.shares):
        changed = dataclasses.replace(mode, shares=shares)
        if mode.layout == "dataset":
            continue
        n = (sum(shares),)
        program = dataclasses.replace(copy.deepcopy(trial.program), shares=n)
        modes = [dataclasses.replace(one, shares=n), changed]
        yield dataclasses.replace(trial, program=program, modes=modes)
    for candidate in (*simpler(trial.program), *lower(trial.program)):
        yield dataclasses.replace(trial, program=candidate)


def _fewer(shares: Shares) -> Iterator[Shares]:
    """Fewer replicas or examples."""
    for i in range(len(shares) - 1):
        yield (*shares[:i], shares[i] + shares[i + 1], *shares[i + 2 :])
    for i, n in enumerate(shares):
        if len(shares) > 1:
            yield (*shares[:i], *shares[i + 1 :])
        for less in dict.fromkeys((0, 1, n // 2, n - 4, n - 1)):
            if 0 <= less < n:
                yield (*shares[:i], less, *shares[i + 1 :])


# ---- the command ----


@dataclasses.dataclass
class Report:
    """The tally of many draws."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


def kinds(trial: Trial, mode: Mode, kind: str) -> Iterator[str]:
    """By what draws are counted."""
    yield "draws"
    yield kind
    yield f"in memory: {mode.layout}"
    yield f"environment {trial.environment}"
    yield f"{trial.program.dtype}"
    if 0 in mode.shares:
        yield "replicas without examples"
    if len(mode.shares) > 8:
        yield "more than 8 replicas"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=5000, help="at least")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--shrink", type=float, default=20, help="seconds for each kind")
    parser.add_argument("--failures", type=pathlib.Path, help="where to write programs")
    options = parser.parse_args()
    report, workers, seed = Report(), Workers(), options.seed
    started = time.monotonic()
    while report.counts["draws"] < options.draws:
        for trial in trials(seed):
            draw(trial, seed, workers, report, options)
        seed += 1
    workers.close()
    for kind, count in report.counts.most_common():
        print(f"{count:8} {kind}")
    print(f"{report.counts['draws'] / (time.monotonic() - started):8.1f} draws a second")
    return 1 if report.failures else 0


def draw(
    trial: Trial, seed: int, workers: Workers, report: Report, options: argparse.Namespace
) -> None:
    """Runs a trial, counts its draws, and shrinks the first difference of each kind."""
    for mode, kind in zip(trial.modes[1:], trial.kinds[1:], strict=True):
        report.counts.update(kinds(trial, mode, kind))
    for mode, found in check(trial, workers):
        report.counts[f"differences of {found.kind}"] += 1
        if found.kind in report.failures:
            continue
        small = shrink(trial, mode, found, workers, options.shrink)
        said = "\n".join(str(d) for _, d in check(small, workers)) or f"once: {found}"
        written = f'"""seed {seed}: {said}\n"""\n' + divided_text(small.program, small.modes[1])
        report.failures[found.kind] = written
        print(f"==== {written}", flush=True)
        if options.failures:
            options.failures.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "_", f"seed_{seed}_{found.kind}").strip("_")
            (options.failures / f"{name}.py").write_text(written)


if __name__ == "__main__":
    sys.exit(main())
