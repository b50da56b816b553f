"""Small Transformers with given weights and batches, for any library: only NumPy here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LAYERS, WIDTH, HIDDEN, HEADS = 2, 8, 12, 2
TOKENS, SMOOTHING, EPSILON = 11, 0.1, 1e-6
Shape = tuple[int, ...]
Weights = dict[str, np.ndarray]

# Whether parts are normalized before, whether there is one table.
MODELS = {
    "pre": (True, False),
    "post": (False, False),
    "pre, shared": (True, True),
    "post, shared": (False, True),
}
PARTS = (
    "attention with padding", "causal attention", "normalization", "feed-forward",
    "encoder pre", "encoder post", "decoder pre", "decoder post",
)  # fmt: skip

SOURCE = np.array([[3, 4, 5, 6, 7], [8, 9, 0, 0, 0], [10, 3, 4, 0, 0]])
TARGET = np.array([[1, 5, 6, 2, 0], [1, 7, 8, 9, 2], [1, 2, 0, 0, 0]])


def numbers(shape: Shape, seed: int) -> np.ndarray:
    """Numbers without a pattern, from -0.5 to 0.5."""
    places = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (np.sin((places + 1.0) * (1.7 + 0.37 * seed) + seed) * 0.5).reshape(shape)


def attention(name: str) -> Iterator[tuple[str, Shape]]:
    heads = (HEADS, WIDTH // HEADS)
    for part in ("query", "key", "value"):
        yield f"{name}/{part}/kernel", (WIDTH, *heads)
        yield f"{name}/{part}/bias", heads
    yield f"{name}/attention_output/kernel", (*heads, WIDTH)
    yield f"{name}/attention_output/bias", (WIDTH,)


def norm(name: str) -> Iterator[tuple[str, Shape]]:
    yield f"{name}/gamma", (WIDTH,)
    yield f"{name}/beta", (WIDTH,)


def feed() -> Iterator[tuple[str, Shape]]:
    yield "rise/kernel", (WIDTH, HIDDEN)
    yield "rise/bias", (HIDDEN,)
    yield "fall/kernel", (HIDDEN, WIDTH)
    yield "fall/bias", (WIDTH,)


def block(decodes: bool) -> Iterator[tuple[str, Shape]]:
    yield from feed()
    yield from norm("feed_norm")
    for name in ("own", "cross") if decodes else ("own",):
        yield from attention(name)
        yield from norm(f"{name}_norm")


def part_shapes(part: str) -> list[tuple[str, Shape]]:
    """The names of the weights of a part, and their shapes."""
    if "attention" in part:
        return list(attention("own"))
    if part == "normalization":
        return list(norm("own_norm"))
    if part == "feed-forward":
        return list(feed())
    return list(block(part.startswith("decoder")))


def model_shapes(before: bool, shared: bool) -> list[tuple[str, Shape]]:
    """Those of a whole model."""
    tables = ["table"] if shared else ["source_table", "target_table"]
    shapes: list[tuple[str, Shape]] = [(f"{name}/embeddings", (TOKENS, WIDTH)) for name in tables]
    if not shared:
        shapes += [("logits/kernel", (WIDTH, TOKENS)), ("logits/bias", (TOKENS,))]
    for kind in ("encoder", "decoder"):
        for i in range(LAYERS):
            shapes += [(f"{kind}_{i}/{name}", shape) for name, shape in block(kind == "decoder")]
        if before:
            shapes += list(norm(f"{kind}_norm"))
    return shapes


def weights_of(shapes: list[tuple[str, Shape]]) -> Weights:
    """Numbers for weights; those that multiply what is normalized are near 1."""
    return {
        name: numbers(shape, seed) + (1.0 if name.endswith("gamma") else 0.0)
        for seed, (name, shape) in enumerate(shapes)
    }


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """What comes into a block of the encoder, and of the decoder: [n, S or T, width]."""
    return numbers((*SOURCE.shape, WIDTH), 101), numbers((3, TARGET.shape[1] - 1, WIDTH), 102)
