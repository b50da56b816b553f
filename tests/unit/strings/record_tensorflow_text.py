"""Records what TensorFlow's tf.strings gives for the programs of text_programs.py.

    python tests/unit/strings/record_tensorflow_text.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import tensorflow as tf
from text_programs import record

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in record(tf).items()]
    path = pathlib.Path(__file__).with_name("tensorflow_text.json")
    results = ",\n".join(lines)
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "results": {{\n{results}\n}}}}\n')
