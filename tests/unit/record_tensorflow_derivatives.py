"""Records gradients of TensorFlow's public functions: `python …_derivatives.py > FILE.json`.

Run it where TensorFlow is installed; test_derivatives_by_name.py compares with the recorded file.
"""

import json

from derivatives_by_name import gradients, names


def main() -> None:
    """Print them, one function a line."""
    import tensorflow as tf

    lines = []
    for name in names(tf):
        of_one, of_two = gradients(tf, name, 1), gradients(tf, name, 2)
        if of_one is not None:
            lines.append(f'"{name} 1": {json.dumps(of_one)}')
            if of_two is not None and of_two[1] is None:
                continue  # the second operand was no operand
        if of_two is not None:
            lines.append(f'"{name} 2": {json.dumps(of_two)}')
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
