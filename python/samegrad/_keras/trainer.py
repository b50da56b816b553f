"""fit, evaluate, predict."""

from __future__ import annotations

from keras.src.trainers import trainer as base_trainer


class Trainer(base_trainer.Trainer):
    """Keras's trainer on samegrad's strategies."""
