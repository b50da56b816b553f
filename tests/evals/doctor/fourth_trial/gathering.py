"""Pairs, triplets, and correlations over a batch."""

from __future__ import annotations

from torch_ranks import *

from .settings import VIEWS, encoder

TRIPLETS: dict[str, Any] = {"batch": vectors, "model": encoder}


def views(model: nn.Module, share: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The embeddings of both views."""
    one, two = share
    return F.normalize(model(one), dim=1), F.normalize(model(two), dim=1)


def clip_loss(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Each view finds its other among all."""
    logits = one @ two.T / 0.5
    labels = torch.arange(len(logits))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def nt_xent(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Both views are among the negatives of each."""
    n, z = len(one), torch.cat([one, two])
    logits = (z @ z.T / 0.5).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    return F.cross_entropy(logits, torch.cat([torch.arange(n) + n, torch.arange(n)]))


def own_in_all(rank: Rank, z: torch.Tensor) -> torch.Tensor:
    """all_gather, which has no gradient, with the own part put back."""
    parts = rank.all_gather(z)
    parts[rank.rank] = z
    return torch.cat(parts)


def hardest(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The batch-hard loss of each anchor."""
    d = (z[:, None] - z[None]).square().sum(-1).add(1e-6).sqrt()
    same = y[:, None] == y[None]
    far = (d * same).max(1).values
    near = d.masked_fill(same, 1e3).min(1).values
    return F.relu(far - near + 1.0)


@case(
    "MineDojo/MineDojo#129",
    "the question's first way: the loss of a GPU's own 64, DDP averages gradients",
    "1 / (R n_r), negatives of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def negatives_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    clip_loss(*views(model, share)).backward()
    rank.average(model)


@case(
    "MineDojo/MineDojo#129",
    "the second way: dist.all_gather of all embeddings, whose gradient is that of the own part",
    "1 / (R N) instead of 1 / N: the mean of what should be added",
    named="divided by the global batch, then averaged",
    **VIEWS,
)
def gathered_without_a_gradient(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (own_in_all(rank, z) for z in views(model, share))
    clip_loss(one, two).backward()
    rank.average(model)


@case(
    "texttron/tevatron#143",
    "negatives of all devices with the own gradient, and loss * world_size",
    "1 / N with all negatives",
    "right",
    **VIEWS,
)
def gathered_times_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (own_in_all(rank, z) for z in views(model, share))
    (clip_loss(one, two) * rank.world_size).backward()
    rank.average(model)


@case(
    "texttron/tevatron#143",
    "what the question asks: a mean that is not gathered, times world_size under DDP",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
    batch=vectors,
)
def mean_times_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    loss = F.cross_entropy(model(x), y, reduction="mean") * rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "sthalles/SimCLR#59",
    "negatives of all GPUs are not used",
    "1 / (R n_r), negatives of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def info_nce_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    nt_xent(*views(model, share)).backward()
    rank.average(model)


@case(
    "Spijkervet/SimCLR#13",
    "the similarities of sub-batches, whose sizes differ in the last step of an epoch",
    "1 / (R n_r), negatives of the own share",
    named="batch statistics are not synchronised",
    **VIEWS,
)
def similarities_of_sub_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = views(model, share)
    if len(one) > 1:
        nt_xent(one, two).backward()
    rank.average(model)


@case(
    "Spijkervet/SimCLR#37",
    "GatherLayer hands each rank the gradient of its own loss only, DDP averages",
    "1 / (R N) instead of 1 / N",
    named="divided by the global batch, then averaged",
    **VIEWS,
)
def gather_layer(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = views(model, share)
    nt_xent(own_in_all(rank, one), own_in_all(rank, two)).backward()
    rank.average(model)


@case(
    "auniquesun/CrossPoint-DDP#6",
    "NTXentLoss with gather_distributed left at False",
    "1 / (R n_r), negatives of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def gather_distributed_is_false(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = views(model, share)
    (nt_xent(one, two) + 0.5 * clip_loss(one, two)).backward()
    rank.average(model)


@case(
    "auniquesun/CrossPoint-DDP#6",
    "gather_distributed=True, a gather whose gradient is added over ranks",
    "1 / N with all negatives",
    "right",
    **VIEWS,
)
def gather_distributed_is_true(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (rank.gather_with_grad(z) for z in views(model, share))
    nt_xent(one, two).backward()
    rank.average(model)


@case(
    "Lightning-Universe/lightning-bolts#179",
    "out_1 and out_2 are not gathered over the process group",
    "1 / (R n_r), negatives of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def not_over_the_process_group(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = views(model, share)
    n = len(one)
    z = torch.cat([one, two])
    similarities = torch.exp(z @ z.T / 0.5)
    neg = (similarities * (1 - torch.eye(2 * n))).sum(1)
    pos = torch.exp((one * two).sum(1) / 0.5)
    (-torch.log(torch.cat([pos, pos]) / neg).mean()).backward()
    rank.average(model)


@case(
    "Lightning-Universe/lightning-bolts#179",
    "anchors of the own share against all, the mean over own anchors, a gather with gradient",
    "1 / (R n_r) with all negatives, which is 1 / N for equal shares",
    "even",
    **VIEWS,
)
def own_anchors_all_candidates(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = views(model, share)
    everything = rank.gather_with_grad(two)
    labels = torch.arange(len(one)) + rank.rank * len(one)
    F.cross_entropy(one @ everything.T / 0.5, labels).backward()
    rank.average(model)


@case(
    "omoindrot/tensorflow-triplet-loss#55",
    "batch-hard: the hardest of the own batch, averaged over the anchors of a worker",
    "1 / (R n_r), with the hardest of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **TRIPLETS,
)
def batch_hard_of_a_worker(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    hardest(model(x), y).mean().backward()
    rank.average(model)


@case(
    "omoindrot/tensorflow-triplet-loss#55",
    "given triplets: the average over those whose loss is not zero, of a worker",
    "1 / (R a_r) for the a_r triplets of a replica that have a loss",
    named="mean of the replicas' means",
    **VIEWS,
)
def average_of_nonzero(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = share
    a, p, n = model(one), model(two), model(-one)
    losses = F.relu((a - p).square().sum(1) - (a - n).square().sum(1) + 0.6)
    active = (losses > 0).sum().clamp(min=1)
    (losses.sum() / active).backward()
    rank.average(model)


@case(
    "VisualComputingInstitute/triplet-reid#6",
    "given triplets: the average loss across all of an iteration, equal on all workers",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **VIEWS,
)
def average_across_triplets(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = share
    a, p, n = model(one), model(two), model(-one)
    F.softplus((a - p).square().sum(1) - (a - n).square().sum(1)).mean().backward()
    rank.average(model)


@case(
    "davidsandberg/facenet#1191",
    "a batch of 1800 is mined in smaller batches, each finds its own hardest",
    "1 / (K n_k), with the hardest of a micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **TRIPLETS,
    **ALONE,
)
def mined_in_smaller_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        (hardest(model(x), y).mean() / len(window)).backward()


@case(
    "kbelenky/open_sorts#5",
    "first all are embedded, then the hardest are sought among all, in batches for the GPU",
    "1 / N, with the hardest of all",
    "right",
    **TRIPLETS,
    **ALONE,
)
def mined_among_all(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    x = torch.cat([batch[0] for batch in window])
    y = torch.cat([batch[1] for batch in window])
    with torch.no_grad():
        z = model(x)
        d = torch.cdist(z, z)
        same = y[:, None] == y[None]
        far = (d * same).argmax(1)
        near = d.masked_fill(same, 1e3).argmin(1)
    start = 0
    for batch in window:
        rows = torch.arange(start, start + len(batch[0]))
        start += len(rows)
        a, p, n = model(x[rows]), model(x[far[rows]]), model(x[near[rows]])
        losses = F.relu((a - p).square().sum(1) - (a - n).square().sum(1) + 1.0)
        (losses.sum() / len(x)).backward()


@case(
    "dingmyu/CamNet#6",
    "the hardest pair across the batch of a GPU makes the loss",
    "the hardest triplet of each replica's own share, averaged",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def hardest_across_the_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = share
    a, p = model(one), model(two)
    d = (a[:, None] - p[None]).square().sum(-1)
    positive = d.diagonal().max()
    negative = d.masked_fill(torch.eye(len(d), dtype=torch.bool), 1e3).min()
    F.relu(positive - negative + 1.0).backward()
    rank.average(model)


@case(
    "yaohungt/Barlow-Twins-HSIC#6",
    "normalised by mean and std of a GPU's own batch, its cross-correlation makes the loss",
    "the loss of each replica's own correlations, averaged",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def correlations_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    z = [model(view) for view in share]
    one, two = ((a - a.mean(0)) / a.std(0) for a in z)
    c = one.T @ two / len(one)
    on = (c.diagonal() - 1).square().sum()
    (on + 0.05 * (c.square().sum() - c.diagonal().square().sum())).backward()
    rank.average(model)


@case(
    "yaohungt/Barlow-Twins-HSIC#6",
    "the same of all embeddings, gathered with their gradients",
    "the loss of the correlations over all examples",
    "right",
    **VIEWS,
)
def correlations_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    z = [rank.gather_with_grad(model(view)) for view in share]
    one, two = ((a - a.mean(0)) / a.std(0, unbiased=False) for a in z)
    c = one.T @ two / len(one)
    on = (c.diagonal() - 1).square().sum()
    (on + 0.05 * (c.square().sum() - c.diagonal().square().sum())).backward()
    rank.average(model)


@case(
    "pmorerio/minimal-entropy-correlation-alignment#5",
    "covariances of source and target are those of a micro-batch",
    "1 / (K n_k), with the covariances of a micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **VIEWS,
    **ALONE,
)
def coral_of_a_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for source, target in window:
        a, b = (z - z.mean(0) for z in (model(source), model(0.5 * target)))
        gap = a.T @ a / (len(a) - 1) - b.T @ b / (len(b) - 1)
        (gap.square().sum() / len(window)).backward()


@case(
    "jameschapman19/cca_zoo#164",
    "views are demeaned and whitened by a process's own examples",
    "the correlation over each replica's own examples, averaged",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def canonical_correlation_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (z - z.mean(0) for z in (model(view)[:, :2] for view in share))
    n = len(one) - 1
    inverse = [torch.linalg.inv(z.T @ z / n + 0.1 * torch.eye(2)) for z in (one, two)]
    cross = one.T @ two / n
    (-torch.trace(inverse[0] @ cross @ inverse[1] @ cross.T)).backward()
    rank.average(model)


@case(
    "hunto/image_classification_sota#19",
    "intra-class relations run over the batch of a GPU, inter-class over the classes",
    "two parts: 1 / (R n_r); the correlations of each replica's own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **VIEWS,
)
def intra_relation_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, teacher = share
    p, q = model(x).softmax(1), teacher[:, :6].softmax(1)
    inter = 1 - F.cosine_similarity(p - p.mean(1, True), q - q.mean(1, True), dim=1).mean()
    p, q = p.T, q.T
    intra = 1 - F.cosine_similarity(p - p.mean(1, True), q - q.mean(1, True), dim=1).mean()
    (inter + intra).backward()
    rank.average(model)


@case(
    "OFA-Sys/Chinese-CLIP#73",
    "micro-batches are embedded, kept, and each is run again against all that are kept",
    "1 / N with all negatives",
    "right",
    **VIEWS,
    **ALONE,
)
def kept_and_run_again(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    with torch.no_grad():
        kept = [views(model, batch) for batch in window]
    for k, batch in enumerate(window):
        parts = [list(side) for side in zip(*kept, strict=True)]
        parts[0][k], parts[1][k] = views(model, batch)
        clip_loss(torch.cat(parts[0]), torch.cat(parts[1])).backward()


@case(
    "OFA-Sys/Chinese-CLIP#73",
    "the same, and the loss is divided by the accumulated batches",
    "1 / (K N) with all negatives",
    named="micro-batches are divided twice",
    **VIEWS,
    **ALONE,
)
def run_again_and_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    with torch.no_grad():
        kept = [views(model, batch) for batch in window]
    for k, batch in enumerate(window):
        parts = [list(side) for side in zip(*kept, strict=True)]
        parts[0][k], parts[1][k] = views(model, batch)
        (clip_loss(torch.cat(parts[0]), torch.cat(parts[1])) / len(window)).backward()
