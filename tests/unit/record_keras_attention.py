"""Records `keras.ops.dot_product_attention`: `python record_keras_attention.py > FILE.json`.

Run it where Keras 3 is installed; test_attention.py compares with the recorded file.
"""

import json
from typing import Any

import numpy as np

# Heads of query and key, shapes of bias and mask, whether causal, the scale.
CASES: dict[str, tuple[int, int, Any, Any, bool, float | None]] = {
    "plain": (2, 2, None, None, False, None),
    "scale": (2, 2, None, None, False, 0.3),
    "causal": (2, 2, None, None, True, None),
    "mask": (2, 2, None, (2, 1, 4, 5), False, None),
    "bias": (2, 2, (1, 2, 4, 5), None, False, None),
    "bias, mask and causal": (2, 2, (2, 2, 4, 5), (2, 1, 1, 5), True, 0.7),
}


def numbers(*shape: int, start: int = 0) -> np.ndarray:
    """Numbers without a pattern."""
    return np.round(np.sin((start + np.arange(np.prod(shape))) ** 2 / 7.0), 3).reshape(shape)


def operands(case: tuple[int, int, Any, Any, bool, float | None]) -> dict[str, Any]:
    """The arguments of a case by name."""
    heads, key_heads, bias, mask, causal, scale = case
    given: dict[str, Any] = {
        "query": numbers(2, 4, heads, 3).astype("float32"),
        "key": numbers(2, 5, key_heads, 3, start=50).astype("float32"),
        "value": numbers(2, 5, key_heads, 3, start=90).astype("float32"),
        "scale": scale,
        "is_causal": causal,
    }
    if bias:
        given["bias"] = numbers(*bias, start=7).astype("float32")
    if mask:
        seen = numbers(*mask, start=3) < 0.4
        seen[..., 0] = True  # no query without a key
        given["mask"] = seen
    return given


def main() -> None:
    """Prints them."""
    import keras

    lines = []
    for name, case in CASES.items():
        value = keras.ops.dot_product_attention(**operands(case))
        recorded = np.asarray(value).ravel().astype("float64").round(6).tolist()
        lines.append(f"{json.dumps(name)}: {json.dumps(recorded)}")
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
