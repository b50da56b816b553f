"""Losses over pairs and batches: negatives, correlations, normalisation, experts, mixtures."""

from __future__ import annotations

from torch_ranks import *


def pairs(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Two views of each example."""
    rng = np.random.default_rng(74)
    x = rng.normal(size=(rows, 8))
    noise = rng.normal(size=(rows, 8)) / 2
    return x.astype(np.float32), (x + noise).astype(np.float32)


def encoder() -> nn.Module:
    """Views to embeddings."""
    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 4))


PAIRS: dict[str, Any] = {"batch": pairs, "model": encoder}


def info_nce(queries: Any, keys: Any, first: int = 0) -> torch.Tensor:
    """The sum over queries; the key of query i is at first + i."""
    logits = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T / 0.3
    labels = torch.arange(len(queries)) + first
    return F.cross_entropy(logits, labels, reduction="sum")


def first_of(rank: Rank, rows: int) -> int:
    """Where a rank's rows begin among all."""
    return sum(rank.exchange(rows)[: rank.rank])


def gathered(rank: Rank, own: torch.Tensor) -> torch.Tensor:
    """all_gather without a gradient, but the own part is put back."""
    parts = rank.all_gather(own)
    parts[rank.rank] = own
    return torch.cat(parts)


@case(
    "PANXiao1994/mRASP2#11",
    "the contrastive loss within the mini-batch of a GPU, averaged over GPUs",
    "1 / N for equal shares, but negatives are those of the replica's share",
    named="batch statistics are not synchronised",
    equal_shards=True, **PAIRS,
)  # fmt: skip
def negatives_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (model(x) for x in share)
    (info_nce(q, k) / len(q)).backward()
    rank.average(model)


@case(
    "luyug/GradCache#25",
    "both sides are gathered without remote gradients, the whole loss times the world size",
    "1 / N, negatives of all",
    "right",
    **PAIRS,
)
def gathered_and_scaled(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (gathered(rank, model(x)) for x in share)
    (info_nce(q, k) / len(q) * rank.world_size).backward()
    rank.average(model)


@case(
    "JohnGiorgi/DeCLUTR#212",
    "before: gathered without remote gradients, and not rescaled by the world size",
    "1 / (R N), negatives of all",
    named="divided by the global batch, then averaged",
    **PAIRS,
)
def gathered_not_rescaled(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (gathered(rank, model(x)) for x in share)
    (info_nce(q, k) / len(q)).backward()
    rank.average(model)


@case(
    "vturrisi/solo-learn#258",
    "each worker has its own queries and all keys, those of others as constants",
    "1 / N, but keys get no gradient from queries of other replicas",
    named="no gradient passes through what the replicas exchange",
    **PAIRS,
)
def keys_are_constants(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (model(x) for x in share)
    keys = gathered(rank, k)
    (info_nce(q, keys, first_of(rank, len(q))) / len(keys) * rank.world_size).backward()
    rank.average(model)


@case(
    "huggingface/sentence-transformers#3442",
    "gather_across_devices: own anchors against all candidates, which keep their gradients",
    "1 / (R n_r), negatives of all, which is 1 / N for equal shares",
    "even",
    **PAIRS,
)
def gather_across_devices(rank: Rank, model: nn.Module, share: Any) -> None:
    anchors, candidates = (model(x) for x in share)
    everything = rank.gather_with_grad(candidates)
    loss = info_nce(anchors, everything, first_of(rank, len(anchors)))
    (loss / len(anchors)).backward()
    rank.average(model)


@case(
    "huggingface/sentence-transformers#3442",
    "the same, where the last batch is shorter on some device",
    "1 / (R n_r), negatives of all",
    named="mean of the replicas' means",
    **PAIRS,
)
def gather_across_uneven_devices(rank: Rank, model: nn.Module, share: Any) -> None:
    anchors, candidates = (model(x) for x in share)
    everything = rank.gather_with_grad(candidates)
    loss = info_nce(anchors, everything, first_of(rank, len(anchors)))
    (loss / len(anchors)).backward()
    rank.average(model)


@case(
    "Jwoo5/fairseq-signals#3",
    "all is gathered with gradients and the whole loss taken on each GPU, so that sizes add up",
    "1 / N, negatives of all",
    "right",
    **PAIRS,
)
def whole_loss_on_each_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (rank.gather_with_grad(model(x)) for x in share)
    (info_nce(q, k) / len(q)).backward()
    rank.average(model)


@case(
    "facebookresearch/vissl#474",
    "a gather whose backward adds over ranks, the whole loss, and gradients summed, not averaged",
    "R / N: the gather has added the ranks' equal losses already",
    named="mean per replica, then sum",
    equal_shards=True, **PAIRS,
)  # fmt: skip
def gather_layer_and_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    q, k = (rank.gather_with_grad(model(x)) for x in share)
    (info_nce(q, k) / len(q)).backward()
    rank.add(model)


@case(
    "facebookresearch/simsiam#20",
    "no negatives: the mean of similarities on each GPU is that of all",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **PAIRS,
)
def similarity_without_negatives(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (model(x) for x in share)
    similarity = F.cosine_similarity(a, b.detach()) + F.cosine_similarity(b, a.detach())
    (-similarity.mean() / 2).backward()
    rank.average(model)


def barlow(c: torch.Tensor) -> torch.Tensor:
    """On the diagonal 1, beside it 0."""
    eye = torch.eye(len(c))
    return ((c - eye) ** 2 * (eye + 0.05 * (1 - eye))).sum()


@case(
    "facebookresearch/barlowtwins#33",
    "all_reduce(c) has no gradient: each GPU differentiates its own part, DDP averages the parts",
    "1 / (R N) through the correlation of all",
    named="divided by the global batch, then averaged",
    **PAIRS,
)
def correlation_is_reduced(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (model(x) for x in share)
    c = a.T @ b / rank.all_reduce(len(a))
    c = c + (rank.all_reduce(c) - c.detach())
    barlow(c).backward()
    rank.average(model)


@case(
    "facebookresearch/barlowtwins#33",
    "the question: the loss of each GPU's own correlation, averaged",
    "a loss of the replica's correlation, 1 / n_r in it",
    named="batch statistics are not synchronised",
    equal_shards=True, **PAIRS,
)  # fmt: skip
def correlation_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (model(x) for x in share)
    barlow(a.T @ b / len(a)).backward()
    rank.average(model)


@case(
    "facebookresearch/vissl#230",
    "embeddings are gathered with gradients, moments and correlation are those of all",
    "the loss of the correlation of all",
    "right",
    **PAIRS,
)
def correlation_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (rank.gather_with_grad(model(x)) for x in share)
    a, b = ((z - z.mean(0)) / (z.std(0, unbiased=False) + 1e-4) for z in (a, b))
    barlow(a.T @ b / len(a)).backward()
    rank.average(model)


@case(
    "tensorflow/similarity#243",
    "VICReg's variance and covariance terms of the batch that a replica sees",
    "two parts: 1 / N for invariance; moments of the replica's share for the others",
    named="batch statistics are not synchronised",
    equal_shards=True, **PAIRS,
)  # fmt: skip
def variance_of_a_replica(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (model(x) for x in share)
    loss = F.mse_loss(a, b)
    for z in (a, b):
        centred = z - z.mean(0)
        cov = centred.T @ centred / len(z)
        loss = loss + F.relu(1 - (torch.diag(cov) + 1e-4).sqrt()).mean()
        loss = loss + 0.2 * (cov - torch.diag(torch.diag(cov))).pow(2).sum() / len(cov)
    loss.backward()
    rank.average(model)


class Normed(nn.Module):
    """Linear layers with batch normalisation between them, by given moments."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 10), nn.Linear(10, 3)

    def head(self, hidden: Any, mean: Any, var: Any) -> torch.Tensor:
        """What follows the moments."""
        return self.two(torch.tanh((hidden - mean) / (var + 1e-2).sqrt()))


def normed_step(rank: Rank, model: Any, share: Any, moments: Any) -> None:
    """A right mean of losses, with moments(hidden) of the caller."""
    x, y = share
    hidden = model.one(x)
    loss = F.cross_entropy(model.head(hidden, *moments(hidden)), y, reduction="sum")
    (loss / rank.all_reduce(len(x)) * rank.world_size).backward()
    rank.average(model)


@case(
    "mapillary/inplace_abn#68",
    "means and squares are averaged over GPUs, as if each had as many samples",
    "1 / N, with moments in which an example counts 1 / (R n_r)",
    named="batch statistics are merged with equal weights",
    model=Normed,
)
def count_is_assumed(rank: Rank, model: Any, share: Any) -> None:
    def moments(hidden: Any) -> Any:
        own = torch.cat([hidden.mean(0), (hidden**2).mean(0)])[None]
        mean, squares = rank.gather_with_grad(own).mean(0).chunk(2)
        return mean, squares - mean**2

    normed_step(rank, model, share, moments)


@case(
    "vacancy/Synchronized-BatchNorm-PyTorch#4",
    "sums and sizes are added over devices",
    "1 / N, with moments of all",
    "right",
    model=Normed,
)
def sizes_are_summed(rank: Rank, model: Any, share: Any) -> None:
    def moments(hidden: Any) -> Any:
        own = torch.cat([hidden.sum(0), (hidden**2).sum(0)])[None]
        size = rank.all_reduce(len(hidden))
        mean, squares = (rank.gather_with_grad(own).sum(0) / size).chunk(2)
        return mean, squares - mean**2

    normed_step(rank, model, share, moments)


@case(
    "davisking/dlib#2404",
    "the non-sync version: each GPU normalises by its own samples",
    "1 / N, with moments of the replica's share",
    named="batch statistics are not synchronised",
    model=Normed,
)
def normed_by_a_gpu(rank: Rank, model: Any, share: Any) -> None:
    def moments(hidden: Any) -> Any:
        return hidden.mean(0), hidden.var(0, unbiased=False)

    normed_step(rank, model, share, moments)


class Experts(nn.Module):
    """A soft mixture of four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(8, 4), nn.Linear(8, 12)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        probs = self.router(x).softmax(-1)
        return (probs[..., None] * self.experts(x).view(-1, 4, 3)).sum(1), probs


def chosen(probs: torch.Tensor) -> torch.Tensor:
    """How many examples go to each expert."""
    return F.one_hot(probs.argmax(-1), 4).float().sum(0)


@case(
    "allenai/OLMoE#45",
    "the batch-wise balancing loss: fractions and probabilities of what a device has",
    "two parts: 1 / N; a product of the replica's own means for the balance",
    named="in a part of the loss, batch statistics are not synchronised",
    model=Experts,
)
def balance_of_a_device(rank: Rank, model: Any, share: Any) -> None:
    x, y = share
    logits, probs = model(x)
    loss = F.cross_entropy(logits, y, reduction="sum") / rank.all_reduce(len(x))
    balance = 4 * (chosen(probs) / len(x) * probs.mean(0)).sum()
    (loss * rank.world_size + balance).backward()
    rank.average(model)


@case(
    "pytorch/torchtitan#3000",
    "expert counts are all-reduced over the batch dimension, probabilities averaged by DDP",
    "1 / (R n_r) with the fractions of all, which is 1 / N for equal shares",
    "even",
    model=Experts,
)
def balance_by_counts_of_all(rank: Rank, model: Any, share: Any) -> None:
    x, y = share
    logits, probs = model(x)
    fractions = rank.all_reduce(chosen(probs)) / rank.all_reduce(len(x))
    balance = 4 * (fractions * probs.mean(0)).sum()
    (F.cross_entropy(logits, y) + balance).backward()
    rank.average(model)


@case(
    "IBM/ModuleFormer#5",
    "the auxiliary loss is accumulated, but experts are counted within each step",
    "two parts: 1 / N; a product of the micro-batch's own means for the balance, over K",
    named="batch statistics are those of each micro-batch",
    model=Experts, micro_batches=(1, 2), replicas=(1,), equal_shards=True,
)  # fmt: skip
def balance_of_a_micro_batch(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        logits, probs = model(x)
        balance = 4 * (chosen(probs) / len(x) * probs.mean(0)).sum()
        ((F.cross_entropy(logits, y) + balance) / len(window)).backward()


@case(
    "LiheYoung/UniMatch#34",
    "the batch is mixed with its own reversed version: partners come from the same GPU",
    "1 / N, but inputs are mixed with partners of the replica's share",
    named="each replica pairs the examples of its own shard",
)
def mixed_within_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    logits = model(0.7 * x + 0.3 * x.flip(0))
    loss = 0.7 * F.cross_entropy(logits, y, reduction="sum")
    loss = loss + 0.3 * F.cross_entropy(logits, y.flip(0), reduction="sum")
    (loss / rank.all_reduce(len(x)) * rank.world_size).backward()
    rank.average(model)
