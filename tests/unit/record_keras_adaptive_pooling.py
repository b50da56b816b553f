"""Records Keras's adaptive pooling: `python record_keras_adaptive_pooling.py > FILE.json`.

Run it where Keras 3 is installed; test_adaptive_pooling.py compares with the recorded file.
"""

import json

import numpy as np

# Sizes in space before and afterwards. Keras on TensorFlow makes no size larger.
CASES = (
    ((7,), (3,)), ((12,), (4,)), ((5,), (5,)), ((11,), (2,)), ((7, 5), (3, 2)), ((6, 4), (3, 2)),
    ((5, 7), (1, 7)), ((5, 4, 7), (3, 2, 2)), ((4, 6, 3), (2, 3, 2)),
)  # fmt: skip


def numbers(space: tuple[int, ...]) -> np.ndarray:
    """Numbers without a pattern, [2, space, 2]."""
    shape = (2, *space, 2)
    return np.round(np.sin(np.arange(np.prod(shape)) ** 2 / 7.0), 3).reshape(shape)


def main() -> None:
    """Prints them."""
    import keras

    kinds = {"AVG": keras.ops.adaptive_average_pool, "MAX": keras.ops.adaptive_max_pool}
    recorded = {
        f"{kind} {old} {new}": np.asarray(
            pool(
                keras.ops.convert_to_tensor(numbers(old), "float32"),
                new,
                data_format="channels_last",
            )
        )
        .ravel()
        .astype("float64")
        .round(6)
        .tolist()
        for kind, pool in kinds.items()
        for old, new in CASES
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
