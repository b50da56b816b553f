"""Training under several plans: what comes out, bit by bit, and what the plan is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import samegrad as tf

Network = tuple[list[Any], Callable[[Any], Any]]  # variables, and what makes logits with them


def train_classifier(
    network: Callable[[], Network],
    optimizer: Callable[[], Any],
    batches: Any,
    replicas: int,
) -> tuple[list[np.ndarray], str]:
    """Weights, slots and losses after all batches of (inputs, labels), and the plan of a step."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        variables, forward = network()
        chosen = optimizer()

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, forward(x))
            loss = tf.nn.compute_average_loss(losses)
        chosen.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @tf.function
    def train_step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)

    losses = []
    for batch in strategy.experimental_distribute_dataset(batches):
        losses.append(np.asarray(train_step(batch)))
    plan = "" if tf.config.functions_run_eagerly() else str(train_step.explain(batch))
    return [v.numpy() for v in [*variables, *chosen.variables]] + losses, plan


def steps_of(plan: str, title: str) -> list[str]:
    """The texts of the steps of a plan with that title."""
    steps = re.split(r"\n(?=  \S)", plan)
    return [step for step in steps if step.startswith(f"  {title}")]
