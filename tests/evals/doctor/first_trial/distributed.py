"""What exchanges gradients: DDP, Horovod, samplers, limits, moments, and terms of a loss."""

from __future__ import annotations

from torch.utils.data import DistributedSampler
from torch_ranks import *

WINDOWS = {"micro_batches": (1, 2)}
ONE = {"replicas": (1,), "micro_batches": (1, 2, 3)}


@case(
    "pytorch/pytorch#37359",
    "a loss with reduction='sum' under DDP, which divides by the ranks",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets,
)
def sum_mode_under_ddp(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    F.mse_loss(model(x), y, reduction="sum").backward()
    rank.average(model)


@case(
    "pytorch/pytorch#67253",
    "the hack there: local sums over the global batch size, then DDP's mean: R is forgotten",
    "1 / (R N)",
    named="divided by the global batch, then averaged",
    batch=targets,
)
def global_batch_and_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    local_loss_sum = F.mse_loss(model(x), y) * len(x)
    global_batch_size = rank.all_reduce(len(x))
    (local_loss_sum / global_batch_size).backward()
    rank.average(model)


@case(
    "pytorch/pytorch#67253",
    "the same with the world size: batches of different sizes are right",
    "1 / N",
    "right",
    batch=targets,
)
def global_batch_times_world(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    local_loss_sum = F.mse_loss(model(x), y) * len(x)
    (local_loss_sum * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)


@case(
    "pytorch/pytorch#67253",
    "the same for a mean over tokens: it is weighted by the rank's examples, not its tokens",
    "(n_r / N) w_i / W_r",
    named=(
        "the weights of each replica divides; the examples of the global batch divides; the "
        "examples of each replica multiplies"
    ),
    **SENTENCES,
)
def examples_weigh_token_means(rank: Rank, model: nn.Module, share: Any) -> None:
    n = len(share[0])
    loss = token_mean(model, share) * n / rank.all_reduce(n)
    (loss * rank.world_size).backward()
    rank.average(model)


@case(
    "NVIDIA/apex#696",
    "the loss is divided by the world size although DDP has divided already",
    "1 / (R^2 n_r)",
    named="mean per replica, then divided by the replicas twice",
)
def world_size_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    loss = mean_loss(model, share) / rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "facebookresearch/fairseq#494",
    "sums, and gradients times world size over the sample size of all workers",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def fairseq(rank: Rank, model: nn.Module, share: Any) -> None:
    sample_size = 0
    for sample in micros(share):
        loss, size = token_sum(model, sample)
        sample_size += size
        loss.backward()
    rank.average(model)
    scale_grads(model, rank.world_size / rank.all_reduce(sample_size))


@case(
    "facebookresearch/fairseq2#430",
    "gradients are multiplied by 1 / total batch size while DDP averages",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **SENTENCES,
)
def fairseq2(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, size = token_sum(model, share)
    loss.backward()
    rank.average(model)
    scale_grads(model, 1.0 / rank.all_reduce(size))


@case(
    "facebookresearch/fairseq#2192",
    "each worker divides by its own sample size and multiplies with the world size",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    **SENTENCES,
)
def own_sample_size(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, sample_size = token_sum(model, share)
    loss.backward()
    scale_grads(model, rank.world_size / sample_size)
    rank.average(model)


@case(
    "facebookresearch/Mask-Predict#9",
    "token losses over all tokens; the length loss over the sentences of this worker only",
    "two parts: w_i / W; 1 / (R n_r) for the length loss",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    batch=text, model=tagger,
)  # fmt: skip
def length_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, tokens = token_sum(model, share)
    x, labels = share
    lengths = (labels != PAD).sum(1).float()
    length = (model(x.mean(1))[:, 0] - 0.1 * lengths).square().mean()
    (loss * rank.world_size / rank.all_reduce(tokens) + 0.5 * length).backward()
    rank.average(model)


@case(
    "facebookresearch/fairchem#269",
    "DDPLoss: the mean over a replica's atoms times atoms of it, times R, over the atoms of all",
    "w_i / W, with w_i the atoms of a system",
    "right",
    **SENTENCES,
)
def ddp_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, natoms = token_sum(model, share)
    loss = loss / natoms
    loss = loss * natoms * rank.world_size / rank.all_reduce(natoms)
    loss.backward()
    rank.average(model)


@case(
    "facebookresearch/fairchem#269",
    "before: the mean over the atoms of each replica, averaged over replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **SENTENCES,
)
def mean_over_own_atoms(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "facebookresearch/pytext#453",
    "the average loss that is printed weights batches equally; the update is right",
    "the report counts 1 / (R n_r)",
    named="mean of the replicas' means",
    where="report",
)
def printed_mean_of_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, n = sum_loss(model, share), len(share[0])
    (loss * rank.world_size / rank.all_reduce(n)).backward()
    rank.average(model)
    return rank.all_reduce(loss.detach() / n) / rank.world_size


@case(
    "NVIDIA-BioNeMo/KERMT#21",
    "a loss over valid labels of sparse tasks: each rank's own count, under DDP",
    "w_i / (R W_r), with w_i the valid labels of a molecule",
    named="mean of the replicas' means",
    **SENTENCES,
)
def sparse_labels(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    mask = (labels != PAD).float()
    target = labels.clamp(min=0).remainder(2).float()
    loss = F.binary_cross_entropy_with_logits(model(x)[..., 0], target, reduction="none") * mask
    (loss.sum() / mask.sum()).backward()
    rank.average(model)


@case(
    "horovod/horovod#2298",
    "gradients are added over local batches, and averaged over workers",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    **WINDOWS,
)
def local_sum_global_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()
    rank.average(model)


@case(
    "horovod/horovod#843",
    "allreduce(average=False) of gradients of mean losses",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def allreduce_sum_of_means(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "horovod/horovod#546",
    "sub-batches of one size: loss / batches_per_allreduce, averaged over workers",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def batches_per_allreduce(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch)
        (loss / len(window)).backward()
    rank.average(model)


@case(
    "sanderwood/bgpt#5",
    "the loss is divided by the world size before backward, under a wrapper that adds gradients",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def divided_and_added(rank: Rank, model: nn.Module, share: Any) -> None:
    (mean_loss(model, share) / rank.world_size).backward()
    rank.add(model)


@case(
    "karpathy/build-nanogpt#30",
    "the forward pass ran without require_backward_grad_sync: gradients are not exchanged at all",
    "1 / n_0 for the first rank's examples on its copy: every copy has its own update",
    named="the replicas' parameters differ",
)
def never_synchronised(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()


@case(
    "modelscope/FunASR#3472",
    "the first micro-batch is synchronised, the last one is not: copies differ",
    "1 / (R K n_r0) for all first micro-batches, and 1 / (K n_rk) for the rank's own others",
    named="the replicas' parameters differ",
    replicas=(2, 3), micro_batches=(2,),
)  # fmt: skip
def synchronised_first(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch_idx, batch in enumerate(window):
        (mean_loss(model, batch) / len(window)).backward()
        if batch_idx % len(window) == 0:
            rank.average(model)


@case(
    "deepspeedai/DeepSpeed#7985",
    "the last micro-batch is added to the rank's accumulator after the all-reduce",
    "1 / (R K n_rk) for all but the last, 1 / (K n_0K) for the first rank's last: copies differ",
    named="the replicas' parameters differ",
    replicas=(2, 3), micro_batches=(2,),
)  # fmt: skip
def last_after_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window[:-1]:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)
    (mean_loss(model, window[-1]) / len(window)).backward()


@case(
    "huggingface/accelerate#3533",
    "Accelerate divides by the steps of accumulation, and the Trainer does so again",
    "1 / (R K^2 n_rk)",
    named="mean of the micro-batches' means; and all is divided by the micro-batches",
    **WINDOWS,
)
def divided_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch) / len(window)
        (loss / len(window)).backward()
    rank.average(model)


@case(
    "deepspeedai/DeepSpeed#8245",
    "only the loss through the engine is divided by the steps; the one of the inner module is not",
    "two parts: 1 / (K n_rk) and 1 / n_rk",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the micro-batches' means"
    ),
    **ONE,
)
def half_of_the_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        engine_loss = F.cross_entropy(model(x), y) / len(window)
        inner_loss = 0.3 * model(x.flip(1)).square().mean()
        (engine_loss + inner_loss).backward()


@case(
    "pytorch/examples#1196",
    "clip_grad_norm_ without scaler.unscale_ before it",
    "every update has the norm 1 / 65536",
    "warned",
    equal_shards=True,
)
def mingpt_trainer(rank: Rank, model: nn.Module, share: Any) -> None:
    scale, grad_norm_clip = 2.0**16, 1.0
    (mean_loss(model, share) * scale).backward()
    rank.average(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_norm_clip)
    scale_grads(model, 1 / scale)


@case(
    "huggingface/transformers#1563",
    "clip_grad_norm_ after each backward, not before optimizer.step()",
    "a limit on what is accumulated so far, after each micro-batch, of each rank",
    named="gradients are clipped in every micro-batch",
    **WINDOWS,
)
def clipped_after_each_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.15)
    rank.average(model)


@case(
    "tensorflow/tensorflow#33929",
    "each replica clips its gradient by norm before they are aggregated",
    "min(1, c / |g_r|) / (R n_r) of each replica's gradient",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def clipped_before_aggregation(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    rank.average(model)


@case(
    "rwth-i6/returnn#1595",
    "gradients are clipped by value on each worker, then averaged",
    "the elements of each worker's gradient are limited, then averaged",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def clipped_by_value_locally(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
    rank.average(model)


def sampled(rank: Rank, share: Any, drop_last: bool) -> Any:
    """What a DistributedSampler gives this rank of all examples."""
    whole = [torch.cat(parts) for parts in zip(*rank.exchange(share), strict=True)]
    sampler = DistributedSampler(
        range(len(whole[0])), rank.world_size, rank.rank, shuffle=False, drop_last=drop_last
    )
    return tuple(a[list(sampler)] for a in whole)


@case(
    "pytorch/pytorch#25162",
    "DistributedSampler fills up with the first examples: some count twice",
    "(times drawn) / (R ceil(N / R)): 2 for the first R ceil(N / R) - N examples",
    named="examples are repeated until the shards are equal",
    replicas=(2, 3), max_examples=11,
)  # fmt: skip
def padded_sampler(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, sampled(rank, share, drop_last=False)).backward()
    rank.average(model)


@case(
    "pytorch/pytorch#41171",
    "DistributedSampler(drop_last=True): the tail is never drawn",
    "1 / (R floor(N / R)) for the first ones, 0 for the last N mod R",
    named="the rest of the batch is dropped",
    replicas=(2, 3), max_examples=11,
)  # fmt: skip
def dropped_tail(rank: Rank, model: nn.Module, share: Any) -> None:
    batch = sampled(rank, share, drop_last=True)
    if len(batch[0]) == 0:
        batch = sampled(rank, share, drop_last=False)
    mean_loss(model, batch).backward()
    rank.average(model)


@case(
    "alibaba/TorchEasyRec#65",
    "mean(loss * sample_weight) / mean(sample_weight) of each rank's batch, under DDP",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=weighted, weights=WEIGHTS,
)  # fmt: skip
def weights_of_a_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    (torch.mean(losses * w) / torch.mean(w)).backward()
    rank.average(model)


@case(
    "imoneoi/openchat#99",
    "weighted losses are added, and divided by the weights of all GPUs",
    "w_i / W",
    "right",
    batch=weighted, weights=WEIGHTS,
)  # fmt: skip
def weights_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    loss = (F.cross_entropy(model(x), y, reduction="none") * w).sum()
    all_numseq = rank.all_reduce(w.sum())
    (rank.world_size / all_numseq * loss).backward()
    rank.average(model)


CLASS_WEIGHTS = torch.tensor([0.4, 1.0, 2.5])


@case(
    "pytorch/pytorch#25571",
    "CrossEntropyLoss(weight=...) takes the weighted mean of each rank's examples",
    "w_i / (R W_r), with w_i the weight of an example's class",
    named="mean of the replicas' means",
)
def class_weights(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    F.cross_entropy(model(x), y, weight=CLASS_WEIGHTS).backward()
    rank.average(model)


@case(
    "pytorch/pytorch#65329",
    "weighted losses, reduction='none', over the examples of all ranks",
    "w_i / N",
    "right",
)
def class_weights_over_examples(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    losses = F.cross_entropy(model(x), y, weight=CLASS_WEIGHTS, reduction="none")
    (losses.sum() * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)
