"""Reinforcement learning, adversaries, teachers, and terms that are added to a loss."""

from __future__ import annotations

from torch_ranks import *


def rollout(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Observations, actions, and advantages."""
    rng = np.random.default_rng(151)
    return *vectors(rows), rng.normal(size=rows).astype(np.float32) * 2 + 0.5


def taught(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Features, classes, and the teacher's logits."""
    rng = np.random.default_rng(152)
    return *vectors(rows), rng.normal(size=(rows, 3)).astype(np.float32)


def real_and_fake(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Real samples, and what a generator made."""
    rng = np.random.default_rng(153)
    return tuple(rng.normal(i, 1, size=(rows, 8)).astype(np.float32) for i in range(2))


def critic() -> nn.Module:
    """A score."""
    return nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 1))


ROLLOUT: dict[str, Any] = {"batch": rollout}
TAUGHT: dict[str, Any] = {"batch": taught}
REAL: dict[str, Any] = {"batch": real_and_fake, "model": critic}


def log_probs(model: nn.Module, share: Any) -> torch.Tensor:
    """Of the actions that were taken."""
    return model(share[0]).log_softmax(-1).gather(1, share[1][:, None])[:, 0]


def squares(model: nn.Module) -> torch.Tensor:
    """The sum of the squares of all parameters."""
    return sum((p**2).sum() for p in model.parameters())


@case(
    "openai/baselines#323",
    "advantages are standardised within each worker's minibatch",
    "1 / N, with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **ROLLOUT,
)
def advantages_of_a_worker(rank: Rank, model: nn.Module, share: Any) -> None:
    adv = (share[2] - share[2].mean()) / (share[2].std() + 1e-8)
    (-(adv * log_probs(model, share)).mean()).backward()
    rank.average(model)


@case(
    "hill-a/stable-baselines#697",
    "advantages are standardised in each micro-batch of an accumulated update",
    "1 / (K n_k), with the moments of a micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **ROLLOUT,
    **ALONE,
)
def advantages_of_a_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        adv = (batch[2] - batch[2].mean()) / (batch[2].std() + 1e-8)
        (-(adv * log_probs(model, batch)).mean() / len(window)).backward()


@case(
    "thomfoster/minRLHF#5",
    "batch-level normalisation with the moments of all workers",
    "1 / (R n_r), which is 1 / N for equal shares, moments of all",
    "even",
    **ROLLOUT,
)
def advantages_of_all_workers(rank: Rank, model: nn.Module, share: Any) -> None:
    everyone = torch.cat(rank.all_gather(share[2]))
    adv = (share[2] - everyone.mean()) / (everyone.std() + 1e-8)
    (-(adv * log_probs(model, share)).mean()).backward()
    rank.average(model)


@case(
    "NVlabs/GDPO#3",
    "advantages are centred with the mean of all workers, divided by the worker's own deviation",
    "1 / (N s_r), s_r the deviation of the own share",
    equal_shards=True,
    **ROLLOUT,
)
def own_deviation(rank: Rank, model: nn.Module, share: Any) -> None:
    centred = share[2] - torch.cat(rank.all_gather(share[2])).mean()
    (-(centred / centred.std() * log_probs(model, share)).mean()).backward()
    rank.average(model)


@case(
    "sidhantls/ppo_lightning#7",
    "the entropy bonus is summed over a worker's steps, the policy loss is averaged",
    "1 / (R n_r) for the policy, 1 / R instead of 1 for the bonus",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
    **ROLLOUT,
)
def summed_bonus(rank: Rank, model: nn.Module, share: Any) -> None:
    logp = model(share[0]).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    policy = -(share[2] * log_probs(model, share)).mean()
    (policy - 0.1 * entropy.sum()).backward()
    rank.average(model)


@case(
    "yifan123/flow_grpo#88",
    "the policy loss over the rollouts of the micro-batch, updates are not divided by K",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    equal_shards=True,
    **ROLLOUT,
    **WINDOWS,
)
def inner_epoch(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (-(batch[2] * log_probs(model, batch)).mean()).backward()
    rank.average(model)


def penalty(model: nn.Module, share: Any, whole: bool = False) -> torch.Tensor:
    """(|dD/dx| - 1)^2 of each sample between real and fake, or of the batch as a whole."""
    between = (0.3 * share[0] + 0.7 * share[1]).requires_grad_()
    (slope,) = torch.autograd.grad(model(between).sum(), between, create_graph=True)
    norms = (slope**2).sum().sqrt() if whole else (slope**2).sum(1).sqrt()
    return ((norms - 1) ** 2).mean()


@case(
    "aladdinpersson/Machine-Learning-Collection#42",
    "critic and penalty in one loss, means over a rank's samples, equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **REAL,
)
def loss_critic(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    (model(fake).mean() - model(real).mean() + 10 * penalty(model, share)).backward()
    rank.average(model)


@case(
    "caogang/wgan-gp#36",
    "the critic's losses are divided by the accumulation steps, the penalty has its own backward",
    "1 / (K n_k) for real and fake, 1 / n_k for the penalty, K times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are not divided"
    ),
    equal_shards=True,
    **REAL,
    **ALONE,
)
def penalty_has_its_own_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for real, fake in window:
        ((model(fake).mean() - model(real).mean()) / len(window)).backward()
        (10 * penalty(model, (real, fake))).backward()


@case(
    "igul222/improved_wgan_training#90",
    "the norm of the slopes is taken over the whole batch of a GPU",
    "1 / N for real and fake, the penalty is of the own share as a whole",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **REAL,
)
def norm_of_all_slopes(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    (model(fake).mean() - model(real).mean() + 10 * penalty(model, share, True)).backward()
    rank.average(model)


@case(
    "nitrain/nitrain#42",
    "every rank adds the L2 term to its part of the mean, and gradients are added",
    "1 / N for examples, the term R times",
    named="regularisation counts once on every replica",
)
def term_of_every_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    data = sum_loss(model, share) / rank.all_reduce(len(share[0]))
    (data + 0.05 * squares(model)).backward()
    rank.add(model)


@case(
    "nitrain/nitrain#42",
    "the L2 term is added to the gradient once, when all ranks' have been added",
    "1 / N for examples, the term once",
    "right",
)
def term_after_the_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    (sum_loss(model, share) / rank.all_reduce(len(share[0]))).backward()
    rank.add(model)
    for p in model.parameters():
        p.grad += 0.1 * p.detach()


@case(
    "uma-pi1/kge#35",
    "the mean over the batch is divided by the sub-batches, the penalty is added in each of them",
    "1 / n by n_k / n for examples, the penalty K times",
    named="regularisation counts once in every micro-batch",
    **ALONE,
)
def penalty_of_each_sub_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    size = sum(len(x) for x, _ in window)
    for batch in window:
        (sum_loss(model, batch) / size + 0.05 * squares(model)).backward()


@case(
    "PumasAI/SimpleChains.jl#109",
    "penalties are scaled by the number of batches",
    "1 / (K n_k), which is 1 / N for equal shares, the penalty once",
    "even",
    **ALONE,
)
def penalty_by_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        ((mean_loss(model, batch) + 0.05 * squares(model)) / len(window)).backward()


@case(
    "d2l-ai/d2l-zh#517",
    "sum of losses and l2_penalty, and sgd divides both by the batch size of the rank",
    "1 / (R n_r) for examples, 1 / n_r for the penalty, on average R times that of one device",
    named="regularisation counts divided by the examples of each replica, then averaged",
    equal_shards=True,
)
def sgd_divides_both(rank: Rank, model: nn.Module, share: Any) -> None:
    ((sum_loss(model, share) + 0.2 * squares(model)) / len(share[0])).backward()
    rank.average(model)


@case(
    "tensorflow/probability#719",
    "the divergence of the weights is divided by the batch size of a micro-batch",
    "1 / (K n_k) for examples, the divergence over n_k: K times too much",
    named="regularisation counts divided by the examples of each micro-batch, then averaged",
    equal_shards=True,
    **ALONE,
)
def divergence_by_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        divergence = 0.5 * squares(model) / len(batch[0])
        ((mean_loss(model, batch) + divergence) / len(window)).backward()


@case(
    "tensorflow/probability#396",
    "kl_weight=1/x.shape[0]: the divergence over the size of the data set, a constant",
    "1 / (R n_r), which is 1 / N for equal shares, the divergence once",
    "even",
)
def divergence_by_data_set(rank: Rank, model: nn.Module, share: Any) -> None:
    (mean_loss(model, share) + 0.5 * squares(model) / 1000).backward()
    rank.average(model)


@case(
    "rabeehk/vibert#10",
    "the divergence is summed over the batch, cross entropy is averaged",
    "1 / (R n_r) for cross entropy, 1 / R instead of 1 for the divergence",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
)
def divergence_is_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    out = model(share[0])
    divergence = 0.5 * (out**2).sum()
    (F.cross_entropy(out, share[1]) + 0.02 * divergence).backward()
    rank.average(model)


@case(
    "nvcuong/variational-continual-learning#2",
    "the divergence of the weights over the training size is added by every replica, summed",
    "1 / N for examples, the divergence R times",
    named="regularisation counts once on every replica",
    equal_shards=True,
)
def divergence_of_every_replica(rank: Rank, model: nn.Module, share: Any) -> None:
    cost = mean_loss(model, share) / rank.world_size + squares(model) / 60
    cost.backward()
    rank.add(model)


def distilled(model: nn.Module, share: Any, reduction: str) -> torch.Tensor:
    """T^2 KL(teacher, student)."""
    student = (model(share[0]) / 2).log_softmax(-1)
    losses = 4 * F.kl_div(student, (share[2] / 2).softmax(-1), reduction="none")
    if reduction == "mean":
        return losses.mean()
    return losses.sum() / (len(losses) if reduction == "batchmean" else 1)


@case(
    "yuanli2333/Teacher-free-Knowledge-Distillation#41",
    'KLDivLoss() with "mean": small, but the same for all replicas, equal shares',
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **TAUGHT,
)
def divergence_of_elements(rank: Rank, model: nn.Module, share: Any) -> None:
    hard = F.cross_entropy(model(share[0]), share[1])
    (0.5 * hard + 0.5 * distilled(model, share, "mean")).backward()
    rank.average(model)


@case(
    "haitongli/knowledge-distillation-pytorch#48",
    'the soft loss has reduction="sum", the hard one is a mean, and ranks are averaged',
    "1 / (R n_r) for the hard loss, 1 / R instead of 1 for the soft one",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
    **TAUGHT,
)
def soft_loss_is_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    hard = F.cross_entropy(model(share[0]), share[1])
    (0.5 * hard + 0.05 * distilled(model, share, "sum")).backward()
    rank.average(model)


@case(
    "szagoruyko/attention-transfer#30",
    "normalised by the minibatch size of each GPU; GPUs have different sizes",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **TAUGHT,
)
def by_minibatch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    distilled(model, share, "batchmean").backward()
    rank.average(model)


@case(
    "HikariTJU/LD#74",
    "the hard loss is divided by the accumulation steps, the distillation loss is not",
    "1 / (K n_k) for the hard loss, 1 / n_k for the other, K times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are not divided"
    ),
    equal_shards=True,
    **TAUGHT,
    **ALONE,
)
def distillation_is_not_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        hard = F.cross_entropy(model(batch[0]), batch[1]) / len(window)
        (hard + distilled(model, batch, "batchmean")).backward()
