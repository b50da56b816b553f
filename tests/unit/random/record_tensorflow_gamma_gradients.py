"""Records TensorFlow's derivatives of gamma numbers by alpha.

Run `python record_tensorflow_gamma_gradients.py` where TensorFlow is installed.
"""

import json
from pathlib import Path

ALPHAS = [0.1, 0.5, 0.99, 1.0, 3.0, 20.0, 150.0]
SHARES = [0.02, 0.3, 0.9, 1.0, 1.3, 2.5]  # of alpha: the numbers


def main() -> None:
    """Writes rows of alpha, number and derivative."""
    import tensorflow as tf

    pairs = [(a, a * share) for a in ALPHAS for share in SHARES]
    alpha, numbers = (tf.constant(column, tf.float64) for column in zip(*pairs, strict=True))
    found = tf.raw_ops.RandomGammaGrad(alpha=alpha, sample=numbers).numpy().tolist()
    rows = [[*pair, value] for pair, value in zip(pairs, found, strict=True)]
    path = Path(__file__).with_name("tensorflow_gamma_gradients.json")
    path.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
