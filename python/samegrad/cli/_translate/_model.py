"""A Transformer from token ids to logits, of tf.keras layers."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.cli._translate._blocks import (
    EPSILON,
    PAD,
    Cache,
    DecoderBlock,
    EncoderBlock,
    Sizes,
    positional_encoding,
)

_PLACES = 512  # that have an encoding in any case


@tf.keras.saving.register_keras_serializable("samegrad")
class Transformer(tf.keras.Model):  # type: ignore[misc]
    """Encoder and decoder (Vaswani et al., 2017); all weights are made at once.

    Sentences are rows of token ids, real tokens first, then padding, which is token 0. The
    number of sentences may differ from call to call, and so may the lengths.

    Args:
        source_size: Tokens of the source's vocabulary.
        target_size: Tokens of the target's vocabulary.
        sizes: Layers, width and the like.
        options: Those of `tf.keras.Model`, as `dtype`.

    Raises:
        ValueError: The vocabularies differ although they share their table, or have no token.

    Call: `(source [n, S], target [n, T])`, integers, to logits `[n, T, target_size]`; logits
    `[:, t]` depend on the target's tokens 0 … t only. A token id that is not in the vocabulary
    raises `InvalidArgumentError`.

    Example:
        >>> model = Transformer(50, 60, Sizes(layers=1, width=8, hidden=16, heads=2))
        >>> model((tf.constant([[5, 6, 0]]), tf.constant([[1, 7]]))).shape
        (1, 2, 60)
    """

    def __init__(
        self, source_size: int, target_size: int, sizes: Sizes | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.sizes = sizes = sizes or Sizes()
        self.source_size, self.target_size = source_size, target_size
        if min(source_size, target_size) < 1 or (sizes.shared and source_size != target_size):
            raise ValueError(
                "[transformer] vocabularies must have tokens, and must be one where the table is "
                f"shared: got {source_size} and {target_size} tokens, shared={sizes.shared}."
            )
        layers, policy, width = tf.keras.layers, self.dtype_policy, sizes.width
        start = tf.keras.initializers.RandomNormal(stddev=1 / math.sqrt(width))
        if sizes.shared:
            self.source_table = self.target_table = layers.ReversibleEmbedding(
                source_size, width, embeddings_initializer=start, dtype=policy, name="table"
            )
        else:
            self.source_table, self.target_table = (
                layers.Embedding(size, width, start, dtype=policy, name=name)
                for size, name in ((source_size, "source_table"), (target_size, "target_table"))
            )
            self.logits = layers.Dense(target_size, dtype=policy, name="logits")
        self.encoder, self.decoder = (
            [block(sizes, dtype=policy, name=f"{name}_{i}") for i in range(sizes.layers)]
            for block, name in ((EncoderBlock, "encoder"), (DecoderBlock, "decoder"))
        )
        norm = layers.LayerNormalization
        if sizes.normalize_first:  # what comes out of the last block is not normalized yet
            self.encoder_norm = norm(epsilon=EPSILON, dtype=policy, name="encoder_norm")
            self.decoder_norm = norm(epsilon=EPSILON, dtype=policy, name="decoder_norm")
        self.drop = layers.Dropout(sizes.dropout, dtype=policy)
        self.build(None)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration of the model."""
        sizes = {"source_size": self.source_size, "target_size": self.target_size}
        return {**super().get_config(), **sizes, "sizes": asdict(self.sizes)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Transformer:
        """A new model of what `get_config` gave."""
        return cls(**{**config, "sizes": Sizes(**config["sizes"])})

    def build(self, input_shape: Any) -> None:
        """Makes the weights; the constructor calls it."""
        shape = (None, None, self.sizes.width)
        self.source_table.build(None)
        if not self.sizes.shared:
            self.target_table.build(None)
            self.logits.build(shape)
        for block in (*self.encoder, *self.decoder):
            block.build(shape)
        if self.sizes.normalize_first:
            self.encoder_norm.build(shape)
            self.decoder_norm.build(shape)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Logits of the target's tokens, each of what is before it."""
        source, target = inputs
        return self.decode(target, self.encode(source, training), source, training)

    def encode(self, source: Tensor, training: bool = False) -> Any:
        """Return the encoder's output, `[n, S, width]`, for tokens `[n, S]`."""
        x = self._embed(self.source_table, source, training)
        seen = _seen(source)
        for block in self.encoder:
            x = block(x, seen, training=training)
        return self.encoder_norm(x) if self.sizes.normalize_first else x

    def decode(self, target: Tensor, memory: Tensor, source: Tensor, training: bool = False) -> Any:
        """Logits `[n, T, target_size]` of tokens `[n, T]`, what `encode` gave, and the source."""
        x = self._embed(self.target_table, target, training)
        seen = _seen(source)
        for block in self.decoder:
            x = block(x, memory, seen, training=training)
        return self.to_logits(x)

    def remember(self, memory: Tensor, rows: int, length: int) -> list[Cache]:
        """Return the cached state of all decoder blocks for `step`.

        Args:
            memory: What `encode` gave.
            rows: Translations of each sentence that are decoded side by side.
            length: The most tokens that are decoded.
        """
        return [block.remember(memory, rows, length) for block in self.decoder]

    def step(
        self, tokens: Tensor, caches: list[Cache], place: Tensor, source: Tensor
    ) -> tuple[Tensor, list[Cache]]:
        """Logits after one token more: those of `decode` at that place.

        Args:
            tokens: `[n, rows]`, one of each translation.
            caches: What `remember` or the last step gave.
            place: How many tokens came before, an int32 scalar.
            source: `[n, S]`.

        Returns:
            Logits `[n, rows, target_size]`, and the caches for the next step.
        """
        length = int(caches[0]["keys"].shape[2])
        x = self._rows(self.target_table, tokens)
        waves = tf.constant(positional_encoding(length, self.sizes.width), x.dtype)
        x, seen, new = x + tf.gather(waves, place), _seen(source), []
        for block, cache in zip(self.decoder, caches, strict=True):
            x, cache = block.step(x, cache, place, seen)
            new.append(cache)
        return self.to_logits(x), new

    def to_logits(self, x: Tensor) -> Any:
        """Logits of what the last block gave."""
        if self.sizes.normalize_first:
            x = self.decoder_norm(x)
        if self.sizes.shared:
            return self.target_table(x, reverse=True)
        return self.logits(x)

    def _embed(self, table: Any, tokens: Tensor, training: bool) -> Any:
        x = self._rows(table, tokens)
        length, longest = tokens.shape[1], _PLACES
        while length > longest:  # one trace serves all lengths up to a power of two
            longest *= 2
        places = tf.constant(positional_encoding(longest, self.sizes.width), x.dtype)
        return self.drop(x + places[:length], training=training)

    def _rows(self, table: Any, tokens: Tensor) -> Any:
        """Embeddings times sqrt(width); the layer itself would take -1 for the last token."""
        rows = tf.gather(tf.convert_to_tensor(table.embeddings), tokens)
        return tf.cast(rows, self.compute_dtype) * math.sqrt(self.sizes.width)


def _seen(tokens: Tensor) -> Any:
    """Booleans `[n, 1, S]`: the real tokens of each sentence; of an empty one its first padding."""
    first = tf.equal(tf.range(tokens.shape[1]), 0)[None, :]
    return tf.logical_or(tf.not_equal(tokens, PAD), first)[:, None, :]
