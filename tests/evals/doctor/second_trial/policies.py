"""Reinforcement learning, and moments that are kept from step to step."""

from __future__ import annotations

from torch_ranks import *


def rollout(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Observations, actions, and advantages."""
    rng = np.random.default_rng(72)
    x = rng.normal(size=(rows, 8)).astype(np.float32)
    advantages = rng.normal(0.4, 1.5, size=rows).astype(np.float32)
    return x, rng.integers(3, size=rows), advantages


def responses() -> tuple[np.ndarray, ...]:
    """Observations of 5 tokens, actions, advantages, and which tokens count."""
    rng = np.random.default_rng(73)
    lengths = np.array([5, 2, 3, 1, 4, 5, 2, 3, 1, 4, 2, 5, 3, 1, 4, 2])
    x = rng.normal(size=(16, 5, 8)).astype(np.float32)
    advantages = rng.normal(0.3, 1.2, size=(16, 5)).astype(np.float32)
    mask = (np.arange(5) < lengths[:, None]).astype(np.float32)
    return x, rng.integers(3, size=(16, 5)), advantages, mask


def policy_losses(model: nn.Module, x: Any, actions: Any, advantages: Any) -> torch.Tensor:
    """-A log pi of each action."""
    logp = F.log_softmax(model(x), -1).gather(-1, actions[..., None])[..., 0]
    return -advantages * logp


class Tracked(nn.Module):
    """A network, and moments of its inputs that are used from the next step on."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()
        self.register_buffer("mean", torch.full((8,), 0.5))
        self.register_buffer("var", torch.full((8,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net((x - self.mean) / self.var.sqrt())


class Centred(nn.Module):
    """A student, and the teacher's centre as DINO keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()
        self.register_buffer("center", torch.full((3,), 0.3))


BEFORE = 10.0  # observations that the kept moments are of already
TRACKED: dict[str, Any] = {"model": Tracked, "where": "statistics"}
CENTRED: dict[str, Any] = {"model": Centred, "where": "statistics"}


def learn(rank: Rank, model: nn.Module, share: Any) -> None:
    """An update that is right."""
    loss = F.cross_entropy(model(share[0]), share[1], reduction="sum")
    (loss / rank.all_reduce(len(share[0])) * rank.world_size).backward()
    rank.average(model)


def merge(model: Any, mean: Any, var: Any, count: Any) -> None:
    """Chan's update of the kept moments."""
    total, delta = BEFORE + count, mean - model.mean
    m2 = model.var * BEFORE + var * count + delta**2 * BEFORE * count / total
    model.mean, model.var = model.mean + delta * count / total, m2 / total


def teach(model: Any, batch: Any, weight: Any) -> torch.Tensor:
    """A loss against centred targets; returns the teacher's outputs (a fixed rotation)."""
    teacher = batch[0][:, :3].roll(1, 1)
    targets = (teacher - 0.3).softmax(-1)
    loss = -(targets * F.log_softmax(model.net(batch[0]), -1)).sum(-1)
    (loss.sum() * weight).backward()
    return teacher


@case(
    "alexis-jacq/Pytorch-DPPO#5",
    "the proposal in each process: (advantages - mean) / std of its own advantages",
    "(A_i - mean_r) / std_r, over N: moments of the replica's share",
    named="batch statistics are not synchronised",
    batch=rollout, equal_shards=True,
)  # fmt: skip
def advantages_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    x, actions, advantages = share
    advantages = (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-5)
    policy_losses(model, x, actions, advantages).mean().backward()
    rank.average(model)


@case(
    "redai-studio/Relax#192",
    "mean and variance of the advantages of all valid tokens of all ranks",
    "(A_i - mean) / std, over W",
    "right",
    batch=responses,
)
def global_masked_normalisation(rank: Rank, model: nn.Module, share: Any) -> None:
    x, actions, advantages, mask = share
    tokens = rank.all_reduce(mask.sum())
    mean = rank.all_reduce((advantages * mask).sum()) / tokens
    var = rank.all_reduce(((advantages - mean) ** 2 * mask).sum()) / tokens
    advantages = (advantages - mean) * (var.clamp(min=1e-8)) ** -0.5
    loss = (policy_losses(model, x, actions, advantages) * mask).sum()
    (loss / tokens * rank.world_size).backward()
    rank.average(model)


@case(
    "NVIDIA/TorchFort#38",
    "mean and square deviation of each rank are averaged over ranks, which have different sizes",
    "(A_i - mean of the ranks' means) / std from the mean of the ranks' squares, over N",
    named="batch statistics are merged with equal weights",
    batch=rollout,
)
def moments_averaged_over_ranks(rank: Rank, model: nn.Module, share: Any) -> None:
    x, actions, advantages = share
    mean = rank.all_reduce(advantages.mean()) / rank.world_size
    var = rank.all_reduce(((advantages - mean) ** 2).mean()) / rank.world_size
    loss = policy_losses(model, x, actions, (advantages - mean) / (var.sqrt() + 1e-5)).sum()
    (loss / rank.all_reduce(len(x)) * rank.world_size).backward()
    rank.average(model)


@case(
    "NVIDIA/TorchFort#38",
    "the same for ranks with as many samples",
    "(A_i - mean) / std, over N",
    "even",
    batch=rollout,
)
def moments_averaged_over_equal_ranks(rank: Rank, model: nn.Module, share: Any) -> None:
    x, actions, advantages = share
    mean = rank.all_reduce(advantages.mean()) / rank.world_size
    var = rank.all_reduce(((advantages - mean) ** 2).mean()) / rank.world_size
    policy_losses(model, x, actions, (advantages - mean) / (var.sqrt() + 1e-5)).mean().backward()
    rank.average(model)


@case(
    "pytorch/rl#869",
    "the loss normalises the advantages of the mini-batch that it is given",
    "(A_i - mean_k) / std_k, over K n_k: moments of the micro-batch",
    named="batch statistics are those of each micro-batch",
    batch=rollout, equal_shards=True, **ALONE,
)  # fmt: skip
def advantages_of_a_mini_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, actions, advantages in window:
        scale = advantages.std(unbiased=False).clamp(min=1e-6)
        loss = policy_losses(model, x, actions, (advantages - advantages.mean()) / scale)
        (loss.mean() / len(window)).backward()


@case(
    "ikostrikov/pytorch-a2c-ppo-acktr-gail#102",
    "advantages are normalised over the whole rollout, before mini-batches are drawn",
    "(A_i - mean) / std, over N",
    "right",
    batch=rollout, **ALONE,
)  # fmt: skip
def advantages_of_the_rollout(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    everything = torch.cat([advantages for *_, advantages in window])
    mean, std = everything.mean(), everything.std() + 1e-5
    for x, actions, advantages in window:
        loss = policy_losses(model, x, actions, (advantages - mean) / std)
        (loss.sum() / len(everything)).backward()


@case(
    "areal-project/AReaL#303",
    "mean of the group, std of the batch: of the trajectories that a rank has",
    "A_i / std_r, over N",
    named="batch statistics are not synchronised",
    batch=rollout,
)
def std_of_the_local_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, actions, advantages = share
    advantages = advantages / ((advantages**2).mean().sqrt() + 1e-6)
    loss = policy_losses(model, x, actions, advantages).sum()
    (loss / rank.all_reduce(len(x)) * rank.world_size).backward()
    rank.average(model)


@case(
    "leggedrobotics/rsl_rl#226",
    "before: each rank updates its running moments from its own observations",
    "moments of the first replica's examples only",
    named="the statistics are those of one replica",
    **TRACKED,
)
def local_normaliser(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    merge(model, x.mean(0), x.var(0, unbiased=False), len(x))


@case(
    "leggedrobotics/rsl_rl#226",
    "variances of the ranks are averaged without the differences of their means",
    "the mean of all; the variance is sum of n_r var_r / N, without (mean_r - mean)^2",
    **TRACKED,
)
def variances_without_means(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    count = rank.all_reduce(len(x))
    mean = rank.all_reduce(x.mean(0) * len(x)) / count
    var = rank.all_reduce(x.var(0, unbiased=False) * len(x)) / count
    merge(model, mean, var, count)


@case(
    "leggedrobotics/rsl_rl#226",
    "the fix: counts, means and second moments about the global mean are added over ranks",
    "moments of all examples",
    "right",
    **TRACKED,
)
def global_normaliser(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    count = rank.all_reduce(len(x))
    mean = rank.all_reduce(x.mean(0) * len(x)) / count
    spread = x.var(0, unbiased=False) + (x.mean(0) - mean) ** 2
    merge(model, mean, rank.all_reduce(spread * len(x)) / count, count)


@case(
    "Denys88/rl_games#363",
    "what not to do: full totals of the ranks are added, so the shared history counts R times",
    "(10 R mean_0 + sum of x) / (10 R + N): history R times too heavy",
    model=Tracked, where="statistics",
)  # fmt: skip
def history_counts_for_each_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    merge(model, x.mean(0), x.var(0, unbiased=False), len(x))
    count = rank.all_reduce(BEFORE + len(x))
    mean = rank.all_reduce(model.mean * (BEFORE + len(x))) / count
    squares = rank.all_reduce((model.var + model.mean**2) * (BEFORE + len(x))) / count
    model.mean, model.var = mean, squares - mean**2


@case(
    "Denys88/rl_games#363",
    "deltas against the last merged snapshot are added",
    "moments of all examples and the history, once",
    "right",
    **TRACKED,
)
def deltas_are_merged(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    count = BEFORE + rank.all_reduce(len(x))
    mean = (model.mean * BEFORE + rank.all_reduce(x.sum(0))) / count
    squares = (model.var + model.mean**2) * BEFORE + rank.all_reduce((x**2).sum(0))
    model.mean, model.var = mean, squares / count - mean**2


@case(
    "google/brax#113",
    "running statistics are aggregated over devices in the trainer",
    "the mean of all examples and the history",
    "right",
    **TRACKED,
)
def aggregated_statistics(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0]
    learn(rank, model, share)
    count = rank.all_reduce(len(x))
    mean = rank.all_reduce(x.sum(0)) / count
    merge(model, mean, rank.all_reduce(((x - mean) ** 2).sum(0)) / count, count)


@case(
    "lightly-ai/lightly-train#968",
    "the teacher's centre is updated in each micro-batch instead of once per step",
    "c <- 0.9 c + 0.1 mean_k for each k: later micro-batches count more, the old centre 0.9^K",
    named="the statistics are updated in every micro-batch",
    **CENTRED, **ALONE,
)  # fmt: skip
def center_of_each_micro_batch(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    total = sum(len(batch[0]) for batch in window)
    for batch in window:
        teacher = teach(model, batch, 1 / total)
        model.center = 0.9 * model.center + 0.1 * teacher.mean(0)


@case(
    "lightly-ai/lightly#2062",
    "the deferred centre: means of micro-batches are added, and divided by their number",
    "1 / (K n_k) in the centre",
    named="in the statistics: mean of the micro-batches' means",
    **CENTRED, **ALONE,
)  # fmt: skip
def center_of_means(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    total = sum(len(batch[0]) for batch in window)
    means = [teach(model, batch, 1 / total).mean(0) for batch in window]
    model.center = 0.9 * model.center + 0.1 * sum(means) / len(means)


@case(
    "lightly-ai/lightly-train#969",
    "the centre is weighted by the numbers of the teacher's outputs, and updated once",
    "1 / N in the centre",
    "right",
    **CENTRED, **ALONE,
)  # fmt: skip
def center_of_outputs(rank: Rank, model: Any, share: Any) -> None:
    window = micros(share)
    total = sum(len(batch[0]) for batch in window)
    sums = [teach(model, batch, 1 / total).sum(0) for batch in window]
    model.center = 0.9 * model.center + 0.1 * sum(sums) / total
