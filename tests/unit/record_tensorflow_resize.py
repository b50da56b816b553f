"""Records what TensorFlow makes of an image: `python record_tensorflow_resize.py > FILE.json`.

Run it where TensorFlow is installed; test_image.py compares with the recorded file.
"""

import json

import numpy as np

METHODS = (
    "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
)  # fmt: skip
SIZES = ((3, 4), (7, 9), (2, 2), (5, 11), (1, 13))


def image() -> np.ndarray:
    """Numbers without a pattern, [1, 5, 6, 2]."""
    return np.round(np.sin(np.arange(60) ** 2 / 7.0), 3).reshape(1, 5, 6, 2).astype("float32")


def main() -> None:
    """Prints them."""
    import tensorflow

    recorded = {
        f"{method} {rows} {columns} {antialias}": tensorflow.image.resize(
            image(), (rows, columns), method, antialias=antialias
        )
        .numpy()
        .ravel()
        .round(6)
        .astype("float64")
        .round(6)
        .tolist()
        for method in METHODS
        for rows, columns in SIZES
        for antialias in (False, True)
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
