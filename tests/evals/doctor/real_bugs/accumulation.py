"""Gradient accumulation: windows of micro-batches, divided too often, not at all, or unevenly."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import (
    EXAMPLES,
    LENGTHS,
    SEQUENCES,
    WINDOW,
    ddp,
    flat,
    mean,
    token_mean,
    token_sum,
    tokens,
    total,
    windows,
)

TOKEN_WINDOW = {**WINDOW, "weights": LENGTHS}
MEANS = "mean of the micro-batches' means"


def rank_loop(step):
    """step(micro-batches of a rank) gives its accumulated gradient; the ranks are averaged."""
    return lambda shares: ddp([step(window) for window in windows(shares)])


def transformers_446(window):
    """Each micro-batch is a token mean, divided by the accumulation steps."""
    gradient = 0.0
    for batch in window:
        gradient = gradient + token_mean(batch) / len(window)
    return gradient


def not_divided(window):
    return sum(mean(batch) for batch in window)


def not_divided_tokens(window):
    accumulated = None
    for batch in window:
        loss = token_mean(batch)
        accumulated = loss if accumulated is None else accumulated + loss
    return accumulated


def by_configured_steps(window):
    """The configured 8 steps divide, also where the last window is shorter."""
    return sum(mean(batch) for batch in window) / 8


def local_window(window):
    """Tokens of the rank's whole window divide; DDP averages the ranks."""
    num_items = sum(map(tokens, window))
    return sum(token_sum(batch) / num_items for batch in window)


def local_window_divided_again(window):
    num_items = sum(map(tokens, window))
    return sum(token_sum(batch) / num_items / len(window) for batch in window)


def global_window_divided_again(shares):
    """num_items over ranks and window, times world size, and accelerate divides by the steps."""
    ranks = windows(shares)
    num_items = sum(map(tokens, flat(ranks)))
    return ddp(
        [
            sum(token_sum(b) / num_items * len(ranks) for b in window) / len(window)
            for window in ranks
        ]
    )


def global_window_without_both(shares):
    """num_items over ranks and window, divided by the steps, averaged over the ranks."""
    ranks = windows(shares)
    num_items = sum(map(tokens, flat(ranks)))
    return ddp([sum(token_sum(b) / num_items for b in w) / len(w) for w in ranks])


def global_window_times_steps(shares):
    """num_items over all; the loss is multiplied by the steps that nobody divides by."""
    ranks = windows(shares)
    num_items = sum(map(tokens, flat(ranks)))
    steps = len(ranks[0])
    return ddp([sum(steps * len(ranks) * token_sum(b) / num_items for b in w) for w in ranks])


def deepspeed_twice(window):
    """The loop divides by the steps, and the engine does so again."""
    scaled = [mean(batch) / len(window) for batch in window]
    return sum(scaled) / len(window)


def lightning_and_user(window):
    steps = len(window)
    gradient = np.zeros(40)
    for batch in window:
        loss_scale = 1 / steps
        gradient += mean(batch) * loss_scale / steps
    return gradient


def zero_grad_in_loop(window):
    gradient = None
    for batch in window:
        gradient = np.zeros(40)  # reset in each iteration
        gradient += mean(batch)
    return gradient


def zero_grad_in_loop_scaled(window):
    gradient = None
    for batch in window:
        gradient = mean(batch) / len(window)
    return gradient


def fsdp2_zero_stage2(shares):
    """Every backward is a boundary that resets what was accumulated; tokens of all divide."""
    ranks = windows(shares)
    num_tokens = sum(map(tokens, flat(ranks)))
    return sum(token_sum(window[-1]) / num_tokens for window in ranks)


def world_size_instead_of_steps(shares):
    """The list of losses is divided by the world size, and the ranks are averaged."""
    ranks = windows(shares)
    return ddp([sum(mean(b) for b in window) / len(ranks) for window in ranks])


def micro_count_then_steps(shares):
    """Each micro-step is normalised over all ranks; micro-steps count alike."""
    ranks = windows(shares)
    steps = len(ranks[0])
    gradient = 0.0
    for k in range(steps):
        count = sum(tokens(window[k]) for window in ranks)
        gradient = gradient + sum(token_sum(window[k]) for window in ranks) / count / steps
    return gradient


def sum_reduced_every_step(shares):
    """Accumulated gradients are all-reduced in each micro-step, not once."""
    ranks = windows(shares)
    rows = sum(len(b[0]) for b in flat(ranks))
    accumulated = [np.zeros(40) for _ in ranks]
    for k in range(len(ranks[0])):
        local = [g + total(w[k]) / rows for g, w in zip(accumulated, ranks, strict=True)]
        accumulated = [sum(local)] * len(ranks)
    return accumulated[0]


def last_count(window):
    """The window's sum is divided by the valid tokens of its last micro-batch."""
    gradient = sum(token_sum(batch) for batch in window)
    return gradient / tokens(window[-1])


def horovod_backward_passes(shares):
    """Local passes are summed, ranks averaged."""
    return rank_loop(not_divided)(shares)


def seq_mean_micro(window):
    return sum(mean(batch) for batch in window) / len(window)


def sums_of_micro_batches_over_ranks(shares):
    """tf: each micro-batch is a mean, accumulated and averaged; replicas are summed."""
    return sum(seq_mean_micro(window) for window in windows(shares))


