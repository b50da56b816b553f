"""Decoding with keys and values kept is what the whole model gives at each place."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from transformer_batches import TOKENS, sentences, small

import samegrad as tf
from samegrad.cli._translate._decoding import Decoder
from samegrad.errors import InvalidArgumentError

START, END, LENGTH = 1, 2, 7
Scored = tuple[float, list[int]]
WAYS = list(itertools.product((False, True), (False, True)))
LENGTHS = [6, 2, 4, 0, 1]


def moved(shared: bool, before: bool, dtype: str = "float64", scale: float = 2.5) -> Any:
    """A model whose weights are large enough that sentences end at several places."""
    model = small(dtype, tokens=9, layers=2, shared=shared, normalize_first=before)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(variable.numpy() * scale + rng.normal(size=variable.shape) * 0.3)
    return model


def sources() -> np.ndarray:
    return np.where(sentences(LENGTHS) > 0, sentences(LENGTHS) % 6 + 3, 0).astype(np.int32)


class Plain:
    """What follows which tokens, by the whole model, for each source."""

    def __init__(self, shared: bool, before: bool, dtype: str) -> None:
        self.model = moved(shared, before, dtype)
        self._run = tf.function(lambda source, target: self.model((source, target)))
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def chances(self, row: int, tokens: list[int]) -> np.ndarray:
        """Log probabilities of the next token; padding is not one."""
        key = (row, *tokens)
        if key not in self._known:
            target = np.zeros((1, LENGTH), np.int32)
            target[0, : len(key)] = START, *tokens
            logits = self._run(sources()[row : row + 1], target).numpy()[0, len(tokens)]
            chances = logits - logits.max()
            chances = chances - np.log(np.exp(chances).sum())
            chances[0] = -np.inf
            self._known[key] = chances
        return self._known[key]

    def greedy(self, row: int) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < LENGTH and END not in tokens:
            tokens.append(int(self.chances(row, tokens).argmax()))
        return tokens

    def beam(self, row: int, beams: int, penalty: float) -> list[Scored]:
        """Scores and tokens, best first; nothing is stopped early."""
        alive: list[Scored] = [(0.0, [])]
        ended: list[Scored] = []
        for place in range(1, LENGTH + 1):
            longer = [
                (score + chance, [*tokens, token])
                for score, tokens in alive
                for token, chance in enumerate(self.chances(row, tokens))
            ]
            longer = sorted(longer, key=lambda pair: -pair[0])[: 2 * beams]
            divisor = ((5 + place) / 6) ** penalty
            ended += [(score / divisor, tokens) for score, tokens in longer if tokens[-1] == END]
            alive = [pair for pair in longer if pair[1][-1] != END][:beams]
        ended = sorted(ended, key=lambda pair: -pair[0])[:beams]
        return ended or [(score / divisor, tokens) for score, tokens in alive]


@functools.cache
def plain(shared: bool, before: bool, dtype: str = "float64") -> Plain:
    return Plain(shared, before, dtype)


def real(tokens: np.ndarray) -> list[int]:
    """Without what comes after the end, which must be padding."""
    found = tokens.tolist()
    kept = found.index(END) + 1 if END in found else len(found)
    assert not any(found[kept:]) and all(found[:kept])
    return found[:kept]


@pytest.mark.parametrize(("shared", "before"), WAYS)
@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-12), ("float32", 1e-5)])
def test_a_step_gives_the_logits_of_the_whole_model(
    dtype: str, near: float, shared: bool, before: bool
) -> None:
    model, source = moved(shared, before, dtype, 1.0), sources()
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 9, (len(source), LENGTH)).astype(np.int32)
    expected = model((source, targets)).numpy()

    @tf.function
    def begin(rows: Any) -> Any:
        return model.remember(model.encode(rows), 1, LENGTH)

    step = tf.function(model.step)
    caches = begin(tf.constant(source))
    for place in range(LENGTH):
        tokens = tf.constant(targets[:, place : place + 1])
        logits, caches = step(tokens, caches, tf.constant(place), tf.constant(source))
        assert logits.shape == (len(source), 1, 9)
        np.testing.assert_allclose(logits.numpy()[:, 0], expected[:, place], rtol=near, atol=near)


@pytest.mark.parametrize(("shared", "before"), WAYS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_greedy_decoding_takes_the_largest_logit_of_the_whole_model(
    dtype: str, shared: bool, before: bool
) -> None:
    reference = plain(shared, before, dtype)
    found = Decoder(reference.model, START, END, LENGTH)(sources())
    assert found.shape == (len(LENGTHS), LENGTH)
    for row, tokens in enumerate(found):
        assert real(tokens) == reference.greedy(row)


@pytest.mark.parametrize(("shared", "before"), WAYS)
@pytest.mark.parametrize(("beams", "penalty"), [(2, 0.0), (3, 0.6), (5, 2.0)])
def test_beam_decoding_finds_what_a_plain_search_finds(
    beams: int, penalty: float, shared: bool, before: bool
) -> None:
    reference = plain(shared, before)
    decode = Decoder(reference.model, START, END, LENGTH, beams, penalty)
    tokens, scores = decode.search(sources())
    assert tokens.shape == (len(LENGTHS), beams, LENGTH)
    assert scores.shape == (len(LENGTHS), beams)
    for row, (given, got) in enumerate(zip(tokens, scores, strict=True)):
        expected = reference.beam(row, beams, penalty)
        some = np.isfinite(got)
        assert sum(some) == len(expected) and some[: len(expected)].all()
        for ids, score, (wanted, wanted_ids) in zip(given, got, expected, strict=False):
            assert real(ids) == wanted_ids
            np.testing.assert_allclose(score, wanted, rtol=1e-10)


def test_what_came_to_an_end_is_before_what_was_cut_off() -> None:
    """A cut-off translation is the best one only where none came to an end."""
    reference = plain(False, True)
    for length in (1, LENGTH):
        tokens, _ = Decoder(reference.model, START, END, length, 4).search(sources())
        ends = (tokens == END).any(-1)
        assert (ends[:, 0] >= ends.any(-1)).all()


@pytest.mark.parametrize("beams", [1, 3])
def test_any_number_of_sentences_is_decoded_by_one_program(beams: int) -> None:
    model, source = moved(False, True), sources()
    decode = Decoder(model, START, END, LENGTH, beams)
    together = decode(source)
    for row, expected in zip(source, together, strict=True):
        np.testing.assert_array_equal(decode(row[None])[0], expected)
    assert decode(source[:0]).shape == (0, LENGTH)
    assert decode.traces == 1
    padded = np.pad(source, [(0, 0), (0, 3)])
    np.testing.assert_array_equal(decode(padded), together)
    assert decode.traces == 2


def test_decoding_reads_the_weights_of_now() -> None:
    model, source = moved(False, True), sources()
    decode = Decoder(model, START, END, LENGTH)
    decode(source)
    model.logits.kernel.assign(np.zeros_like(model.logits.kernel.numpy()))
    bias = np.zeros(9)
    bias[END] = 1.0
    model.logits.bias.assign(bias)
    assert decode(source).tolist() == [[END] + [0] * (LENGTH - 1)] * len(source)
    assert decode.traces == 1


def test_dropout_is_not_part_of_decoding() -> None:
    model, source = moved(False, True), sources()
    assert model.sizes.dropout > 0
    decode = Decoder(model, START, END, LENGTH)
    np.testing.assert_array_equal(decode(source), decode(source))


def test_a_single_token_is_a_translation() -> None:
    tokens, scores = Decoder(moved(False, True), START, END, 1, 4).search(sources())
    assert tokens.shape == (5, 4, 1) and np.isfinite(scores).any(-1).all()


def test_bad_arguments_say_what_is_wanted() -> None:
    model = small()
    for options, message in (
        ({"length": 0}, "at least 1 and the penalty at least 0: got 0, 1 and 0.6"),
        ({"beams": 0}, "got 5, 0 and 0.6"),
        ({"penalty": -1.0}, "got 5, 1 and -1.0"),
        ({"start": TOKENS}, f"got {TOKENS} and 2 of {TOKENS} tokens"),
        ({"end": 0}, "end no padding: got 1 and 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Decoder(model, **({"start": START, "end": END, "length": 5} | options))
    decode = Decoder(model, START, END, 5)
    with pytest.raises(ValueError, match=r"must be \[n, S\]: got shape \(3,\)"):
        decode([3, 4, 5])
    with pytest.raises(InvalidArgumentError, match=str(TOKENS)):
        decode([[3, TOKENS]])
