"""JAX: pmap, shard_map and jit with shardings."""

from __future__ import annotations

from jax_steps import *


def pmapped(step: Any) -> Any:
    """Map step(p, batch) over an axis of devices."""

    def build(devices: Any) -> Any:
        return jax.pmap(step, axis_name="device", in_axes=(None, 0), devices=devices)

    return jax_devices_step(build, params())


@case(
    "google/jaxopt#333",
    "the solver's update in each device, nothing is averaged",
    "1 / n_r on each copy: every device goes its own way",
    named="the replicas' parameters differ",
    equal_shards=True,
)
def nothing_is_averaged() -> Any:
    return pmapped(lambda p, batch: jax.grad(mean_loss)(p, batch)), vectors()


@case(
    "google/jaxopt#346",
    "value_and_grad with pmean, equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def averaged_value_and_grad() -> Any:
    return pmapped(lambda p, b: lax.pmean(jax.grad(mean_loss)(p, b), "device")), vectors()


@case(
    "atomicarchitects/nequix#38",
    "losses over the atoms of each device's graphs, then pmean",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    weights=LENGTHS,
)
def atoms_of_a_device() -> Any:
    return jax_step(jax.grad(token_mean), params(), pmean), text()


@case(
    "patrick-kidger/equinox#289",
    "psum over devices of the gradients of means",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def psum_over_devices() -> Any:
    return pmapped(lambda p, b: lax.psum(jax.grad(mean_loss)(p, b), "device")), vectors()


@case(
    "poets-ai/elegy#147",
    "add_loss of a penalty on every device, data terms over the global batch, psum",
    "1 / N for examples, the penalty R times",
    named="regularisation counts once on every replica",
)
def loss_added_on_every_device() -> Any:
    def step(shares: list[Any]) -> Any:
        size = sum(len(x) for x, _ in shares)

        def loss(p: Any, share: Any) -> Any:
            penalty = sum((leaf**2).sum() for leaf in jax.tree.leaves(p))
            return losses(p, *share).sum() / size + 0.05 * penalty

        return psum([jax.grad(loss)(params(), share) for share in shares])

    return step, vectors()


@case(
    "tenstorrent/tt-mlir#3645",
    "all_gather of the devices' sums and counts, then one mean, instead of pmean",
    "w_i / W",
    "right",
    weights=LENGTHS,
)
def gathered_then_mean() -> Any:
    def step(shares: list[Any]) -> Any:
        grads = psum([jax.grad(token_sum)(params(), share) for share in shares])
        return tree(lambda g: g / sum(share[2].sum() for share in shares), grads)

    return step, text()


@case(
    "atomicarchitects/nequix#38",
    "shard_map: each device's mean loss goes through pmean, which is then differentiated",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def differentiated_through_pmean() -> Any:
    def build(devices: Any) -> Any:
        mesh = Mesh(np.array(devices), ("data",))
        row, copy = PartitionSpec("data"), PartitionSpec()

        def loss(p: Any, x: Any, y: Any) -> Any:
            return lax.pmean(mean_loss(p, (x, y)), "data")

        mapped = jax.shard_map(loss, mesh=mesh, in_specs=(copy, row, row), out_specs=copy)
        return jax.jit(lambda p, batch: jax.grad(mapped)(p, *batch))

    return jax_devices_step(build, params(), stacked=False), vectors()


@case(
    "google/jaxopt#333",
    "a norm of the gradient is taken on each device for its limit, then pmean",
    "min(1, c / |g_r|) / (R n_r)",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def limit_of_a_device() -> Any:
    def step(p: Any, batch: Any) -> Any:
        grads = jax.grad(mean_loss)(p, batch)
        norm = jnp.sqrt(sum((g**2).sum() for g in jax.tree.leaves(grads)))
        return lax.pmean(tree(lambda g: g * jnp.minimum(1, 0.1 / norm), grads), "device")

    return pmapped(step), vectors()
