"""BMP, WAV and JPEG files are read as by TensorFlow (record_tensorflow_image_files.py)."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from record_tensorflow_image_files import read

import samegrad as tf

RECORDED = json.loads((Path(__file__).parent / "tensorflow_files.json").read_text())
# TensorFlow does not know that a chunk of odd size has a byte more.
KNOWN_HERE = {"wav odd"}


@pytest.mark.parametrize("name", RECORDED)
def test_files_are_read_as_by_tensorflow(name: str) -> None:
    want: dict[str, Any] = dict(RECORDED[name])
    file = base64.b64decode(want.pop("file"))
    for call, found in read(tf, name, file).items():
        if want[call] is None or found is None:
            assert found == want[call] or name in KNOWN_HERE, (call, found)
            continue
        assert found[0] == want[call][0], call
        # Its quick cosine transform is coarser.
        near = 6 if call in ("fast 1", "decode_image 1") else 0
        np.testing.assert_allclose(found[1], want[call][1], rtol=0, atol=near, err_msg=call)


@pytest.mark.parametrize("name", [n for n in RECORDED if n.startswith("jpeg")])
def test_pillow_reads_grey_as_the_engine_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = base64.b64decode(RECORDED[name]["file"])
    want = tf.io.decode_jpeg(file, 1).numpy()
    monkeypatch.setattr("samegrad.image._decode.plain_pixels", lambda *args: None)
    np.testing.assert_array_equal(tf.io.decode_jpeg(file, 1).numpy(), want)


def test_wav_files_have_a_data_chunk_of_known_size() -> None:
    file = base64.b64decode(RECORDED["wav 0 4294967295"]["file"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="a chunk b'data' of 4294967295 bytes"):
        tf.audio.decode_wav(file)
