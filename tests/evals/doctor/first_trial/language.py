"""Language models: means over tokens, windows of accumulation, and counts of devices."""

from __future__ import annotations

from torch_ranks import *

from .language_loops import pair_losses

ONE = {"replicas": (1,), "micro_batches": (1, 2, 3)}
WINDOWS = {"micro_batches": (1, 2)}


@case(
    "huggingface/transformers#24725",
    "accumulation on one device: each micro-batch's mean over its tokens, divided by K",
    "w_i / (K W_rk)",
    named="mean of the micro-batches' means",
    **SENTENCES, **ONE, weights=LENGTHS,
)  # fmt: skip
def mean_of_micro_batch_means(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (token_mean(model, batch) / len(window)).backward()


@case(
    "huggingface/transformers#34191",
    "the sum over num_items_in_batch of the whole window and all devices, times the processes",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def num_items_in_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    items = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        loss = token_sum(model, batch)[0] / items
        (loss * rank.world_size).backward()
    rank.average(model)


@case(
    "huggingface/transformers#34242",
    "num_items_in_batch counts this device's window only; DDP takes the mean",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def items_of_this_device(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    items = sum((labels != PAD).sum() for _, labels in window)
    for batch in window:
        (token_sum(model, batch)[0] / items).backward()
    rank.average(model)


@case(
    "huggingface/transformers#37474",
    "the loss is divided by the tokens of all devices, and the mean over devices is taken on top",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **SENTENCES,
)  # fmt: skip
def mean_over_devices_of_parts(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    loss = loss / rank.all_reduce(count)
    loss.backward()
    rank.average(model)


@case(
    "huggingface/transformers#35210",
    "the sum over the tokens of the window is divided by the steps of accumulation, too",
    "w_i / (K W)",
    named="micro-batches are divided twice",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def items_and_accumulation_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    items = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        loss = token_sum(model, batch)[0] * rank.world_size / items
        (loss / len(window)).backward()
    rank.average(model)


@case(
    "huggingface/trl#3021",
    "bnpo: the mean over the completion tokens of each micro-batch, over K, and DDP's mean",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def bnpo(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, actions in window:
        logp = -F.cross_entropy(
            model(x).flatten(0, 1), actions.flatten(), ignore_index=PAD, reduction="none"
        )
        mask = (actions.flatten() != PAD).float()
        loss = -(logp * mask).sum() / mask.sum().clamp(min=1.0)
        (loss / len(window)).backward()
    rank.average(model)


def sequence_means(model: nn.Module, batch: Any) -> torch.Tensor:
    """GRPO: the mean over the tokens of each completion."""
    x, labels = batch
    losses = F.cross_entropy(
        model(x).flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction="none"
    ).view(labels.shape)
    mask = (labels != PAD).float()
    return (losses * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)


@case(
    "huggingface/trl#3256",
    "grpo: the mean over sequences of the means over their tokens; all shares have one size",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def grpo(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (sequence_means(model, batch).mean() / len(window)).backward()
    rank.average(model)


@case(
    "huggingface/trl#3231",
    "dr. grpo: the sum over a constant: the batch of all devices times the longest completion",
    "w_i / (N T), with T a constant",
    "right",
    **SENTENCES,
)  # fmt: skip
def dr_grpo(rank: Rank, model: nn.Module, share: Any) -> None:
    longest = 7
    batch_size = rank.all_reduce(len(share[0]))
    loss = token_sum(model, share)[0] / (batch_size * longest)
    (loss * rank.world_size).backward()
    rank.average(model)


@case(
    "huggingface/trl#3938",
    "dapo: the sum over the tokens of all devices and micro-batches, over the processes' mean",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def dapo(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    count = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    normalizer = count / rank.world_size
    for batch in window:
        (token_sum(model, batch)[0] / normalizer).backward()
    rank.average(model)


@case(
    "modelscope/ms-swift#10117",
    "dapo: already over the tokens of the window; the Trainer divides by the steps once more",
    "w_i / (K W)",
    named="micro-batches are divided twice",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def dapo_divided_again(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    count = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        loss = token_sum(model, batch)[0] / (count / rank.world_size)
        loss = loss / len(window)
        loss.backward()
    rank.average(model)


@case(
    "modelscope/ms-swift#10084",
    "a window with fewer micro-batches is divided by the configured 4: too small by this factor",
    "w_i / (4 W_rk): for one token mean per micro-batch, added without dividing by K",
    named="micro-batches are not divided",
    **SENTENCES, **ONE,
)  # fmt: skip
def configured_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    gradient_accumulation_steps = 4
    for batch in micros(share):
        (token_mean(model, batch) / gradient_accumulation_steps).backward()


@case(
    "modelscope/ms-swift#10144",
    "packed DPO: micro-batches have different numbers of pairs, each takes its mean, over K",
    "1 / (R K n_rk)",
    named="mean of the micro-batches' means",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def packed_pairs(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (pair_losses(model, batch).mean() / len(window)).backward()
    rank.average(model)


@case(
    "modelscope/ms-swift#10144",
    "the fix: the sum of the pairs over the window's pairs, averaged across ranks",
    "1 / N",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def packed_pairs_fixed(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    pairs = rank.all_reduce(sum(len(x) for x, _ in window)) / rank.world_size
    for batch in window:
        (pair_losses(model, batch).sum() / pairs).backward()
    rank.average(model)


@case(
    "meta-pytorch/torchtune#1875",
    "the fix on one device: token means times their tokens are kept, and divided by all at the end",
    "w_i / W",
    "right",
    **SENTENCES, **ONE, weights=LENGTHS,
)  # fmt: skip
def running_tokens(rank: Rank, model: nn.Module, share: Any) -> None:
    running_loss, num_tokens = torch.zeros(()), 0
    for batch in micros(share):
        tokens = (batch[1] != PAD).sum()
        num_tokens += tokens
        running_loss = running_loss + token_mean(model, batch) * tokens
    (running_loss / num_tokens).backward()


@case(
    "meta-pytorch/torchtune#1875",
    "its distributed recipe: gradients are scaled by 1 / (tokens of all ranks), after DDP's mean",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def scale_grads_without_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    num_tokens = 0
    for batch in micros(share):
        tokens = (batch[1] != PAD).sum()
        num_tokens += tokens
        (token_mean(model, batch) * tokens).backward()
    rank.average(model)
    scale_grads(model, 1 / rank.all_reduce(num_tokens))


@case(
    "karpathy/nanochat#59",
    "chat_sft: the token mean of each micro-batch over grad_accum_steps, averaged over ranks",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def chat_sft(rank: Rank, model: nn.Module, share: Any) -> None:
    grad_accum_steps = len(micros(share))
    for train_inputs in micros(share):
        loss = token_mean(model, train_inputs)
        loss = loss / grad_accum_steps
        loss.backward()
    rank.average(model)


@case(
    "karpathy/nanochat#59",
    "the fix: sums of tokens, gradients added over ranks and divided by the tokens of all",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def chat_sft_fixed(rank: Rank, model: nn.Module, share: Any) -> None:
    num_tokens = 0
    for batch in micros(share):
        loss, count = token_sum(model, batch)
        num_tokens += count
        loss.backward()
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(num_tokens))


@case(
    "karpathy/nanochat#403",
    "the printed loss adds the ranks' token means instead of averaging them; the update is right",
    "the report counts an example w_i / W_r, R times too much",
    named="mean per replica, then sum",
    where="report",
    **SENTENCES,
)  # fmt: skip
def printed_sum(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, count = token_sum(model, share)
    (loss * rank.world_size / rank.all_reduce(count)).backward()
    rank.average(model)
    return rank.all_reduce(loss.detach() / count)


@case(
    "karpathy/nanoGPT#605",
    "the proposal there: loss / (micro_step + 1): the first micro-batch counts 1, the second 1/2",
    "1 / (n_rk (k + 1)) for micro-batch k = 0, 1, 2",
    named=(
        "micro-batch k is divided by k + 1; the weights of each micro-batch of each replica divides"
    ),
    **ONE,
)
def divided_by_micro_step(rank: Rank, model: nn.Module, share: Any) -> None:
    for micro_step, (x, y) in enumerate(micros(share)):
        loss = F.cross_entropy(model(x), y)
        (loss / (micro_step + 1)).backward()


@case(
    "karpathy/nanoGPT#605",
    "train.py as it is: loss / gradient_accumulation_steps, with batches of one size",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def nano_gpt(rank: Rank, model: nn.Module, share: Any) -> None:
    gradient_accumulation_steps = len(micros(share))
    for x, y in micros(share):
        loss = F.cross_entropy(model(x), y)
        (loss / gradient_accumulation_steps).backward()
    rank.average(model)


@case(
    "ml-explore/mlx-lm#1413",
    "a step of one process: per-micro-batch token means are added and divided by K",
    "w_i / (K W_rk)",
    named="mean of the micro-batches' means",
    **SENTENCES, **ONE,
)  # fmt: skip
def mlx_step(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        token_mean(model, batch).backward()
    scale_grads(model, 1 / len(window))


@case(
    "ml-explore/mlx-lm#1544",
    "the fix: a running mean of gradients weighted by tokens, reduced by each rank's tokens",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS, weights=LENGTHS,
)  # fmt: skip
def mlx_running_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    seen, kept = 0, [torch.zeros_like(p) for p in model.parameters()]
    for batch in micros(share):
        model.zero_grad()
        loss, tokens = token_sum(model, batch)
        (loss / tokens).backward()
        seen += tokens
        for mean, p in zip(kept, model.parameters(), strict=True):
            mean += (p.grad - mean) * (tokens / seen)
    for mean, p in zip(kept, model.parameters(), strict=True):
        p.grad = rank.all_reduce(mean * seen) / rank.all_reduce(seen)


@case(
    "allenai/open-instruct#1161",
    "the fix: masked sums over the tokens of the whole window, times the world size",
    "w_i / W",
    "right",
    **SENTENCES, **WINDOWS,
)  # fmt: skip
def grpo_fast(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    loss_denominator = float(rank.all_reduce(sum((y != PAD).sum() for _, y in window)))
    for batch in window:
        loss = token_sum(model, batch)[0] / loss_denominator
        loss *= rank.world_size
        loss.backward()
    rank.average(model)


@case(
    "allenai/open-instruct#1498",
    "every backward is taken for the last: the accumulator is reset, one micro-batch survives",
    "1 / n_rK for the last micro-batch, 0 for the others",
    named="only the last micro-batch is kept",
    **ONE,
)
def only_the_last(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    averaged = None
    for x, y in window:
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        averaged = [p.grad.clone() for p in model.parameters()]
    for p, grad in zip(model.parameters(), averaged, strict=True):
        p.grad = grad
