"""Changed checkpoints, data files and logs, as foreign programs and failing disks make them.

Run as a command it makes any number of them: `python crafting.py --count 100000 --seed 0`.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from samegrad._keras.datasets._idx import IdxError, IdxFile, read_idx
from samegrad.cli._errors import CommandError
from samegrad.cli._progress import WHO, check_plotted, known_records
from samegrad.cli._records import RunLog
from samegrad.train import Checkpoint, _state_file, _storage

MOST_MEMORY = 64 << 20
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, -(10**30), 0.5, float("nan"), float("inf"), "", ".",
    "..", "../x", "/etc", "a/b", "\0", "\ud800", "é" * 300, "checkpoint", "a/" * 5000, [], {}, [[]],
    [None], {"": None}, [2**40, 2**40], [10**30], ["x"] * 1000,
    "arrays-0123456789abcdef.safetensors",
)  # fmt: skip


def rehash(manifest: dict[str, Any]) -> bytes:
    """A manifest with the hash that belongs to it, whoever has changed it."""
    content = {name: value for name, value in manifest.items() if name != "blake2b"}
    digest = _storage._digest(json.dumps(content, indent=1, sort_keys=True).encode())
    return json.dumps({**content, "blake2b": digest}, indent=1, sort_keys=True).encode()


def objects() -> Checkpoint:
    """What is saved and restored into."""
    return Checkpoint(
        w=np.arange(12.0).reshape(3, 4),
        n=np.arange(5),
        on=np.array([True, False]),
        step=3,
        name="x",
    )


def change_json(value: Any, random: Random) -> Any:
    """The value with something hostile in one place."""
    if random.random() < 0.25 or not isinstance(value, (dict, list)) or not value:
        return random.choice(HOSTILE)
    if isinstance(value, list):
        place = random.randrange(len(value))
        return [change_json(v, random) if i == place else v for i, v in enumerate(value)]
    name = random.choice(sorted(value))
    changed = dict(value)
    if random.random() < 0.15:
        changed[str(random.choice(HOSTILE))] = changed.pop(name)
    elif random.random() < 0.1:
        del changed[name]
    else:
        changed[name] = change_json(changed[name], random)
    return changed


def change_bytes(content: bytes, random: Random) -> bytes:
    """The bytes with some flipped, cut off, put in, or said twice."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        at = random.randrange(len(changed) + 1)
        kind = random.randrange(5)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del changed[at:]
        elif kind == 2:
            changed[at:at] = random.randbytes(random.choice((1, 8, 1000)))
        elif kind == 3:
            changed[at:at] = changed[max(0, at - random.randrange(1, 200)) : at]
        else:
            changed[at:at] = random.choice((b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"\0" * 99))
    return bytes(changed)


def mutate(folder: Path, random: Random) -> bool:
    """Changes one file of a folder with checkpoints; says whether hashes can tell."""
    checkpoint = folder / "ckpt-2"
    manifest, state = checkpoint / "manifest.json", folder / "checkpoint"
    (arrays,) = checkpoint.glob("arrays-*")
    kind = random.randrange(5)
    if kind == 0:
        manifest.write_bytes(change_bytes(manifest.read_bytes(), random))
    elif kind == 1:
        arrays.write_bytes(change_bytes(arrays.read_bytes(), random))
    elif kind == 2:
        state.write_bytes(change_bytes(state.read_bytes(), random))
    elif kind == 3:
        state.write_text(json.dumps(change_json(json.loads(state.read_text()), random)))
    else:
        manifest.write_bytes(rehash(change_json_of(manifest, random)))
    return kind != 4


def change_json_of(manifest: Path, random: Random) -> dict[str, Any]:
    while True:
        changed = change_json(json.loads(manifest.read_text()), random)
        if isinstance(changed, dict):
            return changed


def use(folder: Path, expected: dict[str, Any] | None) -> str:
    """Restores and saves; says how it ended, once nothing is wrong.

    Raises:
        AssertionError: An altered value was loaded, something else was changed or deleted, or a
            refusal is not ours.
    """
    root = objects()
    root.w[...] = 7.0
    last = folder / "ckpt-2"
    before = {name: np.copy(value) for name, value in root._objects.items()}
    refusal = refusal_of(lambda: root.restore(_state_file.latest_checkpoint(folder) or last))
    if refusal is not None:
        assert str(refusal).startswith("[checkpoint] "), refusal
        assert len(str(refusal)) < 3000, f"{refusal!s:.300}"
        if type(refusal) is ValueError:  # whole, but of other objects
            assert re.search(r"(stored is|got) .*[.;] \w+", str(refusal)), refusal
        for name, value in before.items():
            np.testing.assert_array_equal(root._objects[name], value)
    else:
        assert expected is None or same_values(root, expected)
    unsaved = refusal_of(lambda: root.save(folder / "ckpt"))
    assert unsaved is None or str(unsaved).startswith("[checkpoint] "), unsaved
    return "restored" if refusal is None else type(refusal).__name__


