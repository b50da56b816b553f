"""`samegrad wgan-gp`: a Wasserstein GAN with gradient penalty, over any number of replicas.

The critic is kept 1-Lipschitz by a penalty on its gradient (Gulrajani et al., 2017) or by clipped
weights (Arjovsky et al., 2017). The run is watched: figures of every iteration, warnings when it
goes unstable, and judgements of the images.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
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
from samegrad.cli._options import WganGpOptions
from samegrad.cli._pictures import check_picture
from samegrad.cli._processes import is_first, shall_stop
from samegrad.cli._records import Record, RunLog, resume_log
from samegrad.cli._stop import StopSignal
from samegrad.cli._wgan._drawing import draw_curves, draw_grid
from samegrad.cli._wgan._log import FIGURES, check_plotted, check_record
from samegrad.cli._wgan._quality import Classifier, Images
from samegrad.cli._wgan._steps import WHO
from samegrad.cli._wgan._training import Training
from samegrad.cli._wgan._watch import NOT_FINITE, not_finite
from samegrad.distribute._job import on_first_rank
from samegrad.train._state_file import forget_all

BAD_INPUT = (IdxError, tf.train.CorruptCheckpointError)
_SHORT = {"wasserstein": "W", "critic_loss": "critic", "generator_loss": "generator",
          "penalty": "penalty", "gradient_norm": "norm"}  # fmt: skip


def run(options: WganGpOptions) -> int:
    """Trains, judges the images, and says what happened.

    Args:
        options: What the user asked for.

    Returns:
        The exit code.

    Raises:
        CommandError: The options do not fit together or to the checkpoint, or a figure is not
            finite.
        OSError: A file or folder cannot be read or written.
        ValueError: A data file or a checkpoint is damaged.
    """
    for option, path in (("--plot", options.plot), ("--grid", options.grid)):
        if path is not None:
            check_picture(WHO, option, path)
    images, test_images = _load_data(options)
    classifier = None if options.classifier is None else Classifier(options.classifier)
    try:
        if options.threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
        tf.keras.utils.set_random_seed(options.seed % 2**32)
        tf.random.set_seed(options.seed)
        training = Training(options, images, test_images, classifier)
    except (ImportError, ValueError) as error:  # beyond what the library, or the job, takes
        raise CommandError(str(error)) from error
    if not is_first():
        options = replace(options, log=None, plot=None, grid=None)
    return _run(training, options)


def _run(training: Training, options: WganGpOptions) -> int:
    if not (options.resume or options.overwrite):
        on_first_rank("a new run", lambda: check_new(WHO, options.checkpoint_dir, options.log))
    log = _open_log(training, options)
    try:
        if not options.resume:
            # Fails now rather than after the first iterations.
            on_first_rank("the folder of checkpoints", lambda: _begin(options.checkpoint_dir))
        elif options.plot is not None:
            check_plotted(log.records, training.progress.step)
        code = _train_and_report(training, options, log)
    finally:
        log.close()
    if options.plot is not None:
        draw_curves(options.plot, log.records)
    if options.grid is not None:
        draw_grid(options.grid, training.grid())
    return code


def _begin(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    forget_all(folder)


def _load_data(options: WganGpOptions) -> tuple[Images, Images]:
    (images, _), (test_images, _) = tf.keras.datasets.fashion_mnist.load_data(options.data_dir)
    return _to_images(images[: options.limit]), _to_images(test_images[: options.limit])


def _to_images(pixels: npt.NDArray[np.uint8]) -> Images:
    """Grey values `[n, 28, 28]` as images `[n, 28, 28, 1]` from -1 to 1."""
    images: Images = np.divide(pixels[..., None], 127.5, dtype=np.float32)
    images -= 1
    return images


def _open_log(training: Training, options: WganGpOptions) -> RunLog:
    """The log; where a run is resumed, with what the restored checkpoint knows."""
    if not options.resume:
        return RunLog(WHO, options.log)
    _resume(training, options)
    return resume_log(WHO, options.log, training.progress, "iteration", check_record)


def _resume(training: Training, options: WganGpOptions) -> None:
    progress = training.progress
    wanted, changeable = progress.settings, progress.changeable
    path = restore_last(WHO, training.checkpoint, options.checkpoint_dir)
    check_settings(WHO, path, wanted, progress.settings)
    training.check_place(path)
    training.watch.state.update(json.loads(progress.watch))
    print(f"Resumed from {path} after iteration {progress.step}.")
    if progress.changeable != changeable:
        print(f"From here on {changeable}; before, {progress.changeable}.")
        progress.changeable = changeable


def _train_and_report(training: Training, options: WganGpOptions, log: RunLog) -> int:
    start, first_step = time.perf_counter(), training.progress.step
    with StopSignal() as stop:
        done = _train(training, options, log, stop)
    seconds = time.perf_counter() - start
    iterations = training.progress.step - first_step
    if iterations:
        images = iterations * options.n_critic * options.global_batch_size
        print(
            f"{iterations} iterations in {seconds:.1f} s, judgements and checkpoints included: "
            f"{images / seconds:.0f} real images/s.",
            file=sys.stderr,
        )
    if options.fingerprint:
        print(
            f"Fingerprint of the weights after iteration {training.progress.step}: "
            f"{training.fingerprint()}"
        )
    if done:
        return 0
    print(
        f"Stopped after iteration {training.progress.step}; saved "
        f"{tf.train.latest_checkpoint(options.checkpoint_dir)}. Resume with:\n"
        f"  {resume_command(options.arguments)}"
    )
    return stop.exit_code


def _train(training: Training, options: WganGpOptions, log: RunLog, stop: StopSignal) -> bool:
    """Trains to the end, or until Ctrl-C or the last iteration asked for; saves; is it the end?"""
    progress = training.progress
    last = min(options.iterations, options.steps or options.iterations)
    if progress.step == 0:
        _judge(training, log)
    saved = progress.step if options.resume else -1
    with _progress_bar(training, options) as bar:
        while progress.step < last and not shall_stop(stop):
            record = training.train_one_iteration()
            _check_finite(record, options)
            if options.fingerprint:
                record["fingerprint"] = training.fingerprint()
            log.add(record)
            _show(bar, record)
            for line in training.watch.look(progress.step, record):
                bar.write(line, file=sys.stderr)
            ends = progress.step == options.iterations
            if ends or progress.step % options.quality_every == 0:
                bar.clear()
                _judge(training, log)
            if ends or progress.step % options.save_every == 0:
                _save(training, options, log)
                saved = progress.step
    if saved != progress.step:
        _save(training, options, log)
    return progress.step >= options.iterations


def _check_finite(record: Record, options: WganGpOptions) -> None:
    found = not_finite({name: record[name] for name in FIGURES})
    if found is None:
        return
    path = tf.train.latest_checkpoint(options.checkpoint_dir)
    kept = (
        f"the checkpoint {path} is of before; go on from it with --resume"
        if path
        else ("no checkpoint was saved before; begin anew with --overwrite")
    )
    raise CommandError(
        f"[{WHO}] every figure must be finite: got {found} at iteration {record['step']}; {kept} "
        f"and other settings: {NOT_FINITE[options.lipschitz]}."
    )


def _judge(training: Training, log: RunLog) -> None:
    record = training.judge()
    log.add(record)
    figures = ", ".join(f"{k.replace('_', ' ')} {v:.4f}" for k, v in record.items() if k != "step")
    print(f"Iteration {record['step']}: {figures}", flush=True)


def _save(training: Training, options: WganGpOptions, log: RunLog) -> None:
    """Saves a checkpoint, after the log of its iterations."""
    log.flush()
    progress = training.progress
    progress.log_digest = log.digest
    progress.records = len(log.records) if log.digest else 0
    progress.watch = json.dumps(training.watch.state)
    training.checkpoint.save(options.checkpoint_dir / PREFIX)


def _progress_bar(training: Training, options: WganGpOptions) -> Any:
    """Return a progress bar with iterations, time and metrics; silent unless on a terminal."""
    return tqdm(
        total=options.iterations,
        initial=training.progress.step,
        unit=" iterations",
        leave=False,
        disable=None,
    )


def _show(bar: Any, record: Record) -> None:
    shown = " ".join(f"{short}={record[name]:.3g}" for name, short in _SHORT.items())
    bar.set_postfix_str(shown, refresh=False)
    bar.update()
