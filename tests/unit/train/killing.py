"""Runs an action again and again, killed by SIGKILL at every later step of its way to the disk.

Started as a process of its own (`python killing.py SCENARIO FOLDER`), because it forks.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from samegrad.train import _files, _state_file, _storage

CHANGING_CALLS = ("mkdir", "open", "write", "fsync", "rename", "replace", "unlink", "rmdir")

OLD = {"w": np.arange(5.0), "flag": np.array(False)}
NEW = {"w": np.arange(5.0) + 1, "flag": np.array(True)}


def die_at(step: int) -> None:
    """Lets this process be killed before its `step`-th call that may change the disk."""
    calls = itertools.count(1)

    def wrap(name: str) -> Callable[..., object]:
        original = getattr(os, name)

        def call(*args: object, **options: object) -> object:
            if next(calls) == step:
                if name == "write":  # the worst place: half of the bytes are there
                    descriptor, content = args
                    original(descriptor, content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **options)

        return call

    for name in CHANGING_CALLS:
        setattr(os, name, wrap(name))


def killed_at_every_step(action: Callable[[], None], check: Callable[[bool], None]) -> int:
    """Returns how often the action was killed before it once came to its end."""
    for step in itertools.count(1):
        child = os.fork()
        if child == 0:
            die_at(step)
            action()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        finished = os.WIFEXITED(status)
        assert not finished or os.WEXITSTATUS(status) == 0
        check(finished)
        if finished:
            return step - 1
    raise AssertionError


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> bool:
    return set(found) == set(expected) and all(
        np.array_equal(found[name], expected[name]) for name in expected
    )


def names(folder: Path) -> set[str]:
    _files.remove_leftovers(folder)
    return {path.name for path in folder.iterdir()}


def new_folder(folder: Path) -> int:
    """A new checkpoint beside an old one: the new one is there in full or not at all."""
    _storage.save(folder / "old", OLD, {"n": 1})

    def check(finished: bool) -> None:
        assert same(_storage.load(folder / "old")[0], OLD)
        assert names(folder) <= {"old", "new"}
        if finished or "new" in names(folder):
            arrays, values = _storage.load(folder / "new")
            assert same(arrays, NEW)
            assert values == {"n": 2}
            _files.remove_folder(folder / "new")

    return killed_at_every_step(lambda: _storage.save(folder / "new", NEW, {"n": 2}), check)


def same_folder(folder: Path) -> int:
    """The same name again: it always stands for the old state or for the new one."""
    _storage.save(folder / "c", OLD, {"n": 1})

    def check(finished: bool) -> None:
        arrays, values = _storage.load(folder / "c")
        is_new = values == {"n": 2}
        assert is_new or not finished
        assert same(arrays, NEW if is_new else OLD)
        assert names(folder) == {"c"}
        _storage.save(folder / "c", OLD, {"n": 1})
        assert len(list((folder / "c").iterdir())) == 2

    return killed_at_every_step(lambda: _storage.save(folder / "c", NEW, {"n": 2}), check)


def manager(folder: Path) -> int:
    """Saving, listing and deleting: the latest checkpoint listed can always be read."""

    def save(number: int) -> None:
        path = folder / f"ckpt-{number}"
        _storage.save(path, NEW, {"n": number}, lambda: _state_file.record_save(path, 2))
        _state_file.remove_obsolete(folder)

    for number in (1, 2):
        save(number)
    done = 2

    def check(finished: bool) -> None:
        nonlocal done
        latest = _state_file.latest_checkpoint(folder)
        assert latest is not None
        number = _storage.load(latest)[1]["n"]
        assert number in (done, done + 1)
        assert number == done + 1 or not finished
        done = number
        for path in _state_file.all_checkpoints(folder):
            _storage.load(path)
        kept = {f"ckpt-{done - 1}", f"ckpt-{done}"}
        assert names(folder) >= kept | {"checkpoint"}
        # One checkpoint may be there that is not listed yet, and some that are not removed yet.
        listed, obsolete = _state_file._read_state(folder)
        assert set(listed) == kept
        more = set() if finished else {f"ckpt-{done + 1}", *obsolete}
        assert names(folder) <= kept | {"checkpoint"} | more

    return killed_at_every_step(lambda: save(done + 1), check)


if __name__ == "__main__":
    print(globals()[sys.argv[1]](Path(sys.argv[2])))
