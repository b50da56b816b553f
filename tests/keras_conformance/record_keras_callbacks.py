"""Records what Keras's callbacks give on TensorFlow, on the CPU.

python tests/keras_conformance/record_keras_callbacks.py   # with TensorFlow and Keras 3.15
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import callback_programs
import keras
import tensorflow


def main() -> None:
    found = {"made by": f"Keras {keras.__version__}, TensorFlow {tensorflow.__version__}"}
    for kind in ("float32", "float64"):
        for name in callback_programs.PROGRAMS:
            with tempfile.TemporaryDirectory() as folder:
                result = callback_programs.run(keras, name, kind, Path(folder))
            found[f"{name} {kind}"] = result
    path = Path(__file__).with_name("keras_callbacks.json")
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
