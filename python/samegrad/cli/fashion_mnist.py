"""`samegrad fashion-mnist`: the tutorial "Custom training with tf.distribute.Strategy" as a job.

The model, the steps and the order of things are the tutorial's. What is added: a loss divided by
the true number of examples, the means to stop and resume, and records to compare runs by.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import samegrad as tf
from samegrad._keras.datasets._idx import IdxError
from samegrad.cli._earlier_runs import (
    PREFIX,
    check_new,
    check_settings,
    restore_last,
    resume_command,
)
from samegrad.cli._errors import CommandError
from samegrad.cli._options import FashionMnistOptions
from samegrad.cli._pictures import check_picture
from samegrad.cli._processes import is_first, shall_stop, strategy_of
from samegrad.cli._progress import WHO, check_plotted, draw_plot, epoch_line, known_records
from samegrad.cli._records import Record, RunLog, digest_of
from samegrad.cli._stop import StopSignal
from samegrad.distribute._job import on_first_rank
from samegrad.train._state_file import forget_all

# What a user can put right, besides CommandError.
BAD_INPUT = (IdxError, tf.train.CorruptCheckpointError)


@dataclass(frozen=True)
class _Data:
    """Images `[n, 28, 28, 1]`, float32 from 0 to 1, and labels `[n]`, uint8."""

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.uint8]
    test_images: npt.NDArray[np.float32]
    test_labels: npt.NDArray[np.uint8]


class _Progress:
    """Progress of the training; stored in every checkpoint.

    Attributes:
        settings: What the bits of a run depend on, as JSON.
        step: Steps done since the beginning.
        epoch: Epochs done, with their evaluation.
        loss_sum: Sum of the losses of this epoch's examples.
        examples: Examples of this epoch seen so far.
        log_digest: A hash of the log's records so far; "" if there is no log.
    """

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self.step = 0
        self.epoch = 0
        self.loss_sum = 0.0
        self.examples = 0
        self.log_digest = ""

    def add_step(self, loss: float, examples: int) -> None:
        """Counts a step whose mean loss is given."""
        self.step += 1
        self.loss_sum += loss * examples
        self.examples += examples

    def end_epoch(self) -> float:
        """Counts an epoch and returns its mean loss over all examples."""
        loss = self.loss_sum / self.examples
        self.epoch += 1
        self.loss_sum, self.examples = 0.0, 0
        return loss

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return vars(self)

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


def create_model() -> Any:
    """The tutorial's CNN: images `[n, 28, 28, 1]` to logits `[n, 10]`."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(64, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )


