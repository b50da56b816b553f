"""Losses over pairs and whole batches, and moments that are kept beside the parameters."""

from __future__ import annotations

from torch_ranks import *


def views(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Two views of each example."""
    rng = np.random.default_rng(141)
    base = rng.normal(size=(rows, 8))
    one, two = (base + 0.4 * rng.normal(size=(rows, 8)) for _ in range(2))
    return one.astype(np.float32), two.astype(np.float32)


def masks(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features of nine pixels, and which of them are foreground."""
    rng = np.random.default_rng(142)
    wide = np.arange(9) < rng.integers(1, 9, size=(rows, 1))
    return rng.normal(size=(rows, 9, 5)).astype(np.float32), wide.astype(np.float32)


def pixels() -> nn.Module:
    """A logit of each pixel."""
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))


VIEWS: dict[str, Any] = {"batch": views}
MASKS: dict[str, Any] = {"batch": masks, "model": pixels}


def embed(model: nn.Module, share: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of both views on the sphere."""
    one, two = (F.normalize(model(x), dim=1) for x in share)
    return one, two


def info_nce(one: torch.Tensor, two: torch.Tensor, start: int = 0) -> torch.Tensor:
    """The mean over anchors of the loss against all of `two`."""
    return F.cross_entropy(one @ two.T / 0.3, torch.arange(start, start + len(one)))


def own_in_place(rank: Rank, value: torch.Tensor) -> torch.Tensor:
    """all_gather, with this rank's own part put back for its gradient."""
    parts = rank.all_gather(value)
    parts[rank.rank] = value
    return torch.cat(parts)


def first_of(rank: Rank, value: torch.Tensor) -> int:
    """Where this rank's rows begin among all."""
    return sum(rank.exchange(len(value))[: rank.rank])


@case(
    "ShiqiYu/OpenGait#36",
    "the pair loss over all embeddings, only a rank's own carry gradients: times the world size",
    "that of the whole batch",
    "right",
    **VIEWS,
)
def pairs_times_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (own_in_place(rank, z) for z in embed(model, share))
    (info_nce(one, two) * rank.world_size).backward()
    rank.average(model)


@case(
    "KevinMusgrave/pytorch-metric-learning#363",
    "the same without the factor: each rank differentiates its own embeddings alone",
    "1 / R of the gradient of the whole batch",
    named="divided by the global batch, then averaged",
    **VIEWS,
)
def pairs_without_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = (own_in_place(rank, z) for z in embed(model, share))
    info_nce(one, two).backward()
    rank.average(model)


@case(
    "TengdaHan/DPC#17",
    "the similarity matrix is that of a GPU's own batch",
    "the mean of replicas, negatives of the own share",
    named="batch statistics are not synchronised",
    **VIEWS,
)
def matrix_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    info_nce(*embed(model, share)).backward()
    rank.average(model)


@case(
    "jramapuram/SimCLR#21",
    "own anchors against gathered embeddings, which carry no gradient, not even a rank's own; "
    "nothing is gathered on one GPU",
    "anchors of all count 1 / N, the gradient through what is gathered is lost",
    equal_shards=True,
    **VIEWS,
)
def gathered_are_constants(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = embed(model, share)
    others = torch.cat(rank.all_gather(two)) if rank.world_size > 1 else two
    info_nce(one, others, first_of(rank, one)).backward()
    rank.average(model)


@case(
    "facebookresearch/ClassyVision#245",
    "a gather with a gradient, every rank computes the loss of the whole batch",
    "that of the whole batch",
    "right",
    **VIEWS,
)
def gather_all_wrapper(rank: Rank, model: nn.Module, share: Any) -> None:
    one, two = embed(model, share)
    info_nce(rank.gather_with_grad(one), rank.gather_with_grad(two)).backward()
    rank.average(model)


@case(
    "Haochen-Wang409/U2PL#16",
    "the contrastive part alone is divided by the number of GPUs, DDP averages all of it",
    "1 / (R n_r) for the supervised part, 1 / (R^2 n_r) for the other",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
)
def one_part_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    out = model(x)
    contrast = (out - F.one_hot(y, 3)).abs().sum(1).mean()
    (F.cross_entropy(out, y) + contrast / rank.world_size).backward()
    rank.average(model)


@case(
    "raywang4/DispLoss#8",
    "the dispersive loss is computed within each device, and added to the mean loss",
    "1 / N for the data term, pairs of the own share for the dispersive term",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def dispersive_of_a_device(rank: Rank, model: nn.Module, share: Any) -> None:
    out = model(share[0])
    distances = (out[:, None] - out[None]).pow(2).sum(-1)
    dispersion = torch.logsumexp(-distances.flatten(), 0) - 2 * np.log(len(out))
    (F.cross_entropy(out, share[1]) + 0.5 * dispersion).backward()
    rank.average(model)


@case(
    "microsoft/ltp-megatron-lm#7",
    "the balance loss of each rank's tokens: a product of two means over the own share",
    "1 / N for the data term; N_E sum f_r P_r, averaged over replicas",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def balance_of_a_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    gates = model(share[0]).softmax(-1)
    chosen = F.one_hot(gates.argmax(-1), 3).float().mean(0)
    (mean_loss(model, share) + 0.5 * 3 * (chosen * gates.mean(0)).sum()).backward()
    rank.average(model)


@case(
    "alibaba/Pai-Megatron-Patch#519",
    "the balance loss with the fractions of the global batch, which carry no gradient",
    "1 / (R n_r), which is 1 / N for equal shares, with f of all",
    "even",
)
def balance_of_the_global_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    gates = model(share[0]).softmax(-1)
    chosen = F.one_hot(gates.argmax(-1), 3).float()
    fractions = rank.all_reduce(chosen.sum(0)) / rank.all_reduce(len(chosen))
    (mean_loss(model, share) + 0.5 * 3 * (fractions * gates.mean(0)).sum()).backward()
    rank.average(model)


def soft_dice(model: nn.Module, share: Any, axes: Any) -> torch.Tensor:
    """1 - Dice over some axes."""
    x, y = share
    p = torch.sigmoid(model(x).squeeze(-1))
    return 1 - (2 * (p * y).sum(axes) + 1) / (p.sum(axes) + y.sum(axes) + 1)


@case(
    "ivadomed/ivadomed#910",
    "Dice over all pixels of a GPU's batch",
    "the mean of replicas' ratios, each over the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **MASKS,
)
def dice_of_the_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    soft_dice(model, share, (0, 1)).backward()
    rank.average(model)


@case(
    "faustomilletari/VNet#16",
    "Dice of each volume, summed and divided by the batch size",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def dice_of_each_volume(rank: Rank, model: nn.Module, share: Any) -> None:
    soft_dice(model, share, 1).mean().backward()
    rank.average(model)


@case(
    "NifTK/NiftyNet#22",
    "Dice of the entire batch, and batches are accumulated on one device",
    "the mean of micro-batches' ratios, each over its own pixels",
    named="batch statistics are those of each micro-batch",
    **MASKS,
    **ALONE,
)
def dice_of_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (soft_dice(model, batch, (0, 1)) / len(window)).backward()


@case(
    "Zdafeng/SwinFIR#1",
    "mixup takes its partners from the GPU's own batch",
    "1 / N for mixed pairs, whose partners are of the own share",
    named="each replica pairs the examples of its own shard",
    equal_shards=True,
)
def partners_of_the_own_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    mixed = 0.7 * x + 0.3 * x.roll(1, 0)
    target = 0.7 * F.one_hot(y, 3) + 0.3 * F.one_hot(y.roll(1, 0), 3)
    F.cross_entropy(model(mixed), target).backward()
    rank.average(model)


def normalised() -> nn.Module:
    """With batch normalization."""
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))


@case(
    "fundamentalvision/BEVFormer#136",
    "nn.BatchNorm under DDP, without SyncBatchNorm",
    "1 / N, moments of the own share",
    named="batch statistics are not synchronised",
    model=normalised,
    equal_shards=True,
)
def moments_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


def synchronised(rank: Rank, model: nn.Module, share: Any, exact: bool) -> None:
    """A layer whose moments are averaged over ranks; right ones where exact."""
    hidden = model[0](share[0])
    mean = rank.gather_with_grad(hidden.mean(0, keepdim=True)).mean(0)
    centre = mean if exact else hidden.mean(0)
    variance = rank.gather_with_grad((hidden - centre).pow(2).mean(0, keepdim=True)).mean(0)
    out = model[2](model[1]((hidden - mean) / (variance + 1e-5).sqrt()))
    F.cross_entropy(out, share[1]).backward()
    rank.average(model)


@case(
    "fyu/drn#26",
    "the variances of GPUs are averaged, which is not the variance of all",
    "1 / N; the variance lacks what is between replicas",
    equal_shards=True,
)
def averaged_variances(rank: Rank, model: nn.Module, share: Any) -> None:
    synchronised(rank, model, share, exact=False)


@case(
    "tamakoji/pytorch-syncbn#1",
    "synchronised moments: squares are taken from the mean of all",
    "1 / N, moments of all, for equal shares",
    "even",
)
def synchronised_moments(rank: Rank, model: nn.Module, share: Any) -> None:
    synchronised(rank, model, share, exact=True)


class Tracked(nn.Module):
    """A classifier that keeps a moving mean of its inputs, and counts and sums of codes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()
        self.register_buffer("moving", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.net(x)

    def move(self, value: torch.Tensor, rate: float = 0.1) -> None:
        """The moving average takes a step."""
        self.moving.mul_(1 - rate).add_(value, alpha=rate)


def right_update(rank: Rank, model: nn.Module, window: list[Any]) -> None:
    """The gradient of the mean over all examples."""
    count = rank.all_reduce(sum(len(x) for x, _ in window))
    for batch in window:
        (sum_loss(model, batch) / count).backward()
    rank.add(model)


KEPT: dict[str, Any] = {"model": Tracked, "batch": vectors, "where": "statistics"}


@case(
    "NVIDIA/physicsnemo#59",
    "the mean over devices of their means, whatever their numbers; the update is right",
    "the statistics count 1 / (R n_r)",
    named="batch statistics are merged with equal weights",
    **KEPT,
)
def means_over_devices(rank: Rank, model: Any, share: Any) -> None:
    right_update(rank, model, [share])
    model.move(rank.all_reduce(share[0].mean(0)) / rank.world_size)


@case(
    "NVIDIA/physicsnemo#59",
    "the fix: local sums and n are reduced, then divided",
    "the statistics count 1 / N",
    "right",
    **KEPT,
)
def sums_and_n(rank: Rank, model: Any, share: Any) -> None:
    right_update(rank, model, [share])
    model.move(rank.all_reduce(share[0].sum(0)) / rank.all_reduce(len(share[0])))


@case(
    "facebookresearch/dino#102",
    "the teacher's centre moves at every micro-batch instead of once an update",
    "the statistics count 0.1 * 0.9^(K-k) / n_k",
    named="the statistics are updated in every micro-batch",
    **KEPT,
    **ALONE,
)
def centre_of_each_iteration(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    right_update(rank, model, window)
    for x, _ in window:
        model.move(x.mean(0))


@case(
    "SWivid/F5-TTS#631",
    "the fix: the average moves once, when the window is complete",
    "the statistics count 1 / N",
    "right",
    **KEPT,
    **ALONE,
)
def moved_once(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    right_update(rank, model, window)
    model.move(torch.cat([x for x, _ in window]).mean(0))


@case(
    "nadavbh12/VQ-VAE#11",
    "the codes' moving sums are those of each process; the first one's are saved",
    "the statistics count the first replica's examples alone",
    named="the statistics are those of one replica",
    **KEPT,
)
def codes_of_the_first(rank: Rank, model: Any, share: Any) -> None:
    right_update(rank, model, [share])
    model.move(share[0].sum(0))


@case(
    "maxjcohen/vqvae#1",
    "positions and cluster sizes are added over processes before the division",
    "the statistics count 1 / N",
    "right",
    **KEPT,
)
def codes_of_all(rank: Rank, model: Any, share: Any) -> None:
    right_update(rank, model, [share])
    model.move(rank.all_reduce(share[0].sum(0)))
