"""Terms beside the main loss, speech, smoothing and decay: what each part is divided by."""

from __future__ import annotations

from torch_ranks import *

WINDOWS = {"micro_batches": (1, 2)}
ONE = {"replicas": (1,), "micro_batches": (1, 2, 3)}


def router_z(model: nn.Module, batch: Any) -> torch.Tensor:
    """The sum over tokens of the router's z-loss."""
    x, labels = batch
    return (torch.logsumexp(model(x), -1).square() * (labels != PAD)).sum()


@case(
    "NVIDIA/Megatron-LM#3672",
    "the auxiliary loss is divided by the tokens of all and averaged over the ranks on top",
    "two parts: w_i / W; w_i / (R W) for the auxiliary loss",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    **SENTENCES,
)
def auxiliary_loss_too_small(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    total = rank.all_reduce(count)
    aux = router_z(model, share) / total
    (loss * rank.world_size / total + 0.5 * aux).backward()
    rank.average(model)


@case(
    "NVIDIA/Megatron-LM#3769",
    "the fix: times dp_size",
    "w_i / W for both",
    "right",
    **SENTENCES,
)
def auxiliary_loss_fixed(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    total = rank.all_reduce(count)
    aux = router_z(model, share) * rank.world_size / total
    (loss * rank.world_size / total + 0.5 * aux).backward()
    rank.average(model)


@case(
    "NVIDIA-NeMo/Automodel#3359",
    "the language loss is over the tokens of the window; each micro-batch adds its mean aux loss",
    "two parts: w_i / W; w_i / (R W_rk), K times too much, for the auxiliary loss",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are not divided"
    ),
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def auxiliary_loss_of_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        loss, count = token_sum(model, batch)
        aux = router_z(model, batch) / count
        (loss * rank.world_size / total + 0.5 * aux).backward()
    rank.average(model)


@case(
    "NVIDIA/Megatron-LM#7513",
    "each shard of a sequence divides by its local count of valid tokens; the mean is over shards",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **SENTENCES,
)
def context_parallel_shards(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, valid = token_sum(model, share)
    (loss / valid.clamp(min=1)).backward()
    rank.average(model)


@case(
    "NVIDIA/Megatron-LM#673",
    "num_microbatches and the tokens of each micro-batch over data parallel ranks with equal text",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def megatron(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        losses = F.cross_entropy(model(x), y, reduction="none").view(-1)
        loss_mask = torch.ones_like(losses)
        (torch.sum(losses * loss_mask) / loss_mask.sum() / len(window)).backward()
    rank.average(model)


@case(
    "NVIDIA/DeepLearningExamples#713",
    "normalised gradients of the steps are added, and never divided by their number",
    "1 / n_rk, K times too much",
    named="micro-batches are not divided",
    **ONE,
)
def bert_accumulation(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()


@case(
    "NVIDIA/DeepLearningExamples#625",
    "param.grad is divided by the accumulation steps before the step, with equal batches",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def grads_divided_by_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    accumulation_steps = len(micros(share))
    for batch in micros(share):
        mean_loss(model, batch).backward()
    for param in model.parameters():
        param.grad.div_(accumulation_steps)
    rank.average(model)


FRAMES = [4, 9, 6, 12, 5, 8, 10, 7, 11, 4, 6, 9]


def speech() -> tuple[np.ndarray, ...]:
    """Frames, their numbers, and two labels for each utterance."""
    rng = np.random.default_rng(42)
    x = rng.normal(size=(12, 12, 6)).astype(np.float32)
    return x, np.array(FRAMES), rng.integers(1, 5, size=(12, 2))


def acoustic() -> nn.Module:
    """Frame classes."""
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))


def ctc(model: nn.Module, share: Any, reduction: str) -> torch.Tensor:
    """CTC over an utterance's frames."""
    x, frames, labels = share
    logp = F.log_softmax(model(x), -1).transpose(0, 1)
    return F.ctc_loss(logp, labels, frames, torch.full((len(x),), 2), reduction=reduction)


SPEECH = {"batch": speech, "model": acoustic}


@case(
    "k2-fsa/icefall#1726",
    "the transducer's loss is a sum over utterances, under DDP",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    **SPEECH,
)
def sum_of_utterances(rank: Rank, model: nn.Module, share: Any) -> None:
    ctc(model, share, "sum").backward()
    rank.average(model)


@case(
    "meijieru/crnn.pytorch#232",
    "CTC's mean is divided by batch_size once more",
    "1 / (R n_r^2)",
    named=(
        "the weights of each replica divides; the weights of each replica divides; all is "
        "divided by the replicas"
    ),
    **SPEECH,
)
def mean_over_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    cost = ctc(model, share, "mean") / len(share[0])
    cost.backward()
    rank.average(model)


@case(
    "modelscope/FunASR#1157",
    "the loss is weighted by the batch and divided by that of all workers; DDP divides, too",
    "1 / (R N)",
    named="divided by the global batch, then averaged",
    **SPEECH,
)
def weighted_by_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    weight = len(share[0])
    loss = ctc(model, share, "sum") / weight * weight / rank.all_reduce(weight)
    loss.backward()
    rank.average(model)


@case(
    "espnet/espnet#2193",
    "the trainer weights losses by the batch, divides by that of all, times the world size",
    "1 / N",
    "right",
    **SPEECH,
)
def espnet_trainer(rank: Rank, model: nn.Module, share: Any) -> None:
    weight = len(share[0])
    loss = ctc(model, share, "sum") / weight * weight
    loss = loss / rank.all_reduce(weight)
    loss *= rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "NVIDIA-NeMo/Speech#68",
    "sums over a sequence, mean over the batch, equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **SPEECH,
)
def mean_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    (ctc(model, share, "none")).mean().backward()
    rank.average(model)


@case(
    "OpenNMT/OpenNMT-py#2209",
    "every micro-batch is over the tokens of the whole accumulated batch of all devices",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def normalization_of_the_global_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    normalization = rank.all_reduce(sum((y != PAD).sum() for _, y in micros(share)))
    for batch in micros(share):
        token_sum(model, batch)[0].div(normalization).backward()
    rank.add(model)


@case(
    "OpenNMT/OpenNMT-py#526",
    "normalised by the longest sentence of a rank's batch times its sentences: padding counts",
    "w_i / (R n_r L_r), with L_r the longest of a rank",
    named="padding counts as tokens",
    **SENTENCES,
)
def padded_length(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    longest = int((labels != PAD).sum(1).max())
    losses = F.cross_entropy(
        model(x[:, :longest]).flatten(0, 1), labels[:, :longest].flatten(), reduction="none"
    )
    losses.mean().backward()
    rank.average(model)


@case(
    "huggingface/transformers#7546",
    "label smoothing: the true part over the tokens of all, the smooth part over a rank's texts",
    "two parts: w_i / W; w_i / (R n_r) for the smooth part",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    **SENTENCES,
)
def smooth_part_of_sentences(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    logp = F.log_softmax(model(x), -1)
    keep = labels != PAD
    nll = -logp.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    tokens = rank.all_reduce(keep.sum()) / rank.world_size
    nll_loss = (nll * keep).sum() / tokens
    smooth_loss = (-logp.mean(-1) * keep).sum() / len(x)
    (0.9 * nll_loss + 0.1 * smooth_loss).backward()
    rank.average(model)


@case(
    "OpenNMT/OpenNMT-py#464",
    "label smoothing, both parts over the tokens of all; cross_entropy's label_smoothing",
    "w_i / W",
    "right",
    **SENTENCES,
)
def label_smoothing(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    loss = F.cross_entropy(
        model(x).flatten(0, 1), labels.flatten(), label_smoothing=0.1, reduction="sum"
    )
    (loss * rank.world_size / rank.all_reduce((labels != PAD).sum())).backward()
    rank.average(model)


@case(
    "keras-team/keras#7178",
    "weight decay is part of the loss of each GPU, and gradients are added over GPUs",
    "two parts: 1 / N; the decay counts R times",
    named="regularisation counts once on every replica",
    batch=targets,
)
def decay_on_each_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    data = F.mse_loss(model(x), y, reduction="sum") / rank.all_reduce(len(x))
    decay = 0.05 * sum(p.square().sum() for p in model.parameters())
    (data + decay).backward()
    rank.add(model)


@case(
    "tensorflow/models#6195",
    "the fix: the decay is divided by the replicas",
    "1 / N; the decay counts once",
    "right",
    batch=targets,
)
def decay_over_replicas(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    data = F.mse_loss(model(x), y, reduction="sum") / rank.all_reduce(len(x))
    decay = 0.05 * sum(p.square().sum() for p in model.parameters())
    (data + decay / rank.world_size).backward()
    rank.add(model)


@case(
    "tensorflow/models#342",
    "the decay is added to each micro-batch's loss, which is divided by K: once in all",
    "1 / (R K n_rk), which is 1 / N for equal shares; the decay counts once",
    "even",
    **WINDOWS,
)
def decay_in_every_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        decay = 0.05 * sum(p.square().sum() for p in model.parameters())
        ((mean_loss(model, batch) + decay) / len(window)).backward()
    rank.average(model)


@case(
    "fredzzhang/atlas#26",
    "before: losses are not normalised by the accumulation steps",
    "1 / n_rk, K times too much",
    named="micro-batches are not divided",
    **ONE, batch=vectors,
)  # fmt: skip
def not_normalised(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        sum_loss(model, batch).div(len(batch[0])).backward()
    scale_grads(model, 1.0)
