"""The IDX reader and the search for data files."""

from __future__ import annotations

import gzip
import hashlib
import struct
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samegrad._keras.datasets import _locate, fashion_mnist, mnist
from samegrad._keras.datasets._idx import IdxError, IdxFile, read_idx

NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
SHAPES = ((6, 4, 4), (6,), (2, 4, 4), (2,))


def encode(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def spec_of(name: str, content: bytes, shape: tuple[int, ...]) -> IdxFile:
    return IdxFile(name, shape, hashlib.sha256(content).hexdigest(), "md5:unused")


@pytest.fixture
def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.integers(0, 256, shape, np.uint8) for shape in SHAPES]


@pytest.fixture
def dataset(arrays: list[np.ndarray]) -> _locate.IdxDataset:
    files = [
        spec_of(name, encode(array), array.shape) for name, array in zip(NAMES, arrays, strict=True)
    ]
    return _locate.IdxDataset(
        name="tiny",
        files=(files[0], files[1], files[2], files[3]),
        mirrors=("http://127.0.0.1:9/",),  # the discard port: refused at once
        install_hint="run `apt install dataset-tiny`",
    )


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(_locate.DATA_DIR_VARIABLE, raising=False)


def write_files(folder: Path, arrays: list[np.ndarray], suffix: str = ".gz") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(NAMES, arrays, strict=True):
        content = encode(array)
        (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    return folder


def flat(loaded: _locate.Arrays) -> list[np.ndarray]:
    return [loaded[0][0], loaded[0][1], loaded[1][0], loaded[1][1]]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.booleans())
def test_any_shape_round_trips(tmp_path_factory, shape, compressed):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    content = encode(array)
    path = tmp_path_factory.mktemp("idx") / ("a.gz" if compressed else "a")
    path.write_bytes(gzip.compress(content) if compressed else content)
    result = read_idx(path, spec_of("a", content, tuple(shape)))
    np.testing.assert_array_equal(result, array)
    assert result.dtype == np.uint8 and result.flags.writeable and result.flags.owndata


@pytest.mark.parametrize("cut", [0, 1, 3, 9, 40, -9, -1])
def test_truncated_gzip_file(tmp_path, arrays, cut):
    content = encode(arrays[0])
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(content)[:cut])
    with pytest.raises(IdxError, match=r"\[datasets\] .*images\.gz must .*: got .*Remove the file"):
        read_idx(path, spec_of("images", content, arrays[0].shape))


def test_truncated_plain_file_names_both_lengths(tmp_path, arrays):
    content = encode(arrays[0])
    path = tmp_path / "images"
    path.write_bytes(content[:-5])
    with pytest.raises(IdxError, match="hold 96 bytes of data: got 91 bytes"):
        read_idx(path, spec_of("images", content, arrays[0].shape))


def test_longer_file(tmp_path, arrays):
    content = encode(arrays[0])
    path = tmp_path / "images"
    path.write_bytes(content + b"x")
    with pytest.raises(IdxError, match="hold 96 bytes of data: got more"):
        read_idx(path, spec_of("images", content, arrays[0].shape))


def test_every_flipped_bit_of_a_plain_file_is_seen(tmp_path):
    content = encode(np.arange(3, dtype=np.uint8))
    path = tmp_path / "labels"
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        with pytest.raises(IdxError, match="labels"):
            read_idx(path, spec_of("labels", content, (3,)))


def test_flipped_bits_of_a_compressed_file_never_give_other_data(tmp_path, arrays):
    content = encode(arrays[0])
    packed = gzip.compress(content)
    path = tmp_path / "images.gz"
    for bit in range(0, 8 * len(packed), 3):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        try:
            result = read_idx(path, spec_of("images", content, arrays[0].shape))
        except IdxError:
            continue
        np.testing.assert_array_equal(result, arrays[0])  # e.g. the time stamp was hit


def test_wrong_magic_number_names_both(tmp_path, arrays):
    path = tmp_path / "labels"
    path.write_bytes(encode(arrays[0]))
    with pytest.raises(IdxError, match=r"0x00000801 .*\(6,\): got magic number 0x00000803"):
        read_idx(path, spec_of("labels", encode(arrays[1]), arrays[1].shape))


def test_other_content_of_the_same_shape(tmp_path, arrays):
    path = tmp_path / "labels"
    path.write_bytes(encode(arrays[1] + np.uint8(1)))
    with pytest.raises(IdxError, match="SHA-256"):
        read_idx(path, spec_of("labels", encode(arrays[1]), arrays[1].shape))


@pytest.mark.parametrize("suffix", [".gz", ""])
@pytest.mark.parametrize("inner", ["", "tiny"])
def test_given_folder(tmp_path, dataset, arrays, suffix, inner):
    write_files(tmp_path / "data" / inner, arrays, suffix)
    loaded = flat(_locate.load(dataset, tmp_path / "data"))
    for result, array in zip(loaded, arrays, strict=True):
        np.testing.assert_array_equal(result, array)


def test_given_folder_wins_and_nothing_else_is_tried(tmp_path, dataset, arrays):
    write_files(_locate.cache_folder(dataset), arrays)
    with pytest.raises(FileNotFoundError, match="absent does not exist"):
        _locate.load(dataset, tmp_path / "absent")
    (write_files(tmp_path / "part", arrays) / f"{NAMES[2]}.gz").unlink()
    with pytest.raises(FileNotFoundError, match=f"part lacks {NAMES[2]}"):
        _locate.load(dataset, tmp_path / "part")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="got the file"):
        _locate.load(dataset, tmp_path / "file")


