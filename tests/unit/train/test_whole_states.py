"""Whole states only: several processes and threads, interrupts, disks that fail at every call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import failing_calls
import numpy as np
import pytest
import writers
from inject import is_at_handler_border

import samegrad as tf
from samegrad.train import (
    Checkpoint,
    CheckpointManager,
    _files,
    _state_file,
    latest_checkpoint,
)

HERE = Path(__file__).parent


class Attributes:
    """An object whose state is all its attributes."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return vars(self)

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


def test_a_run_resumed_ten_times_can_save_again(tmp_path):
    for number in range(1, 11):
        progress = Attributes(step=0)
        root = Checkpoint(progress=progress, w=tf.Variable(np.zeros(2, np.float32)))
        root.restore(latest_checkpoint(tmp_path))
        root.restore(latest_checkpoint(tmp_path))
        assert progress.step == number - 1
        progress.step += 1
        assert root.save(tmp_path / "ckpt").endswith(f"ckpt-{number}")
    assert vars(progress) == {"step": 10}


# All or nothing.


class Stubborn:
    def __init__(self, value: int, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"value": self.value}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        self.value = values["value"]
        error, self.error = self.error, None
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (RuntimeError("no"), ValueError),
        (KeyError("no"), ValueError),
        (MemoryError(), MemoryError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_restore_that_fails_changes_nothing(tmp_path, error, seen):
    names = ("a", "b", "c")
    path = Checkpoint(v=tf.Variable([1.0, 2.0]), **{n: Stubborn(1) for n in names}).save(
        tmp_path / "ckpt"
    )
    objects = {n: Stubborn(2, error if n == "b" else None) for n in names}
    variable, later = tf.Variable([3.0, 4.0]), Attributes()
    root = Checkpoint(v=variable, later=later, **objects)
    with pytest.raises(seen) as caught:
        root.restore(path)
    assert seen is KeyboardInterrupt or str(caught.value).startswith("[checkpoint] ")
    assert [item.value for item in objects.values()] == [2, 2, 2]
    assert variable.numpy().tolist() == [3, 4]
    assert root.save_counter == 0
    root.extra = tf.Variable([5.0])
    root.restore(path)  # and the next one works
    assert [item.value for item in objects.values()] == [1, 1, 1]
    assert variable.numpy().tolist() == [1, 2]


def interrupted_at(line: int, action: Callable[[], object]) -> bool:
    """Whether the action came to its end before KeyboardInterrupt at its so-manyth line."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if "/samegrad/train/" not in frame.f_code.co_filename:
            return None
        if event == "line" and not is_at_handler_border(frame):
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(None)
    return True


@pytest.fixture
def quick_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def test_a_restore_interrupted_at_any_line_is_whole(tmp_path):
    path = Checkpoint(v=tf.Variable([1.0]), p=Attributes(step=1), late=tf.Variable([1.0])).save(
        tmp_path / "ckpt"
    )
    for line in range(1, 100_000):
        root = Checkpoint(v=tf.Variable([0.0]), p=Attributes(step=0))
        tf.random.set_seed(line + 10)
        ended = interrupted_at(line, lambda root=root: root.restore(path))
        found = {float(root.v.numpy()[0]), float(root.p.step), float(root.save_counter)}
        assert len(found) == 1, line
        root.late = tf.Variable([0.0])
        assert {float(root.late.numpy()[0])} == found, line
        assert (tf._core.random_state().seed == line + 10) == (found == {0.0}), line
        if ended:
            break
    assert 300 < line < 100_000


def test_a_save_interrupted_at_any_line_can_be_repeated(tmp_path, quick_disk):
    root = Checkpoint(v=tf.Variable([1.0]), p=Attributes(step=1))
    manager = CheckpointManager(root, tmp_path, max_to_keep=1)
    manager.save()
    for line in range(1, 100_000, 11):
        before = int(root.save_counter)
        ended = interrupted_at(line, manager.save)
        listed = latest_checkpoint(tmp_path)
        root.read(listed)  # whole
        assert int(listed.rpartition("-")[2]) in (before, before + 1)
        if ended:
            break
        manager.save()  # and the next one works
        assert len(manager.checkpoints) == 1
    assert 500 < line < 100_000


# Disks that fail.


@pytest.fixture(scope="module")
def faults(tmp_path_factory) -> Path:
    """The library that lets calls of the system fail."""
    return failing_calls.build(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("action", failing_calls.ACTIONS)
def test_a_system_that_fails_at_any_call_is_told_and_loses_nothing(faults, action):
    done = subprocess.run(
        [sys.executable, str(HERE / "failing_calls.py"), action],
        capture_output=True, text=True, timeout=300, env={**os.environ, "LD_PRELOAD": str(faults)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    refused = [int(count) for count in re.findall(r"(\d+) refused.* 0 faults", done.stdout)]
    assert len(refused) == len(failing_calls.CODES), done.stdout
    assert min(refused) >= 7


# Several processes and threads.


def start_writers(folder: Path, *values: float, count: int = 40) -> list[subprocess.Popen[str]]:
    command = [sys.executable, str(HERE / "writers.py"), str(folder)]
    processes = [
        subprocess.Popen(
            [*command, str(value), str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )
        for value in values
    ]  # fmt: skip
    for process in processes:
        process.stdout.readline()
    return processes


def is_whole(root: Checkpoint) -> bool:
    return len({*root.a.tolist(), *root.b.tolist()}) == 1


def test_two_processes_write_one_checkpoint_and_readers_see_whole_states(tmp_path):
    root = writers.objects(0.0)
    root.write(tmp_path / "same")
    root.save(tmp_path / "ckpt")
    processes = start_writers(tmp_path, 1000.0, 5000.0)
    reads = 0
    while any(process.poll() is None for process in processes):
        root.read(tmp_path / "same")
        assert is_whole(root)
        path = latest_checkpoint(tmp_path)
        try:
            root.read(path)
        except FileNotFoundError:  # deleted meanwhile, which does no harm
            assert path not in _state_file.all_checkpoints(tmp_path) or Path(path).exists()
        assert is_whole(root)
        reads += 1
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert reads > 10
    for path in _state_file.all_checkpoints(tmp_path):
        root.read(path)
        assert is_whole(root)
    assert len(os.listdir(tmp_path / "same")) == 2


def test_a_manager_restores_the_latest_beside_one_that_saves(tmp_path):
    writers.objects(0.0).save(tmp_path / "ckpt")
    (process,) = start_writers(tmp_path, 1000.0, count=60)
    while process.poll() is None:
        root = writers.objects(-1.0)
        assert CheckpointManager(root, tmp_path, max_to_keep=2).restore_or_initialize()
        assert is_whole(root)
    assert process.wait() == 0, process.stderr.read()


def test_the_lock_of_a_folder_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_TIMEOUT", 0.05)
    with (
        _files.locked(tmp_path),
        pytest.raises(TimeoutError, match=r"^\[checkpoint\] writers of .* must let go"),
    ):
        Checkpoint(w=np.ones(1)).save(tmp_path / "ckpt")
    with _files.locked(tmp_path, shared=True), _files.locked(tmp_path, shared=True):
        pass
    Checkpoint(w=np.ones(1)).save(tmp_path / "ckpt")


def test_a_forked_child_does_not_hold_the_lock(tmp_path):
    with _files.locked(tmp_path):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with _files.locked(tmp_path):
            pass
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_what_is_saved_while_another_thread_trains_is_of_one_step(tmp_path):
    variables = [tf.Variable(np.zeros(200, np.float32)) for _ in range(8)]

    @tf.function
    def step() -> None:
        for variable in variables:
            variable.assign_add(np.ones(200, np.float32))

    step()
    root = Checkpoint(variables=variables)
    ends = threading.Event()

    def train() -> None:
        while not ends.is_set():
            step()

    thread = threading.Thread(target=train)
    thread.start()
    seen = set()
    try:
        for _ in range(30):
            path = root.write(tmp_path / "same")
            arrays, _ = tf.train._storage.load(path)
            values = {float(value) for array in arrays.values() for value in array}
            assert len(values) == 1
            seen |= values
    finally:
        ends.set()
        thread.join()
    assert len(seen) > 5


def test_arrays_are_those_of_the_moment_of_the_save(tmp_path):
    array = np.zeros(200_000)
    root = Checkpoint(array=array)
    ends = threading.Event()

    def change() -> None:
        while not ends.is_set():
            array[...] += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for number in range(5):
            tf.train._storage.load(root.write(tmp_path / str(number)))  # hashes fit
    finally:
        ends.set()
        thread.join()


def test_killed_trainings_go_on_with_the_same_bits():
    done = subprocess.run(
        [sys.executable, str(HERE / "long_kills.py"), "--count", "12"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 12


def test_a_long_training_keeps_its_bits_and_its_memory():
    short = ["--minutes", "0.05", "--save-s", "0.2", "--kill-s", "0.5"]
    done = subprocess.run(
        [sys.executable, str(HERE / "long_training.py"), *short], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Outcome(kills=")