PIXELS = np.random.default_rng(0).integers(0, 256, (37, 5, 3), np.uint8)
HEADER = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in PIXELS.shape)
IDX = IdxFile("images", PIXELS.shape, hashlib.sha256(HEADER + PIXELS.tobytes()).hexdigest(), "")
LOG = [
    record
    for epoch in (1, 2)
    for record in (
        *({"epoch": epoch, "step": 3 * epoch + n - 3, "loss": 2.5 / (epoch + n), "examples": 7}
          for n in (1, 2, 3)),
        {"epoch": epoch, "step": 3 * epoch, "loss": 1.5, "accuracy": 50.0, "test_loss": 1.25,
         "test_accuracy": 62.5},
    )
]  # fmt: skip


def use_data(folder: Path, random: Random) -> str:
    """Reads a changed IDX file, plain or compressed: nobody gets other pixels."""
    whole, packed = HEADER + PIXELS.tobytes(), random.random() < 0.5
    if packed and random.random() < 0.5:  # a sound gzip file of something else
        content = gzip.compress(change_bytes(whole, random), mtime=0)
    else:
        content = change_bytes(gzip.compress(whole, mtime=0) if packed else whole, random)
    path = folder / ("images.gz" if packed else "images")
    path.write_bytes(content)
    pixels, refusal = attempt(lambda: read_idx(path, IDX), IdxError)
    if refusal is None:
        np.testing.assert_array_equal(pixels, PIXELS)
        return "data read"
    assert refusal.startswith("[datasets] ")
    return "data refused"


def attempt(action: Callable[[], Any], ours: type[Exception]) -> tuple[Any, str | None]:
    """What it gives, or what its refusal says."""
    try:
        return action(), None
    except ours as refusal:
        text = str(refusal)
    assert "got" in text and len(text) < 3000, f"{text:.300}"
    return None, text


def use_log(folder: Path, random: Random) -> str:
    """Resumes with a changed log: it is refused as it is, or has all steps and epochs."""
    lines = [json.dumps(record).encode() + b"\n" for record in LOG]
    if random.random() < 0.4:
        place = random.randrange(len(LOG))
        lines[place] = json.dumps(change_json(LOG[place], random)).encode() + b"\n"
        content = b"".join(lines)
    else:
        content = change_bytes(b"".join(lines), random)
    path = folder / "log.jsonl"
    path.write_bytes(content)
    read = functools.partial(known_records, after=(6, 2))
    log, refusal = attempt(lambda: RunLog(WHO, path, read), CommandError)
    if refusal is None:
        log.close()
        refusal = attempt(lambda: check_plotted(log.records, 6), CommandError)[1]
    else:
        assert path.read_bytes() == content
    if refusal is not None:
        assert refusal.startswith("[fashion-mnist] ")
        return "log refused"
    places = [(r["epoch"], r["step"], "test_loss" in r) for r in log.records]
    assert places == [(r["epoch"], r["step"], "test_loss" in r) for r in LOG]
    return "log read"


def refusal_of(action: Callable[[], object]) -> Exception | None:
    try:
        action()
    except (FileNotFoundError, ValueError) as error:
        return error
    return None


def same_values(root: Checkpoint, expected: dict[str, Any]) -> bool:
    return all(np.array_equal(root._objects[name], value) for name, value in expected.items())


def use_one(folder: Path, random: Random, expected: dict[str, Any]) -> str:
    """Changes one file, and reads it as its reader does; says how it ended."""
    kind = random.random()
    if kind < 0.15:
        return use_data(folder, random)
    if kind < 0.3:
        return use_log(folder, random)
    told_by_hashes = mutate(folder, random)
    return use(folder, expected if told_by_hashes else None)


def run(count: int, seed: int) -> Counter[str]:
    """Makes and uses so many changed folders."""
    outcomes: Counter[str] = Counter()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk has to wait
    with tempfile.TemporaryDirectory(dir=memory) as parent, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other kernels
        good = Path(parent, "good")
        root = objects()
        for _ in range(2):
            root.save(good / "ckpt")
        precious = Path(parent, "x", "arrays-0123456789abcdef.safetensors")
        precious.parent.mkdir()
        precious.write_text("mine")
        (good / "own").mkdir()
        (good / "own" / "notes.txt").write_text("mine")
        for number in range(count):
            random = Random(f"{seed} {number}")
            folder = Path(parent, "changed")
            shutil.copytree(good, folder)
            try:
                outcomes[use_one(folder, random, dict(root._objects))] += 1
            except BaseException:
                print(f"seed {seed}, number {number}")
                raise
            assert precious.read_text() == "mine", number
            assert (folder / "own" / "notes.txt").read_text() == "mine", number
            assert {path.name for path in Path(parent).iterdir()} == {"good", "x", "changed"}
            shutil.rmtree(folder)
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    tracemalloc.start()
    print(dict(run(given.count, given.seed)))
    peak = tracemalloc.get_traced_memory()[1]
    print(f"at most {peak / 2**20:.1f} MiB")
    assert peak <= MOST_MEMORY
