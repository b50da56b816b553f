"""JAX: pmap, shard_map, and scans over micro-batches."""

from __future__ import annotations

from jax_steps import *


def sum_loss(p: Any, batch: Any) -> Any:
    """The sum over examples."""
    return losses(p, *batch).sum()


def l2(p: Any) -> Any:
    """Half the squares of all parameters."""
    return 0.5 * sum((leaf**2).sum() for leaf in jax.tree.leaves(p))


def accumulated(gradient: Any) -> Any:
    """A step of one device, whose micro-batches are handed to gradient(p, window)."""

    def step(shares: list[Any]) -> Any:
        (share,) = shares
        return gradient(params(), share if isinstance(share, list) else [share])

    return step


@case(
    "apax-hub/apax#122",
    "before: losses are summed over a device's structures, gradients are pmean",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    equal_shards=True,
)
def summed_structures() -> Any:
    return pmapped(lambda p, batch: lax.pmean(jax.grad(sum_loss)(p, batch), "batch")), vectors()


@case(
    "apax-hub/apax#122",
    "the loss is averaged over the batch of a device, devices have equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def averaged_structures() -> Any:
    return pmapped(lambda p, batch: lax.pmean(jax.grad(mean_loss)(p, batch), "batch")), vectors()


@case(
    "apax-hub/apax#122",
    "padded structures: the mean over what a device really holds, then pmean",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def padded_structures() -> Any:
    def step(p: Any, batch: Any, mask: Any) -> Any:
        def loss(p: Any) -> Any:
            return (losses(p, *batch) * mask).sum() / jnp.maximum(mask.sum(), 1)

        return lax.pmean(jax.grad(loss)(p), "batch")

    return pmapped(step, mask=True), vectors()


@case(
    "thorben-frank/mlff#16",
    "in the way of pmap tutorials: each device's gradient of a mean, psum",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def gradients_are_psummed() -> Any:
    return pmapped(lambda p, batch: lax.psum(jax.grad(mean_loss)(p, batch), "batch")), vectors()


@case(
    "thorben-frank/mlff#16",
    "sums over atoms that are there, psum of gradients and of atoms",
    "1 / N",
    "right",
)
def sums_and_atoms() -> Any:
    def step(p: Any, batch: Any, mask: Any) -> Any:
        grads = jax.grad(lambda p: (losses(p, *batch) * mask).sum())(p)
        n = lax.psum(mask.sum(), "batch")
        return tree(lambda g: g / n, lax.psum(grads, "batch"))

    return pmapped(step, mask=True), vectors()


@case(
    "google-research/t5x#707",
    "microbatches: gradients of sums and weights are added, divided once",
    "w_i / W",
    "right",
    weights=LENGTHS,
    **ALONE,
)
def sums_of_microbatches() -> Any:
    def gradient(p: Any, window: list[Any]) -> Any:
        grads = psum([jax.grad(token_sum)(p, batch) for batch in window])
        weight_sum = sum(w.sum() for _, _, w in window)
        return tree(lambda g: g / weight_sum, grads)

    return accumulated(gradient), text()


@case(
    "google-research/t5x#707",
    "num_microbatches as the question means it: means of microbatches, averaged",
    "w_i / (K W_k)",
    named="mean of the micro-batches' means",
    weights=LENGTHS,
    **ALONE,
)
def means_of_microbatches() -> Any:
    def gradient(p: Any, window: list[Any]) -> Any:
        return pmean([jax.grad(token_mean)(p, batch) for batch in window])

    return accumulated(gradient), text()


@case(
    "NVIDIA/JAX-Toolbox#195",
    "accumulated gradients of mean losses are added in a loop, never divided",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    equal_shards=True,
    **ALONE,
)
def added_in_a_loop() -> Any:
    def gradient(p: Any, window: list[Any]) -> Any:
        return psum([jax.grad(mean_loss)(p, batch) for batch in window])

    return accumulated(gradient), vectors()


@case(
    "NVIDIA/JAX-Toolbox#195",
    "a scan whose carry is the mean of the gradients, microbatches are equal",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def mean_in_a_scan() -> Any:
    def gradient(p: Any, window: list[Any]) -> Any:
        stacked = tuple(np.stack(parts) for parts in zip(*window, strict=True))

        def body(carry: Any, batch: Any) -> Any:
            return tree(jnp.add, carry, jax.grad(mean_loss)(p, batch)), None

        total, _ = lax.scan(body, tree(jnp.zeros_like, p), stacked)
        return tree(lambda g: g / len(window), total)

    return accumulated(gradient), vectors()


@case(
    "NobuoTsukamoto/jax_examples#5",
    "the l2 penalty is in each device's loss, gradients are pmean: it counts once",
    "1 / (R n_r), which is 1 / N for equal shares, the penalty once",
    "even",
)
def penalty_is_averaged() -> Any:
    def loss(p: Any, batch: Any) -> Any:
        return mean_loss(p, batch) + 0.1 * l2(p)

    return pmapped(lambda p, batch: lax.pmean(jax.grad(loss)(p, batch), "batch")), vectors()


@case(
    "NobuoTsukamoto/jax_examples#5",
    "the same in a loss whose sums are divided by the global batch and psum",
    "1 / N for examples, the penalty R times",
    named="regularisation counts once on every replica",
    equal_shards=True,
)
def penalty_is_added() -> Any:
    def step(p: Any, batch: Any) -> Any:
        n = lax.psum(len(batch[0]), "batch")
        grads = jax.grad(lambda p: sum_loss(p, batch) / n + 0.1 * l2(p))(p)
        return lax.psum(grads, "batch")

    return pmapped(step), vectors()


@case(
    "pevers/parkiet#3",
    "the mean over a device's own frames, pmean",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    weights=LENGTHS,
)
def frames_of_a_device() -> Any:
    return jax_step(jax.jit(jax.grad(token_mean)), params(), pmean), text()


@case(
    "pevers/parkiet#3",
    "sums over frames and their number are added over devices, then divided",
    "w_i / W",
    "right",
    weights=LENGTHS,
)
def frames_of_all_devices() -> Any:
    def step(shares: list[Any]) -> Any:
        grads = psum([jax.grad(token_sum)(params(), share) for share in shares])
        frames = sum(w.sum() for _, _, w in shares)
        return tree(lambda g: g / frames, grads)

    return step, text()


@case(
    "pevers/parkiet#3",
    "shard_map: the loss is pmean inside of what is differentiated, parameters are replicated",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def differentiated_pmean() -> Any:
    def build(devices: Any) -> Any:
        def step(p: Any, batch: Any) -> Any:
            return jax.grad(lambda p: lax.pmean(mean_loss(p, batch), "data"))(p)

        mesh = Mesh(np.array(devices), ("data",))
        specs = (PartitionSpec(), PartitionSpec("data"))
        return jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=PartitionSpec())

    return jax_devices_step(build, params(), stacked=False), vectors()
