"""A training run of a translating Transformer: data, state, judgements, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.cli._errors import CommandError
from samegrad.cli._options import TranslateOptions
from samegrad.cli._processes import strategy_of
from samegrad.cli._records import Record
from samegrad.cli._translate._averaging import average_checkpoints, last_checkpoints
from samegrad.cli._translate._batches import (
    Epochs,
    batches_of,
    encode_pairs,
    lengths_of_buckets,
    unigram_perplexity,
)
from samegrad.cli._translate._blocks import Sizes
from samegrad.cli._translate._decoding import Decoder
from samegrad.cli._translate._model import Transformer
from samegrad.cli._translate._pairs import WHO, Pair, digest_of_pairs
from samegrad.cli._translate._precision import policy_of
from samegrad.cli._translate._schedule import InverseSquareRoot
from samegrad.cli._translate._scores import bleu, perplexity, token_accuracy
from samegrad.cli._translate._steps import TranslationSteps, adam
from samegrad.cli._translate._vocabulary import END, START, Vocabulary

AVERAGED = "averaged"
SAMPLES = 3
_JUDGED = 100  # held-out sentences that BLEU is taken of
_AT_ONCE = 32  # sentences that are decoded together
_SUMS = ("cross_entropy", "hits", "tokens")


class Progress:
    """Progress of the training; stored in every checkpoint.

    Attributes:
        settings: What must stay the same, as JSON.
        step: Updates done.
        epoch: Epochs done.
        cross_entropy, hits, tokens: Sums over the epoch that is being done.
        records: How many records the log had.
        log_digest: A hash of them; "" if there was no log.
    """

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self.step = self.epoch = self.records = 0
        self.cross_entropy = self.hits = self.tokens = 0.0
        self.log_digest = ""

    def add(self, figures: Mapping[str, Any]) -> None:
        """Counts a step."""
        self.step += 1
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + float(figures[name]))

    @property
    def is_between_epochs(self) -> bool:
        """Return True if no step of the epoch is done."""
        return self.tokens == 0

    def end_epoch(self) -> None:
        """Begins to sum anew."""
        self.epoch += 1
        self.cross_entropy = self.hits = self.tokens = 0.0

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return vars(self)

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


class Training:
    """Model, data and steps under one strategy.

    Args:
        options: What the user asked for.
        pairs: To train on.
        held_out: To judge by.
        vocabulary: Of both languages.

    Attributes:
        left_out: How many pairs are too long.

    Raises:
        CommandError: The data or the options do not fit together.
    """

    def __init__(
        self, options: TranslateOptions, pairs: Sequence[Pair], held_out: Sequence[Pair],
        vocabulary: Vocabulary,
    ) -> None:  # fmt: skip
        self.options, self.vocabulary = options, vocabulary
        longest = options.max_length
        examples, self.pairs = encode_pairs(pairs, vocabulary, longest)
        judged, self.held_out = encode_pairs(held_out, vocabulary, longest)
        self.left_out = len(pairs) + len(held_out) - len(examples) - len(judged)
        self.strategy = strategy_of(options.replicas)
        tokens = options.global_batch_tokens
        self.epochs = Epochs(batches_of(examples, longest, tokens, options.seed), self.strategy)
        self._judged = self.strategy.experimental_distribute_dataset(
            batches_of(judged, longest, tokens, None)
        )
        self.steps = TranslationSteps(
            self.strategy, self._make_model, self._make_optimizer, options.smoothing,
            options.normalization,
        )  # fmt: skip
        self.decoder = Decoder(self.steps.model, START, END, longest, options.beams)
        self.unigram = unigram_perplexity(examples, judged, len(vocabulary))
        self.progress = Progress(self._settings([*pairs, *held_out]))
        self.checkpoint = tf.train.Checkpoint(
            model=self.steps.model,
            optimizer=self.steps.optimizer,
            epochs=self.epochs,
            progress=self.progress,
        )

    def train_one_step(self) -> Record | None:
        """One update; None: the epoch has no more batches."""
        window = self.options.accumulate_tokens
        try:
            if window is None:
                figures = self.steps.train_step(next(self.epochs.iterator))
            else:
                figures = self.steps.train_window(self.epochs.iterator, window)
        except StopIteration:
            figures = None
        if figures is None:
            return None
        self.progress.add(figures)
        return {
            "epoch": self.progress.epoch + 1,
            "step": self.progress.step,
            "loss": float(figures["loss"]),
            "tokens": int(figures["tokens"]),
            "sentences": int(figures["sentences"]),
        }

    def end_epoch(self) -> Record:
        """Judges by the held-out pairs, begins the next epoch, and returns the figures."""
        done = self.progress
        record = {
            "epoch": done.epoch + 1,
            "step": done.step,
            "perplexity": perplexity(done.cross_entropy, done.tokens),
            "accuracy": token_accuracy(done.hits, done.tokens),
            **self.judge(),
        }
        done.end_epoch()
        self.epochs.begin_next()
        return record

    def judge(self) -> Record:
        """Figures of the held-out pairs, by the model as it is."""
        sums = dict.fromkeys(_SUMS, 0.0)
        for batch in self._judged:
            figures = self.steps.evaluate_step(batch)
            sums = {name: sums[name] + float(figures[name]) for name in _SUMS}
        record = {
            "held_out_perplexity": perplexity(sums["cross_entropy"], sums["tokens"]),
            "unigram_perplexity": self.unigram,
            "held_out_accuracy": token_accuracy(sums["hits"], sums["tokens"]),
        }
        if self.options.bleu:
            some = self.held_out[:_JUDGED]
            found = self.translate([source for source, _ in some])
            record["bleu"] = bleu(found, [target for _, target in some])
        return record

    def average(self, folder: Path, count: int) -> Record:
        """Gives the model the mean of its weights after the last epochs, saves it, and judges it.

        Checkpoints within an epoch, of runs that were stopped there, do not count: a run that was
        resumed has the mean of one that was not.

        Args:
            folder: Of the checkpoints; the mean is stored there as `averaged`.
            count: How many epochs, at least 1.

        Returns:
            The figures of the held-out pairs.

        Raises:
            CommandError: There are fewer checkpoints.
            OSError: A checkpoint cannot be read or written.
            ValueError: A checkpoint is damaged.
        """
        try:
            paths = last_checkpoints(str(folder), count, _is_between_epochs)
        except tf.train.CorruptCheckpointError:
            raise
        except ValueError as error:
            raise CommandError(f"[{WHO}] --average-checkpoints: {error}") from error
        average_checkpoints(self.steps.model, paths)
        tf.train.Checkpoint(model=self.steps.model).write(folder / AVERAGED)
        done = self.progress
        return {"epoch": done.epoch, "step": done.step, "averaged": count, **self.judge()}

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Translations by the model's own outputs fed back.

        Args:
            sentences: Of fewer tokens than the longest of the training.
        """
        longest, found = self.options.max_length, []
        for first in range(0, len(sentences), _AT_ONCE):
            some = sentences[first : first + _AT_ONCE]
            rows = np.zeros((len(some), longest), np.int32)
            for row, sentence in zip(rows, some, strict=True):
                tokens = [*self.vocabulary.encode(sentence), END]
                if len(tokens) > longest:
                    raise CommandError(
                        f"[{WHO}] a sentence must have fewer than {longest} tokens: got "
                        f"{len(tokens) - 1}. Give a shorter one, or train with --max-length."
                    )
                row[: len(tokens)] = tokens
            found += [self.vocabulary.decode(tokens) for tokens in self.decoder(rows)]
        return found

    def samples(self) -> list[tuple[str, str, str]]:
        """Some held-out pairs and their translations: source, target, translation."""
        some = self.held_out[:SAMPLES]
        found = self.translate([source for source, _ in some])
        return [(*pair, text) for pair, text in zip(some, found, strict=True)]

    def check_place(self, path: str) -> None:
        """Check that all parts of a restored checkpoint are at one position of the training.

        Raises:
            CommandError: It is not.
        """
        done = self.progress
        epoch = dict(self.epochs._checkpoint_state())["epoch"]
        updates = int(self.steps.optimizer.iterations)
        if (updates, epoch) != (done.step, done.epoch):
            raise CommandError(
                f"[{WHO}] {path} must be at one place of the training: got step {done.step} and "
                f"epoch {done.epoch}, update {updates} of the optimizer and epoch {epoch} of the "
                "data. Resume an older checkpoint."
            )

    def fingerprint(self) -> str:
        """Return the fingerprint of the model."""
        return tf.fingerprint(self.steps.model)

    def _make_model(self) -> Transformer:
        options = self.options
        sizes = Sizes(
            options.layers, options.width, 4 * options.width, options.heads, options.dropout,
            shared=True,
        )  # fmt: skip
        size, policy = len(self.vocabulary), policy_of(options.mixed_bfloat16)
        return Transformer(size, size, sizes, dtype=policy)

    def _make_optimizer(self) -> Any:
        options = self.options
        rate = InverseSquareRoot(options.width, options.warm_up, options.rate_factor)
        return adam(rate, options.clip_norm)

    def _settings(self, pairs: Sequence[Pair]) -> str:
        """Return the settings on which the bits of a resumed run depend, as JSON."""
        options = self.options
        return json.dumps(
            {
                "pairs": digest_of_pairs(pairs),
                "held out": options.held_out,
                "vocabulary": len(self.vocabulary),
                "lengths": lengths_of_buckets(options.max_length),
                "tokens of a global batch": options.global_batch_tokens,
                "accumulated tokens": options.accumulate_tokens,
                "normalization": options.normalization,
                "smoothing": options.smoothing,
                "layers": options.layers,
                "width": options.width,
                "heads": options.heads,
                "dropout": options.dropout,
                "warm-up": options.warm_up,
                "rate factor": options.rate_factor,
                "clip norm": options.clip_norm,
                "policy": policy_of(options.mixed_bfloat16),
                "seed": options.seed,
            }
        )


def _is_between_epochs(path: str) -> bool:
    """Return True if a checkpoint was saved between two epochs, not within one."""
    progress = Progress("")
    tf.train.Checkpoint(progress=progress).read(path).expect_partial()
    return progress.is_between_epochs
