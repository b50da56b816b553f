"""Records what TensorFlow's tf.data gives for the programs of pipeline_programs.py, and its files.

    python tests/unit/data/record_tensorflow_pipelines.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import base64
import json
import pathlib
import tempfile

import tensorflow as tf
from pipeline_programs import record

RECORDS = [b"", b"a", b"hello" * 3, bytes(range(256)) * 20]


def record_files():
    """Files of records that TensorFlow wrote, by their compression."""
    found = {}
    for kind in ("", "GZIP", "ZLIB"):
        with tempfile.NamedTemporaryFile() as file:
            with tf.io.TFRecordWriter(file.name, tf.io.TFRecordOptions(kind)) as writer:
                for data in RECORDS:
                    writer.write(data)
            found[kind] = base64.b64encode(pathlib.Path(file.name).read_bytes()).decode()
    return found


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in record(tf).items()]
    path = pathlib.Path(__file__).with_name("tensorflow_pipelines.json")
    results = ",\n".join(lines)
    path.write_text(
        f'{{"tensorflow": "{tf.__version__}", "files": {json.dumps(record_files())},\n'
        f'"results": {{\n{results}\n}}}}\n'
    )
