"""Records what TensorFlow gives for the programs of directory_programs.py.

    python tests/keras_conformance/record_tensorflow_directories.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib
import tempfile

import tensorflow as tf
from directory_programs import DATASETS, LAYERS, elements, of_layer, write_folders

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write_folders(root)
        found = {
            "tensorflow": tf.__version__,
            "datasets": {name: elements(made(tf, root)) for name, made in DATASETS.items()},
            "layers": {name: of_layer(tf, name, root) for name in LAYERS},
        }
    path = pathlib.Path(__file__).with_name("tensorflow_directories.json")
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n")
