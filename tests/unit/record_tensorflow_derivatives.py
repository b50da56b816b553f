"""Records gradients of TensorFlow's public functions: `python …_derivatives.py > FILE.json`.

Run it where TensorFlow is installed; test_derivatives_by_name.py compares with the recorded file.
"""

import itertools
import json

from derivatives_by_name import POINTS, gradients, names


def main() -> None:
    """Print them, one function a line."""
    import tensorflow as tf

    lines = []
    for name, (point, at) in itertools.product(names(tf), POINTS.items()):
        of_one, of_two = gradients(tf, name, 1, at), gradients(tf, name, 2, at)
        if of_one is not None:
            lines.append(f'"{name} 1{point}": {json.dumps(of_one)}')
            if of_two is not None and of_two[1] is None:
                continue  # the second operand was no operand
        if of_two is not None:
            lines.append(f'"{name} 2{point}": {json.dumps(of_two)}')
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
