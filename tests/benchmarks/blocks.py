"""Parts of networks alone, forward and with derivatives: milliseconds, the best of many.

    python tests/benchmarks/blocks.py samegrad
    ~/peers/bin/python tests/benchmarks/blocks.py torch layer_norm attention

On a machine that does other things too, run both by turns and compare the best of each.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Name and shape of x (examples first; images have their channels last).
BLOCKS: dict[str, tuple[int, ...]] = {
    "layer_norm": (32, 40, 128),
    "layer_norm_wide": (32, 512, 512),
    "softmax": (32, 128, 512),
    "attention": (32, 40, 8, 16),
    "attention_long": (8, 512, 8, 64),
    "batch_norm_relu": (32, 28, 28, 64),
}
EPSILON = 1e-5

Block = Callable[..., Any]


def samegrad_block(tf: Any, name: str) -> Block:
    """The block as a function of the operands that `operands` makes."""

    def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
        return centred * tf.math.rsqrt(variance + EPSILON) * scale + offset

    def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
        centred = x - tf.reduce_mean(x, [0, 1, 2])
        variance = tf.reduce_mean(centred * centred, [0, 1, 2])
        return tf.nn.relu(centred * tf.math.rsqrt(variance + EPSILON) * scale + offset)

    if name.startswith("attention"):
        return tf.nn.dot_product_attention  # type: ignore[no-any-return]
    if name.startswith("layer_norm"):
        return layer_norm
    return batch_norm if name.startswith("batch_norm") else tf.nn.softmax


def torch_block(torch: Any, name: str) -> Block:
    """The same in PyTorch's own words and layouts."""
    f = torch.nn.functional
    if name.startswith("attention"):
        return f.scaled_dot_product_attention  # type: ignore[no-any-return]
    if name.startswith("layer_norm"):
        return lambda x, scale, offset: f.layer_norm(x, x.shape[-1:], scale, offset, EPSILON)
    if name.startswith("batch_norm"):
        return lambda x, scale, offset: f.relu(
            f.batch_norm(x, None, None, scale, offset, True, 0.1, EPSILON)
        )
    return lambda x: f.softmax(x, -1)


def operands(name: str) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    shape = BLOCKS[name]
    x = [rng.standard_normal(shape).astype(np.float32)]
    if name.startswith("attention"):
        return x + [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    parameters = 2 if "norm" in name else 0
    return x + [rng.standard_normal(shape[-1]).astype(np.float32) for _ in range(parameters)]


def open_samegrad(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns the forward pass, and the one with derivatives of a weighted sum."""
    tf = importlib.import_module("samegrad")
    block = samegrad_block(tf, name)
    given = [tf.constant(x) for x in operands(name)]
    given = [x._as_examples(0, 1) if len(x.shape) > 1 else x for x in given]
    weights = tf.constant(np.ones(block(*given).shape, np.float32))._as_examples(0, 1)

    def derived(weights: Any, *given: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(given)
            total = tf.reduce_sum(block(*given) * weights)
        return tape.gradient(total, given)

    forward, both = tf.function(block), tf.function(derived)
    return lambda: forward(*given), lambda: both(weights, *given)


def open_torch(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same for PyTorch: images channels last in memory, heads before rows."""
    torch = importlib.import_module("torch")
    block = torch_block(torch, name)
    given = [torch.from_numpy(x) for x in operands(name)]
    if name.startswith("attention"):
        given = [x.transpose(1, 2).contiguous() for x in given]
    if name.startswith("batch_norm"):
        given[0] = given[0].permute(0, 3, 1, 2)
    for x in given:
        x.requires_grad_()
    weights = torch.ones_like(block(*given))

    def forward() -> Any:
        with torch.no_grad():
            return block(*given)

    return forward, lambda: torch.autograd.grad(block(*given), given, weights)


def best_of(run: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of the fastest call."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=["samegrad", "torch"])
    parser.add_argument("blocks", nargs="*", metavar="block", help=", ".join(BLOCKS))
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    for name in options.blocks or BLOCKS:
        opened = open_samegrad(name) if options.framework == "samegrad" else open_torch(name)
        forward, both = (best_of(run, options.repeats) for run in opened)
        print(f"{name:18} forward {forward:9.3f} ms   with derivatives {both:9.3f} ms")


if __name__ == "__main__":
    main()
