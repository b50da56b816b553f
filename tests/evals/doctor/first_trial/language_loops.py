"""More language models: counts of groups, logged losses, and loops of accumulation."""

from __future__ import annotations

from torch_ranks import *

ONE = {"replicas": (1,), "micro_batches": (1, 2, 3)}
WINDOWS = {"micro_batches": (1, 2)}


def pair_losses(model: nn.Module, batch: Any) -> torch.Tensor:
    """DPO's loss of pairs of a chosen and a rejected token sequence."""
    x, labels = batch
    logp = F.log_softmax(model(x), -1)
    keep = (labels != PAD).unsqueeze(-1)
    chosen = (logp[..., :1] * keep).sum((1, 2))
    rejected = (logp[..., 1:2] * keep).sum((1, 2))
    return -F.logsigmoid(0.1 * (chosen - rejected))


@case(
    "verl-project/verl#3741",
    "seq-mean-token-sum-norm: the sum over a micro-batch's rows, times its share n_rk / n_r",
    "w_i n_rk / n_r",
    named=(
        "the sum of each micro-batch is weighted by n_rk/n_r, its part of the replica's "
        "examples, as if it were a mean"
    ),
    **SENTENCES, **ONE,
)  # fmt: skip
def scaled_by_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    rows = sum(len(x) for x, _ in window)
    for batch in window:
        policy_loss = token_sum(model, batch)[0] / batch[1].shape[-1]
        loss_scale_factor = len(batch[0]) / rows
        (policy_loss * loss_scale_factor).backward()


@case(
    "verl-project/verl#6049",
    "the tokens are counted in groups of two ranks, not over all; with four ranks there are two",
    "w_i / (2 W_node) for nodes of two ranks: the mean of the nodes' means",
    named="the weights of each node of two replicas divides; their number divides",
    **SENTENCES, replicas=(4,), weights=LENGTHS,
)  # fmt: skip
def tokens_of_a_group(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    counts = rank.exchange(count)
    group = counts[rank.rank // 2 * 2 : rank.rank // 2 * 2 + 2]
    (loss / sum(group) * len(group)).backward()
    rank.average(model)


@case(
    "verl-project/verl#5993",
    "token-mean: the tokens of all ranks, and dp_size to undo the mean of FSDP",
    "w_i / W",
    "right",
    **SENTENCES,
)  # fmt: skip
def verl_token_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    batch_num_tokens, dp_size = rank.all_reduce(count), rank.world_size
    (loss / batch_num_tokens * dp_size).backward()
    rank.average(model)


@case(
    "ruimalheiro/gradient-garden#113",
    "sums are accumulated; gradients are scaled by ranks / valid tokens at the end",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def gradient_garden(rank: Rank, model: nn.Module, share: Any) -> None:
    n_valid_tokens = torch.zeros(())
    for batch in micros(share):
        loss, count = token_sum(model, batch)
        n_valid_tokens += count
        loss.backward()
    rank.average(model)
    scale_grads(model, rank.world_size / rank.all_reduce(n_valid_tokens))
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e3)


@case(
    "snowflakedb/ArcticTraining#62",
    "the logged loss is that of rank 0; the update is right",
    "the report counts w_i / W_0 for examples of the first rank, 0 for others",
    named="the replicas are not reduced",
    where="report",
    **SENTENCES,
)  # fmt: skip
def logged_by_rank_0(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, count = token_sum(model, share)
    (loss * rank.world_size / rank.all_reduce(count)).backward()
    rank.average(model)
    return loss.detach() / count


@case(
    "deepseek-ai/DeepSpec#34",
    "the backward loss has global denominators; the metric is the mean of the ranks' means",
    "the report counts w_i / (R W_r)",
    named="mean of the replicas' means",
    where="report",
    **SENTENCES,
)  # fmt: skip
def rank_weighted_metric(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, count = token_sum(model, share)
    (loss * rank.world_size / rank.all_reduce(count)).backward()
    rank.average(model)
    return rank.all_reduce(loss.detach() / count) / rank.world_size


@case(
    "deepseek-ai/DeepSpec#34",
    "the fix: the globally scaled backward loss is averaged for the metric",
    "w_i / W",
    "right",
    **SENTENCES,
)  # fmt: skip
def global_metric(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, count = token_sum(model, share)
    backward_loss = loss * rank.world_size / rank.all_reduce(count)
    backward_loss.backward()
    rank.average(model)
    return rank.all_reduce(backward_loss.detach()) / rank.world_size


@case(
    "fw-ai/cookbook#200",
    "raw sums, normalised by the number of sequences of all ranks and micro-batches",
    "1 / N",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def num_sequences(rank: Rank, model: nn.Module, share: Any) -> None:
    sequences = 0
    for batch in micros(share):
        pair_losses(model, batch).sum().backward()
        sequences += len(batch[0])
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(sequences))


@case(
    "openai/guided-diffusion#111",
    "forward_backward does not divide by the number of micro-batches: their means are added",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    **WINDOWS,
)
def micro_batches_added(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        F.cross_entropy(model(x), y).backward()
    rank.average(model)


@case(
    "bytetriper/RAE#67",
    "zero_grad is called for every micro-batch: the last one is left, over grad_accum_steps",
    "1 / (R K n_rK) for the last micro-batch, 0 for the others",
    named="only the last micro-batch is kept, and divided by their number",
    **WINDOWS,
)
def zero_grad_in_the_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    grad_accum_steps = len(micros(share))
    for x, y in micros(share):
        model.zero_grad(set_to_none=True)
        (F.cross_entropy(model(x), y) / grad_accum_steps).backward()
    rank.average(model)


@case(
    "lucidrains/denoising-diffusion-pytorch#251",
    "the proposal there: total_loss.backward() in the loop: earlier micro-batches count again",
    "(K - k) / (K n_rk) for micro-batch k = 0, ..., K - 1",
    named=(
        "micro-batch k counts K - k times, as in a running sum of losses that each micro-batch "
        "differentiates; the weights of each micro-batch of each replica divides; all is "
        "divided by the micro-batches"
    ),
    **ONE,
)
def total_loss_in_the_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total_loss = torch.zeros(())
    for x, y in window:
        total_loss = total_loss + F.cross_entropy(model(x), y) / len(window)
        total_loss.backward(retain_graph=True)


@case(
    "Shark-NLP/DiffuSeq#49",
    "backward for every micro-batch of the step's own, of sums over the rows of the batch",
    "1 / N",
    "right",
)
def own_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    for start in range(0, len(x), 2):
        loss = sum_loss(model, (x[start : start + 2], y[start : start + 2]))
        loss.backward()
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(len(x)))
