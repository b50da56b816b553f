"""Says early that a Wasserstein GAN goes unstable, and which option to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping

WINDOW = 100  # iterations
LEAST_NORM, MOST_NORM = 0.5, 2.0
_GROWTH = 10.0
_LEAST_DISTANCE = 0.1  # smaller estimates are noise

_FLAT = {
    "gp": "the critic is too flat: lower --lambda or raise --learning-rate or --n-critic",
    "clip": "the critic is too flat: raise --clip",
}
_STEEP = {
    "gp": "the critic is too steep: raise --lambda or lower --learning-rate",
    "clip": "the critic is too steep: lower --clip",
}
_GROWING = {
    "gp": "the critic runs away from the generator: lower --learning-rate or --n-critic, or raise "
    "--lambda",
    "clip": "the critic runs away from the generator: lower --learning-rate, --n-critic or --clip",
}
NOT_FINITE = {
    "gp": "lower --learning-rate; a larger --lambda keeps the critic's gradients small",
    "clip": "lower --learning-rate or --clip",
}


def not_finite(figures: Mapping[str, float]) -> str | None:
    """Return the first metric that is infinite or NaN, and its value; None if all are finite.

    Example:
        >>> not_finite({"penalty": 1.0, "critic_loss": float("nan")})
        'critic_loss nan'
    """
    return next((f"{k} {v}" for k, v in figures.items() if not math.isfinite(v)), None)


class Watch:
    """Looks at the figures of each iteration; warns once of each thing until it is well again.

    Args:
        lipschitz: "gp" or "clip".

    Attributes:
        state: Numbers that go on after a resume; JSON can hold them.

    Example:
        >>> watch = Watch("gp")
        >>> calm = {"gradient_norm": 1.0, "wasserstein": 2.0}
        >>> [watch.look(i, calm) for i in range(3)]
        [[], [], []]
    """

    def __init__(self, lipschitz: str) -> None:
        self._lipschitz = lipschitz
        # Iterations in a row with such a norm; sums of estimates in a window; the least mean.
        self.state: dict[str, float] = {
            "flat": 0, "steep": 0, "sum": 0.0, "count": 0, "windows": 0, "least": math.inf,
            "grown": 0,
        }  # fmt: skip

    def look(self, iteration: int, figures: Mapping[str, float]) -> list[str]:
        """Return the warnings after an iteration.

        Args:
            iteration: Its number.
            figures: Finite; `gradient_norm` and `wasserstein` are looked at.

        Returns:
            Warnings, mostly none.
        """
        norm = figures["gradient_norm"]
        said = [
            *self._beyond("flat", norm < LEAST_NORM, norm, iteration, _FLAT),
            *self._beyond("steep", norm > MOST_NORM, norm, iteration, _STEEP),
            *self._growing(iteration, figures["wasserstein"]),
        ]
        return [f"[wgan-gp] {line}." for line in said]

    def _beyond(
        self, name: str, beyond: bool, norm: float, iteration: int, advice: dict[str, str]
    ) -> list[str]:
        self.state[name] = self.state[name] + 1 if beyond else 0
        if self.state[name] != WINDOW:
            return []
        return [
            f"the mean gradient norm must be near 1, from {LEAST_NORM} to {MOST_NORM:g}: got "
            f"{norm:.3g} at iteration {iteration}, and so for {WINDOW} iterations; "
            f"{advice[self._lipschitz]}"
        ]

    def _growing(self, iteration: int, distance: float) -> list[str]:
        """Compares means of windows: the first one is the critic's beginning and does not count."""
        state = self.state
        state["sum"] += abs(distance)
        state["count"] += 1
        if state["count"] < WINDOW:
            return []
        mean = state["sum"] / WINDOW
        state["sum"], state["count"] = 0.0, 0
        state["windows"] += 1
        if state["windows"] == 1:
            return []
        bound = _GROWTH * max(state["least"], _LEAST_DISTANCE)
        before, state["grown"] = state["grown"], int(math.isfinite(bound) and mean > bound)
        state["least"] = min(state["least"], mean)
        if before or not state["grown"]:
            return []
        return [
            f"the Wasserstein estimate must not grow tenfold: got {mean:.3g} in the {WINDOW} "
            f"iterations up to {iteration}, after {bound / _GROWTH:.3g}; "
            f"{_GROWING[self._lipschitz]}"
        ]
