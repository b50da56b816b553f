"""Sentences as token ids, in global batches of similar lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.cli._errors import CommandError
from samegrad.cli._translate._pairs import WHO, Pair
from samegrad.cli._translate._scores import perplexity
from samegrad.cli._translate._vocabulary import END, START, Tokens, Vocabulary

Example = tuple[Tokens, Tokens]
_FIRST, _GROWTH = 8, 1.5  # lengths of buckets


def encode_pairs(
    pairs: Sequence[Pair], vocabulary: Vocabulary, longest: int
) -> tuple[list[Example], list[Pair]]:
    """Token ids of the pairs, and these pairs without the ones that are too long.

    A source ends with END; a target begins with START and ends with END.

    Args:
        pairs: Of sentences.
        vocabulary: Of both languages.
        longest: The most tokens of a source, and of what must be predicted of a target.

    Raises:
        CommandError: All are too long.
    """
    examples, kept = [], []
    for pair in pairs:
        source, target = (vocabulary.encode(sentence) for sentence in pair)
        if max(len(source), len(target)) < longest:
            end = np.array([END], np.int32)
            start = np.array([START], np.int32)
            examples.append((np.concatenate([source, end]), np.concatenate([start, target, end])))
            kept.append(pair)
    if not examples:
        raise CommandError(
            f"[{WHO}] --max-length must leave pairs of sentences: got {longest}, and each of "
            f"{len(pairs)} pairs has more tokens. Give more."
        )
    return examples, kept


def lengths_of_buckets(longest: int) -> list[int]:
    """The longest lengths of the buckets, each about 1.5 times the one before.

    Example:
        >>> lengths_of_buckets(40)
        [8, 12, 18, 27, 40]
    """
    lengths = [min(_FIRST, longest)]
    while lengths[-1] < longest:
        lengths.append(min(longest, math.ceil(lengths[-1] * _GROWTH)))
    return lengths


def batches_of(
    examples: Sequence[Example], longest: int, tokens: int, seed: int | None
) -> tf.data.Dataset:
    """Padded global batches, each of sentences of one bucket.

    All batches of a bucket have one length, so a step is compiled once for each bucket.

    Args:
        examples: Of at most `longest` tokens.
        longest: The length of the last bucket.
        tokens: The most of a batch's targets, padding included; a batch has one pair at least.
        seed: Of the order, another one in each epoch. None: the order of the examples.
    """
    numbers = tf.data.Dataset.range(len(examples))
    if seed is not None:
        numbers = numbers.shuffle(len(examples), seed=seed)
    lengths = lengths_of_buckets(longest)
    sizes = [max(1, tokens // length) for length in lengths]
    return numbers.map(lambda n: examples[int(n)]).bucket_by_sequence_length(
        # A target has one token more than must be predicted; both are padded to one length.
        lambda source, target: max(source.shape[0] + 1, target.shape[0]),
        [length + 2 for length in lengths],
        [*sizes, 1],
        pad_to_bucket_boundary=True,
    )


class Epochs:
    """Global batches, one epoch after the other; a checkpoint stores the place.

    Args:
        dataset: Whose elements are global batches.
        strategy: Whose replicas share them.
    """

    def __init__(self, dataset: tf.data.Dataset, strategy: Any) -> None:
        self._dataset = strategy.experimental_distribute_dataset(dataset)
        self.iterator: Iterator[Any] = iter(self._dataset)

    def begin_next(self) -> None:
        """Begins the next epoch."""
        self.iterator = iter(self._dataset)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = self.iterator._checkpoint_state()  # type: ignore[attr-defined]
        return state

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        self.iterator._restore_state(values)  # type: ignore[attr-defined]


def unigram_perplexity(
    examples: Sequence[Example], held_out: Sequence[Example], size: int
) -> float:
    """The held-out perplexity of a model that knows only how often each token comes.

    Each token is counted once more than it comes, so that none is impossible.

    Args:
        examples: Whose targets are counted.
        held_out: Whose targets are judged.
        size: Of the vocabulary.

    Example:
        >>> one = np.array([2, 5, 3])
        >>> round(unigram_perplexity([(one, one)], [(one, one)], 6), 3)  # (1 + 1) / (2 + 6)
        4.0
    """
    counts = np.ones(size)
    for _, target in examples:
        np.add.at(counts, target[1:], 1)
    costs = -np.log(counts / counts.sum())
    judged = np.concatenate([target[1:] for _, target in held_out])
    return perplexity(float(costs[judged].sum()), len(judged))
