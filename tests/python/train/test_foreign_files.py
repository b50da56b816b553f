"""What a checkpoint or a state file says is data: it leads nowhere and takes no memory."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import crafting
import numpy as np
import pytest

import samegrad as tf
from samegrad.train import (
    Checkpoint,
    CheckpointManager,
    CorruptCheckpointError,
    _storage,
    latest_checkpoint,
)
from samegrad.train._storage import load, save

PATHS = [
    "../x",
    "/etc/passwd",
    "a/b",
    "..",
    ".",
    "",
    "a\0b",
    "\ud800",
    "checkpoint",
    7,
    None,
    ["x"],
]


def state_file(folder: Path, **changes: Any) -> None:
    state = {"latest": "ckpt-1", "checkpoints": ["ckpt-1"], "obsolete": []}
    (folder / "checkpoint").write_text(json.dumps({**state, **changes}))


def change_manifest(checkpoint: Path, **changes: Any) -> None:
    path = checkpoint / "manifest.json"
    path.write_bytes(crafting.rehash({**json.loads(path.read_text()), **changes}))


def folder_with(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text("mine")
    return path


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("where", ["checkpoints", "obsolete"])
def test_a_state_file_that_names_paths_is_refused(tmp_path, name, where):
    mine = folder_with(tmp_path / "x", "notes.txt")
    root = Checkpoint(w=np.ones(2))
    root.save(tmp_path / "run" / "ckpt")
    state_file(tmp_path / "run", **{where: ["ckpt-1", name]})
    for use in (
        lambda: latest_checkpoint(tmp_path / "run"),
        lambda: root.save(tmp_path / "run" / "ckpt"),
        lambda: CheckpointManager(root, tmp_path / "run", max_to_keep=1).save(),
    ):
        with pytest.raises(CorruptCheckpointError, match=r"^\[checkpoint\] .*names of checkpoints"):
            use()
    assert (mine / "notes.txt").read_text() == "mine"
    assert root.save_counter == 1


@pytest.mark.parametrize("where", ["checkpoints", "obsolete"])
def test_only_what_is_a_checkpoint_and_nothing_else_is_deleted(tmp_path, where):
    root = Checkpoint(w=np.ones(2))
    manager = CheckpointManager(root, tmp_path, max_to_keep=1)
    manager.save()
    arrays = "arrays-0123456789abcdef.safetensors"
    kept = [
        folder_with(tmp_path / "papers", "notes.txt"),
        folder_with(tmp_path / "site", "manifest.json"),
        folder_with(tmp_path / "more", "manifest.json", arrays, "notes.txt"),
    ]
    folder_with(tmp_path / "spent", "manifest.json", arrays)
    outside = folder_with(tmp_path.parent / f"{tmp_path.name}-outside", "manifest.json", arrays)
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "file").write_text("mine")
    names = ["papers", "site", "more", "spent", "link", "file"]
    state_file(tmp_path, **{where: names})
    manager.save()
    manager.save()
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["checkpoint", "ckpt-3", "file", "link", *(path.name for path in kept)]
        + (["ckpt-1"] if where == "checkpoints" else [])
    )
    assert sorted(os.listdir(outside)) == [arrays, "manifest.json"]


@pytest.mark.parametrize(
    "name", ["../other.safetensors", "/etc/passwd", "manifest.json", "", 3, None]
)
def test_a_manifest_names_an_array_file_of_its_folder(tmp_path, name):
    save(tmp_path / "c", {"w": np.ones(2)}, {})
    change_manifest(tmp_path / "c", arrays_file=name)
    with pytest.raises(CorruptCheckpointError, match="must name an array file of its folder"):
        load(tmp_path / "c")


@pytest.mark.parametrize("pattern", ["arrays-*", "manifest.json"])
def test_links_and_pipes_are_no_files_of_a_checkpoint(tmp_path, pattern):
    save(tmp_path / "c", {"w": np.ones(2)}, {})
    (path,) = (tmp_path / "c").glob(pattern)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptCheckpointError, match="a symbolic link"):
        load(tmp_path / "c")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CorruptCheckpointError, match="no regular file"):
        load(tmp_path / "c")


def test_a_save_does_not_follow_a_link(tmp_path):
    target = folder_with(tmp_path / "data", "arrays-0123456789abcdef.safetensors")
    (tmp_path / "ckpt-1").symlink_to(target)
    with pytest.raises(OSError, match=r"cannot save .*ckpt-1: it is a symbolic link"):
        Checkpoint(w=np.ones(2)).save(tmp_path / "ckpt")
    assert os.listdir(target) == ["arrays-0123456789abcdef.safetensors"]


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


ENTRY = {"dtype": "float64", "shape": [2], "blake2b": "0" * 64}
CRAFTED = {
    "deep": {"values": {"values": deep(300)}},
    "wrong sections": {"values": {"values": [], "aliases": {}, "providers": {}}},
    "values in values": {"values": {"values": {"a": []}, "aliases": {}, "providers": {}}},
    "aliases to numbers": {"values": {"values": {}, "aliases": {"a": 1}, "providers": {}}},
    "no sections": {"values": {}},
    "a huge shape": {"arrays": {"w": {**ENTRY, "shape": [2**40, 2**40]}}},
    "beyond 64 bits": {"arrays": {"w": {**ENTRY, "shape": [10**30]}}},
    "a negative shape": {"arrays": {"w": {**ENTRY, "shape": [-1]}}},
    "too many axes": {"arrays": {"w": {**ENTRY, "shape": [1] * 99}}},
    "objects": {"arrays": {"w": {**ENTRY, "dtype": "object"}}},
    "a long name": {"values": {"values": {"a/" * 400_000: 0}, "aliases": {}, "providers": {}}},
    "a long tail": {
        "values": {"values": {"a" * 400_000 + "/b" * 60: 0}, "aliases": {}, "providers": {}}
    },
    "many names": {
        "values": {
            "values": {f"{i}" + "/a" * 60: 0 for i in range(5000)}, "aliases": {}, "providers": {}
        }
    },
    "many small values": {"values": {"values": {"a": 0}, "aliases": {}, "x": [{}] * 500_000}},
    "many arrays": {"arrays": {f"{i}": ENTRY for i in range(80_000)}},
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_manifest_is_refused_within_64_mib(tmp_path, name):
    root = Checkpoint(w=np.ones(2), step=3)
    path = Path(root.save(tmp_path / "ckpt"))
    content = {**json.loads((path / "manifest.json").read_text()), **CRAFTED[name]}
    if name == "deep":
        text = json.dumps(content, indent=1, sort_keys=True).encode()
        (path / "manifest.json").write_bytes(text)
    else:
        (path / "manifest.json").write_bytes(crafting.rehash(content))
    del content
    root.step = 4
    tracemalloc.start()
    try:
        with pytest.raises(CorruptCheckpointError, match=r"^\[checkpoint\] .*: got ") as caught:
            root.restore(path)
        assert tracemalloc.get_traced_memory()[1] <= crafting.MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 1000
    assert root.step == 4
    assert root.w.tolist() == [1, 1]


@pytest.mark.parametrize("pattern", ["arrays-*", "manifest.json", "../checkpoint"])
def test_a_file_blown_up_takes_no_memory(tmp_path, pattern):
    root = Checkpoint(w=np.ones(2))
    path = Path(root.save(tmp_path / "ckpt"))
    file = next(path.glob(pattern)) if "*" in pattern else path / pattern
    os.truncate(file, 1 << 40)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptCheckpointError, match="1099511627776"):
            root.restore(latest_checkpoint(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "providers",
    [
        {"random_state": {"seed": 5}},
        {"random_state": {"seed": 5, "step": -1, "ordinal": 0, "created": 0}},
        {"random_state": {"seed": 5, "step": 10**30, "ordinal": 0, "created": 0}},
        {"random_state": 5},
        {"isa": 5},
    ],
)
def test_a_provider_that_cannot_take_its_value_changes_nothing(tmp_path, providers):
    from samegrad import _core

    root = Checkpoint(w=np.ones(2), step=3)
    path = Path(root.save(tmp_path / "ckpt"))
    values = json.loads((path / "manifest.json").read_text())["values"]
    change_manifest(path, values={**values, "providers": {**values["providers"], **providers}})
    root.w, root.step = np.zeros(2), 9
    before = _core.random_state().seed
    with pytest.raises(CorruptCheckpointError, match="that can be restored: got"):
        root.restore(path)
    assert root.step == 9
    assert root.w.tolist() == [0, 0]
    assert root.save_counter == 1
    assert _core.random_state().seed == before


@pytest.mark.parametrize("name", ["position", "epoch", "seed"])
@pytest.mark.parametrize("value", [-1, 0.5, 2**63, 10**30])
def test_a_place_in_the_data_that_cannot_be_changes_nothing(tmp_path, name, value):
    iterator = iter(tf.data.Dataset.range(9))
    next(iterator)
    path = Path(Checkpoint(data=iterator).save(tmp_path / "ckpt"))
    values = json.loads((path / "manifest.json").read_text())["values"]
    change_manifest(path, values={**values, "values": {**values["values"], f"data/{name}": value}})
    root = Checkpoint(data=iter(tf.data.Dataset.range(9)), w=np.zeros(1))
    with pytest.raises(ValueError, match=rf"^\[checkpoint\] .*{name} must be a whole number"):
        root.restore(path)
    assert int(next(root.data)) == 0


@pytest.mark.parametrize("count", [-1, "a/b", True, None, 1.5])
def test_a_count_of_saves_that_is_none_is_damage(tmp_path, count):
    path = Path(Checkpoint(w=np.ones(2)).save(tmp_path / "ckpt"))
    values = json.loads((path / "manifest.json").read_text())["values"]
    change_manifest(path, values={**values, "values": {**values["values"], "save_counter": count}})
    root = Checkpoint(w=np.zeros(2))
    with pytest.raises(CorruptCheckpointError, match=r"must hold a count of saves: got "):
        root.restore(path)
    assert root.w.tolist() == [0, 0] and root.save_counter == 0


@pytest.mark.parametrize(("stored", "present"), [("3", 3), (3, "3"), (True, 3), (1.5, False)])
def test_a_value_of_another_kind_is_refused(tmp_path, stored, present):
    path = Checkpoint(w=np.ones(2), step=stored).save(tmp_path / "ckpt")
    root = Checkpoint(w=np.zeros(2), step=present)
    with pytest.raises(ValueError, match=r"^\[checkpoint\] values .* of their kind: 'step' is"):
        root.restore(path)
    assert root.w.tolist() == [0, 0]


def test_what_could_not_be_read_is_not_written(tmp_path):
    nested: Any = {"w": Checkpoint(w=np.ones(1))}
    for _ in range(70):
        nested = {"a": nested}
    with pytest.raises(ValueError, match=r"^\[checkpoint\] objects may hang 64 levels"):
        Checkpoint(nested=nested)
    with pytest.raises(ValueError, match=r"^\[checkpoint\] values may be nested 64 levels deep"):
        save(tmp_path / "c", {}, {"deep": deep(99)})
    with pytest.raises(ValueError, match=r"^\[checkpoint\] the list of names .* got"):
        save(tmp_path / "c", {}, {"many": list(range(500_000))})
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_manager_is_a_name(tmp_path):
    with pytest.raises(ValueError, match=r"a name inside the directory: got '\.\./x'"):
        CheckpointManager(Checkpoint(), tmp_path, 1, checkpoint_name="../x")


def test_some_thousand_changed_files():
    outcomes = crafting.run(1000, seed=0)
    assert outcomes["restored"] > 50  # spaces, unused fields
    assert outcomes["CorruptCheckpointError"] > 300
    assert outcomes["data refused"] > 50 and outcomes["log refused"] > 50
    assert outcomes["log read"] > 0  # a last line that is cut short, spaces
    assert _storage.MOST_BYTES < crafting.MOST_MEMORY
