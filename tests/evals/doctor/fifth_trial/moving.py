"""Running moments, codebooks and centres, beside an update that is right."""

from __future__ import annotations

from torch_ranks import *

from .common import exact


class Normalizer(nn.Module):
    """A network whose policy sees observations that a running mean and variance normalise."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3))
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("var", torch.ones(8))
        self.register_buffer("count", torch.tensor(4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def update(self, mean: Any, var: Any, count: Any) -> None:
        """Chan's rule for a batch with these moments."""
        total = self.count + count
        delta = mean - self.mean
        m2 = self.var * self.count + var * count + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.var.copy_(m2 / total)
        self.count.fill_(float(total))


class Codes(nn.Module):
    """An encoder, four codes, and their moving sums and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3))
        self.register_buffer("sums", torch.eye(4, 3) - 0.2)
        self.register_buffer("counts", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def assigned(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What a batch adds to sums and counts."""
        with torch.no_grad():
            z = self.net(x)
            hot = F.one_hot(torch.cdist(z, self.sums / self.counts[:, None]).argmin(1), 4)
            return hot.float().T @ z, hot.sum(0).float()


OBSERVED: dict[str, Any] = {"model": Normalizer, "where": "statistics"}
CODED: dict[str, Any] = {"model": Codes, "where": "statistics"}


def moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and the variance over examples."""
    return x.mean(0), x.var(0, unbiased=False)


@case(
    "Unity-Technologies/ml-agents#2556",
    "each worker normalises by the moments of its own experiences",
    "the statistics are those of the first replica's share",
    named="the statistics are those of one replica",
    equal_shards=True, **OBSERVED,
)  # fmt: skip
def own_experiences(rank: Rank, model: Normalizer, share: Any) -> None:
    exact(rank, model, share)
    model.update(*moments(share[0]), len(share[0]))


@case(
    "ray-project/ray#2505",
    "filters are synchronised: means and variances of workers are averaged, without their distance",
    "the mean of means, and of variances within replicas",
    **OBSERVED,
)
def averaged_filters(rank: Rank, model: Normalizer, share: Any) -> None:
    exact(rank, model, share)
    mean, var = (rank.all_reduce(m) / rank.world_size for m in moments(share[0]))
    model.update(mean, var, rank.all_reduce(len(share[0])))


@case(
    "dojo-sim/Dojo.jl#5",
    "the distributed version as the threaded one: sums and squares of all are added",
    "the moments of all examples",
    "right",
    **OBSERVED,
)
def sums_and_squares(rank: Rank, model: Normalizer, share: Any) -> None:
    exact(rank, model, share)
    x = share[0]
    count = rank.all_reduce(float(len(x)))
    mean = rank.all_reduce(x.sum(0)) / count
    model.update(mean, rank.all_reduce((x**2).sum(0)) / count - mean**2, count)


@case(
    "HumanCompatibleAI/imitation#387",
    "the running mean is updated at every forward, for each micro-batch by its rule of moments",
    "the moments of all examples",
    "right",
    **OBSERVED, **ALONE,
)  # fmt: skip
def updated_in_each_round(rank: Rank, model: Normalizer, share: Any) -> None:
    size = sum(len(x) for x, _ in micros(share))
    for x, y in micros(share):
        (F.cross_entropy(model(x), y, reduction="sum") / size).backward()
        model.update(*moments(x), len(x))


@case(
    "keiohta/tf2rl#77",
    "moving averages of mean and variance, updated in every round of accumulation",
    "the statistics move K times, by micro-batches' means",
    named="the statistics are updated in every micro-batch",
    **OBSERVED, **ALONE,
)  # fmt: skip
def moved_in_each_round(rank: Rank, model: Normalizer, share: Any) -> None:
    size = sum(len(x) for x, _ in micros(share))
    for x, y in micros(share):
        (F.cross_entropy(model(x), y, reduction="sum") / size).backward()
        mean, var = moments(x)
        model.mean.lerp_(mean, 0.1)
        model.var.lerp_(var, 0.1)


@case(
    "CompVis/taming-transformers#90",
    "moving sums and counts of codes from each process's own batch",
    "the statistics are those of the first replica's share",
    named="the statistics are those of one replica",
    **CODED,
)
def codes_of_a_process(rank: Rank, model: Codes, share: Any) -> None:
    exact(rank, model, share)
    sums, counts = model.assigned(share[0])
    model.sums.mul_(0.9).add_(0.1 * sums)
    model.counts.mul_(0.9).add_(0.1 * counts)


@case(
    "google-deepmind/sonnet#248",
    "sums and counts of all replicas are added before the moving averages",
    "the sums over all examples",
    "right",
    **CODED,
)
def codes_of_all(rank: Rank, model: Codes, share: Any) -> None:
    exact(rank, model, share)
    sums, counts = (rank.all_reduce(v) for v in model.assigned(share[0]))
    model.sums.mul_(0.9).add_(0.1 * sums)
    model.counts.mul_(0.9).add_(0.1 * counts)


@case(
    "haihuangcode/CMG#24",
    "sums of all processes, but the count is that of this one",
    "sums over all examples, counts over the first replica's share",
    **CODED,
)
def counts_of_a_process(rank: Rank, model: Codes, share: Any) -> None:
    exact(rank, model, share)
    sums, counts = model.assigned(share[0])
    model.sums.mul_(0.9).add_(0.1 * rank.all_reduce(sums))
    model.counts.mul_(0.9).add_(0.1 * counts)


@case(
    "gmboquet/mixle#443",
    "codes are updated by the mean over processes of their sums and counts",
    "1 / R of the sums over all examples",
    named="in the statistics: divided by the global batch, then averaged",
    equal_shards=True, **CODED,
)  # fmt: skip
def codes_are_averaged(rank: Rank, model: Codes, share: Any) -> None:
    exact(rank, model, share)
    sums, counts = (rank.all_reduce(v) / rank.world_size for v in model.assigned(share[0]))
    model.sums.mul_(0.9).add_(0.1 * sums)
    model.counts.mul_(0.9).add_(0.1 * counts)


class Centred(nn.Module):
    """A network, and a moving centre of what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3))
        self.register_buffer("center", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


@case(
    "EncodeTS/TensorFlow_Center_Loss#2",
    "centres with several cards: what each card would change is summed",
    "the sum of replicas' means, R times too much",
    named="in the statistics: mean per replica, then sum",
    equal_shards=True, model=Centred, where="statistics",
)  # fmt: skip
def changes_are_added(rank: Rank, model: Centred, share: Any) -> None:
    exact(rank, model, share)
    own = 0.1 * (model(share[0]).detach().mean(0) - model.center)
    model.center += rank.all_reduce(own)


@case(
    "EncodeTS/TensorFlow_Center_Loss#2",
    "sums and numbers of all cards before the centre moves",
    "the mean over all examples",
    "right",
    model=Centred, where="statistics",
)  # fmt: skip
def centre_of_all(rank: Rank, model: Centred, share: Any) -> None:
    exact(rank, model, share)
    out = model(share[0]).detach()
    mean = rank.all_reduce(out.sum(0)) / rank.all_reduce(len(out))
    model.center.lerp_(mean, 0.1)


@case(
    "leftthomas/MoCo#3",
    "running moments of batch normalization are those of the first device",
    "the statistics are those of the first replica's share",
    named="the statistics are those of one replica",
    equal_shards=True, **OBSERVED,
)  # fmt: skip
def first_device(rank: Rank, model: Normalizer, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    mean, var = moments(share[0])
    model.mean.lerp_(mean, 0.1)
    model.var.lerp_(var, 0.1)
