"""Changed checkpoints of TensorFlow, as failing disks and hostile programs make them.

Run as a command it makes any number of them: `python crafting_bundles.py --count 10000 --seed 0`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import write_tensorflow_checkpoints as programs
from bundles import GRAPH_KEY, block, number, part, table, text, varint
from crafting import change_bytes, refusal_of

import samegrad as tf
from samegrad.train import _files
from samegrad.train._string_table import read_table

NAMES = ("keras3-adam-1", "keras2-slots-1", "module", "names", "sharded")
MOST_MEMORY = 8 << 20  # far more than twice a file, far less than what a forged size asks for
HOSTILE = (0, 1, 2, 63, 127, 128, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1)


class Model(tf.Module):
    """Variables to restore into, under all names that the checkpoints have at their roots."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(np.zeros((3, 4), np.float32))
        self.step = tf.Variable(0, dtype="int64")
        self.count = tf.Variable(0, dtype="int64")
        self.parts = [tf.Variable(np.zeros(2)), tf.Variable(0, dtype="int32")]


def change_message(content: bytes, random: Random) -> bytes:
    """Return a message with a hostile number, a field said twice, or changed bytes."""
    kind = random.randrange(4)
    if kind == 0:
        return content + number(random.randrange(9), random.choice(HOSTILE))
    if kind == 1:
        return content + part(random.randrange(9), random.randbytes(random.choice((0, 1, 9, 300))))
    if kind == 2:
        at = random.randrange(len(content) + 1)
        return content[:at] + varint(random.choice(HOSTILE)) + content[at + 1 :]
    return change_bytes(content, random)


def entries_of(index: bytes) -> dict[bytes, bytes]:
    """Return the entries of an index by key."""
    return {key: bytes(value) for key, value in read_table(memoryview(index)).items()}


def change_entries(index: bytes, random: Random) -> bytes:
    """Return an index whose checksums are right and whose entries are not."""
    entries = entries_of(index)
    key = random.choice(sorted(entries))
    kind = random.randrange(6)
    if kind == 0:
        entries[change_bytes(key, random)] = entries[key]
    elif kind == 1:
        del entries[key]
    elif kind == 2:
        entries[key] = entries[random.choice(sorted(entries))]
    else:
        entries[key] = change_message(entries[key], random)
    if random.random() < 0.9:
        entries = dict(sorted(entries.items()))
    return table(block(entries, random.choice((0, 0, 0, 0, 0, 0, 0, 1))))


def change_graph(prefix: Path, random: Random) -> None:
    """Change the object graph and put it, with right checksums, behind the other data."""
    graph = tf.train.load_checkpoint(prefix).get_tensor(GRAPH_KEY.decode())[()]
    tensor = text(change_message(graph, random))
    (data,) = prefix.parent.glob(f"{prefix.name}.data-00000-*")
    content = data.read_bytes()
    data.write_bytes(content + tensor.content)
    index = prefix.with_name(f"{prefix.name}.index")
    entries = {
        key: bytes(value) for key, value in read_table(memoryview(index.read_bytes())).items()
    }
    entry = number(1, tensor.dtype) + part(2, b"") + number(4, len(content))
    entry += number(5, len(tensor.content)) + varint(6 << 3 | 5)
    entries[GRAPH_KEY] = entry + tensor.checksum.to_bytes(4, "little")  # type: ignore[union-attr]
    index.write_bytes(table(block(entries)))


def mutate(prefix: Path, random: Random) -> str:
    """Change one file of a checkpoint; say what was changed."""
    index = prefix.with_name(f"{prefix.name}.index")
    kind = random.randrange(5)
    if kind == 0:
        index.write_bytes(change_bytes(index.read_bytes(), random))
        return "index"
    if kind == 1:
        data = random.choice(sorted(prefix.parent.glob(f"{prefix.name}.data-*")))
        data.write_bytes(change_bytes(data.read_bytes(), random))
        return "data"
    if kind < 4 or prefix.name == "names":
        index.write_bytes(change_entries(index.read_bytes(), random))
        return "entries"
    change_graph(prefix, random)
    return "graph"


def check_ours(refusal: Exception) -> None:
    """Check that an error is one of ours, and of a length that can be read."""
    assert str(refusal).startswith("[checkpoint] "), f"{refusal!r:.2000}"
    assert len(str(refusal)) < 1000, f"{refusal!s:.2000}"


def restore_all(prefix: Path) -> str:
    """Restore a checkpoint; say how it ended."""
    root = Model()
    before = [v.numpy() for v in root.variables]
    refusal = refusal_of(lambda: tf.train.Checkpoint(root).read(prefix).expect_partial())
    if refusal is None:
        return "restored"
    check_ours(refusal)
    after = [v.numpy() for v in root.variables]
    assert all(map(np.array_equal, before, after)), "a refused checkpoint changed something"
    return "not restored"


def read_all(prefix: Path) -> dict[str, Any]:
    """Read all tensors of a checkpoint."""
    reader = tf.train.load_checkpoint(prefix)
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def use_one(prefix: Path, random: Random, expected: dict[str, Any]) -> str:
    """Change one file, restore and read it; say how it ended."""
    changed = mutate(prefix, random)
    outcome = f"{changed} {restore_all(prefix)}"
    found: dict[str, Any] = {}
    refusal = refusal_of(lambda: found.update(read_all(prefix)))
    if refusal is not None:
        check_ours(refusal)
        return f"{outcome}, not read"
    if changed in ("index", "data"):  # checksums tell, or the bytes mean nothing
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[key], expected[key]) for key in found)
    return f"{outcome}, read"


def run(count: int, seed: int) -> Counter[str]:
    """Make and read so many changed checkpoints; only their own files may be opened."""
    outcomes: Counter[str] = Counter()
    expected = {name: read_all(programs.FOLDER / name) for name in NAMES}
    opened: set[Path] = set()
    open_file = _files.open_file

    def watched(path: Path) -> Any:
        opened.add(Path(path))
        return open_file(path)

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk has to wait
    _files.open_file = watched
    tracemalloc.start()
    try:
        for index in range(count):
            random = Random(f"{seed} {index}")
            name = random.choice(NAMES)
            with tempfile.TemporaryDirectory(dir=memory) as parent:
                for path in programs.FOLDER.glob(f"{name}.*"):
                    shutil.copy(path, parent)
                tracemalloc.reset_peak()
                held = tracemalloc.get_traced_memory()[0]
                outcomes[use_one(Path(parent, name), random, expected[name])] += 1
                peak = tracemalloc.get_traced_memory()[1] - held
                assert peak < MOST_MEMORY, f"{peak} bytes"
                assert all(path.parent == Path(parent) for path in opened), opened
                opened.clear()
    except BaseException:
        print(f"seed {seed}, number {index}")
        raise
    finally:
        tracemalloc.stop()
        _files.open_file = open_file
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(dict(run(given.count, given.seed)))
