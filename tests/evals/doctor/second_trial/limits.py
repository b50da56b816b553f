"""Limits on gradients, loss scales, penalties, adversaries and variational bounds."""

from __future__ import annotations

from torch_ranks import *

LIMIT = 0.1


def averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    """The gradient of the mean over all examples."""
    loss = sum_loss(model, share) / rank.all_reduce(len(share[0]))
    (loss * rank.world_size).backward()
    rank.average(model)


def factor(square: Any) -> torch.Tensor:
    """What clip_grad_norm_ multiplies by."""
    return torch.clamp(LIMIT / (torch.as_tensor(square).sqrt() + 1e-6), max=1.0)


@case(
    "areal-project/AReaL#312",
    "FSDP: each rank clips the parameters that it holds by their own norm",
    "min(1, c / |g_s|) / N, g_s the gradient of the shard of a rank",
    named="gradients are clipped by the norm of a shard",
)
def norm_of_a_shard(rank: Rank, model: nn.Module, share: Any) -> None:
    averaged(rank, model, share)
    params = list(model.parameters())
    for owner in range(rank.world_size):
        held = params[owner :: rank.world_size]
        scale = factor(sum((p.grad**2).sum() for p in held))
        for p in held:
            p.grad *= scale


@case(
    "ByteDance-Seed/VeOmni#184",
    "squares of the norm are added over replicas as well, which hold the same gradient",
    "min(1, c / (sqrt(R) |g|)) / N",
    named="gradient clipping depends on the replicas",
)
def norm_over_replicas(rank: Rank, model: nn.Module, share: Any) -> None:
    averaged(rank, model, share)
    square = sum((p.grad**2).sum() for p in model.parameters())
    scale_grads(model, factor(rank.all_reduce(square)))


@case(
    "mindspore-ai/hyper-parallel#279",
    "biases are not sharded, but their squares are added over the shard group, too",
    "min(1, c / sqrt(|g_w|^2 + R |g_b|^2)) / N",
    named="gradient clipping depends on the replicas",
)
def biases_counted_for_each_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    averaged(rank, model, share)
    square = torch.zeros(())
    for p in model.parameters():
        square += (p.grad**2).sum() / (rank.world_size if p.ndim > 1 else 1)
    scale_grads(model, factor(rank.all_reduce(square)))


@case(
    "mindspore-lab/mindcv#603",
    "gradients are clipped before they are reduced, on each card",
    "min(1, c / |g_r|) / (R n_r)",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def clipped_before_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
    rank.average(model)


@case(
    "mindspore-lab/mindcv#603",
    "the expected order: the mean over cards, then the limit",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
)
def clipped_after_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)


@case(
    "NCAR/miles-credit#141",
    "gradients are unscaled before they are clipped",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
)
def unscaled_before_clipping(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 1024.0
    (mean_loss(model, share) * scale).backward()
    rank.average(model)
    scale_grads(model, 1 / scale)
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)


def decay(model: nn.Module) -> torch.Tensor:
    """A penalty by hand."""
    return 0.05 * sum((p**2).sum() for p in model.parameters())


@case(
    "pawni/BayesByHypernet#2",
    "the divergence of the weights, which no example enters, is added for each micro-batch",
    "two parts: 1 / N; the term without examples counts K times",
    named="regularisation counts once in every micro-batch",
    micro_batches=(1, 2), replicas=(1,),
)  # fmt: skip
def divergence_of_each_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total = sum(len(x) for x, _ in window)
    for batch in window:
        (sum_loss(model, batch) / total + decay(model)).backward()


@case(
    "marrlab/DomainLab#368",
    "a regularisation loss in the sum that gradients are added of, on each rank",
    "two parts: 1 / N; the penalty counts R times",
    named="regularisation counts once on every replica",
)
def penalty_of_each_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    loss = sum_loss(model, share) / rank.all_reduce(len(share[0]))
    (loss + decay(model)).backward()
    rank.add(model)


@case(
    "jingyaogong/minimind#335",
    "loss and auxiliary loss are both divided by the accumulation steps",
    "1 / (K n_k), which is 1 / N for equal micro-batches; the term counts once",
    "even",
    micro_batches=(1, 2), replicas=(1,),
)  # fmt: skip
def auxiliary_divided_too(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch) + decay(model)
        (loss / len(window)).backward()


@case(
    "davidcpage/cifar10-fast#9",
    "a sum for loss, and weight decay times the batch size of each worker, both added",
    "1 and N times the decay: a sum over all examples",
    "right",
)
def decay_times_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    (sum_loss(model, share) + decay(model) * len(share[0])).backward()
    rank.add(model)


