"""Checkpoint folders: what comes back, and what happens when the disk or the process fails."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from samegrad.train import _files
from samegrad.train._safetensors import DTYPE_NAMES
from samegrad.train._storage import CorruptCheckpointError, load, save

HERE = Path(__file__).parent
DTYPES = sorted(DTYPE_NAMES.keys() - {"bfloat16"})  # Hypothesis draws none of these

ARRAYS = {"w": np.arange(6.0).reshape(2, 3), "n": np.array(3), "on": np.array([True, False])}
VALUES = {"step": 7, "rate": 0.1, "name": "é", "none": None, "list": [1, [2.5, {"a": False}]]}


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()  # NaN and -0.0 too


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@settings(max_examples=40, deadline=None)  # the disk sets the pace
@given(
    array=hnp.arrays(
        st.sampled_from(DTYPES).map(np.dtype),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    ),
    order=st.sampled_from(["C", "F"]),
    big_endian=st.booleans(),
    step=st.integers(1, 3),
)
def test_every_array_comes_back(tmp_path_factory, array, order, big_endian, step):
    folder = tmp_path_factory.mktemp("save")
    given_array = np.asarray(array, order=order)
    if big_endian:
        given_array = given_array.astype(array.dtype.newbyteorder(">"))
    if array.ndim:
        array, given_array = array[::-step], given_array[::-step]
    save(folder / "c", {"a/b": given_array, "other": np.float32(1.5)}, {})
    arrays, values = load(folder / "c")
    assert_same(arrays["a/b"], array)
    assert_same(arrays["other"], np.array(1.5, np.float32))
    assert values == {}
    assert arrays["a/b"].flags.writeable


@settings(max_examples=40, deadline=None)  # the disk sets the pace
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=6,
        ),
    )
)
def test_every_value_comes_back(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("save")
    save(folder / "c", {}, values)
    assert load(folder / "c") == ({}, values)


def test_names_are_free(tmp_path):
    arrays = {"": np.ones(1), "a b/ü%": np.zeros(2), "x" * 300: np.zeros(0)}
    save(tmp_path / "c", arrays, {"": ""})
    found, _ = load(tmp_path / "c")
    assert set(found) == set(arrays)


def test_equal_states_make_equal_files(tmp_path):
    save(tmp_path / "a", ARRAYS, VALUES)
    save(tmp_path / "b", dict(reversed(ARRAYS.items())), dict(reversed(VALUES.items())))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_other_readers_of_safetensors_can_read_it(tmp_path):
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    save(tmp_path / "c", ARRAYS, VALUES)
    (path,) = (tmp_path / "c").glob("*.safetensors")
    for name, array in safetensors_numpy.load_file(path).items():
        assert_same(array, ARRAYS[name])


def test_a_newer_checkpoint_replaces_an_older_one(tmp_path):
    save(tmp_path / "deep" / "er" / "c", ARRAYS, VALUES)
    save(tmp_path / "deep" / "er" / "c", {"w": np.zeros(2)}, {})
    arrays, values = load(tmp_path / "deep" / "er" / "c")
    assert_same(arrays["w"], np.zeros(2))
    assert set(arrays) == {"w"}
    assert values == {}
    assert len(list((tmp_path / "deep" / "er" / "c").iterdir())) == 2
    assert not hidden(tmp_path / "deep" / "er")


def test_what_cannot_be_stored(tmp_path):
    with pytest.raises(TypeError, match=r"\[checkpoint\] arrays must be .*object for 'bad'"):
        save(tmp_path / "c", {"bad": np.array([None])}, {})
    with pytest.raises(TypeError, match=r"\[checkpoint\] values must be .*set"):
        save(tmp_path / "c", {}, {"bad": {1}})
    assert not list(tmp_path.iterdir())


def test_missing_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\[checkpoint\] .*ckpt-9 does not exist"):
        load(tmp_path / "ckpt-9")
    with pytest.raises(FileNotFoundError, match=r"manifest\.json: .* does not"):
        load(tmp_path)


@pytest.mark.parametrize("pattern", ["*.safetensors", "manifest.json"])
def test_every_truncation_is_seen(tmp_path, pattern):
    save(tmp_path / "c", ARRAYS, VALUES)
    (path,) = (tmp_path / "c").glob(pattern)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptCheckpointError, match=r"\[checkpoint\] .*damaged"):
            load(tmp_path / "c")
    path.write_bytes(content)
    load(tmp_path / "c")


@pytest.mark.parametrize("pattern", ["*.safetensors", "manifest.json"])
def test_every_flipped_byte_is_seen(tmp_path, pattern):
    save(tmp_path / "c", ARRAYS, VALUES)
    (path,) = (tmp_path / "c").glob(pattern)
    content = path.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 << (position % 8)
        path.write_bytes(changed)
        try:
            arrays, values = load(tmp_path / "c")
        except (CorruptCheckpointError, FileNotFoundError):
            continue
        # Only white space or the spelling of JSON was hit: the state is the same.
        assert values == VALUES
        for name, array in ARRAYS.items():
            assert_same(arrays[name], array)


def test_missing_array_file_and_foreign_version(tmp_path):
    save(tmp_path / "c", ARRAYS, VALUES)
    (path,) = (tmp_path / "c").glob("*.safetensors")
    path.unlink()
    with pytest.raises(CorruptCheckpointError, match="must exist"):
        load(tmp_path / "c")
    manifest = tmp_path / "c" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(CorruptCheckpointError, match="version 1: got 'samegrad-checkpoint', 99"):
        load(tmp_path / "c")


def test_an_array_of_another_checkpoint_is_seen(tmp_path):
    save(tmp_path / "a", {"w": np.zeros(3)}, {})
    save(tmp_path / "b", {"w": np.ones(3)}, {})
    (a,) = (tmp_path / "a").glob("*.safetensors")
    (b,) = (tmp_path / "b").glob("*.safetensors")
    os.replace(b, a)
    with pytest.raises(CorruptCheckpointError, match=r"array 'w' as .*blake2b"):
        load(tmp_path / "a")


@pytest.mark.parametrize("failing", ["mkdir", "write", "fsync", "rename", "replace"])
def test_a_full_disk_changes_nothing(tmp_path, monkeypatch, failing):
    save(tmp_path / "c", ARRAYS, {"n": 1})

    def fail(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / ("new" if failing == "rename" else "c")
    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(OSError, match=r"\[checkpoint\] cannot save .*No space.*free") as caught:
            save(target, {"w": np.zeros(9)}, {"n": 2})
    assert caught.value.errno == errno.ENOSPC
    assert load(tmp_path / "c")[1] == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert len(list((tmp_path / "c").iterdir())) == 2


def test_a_file_size_limit_of_the_system(tmp_path):
    save(tmp_path / "c", ARRAYS, {"n": 1})
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, old_limit[1]))
        with pytest.raises(OSError, match="bytes are needed") as caught:
            save(tmp_path / "new", {"w": np.zeros(10_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert caught.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_disk_that_takes_little_at_a_time(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, view: write(fd, view[:7]))
    save(tmp_path / "c", ARRAYS, VALUES)
    assert_same(load(tmp_path / "c")[0]["w"], ARRAYS["w"])


def run_python(code: str, *arguments: object, **options: object) -> str:
    command = [sys.executable, *([] if Path(code).exists() else ["-c"]), code]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_without_permission():
    code = (
        "import os, sys, numpy as np\n"
        "from samegrad.train import _storage\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: _storage.save(sys.argv[1] + '/c', {'w': np.zeros(2)}, {})\n"
        "except PermissionError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        message = run_python(code, folder)
        assert not os.listdir(folder)
        os.chmod(folder, 0o755)
    assert "[checkpoint] cannot save" in message
    assert "may write to" in message


@pytest.mark.parametrize("scenario", ["new_folder", "same_folder", "manager"])
def test_killed_at_every_step(tmp_path, scenario):
    kills = int(run_python(str(HERE / "killing.py"), scenario, tmp_path))
    assert kills >= 12  # else the steps were not seen
    assert not hidden(tmp_path)


def test_leftovers_of_the_dead_go_and_work_of_the_living_stays(tmp_path):
    dead = tmp_path / ".samegrad-tmp-dead"
    dead.mkdir()
    (dead / "arrays-1.safetensors").write_bytes(b"half")
    with _files.temporary_folder(tmp_path) as living:
        save(tmp_path / "c", ARRAYS, VALUES)
        assert hidden(tmp_path) == [living.name]
    assert not hidden(tmp_path)
