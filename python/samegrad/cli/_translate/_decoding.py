"""Greedy and beam decoding, each as one compiled loop with keys and values kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.cli._translate._blocks import PAD, Cache
from samegrad.cli._translate._model import Transformer

_LOWEST = -np.inf
# The parts of a cache that belong to a single translation of a sentence.
_OWN = ("keys", "values")


class Decoder:
    """Translates with a model; each length of the source is traced once.

    Args:
        model: Its weights are read at each call.
        start: The token that begins translations.
        end: The token that ends them.
        length: The most tokens of a translation, `end` included.
        beams: Translations of each sentence that are followed side by side; 1: greedy, the most
            likely token at each place.
        penalty: Exponent of ((5 + tokens) / 6), by which scores of beams are divided
            (Wu et al., 2016, section 7); 0: by none.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> from samegrad.cli._translate._model import Sizes
        >>> model = Transformer(9, 9, Sizes(layers=1, width=8, hidden=16, heads=2))
        >>> Decoder(model, start=1, end=2, length=5)([[3, 4, 0]]).shape
        (1, 5)
    """

    def __init__(
        self, model: Transformer, start: int, end: int, length: int, beams: int = 1,
        penalty: float = 0.6,
    ) -> None:  # fmt: skip
        size = model.target_size
        if length < 1 or beams < 1 or penalty < 0:
            raise ValueError(
                "[Decoder] length and beams must be at least 1 and the penalty at least 0: got "
                f"{length}, {beams} and {penalty}."
            )
        if not (0 <= start < size and 0 < end < size):
            raise ValueError(
                f"[Decoder] start and end must be tokens, and end no padding: got {start} and "
                f"{end} of {size} tokens."
            )
        self.model, self.start, self.end = model, start, end
        self.length, self.beams, self.penalty = length, beams, penalty
        self.traces = 0
        self._run = tf.function(self._greedy if beams == 1 else self._beam)

    def __call__(self, source: Any) -> npt.NDArray[np.int32]:
        """The best translations.

        Args:
            source: Token ids `[n, S]`, padding last.

        Returns:
            `[n, length]`: tokens without `start`, `end` included if it was reached, then padding.
        """
        tokens, _ = self.search(source)
        return np.ascontiguousarray(tokens[:, 0])

    def search(self, source: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
        """All translations that are left at the end, best first.

        Args:
            source: Token ids `[n, S]`, padding last.

        Returns:
            Tokens `[n, beams, length]`, and scores `[n, beams]`: log probabilities, of beams
            divided by the length penalty; -inf where fewer translations came to an end.
        """
        rows = tf.constant(np.asarray(source, np.int32))._as_examples(0, 1)
        if rows._rank != 2:
            raise ValueError(f"[Decoder] the source must be [n, S]: got shape {rows.shape}.")
        tokens, scores = self._run(rows)
        return tokens.numpy(), scores.numpy()

    def _begin(self, source: Tensor) -> tuple[list[Cache], Tensor]:
        self.traces += 1
        memory = self.model.encode(source)
        caches = self.model.remember(memory, self.beams, self.length)
        first = tf.fill((source.shape[0], self.beams), tf.constant(self.start, "int32"))
        return caches, first

    def _log_probabilities(
        self, tokens: Tensor, caches: list[Cache], place: Tensor, source: Tensor
    ) -> tuple[Tensor, list[Cache]]:
        """Return log-probabilities of next tokens, `[n, beams, target_size]`, without padding."""
        logits, caches = self.model.step(tokens, caches, place, source)
        chances = tf.nn.log_softmax(tf.cast(logits, _wide(logits)))
        is_padding = tf.equal(tf.range(self.model.target_size), PAD)
        return tf.where(is_padding, tf.constant(_LOWEST, chances.dtype), chances), caches

    def _greedy(self, source: Tensor) -> tuple[Tensor, Tensor]:
        caches, last = self._begin(source)
        places = tf.range(self.length)
        written = tf.zeros((source.shape[0], 1, self.length), "int32")
        score = tf.zeros_like(last, dtype=_wide(self.model.compute_dtype))
        done = tf.equal(last, -1)

        def goes_on(place: Tensor, *state: Any) -> Tensor:
            return tf.logical_and(place < self.length, tf.logical_not(tf.reduce_all(state[-1])))

        def advance(
            place: Tensor, caches: Any, last: Tensor, written: Tensor, score: Tensor, done: Tensor
        ) -> Any:
            chances, caches = self._log_probabilities(last, caches, place, source)
            best = tf.argmax(chances, -1, output_type="int32")
            gain = tf.reduce_max(chances, -1)
            best = tf.where(done, PAD, best)
            score = score + tf.where(done, tf.zeros_like(gain), gain)
            written = tf.where(tf.equal(places, place), best[:, :, None], written)
            done = tf.logical_or(done, tf.equal(best, self.end))
            return place + 1, caches, best, written, score, done

        state = (tf.constant(0), caches, last, written, score, done)
        _, _, _, written, score, _ = tf.while_loop(goes_on, advance, state)
        return written, score

    def _beam(self, source: Tensor) -> tuple[Tensor, Tensor]:
        caches, last = self._begin(source)
        kind = _wide(self.model.compute_dtype)
        lowest = tf.constant(_LOWEST, kind)
        shape = (source.shape[0], self.beams)
        # All beams are alike at first: one of them is followed.
        scores = tf.where(tf.equal(tf.range(self.beams), 0), tf.zeros(shape, kind), lowest)
        written = tf.zeros((*shape, self.length), "int32")
        ended = tf.fill(shape, lowest), written

        def goes_on(place: Tensor, caches: Any, last: Any, alive: Any, ended: Any) -> Tensor:
            # The most that an unfinished translation can still reach: nothing is lost from now on.
            most = alive[0][:, 0] / self._divisor(self.length, kind)
            useful = tf.reduce_any(most > tf.reduce_min(ended[0], -1))
            return tf.logical_and(place < self.length, useful)

        def advance(place: Tensor, caches: Any, last: Any, alive: Any, ended: Any) -> Any:
            return self._advance(place, caches, last, alive, ended, source)

        state = (tf.constant(0), caches, last, (scores, written), ended)
        _, _, _, alive, ended = tf.while_loop(goes_on, advance, state)
        # Where none came to an end, those that were cut off.
        some = tf.reduce_any(ended[0] > lowest, -1, keepdims=True)
        cut = alive[0] / self._divisor(self.length, kind)
        return tf.where(some[:, :, None], ended[1], alive[1]), tf.where(some, ended[0], cut)

    def _advance(
        self, place: Tensor, caches: Any, last: Tensor, alive: Any, ended: Any, source: Tensor
    ) -> Any:
        """One token more of each beam; twice as many candidates, so that half of them may end."""
        scores, written = alive
        size, lowest = self.model.target_size, tf.constant(_LOWEST, scores.dtype)
        chances, caches = self._log_probabilities(last, caches, place, source)
        every = tf.reshape(scores[:, :, None] + chances, [-1, self.beams * size])
        best, ids = tf.math.top_k(every, 2 * self.beams)
        parents, tokens = ids // size, ids % size
        here = tf.equal(tf.range(self.length), place)
        longer = tf.where(here, tokens[:, :, None], tf.gather(written, parents, batch_dims=1))
        ends = tf.equal(tokens, self.end)
        divisor = self._divisor(tf.cast(place, scores.dtype) + 1.0, scores.dtype)
        kept, which = tf.math.top_k(
            tf.concat([ended[0], tf.where(ends, best / divisor, lowest)], 1), self.beams
        )
        ended = kept, tf.gather(tf.concat([ended[1], longer], 1), which, batch_dims=1)
        scores, which = tf.math.top_k(tf.where(ends, lowest, best), self.beams)
        last, written, parents = (
            tf.gather(x, which, batch_dims=1) for x in (tokens, longer, parents)
        )
        moved = [
            {name: tf.gather(x, parents, batch_dims=1) if name in _OWN else x
             for name, x in cache.items()}
            for cache in caches
        ]  # fmt: skip
        return place + 1, moved, last, (scores, written), ended

    def _divisor(self, tokens: Any, dtype: Any) -> Tensor:
        return tf.pow((5.0 + tf.cast(tokens, dtype)) / 6.0, self.penalty)


def _wide(given: Any) -> str:
    """The type in which scores are added: of 16 bits it is float32."""
    name = tf.as_dtype(getattr(given, "dtype", given)).name
    return name if name == "float64" else "float32"
