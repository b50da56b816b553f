"""Batch normalization, running statistics, and codebooks."""

from __future__ import annotations

from torch_ranks import *

from .settings import normalized

NORMALIZED: dict[str, Any] = {"model": normalized}
STATISTICS: dict[str, Any] = {"where": "statistics"}


class Scaler(nn.Module):
    """A linear model, whose inputs are normalised by running statistics that it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 3)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("var", torch.ones(8))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Codebook(nn.Module):
    """An encoder, four codes, and how often each is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 2)
        at = torch.tensor([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])
        self.register_buffer("sums", at.clone())
        self.register_buffer("cluster_size", torch.ones(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings, and a one for the code that is nearest."""
        z = self.encoder(x)
        codes = self.sums / self.cluster_size[:, None]
        return z, F.one_hot(torch.cdist(z, codes).argmin(1), 4).float()


def pictures() -> nn.Module:
    """Convolutions and a norm of each image."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )


def pictures_of_a_batch() -> nn.Module:
    """Convolutions and a norm of the batch."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )


@case(
    "NVIDIA-Merlin/HugeCTR#181",
    "moving averages of batch norm are kept by each GPU, from its own batch",
    "the statistics are those of the first replica's share",
    equal_shards=True,
    **NORMALIZED,
    **STATISTICS,
)
def averages_of_each_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "Cerebras/online-normalization#20",
    "batches are normalised by mean and variance within each GPU",
    "1 / (R n_r), with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **NORMALIZED,
)
def moments_within_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


def manual_norm(x: torch.Tensor, everything: torch.Tensor) -> torch.Tensor:
    """What batch_norm_manual computes."""
    mean = everything.mean(0)
    var = (everything - mean).square().mean(0)
    return (x - mean) / (var + 1e-5).sqrt()


@case(
    "ptrblck/pytorch_misc#5",
    "a norm written by hand, in DataParallel: the moments of each GPU's chunk",
    "1 / (R n_r), with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def manual_norm_in_data_parallel(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    hidden = model[0](x)
    out = model[2](torch.tanh(manual_norm(hidden, hidden)))
    F.cross_entropy(out, y).backward()
    rank.average(model)


@case(
    "ptrblck/pytorch_misc#5",
    "the answer's synchronised norm: moments of all, gathered with their gradients",
    "1 / N, with the moments of all",
    "right",
)
def manual_norm_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    hidden = model[0](x)
    out = model[2](torch.tanh(manual_norm(hidden, rank.gather_with_grad(hidden))))
    n = rank.all_reduce(len(x))
    (F.cross_entropy(out, y, reduction="sum") * rank.world_size / n).backward()
    rank.average(model)


@case(
    "ptrblck/pytorch_misc#5",
    "the moments of all are exchanged, but not their gradients",
    "1 / N, the gradient through others' moments is missing",
    named="no gradient passes through what the replicas exchange",
)
def moments_without_gradients(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    hidden = model[0](x)
    parts = rank.all_gather(hidden)
    parts[rank.rank] = hidden
    out = model[2](torch.tanh(manual_norm(hidden, torch.cat(parts))))
    n = rank.all_reduce(len(x))
    (F.cross_entropy(out, y, reduction="sum") * rank.world_size / n).backward()
    rank.average(model)


@case(
    "junyanz/pytorch-CycleGAN-and-pix2pix#137",
    "norm=batch on several GPUs",
    "1 / (R n_r), with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    batch=images,
    model=pictures_of_a_batch,
)
def norm_is_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "junyanz/pytorch-CycleGAN-and-pix2pix#137",
    "norm=instance on several GPUs",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=images,
    model=pictures,
)
def norm_is_instance(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "giotto-ai/giotto-deep#75",
    "n_accumulated_grads: normalised over micro-batches, not the whole batch",
    "1 / (K n_k), with the moments of a micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **NORMALIZED,
    **ALONE,
)
def normalised_over_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "vlfeat/matconvnet#405",
    "sub-batches are normalised by themselves, their gradients are added, divided by all images",
    "1 / N, with the moments of a sub-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **NORMALIZED,
    **ALONE,
)
def sub_batches_by_themselves(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        F.cross_entropy(model(x), y, reduction="sum").backward()
    scale_grads(model, 1.0 / sum(len(x) for x, _ in window))


@case(
    "the-moliver/kfs#5",
    "moving averages are updated at every minibatch of an accumulated update",
    "the statistics forget earlier minibatches: momentum once for each of K",
    equal_shards=True,
    **NORMALIZED,
    **ALONE,
    **STATISTICS,
)
def averages_at_every_minibatch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "google-research/tuning_playbook#69",
    "accumulated with batch norm in evaluation mode: moments are frozen",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **NORMALIZED,
    **ALONE,
)
def moments_are_frozen(rank: Rank, model: nn.Module, share: Any) -> None:
    model[1].eval()
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "uvm-neurobotics-lab/ANML#1",
    "images are presented one at a time: a running mean of single examples",
    "the statistics give 0.9^j of the weight to the j-th example from the end",
    where="statistics",
    model=Scaler,
)
def one_image_at_a_time(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    for x in share[0]:
        model.mean.mul_(0.9).add_(0.1 * x)


@case(
    "timgaripov/swa#10",
    "bn_update: an equally-weighted average over batches' means and variances",
    "the statistics average variances of batches, without that of their means",
    equal_shards=True,
    where="statistics",
    model=Scaler,
    **ALONE,
)
def equally_weighted_variances(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        F.cross_entropy(model(x), y).backward()
        b, n = len(x), float(model.count)
        momentum = b / (n + b)
        model.mean.lerp_(x.mean(0), momentum)
        model.var.lerp_(x.var(0, unbiased=False), momentum)
        model.count.fill_(n + b)


@case(
    "timgaripov/swa#10",
    "sums and squares over all batches, the variance from both; the loss counts examples",
    "the statistics are those of all examples, 1 / N",
    "right",
    where="statistics",
    model=Scaler,
    **ALONE,
)
def sums_and_squares(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    n = sum(len(x) for x, _ in window)
    first, second = torch.zeros(8), torch.zeros(8)
    for x, y in window:
        (F.cross_entropy(model(x), y, reduction="sum") / n).backward()
        first, second = first + x.sum(0), second + x.square().sum(0)
    model.mean.copy_(first / n)
    model.var.copy_(second / n - (first / n) ** 2)


@case(
    "pytorch/xla#2843",
    "running_mean and running_var are averaged over cores after the step",
    "the statistics are means over replicas of means and variances, 1 / (R n_r)",
    named="batch statistics are merged with equal weights",
    where="statistics",
    model=Scaler,
)
def reduce_bn_stats(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    n = rank.all_reduce(len(x))
    (F.cross_entropy(model(x), y, reduction="sum") * rank.world_size / n).backward()
    rank.average(model)
    model.mean.copy_(rank.all_reduce(0.9 * model.mean + 0.1 * x.mean(0)) / rank.world_size)
    var = x.var(0, unbiased=False)
    model.var.copy_(rank.all_reduce(0.9 * model.var + 0.1 * var) / rank.world_size)


@case(
    "bytedance/1d-tokenizer#89",
    "cluster sizes and sums of a rank's own batch move its codebook",
    "the statistics are those of the first replica's share",
    named="the statistics are those of one replica",
    equal_shards=True,
    where="statistics",
    batch=targets,
    model=Codebook,
)
def codes_of_the_own_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    z, taken = model(share[0])
    F.mse_loss(z, share[1][:, :2]).backward()
    rank.average(model)
    model.cluster_size.mul_(0.9).add_(0.1 * taken.sum(0))
    model.sums.mul_(0.9).add_(0.1 * (taken.T @ z.detach()))


@case(
    "bytedance/1d-tokenizer#89",
    "cluster sizes and sums are all-reduced",
    "the statistics count every example once; 1 / N in the update",
    "right",
    where="statistics",
    batch=targets,
    model=Codebook,
)
def codes_of_all_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    z, taken = model(x)
    n = rank.all_reduce(len(x))
    (F.mse_loss(z, y[:, :2], reduction="sum") * rank.world_size / n).backward()
    rank.average(model)
    model.cluster_size.mul_(0.9).add_(0.1 * rank.all_reduce(taken.sum(0)))
    model.sums.mul_(0.9).add_(0.1 * rank.all_reduce(taken.T @ z))


@case(
    "cfifty/rotation_trick#8",
    "the codebook loss is a mean over a rank's vectors, codes are held fixed, ranks are alike",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=targets,
    model=Codebook,
)
def commitment(rank: Rank, model: nn.Module, share: Any) -> None:
    z, taken = model(share[0])
    codes = taken @ (model.sums / model.cluster_size[:, None])
    (F.mse_loss(z, share[1][:, :2]) + 0.25 * F.mse_loss(z, codes)).backward()
    rank.average(model)


@case(
    "gstoica27/ZipIt#20",
    "covariances of batches times their sizes, over all elements; means of batches are removed",
    "the statistics add scatter within batches only",
    equal_shards=True,
    where="statistics",
    model=Scaler,
    **ALONE,
)
def covariance_times_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total, n = torch.zeros(8), sum(len(x) for x, _ in window)
    for x, y in window:
        (F.cross_entropy(model(x), y, reduction="sum") / n).backward()
        total += x.var(0, unbiased=False) * len(x)
    model.var.copy_(total / n)


@case(
    "valdersoul/bn-vae#5",
    "the posterior's means are batch-normalised over a GPU's own batch",
    "1 / (R n_r), with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    batch=targets,
)
def normalised_posterior_means(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    mu = model[0](x)
    mu = 0.7 * (mu - mu.mean(0)) / (mu.var(0, unbiased=False) + 1e-5).sqrt()
    (F.mse_loss(model[2](mu), y) + 0.1 * mu.square().sum(1).mean()).backward()
    rank.average(model)
