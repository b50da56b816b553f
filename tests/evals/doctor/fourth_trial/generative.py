"""Policies, adversaries, variational and taught models, and experts."""

from __future__ import annotations

from torch_ranks import *

from .settings import VIEWS


def rollout(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Observations, actions, and advantages."""
    rng = np.random.default_rng(271)
    return *vectors(rows), (rng.normal(size=rows) * 2 + 0.5).astype(np.float32)


def taught(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Features, classes, and a teacher's logits."""
    rng = np.random.default_rng(272)
    return *vectors(rows), rng.normal(size=(rows, 3)).astype(np.float32)


def critic() -> nn.Module:
    """A score."""
    return nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 1))


def variational() -> nn.Module:
    """An encoder of two numbers and their logarithmic variances, and a decoder."""
    return nn.ModuleList([nn.Linear(8, 4), nn.Linear(2, 8)])


def experts() -> nn.Module:
    """A router and three experts."""
    return nn.ModuleList([nn.Linear(8, 3), *(nn.Linear(8, 3) for _ in range(3))])


ROLLOUT: dict[str, Any] = {"batch": rollout}
SCORES: dict[str, Any] = {"batch": VIEWS["batch"], "model": critic}
LATENT: dict[str, Any] = {"batch": lambda: (targets()[0],), "model": variational}
TAUGHT: dict[str, Any] = {"batch": taught}


def log_probs(model: nn.Module, share: Any) -> torch.Tensor:
    """Of the actions that were taken."""
    return model(share[0]).log_softmax(-1).gather(1, share[1][:, None])[:, 0]


