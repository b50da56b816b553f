"""Training and evaluation steps of a Transformer over replicas.

The number of sentences and of real tokens differs from step to step and from replica to replica.
Losses are summed over all replicas and divided once, by the tokens or the sentences of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.cli._translate._accumulation import Accumulator
from samegrad.cli._translate._model import Transformer

Figures = dict[str, Tensor]


def token_sum(losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of a replica's losses, and the number of its real tokens."""
    return tf.reduce_sum(losses), tf.reduce_sum(weights)


def token_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """The replica's share of the mean over the real tokens of all replicas."""
    return tf.nn.compute_weighted_mean_loss(losses, weights)


def sentence_sum(losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of the means of a replica's sentences, and their number."""
    means = tf.nn.mean_over_tokens(losses, weights)
    return tf.reduce_sum(means), tf.reduce_sum(tf.ones_like(means))


def sentence_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """The replica's share of the mean over the sentences of all replicas, of each one's mean."""
    return tf.nn.compute_average_loss(tf.nn.mean_over_tokens(losses, weights))


# The mean of one batch, and the sums that several batches add up to their mean.
MEANS = {"tokens": (token_mean, token_sum), "sentences": (sentence_mean, sentence_sum)}


def adam(rate: Any, clip_norm: float | None = None, lazy: bool = False) -> Any:
    """Adam as Transformers are trained with (Vaswani et al., 2017, section 5.3).

    Args:
        rate: Learning rate or schedule.
        clip_norm: The most that the norm of all gradients, summed over the replicas, may be; None:
            any.
        lazy: Whether embeddings that a batch does not name stay as they are (`LazyAdam`); a step
            then costs what its tokens cost, not what the vocabulary costs.
    """
    kind = tf.keras.optimizers.LazyAdam if lazy else tf.keras.optimizers.Adam
    return kind(rate, 0.9, 0.98, 1e-9, global_clipnorm=clip_norm)


# Of a global batch, of any number of sentences of any length.
_TOKENS = tf.TensorSpec([None, None], tf.int32)


class TranslationSteps:
    """Steps of a model under one strategy.

    A batch is `(source [n, S], target [n, T + 1])`, token ids with 0 as padding at the end; the
    target begins with the token that starts sentences. Its tokens 0 … T - 1 are what the decoder
    is given, 1 … T what it must predict: given the latter, it would see what it predicts.

    Args:
        strategy: Its replicas share the work.
        model: A function that makes the model, called in the strategy's scope.
        optimizer: A function that makes the optimizer, called in the strategy's scope.
        smoothing: Of the targets, in [0, 1).
        mean: "tokens" or "sentences": what counts alike.

    Attributes:
        train_step: One update by a global batch; returns the figures.
        evaluate_step: The figures of a global batch, without dropout and smoothing.
        traces: How often each step was traced: once, whatever the lengths.

    Figures, sums over all replicas: `loss`, what is trained on, a mean; `cross_entropy`, nats
    without smoothing; `hits`; `tokens`, the real ones; `sentences`.
    """

    def __init__(
        self,
        strategy: Any,
        model: Callable[[], Transformer],
        optimizer: Callable[[], Any],
        smoothing: float = 0.1,
        mean: str = "tokens",
    ) -> None:
        if mean not in MEANS:
            raise ValueError(f"[translate] mean must be one of {', '.join(MEANS)}: got {mean!r}.")
        self.strategy, self.smoothing, self._mean = strategy, smoothing, MEANS[mean]
        self.traces = dict.fromkeys(("train", "evaluate", "accumulate", "apply"), 0)
        with strategy.scope():
            self.model, self.optimizer = model(), optimizer()
            self.optimizer.build(self.model.trainable_variables)
        self.accumulator: Accumulator | None = None
        self.train_step = self._summed("train", self._train)
        self.evaluate_step = self._summed("evaluate", self._evaluate)
        self._accumulate_step = self._summed("accumulate", self._accumulate)
        self._apply_step = tf.function(self._apply)

    def train_window(self, batches: Iterator[Any], budget: int) -> dict[str, float] | None:
        """One update by as many global batches as hold a number of real tokens.

        The gradient is that of one batch of all of them: sums over batches and replicas, divided
        once by the tokens (or sentences) of all.

        Args:
            batches: As many of them are taken as it needs; the last window may be a short one.
            budget: Real tokens of the targets, at least 1.

        Returns:
            The figures, sums over the batches; None: there was no batch, and so no update.
        """
        if budget < 1:
            raise ValueError(f"[translate] a window must have at least 1 token: got {budget}.")
        if self.accumulator is None:
            with self.strategy.scope():
                self.accumulator = Accumulator(self.model.trainable_variables)
        self.accumulator.clear()  # of a window that was interrupted
        total: dict[str, float] = {}
        for batch in batches:
            figures = self._accumulate_step(batch)
            for name, value in figures.items():
                total[name] = total.get(name, 0.0) + float(value)
            if total["tokens"] >= budget:
                break
        if not total:
            return None
        self._apply_step()
        count = total.pop("count")
        total["loss"] = total["loss"] / count if count else 0.0
        return total

    def _summed(self, name: str, step: Callable[[Any], Figures]) -> Callable[[Any], Any]:
        @tf.function(input_signature=[(_TOKENS, _TOKENS)])
        def distributed_step(batch: Any) -> Any:
            self.traces[name] += 1
            shares = self.strategy.run(step, args=(batch,))
            return self.strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)

        return distributed_step

    def losses(self, batch: Any, training: bool) -> tuple[Tensor, Tensor, Figures]:
        """Losses `[n, T]` and weights `[n, T]` of a replica's batch, and its figures."""
        source, target = batch
        logits = self.model((source, target[:, :-1]), training=training)
        labels, size = target[:, 1:], self.model.target_size
        smoothing = self.smoothing if training else 0.0
        losses, weights = tf.nn.padded_cross_entropy_loss(logits, labels, smoothing, size)
        plain = losses
        if smoothing:
            plain, _ = tf.nn.padded_cross_entropy_loss(logits, labels, 0.0, size)
        hits, _ = tf.nn.padded_accuracy(logits, labels)
        figures = {
            "cross_entropy": tf.reduce_sum(plain),
            "hits": tf.reduce_sum(hits * weights),
            "tokens": tf.reduce_sum(weights),
            "sentences": tf.reduce_sum(tf.ones_like(weights[:, 0])),
        }
        return losses, weights, figures

    def _train(self, batch: Any) -> Figures:
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            losses, weights, figures = self.losses(batch, training=True)
            loss = self._mean[0](losses, weights)
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {**figures, "loss": loss}

    def _evaluate(self, batch: Any) -> Figures:
        losses, weights, figures = self.losses(batch, training=False)
        return {**figures, "loss": self._mean[0](losses, weights)}

    def _accumulate(self, batch: Any) -> Figures:
        assert self.accumulator is not None
        with tf.GradientTape() as tape:
            losses, weights, figures = self.losses(batch, training=True)
            total, count = self._mean[1](losses, weights)
        self.accumulator.add(tape.gradient(total, self.model.trainable_variables), count)
        return {**figures, "loss": total, "count": count}

    def _apply(self) -> None:
        self.traces["apply"] += 1

        def update() -> None:
            assert self.accumulator is not None
            pairs = zip(self.accumulator.take(), self.model.trainable_variables, strict=True)
            # They are sums over the replicas already.
            self.optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)

        self.strategy.run(update)