class _Training:
    """Model, data and steps under one strategy."""

    def __init__(self, options: FashionMnistOptions, data: _Data) -> None:
        self.batch_size = options.global_batch_size
        self.examples = len(data.train_labels)
        self.steps_per_epoch = math.ceil(self.examples / self.batch_size)
        self.strategy = strategy_of(options.replicas)
        train_dataset = (
            tf.data.Dataset.from_tensor_slices((data.train_images, data.train_labels))
            .shuffle(self.examples, seed=options.seed)
            .batch(self.batch_size)
            .repeat()
        )
        self.test_dataset = tf.data.Dataset.from_tensor_slices(
            (data.test_images, data.test_labels)
        ).batch(self.batch_size)
        distribute = self.strategy.experimental_distribute_dataset
        # One iterator for all epochs: its position is the position in the whole training.
        self.train_iterator = iter(distribute(train_dataset))
        self.test_dist_dataset = distribute(self.test_dataset)
        with self.strategy.scope():
            self.model = create_model()
            self.model.build((None, 28, 28, 1))  # the weights are there even if no step is left
            self.optimizer = tf.keras.optimizers.Adam(learning_rate=options.learning_rate)
            self.loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=tf.keras.losses.Reduction.NONE
            )
            self.test_loss = tf.keras.metrics.Mean(name="test_loss")
            self.train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
            self.test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
        self.progress = _Progress(_settings(options, self.examples))
        self.checkpoint = tf.train.Checkpoint(
            model=self.model,
            optimizer=self.optimizer,
            iterator=self.train_iterator,
            train_accuracy=self.train_accuracy,
            progress=self.progress,
        )
        self.distributed_train_step = self._train_step_function()
        self.distributed_test_step = self._test_step_function()

    def _train_step_function(self) -> Callable[[Any], Any]:
        def train_step(inputs: Any) -> Any:
            images, labels = inputs
            with tf.GradientTape() as tape:
                predictions = self.model(images, training=True)
                per_example_loss = self.loss_object(labels, predictions)
                loss = tf.nn.compute_average_loss(per_example_loss)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(
                zip(gradients, self.model.trainable_variables, strict=True)
            )
            self.train_accuracy.update_state(labels, predictions)
            return loss

        @tf.function
        def distributed_train_step(dataset_inputs: Any) -> Any:
            per_replica_losses = self.strategy.run(train_step, args=(dataset_inputs,))
            return self.strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

        return distributed_train_step

    def _test_step_function(self) -> Callable[[Any], Any]:
        def test_step(inputs: Any) -> None:
            images, labels = inputs
            predictions = self.model(images, training=False)
            self.test_loss.update_state(self.loss_object(labels, predictions))
            self.test_accuracy.update_state(labels, predictions)

        @tf.function
        def distributed_test_step(dataset_inputs: Any) -> Any:
            return self.strategy.run(test_step, args=(dataset_inputs,))

        return distributed_test_step

    def train_one_step(self) -> Record:
        """Trains on the next global batch."""
        position = self.progress.step % self.steps_per_epoch
        examples = min(self.batch_size, self.examples - position * self.batch_size)
        loss = float(self.distributed_train_step(next(self.train_iterator)))
        self.progress.add_step(loss, examples)
        epoch = self.progress.epoch + 1
        return {"epoch": epoch, "step": self.progress.step, "loss": loss, "examples": examples}

    def end_epoch(self) -> Record:
        """Evaluates the test data and returns the figures of the epoch."""
        for batch in self.test_dist_dataset:
            self.distributed_test_step(batch)
        loss = self.progress.end_epoch()
        record = {
            "epoch": self.progress.epoch,
            "step": self.progress.step,
            "loss": loss,
            "accuracy": _percent(self.train_accuracy),
            "test_loss": float(self.test_loss.result()),
            "test_accuracy": _percent(self.test_accuracy),
        }
        for metric in (self.test_loss, self.train_accuracy, self.test_accuracy):
            metric.reset_state()
        return record

    def check_place(self, path: str) -> None:
        """Check that all parts of a restored checkpoint are at one position of the training.

        Raises:
            CommandError: It is not.
        """
        done = self.progress
        in_epoch = done.step - done.epoch * self.steps_per_epoch
        seen = min(in_epoch * self.batch_size, self.examples)
        position = dict(self.train_iterator._checkpoint_state())["position"]
        updates = int(self.optimizer.iterations)
        if (
            not 0 <= in_epoch <= self.steps_per_epoch
            or seen != done.examples
            or {position, updates} != {done.step}
        ):
            raise CommandError(
                f"[fashion-mnist] {path} must be at one place of the training: got step "
                f"{done.step} of epoch {done.epoch + 1} after {done.examples} of its examples, "
                f"batch {position} of the data and update {updates}. Resume an older checkpoint."
            )

    def check_log(self, records: list[Record]) -> None:
        """Check that the records of a resumed log are those of the restored training.

        Raises:
            CommandError: They are not.
        """
        done = self.progress
        last = [record for record in records if "test_loss" not in record][-1:]
        steps = [r for r in records if "test_loss" not in r and r["epoch"] == done.epoch + 1]
        loss_sum = 0.0
        for step in steps:
            loss_sum += step["loss"] * step["examples"]
        whole = len(steps) == done.step - done.epoch * self.steps_per_epoch
        found = last[0].get("fingerprint") if last else None
        if (
            done.log_digest not in ("", digest_of(records))
            or (whole and repr(loss_sum) != repr(done.loss_sum))
            or found not in (None, self.fingerprint())
        ):
            raise CommandError(
                f"[fashion-mnist] --log must be the log of the run that is resumed: got one with "
                f"other losses or weights up to step {done.step}. Give that run's, or a new file."
            )

    def fingerprint(self) -> str:
        """Return the fingerprint of the model."""
        return tf.fingerprint(self.model)


def run(options: FashionMnistOptions) -> int:
    """Trains, evaluates, and says what happened.

    Args:
        options: What the user asked for.

    Returns:
        The exit code.

    Raises:
        CommandError: The options do not fit together or to the checkpoint.
        OSError: A file or folder cannot be read or written.
        ValueError: A data file or a checkpoint is damaged.
    """
    if options.plot is not None:
        check_picture(WHO, "--plot", options.plot)
    data = _load_data(options)
    try:
        if options.threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
        tf.random.set_seed(options.seed)
        training = _Training(options, data)
    except (ImportError, ValueError) as error:  # beyond what the library, or the job, takes
        raise CommandError(str(error)) from error
    if not is_first():
        options = replace(options, log=None, plot=None)
    return _run(training, options)


def _run(training: _Training, options: FashionMnistOptions) -> int:
    if not (options.resume or options.overwrite):
        on_first_rank("a new run", lambda: check_new(WHO, options.checkpoint_dir, options.log))
    resumed = _resume(training, options) if options.resume else None
    known = None if resumed is None else functools.partial(known_records, after=resumed)
    log = RunLog(WHO, options.log, known, training.check_log)
    try:
        if resumed is None:
            # Fails now rather than after the first epochs.
            on_first_rank("the folder of checkpoints", lambda: _begin(options.checkpoint_dir))
        elif options.plot is not None:
            check_plotted(log.records, resumed[0])
        code = _train_and_report(training, options, log)
    finally:
        log.close()
    if options.plot is not None:
        draw_plot(options.plot, log.records)
    return code


