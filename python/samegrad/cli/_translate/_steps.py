"""Training and evaluation steps of a Transformer over replicas.

The number of sentences and of real tokens differs from step to step and from replica to replica.
Losses are added up over all replicas and divided once, by the tokens or the sentences of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.cli._translate._model import Transformer

Figures = dict[str, Tensor]


def token_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """The replica's share of the mean over the real tokens of all replicas."""
    return tf.nn.compute_weighted_mean_loss(losses, weights)


def sentence_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """The replica's share of the mean over the sentences of all replicas, of each one's mean."""
    return tf.nn.compute_average_loss(tf.nn.mean_over_tokens(losses, weights))


MEANS = {"tokens": token_mean, "sentences": sentence_mean}


def adam(rate: Any, clip_norm: float | None = None) -> Any:
    """Adam as Transformers are trained with (Vaswani et al., 2017, section 5.3).

    Args:
        rate: Learning rate or schedule.
        clip_norm: The most that the norm of all gradients, summed over the replicas, may be; None:
            any.
    """
    return tf.keras.optimizers.Adam(rate, 0.9, 0.98, 1e-9, global_clipnorm=clip_norm)


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
        accumulate_step: Adds up gradients of a global batch; returns the figures.
        apply_step: One update by what was accumulated since the last one.
        traces: How often each step was traced.

    Figures, sums over all replicas: `loss`, what is trained on (its mean; the sum over tokens while
    accumulating); `cross_entropy`, nats without smoothing; `hits`; `tokens`, the real ones;
    `sentences`.
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
        self.traces = dict.fromkeys(("train", "evaluate"), 0)
        with strategy.scope():
            self.model, self.optimizer = model(), optimizer()
            self.optimizer.build(self.model.trainable_variables)
        self.train_step = self._summed("train", self._train)
        self.evaluate_step = self._summed("evaluate", self._evaluate)

    def _summed(self, name: str, step: Callable[[Any], Figures]) -> Callable[[Any], Any]:
        @tf.function
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
            loss = self._mean(losses, weights)
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {**figures, "loss": loss}

    def _evaluate(self, batch: Any) -> Figures:
        losses, weights, figures = self.losses(batch, training=False)
        return {**figures, "loss": self._mean(losses, weights)}
