"""From the JSON of compare.py to medians, ratios and markdown.

    python table.py results/2026-11-28-amd.json

prints the report of a JSON file. `--docs` writes the tables of README.md and docs/performance*.md
again: each is between a line `<!-- table: FILE NAME ... -->`, with a file of results/ and duels
(`models`: all of models.py), and a line `<!-- end -->`. `summary` instead of `table` shows the
fastest peer only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from duels import DUELS, IMPORT_GOAL, Duel, Goal, work_per_unit
from models import MODELS
from workloads import Job

Report = dict[str, Any]

RESULTS = Path(__file__).resolve().parent / "results"
ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("performance*.md")))
PEERS = {
    "tf": "TensorFlow",
    "xla": "XLA",
    "torch": "PyTorch",
    "inductor": "PyTorch, compiled",
    "ddp": "PyTorch DDP",
    "jax": "JAX",
    "samegrad": "samegrad",
}
# What the meters print (fma_peak.cpp, bandwidth.cpp), for people.
UNITS = {"gflops": ("FMA peak", "GFLOP/s"), "gb_per_s": ("memory bandwidth", "GB/s")}


def summarize(duel: Duel, result: Report) -> dict[str, float]:
    """Return the figures of a duel; turns of one number ran next to each other.

    `speedup_PEER` is the median over the pairs of the peer's step time divided by ours, so it is
    fair to a machine that is slow for a while. `speedup` is that of the fastest peer.
    `memory_ratio` compares what steps add to the memory after the import with the peer that adds
    least.
    `peak_share` relates our work to what a meter of the same pair did in a second.
    """
    ours, *others = result["sides"]
    figures = {"step_us": 1e3 * step_ms(ours), "memory_mib": peak_memory(ours)}
    for other in others:
        pairs = zip(ours["turns"], other["turns"], strict=True)
        figures[speedup_name(other)] = median(b["step_ms"] / a["step_ms"] for a, b in pairs)
    figures["speedup"] = min(figures[speedup_name(other)] for other in others)
    figures["memory_ratio"] = added_memory(ours) / min(map(added_memory, others))
    if result["peaks"]:
        unit = next(unit for unit in UNITS if unit in result["peaks"][0])
        work = units_per_step(duel) * work_per_unit(duel) * 1e-6
        figures["peak"] = median(peak[unit] for peak in result["peaks"])
        figures["peak_share"] = median(
            work / turn["step_ms"] / peak[unit]
            for turn, peak in zip(ours["turns"], result["peaks"], strict=True)
        )
    return figures


def speedup_name(side: Report) -> str:
    return f"speedup_{side['backend']}"


def step_ms(side: Report) -> float:
    return float(median(turn["step_ms"] for turn in side["turns"]))


def peak_memory(side: Report) -> float:
    return float(max(turn["peak_memory_mib"] for turn in side["turns"]))


def added_memory(side: Report) -> float:
    """Return the peak above the memory after the import and the data, at least 1 MiB."""
    return max(peak_memory(side) - side["base_memory_mib"], 1.0)


def units_per_step(duel: Duel) -> int:
    return Job(duel.workload, "", duel.ours.replicas, duel.ours.batch).units_per_step


def judge(goals: Iterable[Goal], figures: dict[str, float]) -> str:
    """Return e.g. 'met: speedup ≥ 2; MISSED: step_us ≤ 30 (41.2)'."""
    words = []
    for goal in goals:
        value = figures.get(goal.figure)
        if value is not None and goal.met(value):
            words.append(f"met: {goal.text}")
        else:
            text = "not measured" if value is None else f"{value:.3g}"
            words.append(f"MISSED: {goal.text} ({text})")
    return "; ".join(words)


def verdict(duel: Duel, result: Report) -> str:
    """Return the goals of a duel, or its failure."""
    if "error" in result:
        return f"failed: {result['error']}"
    figures = summarize(duel, result)
    failed = "".join(f"; {side} failed: {why}" for side, why in result.get("failed", {}).items())
    return f"{figures['speedup']:.2f} times as fast; {judge(duel.goals, figures)}{failed}"


def verdicts(found: Report) -> Iterator[str]:
    """Yield a line for each duel, and for the import."""
    for duel, result in duels_of(found):
        yield f"{duel.name}: {verdict(duel, result)}"
        if result["peaks"]:
            figures = summarize(duel, result)
            unit = next(unit for unit in UNITS if unit in result["peaks"][0])
            name, text = UNITS[unit]
            share = f"{figures['peak_share']:.0%} of {figures['peak']:.0f} {text}"
            yield f"{duel.name}: {share} ({name})"
    if "import" in found["duels"]:
        result = found["duels"]["import"]
        goal = f"failed: {result['error']}" if "error" in result else judge((IMPORT_GOAL,), result)
        yield f"import: {goal}"


def duels_of(found: Report) -> Iterator[tuple[Duel, Report]]:
    for duel in DUELS:
        if duel.name in found["duels"]:
            yield duel, found["duels"][duel.name]


def table(found: Report, names: Iterable[str]) -> str:
    """Return a row for each contestant of the duels: time, memory and how much faster ours is."""
    lines = [
        "| one step | contestant | time | MiB (above import) | start | factor |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for duel, result in measured(found, names):
        lines += rows(duel, result)
    return "\n".join(lines)


def measured(found: Report, names: Iterable[str]) -> Iterator[tuple[Duel, Report]]:
    """Yield those of the named duels that did not fail."""
    shown = [name for each in names for name in (MODELS if each == "models" else [each])]
    for duel, result in duels_of(found):
        if duel.name in shown and "error" not in result:
            yield duel, result


def rows(duel: Duel, result: Report) -> Iterator[str]:
    figures = summarize(duel, result)
    title = duel.title
    for side in result["sides"]:
        factor = "" if side is result["sides"][0] else f"{figures[speedup_name(side)]:.2f}"
        yield (
            f"| {title} | {contestant(duel, side)} | {duration(1e3 * step_ms(side))} "
            f"| {peak_memory(side):,.0f} ({added_memory(side):,.0f}) "
            f"| {side['start_s']:.1f}\N{NO-BREAK SPACE}s | {factor} |"
        )
        title = ""


def contestant(duel: Duel, side: Report) -> str:
    threads = f", threads: {side['threads']}" if any(s.threads for s in duel.sides) else ""
    return f"{PEERS[side['backend']]} {batch(side)}{threads}"


def batch(side: Report) -> str:
    return f"{side['replicas']}\N{MULTIPLICATION SIGN}{side['batch']}"


def summary(found: Report, names: Iterable[str]) -> str:
    """Return a row for each duel: the times of samegrad and of the fastest peer."""
    lines = ["| one step | samegrad | fastest peer | factor |", "| --- | --- | --- | --- |"]
    for duel, result in measured(found, names):
        figures = summarize(duel, result)
        ours, *others = result["sides"]
        peer = min(others, key=lambda side: figures[speedup_name(side)])
        ours_ms, peer_ms = (duration(1e3 * step_ms(side)) for side in (ours, peer))
        lines.append(
            f"| {duel.title}, {batch(ours)} | {ours_ms} "
            f"| {contestant(duel, peer)}: {peer_ms} | {figures['speedup']:.2f} |"
        )
    return "\n".join(lines)


def duration(microseconds: float) -> str:
    number, unit = f"{microseconds:.1f}", "µs"
    if microseconds >= 1000:
        number, unit = f"{microseconds / 1000:.{1 if microseconds < 1e5 else 0}f}", "ms"
    return f"{number}\N{NO-BREAK SPACE}{unit}"


def conditions(found: Report, names: Iterable[str]) -> str:
    """Return the sentence above a table: where, when and how it was measured."""
    versions, loads = {}, []
    for _, result in measured(found, names):
        for side in result["sides"]:
            versions[PEERS[side["backend"]].partition(",")[0]] = side["version"]
            loads += [turn["load"] for turn in side["turns"]]
    load = f", load {median(loads):.1f}" if loads else ""
    text = f"{found['processor']}, {found['cores']} cores{load}, {found['date']}. "
    text += f"Medians of {found['pairs']} pairs. "
    text += ", ".join(f"{name} {version}" for name, version in versions.items())
    return textwrap.fill(text + ".", 100, break_on_hyphens=False)


def explained(found: Report) -> str:
    """Return predicted and measured times of samegrad's steps, by their kind."""
    lines = [
        "| workload | kind of step | steps | predicted ms | measured ms | measured ÷ predicted |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for duel, result in duels_of(found):
        for kind, step in result.get("explained", {}).items():
            predicted, measured = 1e3 * step["predicted"], 1e3 * step["least"]
            lines.append(
                f"| {duel.name} | {kind} | {step['steps']} | {predicted:.3f} | {measured:.3f} "
                f"| {measured / predicted:.2f} |"
            )
    return "\n".join(lines) if len(lines) > 2 else ""


def markdown(found: Report) -> str:
    """Return the whole report."""
    names = found["duels"]
    parts = [conditions(found, names), table(found, names), explained(found)]
    return "\n\n".join([*filter(None, parts), *[f"- {line}" for line in verdicts(found)]])


FORMS = {"table": table, "summary": summary}
MARKED = re.compile(r"(<!-- (table|summary): (\S+) ([^>]*?) -->\n)(.*?)<!-- end -->", re.DOTALL)


def with_tables(text: str) -> str:
    """Return a page whose marked tables are those of their JSON files."""

    def written(match: re.Match[str]) -> str:
        head, form, file, names = match.groups()[:4]
        found = json.loads((RESULTS / file).read_text())
        shown = names.split()
        return f"{head}{conditions(found, shown)}\n\n{FORMS[form](found, shown)}\n<!-- end -->"

    return MARKED.sub(written, text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("json", nargs="?", type=Path)
    parser.add_argument(
        "--docs", action="store_true", help="write the tables of README.md and docs/"
    )
    options = parser.parse_args()
    if options.json:
        print(markdown(json.loads(options.json.read_text())))
    if options.docs:
        for page in PAGES:
            page.write_text(with_tables(page.read_text()))


if __name__ == "__main__":
    sys.exit(main())
