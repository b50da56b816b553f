"""JAX: pmap over devices, scans over micro-batches, and limits on gradients."""

from __future__ import annotations

from jax_steps import *


@case(
    "mlcommons/algorithmic-efficiency#239",
    "pmean of the devices' weighted means, though batches are masked",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    weights=LENGTHS, equal_shards=True,
)  # fmt: skip
def pmean_of_weighted_means() -> Any:
    def step(p: Any, batch: Any) -> Any:
        return lax.pmean(jax.grad(token_mean)(p, batch), "batch")

    return pmapped(step), text()


@case(
    "mlcommons/algorithmic-efficiency#314",
    "after: summed losses and n_valid_examples are both psum, then divided",
    "w_i / W",
    "right",
    weights=LENGTHS, equal_shards=True,
)  # fmt: skip
def summed_over_valid() -> Any:
    def step(p: Any, batch: Any) -> Any:
        grads = lax.psum(jax.grad(token_sum)(p, batch), "batch")
        n_valid = lax.psum(batch[2].sum(), "batch")
        return tree(lambda g: g / n_valid, grads)

    return pmapped(step), text()


@case(
    "google-research/pegasus#223",
    "the mean over a device's examples, gradients are psum",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def psum_of_means() -> Any:
    def step(p: Any, batch: Any) -> Any:
        return lax.psum(jax.grad(mean_loss)(p, batch), "batch")

    return pmapped(step), vectors()


@case(
    "google-research/pegasus#223",
    "the mean over a device's examples, gradients are pmean, devices have equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def pmean_of_means() -> Any:
    def step(p: Any, batch: Any) -> Any:
        return lax.pmean(jax.grad(mean_loss)(p, batch), "batch")

    return pmapped(step), vectors()


@case(
    "ACEsuit/mace-jax#14",
    "graphs are filled up: a device's mean over its real ones, pmean over devices",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def mean_over_real_graphs() -> Any:
    def step(p: Any, batch: Any, mask: Any) -> Any:
        def loss(p: Any) -> Any:
            each = losses(p, *batch)
            return (each * mask).sum() / jnp.maximum(mask.sum(), 1)

        return lax.pmean(jax.grad(loss)(p), "batch")

    return pmapped(step, mask=True), vectors()


@case(
    "ACEsuit/mace-jax#14",
    "graphs are filled up: the sum over real ones, over their number on all devices",
    "1 / N",
    "right",
)
def over_real_graphs_of_all() -> Any:
    def step(p: Any, batch: Any, mask: Any) -> Any:
        grads = jax.grad(lambda p: (losses(p, *batch) * mask).sum())(p)
        count = lax.psum(mask.sum(), "batch")
        return tree(lambda g: lax.psum(g, "batch") / count, grads)

    return pmapped(step, mask=True), vectors()


@case(
    "google-deepmind/jax_privacy#395",
    "limited gradients of examples are added over a device, and pmean over devices",
    "1 / R instead of 1 of each limited gradient",
    named="divided by the global batch, then averaged",
    equal_shards=True,
)
def limited_sums_are_averaged() -> Any:
    def step(p: Any, batch: Any) -> Any:
        grads = limited(p, batch)
        return lax.pmean(tree(lambda g: g.sum(0), grads), "batch")

    return pmapped(step), vectors()


def limited(p: Any, batch: Any) -> Any:
    """Gradients of single examples, each of a norm of at most 0.5."""
    grads = jax.vmap(jax.grad(lambda p, x, y: losses(p, x, y)), (None, 0, 0))(p, *batch)
    norm = jnp.sqrt(sum((g**2).sum((1, 2)) for g in jax.tree.leaves(grads)))
    return tree(lambda g: g * jnp.minimum(1, 0.5 / norm)[:, None, None], grads)


@case(
    "google-deepmind/jax_privacy#395",
    "limited gradients of examples are added, psum, and divided by the batch size once",
    "1 / N of each limited gradient",
    "right",
    equal_shards=True,
)
def limited_sum_over_batch_size() -> Any:
    def step(p: Any, batch: Any) -> Any:
        size = lax.psum(len(batch[0]), "batch")
        grads = tree(lambda g: g.sum(0) / size, limited(p, batch))
        return lax.psum(grads, "batch")

    return pmapped(step), vectors()


@case(
    "keraJLi/rejax#17",
    "targets by the mean and deviation of each minibatch's returns, in a loop over minibatches",
    "no sum over examples: moments of the own micro-batch",
    named="batch statistics are those of each micro-batch",
    **ALONE,
)
def moments_of_a_minibatch() -> Any:
    def loss(p: Any, batch: Any) -> Any:
        x, y = batch
        value = (jnp.tanh(x @ p["one"]) @ p["two"])[:, 0]
        returns = x[:, 1] + y
        target = (returns - returns.mean()) / (returns.std() + 0.1)
        return ((value - target) ** 2).sum()

    def step(shares: list[Any]) -> Any:
        (share,) = shares
        window = share if isinstance(share, list) else [share]
        size = sum(len(batch[0]) for batch in window)
        grads = [jax.grad(loss)(params(), batch) for batch in window]
        return tree(lambda *g: sum(g) / size, *grads)

    return step, vectors()
