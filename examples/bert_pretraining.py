"""Pre-train a small BERT on masked words, and save it with the names of Hugging Face.

    python bert_pretraining.py --folder small-bert

The folder gets config.json, vocab.txt and model.safetensors, as transformers reads them.
"""

import argparse
import json
import pathlib
import re

import numpy as np
from bert_classification import CLS, NAMES, PAD, SEP, UNKNOWN, Bert, WordPieces, small_data

import samegrad as tf

layers = tf.keras.layers
MASK = "[MASK]"
CONFIG = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_act": "gelu",
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
HEAD_NAMES = {
    **{f"bert.{ours}": f"bert.{theirs}" for ours, theirs in NAMES.items()},
    "transform_norm": "cls.predictions.transform.LayerNorm",
    "transform": "cls.predictions.transform.dense",
    "bias": "cls.predictions.bias",
}


class MaskedLanguageModel(tf.keras.Model):
    """BERT with a head that predicts the words behind [MASK]; it shares the embeddings."""

    def __init__(self, config):
        super().__init__()
        self.bert = Bert(config)
        self.transform = layers.Dense(config["hidden_size"], activation="gelu")
        self.transform_norm = layers.LayerNormalization(epsilon=config["layer_norm_eps"])
        self.bias = self.add_weight(shape=(config["vocab_size"],), initializer="zeros")

    def call(self, tokens):
        x = self.transform_norm(self.transform(self.bert(tokens)[0]))
        words = self.bert.embeddings.word_embeddings.embeddings
        return tf.matmul(x, words, transpose_b=True) + self.bias


def vocabulary_of(sentences):
    """Return the special pieces, the words, and the endings that some words have in common."""
    words = sorted({word for one in sentences for word in re.findall(r"\w+|[^\w\s]", one)})
    endings = ("ful", "ing")
    stems = {word.removesuffix(end) for word in words for end in endings if word.endswith(end)}
    whole = {word for word in words if not word.endswith(endings)}
    return [PAD, UNKNOWN, CLS, SEP, MASK, *sorted(stems | whole), *(f"##{end}" for end in endings)]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("small-bert"))
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(0)
    sentences, _ = small_data(1000, seed=0)
    vocabulary = vocabulary_of(sentences)
    config = {"vocab_size": len(vocabulary), **CONFIG}
    tokenizer = WordPieces(vocabulary)
    tokens = np.array([tokenizer(sentence, 16) for sentence in sentences])
    rng = np.random.default_rng(0)
    hidden = (rng.random(tokens.shape) < 0.2) & (tokens > vocabulary.index(MASK))
    masked = np.where(hidden, vocabulary.index(MASK), tokens)

    model = MaskedLanguageModel(config)
    model.bert.pooler.trainable = False  # masked words do not use it
    model.compile(
        tf.keras.optimizers.AdamW(2e-3, weight_decay=0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["accuracy"],
    )
    data = tf.data.Dataset.from_tensor_slices((masked, tokens, hidden.astype(np.float32)))
    data = data.shuffle(1000, seed=0).batch(50).repeat()
    model.fit(data, steps_per_epoch=options.steps, verbose=2)

    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "config.json").write_text(json.dumps(config, indent=1))
    (options.folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    weights = tf.convert.to_torch(model, HEAD_NAMES)
    tf.convert.save(weights, options.folder / "model.safetensors")


if __name__ == "__main__":
    main()
