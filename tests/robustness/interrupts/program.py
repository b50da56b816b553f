"""A short program that goes through everything an interrupt can come to."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context

REPLICAS = 2
STEPS = 3


def _data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.normal(size=(26, 5)).astype("float32"), random.integers(0, 3, 26)


class Program:
    """A model with two layers, an optimizer with slots, a metric, data, and a compiled step."""

    def __init__(
        self, folder: Path | None = None, dropout: float = 0.25, measures: bool = True
    ) -> None:
        tf.random.set_seed(7)
        self.strategy = tf.distribute.MirroredStrategy(replicas=REPLICAS)
        with self.strategy.scope():
            self.model = tf.keras.Sequential(
                [
                    tf.keras.layers.Dense(4, activation="relu"),
                    tf.keras.layers.Dropout(dropout),
                    tf.keras.layers.Dense(3, kernel_regularizer="l2"),
                ]
            )
            self.optimizer = tf.keras.optimizers.Adam(0.05)
            self.mean = tf.keras.metrics.Mean()
            loss_of = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="none"
            )
        dataset = tf.data.Dataset.from_tensor_slices(_data()).shuffle(26).batch(7).repeat()
        self.batches = iter(self.strategy.experimental_distribute_dataset(dataset))
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, mean=self.mean, batches=self.batches
        )
        self.folder = folder

        def replica_step(batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                logits = self.model(x, training=True)
                first = tf.reduce_sum(self.model.trainable_variables[0])
                logits = tf.cond(first > 1e6, lambda: logits / 2.0, lambda: logits)
                losses = loss_of(y, logits)
                loss = tf.nn.compute_average_loss(losses)
                loss += tf.nn.scale_regularization_loss(self.model.losses)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(
                zip(gradients, self.model.trainable_variables, strict=True)
            )
            if measures:
                self.mean.update_state(losses)
            return loss

        @tf.function
        def step(batch: Any) -> Any:
            parts = self.strategy.run(replica_step, args=(batch,))
            loss = self.strategy.reduce("sum", parts, axis=None)
            while loss > 1e6:  # rewritten
                loss = loss / 2.0
            return loss

        self.replica_step, self.step = replica_step, step
        self.current = next(self.batches)

    # What can be interrupted. Each may be called again after it was.

    def train(self) -> None:
        """The compiled step."""
        self.step(self.current)

    def train_without_function(self) -> None:
        """The step that is traced anew."""
        self.strategy.run(self.replica_step, args=(self.current,))

    def train_eagerly(self) -> None:
        """The step as a series of operations, on the first replica's part."""
        self.replica_step(tuple(part.values[0] for part in self.current))

    def advance(self) -> None:
        """The next batch."""
        self.current = next(self.batches)

    def save(self) -> None:
        """A checkpoint, as the next of its folder."""
        assert self.folder is not None
        self.checkpoint.save(self.folder / "ckpt")

    def restore(self) -> None:
        """The latest checkpoint."""
        assert self.folder is not None
        self.checkpoint.restore(tf.train.latest_checkpoint(self.folder))

    def state(self) -> dict[str, Any]:
        """All variables, as bytes, and how many steps were made."""
        try:
            weights = self.model.weights
        except ValueError:  # there are none yet
            weights = []
        variables = [*weights, *self.optimizer.variables, *self.mean.variables]
        return {
            "values": [np.asarray(v.numpy()).tobytes() for v in variables],
            "steps": int(self.optimizer.iterations.numpy()),
        }


def _of_the_process(name: str) -> bool:
    """Whether Keras keeps this for all calls to come: counters, settings, the global seed."""
    kept = ("object_name_uids", "flash_attention", "nnx_enabled", "global_random_seed")
    return name in kept or name.startswith(("saving_attr_skipset_", "global_seed_generator"))


def scopes_of_keras() -> dict[str, Any]:
    """What Keras knows of the call that it is in: outside of any, nothing."""
    from keras.src.backend.common.global_state import GLOBAL_STATE_TRACKER
    from keras.src.utils.tracking import is_tracking_enabled

    known = {n: v for n, v in vars(GLOBAL_STATE_TRACKER).items() if not _of_the_process(n)}
    left = {
        name: value for name, value in known.items() if value not in (None, True, False, [], {})
    }
    return left if is_tracking_enabled() else {"tracking": False, **left}


def what_is_left_on() -> list[str]:
    """What an interrupted call has left on in this thread, or held against others."""
    found = []
    if _core.tracing() or _core.current_trace() is not None:
        found.append("a trace")
    default = []
    thread = threading.Thread(target=lambda: default.append(_context.current()))
    thread.start()
    thread.join()
    if _context.current() is not default[0]:
        found.append(f"a context: {_context.current()}")
    found += [f"Keras's {name}: {value!r:.60}" for name, value in scopes_of_keras().items()]
    probe = tf.Variable(0.0)
    seed = int(_core.random_state().seed)
    seen: list[int] = []

    def other() -> None:
        seen.append(int(_core.random_state().seed))
        probe.assign(1.0)
        with tf.init_scope():
            layer = tf.keras.layers.Dense(1)
            layer(tf.constant([[1.0]]))

    created = _core.random_state().created
    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    thread.join(20)
    _core.random_state().created = created
    if thread.is_alive() or float(probe) != 1.0:
        found.append("a lock")
    if seen and seen[0] != seed:
        found.append("a random state")
    return found
