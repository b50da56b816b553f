"""Records what TensorFlow makes of matrix_cases.py: run it with a Python that has TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import matrix_cases
import tensorflow as tf

found = {}
for name in matrix_cases.CASES:
    try:
        found[name] = matrix_cases.results(tf, name)
    except (LookupError, NotImplementedError, tf.errors.OpError) as error:
        print(f"{name}: {error}; say in matrix_cases.py that TensorFlow has no derivative.")
text = json.dumps({"tensorflow": tf.__version__, "cases": found})
Path(__file__).with_name("tensorflow_linalg.json").write_text(text + "\n", encoding="utf-8")
