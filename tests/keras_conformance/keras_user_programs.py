"""Programs as users write them, which run with samegrad or with TensorFlow as `tf`.

Each takes `tf` and a strategy, and returns what three epochs of 8 examples in batches of 5 and 3
give: losses and metrics by name. Weights are drawn by NumPy, so that both begin with the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import keras_user_layers  # noqa: F401
import keras_user_models  # noqa: F401
import keras_user_training  # noqa: F401
from keras_user_parts import PROGRAMS


def main(path: str) -> None:
    """Writes what TensorFlow gives."""
    import json

    import tensorflow as tf

    found = {name: run(tf, tf.distribute.get_strategy()) for name, run in PROGRAMS.items()}
    text = json.dumps(found, indent=1, default=float)
    Path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
