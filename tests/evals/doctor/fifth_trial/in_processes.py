"""Programs of real DistributedDataParallel."""

from __future__ import annotations

from torch_processes import *


@case(
    "echowve/meshGraphNets_pytorch#13",
    "the mean over a rank's nodes that are not boundary, under DDP",
    "w_i / (R W_r), with w_i the nodes",
    named="mean of the replicas' means",
    **WORDS, **LOSS,
)  # fmt: skip
def mean_over_nodes() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        summed, count = tokens(model, batch)
        return summed / count

    return tagger(), loss


@case(
    "towhee-io/towhee#2410",
    "as DataParallel does it: one mean over the nodes of all ranks",
    "w_i / W",
    "right",
    **WORDS,
)
def one_mean_of_all() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        summed, count = tokens(model, share)
        (summed * dist.get_world_size() / total(count)).backward()

    return tagger(), run


@case(
    "GFNOrg/torchgfn#448",
    "losses of trajectories are summed, DDP averages over nodes",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets, **LOSS,
)  # fmt: skip
def summed_trajectories() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        return ((model(batch[0]).sum(1) - batch[1].sum(1)) ** 2).sum()

    return mlp(), loss


@case(
    "huggingface/picotron#5",
    "synchronisation is switched off for all rounds, also the last",
    "1 / (K n_0k) for the first rank's examples on its copy: every copy has its own update",
    named="the replicas' parameters differ",
    equal_shards=True, **WINDOWS,
)  # fmt: skip
def never_switched_on() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        with model.no_sync():
            for batch in micros(share):
                (mean_loss(model, batch) / len(micros(share))).backward()

    return mlp(), run


@case(
    "goodfire-ai/spd#216",
    "no_sync around forward and backward of all rounds but the last",
    "1 / (R K n_rk), which is 1 / N for equal micro-batches",
    "even",
    **WINDOWS,
)
def last_is_synchronised() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window[:-1]:
            with model.no_sync():
                (mean_loss(model, batch) / len(window)).backward()
        (mean_loss(model, window[-1]) / len(window)).backward()

    return mlp(), run


@case(
    "HobbitLong/PyContrast#10",
    "keys are gathered without a gradient, queries are contrasted with those of all ranks",
    "no sum over examples: positions of keys are those of the own rank's, as if it were the first",
    batch=targets, equal_shards=True, **LOSS,
)  # fmt: skip
def positions_of_the_first() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        x, y = batch
        q, key = F.normalize(model(x), dim=1), F.normalize(y, dim=1)
        held = [torch.zeros_like(key) for _ in range(dist.get_world_size())]
        dist.all_gather(held, key)
        return F.cross_entropy(q @ torch.cat(held).T, torch.arange(len(x)))

    return mlp(), loss
