"""JAX: psum, pmean, masks of devices, scans over micro-batches, and jit over a mesh."""

from __future__ import annotations

from jax_steps import *


@case(
    "huggingface/transformers#18297",
    "a loss that each device normalises with its own labels, then pmean",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    weights=LENGTHS,
)
def flax_bart() -> Any:
    return jax_step(jax.jit(jax.grad(token_mean)), params(), pmean), text()


@case(
    "huggingface/transformers#19494",
    "the fix: psum of the losses' sums and of the labels, then the division",
    "w_i / W",
    "right",
    weights=LENGTHS,
)
def flax_summarization() -> Any:
    def step(shares: list[Any]) -> Any:
        num_labels = sum(w.sum() for _, _, w in shares)
        grads = psum([jax.grad(token_sum)(params(), share) for share in shares])
        return tree(lambda g: g / num_labels, grads)

    return step, text()


@case(
    "google/flax#2031",
    "pmap with pmean of the gradients of mean losses; devices have equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def flax_imagenet() -> Any:
    def build(devices: Any) -> Any:
        def train_step(p: Any, batch: Any) -> Any:
            return lax.pmean(jax.grad(mean_loss)(p, batch), axis_name="batch")

        return jax.pmap(train_step, axis_name="batch", in_axes=(None, 0), devices=devices)

    return jax_devices_step(build, params()), vectors()


@case(
    "google-research/big_vision#8",
    "masked examples: each device's mean over its mask, then pmean",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def masked_mean_then_pmean() -> Any:
    def build(devices: Any) -> Any:
        def update_fn(p: Any, batch: Any, mask: Any) -> Any:
            def loss_fn(p: Any) -> Any:
                return (losses(p, *batch) * mask).sum() / jnp.maximum(mask.sum(), 1)

            return lax.pmean(jax.grad(loss_fn)(p), axis_name="batch")

        return jax.pmap(update_fn, axis_name="batch", in_axes=(None, 0, 0), devices=devices)

    return jax_devices_step(build, params(), mask=True), vectors()


@case(
    "google-research/big_vision#8",
    "masked examples: sums and masks are added over devices before the division",
    "1 / N",
    "right",
)
def masked_sums_over_devices() -> Any:
    def build(devices: Any) -> Any:
        def update_fn(p: Any, batch: Any, mask: Any) -> Any:
            grads = jax.grad(lambda p: (losses(p, *batch) * mask).sum())(p)
            count = lax.psum(mask.sum(), "batch")
            return tree(lambda g: lax.psum(g, "batch") / count, grads)

        return jax.pmap(update_fn, axis_name="batch", in_axes=(None, 0, 0), devices=devices)

    return jax_devices_step(build, params(), mask=True), vectors()


@case(
    "jax-ml/jax#7115",
    "psum instead of pmean of gradients of mean losses",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def psum_of_means() -> Any:
    def build(devices: Any) -> Any:
        def train_step(p: Any, batch: Any) -> Any:
            return lax.psum(jax.grad(mean_loss)(p, batch), "i")

        return jax.pmap(train_step, "i", in_axes=(None, 0), devices=devices)

    return jax_devices_step(build, params()), vectors()


@case(
    "jax-ml/jax#15659",
    "jit over a mesh: the loss is the mean over the global batch, the compiler adds",
    "1 / N",
    "even",
)
def jit_over_a_mesh() -> Any:
    def build(devices: Any) -> Any:
        mesh = Mesh(np.array(devices), ("data",))
        rows = NamedSharding(mesh, PartitionSpec("data"))
        copy = NamedSharding(mesh, PartitionSpec())

        def train_step(p: Any, batch: Any) -> Any:
            return jax.grad(mean_loss)(p, batch)

        return jax.jit(train_step, in_shardings=(copy, rows), out_shardings=copy)

    return jax_devices_step(build, params(), stacked=False), vectors()


@case(
    "AI-Hypercomputer/maxtext#812",
    "gradient accumulation by the mean of the sub-batches' token means",
    "w_i / (K W_rk)",
    named="mean of the micro-batches' means",
    replicas=(1,),
    micro_batches=(1, 2, 3),
    weights=LENGTHS,
)
def mean_of_sub_batches() -> Any:
    def step(shares: list[Any]) -> Any:
        window = shares[0] if isinstance(shares[0], list) else shares
        return pmean([jax.grad(token_mean)(params(), batch) for batch in window])

    return step, text()


@case(
    "AI-Hypercomputer/maxtext#812",
    "gradients of sums, over the total weights of all sub-batches",
    "w_i / W",
    "right",
    micro_batches=(1, 2),
    weights=LENGTHS,
)
def total_weights() -> Any:
    def step(shares: list[Any]) -> Any:
        flat = [b for s in shares for b in (s if isinstance(s, list) else [s])]
        grads = psum([jax.grad(token_sum)(params(), batch) for batch in flat])
        weights = sum(w.sum() for _, _, w in flat)
        return tree(lambda g: g / weights, grads)

    return step, text()


@case(
    "google-deepmind/optax#320",
    "MultiSteps: a running mean of the gradients of mini-batches of one size",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    micro_batches=(1, 2),
)
def multi_steps() -> Any:
    def accumulate(share: Any) -> Any:
        acc = tree(jnp.zeros_like, params())
        for n, batch in enumerate(share if isinstance(share, list) else [share]):
            grads = jax.grad(mean_loss)(params(), batch)
            acc = tree(lambda a, g, n=n: a + (g - a) / (n + 1), acc, grads)
        return acc

    return (lambda shares: pmean([accumulate(share) for share in shares])), vectors()


@case(
    "huggingface/transformers#12675",
    "grad_accum is summed and never divided by gradient_accumulation_steps",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    micro_batches=(1, 2),
)
def flax_accumulation() -> Any:
    def accumulate(share: Any) -> Any:
        window = share if isinstance(share, list) else [share]
        return psum([jax.grad(mean_loss)(params(), batch) for batch in window])

    return (lambda shares: pmean([accumulate(share) for share in shares])), vectors()


@case(
    "google/tunix#1662",
    "the step cuts its batch in two micro-batches by itself, and averages their token means",
    "w_i / (2 W_c) for the chunk c that an example falls in, over R",
    named="each replica splits its own shard",
)
def chunks_of_the_step() -> Any:
    def local(share: Any) -> Any:
        half = -(-len(share[0]) // 2)
        parts = [tuple(a[s] for a in share) for s in (slice(half), slice(half, None))]
        parts = [part for part in parts if len(part[0])]
        return pmean([jax.grad(token_mean)(params(), part) for part in parts])

    return (lambda shares: pmean([local(share) for share in shares])), text()


@case(
    "google-deepmind/weathernext#156",
    "fixed weights of levels inside of an example, mean over equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def level_weights() -> Any:
    def loss(p: Any, batch: Any) -> Any:
        x, y = batch
        target = jax.nn.one_hot(y, 3)
        levels = jnp.array([0.2, 0.3, 2.5])
        return (((jnp.tanh(x @ p["one"]) @ p["two"] - target) ** 2) * levels).mean(1).mean()

    return jax_step(jax.grad(loss), params(), pmean), vectors()


@case(
    "huggingface/transformers#19494",
    "losses are weighted by each device's labels and added, then divided by the devices' number",
    "w_i / R",
    named="divided by the global batch, then averaged",
)
def weighted_but_divided_by_devices() -> Any:
    def gradient(p: Any, batch: Any) -> Any:
        labels = batch[2].sum()
        return tree(lambda g: g * labels, jax.grad(token_mean)(p, batch))

    return jax_step(gradient, params(), pmean), text()


@case(
    "google-research/big_vision#8",
    "weight decay inside of each device's loss, whose gradients are added",
    "two parts: 1 / N; the decay counts R times",
    named="regularisation counts once on every replica",
)
def decay_of_devices() -> Any:
    def step(shares: list[Any]) -> Any:
        n = sum(len(x) for x, _ in shares)

        def loss(p: Any, batch: Any) -> Any:
            decay = 0.05 * sum((leaf**2).sum() for leaf in jax.tree.leaves(p))
            return losses(p, *batch).sum() / n + decay

        return psum([jax.grad(loss)(params(), share) for share in shares])

    return step, vectors()


@case(
    "graphcore-research/jax-scalify#24",
    "shares are weighted by their size: sum of n_r / N times the mean",
    "1 / N",
    "right",
)
def sizes_weigh_means() -> Any:
    def step(shares: list[Any]) -> Any:
        n = sum(len(x) for x, _ in shares)
        weighted = [
            tree(lambda g, s=s: g * len(s[0]) / n, jax.grad(mean_loss)(params(), s)) for s in shares
        ]
        return psum(weighted)

    return step, vectors()


@case(
    "ml-explore/mlx-lm#1413",
    "squares: each share's sum is weighted by its size over that of all, as if it were a mean",
    "w_i n_r / N",
    named=(
        "the sum of each replica is weighted by n_r/n, its part of all examples, as if it were "
        "a mean"
    ),
)
def sizes_weigh_sums() -> Any:
    def step(shares: list[Any]) -> Any:
        n = sum(len(share[0]) for share in shares)
        return psum(
            [
                tree(lambda g, s=s: g * len(s[0]) / n, jax.grad(token_sum)(params(), s))
                for s in shares
            ]
        )

    return step, text()
