"""Contrastive losses, batch statistics, GANs and advantages: more than sums over examples."""

from __future__ import annotations

from torch_ranks import *

WINDOWS = {"micro_batches": (1, 2)}
ONE = {"replicas": (1,), "micro_batches": (1, 2, 3)}


def pairs() -> tuple[np.ndarray, ...]:
    """Two views of each example."""
    rng = np.random.default_rng(41)
    x = rng.normal(size=(12, 8)).astype(np.float32)
    return x, (x + 0.5 * rng.normal(size=x.shape)).astype(np.float32)


PAIRS = {"batch": pairs}


def features(model: nn.Module, share: Any) -> torch.Tensor:
    """Both views, normalised: (rows, 2, features)."""
    return torch.stack([F.normalize(model(x), dim=-1) for x in share], 1)


def clip_loss(one: torch.Tensor, other: torch.Tensor, first: int = 0) -> torch.Tensor:
    """Both directions, where row i belongs to column first + i."""
    logits = 4.0 * one @ other.T
    return F.cross_entropy(logits, torch.arange(len(one)) + first)


@case(
    "mlfoundations/open_clip#616",
    "local_loss with gather_with_grad: each rank's rows against all columns, equal shares",
    "1 / N for each row; a loss over all pairs",
    "even",
    **PAIRS,
)
def local_loss_gather_with_grad(rank: Rank, model: nn.Module, share: Any) -> None:
    own = features(model, share)
    every = rank.gather_with_grad(own)
    first = rank.rank * len(own)
    loss = clip_loss(own[:, 0], every[:, 1], first) + clip_loss(own[:, 1], every[:, 0], first)
    (loss / 2).backward()
    rank.average(model)


@case(
    "mlfoundations/open_clip#616",
    "no local_loss, gather without gradient, own rows put back: DDP divides the whole loss by R",
    "the right gradient of the loss over all pairs, over R",
    named="divided by the global batch, then averaged",
    **PAIRS,
)
def global_loss_gather_without_grad(rank: Rank, model: nn.Module, share: Any) -> None:
    own = features(model, share)
    gathered = rank.all_gather(own)
    gathered[rank.rank] = own
    every = torch.cat(gathered)
    loss = (clip_loss(every[:, 0], every[:, 1]) + clip_loss(every[:, 1], every[:, 0])) / 2
    loss.backward()
    rank.average(model)


@case(
    "mlfoundations/open_clip#616",
    "no local_loss, gather_with_grad: the added gradients make up for DDP's mean",
    "1 / N for each row; a loss over all pairs",
    "right",
    **PAIRS,
)
def global_loss_gather_with_grad(rank: Rank, model: nn.Module, share: Any) -> None:
    every = rank.gather_with_grad(features(model, share))
    loss = (clip_loss(every[:, 0], every[:, 1]) + clip_loss(every[:, 1], every[:, 0])) / 2
    loss.backward()
    rank.average(model)


@case(
    "huggingface/accelerate#1154",
    "local rows against columns gathered without a gradient: other ranks' negatives are constants",
    "1 / N for each row, without the gradient through columns of other ranks",
    named="no gradient passes through what the replicas exchange",
    equal_shards=True,
    **PAIRS,
)
def negatives_without_gradient(rank: Rank, model: nn.Module, share: Any) -> None:
    own = features(model, share)
    gathered = rank.all_gather(own)
    gathered[rank.rank] = own
    every = torch.cat(gathered)
    first = rank.rank * len(own)
    loss = clip_loss(own[:, 0], every[:, 1], first) + clip_loss(own[:, 1], every[:, 0], first)
    (loss / 2).backward()
    rank.average(model)


@case(
    "HobbitLong/SupContrast#26",
    "each worker sees its own sub-batch only: no negatives of other ranks",
    "a loss over the pairs of each replica, and their mean",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **PAIRS,
)
def negatives_of_own_share(rank: Rank, model: nn.Module, share: Any) -> None:
    own = features(model, share)
    ((clip_loss(own[:, 0], own[:, 1]) + clip_loss(own[:, 1], own[:, 0])) / 2).backward()
    rank.average(model)


