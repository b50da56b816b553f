"""Records what TensorFlow's tf.nest gives for the structures of nest_cases.py.

    python tests/unit/record_tensorflow_nest.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import tensorflow as tf
from nest_cases import record

if __name__ == "__main__":
    found = {"tensorflow": tf.__version__, "results": record(tf.nest)}
    path = pathlib.Path(__file__).with_name("tensorflow_nest.json")
    path.write_text(json.dumps(found, indent=1) + "\n")
