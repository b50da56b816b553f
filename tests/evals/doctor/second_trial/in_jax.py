"""JAX programs: devices that are mapped, meshes, scans over micro-batches."""

from __future__ import annotations

from jax_steps import *

from samegrad_doctor import Outcome


@case(
    "HenryNdubuaku/nanodl#12",
    "gradients are not averaged across devices: pmean is missing",
    "1 / n_0 on the first device's copy for its own examples; every copy has its own update",
    named="the replicas' parameters differ",
)
def no_pmean() -> Any:
    def step(shares: list[Any]) -> Outcome:
        grads = [jax.grad(mean_loss)(params(), share) for share in shares]
        return Outcome(grads[0], replicas=grads if len(grads) > 1 else None)

    return step, vectors()


@case(
    "HenryNdubuaku/nanodl#12",
    "the answer: lax.pmean(grads, axis_name='devices'), equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def pmean_over_devices() -> Any:
    def build(devices: Any) -> Any:
        def train_step(p: Any, batch: Any) -> Any:
            return lax.pmean(jax.grad(mean_loss)(p, batch), axis_name="devices")

        return jax.pmap(train_step, axis_name="devices", in_axes=(None, 0), devices=devices)

    return jax_devices_step(build, params()), vectors()


@case(
    "marin-community/levanter#448",
    "microbatched: the mean of the micro-batches' means, of one size",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    micro_batches=(1, 2),
)
def microbatched() -> Any:
    def step(shares: list[Any]) -> Any:
        means = [
            pmean([jax.grad(mean_loss)(params(), batch) for batch in micros(share)])
            for share in shares
        ]
        return pmean(means)

    return step, vectors()


@case(
    "marin-community/levanter#624",
    "masked losses: each micro-batch divides by its own mask, then the mean over all",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    micro_batches=(1, 2), **WORDS,
)  # fmt: skip
def microbatched_masks() -> Any:
    def step(shares: list[Any]) -> Any:
        means = [
            pmean([jax.grad(token_mean)(params(), batch) for batch in micros(share)])
            for share in shares
        ]
        return pmean(means)

    return step, text()


@case(
    "apple/axlearn#465",
    "buffers of gradients are added over microbatches of one size, then averaged",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    micro_batches=(1, 2, 3), replicas=(1,),
)  # fmt: skip
def accumulated_learner() -> Any:
    def step(shares: list[Any]) -> Any:
        window = micros(shares[0])
        grads = psum([jax.grad(mean_loss)(params(), batch) for batch in window])
        return tree(lambda g: g / len(window), grads)

    return step, vectors()


@case(
    "apple/axlearn#678",
    "the auxiliary loss of microbatches is added instead of averaged",
    "two parts: 1 / (K n_k); the term without examples counts K times",
    named="regularisation counts once in every micro-batch",
    micro_batches=(1, 2, 3), replicas=(1,), equal_shards=True,
)  # fmt: skip
def auxiliary_is_added() -> Any:
    def step(shares: list[Any]) -> Any:
        window = micros(shares[0])

        def loss(p: Any, batch: Any) -> Any:
            aux = 0.05 * sum((leaf**2).sum() for leaf in jax.tree.leaves(p))
            return mean_loss(p, batch) / len(window) + aux

        return psum([jax.grad(loss)(params(), batch) for batch in window])

    return step, vectors()


@case(
    "borisdayma/dalle-mini#11",
    "accumulated gradients are averaged over steps, and never over devices: each keeps its own",
    "1 / (K n_0k) on the first device's copy for its own examples; copies differ",
    named="the replicas' parameters differ",
    micro_batches=(1, 2), replicas=(2,),
)  # fmt: skip
def accumulated_without_devices() -> Any:
    def step(shares: list[Any]) -> Outcome:
        grads = [
            pmean([jax.grad(mean_loss)(params(), batch) for batch in micros(share)])
            for share in shares
        ]
        return Outcome(grads[0], replicas=grads if len(grads) > 1 else None)

    return step, vectors()


@case(
    "fattorib/ZeRO-transformer#3",
    "manual accumulation in jit over a mesh: a scan over parts of the global batch",
    "1 / N",
    "even",
)
def accumulated_in_jit() -> Any:
    def build(devices: Any) -> Any:
        mesh = Mesh(np.array(devices), ("dp",))
        rows = NamedSharding(mesh, PartitionSpec("dp"))
        copy = NamedSharding(mesh, PartitionSpec())

        def train_step(p: Any, batch: Any) -> Any:
            parts = tree(lambda a: a.reshape(2, -1, *a.shape[1:]), batch)
            start = tree(jnp.zeros_like, p)

            def body(acc: Any, part: Any) -> Any:
                return tree(jnp.add, acc, jax.grad(mean_loss)(p, part)), None

            grads = lax.scan(body, start, parts)[0]
            return tree(lambda g: g / 2, grads)

        return jax.jit(train_step, in_shardings=(copy, rows), out_shardings=copy)

    return jax_devices_step(build, params(), stacked=False), vectors()


@case(
    "Toni-SM/skrl#177",
    "gradients of devices are added by psum and divided by their number, uneven batches",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def psum_over_number() -> Any:
    def combine(grads: list[Any]) -> Any:
        return tree(lambda g: g / len(grads), psum(grads))

    return jax_step(jax.grad(mean_loss), params(), combine), vectors()


@case(
    "google-deepmind/dm-haiku#790",
    "normalisation of hidden units without cross_replica_axis: moments of a device",
    "1 / N, with moments of the replica's share",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def moments_of_a_device() -> Any:
    def loss(p: Any, batch: Any) -> Any:
        x, y = batch
        hidden = x @ p["one"]
        hidden = (hidden - hidden.mean(0)) / jnp.sqrt(hidden.var(0) + 1e-2)
        logp = jax.nn.log_softmax(jnp.tanh(hidden) @ p["two"])
        return -jnp.take_along_axis(logp, y[:, None].astype(int), -1).mean()

    return jax_step(jax.grad(loss), params(), pmean), vectors()


@case(
    "google-deepmind/dm-haiku#813",
    "cross_replica_axis: means and squares are averaged over the axis, equal batches",
    "1 / (R n_r) with moments of all, which is 1 / N for equal shares",
    "even",
)
def moments_across_devices() -> Any:
    def build(devices: Any) -> Any:
        def train_step(p: Any, batch: Any) -> Any:
            def loss(p: Any) -> Any:
                x, y = batch
                hidden = x @ p["one"]
                mean = lax.pmean(hidden.mean(0), "i")
                var = lax.pmean((hidden**2).mean(0), "i") - mean**2
                hidden = (hidden - mean) / jnp.sqrt(var + 1e-2)
                logp = jax.nn.log_softmax(jnp.tanh(hidden) @ p["two"])
                return -jnp.take_along_axis(logp, y[:, None].astype(int), -1).mean()

            return lax.pmean(jax.grad(loss)(p), "i")

        return jax.pmap(train_step, "i", in_axes=(None, 0), devices=devices)

    return jax_devices_step(build, params()), vectors()


@case(
    "young-geng/EasyLM#32",
    "the masked loss over the valid tokens of each host's batch, hosts are averaged",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def valid_tokens_of_a_host() -> Any:
    return jax_step(jax.jit(jax.grad(token_mean)), params(), pmean), text()


@case(
    "young-geng/EasyLM#107",
    "sums of losses and of valid tokens over all hosts",
    "w_i / W",
    "right",
    **WORDS,
)
def valid_tokens_of_all_hosts() -> Any:
    def build(devices: Any) -> Any:
        def train_step(p: Any, batch: Any, mask: Any) -> Any:
            x, y, w = batch
            w = w * mask[:, None]
            grads = jax.grad(token_sum)(p, (x, y, w))
            count = lax.psum(w.sum(), "dp")
            return tree(lambda g: lax.psum(g, "dp") / count, grads)

        return jax.pmap(train_step, axis_name="dp", in_axes=(None, 0, 0), devices=devices)

    return jax_devices_step(build, params(), mask=True), text()


@case(
    "instadeepai/Mava#787",
    "values are normalised by mean and deviation of the batch of a trainer",
    "(t_i - mean_r) / std_r in the target: moments of the replica's share",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def targets_of_a_trainer() -> Any:
    def loss(p: Any, batch: Any) -> Any:
        x, y = batch
        target = y.astype(jnp.float32) + x[:, 0]
        target = (target - target.mean()) / (target.std() + 1e-5)
        return ((jnp.tanh(x @ p["one"]) @ p["two"])[:, 0] - target).__pow__(2).mean()

    return jax_step(jax.grad(loss), params(), pmean), vectors()


@case(
    "EdanToledo/Stoix#167",
    "gradients are right; running moments of observations are those of the first device",
    "the mean of the first replica's examples only",
    named="batch statistics are not synchronised",
    where="statistics",
)
def moments_of_the_first_device() -> Any:
    def step(shares: list[Any]) -> Outcome:
        n = sum(len(x) for x, _ in shares)

        def loss(p: Any, share: Any) -> Any:
            return losses(p, *share).sum() / n

        grads = psum([jax.grad(loss)(params(), share) for share in shares])
        moments = 0.9 * np.full(8, 0.3) + 0.1 * np.asarray(shares[0][0]).mean(0)
        return Outcome(grads, statistics=[moments])

    return step, vectors()
