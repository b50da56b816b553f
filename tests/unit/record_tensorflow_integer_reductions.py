"""Records TensorFlow's reductions of integers: `python …_integer_reductions.py > FILE.json`.

Run it where TensorFlow is installed; test_integer_reductions.py compares with the recorded file.
"""

import json

from integer_reductions import DTYPES, MEMBERS, answer


def main() -> None:
    """Print them, one case a line."""
    import tensorflow as tf

    answers = {
        f"{given}{name} {dtype}": answer(tf, name, dtype, given)
        for name, given in MEMBERS
        for dtype in DTYPES
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
