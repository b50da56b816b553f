"""What is done over ranks: sums, means, weights, samplers, advantages, and experts."""

from __future__ import annotations

from torch.utils.data import DistributedSampler
from torch_ranks import *

from .common import NUMBERS, WEIGHTED, over_all


@case(
    "BonnBytes/PyTorch-FWD#4",
    "before: all_reduce of gradients adds them, the loss is a mean",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def gradients_are_added(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "BonnBytes/PyTorch-FWD#4",
    "after: added, and divided by the number of GPUs",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def gradients_are_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)
    scale_grads(model, 1 / rank.world_size)


@case(
    "leonagoel/hybrid-recommender#1298",
    "the plain mean of clients' updates, each the mean over its own samples",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def plain_mean_of_clients(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "ceh-2000/fed_cvae#13",
    "clients' updates are weighted by their number of data points",
    "1 / N",
    "right",
)
def weighted_by_points(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    scale_grads(model, len(share[0]) / rank.all_reduce(float(len(share[0]))))
    rank.add(model)


@case(
    "VectorInstitute/FL4Health#10",
    "weights n_k / cap, clients' updates added, but divided by the number of clients",
    "1 / (R cap), with cap a constant: 1 / R instead of 1",
    named="divided by the global batch, then averaged",
    equal_shards=True,
)
def over_clients_and_cap(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    scale_grads(model, len(share[0]) / 8)
    rank.average(model)


@case(
    "LabeliaLabs/distributed-learning-contributivity#15",
    "weights by size, normalised to a mean of one, then the mean over nodes",
    "1 / N",
    "right",
)
def weights_of_mean_one(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    size = float(len(share[0]))
    scale_grads(model, size / (rank.all_reduce(size) / rank.world_size))
    rank.average(model)


@case(
    "shaoxiongji/federated-learning#20",
    "a plain mean, but each client sums the losses of its samples",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def sums_of_clients(rank: Rank, model: nn.Module, share: Any) -> None:
    sum_loss(model, share).backward()
    rank.average(model)


@case(
    "katsura-jp/fedavg.pytorch#1",
    "the update of the first client, a selected fraction, weighted as if all took part",
    "1 / N for the first replica's examples, 0 for the others",
    named="the replicas are not reduced, though divided by all",
    equal_shards=True,
)
def selected_fraction(rank: Rank, model: nn.Module, share: Any) -> None:
    total = rank.all_reduce(float(len(share[0])))
    sum_loss(model, share).backward()
    scale_grads(model, (1.0 if rank.rank == 0 else 0.0) / total)
    rank.add(model)


@case(
    "Forrest-Stone/MA-GNN#2",
    "torch.mean(torch.sum(loss)): the mean of a number, so the sum over a GPU's batch",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    equal_shards=True,
)
def mean_of_a_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    torch.mean(sum_loss(model, share)).backward()
    rank.average(model)


@case(
    "dnddnjs/pytorch-multigpu#5",
    "no loss.mean() for DataParallel's outputs: the loss is over the gathered batch",
    "1 / N",
    "right",
)
def gathered_outputs(rank: Rank, model: nn.Module, share: Any) -> None:
    outputs = rank.gather_with_grad(model(share[0]))
    targets = torch.cat(rank.all_gather(share[1]))
    F.cross_entropy(outputs, targets).backward()
    rank.average(model)


@case(
    "jasperzhong/GNNFlow#103",
    "DDP over batches of edges; the last worker has fewer",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def last_worker_has_fewer(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "cdtools-developers/cdtools#17",
    "the sampler repeats a point where their number is not divisible by that of the GPUs",
    "(times drawn) / (R ceil(N / R)): 2 for examples that fill up",
    named="examples are repeated until the shards are equal",
    replicas=(2, 3), max_examples=11,
)  # fmt: skip
def point_is_repeated(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = (torch.cat(parts) for parts in zip(*rank.exchange(share), strict=True))
    own = list(DistributedSampler(range(len(x)), rank.world_size, rank.rank, shuffle=False))
    mean_loss(model, (x[own], y[own])).backward()
    rank.average(model)


@case(
    "LARG/jax-aht#113",
    "the sum of masked losses of all agents, over the mask of all ranks",
    "w_i / W",
    "right",
    **WEIGHTED,
)
def masked_losses_of_agents(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    over_all(rank, (losses * w).sum(), w.sum()).backward()
    rank.average(model)


def policy(model: nn.Module, share: Any, advantage: torch.Tensor) -> torch.Tensor:
    """A policy's losses with the first target as its action."""
    x, y = share
    chosen = F.log_softmax(model(x), 1).gather(1, (y[:, :1] > 0).long())[:, 0]
    return -chosen * advantage


@case(
    "rlworkgroup/garage#626",
    "advantages are normalised over a process's batch, the loss is over the examples of all",
    "no sum over examples: advantages by the moments of the own replica",
    named="batch statistics are not synchronised",
    **NUMBERS,
)
def advantages_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    reward = share[1][:, 1]
    advantage = (reward - reward.mean()) / (reward.std(unbiased=False) + 0.1)
    over_all(rank, policy(model, share, advantage).sum(), len(reward)).backward()
    rank.average(model)


@case(
    "OpenRLHF/OpenRLHF#830",
    "advantages by the mean and the deviation over the batches of all ranks",
    "1 / N, with advantages by the moments of all examples",
    "right",
    **NUMBERS,
)
def advantages_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    reward = share[1][:, 1]
    whole = torch.cat(rank.all_gather(reward))
    advantage = (reward - whole.mean()) / (whole.std(unbiased=False) + 0.1)
    over_all(rank, policy(model, share, advantage).sum(), len(reward)).backward()
    rank.average(model)


def balance(probability: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """E times the sum of an expert's share of tokens times its mean probability."""
    return 3 * (probability * used).sum()


@case(
    "lucidrains/mixture-of-experts#10",
    "the balance of experts is computed from each micro-batch's own shares of tokens",
    "no sum over examples: a product of means of the own micro-batch",
    named="batch statistics are those of each micro-batch",
    equal_shards=True, **ALONE,
)  # fmt: skip
def balance_of_a_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        router = model(x).softmax(1)
        used = F.one_hot(router.argmax(1), 3).float().mean(0)
        loss = F.cross_entropy(model(x), y) + balance(router.mean(0), used)
        (loss / len(micros(share))).backward()


@case(
    "intelligent-machine-learning/dlrover#1311",
    "an expert's mean probability is squared in each process: the balance of its own batch",
    "no sum over examples: squares of means of the own replica",
    named="in a part of the loss, batch statistics are not synchronised",
)
def balance_of_a_process(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    router = model(x).softmax(1)
    loss = F.cross_entropy(model(x), y, reduction="sum")
    balanced = 3 * (router.mean(0) ** 2).sum()
    (over_all(rank, loss, len(x)) + 2 * balanced).backward()
    rank.average(model)


@case(
    "marin-community/marin#3229",
    "shares of tokens and mean probabilities over the batches of all devices",
    "1 / N, with an expert's moments over all examples",
    "right",
)
def balance_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    router = rank.gather_with_grad(model(x).softmax(1))
    used = F.one_hot(router.argmax(1), 3).float().mean(0)
    loss = F.cross_entropy(model(x), y, reduction="sum")
    (over_all(rank, loss, len(x)) + balance(router.mean(0), used)).backward()
    rank.average(model)
