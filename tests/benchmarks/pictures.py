"""Draw the pictures of README and docs/ as SVG from recorded runs.

    python tests/benchmarks/pictures.py              # writes docs/pictures/*.svg

The data are JSON files of results/: `record_pictures.py` and `compare.py` wrote them. Colors can be
read on light and on dark pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from table import PEERS, duels_of, speedup_name, summarize

RESULTS = Path(__file__).resolve().parent / "results"
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
RECORDED, MODELS = "2026-11-29-pictures.json", "2026-11-30.json"
GREY, BLUE, ORANGE, GREEN, PINK = "#7b7b7b", "#2f81d6", "#d9730d", "#2e9e5b", "#c9519f"
STYLE = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": GREY,
    "axes.titlesize": 10,
    "font.family": "sans-serif",
    "font.size": 9,
    "legend.frameon": False,
    "legend.labelcolor": GREY,
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "samegrad",
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}
Axes = Any
Report = dict[str, Any]


def result(name: str) -> Report:
    """Return a file of results/."""
    found: Report = json.loads((RESULTS / name).read_text("utf-8"))
    return found


def figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure in inches, and its axes."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(1, columns)


def curve() -> Any:
    """Loss curves of all replicas, and what the replicas change, beside PyTorch's."""
    curves = result(RECORDED)["curves"]
    made, (left, right) = figure(8, 3, 2)
    ours = curves["samegrad"]
    (fingerprint,) = {run["fingerprint"] for run in ours.values()}
    for (count, run), width in zip(ours.items(), (7, 5, 3, 1), strict=True):
        color = dict(zip(ours, (GREY, GREEN, ORANGE, BLUE), strict=True))[count]
        left.plot(
            run["losses"],
            color=color,
            linewidth=width,
            label=f"{count} replica{'s' * (count > '1')}",
        )
    left.legend(loc="upper right")
    left.set_title(f"samegrad: one curve, one fingerprint\n{fingerprint}")
    left.set_xlabel("step")
    left.set_ylabel("loss")
    for count, color in (("2", GREEN), ("3", ORANGE), ("8", BLUE)):
        for name, line in (("torch", "-"), ("torch_sum", ":")):
            right.plot(curves[name][count]["difference"], line, color=color)
        assert not any(ours[count]["difference"])
        right.plot([], color=color, label=f"{count} replicas")
    right.plot([], ":", color=GREY, label="divided by all examples")
    right.set_yscale("log")
    right.legend(loc="center right")
    right.set_title("PyTorch: largest difference of a weight\nfrom one replica (samegrad: 0)")
    right.set_xlabel("step")
    return made


def cost() -> Any:
    """Time and memory of a step by replicas."""
    costs = result(RECORDED)["costs"]
    made, (left, right) = figure(8, 2.6, 2)
    for axes, field, title in (
        (left, "step_ms", "time of a step, ms"),
        (right, "memory_mib", "memory of the process, MiB"),
    ):
        counts = [int(count) for count in costs]
        axes.plot(counts, [run[field] for run in costs.values()], "o-", color=BLUE)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_ylim(0, 1.2 * max(run[field] for run in costs.values()))
        axes.set_title(title)
        axes.set_xlabel("replicas")
    return made


def tree() -> Any:
    """The sum of 13 examples on 3 replicas: the halves are those of the global batch."""
    examples, shares = 13, (5, 5, 3)
    made, axes = figure(8, 3.2)
    axes.axis("off")
    owners = [replica for replica, share in enumerate(shares) for _ in range(share)]
    colors = (BLUE, ORANGE, GREEN)
    for example, owner in enumerate(owners):
        axes.text(example, -0.35, str(example), ha="center", color=colors[owner])
        axes.plot(example, 0, "s", markersize=11, color=colors[owner])
    for owner, color in enumerate(colors):
        middle = sum(i for i, other in enumerate(owners) if other == owner) / shares[owner]
        axes.text(middle, -0.8, f"replica {owner}", ha="center", color=color)

    def node(begin: int, end: int, side: int = 1) -> tuple[float, float]:
        """Draw the sum of a range of examples, and return its place."""
        size = end - begin
        if size > 4:
            half = begin + (size + 1) // 2
            below = [node(begin, half, -1), node(half, end)]
        else:
            below = [(float(example), 0.0) for example in range(begin, end)]
        x, y = sum(p[0] for p in below) / len(below), max(p[1] for p in below) + 1.1
        for left, bottom in below:
            axes.plot([left, x], [bottom, y], color=GREY, linewidth=1, zorder=0)
        axes.plot(x, y, "o", markersize=9, color=GREY)
        align = "left" if side > 0 else "right"
        axes.text(x + 0.2 * side, y + 0.2, f"{begin}…{end - 1}", ha=align, fontsize=8)
        return x, y

    node(0, examples)
    axes.set_xlim(-1, examples)
    return made


def timeline() -> Any:
    """The steps of a plan, one after the other."""
    recorded = result(RECORDED)
    made, axes = figure(8, 2.4)
    names = {"loop": "loop over examples", "rows": "rows of all replicas", "block_update": "update"}
    colors = dict(zip(names, (BLUE, GREEN, ORANGE), strict=True))
    begin, tall = 0.0, 0
    for step in recorded["step"]["steps"]:
        width = 1e3 * step["least"]
        axes.barh(0, width, left=begin, color=colors.get(step["kind"], GREY), edgecolor="none")
        if width > 0.02 * 1e3 * recorded["step"]["least"]:
            heavy = [n for n in step["operations"] if re.match("conv|matmul|max_pool", n)]
            text = "\n".join([f"{width:.2f} ms", *dict.fromkeys(heavy)])
            place = (0.5, "bottom") if tall % 2 else (-0.5, "top")
            axes.text(begin + width / 2, place[0], text, ha="center", va=place[1], fontsize=7)
            tall += 1
        begin += width
    for kind, name in names.items():
        axes.barh(0, 0, color=colors[kind], label=name)
    axes.barh(0, 0, color=GREY, label="others")
    axes.legend(loc="upper center", ncols=4, bbox_to_anchor=(0.5, 1.3))
    axes.set_ylim(-1.8, 1.8)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.set_xlabel("ms")
    return made


def models() -> Any:
    """Factors of the table: time of a step of each peer, divided by samegrad's."""
    found = result(MODELS)
    made, axes = figure(8, 4.6)
    shapes = {
        "tf": ("o", ORANGE),
        "xla": ("^", GREEN),
        "torch": ("s", BLUE),
        "inductor": ("D", PINK),
    }
    rows = list(duels_of(found))
    for row, (duel, measured) in enumerate(rows):
        figures = summarize(duel, measured)
        for side in measured["sides"][1:]:
            shape, color = shapes[side["backend"]]
            axes.plot(figures[speedup_name(side)], -row, shape, color=color, markersize=5)
    for backend, (shape, color) in shapes.items():
        axes.plot([], [], shape, color=color, label=PEERS[backend])
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_yticks([-row for row in range(len(rows))], [duel.title for duel, _ in rows])
    axes.grid(axis="y", color=GREY, alpha=0.25)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"times as long as samegrad, {found['processor']}, {found['date']}")
    axes.legend(loc="upper right")
    return made


PICTURES: dict[str, Callable[[], Any]] = {
    "replicas": curve,
    "replica-cost": cost,
    "tree": tree,
    "timeline": timeline,
    "models": models,
}


def draw(name: str, file: Path) -> None:
    """Write a picture."""
    with mpl.rc_context(STYLE):
        PICTURES[name]().savefig(file, format="svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        draw(each, FOLDER / f"{each}.svg")
