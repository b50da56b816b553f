"""Several backward passes before a step."""

from __future__ import annotations

import copy

from torch_ranks import *

from .common import NUMBERS, PICTURES


def clipped_sum(model: nn.Module, batch: Any, limit: float = 0.5) -> list[torch.Tensor]:
    """The sum of the gradients of single examples, each limited, as Opacus makes it."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in zip(*batch, strict=True):
        loss = F.cross_entropy(model(x[None]), y[None])
        grads = torch.autograd.grad(loss, list(model.parameters()))
        norm = torch.sqrt(sum((g**2).sum() for g in grads))
        for held, g in zip(total, grads, strict=True):
            held += g * min(1.0, limit / float(norm))
    return total


def add_to_grads(model: nn.Module, grads: list[torch.Tensor]) -> None:
    """Accumulates what was computed by hand."""
    for p, g in zip(model.parameters(), grads, strict=True):
        p.grad = g.clone() if p.grad is None else p.grad + g


@case(
    "tientrandinh/Revisiting-Reverse-Distillation#12",
    "zero_grad before every backward, also between the steps: only the last micro-batch is left",
    "1 / n_K for the last micro-batch, 0 for the others",
    named="only the last micro-batch is kept",
    **ALONE,
)
def zeroed_before_every_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        model.zero_grad()
        mean_loss(model, batch).backward()


@case(
    "tientrandinh/Revisiting-Reverse-Distillation#12",
    "as the issue proposes, zero_grad after the step; losses are not divided by the steps",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    **ALONE,
)
def zeroed_after_the_step(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()


@case(
    "facebookresearch/TimeSformer#120",
    "p.grad /= num_iters before the step, micro-batches of one size",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def grads_over_num_iters(rank: Rank, model: nn.Module, share: Any) -> None:
    num_iters = len(micros(share))
    for batch in micros(share):
        mean_loss(model, batch).backward()
    scale_grads(model, 1 / num_iters)


@case(
    "meta-pytorch/opacus#93",
    "zero_grad before every virtual step erases what was accumulated",
    "1 / n_K of the limited gradients of the last micro-batch, 0 for the others",
    named="only the last micro-batch is kept",
    **ALONE,
)
def zeroed_at_virtual_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        model.zero_grad()
        add_to_grads(model, clipped_sum(model, batch))
    scale_grads(model, 1 / len(micros(share)[-1][0]))


@case(
    "meta-pytorch/opacus#420",
    "limited gradients are added, and divided by the expected batch size, a constant",
    "1 / 16 of each limited gradient",
    "right",
    **ALONE,
)
def expected_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        add_to_grads(model, clipped_sum(model, batch))
    scale_grads(model, 1 / 16)


@case(
    "meta-pytorch/opacus#420",
    "the actual size instead of the expected one, but that of each round of a memory manager",
    "1 / n_k of each limited gradient, K times too much",
    named="micro-batches are not divided",
    **ALONE,
)
def size_of_each_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        add_to_grads(model, [g / len(batch[0]) for g in clipped_sum(model, batch)])


@case(
    "microsoft/Swin-Transformer#185",
    "loss / ACCUMULATION_STEPS, DDP averages, all micro-batches of one size",
    "1 / (R K n_rk), which is 1 / N for equal micro-batches",
    "even",
    **WINDOWS,
)
def over_accumulation_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share))).backward()
    rank.average(model)


@case(
    "thunlp/OpenPrompt#106",
    "optimizer.step() and zero_grad() outside of the condition: a step for every micro-batch",
    "1 / n_k, K times too much, from parameters that move",
    named="the parameters change between micro-batches",
    **ALONE,
)
def step_outside_the_condition(rank: Rank, model: nn.Module, share: Any) -> None:
    start = copy.deepcopy(model.state_dict())
    for batch in micros(share):
        model.zero_grad()
        mean_loss(model, batch).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
    for name, p in model.named_parameters():
        p.grad = (start[name] - p.detach()) / 0.01
    model.load_state_dict(start)


@case(
    "timoschick/pet#36",
    "steps only where (step + 1) % 2 == 0: the last of three micro-batches is never used",
    "1 / (2 n_k) for the first two micro-batches, 0 for the third",
    micro_batches=(1, 3), replicas=(1,),
)  # fmt: skip
def third_is_lost(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    accumulation_steps = min(2, len(window))
    for batch in window[:accumulation_steps]:
        (mean_loss(model, batch) / accumulation_steps).backward()


@case(
    "Kai-46/minFM#2",
    "gradients are divided by the scale after every backward: earlier ones several times",
    "1 / (K n_k S^(K - k)), with S the scale of the loss",
    equal_shards=True, **ALONE,
)  # fmt: skip
def unscaled_after_every_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 8.0
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share)) * scale).backward()
        scale_grads(model, 1 / scale)


@case(
    "Kai-46/minFM#2",
    "after: gradients are divided by the scale once, before the step",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def unscaled_once(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 8.0
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share)) * scale).backward()
    scale_grads(model, 1 / scale)


@case(
    "neosr-project/neosr#9",
    "scaler.update() in every round: the scale grows between micro-batches, the last one divides",
    "2^(k - K) / (K n_k) for the k-th micro-batch",
    named="what is accumulated is halved with each later micro-batch",
    equal_shards=True, **ALONE,
)  # fmt: skip
def scale_grows_between(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 4.0
    for batch in micros(share):
        scale *= 2
        (mean_loss(model, batch) / len(micros(share)) * scale).backward()
    scale_grads(model, 1 / scale)


@case(
    "isht7/pytorch-deeplab-resnet#34",
    "the mean over labelled pixels of a micro-batch / iter_size",
    "w_i / (K W_k), with w_i the labelled pixels",
    named="mean of the micro-batches' means",
    **WORDS, **ALONE,
)  # fmt: skip
def pixels_over_iter_size(rank: Rank, model: nn.Module, share: Any) -> None:
    iter_size = len(micros(share))
    for batch in micros(share):
        (token_mean(model, batch) / iter_size).backward()


@case(
    "yun-liu/RCF-PyTorch#6",
    "losses of pixels are summed, and divided by iter_size",
    "1 / K instead of 1",
    named="micro-batches are divided twice",
    **SENTENCES, **ALONE,
)  # fmt: skip
def sums_over_iter_size(rank: Rank, model: nn.Module, share: Any) -> None:
    iter_size = len(micros(share))
    for batch in micros(share):
        (token_sum(model, batch)[0] / iter_size).backward()


def preferences(model: nn.Module, batch: Any) -> torch.Tensor:
    """DPO's loss, with targets as the difference of two answers."""
    x, y = batch
    return -F.logsigmoid((model(x) * y).sum(-1)).mean()