def elbo(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared errors and divergences, by example and dimension."""
    mu, logvar = model[0](x).chunk(2, 1)
    return (model[1](mu) - x) ** 2, -0.5 * (1 + logvar - mu**2 - logvar.exp())


def gradient_norms(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Of the critic at each sample."""
    x = x.clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return grad.norm(dim=1)


@case(
    "DLR-RM/stable-baselines3#485",
    "advantages are normalised over the examples that an update sees, by each worker",
    "1 / (R n_r), with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **ROLLOUT,
)
def advantages_of_an_update(rank: Rank, model: nn.Module, share: Any) -> None:
    adv = share[2]
    if len(adv) > 1:
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    (-(adv * log_probs(model, share)).mean()).backward()
    rank.average(model)


@case(
    "DLR-RM/stable-baselines3#485",
    "normalize_advantage=False, equal rollouts",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **ROLLOUT,
)
def advantages_as_they_are(rank: Rank, model: nn.Module, share: Any) -> None:
    (-(share[2] * log_probs(model, share)).mean()).backward()
    rank.average(model)


@case(
    "tensorflow/agents#651",
    "normalised along one axis: each micro-batch's episodes by themselves",
    "1 / (K n_k), with the moments of a micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **ROLLOUT,
    **ALONE,
)
def advantages_along_one_axis(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        adv = batch[2]
        adv = (adv - adv.mean()) / (adv.var(unbiased=False) + 1e-8).sqrt()
        (-(adv * log_probs(model, batch)).mean() / len(window)).backward()


@case(
    "tensorflow/agents#651",
    "the fix: normalised over time and batch, of all that is trained on",
    "1 / N, with the moments of all",
    "right",
    **ROLLOUT,
    **ALONE,
)
def advantages_along_both_axes(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    everything = torch.cat([batch[2] for batch in window])
    mean, std = everything.mean(), (everything.var(unbiased=False) + 1e-8).sqrt()
    for batch in window:
        adv = (batch[2] - mean) / std
        (-(adv * log_probs(model, batch)).sum() / len(everything)).backward()


@case(
    "martinarjovsky/WassersteinGAN#38",
    "critic: the mean of real minus that of fake, data_parallel gathers the scores",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **SCORES,
)
def critic_of_data_parallel(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    (model(fake).mean() - model(real).mean()).backward()
    rank.average(model)


@case(
    "mickypaganini/GAN_tutorial#2",
    "critic: means over a GPU's samples, GPUs with different numbers are averaged",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **SCORES,
)
def critic_of_unequal_gpus(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    errD_real, errD_fake = model(real).mean(), model(fake).mean()  # noqa: N806
    (-(errD_real - errD_fake)).backward()
    rank.average(model)


@case(
    "hwalsuklee/tensorflow-generative-model-collections#33",
    "the penalty of the norm over a whole batch's gradient, not of each sample's",
    "two parts: 1 / (R n_r); the norm over each replica's own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **SCORES,
)
def penalty_of_a_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    loss = F.softplus(model(fake)).mean() + F.softplus(-model(real)).mean()
    norm = gradient_norms(model, 0.5 * (real + fake)).square().sum().sqrt()
    (loss + 0.3 * (norm - 1).square()).backward()
    rank.average(model)


@case(
    "hwalsuklee/tensorflow-generative-model-collections#33",
    "one alpha for each sample, the penalty's mean over samples",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **SCORES,
)
def penalty_of_each_sample(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    alpha = torch.sigmoid(real[:, :1] - fake[:, :1])
    norms = gradient_norms(model, alpha * real + (1 - alpha) * fake)
    loss = model(fake).mean() - model(real).mean() + 10 * (norms - 1).square().mean()
    loss.backward()
    rank.average(model)


@case(
    "akanimax/BMSG-GAN#35",
    "the penalty is a sum over scales and samples, the critic's losses are means, DDP averages",
    "two parts: 1 / (R n_r); 1 / R instead of 1 for the penalty",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
    **SCORES,
)
def penalty_is_a_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    penalty = sum((gradient_norms(model, s * real) - 1).square().sum() for s in (1.0, 0.5))
    (model(fake).mean() - model(real).mean() + 0.1 * penalty).backward()
    rank.average(model)


@case(
    "elvisyjlin/AttGAN-PyTorch#6",
    "the adversarial loss counts samples of all GPUs, the penalty those of each GPU",
    "two parts: 1 / N; 1 / (R n_r) for the penalty",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    **SCORES,
)
def penalty_of_each_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    n = rank.all_reduce(len(real))
    loss = (model(fake) - model(real)).sum() * rank.world_size / n
    (loss + 5 * (gradient_norms(model, real) - 1).square().mean()).backward()
    rank.average(model)


@case(
    "AlexiaJM/Deep-learning-with-cats#10",
    "real, fake and penalty have a backward each, as one of the sum of losses",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **SCORES,
)
def three_backwards(rank: Rank, model: nn.Module, share: Any) -> None:
    real, fake = share
    (-model(real).mean()).backward()
    model(fake).mean().backward()
    (10 * (gradient_norms(model, 0.5 * (real + fake)) - 1).square().mean()).backward()
    rank.average(model)


@case(
    "AlexiaJM/Deep-learning-with-cats#10",
    "three backwards for each of K accumulated batches, the scores are divided by K alone",
    "two parts: 1 / (K n_k); 1 / n_k for the penalty, K times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are not divided"
    ),
    equal_shards=True,
    **SCORES,
    **ALONE,
)
def three_backwards_accumulated(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for real, fake in window:
        (-model(real).mean() / len(window)).backward()
        (model(fake).mean() / len(window)).backward()
        (gradient_norms(model, 0.5 * (real + fake)) - 1).square().mean().backward()


@case(
    "SeldonIO/alibi-detect#90",
    "reduce_sum in the elbo, devices are averaged",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    **LATENT,
)
def elbo_is_a_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, kl = elbo(model, share[0])
    (errors.sum() + kl.sum()).backward()
    rank.average(model)


@case(
    "SeldonIO/alibi-detect#90",
    "reduce_mean over a device's examples, whose number differs",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **LATENT,
)
def elbo_is_a_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, kl = elbo(model, share[0])
    (errors.sum(1).mean() + kl.sum(1).mean()).backward()
    rank.average(model)


@case(
    "intel/ipex-llm#2113",
    "the criterion sums the divergence over a sub-batch, the reconstruction is averaged",
    "two parts: 1 / (R n_r); 1 / R instead of 1 for the divergence",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
    **LATENT,
)
def divergence_is_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, kl = elbo(model, share[0])
    (errors.mean() + kl.sum()).backward()
    rank.average(model)


@case(
    "intel/ipex-llm#2113",
    "the divergence averaged over the sub-batch as well; threads have equal sub-batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **LATENT,
)
def divergence_over_the_sub_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, kl = elbo(model, share[0])
    batch_size = len(share[0])
    (errors.mean() + kl.sum() / batch_size).backward()
    rank.average(model)


@case(
    "ccpem/affinity-vae#210",
    "summed over latents, then the mean over a batch; batches are accumulated",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **LATENT,
    **ALONE,
)
def summed_over_latents(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        errors, kl = elbo(model, batch[0])
        ((errors.mean() + kl.sum(1).mean()) / len(window)).backward()


@case(
    "zdebruine/MMVAE#19",
    "errors by default averaged over elements, the divergence summed over the accumulated batch",
    "two parts: 1 / (K n_k); 1 / K instead of 1 for the divergence",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are divided twice"
    ),
    equal_shards=True,
    **LATENT,
    **ALONE,
)
def mean_and_sum_are_mixed(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        errors, kl = elbo(model, batch[0])
        ((errors.mean() + kl.sum()) / len(window)).backward()


@case(
    "openvinotoolkit/nncf#987",
    "a softened divergence by batchmean times T^2 and a scale, and cross entropy",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **TAUGHT,
)
def batchmean_of_the_teacher(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, teacher = share
    out, t = model(x), 4.0
    kd = F.kl_div((out / t).log_softmax(1), (teacher / t).softmax(1), reduction="batchmean")
    (F.cross_entropy(out, y) + 0.5 * t**2 * kd).backward()
    rank.average(model)


@case(
    "openvinotoolkit/nncf#987",
    "the divergence with reduction='sum', cross entropy with its mean",
    "two parts: 1 / (R n_r); 1 / R instead of 1 for the teacher",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
    **TAUGHT,
)
def sum_of_the_teacher(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, teacher = share
    out = model(x)
    kd = F.kl_div(out.log_softmax(1), teacher.softmax(1), reduction="sum")
    (F.cross_entropy(out, y) + 0.2 * kd).backward()
    rank.average(model)


@case(
    "keras-team/keras-io#869",
    "student loss over the examples of all, distillation over a replica's own",
    "two parts: 1 / N; 1 / (R n_r) for the distillation",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    **TAUGHT,
)
def distillation_of_a_replica(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, teacher = share
    out = model(x)
    n = rank.all_reduce(len(x))
    student = F.cross_entropy(out, y, reduction="sum") * rank.world_size / n
    soft = F.kl_div((out / 2).log_softmax(1), (teacher / 2).softmax(1), reduction="batchmean")
    (0.3 * student + 0.7 * 4 * soft).backward()
    rank.average(model)


def routed(model: nn.Module, share: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The losses, the router's probabilities, and which experts were taken."""
    x, y = share
    probs = model[0](x).softmax(1)
    outs = torch.stack([expert(x) for expert in model[1:]], 1)
    taken = F.one_hot(probs.argmax(1), 3).float()
    out = (outs * (taken * probs)[..., None]).sum(1)
    return F.cross_entropy(out, y, reduction="none"), probs, taken


@case(
    "allenai/OLMo-core#227",
    "the load-balancing loss: fractions and probabilities of a rank's own micro-batch",
    "two parts: 1 / (R K n_rk); the balance of each micro-batch",
    named="batch statistics are not synchronised",
    equal_shards=True,
    model=experts,
    **WINDOWS,
)
def balance_of_a_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        losses, probs, taken = routed(model, batch)
        balance = 3 * (taken.mean(0) * probs.mean(0)).sum()
        ((losses.mean() + 0.5 * balance) / len(window)).backward()
    rank.average(model)


@case(
    "allenai/OLMo-core#227",
    "without an auxiliary loss: a bias for each expert is held, ranks are alike",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    model=experts,
    **WINDOWS,
)
def without_an_auxiliary_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        losses, _, _ = routed(model, batch)
        (losses.mean() / len(window)).backward()
    rank.average(model)


@case(
    "yulu0724/SDC-IL#19",
    "a loss on new data over the batch of all, plus drift from the old model over a GPU's batch",
    "two parts: 1 / N; 1 / R instead of 1 for the drift",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    **TAUGHT,
)
def drift_is_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    x, _, old = share
    n = rank.all_reduce(len(x))
    new = mean_loss(model, share[:2]) * len(x) * rank.world_size / n
    (new + 0.05 * (model(x) - old).square().sum()).backward()
    rank.average(model)
