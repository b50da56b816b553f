"""Lets the system fail at every call that reads or writes a folder, and looks what that leaves.

    python tests/unit/train/failing_calls.py [ACTION ...]

An action is done again and again; each time another call of the system fails in it, once with EIO
and once with ENOSPC. Whatever fails, the refusal is ours, the folder and the objects are as before
or as after the action, and the next time it works.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._keras.datasets import _locate
from samegrad._keras.datasets._idx import IdxFile
from samegrad.cli._progress import WHO, known_records
from samegrad.cli._records import RunLog, check_unused
from samegrad.train import Checkpoint, CheckpointManager, _state_file, latest_checkpoint

sys.path.insert(0, str(Path(__file__).parents[2] / "robustness" / "errors"))

from judge import fault_of

HERE = Path(__file__).parent
CODES = (errno.EIO, errno.ENOSPC)
# An action, and what must hold after it; the check gets whether the action came to its end.
Case = tuple[Callable[[], object], Callable[[bool], None]]


def build(folder: Path) -> Path:
    """The library that lets calls fail, to be preloaded."""
    library = folder / "faults.so"
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", HERE / "faults.cpp", "-ldl"]
    subprocess.run([*map(str, command), "-o", str(library)], check=True)
    return library


def files(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def saves(folder: Path, managed: bool) -> Iterator[Case]:
    """A save: the folder holds the older state or the new one, and nothing half-made."""
    while True:
        shutil.rmtree(folder)
        folder.mkdir()
        root = Checkpoint(w=np.zeros(40), step=0)
        manager = CheckpointManager(root, folder, max_to_keep=2)

        def save(root: Checkpoint = root, manager: CheckpointManager = manager) -> object:
            return manager.save() if managed else root.save(folder / "ckpt")

        def check(done: bool, root: Checkpoint = root, save: Any = save) -> None:
            other = Checkpoint(w=np.zeros(40), step=0)
            other.restore(latest_checkpoint(folder)).assert_consumed()
            assert other.step == 3 if done else other.step in (2, 3), "an older state"
            assert (other.w == other.step).all(), "half of a state"
            root.step, root.w = 4, np.full(40, 4.0)
            save()
            other.restore(latest_checkpoint(folder)).assert_consumed()
            assert other.step == other.w[0] == 4
            kept, obsolete = _state_file._read_state(folder)
            names = {path.name for path in folder.iterdir()}
            left = names - {"checkpoint", *kept, "ckpt-3"}
            assert not left, f"left over: {left}"
            assert not managed or len(kept) == 2
            assert not [name for name in obsolete if (folder / name).exists()]

        for step in (1, 2):
            root.step, root.w = step, np.full(40, float(step))
            save()
        root.step, root.w = 3, np.full(40, 3.0)
        yield save, check


def restores(folder: Path, managed: bool) -> Iterator[Case]:
    """A restore: the objects have their own values, or the stored ones."""
    tf.random.set_seed(5)
    path = Checkpoint(v=tf.Variable([1.0, 2.0, 3.0]), a=np.ones(30_000), step=1).save(folder / "c")
    before = files(folder)
    while True:
        tf.random.set_seed(8)
        root = Checkpoint(v=tf.Variable([0.0, 0.0, 0.0]), a=np.zeros(30_000), step=0)

        def restore(root: Checkpoint = root) -> None:
            if managed:
                assert CheckpointManager(root, folder, max_to_keep=2).restore_or_initialize()
            else:
                root.restore(path).assert_consumed()

        def check(done: bool, root: Checkpoint = root) -> None:
            assert root.step == done == root.a[7] == float(root.v[0]), "half of a state"
            assert root.save_counter == done
            assert files(folder) == before, "another folder"

        yield restore, check


def looks(folder: Path) -> Iterator[Case]:
    """The question for the latest checkpoint."""
    path = Checkpoint(step=1).save(folder / "c")
    before = files(folder)
    found: list[str | None] = []

    def look() -> None:
        check_unused(WHO, folder / "absent.jsonl")
        found.append(latest_checkpoint(folder))

    def check(done: bool) -> None:
        assert found == ([path] if done else []), f"found {found}"
        assert files(folder) == before, "another folder"
        found.clear()

    while True:
        yield look, check


def deletions(folder: Path) -> Iterator[Case]:
    """The deletion of all checkpoints: they are listed, or gone."""
    while True:
        Checkpoint(step=1).save(folder / "c")

        def forget() -> None:
            _state_file.forget_all(folder)

        def check(done: bool) -> None:
            for path in _state_file.all_checkpoints(folder):
                assert not done
                Checkpoint(step=0).restore(path)
            _state_file.forget_all(folder)
            assert {path.name for path in folder.iterdir()} <= {"checkpoint"}, "left over"

        yield forget, check


RECORDS: list[dict[str, Any]] = [
    {"step": step, "epoch": 1, "loss": 1.0 / step, "examples": 7} for step in range(1, 40)
]


def logs(folder: Path, resumed: int | None) -> Iterator[Case]:
    """A log that is begun or resumed, and written to: it has all records that were flushed."""
    path = folder / "log.jsonl"

    def write() -> None:
        read = None if resumed is None else functools.partial(known_records, after=(resumed, 0))
        log = RunLog(WHO, path, read)
        try:
            for record in RECORDS[resumed or 0 :]:
                log.add(record)
            log.flush()
        finally:
            log.close()

    def check(done: bool) -> None:
        known = len(RECORDS) if done else resumed or 0
        if known:
            log = RunLog(WHO, path, functools.partial(known_records, after=(known, 0)))
            assert log.records == RECORDS[:known], "other records"
            log.close()

    while True:
        if resumed is None:
            path.unlink(missing_ok=True)
        else:
            log = RunLog(WHO, path)
            for record in RECORDS[: resumed + 2]:
                log.add(record)
            log.close()
        yield write, check


def data(folder: Path, packed: bool) -> Iterator[Case]:
    """The files of a data set."""
    import gzip

    content = bytes([0, 0, 8, 1, 0, 3, 0, 0]) + bytes(range(256)) * (3 * 256)
    digest = hashlib.sha256(content).hexdigest()
    specs = [IdxFile(f"part-{i}", (196_608,), digest, "") for i in range(4)]
    for spec in specs:
        ending, bytes_ = (".gz", gzip.compress(content)) if packed else ("", content)
        (folder / f"{spec.name}{ending}").write_bytes(bytes_)
    dataset = _locate.IdxDataset("parts", tuple(specs), ("http://127.0.0.1:9/",))  # type: ignore[arg-type]
    before = files(folder)
    found: list[Any] = []

    def check(done: bool) -> None:
        assert len(found) == done
        assert files(folder) == before, "another folder"
        found.clear()

    while True:
        yield lambda: found.append(_locate.load(dataset, folder)), check


ACTIONS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "save": lambda folder: saves(folder, managed=False),
    "managed save": lambda folder: saves(folder, managed=True),
    "restore": lambda folder: restores(folder, managed=False),
    "managed restore": lambda folder: restores(folder, managed=True),
    "latest": looks,
    "deletion": deletions,
    "new log": lambda folder: logs(folder, None),
    "resumed log": lambda folder: logs(folder, 20),
    "data": lambda folder: data(folder, packed=False),
    "packed data": lambda folder: data(folder, packed=True),
}


def fail_at_every_call(name: str, code: int) -> tuple[Counter[str], Counter[str], list[str]]:
    """Which calls failed with a refusal, which without one, and what was wrong."""
    library = ctypes.CDLL(None)
    library.faults_failed.restype = ctypes.c_char_p
    refused: Counter[str] = Counter()
    absorbed: Counter[str] = Counter()
    faults = []
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "inside"
        folder.mkdir()
        for number, (action, check) in enumerate(ACTIONS[name](folder), 1):
            error: Exception | None = None
            library.faults_arm(os.fsencode(folder), ctypes.c_long(number), code)
            try:
                action()
            except Exception as raised:
                error = raised
            library.faults_disarm()
            call = (library.faults_failed() or b"").decode()
            where = f"{name}, {os.strerror(code)} at call {number} ({call})"
            if error is not None:
                refused[call] += 1
                if fault := fault_of(error) or not (
                    isinstance(error, OSError) and error.errno == code
                ):
                    faults.append(f"{where}: {fault}: {error!r}")
            elif call:
                absorbed[call] += 1
            try:
                check(error is None)
            except Exception as wrong:
                faults.append(f"{where}: {wrong!r:.300}")
            if not call:
                return refused, absorbed, faults
    raise AssertionError


def main() -> int:
    """Returns how many faults there were."""
    if "faults" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as folder:
            preload = {"LD_PRELOAD": str(build(Path(folder)))}
            command = [sys.executable, *sys.argv]
            return subprocess.run(command, env={**os.environ, **preload}, check=False).returncode
    worst = 0
    for name in sys.argv[1:] or ACTIONS:
        for code in CODES:
            refused, absorbed, faults = fail_at_every_call(name, code)
            print(
                f"{name}, {errno.errorcode[code]}: {refused.total()} refused, "
                f"{absorbed.total()} absorbed {dict(absorbed)}, {len(faults)} faults"
            )
            for fault in faults[:12]:
                print("   ", fault)
            sys.stdout.flush()
            worst += len(faults)
    return min(worst, 125)


if __name__ == "__main__":
    sys.exit(main())
