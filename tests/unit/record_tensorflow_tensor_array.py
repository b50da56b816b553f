"""Records TensorFlow's arrays of tensors: `python record_tensorflow_tensor_array.py > FILE.json`.

Run it where TensorFlow is installed; test_tensor_array.py compares with the recorded file.
"""

import json

from tensor_array_programs import COUNTS, PROGRAMS, X, with_derivatives


def main() -> None:
    """Prints them."""
    import tensorflow as tf

    recorded = {
        f"{name} {n}": [
            value.numpy().ravel().astype("float64").round(5).tolist()
            for value in with_derivatives(tf, program, tf.constant(X), tf.constant(n))
        ]
        for name, program in PROGRAMS.items()
        for n in COUNTS
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