@case(
    "lightonai/pylate#100",
    "triplets: each example brings its own negative, mean over the triplets of all ranks",
    "1 / N",
    "right",
    **PAIRS,
)
def triplets(rank: Rank, model: nn.Module, share: Any) -> None:
    own = features(model, share)
    near = (own[:, 0] * own[:, 1]).sum(-1)
    far = (own[:, 0] * F.normalize(model(share[1].flip(1)), dim=-1)).sum(-1)
    loss = F.softplus(far - near).sum() * rank.world_size / rank.all_reduce(len(own))
    loss.backward()
    rank.average(model)


class Normed(nn.Module):
    """A model with batch normalization, over the rank's rows or those of all ranks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = nn.Linear(8, 6), nn.Linear(6, 3)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor, rank: Rank | None = None) -> torch.Tensor:
        x = self.one(x)
        if rank is None:
            return self.two(torch.tanh(self.norm(x)))
        sums = torch.cat([x.sum(0), x.square().sum(0), torch.tensor([float(len(x))])])
        total = rank.gather_with_grad(sums[None]).sum(0)
        n, size = total[-1], x.shape[1]
        mean, square = total[:size] / n, total[size:-1] / n
        scaled = (x - mean) / torch.sqrt(square - mean**2 + 1e-5)
        return self.two(torch.tanh(scaled * self.norm.weight + self.norm.bias))


@case(
    "run-ai/runai#14",
    "batch normalization takes the moments of each micro-batch while gradients accumulate",
    "moments of a micro-batch, 1 / (K n_rk) for equal micro-batches",
    named="batch statistics are those of each micro-batch",
    model=Normed, replicas=(1,), micro_batches=(1, 2), equal_shards=True,
)  # fmt: skip
def batch_norm_of_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "huggingface/accelerate#791",
    "batch normalization of each process, without SyncBatchNorm",
    "moments of a replica, 1 / (R n_r) for equal shares",
    named="batch statistics are not synchronised",
    model=Normed, equal_shards=True,
)  # fmt: skip
def batch_norm_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "NVIDIA/apex#653",
    "synchronised batch normalization, mean loss over equal shares",
    "1 / N, with moments of all examples",
    "even",
    model=Normed,
)
def sync_batch_norm(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    F.cross_entropy(model(x, rank), y).backward()
    rank.average(model)


class Codebook(nn.Module):
    """A quantizer whose codes' sizes are kept in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = mlp()
        self.register_buffer("codes", torch.randn(4, 8))
        self.register_buffer("cluster_size", torch.zeros(4))
        self.register_buffer("embed_sum", torch.zeros(4, 8))

    def update(self, rank: Rank, x: torch.Tensor, synchronised: bool) -> None:
        onehot = F.one_hot(torch.cdist(x, self.codes).argmin(1), 4).float()
        size, total = onehot.sum(0), onehot.T @ x
        if synchronised:
            size, total = rank.all_reduce(size), rank.all_reduce(total)
        self.cluster_size.mul_(0.9).add_(size, alpha=0.1)
        self.embed_sum.mul_(0.9).add_(total, alpha=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


@case(
    "espnet/espnet#6284",
    "the codebook's moving counts and sums are those of each worker's batch; the update is right",
    "the statistics hold 1 for the first rank's examples, 0 for others",
    named="the statistics are those of one replica",
    where="statistics",
    model=Codebook,
)
def codebook_of_a_worker(rank: Rank, model: nn.Module, share: Any) -> None:
    x, _ = share
    model.update(rank, x, synchronised=False)
    (sum_loss(model, share) * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)


@case(
    "espnet/espnet#6284",
    "the fix: counts and sums are all-reduced before the moving average",
    "1 / N, and statistics of all examples",
    "right",
    model=Codebook,
)
def codebook_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, _ = share
    model.update(rank, x, synchronised=True)
    (sum_loss(model, share) * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)


class Critic(nn.Module):
    """A discriminator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[:, 0]


def penalty(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """R1: half the squared gradient at real examples, one for each."""
    x = x.clone().requires_grad_()
    (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return 0.5 * grad.square().sum(1)


GAN = {"batch": pairs, "model": Critic}


@case(
    "NVlabs/stylegan2#9",
    "the regularisation of every round is that of the first micro-batch again",
    "two parts: 1 / (K n_rk) for the loss; 1 / n_r0 for the penalty of the first micro-batch only",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "only the first micro-batch counts"
    ),
    **GAN, **ONE,
)  # fmt: skip
def penalty_of_the_first(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for real, fake in window:
        loss = F.softplus(-model(real)).mean() + F.softplus(model(fake)).mean()
        (loss / len(window)).backward()
        (penalty(model, window[0][0]).mean() / len(window)).backward()


@case(
    "NVlabs/stylegan3#171",
    "loss_Dreal of shape (batch, 1) plus loss_Dr1 of shape (batch,): all pairs, then the mean",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **GAN,
)
def broadcast_penalty(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    loss_real = F.softplus(-model(real))[:, None]
    loss_r1 = 2.0 * penalty(model, real)
    (loss_real + loss_r1).mean().backward()
    F.softplus(model(fake)).mean().backward()
    rank.average(model)


@case(
    "captain-pool/GSOC#57",
    "the critic's loss over the examples of all; the penalty is the mean of a replica's, added",
    "two parts: 1 / N, and 1 / n_r for the penalty, R times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean per replica, then sum"
    ),
    **GAN,
)
def penalty_has_local_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    critic = (model(fake) - model(real)).sum() / rank.all_reduce(len(real))
    (critic + 10.0 * penalty(model, real).mean()).backward()
    rank.add(model)


@case(
    "POSTECH-CVLab/PyTorch-StudioGAN#176",
    "penalty at interpolations that examples bring along; both means over equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **GAN,
)
def interpolations(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    mixed = (0.3 * real + 0.7 * fake).requires_grad_()
    (grad,) = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)
    grad_penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
    (model(fake).mean() - model(real).mean() + 10 * grad_penalty).backward()
    rank.average(model)


@case(
    "rosinality/stylegan2-pytorch#48",
    "penalty of half the batch (path_batch_shrink): the first half of each rank's share only",
    "two parts: 1 / N; 1 / (R n_r / 2) for the first half of each share, 0 for the second",
    named="each replica splits its own shard",
    **GAN, equal_shards=True, max_examples=12,
)  # fmt: skip
def shrunken_penalty_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    (F.softplus(-model(real)).mean() + F.softplus(model(fake)).mean()).backward()
    half = max(len(real) // 2, 1)
    (4.0 * penalty(model, real[:half]).mean()).backward()
    rank.average(model)


@case(
    "brownvc/R3GAN#9",
    "relativistic pairs and both penalties, sums over the examples of all ranks",
    "1 / N for all terms",
    "right",
    **GAN, **WINDOWS,
)  # fmt: skip
def relativistic(rank: Rank, model: nn.Module, share: Any) -> None:
    n = rank.all_reduce(sum(len(real) for real, _ in micros(share)))
    for real, fake in micros(share):
        adversarial = F.softplus(-(model(real) - model(fake)))
        loss = adversarial + 0.1 * (penalty(model, real) + penalty(model, fake))
        (loss.sum() / n * rank.world_size).backward()
    rank.average(model)


class Policy(nn.Module):
    """Log probabilities of actions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.net(x), -1)