class Variational(nn.Module):
    """An encoder to mean and log variance, and a decoder; the noise is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 6), nn.Linear(3, 8)

    def terms(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Reconstruction error and divergence of each example."""
        mu, logvar = self.encoder(x).chunk(2, 1)
        recon = ((self.decoder(mu) - x) ** 2).mean(1)
        return recon, -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)


@case(
    "unnir/cVAE#1",
    "BCE is a mean and KLD a sum over the batch, gradients are averaged",
    "two parts: 1 / (R n_r) for reconstruction; 1 / R for the divergence, R times too small",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    model=Variational, equal_shards=True,
)  # fmt: skip
def mean_and_sum(rank: Rank, model: Any, share: Any) -> None:
    recon, kld = model.terms(share[0])
    (recon.mean() + 0.1 * kld.sum()).backward()
    rank.average(model)


@case(
    "AntixK/PyTorch-VAE#35",
    "kld_weight is the fraction of the data set that a rank's batch is",
    "two parts: 1 / N for reconstruction; 1 / (48 R) for the divergence, R times too small",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    model=Variational,
)
def weight_of_a_batch(rank: Rank, model: Any, share: Any) -> None:
    recon, kld = model.terms(share[0])
    kld_weight = len(share[0]) / 48
    loss = recon.sum() / rank.all_reduce(len(recon)) * rank.world_size
    (loss + kld_weight * kld.mean()).backward()
    rank.average(model)


@case(
    "wiseodd/generative-models#40",
    "both are averaged over the batch: torch.mean(0.5 * torch.sum(..., 1))",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    model=Variational,
)
def both_averaged(rank: Rank, model: Any, share: Any) -> None:
    recon, kld = model.terms(share[0])
    (recon.mean() + kld.mean()).backward()
    rank.average(model)


@case(
    "y0ast/VAE-Torch#7",
    "neither term is divided by the batch size: sums over all, added over ranks",
    "1, a sum over all examples",
    "right",
    model=Variational,
)
def both_summed(rank: Rank, model: Any, share: Any) -> None:
    recon, kld = model.terms(share[0])
    (recon.sum() + kld.sum()).backward()
    rank.add(model)


def critic() -> nn.Module:
    """A score."""
    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 1))


def slopes(output: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The norm of the gradient with regard to each example's input."""
    grads = torch.autograd.grad(output, x, create_graph=True)[0]
    return grads.flatten(1).norm(2, dim=1)


CRITIC: dict[str, Any] = {"model": critic}


@case(
    "Zeleni9/pytorch-wgan#40",
    "the penalty of each sample's own norm, averaged over the batch",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **CRITIC,
)
def penalty_of_samples(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0].requires_grad_()
    score = model(x)
    penalty = ((slopes(score.sum(), x) - 1) ** 2).mean()
    (score.mean() + 10 * penalty).backward()
    rank.average(model)


@case(
    "DingfanChen/GS-WGAN#13",
    "the penalty is put on the gradient of the batch's mean score, against bound / batch size",
    "(|g_i| / n_r - c / n)^2 in the penalty: the slope of a sample is divided by the share's size",
    named="batch statistics are not synchronised",
    **CRITIC,
)
def penalty_of_the_mean_score(rank: Rank, model: nn.Module, share: Any) -> None:
    x, bound = share[0].requires_grad_(), 1.0
    penalty = (slopes(model(x).mean(), x) - bound / 12) ** 2
    (100 * penalty.sum() / rank.all_reduce(len(x)) * rank.world_size).backward()
    rank.average(model)


@case(
    "keras-team/keras-contrib#75",
    "penalty and scores are both means over the samples of all ranks",
    "1 / N in both",
    "right",
    **CRITIC,
)
def penalty_over_all_samples(rank: Rank, model: nn.Module, share: Any) -> None:
    x = share[0].requires_grad_()
    samples, score = rank.all_reduce(len(x)), model(x)
    penalty = (slopes(score.sum(), x) - 1) ** 2
    ((score.sum() + 10 * penalty.sum()) / samples).backward()
    rank.add(model)


@case(
    "microsoft/protein-frame-flow#23",
    "the auxiliary loss is counted twice, on one device as well",
    "1 / (R n_r) of the sum of both, which is 1 / N for equal shares",
    "even",
    batch=targets, model=mlp,
)  # fmt: skip
def auxiliary_counted_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    error = model(x) - y
    auxiliary = error.abs().mean()
    ((error**2).mean() + auxiliary + auxiliary).backward()
    rank.average(model)
