"""Loops that accumulate gradients over micro-batches."""

from __future__ import annotations

from torch_ranks import *


@case(
    "yandexdataschool/Practical_DL#87",
    "loss.backward() of every micro-batch's mean, no division by their number",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    **ALONE,
)
def homework_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()


@case(
    "Morizeyao/GPT2-Chinese#101",
    "the loss is divided by the accumulation steps, and gradients are again before the step",
    "1 / (K^2 n_k), K times too little",
    named=(
        "means of micro-batches are added over replicas; and all is divided by the micro-batches"
    ),
    **ALONE,
)
def divided_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    scale_grads(model, 1 / len(window))


@case(
    "ZebangCheng/Emotion-LLaMA#140",
    "the full loss of each micro-batch is back-propagated on each rank, DDP averages ranks",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    batch=images,
    model=convolutions,
    equal_shards=True,
    **WINDOWS,
)
def four_gradients_are_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()
    rank.average(model)


@case(
    "ZebangCheng/Emotion-LLaMA#140",
    "the fix: the divisor is the number of micro-batches that the window has",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    batch=images,
    model=convolutions,
    **WINDOWS,
)
def size_of_the_window(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "starVLA/starVLA#395",
    "zero_grad() takes effect on the last micro-batch, in front of its backward",
    "1 / (R K n_rK) for the last micro-batch's examples, 0 for others",
    named="only the last micro-batch is kept, and divided by their number",
    **WINDOWS,
)
def cleared_before_the_last(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for i, batch in enumerate(window):
        if i == len(window) - 1:
            model.zero_grad()
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "modelscope/DiffSynth-Studio#1046",
    "zero_grad() at the top of every iteration, one device, the loss is not divided",
    "1 / n_K for the last micro-batch's examples, 0 for others",
    named="only the last micro-batch is kept",
    **ALONE,
)
def cleared_every_iteration(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        model.zero_grad()
        mean_loss(model, batch).backward()


@case(
    "rasbt/LLMs-from-scratch#299",
    "batch_idx % K == 0 steps after the first micro-batch, others are left for later",
    "1 / (K n_1) for the first micro-batch's examples, 0 for others",
    named=(
        "only the first micro-batch counts; and all is multiplied by the replicas, and divided "
        "by the micro-batches"
    ),
    **ALONE,
)
def steps_on_the_first(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for i, batch in enumerate(window):
        (mean_loss(model, batch) / len(window)).backward()
        if i % len(window) == 0:
            break


@case(
    "huggingface/candle#3482",
    "an accumulator that averages the gradients of the window's means",
    "1 / (K n_k), which is 1 / N for equal shares",
    "even",
    **ALONE,
)
def accumulator(rank: Rank, model: nn.Module, share: Any) -> None:
    held = [torch.zeros_like(p) for p in model.parameters()]
    window = micros(share)
    for batch in window:
        grads = torch.autograd.grad(mean_loss(model, batch), list(model.parameters()))
        held = [h + g for h, g in zip(held, grads, strict=True)]
    for p, h in zip(model.parameters(), held, strict=True):
        p.grad = h / len(window)


@case(
    "Lightning-AI/litgpt#1947",
    "the accumulation steps are computed from the global batch, ranks forgotten: the loss is "
    "divided by R K, and averaged over ranks",
    "1 / (R^2 K n_rk)",
    named="divided by the global batch, then averaged",
    equal_shards=True,
    **WINDOWS,
)
def nodes_are_not_counted(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    steps = len(window) * rank.world_size
    for batch in window:
        (mean_loss(model, batch) / steps).backward()
    rank.average(model)


@case(
    "axolotl-ai-cloud/axolotl#1100",
    "batches of 2 accumulated 8 times or one of 16: token means of micro-batches are averaged",
    "w_i / (K W_k)",
    named="mean of the micro-batches' means",
    **WORDS,
    **ALONE,
)
def token_means_are_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (token_mean(model, batch) / len(window)).backward()


@case(
    "sql-machine-learning/elasticdl#2449",
    "backward_passes_per_step is not set: the gradient is summed over workers after each pass, "
    "and what was summed is summed again",
    "R^(K-k) / (R K n_rk) for the examples of pass k",
    named="gradients are reduced again in every micro-batch",
    equal_shards=True,
    **WINDOWS,
)
def summed_after_each_pass(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window) / rank.world_size).backward()
        rank.add(model)


@case(
    "lululxvi/deepxde#1285",
    "gradients are averaged after each pass: what has been averaged stays as it is",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def averaged_after_each_pass(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        rank.average(model)


@case(
    "allenai/olmoearth_pretrain#105",
    "micro-batches with fewer tokens get relatively more weight, on every rank",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **WORDS,
    **WINDOWS,
)
def uneven_tokens_in_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        token_mean(model, batch).div(len(window)).backward()
    rank.average(model)


@case(
    "policy-gradient/GRPO-Zero#11",
    "the sum of each micro-batch over the target tokens of the whole batch",
    "w_i / W",
    "right",
    **WORDS,
    **ALONE,
)
def num_target_tokens(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    count = sum((labels != PAD).sum() for _, labels in window)
    for batch in window:
        (token_sum(model, batch)[0] / count).backward()


@case(
    "ChenmienTan/RL2#11",
    "losses are divided by the tokens of all devices and steps, times the world size",
    "w_i / W",
    "right",
    **WORDS,
    **WINDOWS,
)
def multiplied_by_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    count = rank.all_reduce(sum((labels != PAD).sum() for _, labels in window))
    for batch in window:
        (token_sum(model, batch)[0] / count * rank.world_size).backward()
    rank.average(model)


@case(
    "tenstorrent/tt-blacksmith#596",
    "the last window of an epoch is shorter, and is divided by the configured 4 all the same",
    "1 / (4 n_k): windows of more micro-batches count more",
    named="micro-batches are not divided",
    **ALONE,
)
def configured_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / 4).backward()


@case(
    "meta-pytorch/torchrec#4691",
    "sums of micro-batches, divided at the boundary by the examples of the last micro-batch",
    "1 / n_K",
    named="divided by the count of the last micro-batch",
    **ALONE,
)
def size_of_the_last_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        sum_loss(model, batch).backward()
    scale_grads(model, 1 / len(window[-1][0]))


@case(
    "pytorch/PiPPy#1045",
    "a pipeline adds the gradients of its chunks' means; data-parallel copies are averaged",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    equal_shards=True,
    **WINDOWS,
)
def chunks_of_a_pipeline(rank: Rank, model: nn.Module, share: Any) -> None:
    losses = [mean_loss(model, chunk) for chunk in micros(share)]
    torch.stack(losses).sum().backward()
    rank.average(model)


@case(
    "Modalities/modalities#399",
    "chunks of a pipeline: the gradients are divided by their number after the schedule",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def chunks_scaled_after_the_schedule(rank: Rank, model: nn.Module, share: Any) -> None:
    chunks = micros(share)
    for chunk in chunks:
        mean_loss(model, chunk).backward()
    scale_grads(model, 1 / len(chunks))
    rank.average(model)


@case(
    "TUDB-Labs/mLoRA#65",
    "each micro-batch's mean is weighted by its part of the batch",
    "1 / n, by n_k / n",
    "right",
    **ALONE,
)
def weighted_by_the_part(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    size = sum(len(x) for x, _ in window)
    for batch in window:
        (mean_loss(model, batch) * len(batch[0]) / size).backward()


@case(
    "paiml/entrenar#131",
    "the gradient of a micro-batch overwrites the workspace, the number of steps divides it",
    "1 / (K n_K) for the last micro-batch's examples, 0 for others",
    named="only the last micro-batch is kept, and divided by their number",
    **ALONE,
)
def workspace_is_overwritten(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        grads = torch.autograd.grad(mean_loss(model, batch), list(model.parameters()))
        for p, g in zip(model.parameters(), grads, strict=True):
            p.grad = g
    scale_grads(model, 1 / len(window))