def rollouts() -> tuple[np.ndarray, ...]:
    """Observations, actions, advantages."""
    x, y = vectors()
    return x, y, np.random.default_rng(31).normal(1.0, 2.0, size=len(x)).astype(np.float32)


@case(
    "HorizonRobotics/alf#1642",
    "advantages are normalised with the mean and deviation of each GPU's mini-batch",
    "moments of a replica: not linear in the advantages of its examples",
    named="batch statistics are not synchronised",
    batch=rollouts, model=Policy, equal_shards=True,
)  # fmt: skip
def advantages_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    obs, actions, advantages = share
    advantages = (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-8)
    logp = model(obs).gather(1, actions[:, None])[:, 0]
    (-(advantages * logp).mean()).backward()
    rank.average(model)


@case(
    "HorizonRobotics/alf#1642",
    "the fix: moments of the advantages of all GPUs",
    "1 / N, with moments of all examples",
    "right",
    batch=rollouts, model=Policy,
)  # fmt: skip
def advantages_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    obs, actions, advantages = share
    n = rank.all_reduce(len(advantages))
    mean = rank.all_reduce(advantages.sum()) / n
    variance = rank.all_reduce(advantages.square().sum()) / n - mean**2
    advantages = (advantages - mean) / (variance.clamp(min=0).sqrt() + 1e-8)
    logp = model(obs).gather(1, actions[:, None])[:, 0]
    (-(advantages * logp).sum() * rank.world_size / n).backward()
    rank.average(model)
