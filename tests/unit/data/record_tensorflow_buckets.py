"""Records what TensorFlow's tf.data gives for the programs of bucket_cases.py.

    python tests/unit/data/record_tensorflow_buckets.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import tensorflow as tf
from bucket_cases import record

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in record(tf).items()]
    path = pathlib.Path(__file__).with_name("tensorflow_buckets.json")
    results = ",\n".join(lines)
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "results": {{\n{results}\n}}}}\n')
