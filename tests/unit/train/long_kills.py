"""Trainings killed again and again, each time resumed on other replicas and threads.

`python long_kills.py --count 1000` prints how many kills there were, once the weights of all
trainings are those of one that nobody touched. It is a process of its own, because it forks.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import killing
import numpy as np

import samegrad as tf
from samegrad.train import _files, _state_file

STEPS = 6
X = np.random.default_rng(0).normal(size=(22, 5)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(22, 1)).astype(np.float32)


class Progress:
    """State that is all attributes."""

    def __init__(self) -> None:
        self.step = 0
        self.loss = 0.0

    def _checkpoint_state(self) -> Any:
        return vars(self)

    def _restore_state(self, values: Any) -> None:
        vars(self).update(values)


class Training:
    """A small training with dropout, Adam and shuffled data."""

    def __init__(self, replicas: int) -> None:
        tf.random.set_seed(7)
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(22, seed=3).batch(8).repeat()
        self.iterator = iter(self.strategy.experimental_distribute_dataset(data))
        layers = tf.keras.layers
        with self.strategy.scope():
            self.model = tf.keras.Sequential(
                [layers.Dense(4, activation="relu"), layers.Dropout(0.5), layers.Dense(1)]
            )
            self.optimizer = tf.keras.optimizers.Adam(0.01)
        self.progress = Progress()
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, data=self.iterator, progress=self.progress
        )
        self.run = tf.function(lambda batch: self.strategy.run(self._step, args=(batch,)))

    def _step(self, batch: Any) -> None:
        x, y = batch
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum(tf.square(self.model(x, training=True) - y), axis=1)
            loss = tf.nn.compute_average_loss(errors)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    def train(self, folder: Path, last: int, saves: Callable[[], bool]) -> Iterator[int]:
        """Goes on to the last step, and yields the step of each checkpoint."""
        manager = tf.train.CheckpointManager(self.checkpoint, folder, max_to_keep=2)
        manager.restore_or_initialize()
        while self.progress.step < last:
            self.run(next(self.iterator))
            self.progress.step += 1
            if self.progress.step == last or saves():
                manager.save()
                yield self.progress.step


def child(folder: Path, random: Random, saved: int, replicas: int | None) -> None:
    """A process that trains; it may be killed before its end."""
    if replicas is None:
        if random.random() < 0.5:
            killing.die_at(random.randrange(1, 250))
        else:
            later = random.random() * 0.5
            threading.Thread(
                target=lambda: (time.sleep(later), os.kill(os.getpid(), signal.SIGKILL)),
                daemon=True,
            ).start()
    tf.config.threading.set_intra_op_parallelism_threads(random.choice((1, 2, 3)))
    training = Training(replicas or random.choice((1, 2, 3, 4)))
    for step in training.train(folder, STEPS, saves=lambda: True):
        os.write(saved, b"%d\n" % step)


def lived(folder: Path, random: Random, replicas: int | None = None) -> bool:
    """Whether a training came to its end; every checkpoint it told of is still there."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.close(reader)
            child(folder, random, writer, replicas)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as lines:
        told = [int(line) for line in lines if line.endswith("\n")]
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    path = tf.train.latest_checkpoint(folder)
    if told:
        assert path is not None
        values = json.loads(Path(path, "manifest.json").read_text())["values"]["values"]
        assert values["progress/step"] >= told[-1]
    return not os.WIFSIGNALED(status)


def state(folder: Path) -> tuple[dict[str, bytes], Any]:
    """All that the last checkpoint holds, but for the number of its saves."""
    arrays, sections = tf.train._storage.load(tf.train.latest_checkpoint(folder))
    values = dict(sections["values"])
    del values["save_counter"]
    return {name: array.tobytes() for name, array in arrays.items()}, values


def run(count: int, seed: int) -> int:
    """Returns how often a training was killed, at least `count` times."""
    kills, number = 0, 0
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk has to wait
    with tempfile.TemporaryDirectory(dir=memory) as parent:
        assert lived(Path(parent, "whole"), Random(0), replicas=1)
        whole = state(Path(parent, "whole"))
        while kills < count:
            number += 1
            random = Random(f"{seed} {number}")
            folder = Path(parent, str(number))
            own = 0
            while not lived(folder, Random(random.random())):
                own += 1
            assert state(folder) == whole, f"seed {seed}, number {number}"
            _files.remove_leftovers(folder)  # a training that is done saves no more
            kept, obsolete = _state_file._read_state(folder)
            names = {path.name for path in folder.iterdir()}
            assert names <= {"checkpoint", *kept, *obsolete}, names
            assert len(kept) == 2
            kills += own
    return kills


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(run(given.count, given.seed))
