"""Language models and other losses that are divided by counts of ranks."""

from __future__ import annotations

from torch_ranks import *


def with_teacher() -> tuple[np.ndarray, ...]:
    """Tokens, labels, and the teacher's logits."""
    rng = np.random.default_rng(71)
    return *text(), rng.normal(size=(16, 7, 4)).astype(np.float32)


def sequence_losses(model: nn.Module, batch: Any) -> torch.Tensor:
    """The mean over the tokens of each sequence."""
    x, labels = batch
    losses = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    return losses.sum(1) / (labels != PAD).sum(1)


def divergence(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """KL(teacher, student) of tokens, and which of them count."""
    x, labels, teacher = batch
    student = F.log_softmax(model(x), -1)
    losses = F.kl_div(student, teacher.softmax(-1), reduction="none").sum(-1)
    return losses, (labels != PAD).float()


@case(
    "vllm-project/speculators#942",
    "the masked loss over the supervised tokens of this rank, gradients are averaged over ranks",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def supervised_tokens_of_a_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "PrimeIntellect-ai/prime-rl#1960",
    "first fix: the count is all-reduced for each micro-step, and steps are averaged",
    "w_i / (K W_.k), W_.k of all ranks' micro-batches k",
    named="mean of the micro-batches' global means",
    **WORDS, **WINDOWS,
)  # fmt: skip
def count_of_each_micro_step(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        local_sum, count = token_sum(model, batch)
        loss = local_sum * rank.world_size / rank.all_reduce(count)
        (loss / len(window)).backward()
    rank.average(model)


@case(
    "PrimeIntellect-ai/prime-rl#1957",
    "the count of all ranks and accumulation steps",
    "w_i / W",
    "right",
    **WORDS, **WINDOWS,
)  # fmt: skip
def global_token_count(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    count = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        (token_sum(model, batch)[0] * rank.world_size / count).backward()
    rank.average(model)


@case(
    "radixark/miles#3231",
    "token sums are back-propagated, the normaliser is dropped, and FSDP averages",
    "w_i / R instead of w_i",
    named="divided by the global batch, then averaged",
    **WORDS,
)
def normaliser_is_dropped(rank: Rank, model: nn.Module, share: Any) -> None:
    token_sum(model, share)[0].backward()
    rank.average(model)


@case(
    "nvidia-cosmos/cosmos-rl#343",
    "the token mean of a rank times the number of ranks, to undo the average",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    **WORDS,
)
def times_the_ranks(rank: Rank, model: nn.Module, share: Any) -> None:
    (token_mean(model, share) * rank.world_size).backward()
    rank.average(model)


@case(
    "THUDM/slime#987",
    "the sum over the tokens of all ranks, without the data-parallel size that the mean needs",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **WORDS,
)
def per_token_without_dp_size(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    (loss / rank.all_reduce(count)).backward()
    rank.average(model)


@case(
    "NVIDIA-NeMo/RL#3656",
    "token_level_loss: false, means of sequences over the sequences of the global batch",
    "1 / N of the sequences' means",
    "right",
    batch=text, model=tagger, **WINDOWS,
)  # fmt: skip
def sequence_level(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    sequences = rank.all_reduce(sum(len(x) for x, _ in window))
    for batch in window:
        (sequence_losses(model, batch).sum() / sequences).backward()
    rank.add(model)


@case(
    "NVIDIA-NeMo/RL#3656",
    "token_level_loss: true, over the tokens of the global batch",
    "w_i / W",
    "right",
    **WORDS, **WINDOWS,
)  # fmt: skip
def token_level(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    tokens = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        (token_sum(model, batch)[0] / tokens).backward()
    rank.add(model)


@case(
    "NovaSky-AI/SkyRL#817",
    "microbatch_weight = 1 / accumulation_steps for micro-batches of different sizes",
    "1 / (K n_k) of the sequences' means",
    named="mean of the micro-batches' means",
    batch=text, model=tagger, micro_batches=(1, 2), replicas=(1,),
)  # fmt: skip
def microbatch_weight(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (sequence_losses(model, batch).mean() / len(window)).backward()


@case(
    "mlcommons/training#498",
    "the request: the loss of each sequence, then the mean over sequences of equal shares",
    "1 / (R n_r) of the sequences' means, which is 1 / N for equal shares",
    "even",
    batch=text, model=tagger,
)  # fmt: skip
def loss_per_sequence(rank: Rank, model: nn.Module, share: Any) -> None:
    sequence_losses(model, share).mean().backward()
    rank.average(model)


@case(
    "modelscope/easydistill#16",
    "the divergence is divided by this rank's tokens twice",
    "w_i / (R W_r^2)",
    named=(
        "the weights of each replica divides; the weights of each replica divides; all is "
        "divided by the replicas"
    ),
    batch=with_teacher, model=tagger, weights=LENGTHS,
)  # fmt: skip
def divided_by_tokens_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = divergence(model, share)
    losses = losses / mask.sum()
    ((losses * mask).sum() / mask.sum()).backward()
    rank.average(model)


@case(
    "peremartra/optipfair#34",
    "padding is not masked: the mean over all positions, which all examples have as many of",
    "1 / (R n_r) for the sum over an example's positions, which is 1 / N for equal shares",
    "even",
    batch=with_teacher, model=tagger,
)  # fmt: skip
def padding_counts(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = divergence(model, share)
    losses.mean().backward()
    rank.average(model)


@case(
    "EleutherAI/bergson#344",
    "a sum over the whole batch is divided by the length of one row, and ranks are averaged",
    "1 / (R (T - 1)) with a constant T: R times too small",
    named="divided by the global batch, then averaged",
    batch=text, model=tagger,
)  # fmt: skip
def divided_by_a_row(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, _ = token_sum(model, share)
    (loss / (share[1].shape[1] - 1)).backward()
    rank.average(model)


@case(
    "facebookresearch/deit#116",
    "the sum of the divergence over outputs_kd.numel()",
    "1 / (R n_r) over the classes, which is 1 / N for equal shares",
    "even",
    batch=with_teacher, model=tagger,
)  # fmt: skip
def divided_by_numel(rank: Rank, model: nn.Module, share: Any) -> None:
    x, _, teacher = share
    outputs = model(x)
    log_p, log_q = outputs.log_softmax(-1), teacher.log_softmax(-1)
    loss = F.kl_div(log_p, log_q, reduction="sum", log_target=True)
    (loss / outputs.numel()).backward()
    rank.average(model)


@case(
    "facebookresearch/deit#116",
    "hard and soft loss: labels are averaged over the tokens of all, the teacher over this rank's",
    "two parts: w_i / W for labels; w_i / (R W_r) for the teacher",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    batch=with_teacher, model=tagger, weights=LENGTHS,
)  # fmt: skip
def teacher_has_a_local_count(rank: Rank, model: nn.Module, share: Any) -> None:
    hard, count = token_sum(model, share[:2])
    losses, mask = divergence(model, share)
    hard = hard / rank.all_reduce(count) * rank.world_size
    (0.5 * hard + 0.5 * (losses * mask).sum() / mask.sum()).backward()
    rank.average(model)


@case(
    "twitter-archive/torch-distlearn#7",
    "sumAndNormalizeGradients over nodes that normalise by their batches, in full steps",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def sum_and_normalize(rank: Rank, model: nn.Module, share: Any) -> None:
    sum_loss(model, share).backward()
    scale_grads(model, 1 / len(share[0]))
    rank.add(model)
    scale_grads(model, 1 / rank.world_size)


@case(
    "allenai/allenact#304",
    "the loss of a worker counts bsize / aggregate_bsize, gradients are summed; so is the report",
    "1 / N in both",
    "right",
)
def aggregate_bsize(rank: Rank, model: nn.Module, share: Any) -> Any:
    bsize = len(share[0])
    ratio = bsize / rank.all_reduce(bsize)
    loss = mean_loss(model, share)
    (loss * ratio).backward()
    rank.add(model)
    return rank.all_reduce(loss * ratio)


@case(
    "srush/LLM-Training-Puzzles#9",
    "gradients of mean losses are added by the collective, and not divided",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def allreduce_without_division(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "tensorpack/tensorpack#1419",
    "DataParallel adds the towers' gradients, where losses are means of uneven towers",
    "1 / n_r, R times too much for equal shares",
    named="mean per replica, then sum",
)
def towers_are_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "Denys88/rl_games#191",
    "all gradients in one vector, added over ranks and divided by their number",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def one_vector_of_gradients(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    params = list(model.parameters())
    flat = rank.all_reduce(torch.cat([p.grad.view(-1) for p in params])) / rank.world_size
    start = 0
    for p in params:
        p.grad = flat[start : start + p.numel()].view_as(p).clone()
        start += p.numel()


@case(
    "laekov/fastmoe#106",
    "expert weights get the gradients of all ranks' tokens added, others are averaged",
    "first layer 1 / n_r, R times too much; others 1 / (R n_r)",
    named="a part of the parameters: mean per replica, then sum",
    equal_shards=True,
)
def experts_are_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    for p in list(model.parameters())[:2]:
        p.grad *= rank.world_size


@case(
    "PaddlePaddle/Paddle#12316",
    "gradients are scaled by 1 / n on each of n cards, and added",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def scaled_then_added(rank: Rank, model: nn.Module, share: Any) -> None:
    (mean_loss(model, share) / rank.world_size).backward()
    rank.add(model)


@case(
    "sb-ai-lab/RePlay#91",
    "the expected behaviour under DDP: sum of weighted losses over this rank's sum of weights",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=weighted, weights=weighted()[2].tolist(),
)  # fmt: skip
def normalised_sample_weights(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() / w.sum()).backward()
    rank.average(model)


@case(
    "allenai/allennlp-models#258",
    "losses are weighted and divided by the number of instances, of equal shares",
    "w_i / (R n_r), which is w_i / N for equal shares",
    "even",
    batch=weighted, weights=weighted()[2].tolist(),
)  # fmt: skip
def weights_over_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() / len(x)).backward()
    rank.average(model)


@case(
    "deepmodeling/deepmd-kit#1104",
    "the optimizer of the workers is not wrapped: gradients are never averaged",
    "1 / n_0 on the first worker's copy for its own examples; every copy has its own update",
    named="the replicas' parameters differ",
)
def gradients_not_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()


@case(
    "kvablack/ddpo-pytorch#10",
    "after the fix: gradients of equal shares are synchronised after accumulation",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def synchronised_after_accumulation(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        mean_loss(model, batch).backward()
    scale_grads(model, 1 / len(window))
    rank.average(model)
