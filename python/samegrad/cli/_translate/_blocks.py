"""Blocks of a Transformer (Vaswani et al., 2017, Attention Is All You Need).

A block has parts with a residual connection around each. The parts are normalized before
(x + part(norm(x)), Xiong et al., 2020: no warm-up needed for stability) or, as in the first paper,
after (norm(x + part(x))).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import samegrad as tf
from samegrad._ops.elementary import cos, exp, log, sin
from samegrad._tensor.tensor import Tensor

EPSILON = 1e-6  # of the normalizations
PAD = 0  # the token that fills sentences up
Cache = dict[str, Tensor]


@dataclass(frozen=True)
class Sizes:
    """Hyperparameters of a Transformer.

    Args:
        layers: Blocks of the encoder, and of the decoder.
        width: Of embeddings and of what blocks give; heads must divide it.
        hidden: Of the feed-forward parts.
        heads: Of each attention.
        dropout: Rate of embeddings, attention weights and parts.
        normalize_first: Whether parts are normalized before, not after.
        shared: Whether source, target and logits have one table; the vocabularies must be one.
    """

    layers: int = 4
    width: int = 128
    hidden: int = 512
    heads: int = 8
    dropout: float = 0.1
    normalize_first: bool = True
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("layers", "width", "hidden", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"[transformer] {name} must be at least 1: got {asdict(self)}.")
        if self.width % self.heads or self.width % 2:
            raise ValueError(
                "[transformer] width must be even and a multiple of heads: got "
                f"{self.width} and {self.heads}."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"[transformer] dropout must be in [0, 1): got {self.dropout}.")


def positional_encoding(length: int, width: int) -> npt.NDArray[np.float64]:
    """Sinusoids of wavelengths from 2π to 10,000 · 2π (Vaswani et al., 2017, section 3.5).

    Args:
        length: Number of positions.
        width: Even.

    Returns:
        `[length, width]`: sin(p / 10000^(2i / width)) in column 2i, its cosine in column 2i + 1.

    Example:
        >>> positional_encoding(2, 2).round(2)
        array([[0.  , 1.  ],
               [0.84, 0.54]])
    """
    rates = exp(-log(10000.0) * (np.arange(0, width, 2) / width))
    angles = np.arange(length)[:, None] * rates
    waves = np.stack([sin(angles), cos(angles)], axis=-1)
    return waves.reshape(length, width)


class Block(tf.keras.layers.Layer):  # type: ignore[misc]
    """Base of the blocks: residual connections, normalizations, a feed-forward part."""

    def __init__(self, sizes: Sizes, **options: Any) -> None:
        super().__init__(**options)
        self.sizes = sizes
        layers, policy = tf.keras.layers, self.dtype_policy
        self.rise = layers.Dense(sizes.hidden, "relu", dtype=policy, name="rise")
        self.fall = layers.Dense(sizes.width, dtype=policy, name="fall")
        self.feed_norm = self._norm("feed_norm")
        self.drop = layers.Dropout(sizes.dropout, dtype=policy)

    def feed(self, x: Tensor) -> Any:
        """The feed-forward part."""
        return self.fall(self.rise(x))

    def residual(self, part: Callable[[Any], Any], norm: Any, x: Tensor, training: bool) -> Any:
        """Add the output of a sublayer to its input, with dropout and normalization."""
        if self.sizes.normalize_first:
            return x + self.drop(part(norm(x)), training=training)
        return norm(x + self.drop(part(x), training=training))

    def _attention(self, name: str) -> Any:
        sizes = self.sizes
        return tf.keras.layers.MultiHeadAttention(
            sizes.heads, sizes.width // sizes.heads, dropout=sizes.dropout, name=name,
            dtype=self.dtype_policy,
        )  # fmt: skip

    def _norm(self, name: str) -> Any:
        return tf.keras.layers.LayerNormalization(
            epsilon=EPSILON, dtype=self.dtype_policy, name=name
        )

    def build(self, input_shape: Any) -> None:
        """Makes the weights, for inputs `[n, length, width]`."""
        shape = (None, None, self.sizes.width)
        for name, layer in vars(self).items():
            if isinstance(layer, tf.keras.layers.MultiHeadAttention):
                layer.build(shape, shape)
            elif name.endswith("norm") or name in ("rise", "drop"):
                layer.build(shape)
        self.fall.build((None, None, self.sizes.hidden))


class EncoderBlock(Block):
    """Attention of a sentence to itself, and a feed-forward part.

    Args:
        sizes: Width, heads and the like.

    Call: x `[n, S, width]`, seen `[n, 1, S]` (booleans: the real tokens) to `[n, S, width]`.
    """

    def __init__(self, sizes: Sizes, **options: Any) -> None:
        super().__init__(sizes, **options)
        self.own = self._attention("own")
        self.own_norm = self._norm("own_norm")

    def call(self, x: Tensor, seen: Tensor, training: bool = False) -> Any:
        """The sentence, each token with what it takes from the others."""

        def attend(h: Tensor) -> Any:
            return self.own(h, h, attention_mask=seen, training=training)

        x = self.residual(attend, self.own_norm, x, training)
        return self.residual(self.feed, self.feed_norm, x, training)


class DecoderBlock(Block):
    """Attention to earlier tokens, to what the encoder gave, and a feed-forward part.

    Args:
        sizes: Width, heads and the like.

    Call: x `[n, T, width]`, memory `[n, S, width]`, seen `[n, 1, S]` (booleans: the real tokens of
    the source) to `[n, T, width]`.
    """

    def __init__(self, sizes: Sizes, **options: Any) -> None:
        super().__init__(sizes, **options)
        self.own, self.cross = self._attention("own"), self._attention("cross")
        self.own_norm, self.cross_norm = self._norm("own_norm"), self._norm("cross_norm")

    def call(self, x: Tensor, memory: Tensor, seen: Tensor, training: bool = False) -> Any:
        """The sentence, each token with what it takes from those before it and from the source.

        Padding comes last, so that no real token looks at it.
        """

        def attend(h: Tensor) -> Any:
            return self.own(h, h, use_causal_mask=True, training=training)

        def look(h: Tensor) -> Any:
            return self.cross(h, memory, attention_mask=seen, training=training)

        x = self.residual(attend, self.own_norm, x, training)
        x = self.residual(look, self.cross_norm, x, training)
        return self.residual(self.feed, self.feed_norm, x, training)

    def remember(self, memory: Tensor, rows: int, length: int) -> Cache:
        """Cached state of decoding steps.

        Args:
            memory: `[n, S, width]`, what the encoder gave.
            rows: Translations of each sentence that are decoded side by side.
            length: The most tokens that are decoded.

        Returns:
            Keys and values of the source `[n, S, heads, width / heads]`, and those of the decoded
            tokens, zeros at first, `[n, rows, length, heads, width / heads]`.
        """
        heads = (self.sizes.heads, self.sizes.width // self.sizes.heads)
        past = tf.zeros((memory.shape[0], rows, length, *heads), self.compute_dtype)
        return {
            "source_keys": self.cross.key_dense(memory),
            "source_values": self.cross.value_dense(memory),
            "keys": past,
            "values": past,
        }

    def step(self, x: Tensor, cache: Cache, place: Tensor, seen: Tensor) -> tuple[Tensor, Cache]:
        """One token more of each translation: what `call` gives at that place.

        Args:
            x: `[n, rows, width]`.
            cache: What `remember` or the last step gave.
            place: How many tokens came before, a scalar.
            seen: `[n, 1, S]`.

        Returns:
            `[n, rows, width]`, and the cache for the next step.
        """
        new = dict(cache)

        def attend(h: Tensor) -> Any:
            length = int(cache["keys"].shape[2])
            places = tf.range(length, dtype=place.dtype)
            here = tf.equal(places, place)[None, None, :, None, None]
            for name, dense in (("keys", self.own.key_dense), ("values", self.own.value_dense)):
                new[name] = tf.where(here, dense(h)[:, :, None], cache[name])
            keys, values = (
                tf.reshape(new[name], [-1, *new[name].shape[2:]]) for name in ("keys", "values")
            )
            queries = self.own.query_dense(h)
            single = tf.reshape(queries, [-1, 1, *queries.shape[2:]])
            past = tf.less_equal(places, place)[None, None, None, :]
            found = tf.nn.dot_product_attention(single, keys, values, mask=past)
            return self.own.output_dense(tf.reshape(found, [-1, *queries.shape[1:]]))

        def look(h: Tensor) -> Any:
            found = tf.nn.dot_product_attention(
                self.cross.query_dense(h),
                cache["source_keys"],
                cache["source_values"],
                mask=seen[:, None],
            )
            return self.cross.output_dense(found)

        x = self.residual(attend, self.own_norm, x, False)
        x = self.residual(look, self.cross_norm, x, False)
        return self.residual(self.feed, self.feed_norm, x, False), new
