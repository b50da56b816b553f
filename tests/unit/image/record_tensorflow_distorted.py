"""Records the parts that TensorFlow draws: `python record_tensorflow_distorted.py`.

Run it where TensorFlow is installed; of each setting the means and deviations of y, x, height and
width are kept, and how many parts were the whole image.
"""

import json
from pathlib import Path

import numpy as np
from distorted_settings import DRAWS, SETTINGS


def drawn(tf, size, boxes, options):
    """Rows of y, x, height and width."""
    rows = []
    box = tf.reshape(tf.constant(boxes, tf.float32), [1, -1, 4])
    for i in range(DRAWS):
        begin, part, _ = tf.image.sample_distorted_bounding_box(size, box, seed=i + 1, **options)
        rows.append([*begin.numpy()[:2], *part.numpy()[:2]])
    return np.array(rows, float)


def main() -> None:
    """Writes them."""
    import tensorflow as tf

    tf.random.set_seed(1)
    found = {}
    for name, (size, boxes, options) in SETTINGS.items():
        rows = drawn(tf, size, boxes, options)
        whole = int((rows == [0, 0, *size[:2]]).all(1).sum())
        found[name] = {"mean": rows.mean(0).round(4).tolist(), "whole": whole,
                       "deviation": rows.std(0).round(4).tolist()}  # fmt: skip
    path = Path(__file__).with_name("tensorflow_distorted.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
