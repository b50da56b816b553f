"""Steps of JAX over eight CPU devices, judged in a process of their own: prints JSON lines."""

from __future__ import annotations

import json
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from samegrad_doctor import StepError, diagnose
from samegrad_doctor.adapters import jax_devices_step

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(9)
START = (RNG.normal(size=(6, 4)), RNG.normal(size=(4, 1)))
BATCH = (RNG.normal(size=(12, 6)), RNG.normal(size=(12, 1)))
AXIS = "devices"


def losses(w, batch):
    return ((jax.numpy.tanh(batch[0] @ w[0]) @ w[1] - batch[1]) ** 2).sum(axis=-1)


def pmap_of(loss, join):
    """A step by pmap, with the gradient and the loss of each device joined."""

    def build(devices):
        def device(w, *batch):
            value, gradient = jax.value_and_grad(loss)(w, *batch)
            return join(gradient, AXIS), join(value, AXIS)

        axes = (None, 0)
        if loss.__code__.co_argcount == 3:
            axes = (None, 0, 0)
        return jax.pmap(device, AXIS, in_axes=axes, devices=devices)

    return build


def mean_loss(w, batch):
    return losses(w, batch).mean()


def masked_local_mean(w, batch, mask):
    return (losses(w, batch) * mask).sum() / jax.numpy.maximum(mask.sum(), 1)


def masked_global_mean(w, batch, mask):
    return (losses(w, batch) * mask).sum() / jax.lax.psum(mask.sum(), AXIS)


def padded_mean(w, batch, mask):
    return (losses(w, batch) * mask).mean()


def jit_of(devices):
    """The whole batch on all devices; the compiler reduces."""
    mesh = Mesh(np.array(devices), (AXIS,))
    over, everywhere = NamedSharding(mesh, P(AXIS)), NamedSharding(mesh, P())

    def gradient(w, batch, mask):
        return jax.grad(lambda w: (losses(w, batch) * mask).sum() / mask.sum())(w)

    return jax.jit(gradient, in_shardings=(everywhere, over, over), out_shardings=everywhere)


def shard_map_of(join):
    def build(devices):
        mesh = Mesh(np.array(devices), (AXIS,))
        device = lambda w, batch, mask: join(jax.grad(masked_local_mean)(w, batch, mask))  # noqa: E731
        return jax.jit(
            jax.shard_map(
                device, mesh=mesh, in_specs=(P(), P(AXIS), P(AXIS)), out_specs=P(),
                check_vma=False,
            )
        )  # fmt: skip

    return build


def scan_of(devices):
    """Micro-batches, whose means are summed in a scan and not divided."""

    def device(w, batch):
        if batch[0].ndim == 2:
            return jax.lax.pmean(jax.grad(mean_loss)(w, batch), AXIS)
        zero = jax.tree.map(jax.numpy.zeros_like, w)
        add = lambda total, part: (  # noqa: E731
            jax.tree.map(jax.numpy.add, total, jax.grad(mean_loss)(w, part)), None,
        )  # fmt: skip
        return jax.lax.pmean(jax.lax.scan(add, zero, batch)[0], AXIS)

    return jax.pmap(device, AXIS, in_axes=(None, 0), devices=devices)


psum, pmean = jax.lax.psum, jax.lax.pmean
MASKED = {"mask": True, "has_loss": True}
CASES = {
    "pmap, psum of shares": (pmap_of(masked_global_mean, psum), MASKED, {}),
    "pmap, pmean of local means": (pmap_of(masked_local_mean, pmean), MASKED, {}),
    "pmap, psum of local means": (pmap_of(masked_local_mean, psum), MASKED, {}),
    "pmap, pmean of padded means": (pmap_of(padded_mean, pmean), MASKED, {}),
    "pmap, pmean of shares": (pmap_of(masked_global_mean, pmean), MASKED, {}),
    "pmap, even": (pmap_of(mean_loss, pmean), {"has_loss": True}, {"equal_shards": True}),
    "pmap, even, psum": (pmap_of(mean_loss, psum), {"has_loss": True}, {"equal_shards": True}),
    "pmap, uneven without a mask": (pmap_of(mean_loss, pmean), {"has_loss": True}, {}),
    "pmap, too few devices": (pmap_of(mean_loss, pmean), {}, {"replicas": (9,)}),
    "pmap, never joined": (
        pmap_of(mean_loss, lambda x, _: x), {"has_loss": True}, {"equal_shards": True}
    ),
    "pmap, scan": (scan_of, {}, {"equal_shards": True, "micro_batches": (1, 2)}),
    "jit": (jit_of, {"mask": True, "stacked": False}, {}),
    "shard_map, mean": (
        shard_map_of(lambda g: pmean(g, AXIS)), {"mask": True, "stacked": False}, {}
    ),
    "shard_map, never joined": (shard_map_of(lambda g: g), {"mask": True, "stacked": False}, {}),
}  # fmt: skip


def verdict(build, how, options):
    try:
        found = diagnose(jax_devices_step(build, START, **how), BATCH, max_examples=12, **options)
    except StepError as error:
        return {"error": str(error)}
    return json.loads(found.to_json())


if __name__ == "__main__":
    for name, case in CASES.items():
        print(json.dumps({name: verdict(*case)}))
    sys.exit()
