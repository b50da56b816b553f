"""Safetensors files: those of the library are read, it reads ours, and damage is an error."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import samegrad as tf
from samegrad import convert
from samegrad._base.dtypes import numpy_dtype
from samegrad.train._safetensors import DTYPE_NAMES

RNG = np.random.default_rng(0)
ARRAYS = {
    f"of.{name}": (
        RNG.integers(0, 2, (2, 3)) if name == "bool" else RNG.normal(size=(2, 3))
    ).astype(numpy_dtype(name))
    for name in DTYPE_NAMES
} | {"scalar": np.array(3.0), "empty": np.zeros((0, 4), np.float32)}


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name


def file_of(header, data=b""):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(content).to_bytes(8, "little") + content + data


def test_file_of_the_library_is_read(tmp_path):
    save_file(ARRAYS, tmp_path / "a.safetensors", metadata={"format": "pt"})
    same(convert.load(tmp_path / "a.safetensors"), ARRAYS)


def test_the_library_reads_a_file(tmp_path):
    convert.save(ARRAYS, tmp_path / "a.safetensors")
    same(load_file(tmp_path / "a.safetensors"), ARRAYS)
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}  # which transformers asks for


def test_tensors_and_transposed_arrays_are_written(tmp_path):
    path = tmp_path / "a.safetensors"
    matrix = np.arange(6.0).reshape(2, 3).T
    convert.save({"a": tf.constant([1.0, 2.0]), "b": matrix, "c": tf.Variable(3)}, path)
    same(load_file(path), {"a": np.array([1, 2], "f"), "b": matrix, "c": np.array(3, "i")})


def test_failed_save_leaves_the_older_file(tmp_path):
    path = tmp_path / "a.safetensors"
    convert.save({"a": np.ones(2)}, path)
    with pytest.raises(TypeError, match="must be floating point, integer or bool: got complex64"):
        convert.save({"a": np.ones(2, np.complex64)}, path)
    with pytest.raises(OSError, match=r"\[save\] cannot write .*Nothing was changed"):
        convert.save({"a": np.ones(2)}, tmp_path / "none" / "a.safetensors")
    same(convert.load(path), {"a": np.ones(2)})
    assert os.listdir(tmp_path) == ["a.safetensors"]


@pytest.mark.parametrize("given", ["", "model.safetensors.index.json"])
def test_shards_of_an_index_are_read(tmp_path, given):
    """The cache of Hugging Face holds links to its files."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "model").mkdir()
    places = {}
    for number, names in enumerate((["a", "b"], ["c"])):
        convert.save({n: np.full(2, number) for n in names}, tmp_path / "blobs" / str(number))
        file = f"model-{number}.safetensors"
        (tmp_path / "model" / file).symlink_to(tmp_path / "blobs" / str(number))
        places |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps(index))
    found = convert.load(tmp_path / "model" / given)
    assert {name: a.tolist() for name, a in found.items()} == {
        "a": [0, 0],
        "b": [0, 0],
        "c": [1, 1],
    }


def test_folder_is_read_by_the_name_of_hugging_face(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold model.safetensors"):
        convert.load(tmp_path)
    convert.save({"a": np.ones(2)}, tmp_path / "model.safetensors")
    same(convert.load(tmp_path), {"a": np.ones(2)})


@pytest.mark.parametrize("place", ["../a.safetensors", "/etc/passwd", "..", "", 3, None, ["a"]])
def test_index_that_leads_out_of_its_folder_is_rejected(tmp_path, place):
    convert.save({"a": np.ones(2)}, tmp_path / "a.safetensors")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": place}}))
    with pytest.raises(ValueError, match=r"\[load\] .*must"):
        convert.load(index)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"weight_map": 1}', b"\xff", b"[" * 9999])
def test_damaged_index_is_rejected(tmp_path, content):
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(content)
    with pytest.raises(ValueError, match="must be an index"):
        convert.load(index)


