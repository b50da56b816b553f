"""Records TensorFlow's gradients of several tapes: `python record_tensorflow_tapes.py > FILE.json`.

Run it where TensorFlow is installed; test_several_tapes.py compares with the recorded file.
"""

import json

from tape_programs import program, run


def main() -> None:
    """Print them, one program a line."""
    import tensorflow as tf

    lines = []
    for seed in range(150):
        found = run(tf, program(seed))
        values = [None if g is None else g.numpy().round(9).tolist() for g in found]
        lines.append(f'"{seed}": {json.dumps(values)}')
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
