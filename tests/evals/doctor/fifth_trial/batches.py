"""Losses over pairs of a batch, and moments of a batch in the forward pass."""

from __future__ import annotations

from torch_ranks import *

from .common import NUMBERS, PICTURES

TWO_VIEWS: dict[str, Any] = NUMBERS


def views(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of two views of each example: of its features, and of them with noise."""
    x, noise = batch
    other = torch.cat([x[:, :3] + 0.3 * noise, x[:, 3:]], 1)
    return tuple(F.normalize(model(v), dim=1) for v in (x, other))


def clip_loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Both directions of the contrastive loss, over the pairs of a and b."""
    logits, target = a @ b.T / 0.5, torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


@case(
    "openai/CLIP#25",
    "a batch of 128 is split into eight of 16: each GPU contrasts its own pairs only",
    "no sum over examples: negatives of the own replica",
    named="batch statistics are not synchronised",
    equal_shards=True, **TWO_VIEWS,
)  # fmt: skip
def pairs_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    clip_loss(*views(model, share)).backward()
    rank.average(model)


@case(
    "ArrowLuo/CLIP4Clip#69",
    "features are gathered, the gather's backward returns the own slice; DDP divides by R again",
    "the loss over all pairs, 1 / R of its gradient",
    named="divided by the global batch, then averaged",
    equal_shards=True, **TWO_VIEWS,
)  # fmt: skip
def own_slice_of_the_gradient(rank: Rank, model: nn.Module, share: Any) -> None:
    own = views(model, share)
    whole = []
    for part in own:
        gathered = rank.all_gather(part)
        gathered[rank.rank] = part
        whole.append(torch.cat(gathered))
    clip_loss(*whole).backward()
    rank.average(model)


@case(
    "galilai-group/stable-pretraining#290",
    "features are gathered with a gradient, the loss over all pairs on every rank",
    "the loss over all pairs",
    "right",
    **TWO_VIEWS,
)
def gathered_with_gradient(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = (rank.gather_with_grad(v) for v in views(model, share))
    clip_loss(a, b).backward()
    rank.average(model)


@case(
    "princeton-nlp/SimCSE#34",
    "what if embeddings are not gathered: in-batch negatives of the own device",
    "no sum over examples: negatives of the own replica",
    named="batch statistics are not synchronised",
    **TWO_VIEWS,
)
def not_gathered(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = views(model, share)
    F.cross_entropy(a @ b.T / 0.5, torch.arange(len(a))).backward()
    rank.average(model)


@case(
    "RElbers/info-nce-pytorch#11",
    "in-batch negatives with accumulated gradients: those of the micro-batch",
    "no sum over examples: negatives of the own micro-batch",
    named="batch statistics are those of each micro-batch",
    **TWO_VIEWS, **ALONE,
)  # fmt: skip
def negatives_of_a_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        a, b = views(model, batch)
        loss = F.cross_entropy(a @ b.T / 0.5, torch.arange(len(a)))
        (loss / len(micros(share))).backward()


@case(
    "mertyg/vision-language-models-are-bows#4",
    "negatives of the own example alone: a caption against its two hard negatives",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **TWO_VIEWS,
)
def hard_negatives_of_an_example(rank: Rank, model: nn.Module, share: Any) -> None:
    a, b = views(model, share)
    scores = torch.stack([(a * b).sum(1), (a * b.roll(1, 1)).sum(1), (a * -b).sum(1)], 1)
    F.cross_entropy(scores, torch.zeros(len(a), dtype=torch.long)).backward()
    rank.average(model)


@case(
    "leeesangwon/PyTorch-Image-Retrieval#11",
    "an n-pair loss over the samples of a process's batch",
    "no sum over examples: tuples within each replica",
    named="batch statistics are not synchronised",
)
def tuples_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    z = model(x)
    same = (y[:, None] == y[None]).float()
    loss = -(F.log_softmax(z @ z.T, dim=1) * same).sum(1) / same.sum(1)
    loss.mean().backward()
    rank.average(model)


@case(
    "qdrant/quaterion#175",
    "the hardest negative of each anchor is looked for among the device's embeddings",
    "no sum over examples: triplets within each replica",
    named="batch statistics are not synchronised",
)
def semi_hard_on_a_device(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    z = model(x)
    distances = ((z[:, None] - z[None]) ** 2).sum(-1)
    same = y[:, None] == y[None]
    furthest = distances.masked_fill(~same, -1e4).max(1).values
    nearest = distances.masked_fill(same, 1e4).min(1).values.clamp_max(4.0)
    F.relu(furthest - nearest + 1.0).mean().backward()
    rank.average(model)


def spread(z: torch.Tensor) -> torch.Tensor:
    """The variance and covariance terms of VICReg."""
    centred = z - z.mean(0)
    cov = centred.T @ centred / max(1, len(z) - 1)
    deviation = torch.sqrt(cov.diagonal() + 1e-2)
    return F.relu(1 - deviation).mean() + (cov**2).sum() - (cov.diagonal() ** 2).sum()


@case(
    "facebookresearch/vicreg#16",
    "variances and covariances over the batches of all ranks, gathered with a gradient",
    "the moments of all examples",
    "right",
    **NUMBERS,
)
def moments_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    z = model(x)
    errors = ((z - y) ** 2).sum() * rank.world_size / rank.all_reduce(len(x))
    (errors + spread(rank.gather_with_grad(z))).backward()
    rank.average(model)


@case(
    "Harmonai-org/oobleck#12",
    "variance and covariance terms of a process's latents, without a gather",
    "two parts: 1 / (R n_r); moments of the own replica for the second",
    named="batch statistics are not synchronised",
    **NUMBERS,
)
def moments_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    z = model(x)
    (F.mse_loss(z, y) + spread(z)).backward()
    rank.average(model)


@case(
    "google-research/simclr#114",
    "batch normalization of each GPU's own batch",
    "no sum over examples: each replica's batch is normalised by its own moments",
    named="batch statistics are not synchronised",
    equal_shards=True, **PICTURES,
)  # fmt: skip
def normalised_on_each_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


def synchronised(rank: Rank, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The network with the moments of all ranks in its normalization."""
    z, norm = model[0](x), model[1]
    whole = rank.gather_with_grad(z)
    mean = whole.mean((0, 2, 3), keepdim=True)
    var = whole.var((0, 2, 3), unbiased=False, keepdim=True)
    z = (z - mean) / torch.sqrt(var + norm.eps)
    z = z * norm.weight[:, None, None] + norm.bias[:, None, None]
    return model[4](model[3](model[2](z)))


@case(
    "facebookresearch/moco#46",
    "SyncBN: moments of all GPUs, and the mean over a GPU's examples, equal batches",
    "1 / N, with the moments of all examples",
    "even",
    **PICTURES,
)
def moments_of_all_gpus(rank: Rank, model: nn.Module, share: Any) -> None:
    F.cross_entropy(synchronised(rank, model, share[0]), share[1]).backward()
    rank.average(model)


@case(
    "dddzg/MoCo#5",
    "one GPU simulates several: the batch is cut in two, and each half normalised by itself",
    "no sum over examples: each half of a share is normalised by its own moments",
    named="each replica splits its own shard",
    **PICTURES,
)
def halves_are_normalised(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    cut = max(1, len(x) // 2)
    logits = torch.cat([model(part) for part in (x[:cut], x[cut:]) if len(part)])
    (F.cross_entropy(logits, y, reduction="sum") * rank.world_size
     / rank.all_reduce(len(x))).backward()  # fmt: skip
    rank.average(model)


@case(
    "TuSimple/mx-maskrcnn#2",
    "not synchronised: but the norm is frozen, as moments are those of pre-training",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **PICTURES,
)
def norm_is_frozen(rank: Rank, model: nn.Module, share: Any) -> None:
    model[1].eval()
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "fenglinglwb/MAT#90",
    "a penalty of lengths' distance to a moving mean, which this GPU's lengths move",
    "no sum over examples: distances to the mean of the own replica",
    named="batch statistics are not synchronised",
    **NUMBERS,
)
def distance_to_own_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    x = x.requires_grad_()
    out = (model(x) * y).sum()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    lengths = torch.sqrt((slope**2).sum(1))
    path_mean = 0.5 * 0.3 + 0.5 * lengths.mean().detach()
    loss = ((lengths - path_mean) ** 2).sum()
    (loss * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)