def _begin(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    forget_all(folder)


def _load_data(options: FashionMnistOptions) -> _Data:
    train, test = tf.keras.datasets.fashion_mnist.load_data(options.data_dir)
    (train_images, train_labels), (test_images, test_labels) = (
        (_to_images(images[: options.limit]), labels[: options.limit])
        for images, labels in (train, test)
    )
    return _Data(train_images, train_labels, test_images, test_labels)


def _to_images(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Grey values `[n, 28, 28]` as images `[n, 28, 28, 1]` from 0 to 1."""
    images: npt.NDArray[np.float32] = np.divide(pixels[..., None], 255, dtype=np.float32)
    return images


def _settings(options: FashionMnistOptions, examples: int) -> str:
    """Return the settings on which the bits of a resumed run depend, as JSON."""
    return json.dumps(
        {
            "examples": examples,
            "global batch size": options.global_batch_size,
            "learning rate": options.learning_rate,
            "seed": options.seed,
        }
    )


def _resume(training: _Training, options: FashionMnistOptions) -> tuple[int, int]:
    """Restores the last checkpoint; returns its steps and epochs."""
    wanted = training.progress.settings
    path = restore_last(WHO, training.checkpoint, options.checkpoint_dir)
    check_settings(WHO, path, wanted, training.progress.settings)
    training.check_place(path)
    print(f"Resumed from {path} after step {training.progress.step}.")
    return training.progress.step, training.progress.epoch


def _train_and_report(training: _Training, options: FashionMnistOptions, log: RunLog) -> int:
    prefix = options.checkpoint_dir / PREFIX
    start, first_step = time.perf_counter(), training.progress.step
    with StopSignal() as stop:
        done = _train(training, options, log, stop, prefix)
        path = None if done else _save(training, log, prefix)
    _print_speed(training, first_step, time.perf_counter() - start)
    if options.fingerprint:
        print(
            f"Fingerprint of the weights after step {training.progress.step}: "
            f"{training.fingerprint()}"
        )
    if done:
        _evaluate_without_strategy(training.test_dataset, options.checkpoint_dir)
        return 0
    print(
        f"Stopped after step {training.progress.step}; saved {path}. Resume with:\n"
        f"  {resume_command(options.arguments)}"
    )
    return stop.exit_code


def _save(training: _Training, log: RunLog, prefix: Path) -> str:
    """Saves a checkpoint, after the log of its steps."""
    log.flush()
    training.progress.log_digest = log.digest
    return training.checkpoint.save(prefix)


def _train(
    training: _Training, options: FashionMnistOptions, log: RunLog, stop: StopSignal, prefix: Path
) -> bool:
    """Trains to the end, or until Ctrl-C or the last step asked for; says whether it is the end."""
    progress = training.progress

    def must_stop() -> bool:
        return shall_stop(stop) or (options.steps is not None and progress.step >= options.steps)

    while progress.epoch < options.epochs:
        last_step = (progress.epoch + 1) * training.steps_per_epoch
        with _progress_bar(training, options.epochs) as bar:
            while progress.step < last_step and not must_stop():
                record = training.train_one_step()
                bar.set_postfix_str(f"loss={record['loss']:.4f}", refresh=False)
                bar.update(record["examples"])
                if options.fingerprint:
                    record["fingerprint"] = training.fingerprint()
                log.add(record)
        if must_stop():
            return False
        record = training.end_epoch()
        log.add(record)
        print(epoch_line(record), flush=True)
        if progress.epoch % options.save_every == 0 or progress.epoch == options.epochs:
            _save(training, log, prefix)
    return True


def _progress_bar(training: _Training, epochs: int) -> Any:
    """Return a progress bar with epoch, images/s and loss; silent unless on a terminal."""
    return tqdm(
        desc=f"Epoch {training.progress.epoch + 1}/{epochs}",
        total=training.examples,
        initial=training.progress.examples,
        unit=" images",
        leave=False,
        disable=None,
    )


def _print_speed(training: _Training, first_step: int, seconds: float) -> None:
    steps = training.progress.step - first_step
    images = steps * training.examples / training.steps_per_epoch
    if steps:
        print(
            f"{images:.0f} images in {seconds:.1f} s, evaluation and checkpoints included: "
            f"{images / seconds:.0f} images/s.",
            file=sys.stderr,
        )


def _evaluate_without_strategy(test_dataset: Any, folder: Path) -> None:
    """Restores the last checkpoint into a new model and prints its accuracy."""
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="eval_accuracy")
    model = create_model()
    tf.train.Checkpoint(model=model).restore(tf.train.latest_checkpoint(folder)).expect_partial()

    @tf.function
    def eval_step(images: Any, labels: Any) -> None:
        accuracy.update_state(labels, model(images, training=False))

    for images, labels in test_dataset:
        eval_step(images, labels)
    percent = _percent(accuracy)
    print(f"Accuracy after restoring the saved model without strategy: {percent:.9g}")


def _percent(accuracy: Any) -> float:
    """A metric from 0 to 1 in %, in float32 as the tutorial multiplies it."""
    return float(np.float32(accuracy.result()) * np.float32(100))
