"""Models, batches and reductions of the JAX cases: four CPU devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from eval_case import decorator
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from samegrad_doctor.adapters import jax_devices_step, jax_step

jax.config.update("jax_num_cpu_devices", 4)
case = decorator(lambda make, settings: make)  # of make(), which returns a step and a batch
LENGTHS = [3, 6, 1, 5, 2, 6, 4, 1, 2, 3, 5, 2]


def params(inputs: int = 8, outputs: int = 3) -> dict[str, Any]:
    """Two layers."""
    rng = np.random.default_rng(51)
    one, two = rng.normal(size=(inputs, 10)) / 3, rng.normal(size=(10, outputs)) / 3
    return {"one": jnp.array(one, jnp.float32), "two": jnp.array(two, jnp.float32)}


def vectors() -> tuple[np.ndarray, ...]:
    """Features and classes."""
    rng = np.random.default_rng(52)
    return rng.normal(size=(12, 8)).astype(np.float32), rng.integers(3, size=12)


def text() -> tuple[np.ndarray, ...]:
    """Tokens, labels, and 1 for those that count."""
    rng = np.random.default_rng(53)
    weights = (np.arange(6) < np.array(LENGTHS)[:, None]).astype(np.float32)
    return rng.normal(size=(12, 6, 8)).astype(np.float32), rng.integers(3, size=(12, 6)), weights


def losses(p: Any, x: Any, y: Any) -> Any:
    """Cross entropy of each example or token."""
    logp = jax.nn.log_softmax(jnp.tanh(x @ p["one"]) @ p["two"])
    return -jnp.take_along_axis(logp, y[..., None].astype(int), -1)[..., 0]


def mean_loss(p: Any, batch: Any) -> Any:
    """The mean over examples."""
    return losses(p, *batch).mean()


def token_mean(p: Any, batch: Any) -> Any:
    """The mean over the tokens that count."""
    x, y, w = batch
    return (losses(p, x, y) * w).sum() / w.sum()


def token_sum(p: Any, batch: Any) -> Any:
    """Their sum."""
    x, y, w = batch
    return (losses(p, x, y) * w).sum()


def tree(function: Callable[..., Any], *trees: Any) -> Any:
    """jax.tree.map."""
    return jax.tree.map(function, *trees)


def pmean(grads: list[Any]) -> Any:
    """Return the mean that lax.pmean makes of the devices' gradients."""
    return tree(lambda *g: sum(g) / len(g), *grads)


def psum(grads: list[Any]) -> Any:
    """Return the sum that lax.psum makes of them."""
    return tree(lambda *g: sum(g), *grads)


def pmapped(step: Any, **options: Any) -> Any:
    """Map step(p, batch) over an axis of devices."""

    def build(devices: Any) -> Any:
        axes = (None, 0, 0) if options.get("mask") else (None, 0)
        return jax.pmap(step, axis_name="batch", in_axes=axes, devices=devices)

    return jax_devices_step(build, params(), **options)


def micros(share: Any) -> list[Any]:
    """The micro-batches of a device."""
    return share if isinstance(share, list) else [share]


ALONE: dict[str, Any] = {"micro_batches": (1, 2), "replicas": (1,)}
WORDS: dict[str, Any] = {"weights": LENGTHS}

__all__ = [
    "ALONE", "LENGTHS", "WORDS", "Any", "Callable", "Mesh", "NamedSharding", "PartitionSpec",
    "case", "jax", "jax_devices_step", "jax_step", "jnp", "lax", "losses", "mean_loss", "micros",
    "np", "params", "pmapped", "pmean", "psum", "text", "token_mean", "token_sum", "tree",
    "vectors",
]  # fmt: skip
