"""`samegrad translate`: a Transformer that translates sentences, over any number of replicas.

The sentences come in batches of similar lengths, so their number and that of their tokens differ
from step to step and from replica to replica; the loss is divided by those of all replicas.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

import samegrad as tf
from samegrad.cli._earlier_runs import (
    PREFIX,
    check_new,
    check_settings,
    restore_last,
    resume_command,
)
from samegrad.cli._errors import CommandError
from samegrad.cli._options import TranslateOptions
from samegrad.cli._processes import is_first, shall_stop
from samegrad.cli._records import Record, RunLog, resume_log
from samegrad.cli._stop import StopSignal
from samegrad.cli._translate._log import averaged_line, check_record, epoch_line
from samegrad.cli._translate._pairs import WHO, Pair, hold_out, read_packages, read_pairs
from samegrad.cli._translate._precision import notice
from samegrad.cli._translate._training import AVERAGED, Training
from samegrad.cli._translate._vocabulary import Vocabulary
from samegrad.distribute._job import on_first_rank
from samegrad.train._files import remove_folder
from samegrad.train._state_file import forget_all
from samegrad.train._storage import is_checkpoint

BAD_INPUT = (tf.train.CorruptCheckpointError,)
VOCABULARY = "vocabulary.model"


def run(options: TranslateOptions) -> int:
    """Trains, translates, and says what happened.

    Args:
        options: What the user asked for.

    Returns:
        The exit code.

    Raises:
        CommandError: The options do not fit together, to the data or to the checkpoint, or a loss
            is not finite.
        OSError: A file or folder cannot be read or written.
        ValueError: A checkpoint is damaged.
    """
    options = replace(options, bleu=importlib.util.find_spec("sacrebleu") is not None)
    _check_average(options)
    pairs, held_out = hold_out(_read(options), options.held_out)
    if not (options.resume or options.overwrite):
        # By all processes, before the first one can have written anything.
        check_new(WHO, options.checkpoint_dir, options.log, [AVERAGED])
    vocabulary = _vocabulary(options, pairs)
    try:
        if options.threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
        tf.keras.utils.set_random_seed(options.seed % 2**32)
        tf.random.set_seed(options.seed)
        training = Training(options, pairs, held_out, vocabulary)
    except (ImportError, ValueError) as error:  # beyond what the library, or the job, takes
        raise CommandError(str(error)) from error
    if not is_first():
        options = replace(options, log=None)
    return _run(training, options, vocabulary)


def _run(training: Training, options: TranslateOptions, vocabulary: Vocabulary) -> int:
    _say_data(training)
    log = _open_log(training, options)
    try:
        if not options.resume:
            # Fails now rather than after the first epoch.
            on_first_rank(
                "the folder of checkpoints", lambda: _begin(options.checkpoint_dir, vocabulary)
            )
        return _train_and_report(training, options, log)
    finally:
        log.close()


def _begin(folder: Path, vocabulary: Vocabulary) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    forget_all(folder)
    if is_checkpoint(averaged := folder / AVERAGED):
        remove_folder(averaged)  # of the run that is overwritten
    vocabulary.save(folder / VOCABULARY)


def _check_average(options: TranslateOptions) -> None:
    count = options.average_checkpoints
    if count is not None and count > options.epochs:
        raise CommandError(
            f"[{WHO}] --average-checkpoints must be at most --epochs, each of which ends with a "
            f"checkpoint: got {count} and {options.epochs}. Give fewer, or train for longer."
        )


def _read(options: TranslateOptions) -> list[Pair]:
    if options.pairs is not None:
        pairs = read_pairs(options.pairs)
    else:
        pairs = read_packages(options.packages, options.language)
    return pairs[: options.limit]


def _vocabulary(options: TranslateOptions, pairs: list[Pair]) -> Vocabulary:
    """Return the vocabulary of the resumed run, or one learnt from the training pairs."""
    if options.resume:
        return Vocabulary.load(options.checkpoint_dir / VOCABULARY)
    sentences = (sentence for pair in pairs for sentence in pair)
    return Vocabulary.learn(sentences, options.vocabulary)


def _say_data(training: Training) -> None:
    options = training.options
    print(
        f"{len(training.pairs)} pairs to train on, {len(training.held_out)} held out; "
        f"{training.left_out} left out, of {options.max_length} or more tokens."
    )
    if options.mixed_bfloat16:
        print(notice())


def _open_log(training: Training, options: TranslateOptions) -> RunLog:
    """The log; where a run is resumed, with what the restored checkpoint knows."""
    if not options.resume:
        return RunLog(WHO, options.log)
    progress = training.progress
    wanted = progress.settings
    path = restore_last(WHO, training.checkpoint, options.checkpoint_dir)
    check_settings(WHO, path, wanted, progress.settings)
    training.check_place(path)
    print(f"Resumed from {path} after step {progress.step}.")
    return resume_log(WHO, options.log, progress, "step", check_record)


def _train_and_report(training: Training, options: TranslateOptions, log: RunLog) -> int:
    with StopSignal() as stop:
        done = _train(training, options, log, stop)
    progress = training.progress
    if options.fingerprint:
        print(f"Fingerprint of the weights after step {progress.step}: {training.fingerprint()}")
    if done:
        if options.average_checkpoints is not None:
            _average(training, options, log, options.average_checkpoints)
        return 0
    print(
        f"Stopped after step {progress.step}; saved "
        f"{tf.train.latest_checkpoint(options.checkpoint_dir)}. Resume with:\n"
        f"  {resume_command(options.arguments)}"
    )
    return stop.exit_code


def _train(training: Training, options: TranslateOptions, log: RunLog, stop: StopSignal) -> bool:
    """Trains to the end, or until Ctrl-C or the last step asked for; saves; is it the end?"""
    progress = training.progress
    saved = progress.step if options.resume else -1
    last = options.steps or math.inf
    while progress.epoch < options.epochs and progress.step < last and not shall_stop(stop):
        if _train_epoch(training, options, log, stop):
            _end_epoch(training, log)
            _save(training, options, log)
            saved = progress.step
    if saved != progress.step:
        _save(training, options, log)
    return progress.epoch >= options.epochs


def _train_epoch(
    training: Training, options: TranslateOptions, log: RunLog, stop: StopSignal
) -> bool:
    """Trains to the end of the epoch, or until Ctrl-C or the last step; is it the end?"""
    progress, tokens, start = training.progress, 0, time.perf_counter()
    with tqdm(unit=" steps", leave=False, disable=None) as bar:
        while not shall_stop(stop):
            if progress.step >= (options.steps or math.inf):
                return False
            record = training.train_one_step()
            if record is None:
                break
            _check_finite(record, options)
            tokens += record["tokens"]
            if options.fingerprint:
                record["fingerprint"] = training.fingerprint()
            log.add(record)
            _show(bar, record, tokens / (time.perf_counter() - start))
        else:
            return False
    seconds = time.perf_counter() - start
    if tokens:
        print(
            f"Epoch {progress.epoch + 1}: {tokens} tokens in {seconds:.1f} s, "
            f"{tokens / seconds:.0f} tokens/s.",
            file=sys.stderr,
        )
    return True


def _show(bar: Any, record: Record, rate: float) -> None:
    bar.set_postfix_str(
        f"epoch={record['epoch']} loss={record['loss']:.3g} {rate:.0f} tokens/s", refresh=False
    )
    bar.update()


def _check_finite(record: Record, options: TranslateOptions) -> None:
    if math.isfinite(record["loss"]):
        return
    path = tf.train.latest_checkpoint(options.checkpoint_dir)
    kept = f"the checkpoint {path} is of before" if path else "no checkpoint was saved before"
    raise CommandError(
        f"[{WHO}] every loss must be finite: got {record['loss']} at step {record['step']}; "
        f"{kept}. Begin anew with --overwrite and a lower --rate-factor or a longer --warm-up."
    )


def _end_epoch(training: Training, log: RunLog) -> None:
    record = training.end_epoch()
    log.add(record)
    print(epoch_line(record))
    _show_samples(training)


def _average(training: Training, options: TranslateOptions, log: RunLog, count: int) -> None:
    """Translates with the mean of the weights after the last epochs."""
    record = training.average(options.checkpoint_dir, count)
    if options.fingerprint:
        record["fingerprint"] = training.fingerprint()
    log.add(record)
    print(averaged_line(record, options.checkpoint_dir / AVERAGED))
    _show_samples(training)


def _show_samples(training: Training) -> None:
    for source, target, found in training.samples():
        print(f"  {source!r} -> {found!r}, wanted {target!r}")
    sys.stdout.flush()


def _save(training: Training, options: TranslateOptions, log: RunLog) -> None:
    """Saves a checkpoint, after the log of its steps."""
    log.flush()
    progress = training.progress
    progress.log_digest = log.digest
    progress.records = len(log.records) if log.digest else 0
    training.checkpoint.save(options.checkpoint_dir / PREFIX)
