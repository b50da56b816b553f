"""Gradients that are accumulated over micro-batches."""

from __future__ import annotations

import math

from torch_ranks import *


@case(
    "autonomousvision/stylegan-t#11",
    "as the question sees it: one round's loss, multiplied by the rounds, instead of all rounds",
    "K / n_K for the last micro-batch's examples, 0 for others",
    named=(
        "only the last micro-batch is kept; and all is multiplied by the replicas, and "
        "multiplied by the micro-batches"
    ),
    **ALONE,
)
def rounds_as_a_factor(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    gain = len(window)
    (gain * mean_loss(model, window[-1])).backward()


@case(
    "autonomousvision/stylegan-t#11",
    "every round's mean with a gain of its images over those of the batch",
    "1 / N",
    "right",
    **ALONE,
)
def gain_of_a_round(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    batch_size = sum(len(x) for x, _ in window)
    for x, y in window:
        gain = len(x) / batch_size
        (gain * mean_loss(model, (x, y))).backward()


@case(
    "NVlabs/stylegan2-ada-pytorch#102",
    "rounds of batch_gpu images are accumulated, their means are added",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    equal_shards=True,
    **WINDOWS,
)
def rounds_of_batch_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    for round_batch in micros(share):
        mean_loss(model, round_batch).backward()
    rank.average(model)


@case(
    "lucidrains/stylegan2-pytorch#78",
    "the answer there: accumulating 5 times over 6 is a batch of 30, each loss over the times",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def accumulate_every(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "lucidrains/stylegan2-pytorch#145",
    "the same loop where the last batch of the data set is smaller than the others",
    "1 / (K n_k)",
    named="mean of the micro-batches' means",
    **ALONE,
)
def accumulate_every_with_a_rest(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch)
        loss = loss / len(window)
        loss.backward()


@case(
    "tomhosking/torchseq#8",
    "examples behind the last full batch of a worker are never stepped on",
    "1 / (R m_r), m_r the examples in full batches of 2, 0 for the rest",
    named="each replica splits its own shard",
    batch=targets,
)
def rest_is_ignored(rank: Rank, model: nn.Module, share: Any) -> None:
    full = len(share[0]) // 2 * 2
    pending, seen = torch.zeros(()), 0
    for x, y in pieces(share, 2):
        if len(x) == 2:
            pending = pending + F.mse_loss(model(x), y) * len(x)
            seen += len(x)
    if full:
        (pending / seen).backward()
    rank.average(model)


@case(
    "tomhosking/torchseq#8",
    "the fix: a step is forced for the last ones, and counts what was seen by all workers",
    "1 / N",
    "right",
    batch=targets,
)
def rest_is_stepped_on(rank: Rank, model: nn.Module, share: Any) -> None:
    seen = 0
    for x, y in pieces(share, 2):
        (F.mse_loss(model(x), y) * len(x)).backward()
        seen += len(x)
    rank.add(model)
    scale_grads(model, 1.0 / rank.all_reduce(seen))


@case(
    "jolibrain/joliGEN#49",
    "losses are divided by iter_size, which is 4, also where fewer batches are left",
    "1 / (4 n_k), whatever K",
    named="micro-batches are not divided",
    equal_shards=True,
    **ALONE,
)
def divided_by_iter_size(rank: Rank, model: nn.Module, share: Any) -> None:
    iter_size = 4
    for batch in micros(share):
        (mean_loss(model, batch) / iter_size).backward()


@case(
    "freud14/poutyne#39",
    "the running loss of all batches of a step is divided by their number",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def batches_per_step(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    running = sum(mean_loss(model, batch) for batch in window) / len(window)
    running.backward()
    return running.detach()


@case(
    "fastai/fastai2#194",
    "the callback skips the step until enough is accumulated; nothing is divided: it explodes",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    equal_shards=True,
    **ALONE,
)
def callback_skips_the_step(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        loss = mean_loss(model, batch)
        loss.backward()


@case(
    "irrmnv/pytorch-ieee-cmi#1",
    "(batch_size * loss).backward() on every GPU, DDP averages",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def batch_size_times_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    batch_size = share[0].size(0)
    (batch_size * mean_loss(model, share)).backward()
    rank.average(model)


@case(
    "irrmnv/pytorch-ieee-cmi#1",
    "(batch_size * loss).backward() of each micro-batch: a sum over all of them",
    "1",
    "right",
    **ALONE,
)
def batch_size_times_loss_is_added(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (batch[0].size(0) * mean_loss(model, batch)).backward()


@case(
    "ServiceNow/PipelineRL#36",
    "losses are divided by the passes of all GPUs together, and DDP averages",
    "1 / (R^2 K n_rk)",
    named="divided by the global batch, then averaged",
    equal_shards=True,
    **WINDOWS,
)
def passes_of_all_gpus(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    passes = int(rank.all_reduce(len(window)))
    for batch in window:
        (mean_loss(model, batch) / passes).backward()
    rank.average(model)


@case(
    "ServiceNow/PipelineRL#36",
    "passes per GPU, then DDP's mean",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def passes_per_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    passes = int(rank.all_reduce(len(window))) // rank.world_size
    for batch in window:
        (mean_loss(model, batch) / passes).backward()
    rank.average(model)


@case(
    "entity-neural-network/incubator#138",
    "a minibatch is cut into microbatches, each weighted by its part of the minibatch",
    "1 / N",
    "right",
    replicas=(2, 3),
)
def microbatches_of_a_minibatch(rank: Rank, model: nn.Module, share: Any) -> None:
    total = float(rank.all_reduce(len(share[0])))
    for x, y in pieces(share, 3):
        (mean_loss(model, (x, y)) * len(x) / total).backward()
    rank.add(model)


@case(
    "entity-neural-network/incubator#138",
    "each microbatch of two is divided by their number, the last one may hold one example",
    "1 / (R m_r n_m), m_r microbatches of a rank with n_m examples",
    named=(
        "the weights of each chunk of 2 examples that the step cuts divides; their number "
        "divides; all is divided by the replicas"
    ),
    replicas=(2, 3),
)
def microbatches_count_alike(rank: Rank, model: nn.Module, share: Any) -> None:
    count = math.ceil(len(share[0]) / 2)
    for batch in pieces(share, 2):
        (mean_loss(model, batch) / count).backward()
    rank.average(model)


@case(
    "the-database/traiNNer-redux#62",
    "the pixel loss is divided by the accumulated iterations, the perceptual loss is not",
    "two parts: 1 / (K n_k); 1 / n_k for the second, K times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "micro-batches are not divided"
    ),
    batch=targets,
    equal_shards=True,
    **ALONE,
)
def second_loss_is_not_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        out = model(x)
        l_pix = F.l1_loss(out, y)
        l_percep = (torch.tanh(out) - torch.tanh(y)).square().mean()
        (l_pix / len(window) + l_percep).backward()


@case(
    "the-database/traiNNer-redux#62",
    "the total loss is divided by the accumulated iterations",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    batch=targets,
    **ALONE,
)
def total_loss_is_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        out = model(x)
        l_total = F.l1_loss(out, y) + (torch.tanh(out) - torch.tanh(y)).square().mean()
        (l_total / len(window)).backward()


@case(
    "BCV-Uniandes/DMS#14",
    "batches of one are accumulated on each GPU and never divided, the GPUs are averaged",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def batches_of_one(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in pieces(share, 1):
        mean_loss(model, batch).backward()
    rank.average(model)


@case(
    "tatsu-lab/alpaca_farm#57",
    "policy.zero_grad() in each accumulated step: the last step's gradient is left",
    "1 / (K n_K) for the last micro-batch, 0 for others",
    named="only the last micro-batch is kept, and divided by their number",
    equal_shards=True,
    **ALONE,
)
def policy_zero_grad(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        model.zero_grad()
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "tatsu-lab/alpaca_farm#57",
    "optimizer.zero_grad(), which does nothing but at the first step",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def optimizer_zero_grad(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for i, batch in enumerate(window):
        if i == 0:
            model.zero_grad()
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "ZiqiaoPeng/DualTalk#9",
    "zero_grad() before each backward, and nothing is divided",
    "1 / n_K for the last micro-batch, 0 for others",
    named="only the last micro-batch is kept",
    **ALONE,
)
def zero_before_each_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        loss = mean_loss(model, batch)
        model.zero_grad()
        loss.backward()


@case(
    "ZiqiaoPeng/DualTalk#9",
    "zeroed at the start of a window, divided by its steps, whose batches differ in size",
    "1 / (K n_k)",
    named="mean of the micro-batches' means",
    **ALONE,
)
def better_way_with_a_short_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    model.zero_grad()
    for batch in window:
        loss = mean_loss(model, batch) / len(window)
        loss.backward()


@case(
    "deepspeedai/Megatron-DeepSpeed#42",
    "the loss is divided by the micro-batches, and the engine divides again",
    "1 / (R K^2 n_rk)",
    named="micro-batches are divided twice",
    equal_shards=True,
    **WINDOWS,
)
def scaled_by_the_engine_again(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        output = mean_loss(model, batch) / len(window)
        (output / len(window)).backward()  # engine.backward
    rank.average(model)


@case(
    "deepspeedai/DeepSpeedExamples#565",
    "the engine alone divides by gradient_accumulation_steps",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def scaled_by_the_engine(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()  # engine.backward
    rank.average(model)


@case(
    "IndicoDataSolutions/finetune#248",
    "accumulated gradients are kept as a running mean of the old mean and the new gradient",
    "1 / (2^(K - k + 1) n_k), twice that for the first: later micro-batches count more",
    micro_batches=(1, 3),
    replicas=(1,),
    equal_shards=True,
)
def mean_of_old_and_new(rank: Rank, model: nn.Module, share: Any) -> None:
    kept: list[torch.Tensor] = []
    for batch in micros(share):
        model.zero_grad()
        mean_loss(model, batch).backward()
        new = [p.grad.clone() for p in model.parameters()]
        kept = [(a + b) / 2 for a, b in zip(kept, new, strict=True)] if kept else new
    for p, g in zip(model.parameters(), kept, strict=True):
        p.grad = g


@case(
    "wandb/senpai#390",
    "ACCUM_STEPS is 2, the last incomplete accumulation is stepped on with half its gradient",
    "1 / (2 n_k), whatever K",
    named="micro-batches are not divided",
    equal_shards=True,
    **ALONE,
)
def half_of_the_last_window(rank: Rank, model: nn.Module, share: Any) -> None:
    accum_steps = 2
    for batch in micros(share):
        (mean_loss(model, batch) / accum_steps).backward()


@case(
    "yoshitomo-matsubara/torchdistill#58",
    "sums over micro-batches, over all examples of all processes, once a window",
    "1 / N",
    "right",
    **WINDOWS,
)
def sums_over_a_window(rank: Rank, model: nn.Module, share: Any) -> None:
    count = 0
    for batch in micros(share):
        sum_loss(model, batch).backward()
        count += len(batch[0])
    rank.average(model)
    scale_grads(model, rank.world_size / rank.all_reduce(count))
