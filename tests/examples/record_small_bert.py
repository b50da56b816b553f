"""Write the small BERT of `small_bert/` in the format of TensorFlow, with the names of its authors.

    python tests/examples/record_small_bert.py

It needs TensorFlow 2.21, which the tests do not. The weights are random numbers.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "small_bert"
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 8,
    "initializer_range": 0.02,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": 16,
}
VOCABULARY = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "is", "not", ".", "great",
    "awful", "bor", "##ing", ",",
]  # fmt: skip


def weights() -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays by the names in the checkpoints of github.com/google-research/bert."""
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    rows = {"word": "vocab_size", "position": "max_position_embeddings",
            "token_type": "type_vocab_size"}  # fmt: skip
    shapes: dict[str, tuple[Any, ...]] = {
        f"bert/embeddings/{name}_embeddings": (CONFIG[size], hidden) for name, size in rows.items()
    }
    dense = {"bert/pooler": (hidden, hidden), "cls/predictions/transform": (hidden, hidden)}
    norms = ["bert/embeddings", "cls/predictions/transform"]
    for i in range(2):
        layer = f"bert/encoder/layer_{i}"
        for name in ("query", "key", "value"):
            shapes[f"{layer}/attention/self/{name}/kernel"] = (hidden, hidden)
            shapes[f"{layer}/attention/self/{name}/bias"] = (hidden,)
        dense[f"{layer}/attention/output"] = (hidden, hidden)
        dense[f"{layer}/intermediate"] = (hidden, inner)
        dense[f"{layer}/output"] = (inner, hidden)
        norms += [f"{layer}/attention/output", f"{layer}/output"]
    for name, shape in dense.items():
        shapes[f"{name}/dense/kernel"], shapes[f"{name}/dense/bias"] = shape, shape[1:]
    for name in norms:
        shapes[f"{name}/LayerNorm/gamma"] = shapes[f"{name}/LayerNorm/beta"] = (hidden,)
    shapes["cls/predictions/output_bias"] = (CONFIG["vocab_size"],)
    shapes["cls/seq_relationship/output_weights"] = (2, hidden)
    shapes["cls/seq_relationship/output_bias"] = (2,)
    rng = np.random.default_rng(0)
    normal = {name: rng.normal(scale=0.5, size=shapes[name]) for name in sorted(shapes)}
    return {name: array.astype(np.float32) for name, array in normal.items()}


def main() -> None:
    """Write configuration, vocabulary and checkpoint."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "bert_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (FOLDER / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    for name, array in weights().items():
        tf.get_variable(name, initializer=array)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(FOLDER / "bert_model.ckpt"), write_meta_graph=False)
    (FOLDER / "checkpoint").unlink()


if __name__ == "__main__":
    main()
