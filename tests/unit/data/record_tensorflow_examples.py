"""Records how TensorFlow writes and parses the records of example_programs.py.

    python tests/unit/data/record_tensorflow_examples.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import base64
import json
import pathlib

import tensorflow as tf
from example_programs import PARSED, examples, outcome

if __name__ == "__main__":
    made = {name: example.SerializeToString(deterministic=True) for name, example in examples(tf)}
    found = {
        "tensorflow": tf.__version__,
        "bytes": {name: base64.b64encode(data).decode() for name, data in made.items()},
        "parsed": {name: outcome(tf, program, made) for name, program in PARSED.items()},
    }
    path = pathlib.Path(__file__).with_name("tensorflow_examples.json")
    path.write_text(json.dumps(found, indent=1) + "\n")
