"""From the reports of many runs to medians, ratios and a markdown table."""

from __future__ import annotations

from statistics import median
from typing import Any

from duels import Duel, Goal

Report = dict[str, Any]

# What the meters print (fma_peak.cpp, bandwidth.cpp), for people.
UNITS = {"gflops": ("FMA peak", "GFLOP/s"), "gb_per_s": ("Memory bandwidth", "GB/s")}

HEADER = (
    "| duel | samegrad | against | samegrad per s, median (best) | against per s, median (best) "
    "| speedup | step | MiB | start s | goals |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def summarize(
    ours: list[Report], other: list[Report], peaks: list[Report], work: int = 0
) -> dict[str, float]:
    """Returns the figures of a duel; the i-th reports of each list ran next to each other.

    `speedup` is the median over the pairs of the other's step time by ours, so it is fair to a
    machine that is slow for a while. `peak_share` relates our work (`work` operations, or bytes, of
    a unit) to what a meter of the same pair did in a second, `best_peak_share` our best block to
    the best of the meter.
    """
    pairs = list(zip(ours, other, strict=True))
    figures = {
        "speedup": median(b["step_ms"] / a["step_ms"] for a, b in pairs),
        "step_us": median_of(ours, "step_ms") * 1e3,
        "best_step_us": min(report["best_step_ms"] for report in ours) * 1e3,
        "other_step_us": median_of(other, "step_ms") * 1e3,
        "per_second": median_of(ours, "per_second"),
        "best_per_second": max(report["best_per_second"] for report in ours),
        "other_per_second": median_of(other, "per_second"),
        "other_best_per_second": max(report["best_per_second"] for report in other),
        "memory_mib": max(report["peak_memory_mib"] for report in ours),
        "other_memory_mib": max(report["peak_memory_mib"] for report in other),
        "memory_ratio": median(a["peak_memory_mib"] / b["peak_memory_mib"] for a, b in pairs),
        "start_s": median_of(ours, "start_s"),
        "other_start_s": median_of(other, "start_s"),
    }
    if peaks:
        unit = next(unit for unit in UNITS if unit in peaks[0])
        best = max(peak[f"best_{unit}"] for peak in peaks)
        figures[f"peak_{unit}"], figures[f"best_peak_{unit}"] = median_of(peaks, unit), best
        figures["peak_share"] = median(
            run["per_second"] * work * 1e-9 / peak[unit]
            for run, peak in zip(ours, peaks, strict=True)
        )
        figures["best_peak_share"] = figures["best_per_second"] * work * 1e-9 / best
    return figures


def median_of(reports: list[Report], name: str) -> float:
    return float(median(report[name] for report in reports))


def judge(goals: tuple[Goal, ...], figures: dict[str, float]) -> list[dict[str, Any]]:
    """Returns goal, value and whether it is met; a figure that was not measured is not met."""
    return [
        {
            "goal": goal.text,
            "value": figures.get(goal.figure),
            "met": goal.figure in figures and goal.met(figures[goal.figure]),
        }
        for goal in goals
    ]


def goals_text(verdicts: list[dict[str, Any]]) -> str:
    """Returns e.g. 'met: speedup ≥ 2; MISSED: step_us ≤ 30 (41.2)'."""
    words = []
    for verdict in verdicts:
        value = "not measured" if verdict["value"] is None else f"{verdict['value']:.3g}"
        words.append(
            f"met: {verdict['goal']}" if verdict["met"] else f"MISSED: {verdict['goal']} ({value})"
        )
    return "; ".join(words)


def row(duel: Duel, result: Report) -> str:
    """Returns the markdown row of a duel, or of its failure."""
    start = f"| {duel.name} | {duel.ours.label} | {duel.other.label} |"
    if "error" in result:
        return f"{start} failed: {result['error']} | | | | | | |"
    figures = result["summary"]
    cells = [
        f"{figures['per_second']:,.0f} ({figures['best_per_second']:,.0f})",
        f"{figures['other_per_second']:,.0f} ({figures['other_best_per_second']:,.0f})",
        f"{figures['speedup']:.2f}x",
        f"{duration(figures['step_us'])} / {duration(figures['other_step_us'])}",
        f"{figures['memory_mib']:,.0f} / {figures['other_memory_mib']:,.0f}",
        f"{figures['start_s']:.2f} / {figures['other_start_s']:.2f}",
        goals_text(result["goals"]),
    ]
    return f"{start} {' | '.join(cells)} |"


def duration(microseconds: float) -> str:
    return f"{microseconds:.1f} µs" if microseconds < 1000 else f"{microseconds / 1000:.1f} ms"


def peak_line(figures: dict[str, float]) -> str:
    key = next(key for key in UNITS if f"peak_{key}" in figures)
    name, unit = UNITS[key]
    return (
        f"{name} of the same run: {figures[f'peak_{key}']:.0f} {unit} "
        f"(best {figures[f'best_peak_{key}']:.0f}); samegrad reaches "
        f"{figures['peak_share']:.0%} of it (best by best {figures['best_peak_share']:.0%})."
    )


def import_line(result: Report) -> str:
    if "error" in result:
        return f"Import: failed: {result['error']}."
    return (
        f"Import: NumPy {result['numpy_s']:.3f} s, samegrad adds {result['added_s']:.3f} s; "
        f"{goals_text(result['goals'])}."
    )
