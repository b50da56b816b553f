"""When a run is said to be unstable, and how good images are."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from samegrad.cli._wgan._quality import _entropy, sliced_wasserstein
from samegrad.cli._wgan._watch import Watch, not_finite


def looked(watch: Watch, norms: Any, distances: Any, start: int = 0) -> list[tuple[int, str]]:
    """Iteration and text of all warnings."""
    said = []
    for number, (norm, distance) in enumerate(zip(norms, distances, strict=True), start + 1):
        figures = {"gradient_norm": norm, "wasserstein": distance}
        said += [(number, line) for line in watch.look(number, figures)]
    return said


@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0])
def test_a_calm_run_is_not_warned_of(norm: float) -> None:
    # The estimate grows from 0 while the critic begins to learn.
    distances = [min(i, 80) / 4 for i in range(1000)]
    assert looked(Watch("gp"), [norm] * 1000, distances) == []


@pytest.mark.parametrize(
    ("lipschitz", "norm", "advice"),
    [
        ("gp", 2.1, "raise --lambda or lower --learning-rate"),
        ("gp", 0.4, "lower --lambda or raise --learning-rate or --n-critic"),
        ("clip", 5.0, "lower --clip"),
        ("clip", 0.01, "raise --clip"),
    ],
)
def test_a_norm_far_from_1_is_told_once_after_100_iterations(
    lipschitz: str, norm: float, advice: str
) -> None:
    ((iteration, line),) = looked(Watch(lipschitz), [1.0] * 7 + [norm] * 300, [1.0] * 307)
    assert iteration == 107
    assert line.startswith("[wgan-gp] the mean gradient norm must be near 1, from 0.5 to 2: got ")
    assert f"got {norm:.3g} at iteration 107" in line
    assert advice in line


def test_a_norm_that_comes_back_in_between_is_not_warned_of() -> None:
    norms = ([3.0] * 99 + [1.0]) * 5
    assert looked(Watch("gp"), norms, [1.0] * 500) == []
    again = [3.0] * 100 + [1.0] + [3.0] * 100
    assert [number for number, _ in looked(Watch("gp"), again, [1.0] * 201)] == [100, 201]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_estimate_that_grows_tenfold_is_told_once(sign: float) -> None:
    distances = [0.0] * 100 + [sign * 2.0] * 200 + [sign * 21.0] * 300
    ((iteration, line),) = looked(Watch("gp"), [1.0] * 600, distances)
    assert iteration == 400
    assert "must not grow tenfold: got 21 in the 100 iterations up to 400, after 2;" in line
    assert "lower --learning-rate or --n-critic" in line
    calm = [0.0] * 100 + [2.0] * 200 + [19.0] * 300
    assert looked(Watch("gp"), [1.0] * 600, calm) == []


def test_a_resumed_watch_warns_as_one_that_was_not_stopped() -> None:
    norms = [1.0] * 130 + [3.0] * 200
    distances = [1.0] * 200 + [30.0] * 130
    whole = looked(Watch("gp"), norms, distances)
    assert len(whole) == 2
    for place in (50, 205, 229, 299, 329):
        first, second = Watch("gp"), Watch("gp")
        said = looked(first, norms[:place], distances[:place])
        second.state.update(json.loads(json.dumps(first.state)))
        said += looked(second, norms[place:], distances[place:], place)
        assert said == whole


def test_the_first_figure_that_is_not_finite_is_named() -> None:
    assert not_finite({"a": 1.0, "b": math.inf, "c": math.nan}) == "b inf"
    assert not_finite({"a": -1e300}) is None


def test_the_sliced_distance_of_shifted_samples_is_known() -> None:
    # Along a line u, points that are all shifted by d are |d u| away; the mean of |u_1| on the
    # unit circle is 2 / pi.
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 2)).astype(np.float32)
    found = sliced_wasserstein(x, x[::-1] + np.float32([3.0, 0.0]), directions=4000)
    assert found == pytest.approx(3 * 2 / math.pi, rel=0.02)
    assert sliced_wasserstein(x, x[::-1]) == 0


def test_the_sliced_distance_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    rng = np.random.default_rng(4)
    one, other = rng.normal(size=(2, 50, 1)).astype(np.float32)
    wanted = stats.wasserstein_distance(one[:, 0], other[:, 0])  # the only lines: 1 and -1
    assert sliced_wasserstein(one, other) == pytest.approx(wanted, rel=1e-5)


def test_samples_of_two_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have one shape: got \(2, 3\) and \(4, 3\)"):
        sliced_wasserstein(np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))


def test_entropy_in_nats() -> None:
    chances = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(_entropy(chances), [math.log(2), 0], atol=1e-15)
