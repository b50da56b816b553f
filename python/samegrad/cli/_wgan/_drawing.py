"""The curves of a run and a grid of its images."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad.cli._pictures import save_figure
from samegrad.cli._records import Record
from samegrad.cli._wgan._steps import WHO
from samegrad.cli._wgan._watch import LEAST_NORM, MOST_NORM

_SMOOTH = 25  # iterations of a mean


def draw_curves(path: Path, records: Iterable[Record]) -> None:
    """Draws the figures of a run over its iterations.

    Args:
        path: The picture; its ending says the file type.
        records: As the log holds them.

    Raises:
        OSError: The file cannot be written; none is left half-written.
    """
    from matplotlib.figure import Figure

    steps, judged = _sorted(records)
    figure = Figure(figsize=(11, 6), layout="constrained")
    (distance, losses, norms), (penalty, quality, sureness) = figure.subplots(2, 3)
    _curve(distance, steps, "wasserstein", "Wasserstein estimate")
    _curve(losses, steps, "critic_loss", "critic")
    _curve(losses, steps, "generator_loss", "generator")
    _curve(norms, steps, "gradient_norm", "mean gradient norm")
    norms.axhspan(LEAST_NORM, MOST_NORM, alpha=0.1)
    _curve(penalty, steps, "penalty", "penalty")
    places = [record["step"] for record in judged]
    quality.plot(places, [r["sliced_wasserstein"] for r in judged], ".-", label="sliced distance")
    for name in ("confidence", "entropy"):
        known = [record for record in judged if name in record]
        sureness.plot([r["step"] for r in known], [r[name] for r in known], ".-", label=name)
    for axes in figure.axes:
        axes.set(xlabel="iteration")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(WHO, figure, path)


def draw_grid(path: Path, images: npt.NDArray[np.float32]) -> None:
    """Draws images `[n, 28, 28, 1]` from -1 to 1 beside each other, in a square.

    Args:
        path: The picture; its ending says the file type.
        images: At least one.

    Raises:
        OSError: The file cannot be written; none is left half-written.
    """
    from matplotlib.figure import Figure

    side = math.isqrt(len(images))
    rows = images[: side * side, ..., 0].reshape(side, side, *images.shape[1:3])
    sheet = rows.transpose(0, 2, 1, 3).reshape(side * images.shape[1], side * images.shape[2])
    figure = Figure(figsize=(side, side), dpi=56)
    figure.figimage(sheet, cmap="gray_r", vmin=-1, vmax=1, resize=True)
    save_figure(WHO, figure, path)


def _sorted(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Records of iterations, and those of judged images."""
    steps: list[Record] = []
    judged: list[Record] = []
    for record in records:
        (judged if "sliced_wasserstein" in record else steps).append(record)
    return steps, judged


def _curve(axes: Any, steps: list[Record], name: str, label: str) -> None:
    places = np.array([record["step"] for record in steps])
    values = np.array([record[name] for record in steps])
    (line,) = axes.plot(places, values, linewidth=0.5, alpha=0.4)
    if len(values) >= _SMOOTH:
        smooth = np.convolve(values, np.ones(_SMOOTH) / _SMOOTH, mode="valid")
        axes.plot(places[_SMOOTH - 1 :], smooth, color=line.get_color(), label=label)
    else:
        line.set_label(label)