CASES = [
    bug(
        "huggingface/transformers#34191", "token means of micro-batches are averaged", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "huggingface/trl#2175", "accumulation is worse than the same batch size", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=WINDOW,
    ),
    bug(
        "karpathy/nanochat#59", "grad_accum_steps divides means of unequal tokens", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "ml-explore/mlx-lm#1413", "per-micro-batch token means over a fixed count of steps",
        MEANS, rank_loop(seq_mean_micro), EXAMPLES, options=WINDOW,
    ),
    bug(
        "meta-pytorch/torchtune#1875", "x1 / n1 + x2 / n2 is not (x1 + x2) / (n1 + n2)", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "allenai/open-instruct#1161", "each minibatch divides by its own valid tokens", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "modelscope/twinkle#292", "micro-batches of PPO are weighted by samples", MEANS,
        rank_loop(transformers_446), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "openai/guided-diffusion#111", "gradients of micro-batches are not divided",
        "micro-batches are not divided", rank_loop(not_divided), EXAMPLES, options=WINDOW,
    ),
    bug(
        "karpathy/nanoGPT#207", "the loss is not divided by gradient_accumulation_steps",
        "micro-batches are not divided", rank_loop(not_divided), EXAMPLES, options=WINDOW,
    ),
    bug(
        "mindspore-lab/mindone#231", "accumulated_grad + grads without / accum_steps",
        "micro-batches are not divided", rank_loop(not_divided_tokens), SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "agokrani/distillKitPlus#5", "the loss grows with the accumulation steps",
        "micro-batches are not divided", rank_loop(not_divided), EXAMPLES, options=WINDOW,
    ),
    bug(
        "Lightning-AI/pytorch-lightning#19987", "the last window divides by the configured steps",
        "micro-batches are not divided", rank_loop(by_configured_steps), EXAMPLES, options=WINDOW,
    ),
    bug(
        "modelscope/ms-swift#10084", "a partial window divides by the configured window",
        "micro-batches are not divided", rank_loop(by_configured_steps), EXAMPLES, options=WINDOW,
    ),
    bug(
        "horovod/horovod#2298", "local passes are summed, ranks are averaged",
        "micro-batches are not divided", horovod_backward_passes, EXAMPLES, options=WINDOW,
    ),
    bug(
        "huggingface/transformers#34579", "the window's tokens of one device divide",
        "mean of the replicas' means", rank_loop(local_window), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "huggingface/accelerate#3533", "divided by the steps in backward, once more",
        "micro-batches are divided twice", global_window_divided_again, SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "huggingface/transformers#35808", "window counts on each rank, then / steps",
        "mean of the replicas' means; and all is divided by the micro-batches",
        rank_loop(local_window_divided_again), SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "modelscope/ms-swift#10165", "num_items over all, / steps, and averaged over the ranks",
        "divided by the global batch, then averaged; and micro-batches are divided twice",
        global_window_without_both, SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "areal-project/AReaL#1273", "the pipeline's / num_microbatches on a normalised loss",
        "micro-batches are divided twice", global_window_divided_again, SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "modelscope/ms-swift#10116", "a window-normalised loss is scaled by the steps",
        "multiplied by the micro-batches", global_window_times_steps, SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "huggingface/accelerate#1767", "loop and engine divide by the steps",
        "mean of the micro-batches' means; and all is divided by the micro-batches",
        rank_loop(deepspeed_twice), EXAMPLES, options=WINDOW,
    ),
    bug(
        "deepspeedai/DeepSpeed#7439", "the user divides as the engine does",
        "mean of the micro-batches' means; and all is divided by the micro-batches",
        rank_loop(lightning_and_user), EXAMPLES, options=WINDOW,
    ),
    bug(
        "pytorch/torchtitan#3575", "zero_grad in forward_backward",
        "only the last micro-batch is kept", rank_loop(zero_grad_in_loop), EXAMPLES,
        options=WINDOW,
    ),
    bug(
        "bytetriper/RAE#67", "zero_grad per micro-batch, of a loss divided by the steps",
        "only the last micro-batch is kept", rank_loop(zero_grad_in_loop_scaled), EXAMPLES,
        options=WINDOW,
    ),
    bug(
        "allenai/open-instruct#1498", "ZeRO-2 keeps the last micro-batch's gradient",
        "the other micro-batches are lost", fsdp2_zero_stage2, SEQUENCES, options=TOKEN_WINDOW,
    ),
    bug(
        "EleutherAI/gpt-neox#404", "the world size divides instead of the accumulation steps",
        "micro-batches are not divided; and all is divided by the replicas",
        world_size_instead_of_steps, EXAMPLES, options=WINDOW,
    ),
    bug(
        "pytorch/torchtitan#2206", "accumulated losses are rescaled by the steps, not by tokens",
        "mean of the micro-batches' global means", micro_count_then_steps, SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "tenstorrent/tt-metal#17568", "gradients are synchronised in every micro-step",
        "gradients are reduced again in every micro-batch", sum_reduced_every_step, EXAMPLES,
        options=WINDOW,
    ),
    bug(
        "invergent-ai/surogate#74", "the valid tokens of the last micro-batch are the divisor",
        "divided by the count of the last micro-batch", rank_loop(last_count), SEQUENCES,
        options=TOKEN_WINDOW,
    ),
    bug(
        "horovod/horovod#2298 (op=Sum)", "averaged micro-batches, and ranks that are added",
        "means of micro-batches are added over replicas", sums_of_micro_batches_over_ranks,
        EXAMPLES, options=WINDOW,
    ),
]  # fmt: skip