@case(
    "hiyouga/LlamaFactory#5747",
    "the new trainer leaves the division to the model, but DPO's loss is a mean: not divided",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    **NUMBERS, **WINDOWS,
)  # fmt: skip
def preferences_not_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        preferences(model, batch).backward()
    rank.average(model)


@case(
    "unslothai/unsloth#1178",
    "DPO's mean over the pairs of a micro-batch, divided by the steps",
    "1 / (R K n_rk), which is 1 / N for equal micro-batches",
    "even",
    **NUMBERS, **WINDOWS,
)  # fmt: skip
def preferences_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (preferences(model, batch) / len(micros(share))).backward()
    rank.average(model)


@case(
    "tensorflow/addons#2260",
    "a wrapper adds the gradients of accum_steps mini-batches, and applies the sum",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    equal_shards=True, **ALONE,
)  # fmt: skip
def wrapper_applies_the_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()


@case(
    "andreped/GradientAccumulator#29",
    "the wrapper's default becomes the mean of the gradients",
    "1 / (K n_k), which is 1 / N for equal mini-batches",
    "even",
    **ALONE,
)
def wrapper_applies_the_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()
    scale_grads(model, 1 / len(micros(share)))


@case(
    "flowersteam/lamorel#41",
    "the sum over a minibatch, divided by the size of the whole batch",
    "1 / N",
    "right",
    **ALONE,
)
def over_the_whole_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    size = sum(len(batch[0]) for batch in micros(share))
    for batch in micros(share):
        (sum_loss(model, batch) / size).backward()


@case(
    "arnor-sigurdsson/EIR#28",
    "losses / gradient_accumulation_steps, where the last batch of an epoch is smaller",
    "1 / (K n_k)",
    named="mean of the micro-batches' means",
    **ALONE,
)
def smaller_last_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share))).backward()


@case(
    "huggingface/picotron#5",
    "the flag for synchronisation is set at the wrong micro-batch: the first is averaged alone",
    "1 / (R K n_rk) in the first round, 1 / (K n_0k) of this rank alone in later ones",
    named="the replicas' parameters differ",
    equal_shards=True, **WINDOWS,
)  # fmt: skip
def synchronised_too_early(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for i, batch in enumerate(window):
        (mean_loss(model, batch) / len(window)).backward()
        if i == 0:
            rank.average(model)


@case(
    "goodfire-ai/spd#216",
    "no_sync in all rounds but the last one, losses divided by the rounds",
    "1 / (R K n_rk), which is 1 / N for equal micro-batches",
    "even",
    **WINDOWS,
)
def synchronised_in_the_last(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "cvjena/cnn-models#5",
    "iter_size with batch normalization: each mini-batch is normalised by its own moments",
    "no sum over examples: 1 / (K n_k) within batches that are normalised on their own",
    named="batch statistics are those of each micro-batch",
    equal_shards=True, **PICTURES, **ALONE,
)  # fmt: skip
def normalised_in_each_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share))).backward()


@case(
    "sraashis/easytorch#90",
    "each batch's mean times its part of all examples of the window",
    "1 / N",
    "right",
    **ALONE,
)
def by_the_part_of_a_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    size = sum(len(x) for x, _ in micros(share))
    for batch in micros(share):
        (mean_loss(model, batch) * len(batch[0]) / size).backward()
