"""A training run of a Wasserstein GAN: data, state, schedule, checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._ops.elementary import cos
from samegrad.cli._errors import CommandError
from samegrad.cli._options import WganGpOptions
from samegrad.cli._processes import strategy_of
from samegrad.cli._records import Record
from samegrad.cli._wgan._models import NOISE
from samegrad.cli._wgan._quality import SAMPLES, Classifier, Images, judge
from samegrad.cli._wgan._steps import WHO, WganSteps
from samegrad.cli._wgan._watch import Watch

_LAST_RATE = 0.01  # of the first one
_GRID = 64


class Progress:
    """Progress of the training; stored in every checkpoint.

    Attributes:
        settings: What must stay the same, as JSON.
        changeable: What may be another after a resume, as JSON.
        step: Iterations done.
        watch: The state of the watch, as JSON.
        records: How many records the log had.
        log_digest: A hash of them; "" if there was no log.
    """

    def __init__(self, settings: str, changeable: str) -> None:
        self.settings = settings
        self.changeable = changeable
        self.step = 0
        self.watch = ""
        self.records = 0
        self.log_digest = ""

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return vars(self)

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


def rate_at(options: WganGpOptions, iteration: int) -> float:
    """The learning rate of an iteration, counted from 0.

    Args:
        options: Schedule, first rate and number of iterations.
        iteration: Below that number.
    """
    done = iteration / options.iterations
    factor = {
        "constant": 1.0,
        "linear": 1 - (1 - _LAST_RATE) * done,
        "cosine": _LAST_RATE + (1 - _LAST_RATE) * 0.5 * (1 + float(cos(math.pi * done))),
    }[options.schedule]
    return options.rate * factor


class Training:
    """Models, data and steps under one strategy.

    Args:
        options: What the user asked for.
        images: Of the training data, `[n, 28, 28, 1]` from -1 to 1.
        test_images: Of the test data.
        classifier: The network that judges the images, if there is one.
    """

    def __init__(
        self, options: WganGpOptions, images: Images, test_images: Images,
        classifier: Classifier | None,
    ) -> None:  # fmt: skip
        self.options = options
        self.strategy = strategy_of(options.replicas)
        dataset = (
            tf.data.Dataset.from_tensor_slices(images)
            .shuffle(len(images), seed=options.seed)
            .batch(options.global_batch_size)
            .repeat()
        )
        self.iterator = iter(self.strategy.experimental_distribute_dataset(dataset))
        self.steps = WganSteps(self.strategy, options.width, options.lipschitz == "clip")
        self.watch = Watch(options.lipschitz)
        rng = np.random.default_rng(options.seed)
        count = min(SAMPLES, len(test_images))
        self._noise = rng.normal(size=(max(count, _GRID), NOISE)).astype(np.float32)
        self._test_images = test_images[:count]
        self._classifier = classifier
        self.progress = Progress(_settings(options, len(images)), _changeable(options))
        self.checkpoint = tf.train.Checkpoint(
            critic=self.steps.critic,
            generator=self.steps.generator,
            critic_optimizer=self.steps.critic_optimizer,
            generator_optimizer=self.steps.generator_optimizer,
            iterator=self.iterator,
            progress=self.progress,
        )

    def train_one_iteration(self) -> Record:
        """Some updates of the critic and one of the generator.

        Returns:
            The record; the figures of the critic are those of its last update.
        """
        steps, options = self.steps, self.options
        rate = rate_at(options, self.progress.step)
        # Variables: another value needs no other trace.
        steps.critic_optimizer.learning_rate.assign(rate)
        steps.generator_optimizer.learning_rate.assign(rate)
        weight = options.penalty_weight if options.lipschitz == "gp" else 0.0
        steps.penalty_weight.assign(weight)
        steps.clip.assign(options.clip)
        for _ in range(options.n_critic):
            batch = next(self.iterator)
            figures = steps.critic_step(batch)
        generator_loss = steps.generator_step(batch)
        self.progress.step += 1
        record: Record = {"step": self.progress.step}
        record.update((name, float(value)) for name, value in figures.items())
        record["generator_loss"] = float(generator_loss)
        return {**record, "learning_rate": rate, "lambda": weight}

    def judge(self) -> Record:
        """The figures of the images that the generator makes now."""
        noise = self._noise[: len(self._test_images)]
        figures = judge(self.steps, noise, self._test_images, self._classifier)
        return {"step": self.progress.step, **figures}

    def grid(self) -> Images:
        """64 images, of the same noise at any time."""
        images: Images = self.steps.images(self._noise[:_GRID])
        return images

    def check_place(self, path: str) -> None:
        """Check that all parts of a restored checkpoint are at one position of the training.

        Raises:
            CommandError: It is not.
        """
        done, many = self.progress.step, self.options.n_critic
        position = dict(self.iterator._checkpoint_state())["position"]
        critic = int(self.steps.critic_optimizer.iterations)
        generator = int(self.steps.generator_optimizer.iterations)
        if generator != done or {position, critic} != {done * many}:
            raise CommandError(
                f"[{WHO}] {path} must be at one place of the training: got iteration {done}, "
                f"batch {position} of the data, and updates {critic} of the critic and "
                f"{generator} of the generator. Resume an older checkpoint."
            )

    def fingerprint(self) -> str:
        """Return the fingerprint of both models."""
        return tf.fingerprint({"critic": self.steps.critic, "generator": self.steps.generator})


def _settings(options: WganGpOptions, examples: int) -> str:
    """Return the settings that a resumed run must keep, as JSON."""
    return json.dumps(
        {
            "examples": examples,
            "global batch size": options.global_batch_size,
            "n-critic": options.n_critic,
            "lipschitz": options.lipschitz,
            "width": options.width,
            "seed": options.seed,
        }
    )


def _changeable(options: WganGpOptions) -> str:
    """Return the settings that a user may change when a run becomes unstable."""
    return json.dumps(
        {
            "lambda" if options.lipschitz == "gp" else "clip": (
                options.penalty_weight if options.lipschitz == "gp" else options.clip
            ),
            "learning rate": options.rate,
            "schedule": options.schedule,
            "iterations": options.iterations,
        }
    )
