"""Terms and parameters that are scaled otherwise than the rest."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import (
    EXAMPLES,
    REGULARISATION,
    SEQUENCES,
    WINDOW,
    count,
    ddp,
    flat,
    join,
    mean,
    token_sum,
    tokens,
    total,
    windows,
)

ONCE_EACH = "regularisation counts once on every replica"
PART = "a part of the loss"
PARAMETERS = "a part of the parameters"
RNG = np.random.default_rng(31)
PENALTY = RNG.normal(size=(6, 40))


def penalty_sum(share):
    """The gradient of a term of each example that is not linear in it."""
    return ((np.sin(3 * share[0]) + share[0] ** 2) @ PENALTY).sum(axis=0)


def l2_on_every_replica(shares):
    return sum(total(share) / count(shares) + REGULARISATION for share in shares)


def l2_with_constant_batch(shares):
    """tf: compute_average_loss with a constant, and the layers' losses unscaled."""
    return sum(total(share) / 64 + 0.01 * REGULARISATION for share in shares)


def l2_scaled_right(shares):
    """tf: both are scaled as they should be."""
    return sum(total(share) / 64 + 0.01 * REGULARISATION / len(shares) for share in shares)


def world_size_hits_aux(shares):
    """(loss + aux) * world_size, where only the loss is a share."""
    world = len(shares)
    return ddp([(total(share) / count(shares) + REGULARISATION) * world for share in shares])


def aux_of_micro_batches(shares):
    """The aux loss is added in each micro-batch; the data's tokens are counted globally."""
    ranks = windows(shares)
    num_items = sum(map(tokens, flat(ranks)))
    per_rank = [
        sum(token_sum(b) * len(ranks) / num_items + REGULARISATION for b in w) for w in ranks
    ]
    return ddp(per_rank)


def aux_divided_by_steps(shares):
    """Data: tokens of the window; aux: once, divided by the steps."""
    ranks = windows(shares)
    num_items = sum(map(tokens, flat(ranks)))
    steps = len(ranks[0])
    data = sum(token_sum(b) for b in flat(ranks)) / num_items
    return data + REGULARISATION / steps


def means_and_l2(shares):
    """reduce_mean in run, and each replica's regularisation: all is added."""
    return sum(mean(share) + REGULARISATION for share in shares)


def penalty_is_local(shares):
    """The critic's loss is a share of the global batch, the penalty a mean of the replica."""
    rows = count(shares)
    grads = [total(p) / rows + penalty_sum(p) / len(p[0]) for p in shares]
    return sum(grads)


def penalty_is_averaged(shares):
    """The penalty is a local mean over the replicas; the critic's loss is right."""
    rows, world = count(shares), len(shares)
    return sum(total(p) / rows + penalty_sum(p) / len(p[0]) / world for p in shares)


def penalty_divided_by_replicas(shares):
    rows, world = count(shares), len(shares)
    whole = join(shares)
    return total(whole) / rows + penalty_sum(whole) / rows / world


EXPERTS = np.zeros(40, dtype=bool)
EXPERTS[30:] = True


def experts_too_large(shares):
    """Experts see the tokens of all ranks; their gradients are not divided by the group."""
    rows = count(shares)
    gradient = sum(total(share) for share in shares) / rows
    return [gradient[~EXPERTS], gradient[EXPERTS] * len(shares)]


def head_is_bypassed(shares):
    """The backbone is averaged, the head's module is called past DDP."""
    grads = [mean(share) for share in shares]
    weighted = sum(total(share) for share in shares) / count(shares)
    return {"backbone": weighted[~EXPERTS], "head": grads[0][EXPERTS]}


def lora_is_averaged_twice(shares):
    rows = count(shares)
    gradient = sum(total(share) for share in shares) / rows
    return gradient[~EXPERTS], gradient[EXPERTS] / len(shares)


CASES = [
    bug(
        "tensorflow/models#342", "regularisation is added to every tower", ONCE_EACH,
        l2_on_every_replica, EXAMPLES,
    ),
    bug(
        "tensorflow/models#6195", "weight decay is not divided by the replicas", ONCE_EACH,
        l2_with_constant_batch, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#58938", "the answer: both scaled; nothing is wrong", None,
        l2_scaled_right, EXAMPLES,
    ),
    bug(
        "huggingface/transformers (trainer.py: loss *= num_processes)",
        "the router's aux loss is in the loss that is multiplied",
        ONCE_EACH, world_size_hits_aux, EXAMPLES,
    ),
    bug(
        "modelscope/ms-swift#10116 (review)", "the aux gradient grows with the steps",
        "regularisation counts once in every micro-batch", aux_of_micro_batches, SEQUENCES,
        options={**WINDOW, "weights": SEQUENCES[2].sum(axis=1)},
    ),
    bug(
        "huggingface/trl#6083", "aux is divided by the steps, the policy loss is not",
        "regularisation counts divided by the micro-batches", aux_divided_by_steps, SEQUENCES,
        options={**WINDOW, "weights": SEQUENCES[2].sum(axis=1)},
    ),
    bug(
        "google/edward2#428 (without the division)", "means and regularisation are added",
        "mean per replica, then sum", means_and_l2, EXAMPLES,
    ),
    bug(
        "keras-team/keras#13122", "a gradient penalty that is averaged on each GPU and added",
        PART, penalty_is_local, EXAMPLES,
    ),
    bug(
        "keras-team/keras#10841", "a penalty of local means beside a global loss", PART,
        penalty_is_averaged, EXAMPLES,
    ),
    bug(
        "NVIDIA/Megatron-LM#7452", "the mtp loss is normalised by local counts", PART,
        penalty_is_averaged, EXAMPLES,
    ),
    bug(
        "NVIDIA/Megatron-LM#5047", "z-loss is scaled by local tokens: too small by the group", PART,
        penalty_divided_by_replicas, EXAMPLES,
    ),
    bug(
        "NVIDIA/Megatron-LM#5956", "expert gradients are ep_size times too large", PARAMETERS,
        experts_too_large, EXAMPLES,
    ),
    bug(
        "deepspeedai/DeepSpeed#5259", "expert gradients are scaled by another group", PARAMETERS,
        lora_is_averaged_twice, EXAMPLES,
    ),
    bug(
        "moojink/openvla-oft#160", "the action head's DDP forward is bypassed", PARAMETERS,
        head_is_bypassed, EXAMPLES,
    ),
]  # fmt: skip