def test_index_without_its_arrays_or_files_is_rejected(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "x.safetensors"}}))
    with pytest.raises(FileNotFoundError, match="x.safetensors"):
        convert.load(tmp_path)
    convert.save({"b": np.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="must name arrays of its files"):
        convert.load(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model"])
@pytest.mark.parametrize("zipped", [True, False])
def test_pickle_is_rejected_with_a_remedy(tmp_path, name, zipped):
    path = tmp_path / name
    if zipped:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/data.pkl", pickle.dumps({"a": 1}, protocol=2))
    else:
        path.write_bytes(pickle.dumps({"a": list(range(100))}, protocol=2))
    with pytest.raises(ValueError, match=r"a pickle of PyTorch.*safetensors.torch.save_file"):
        convert.load(path)
    with pytest.raises(ValueError, match="a pickle of PyTorch"):
        convert.from_torch(tf.Module(), path)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DATA = np.ones(2, np.float32).tobytes()
HEADERS = {
    "a list": ([], b""),
    "no entries": ({"a": 1}, DATA),
    "another dtype": ({"a": ENTRY | {"dtype": "F8_E4M3"}}, DATA),
    "a dtype that is a list": ({"a": ENTRY | {"dtype": ["F32"]}}, DATA),
    "a negative size": ({"a": ENTRY | {"shape": [-2]}}, DATA),
    "a fraction": ({"a": ENTRY | {"shape": [2.0]}}, DATA),
    "a bool": ({"a": ENTRY | {"shape": [True, 2]}}, DATA),
    "another size": ({"a": ENTRY | {"shape": [3]}}, DATA),
    "too many axes": ({"a": ENTRY | {"shape": [2] + [1] * 40}}, DATA),
    "a huge shape": ({"a": ENTRY | {"shape": [2**61, 2**61], "data_offsets": [0, 2**124]}}, DATA),
    "a gap": ({"a": ENTRY | {"data_offsets": [4, 12]}}, DATA + DATA[:4]),
    "an overlap": ({"a": ENTRY, "b": ENTRY}, DATA),
    "bytes that are left over": ({"a": ENTRY}, DATA + b"1"),
    "bytes that are missing": ({"a": ENTRY}, DATA[:-1]),
    "no offsets": ({"a": {"dtype": "F32", "shape": [2]}}, DATA),
    "an offset that is a string": ({"a": ENTRY | {"data_offsets": ["0", 8]}}, DATA),
    "no JSON": (b"{", DATA),
    "deep JSON": (b"[" * 5000, DATA),
    "no characters": (b"\xff\xfe", DATA),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_header_that_breaks_a_rule_is_rejected(tmp_path, kind):
    header, data = HEADERS[kind]
    path = tmp_path / "a.safetensors"
    path.write_bytes(file_of(header, data))
    with pytest.raises(ValueError, match=r"\[load\] .* must have the header of its arrays: got"):
        convert.load(path)


@pytest.mark.parametrize("content", [b"", b"1234", b"\x89HDF\r\n\x1a\n" + b"0" * 99, b"\xff" * 99])
def test_file_of_another_format_is_rejected(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must be in the safetensors format"):
        convert.load(path)


def test_damaged_files_are_rejected_or_have_other_values(tmp_path):
    """2,000 files with a changed, inserted or missing byte."""
    path = tmp_path / "a.safetensors"
    convert.save({"a": np.ones((2, 3), np.float32), "b": np.array([1, 2])}, path)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(2000):
        position, byte = rng.integers(len(content)), bytes([rng.integers(256)])
        end = position + rng.integers(2)
        path.write_bytes(content[:position] + byte * rng.integers(2) + content[end:])
        try:
            found = convert.load(path)
        except ValueError as error:
            rejected += str(error).startswith("[load] ")
        else:
            assert sum(a.nbytes for a in found.values()) == 40
            rejected += 1
    assert rejected == 2000


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\[load\] cannot read .*a.safetensors"):
        convert.load(tmp_path / "a.safetensors")
