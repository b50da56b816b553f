"""keras.backend.nn: CTC agrees with all paths, one by one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

from samegrad._keras import nn

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 4, 3))
LENGTHS = np.array([4, 3, 2], "int32")


def _labels(path: Any, blank: int) -> tuple[int, ...]:
    return tuple(c for c, _ in itertools.groupby(path) if c != blank)


def _probabilities(logits: Any, blank: int) -> dict[tuple[int, ...], float]:
    """That of each sequence of labels: the sum over its paths."""
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        key = _labels(path, blank)
        found[key] = found.get(key, 0.0) + np.prod(
            [s[c] for s, c in zip(shares, path, strict=True)]
        )
    return found


@pytest.mark.parametrize("blank", [0, -1])
def test_the_loss_is_minus_the_logarithm_of_the_sum_over_all_paths(blank: int) -> None:
    labels = np.array([[1, 2], [1, 1], [2, 0]]) - (1 if blank == -1 else 0)
    sizes = np.array([2, 2, 1], "int32")
    found = nn.ctc_loss(labels, LOGITS, sizes, LENGTHS, blank).numpy()
    for n in range(3):
        table = _probabilities(LOGITS[n, : LENGTHS[n]], blank % 3)
        assert np.isclose(found[n], -np.log(table[tuple(labels[n, : sizes[n]])]))


def test_no_labels_are_blanks_only_and_what_has_no_path_is_infinite() -> None:
    none = nn.ctc_loss([[1, 2]], LOGITS[:1], [0], [4]).numpy()
    assert np.isclose(none[0], -np.log(_probabilities(LOGITS[0], 0)[()]))
    no_room = nn.ctc_loss(np.zeros((1, 0), "int32"), LOGITS[:1], [0], [4]).numpy()
    np.testing.assert_array_equal(no_room, none)
    assert nn.ctc_loss([[1, 1]], LOGITS[:1], [2], [2]).numpy()[0] == np.inf


def test_the_loss_has_gradients_and_is_traced_for_any_number_of_examples() -> None:
    labels = np.array([[1, 2], [1, 1], [2, 0]], "int32")
    sizes = np.array([2, 2, 1], "int32")
    check_gradients(lambda x: nn.ctc_loss(labels, x, sizes, LENGTHS), LOGITS)
    same_when_traced(nn.ctc_loss, labels, LOGITS, sizes, LENGTHS)


def test_a_wide_beam_search_finds_the_most_probable_labels() -> None:
    labels, scores = nn.ctc_decode(LOGITS, LENGTHS, "beam_search", beam_width=81, top_paths=3)
    assert labels.shape == (3, 3, 4)
    for n in range(3):
        table = _probabilities(LOGITS[n, : LENGTHS[n]], 0)
        best = sorted(table, key=lambda key: -table[key])[:3]
        for p, key in enumerate(best):
            assert tuple(c for c in labels.numpy()[p, n] if c >= 0) == key
            assert np.isclose(scores.numpy()[n, p], np.log(table[key]))


def test_greedy_labels_are_those_of_the_best_class_at_each_step() -> None:
    labels, scores = nn.ctc_decode(LOGITS, LENGTHS)
    for n in range(3):
        part = LOGITS[n, : LENGTHS[n]]
        assert tuple(c for c in labels.numpy()[0, n] if c >= 0) == _labels(part.argmax(-1), 0)
        assert np.isclose(scores.numpy()[n, 0], -part.max(-1).sum())
    same_when_traced(nn.ctc_decode, LOGITS, LENGTHS)


def test_another_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid strategy"):
        nn.ctc_decode(LOGITS, LENGTHS, "best")