def test_order_of_folders(tmp_path, dataset, arrays, monkeypatch):
    system = write_files(tmp_path / "system", arrays)
    dataset = _locate.IdxDataset(dataset.name, dataset.files, dataset.mirrors, (system,))
    assert _locate._search(dataset)[0].parent == system
    cache = write_files(_locate.cache_folder(dataset), arrays)
    assert _locate._search(dataset)[0].parent == cache
    monkeypatch.setenv(_locate.DATA_DIR_VARIABLE, str(tmp_path / "mine"))
    assert _locate._search(dataset)[0].parent == cache
    mine = write_files(tmp_path / "mine", arrays)
    assert _locate._search(dataset)[0].parent == mine
    mine = write_files(tmp_path / "mine" / "tiny", arrays)
    assert _locate._search(dataset)[0].parent == mine


def fake_pooch(serve: dict[str, bytes]) -> types.ModuleType:
    """A stand-in that serves bytes by address and checks nothing."""
    module = types.ModuleType("pooch")

    def retrieve(url, known_hash, fname, path, downloader):
        if url not in serve:
            raise OSError(f"{url}: 404 Not Found")
        path.mkdir(parents=True, exist_ok=True)
        (path / fname).write_bytes(serve[url])
        return str(path / fname)

    module.HTTPDownloader = lambda **options: options
    module.retrieve = retrieve
    return module


def test_download_from_the_second_mirror(dataset, arrays, monkeypatch):
    mirrors = ("http://one/", "http://two/")
    dataset = _locate.IdxDataset(dataset.name, dataset.files, mirrors)
    serve = {
        f"http://two/{name}.gz": gzip.compress(encode(array))
        for name, array in zip(NAMES, arrays, strict=True)
    }
    monkeypatch.setitem(sys.modules, "pooch", fake_pooch(serve))
    loaded = flat(_locate.load(dataset, None))
    np.testing.assert_array_equal(loaded[0], arrays[0])
    monkeypatch.setitem(sys.modules, "pooch", None)  # now it is in the cache
    np.testing.assert_array_equal(flat(_locate.load(dataset, None))[3], arrays[3])


def test_failed_download_names_all_ways(dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", fake_pooch({}))
    with pytest.raises(FileNotFoundError) as caught:
        _locate.load(dataset, None)
    for part in (
        "[datasets] tiny",
        "404",
        "SAMEGRAD_DATA_DIR",
        "cache/samegrad/tiny",
        "apt install",
    ):
        assert part in str(caught.value)
    assert not _locate.cache_folder(dataset).exists()


def test_real_pooch_refuses_a_wrong_hash_and_keeps_nothing(tmp_path, dataset, arrays):
    pooch = pytest.importorskip("pooch")
    served = write_files(tmp_path / "served", arrays)
    wrong = IdxFile(NAMES[0], SHAPES[0], dataset.files[0].sha256, "md5:" + 32 * "0")
    target = tmp_path / "target"
    with pytest.raises(ValueError, match="hash"), serve_folder(served) as address:
        _locate._retrieve(address, wrong, target)
    assert not list(target.iterdir())
    good = IdxFile(
        NAMES[0],
        SHAPES[0],
        dataset.files[0].sha256,
        "md5:" + pooch.file_hash(str(served / f"{NAMES[0]}.gz"), alg="md5"),
    )
    with serve_folder(served) as address:
        assert _locate._retrieve(address, good, target) == target / f"{NAMES[0]}.gz"


class serve_folder:  # noqa: N801 - a context manager used like a function
    """Serves a folder over HTTP on a free local port."""

    def __init__(self, folder: Path) -> None:
        import functools
        import http.server

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                pass

        handler = functools.partial(Handler, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        import threading

        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_fashion_mnist_as_installed(monkeypatch):
    if not fashion_mnist._DATASET.system_folders[0].is_dir():
        pytest.skip("the package dataset-fashion-mnist is not installed")
    monkeypatch.setitem(sys.modules, "pooch", None)  # nothing may need it here
    (x_train, y_train), (x_test, y_test) = fashion_mnist.load_data()
    assert x_train.shape == (60000, 28, 28) and x_test.shape == (10000, 28, 28)
    assert np.bincount(y_train).tolist() == 10 * [6000]
    assert np.bincount(y_test).tolist() == 10 * [1000]
    assert round(float(x_train.mean()) / 255, 4) == 0.2860


def test_mnist_is_looked_for_in_the_usual_places_by_the_name_that_keras_gives(monkeypatch):
    asked = []
    monkeypatch.setattr(_locate, "load", lambda dataset, path: asked.append(path))
    mnist.load_data()
    mnist.load_data(path="mnist.npz")
    mnist.load_data("folder")
    assert asked == [None, None, "folder"]


def test_the_files_of_fashion_mnist_are_refused_as_mnist():
    folder = fashion_mnist._DATASET.system_folders[0]
    if not folder.is_dir():
        pytest.skip("the package dataset-fashion-mnist is not installed")
    with pytest.raises(IdxError, match="SHA-256"):
        mnist.load_data(folder)
