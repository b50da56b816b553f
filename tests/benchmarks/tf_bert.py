"""A block of BERT's encoder against the tf.distribute API, for TensorFlow and for samegrad.

Devlin et al., "BERT" (2018), the base model: attention of 12 heads of 64 with a padding mask and
dropout, a feed-forward part of 3072 with GELU, a dropout and a normalization behind each. A linear
layer on top tags every token, as BERT is fine-tuned to find names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workloads import BERT, BERT_BLOCKS, TAGS, EncoderSizes, Job

Step = Callable[[Any], Any]
EPSILON = 1e-12  # of the normalizations


def block_model(tf: Any, sizes: EncoderSizes = BERT, **options: Any) -> Any:
    """Returns the model: `model(x [n, length, width], real [n, length])` to logits of the tags."""
    keras, layers = tf.keras, tf.keras.layers

    class Tagger(keras.Model):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__(**options)
            heads, width = sizes.heads, sizes.width
            self.attend = layers.MultiHeadAttention(
                heads, width // heads, dropout=sizes.attention_dropout, **options
            )
            self.rise = layers.Dense(sizes.hidden, "gelu", **options)
            self.fall = layers.Dense(width, **options)
            self.norm1 = layers.LayerNormalization(epsilon=EPSILON, **options)
            self.norm2 = layers.LayerNormalization(epsilon=EPSILON, **options)
            self.drop1 = layers.Dropout(sizes.dropout, **options)
            self.drop2 = layers.Dropout(sizes.dropout, **options)
            self.tags = layers.Dense(TAGS, **options)

        def call(self, x: Any, real: Any, training: bool = False) -> Any:
            seen = real[:, None, :]
            found = self.attend(x, x, attention_mask=seen, training=training)
            x = self.norm1(x + self.drop1(found, training=training))
            found = self.fall(self.rise(x))
            return self.tags(self.norm2(x + self.drop2(found, training=training)))

    return Tagger()


def bert_block(tf: Any, job: Job) -> Step:
    """Adam; the loss is divided by the real tokens of all replicas."""
    model = block_model(tf, BERT_BLOCKS[job.workload])
    return tagging_step(tf, model, tf.keras.optimizers.Adam(1e-4))


def tagging_step(tf: Any, model: Any, optimizer: Any) -> Step:
    def step(batch: Any) -> Any:
        x, labels = batch  # label 0 is padding, and 1 is the first tag
        real = labels != 0
        with tf.GradientTape() as tape:
            logits = model(x, real, training=True)
            weights = tf.cast(real, logits.dtype)
            tags = tf.maximum(labels - 1, 0)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits)
            context = tf.distribute.get_replica_context()
            tokens = context.all_reduce("SUM", tf.reduce_sum(weights))
            loss = tf.reduce_sum(each * weights) / tokens
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step
