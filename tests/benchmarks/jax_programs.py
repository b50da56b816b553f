"""The cnn and the tiny workload in JAX: jit on one device, pmap on several."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import Arrays, Job, Program

LossOf = Callable[[Any, Any, Any], Any]


def build(job: Job, data: Arrays) -> Program:
    """Returns the training step of `job`, its parameters donated from step to step."""
    if job.workload not in ("cnn", "tiny"):
        raise SystemExit("jax: only the workloads cnn and tiny are written")
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={job.replicas}"
    if job.threads and hasattr(os, "sched_setaffinity"):
        # XLA has no option for its threads; it makes one per CPU that it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.threads])
    jax: Any = importlib.import_module("jax")
    parameters, loss_of = (cnn if job.workload == "cnn" else tiny)(jax, job)
    zeros = [jax.tree.map(jax.numpy.zeros_like, parameters) for _ in range(2)]
    state = [parameters, *zeros, jax.numpy.ones(())]
    update = make_update(jax, job, loss_of)
    if job.replicas > 1:
        compiled = jax.pmap(update, axis_name="replica", donate_argnums=(0, 1, 2))
        state = [
            jax.tree.map(lambda value: jax.numpy.stack([value] * job.replicas), part)
            for part in state
        ]
    else:
        compiled = jax.jit(update, donate_argnums=(0, 1, 2))
    order = np.random.default_rng(0).permutation(len(data[0]))

    def step(i: int) -> Any:
        start = i * job.global_batch % (len(order) - job.global_batch)
        picked = order[start : start + job.global_batch]
        batch = [array[picked] for array in data]
        if job.replicas > 1:
            batch = [rows.reshape(job.replicas, -1, *rows.shape[1:]) for rows in batch]
        *state[:], loss = compiled(*state, *batch)
        return loss

    return Program(step, lambda loss: float(np.ravel(loss)[0]), str(jax.__version__))


def make_update(jax: Any, job: Job, loss_of: LossOf) -> Callable[..., Any]:
    """Returns (parameters, m, v, t, inputs, targets) -> the same four and the loss."""
    jnp = jax.numpy

    def sgd(parameter: Any, gradient: Any) -> Any:
        return parameter - 0.01 * gradient

    def update(p: Any, m: Any, v: Any, t: Any, inputs: Any, targets: Any) -> Any:
        loss, gradient = jax.value_and_grad(loss_of)(p, inputs, targets)
        if job.replicas > 1:
            loss, gradient = jax.lax.psum((loss, gradient), "replica")
        if job.workload == "tiny":
            return jax.tree.map(sgd, p, gradient), m, v, t + 1, loss
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        p = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-7), p, m, v)
        return p, m, v, t + 1, loss

    return update


def make_glorot(jax: Any) -> Callable[[tuple[int, ...], int], Any]:
    """Returns the Glorot-uniform initializer: (shape, fan in + fan out) -> weights."""
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def glorot(shape: tuple[int, ...], fans: int) -> Any:
        return jax.random.uniform(next(keys), shape, minval=-1, maxval=1) * np.sqrt(6 / fans)

    return glorot


def cnn(jax: Any, job: Job) -> tuple[Any, LossOf]:
    jnp, glorot = jax.numpy, make_glorot(jax)
    parameters = {
        "w1": glorot((3, 3, 1, 32), 9 + 9 * 32),
        "b1": jnp.zeros(32),
        "w2": glorot((3, 3, 32, 64), 9 * 32 + 9 * 64),
        "b2": jnp.zeros(64),
        "w3": glorot((1600, 64), 1600 + 64),
        "b3": jnp.zeros(64),
        "w4": glorot((64, 10), 64 + 10),
        "b4": jnp.zeros(10),
    }

    def convolve(h: Any, w: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(h, w, (1, 1), "VALID", dimension_numbers=names)

    def pool(h: Any) -> Any:
        window = (1, 2, 2, 1)
        return jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, window, window, "VALID")

    def loss_of(p: Any, images: Any, labels: Any) -> Any:
        h = pool(jax.nn.relu(convolve(images, p["w1"]) + p["b1"]))
        h = pool(jax.nn.relu(convolve(h, p["w2"]) + p["b2"])).reshape(len(images), -1)
        logits = jax.nn.relu(h @ p["w3"] + p["b3"]) @ p["w4"] + p["b4"]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -jnp.sum(picked) / job.global_batch

    return parameters, loss_of


def tiny(jax: Any, job: Job) -> tuple[Any, LossOf]:
    jnp, glorot = jax.numpy, make_glorot(jax)
    parameters = {
        "w1": glorot((8, 16), 8 + 16),
        "b1": jnp.zeros(16),
        "w2": glorot((16, 1), 16 + 1),
        "b2": jnp.zeros(1),
    }

    def loss_of(p: Any, inputs: Any, targets: Any) -> Any:
        outputs = jax.nn.relu(inputs @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return jnp.sum((outputs - targets) ** 2) / job.global_batch

    return parameters, loss_of
