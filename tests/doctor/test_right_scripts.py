"""A hundred right steps after well-known training scripts: no false positives, few refusals.

Each script's way to normalise, reduce and accumulate is tried in four ways that scripts run: in
float64, with float32 gradients, with a bfloat16 all-reduce, and with the update limited at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from held_out.toy import (
    BY_TOKENS,
    IMAGES,
    IMPORTANCE,
    NOISE,
    ONE_DEVICE,
    PLAIN,
    TEXT,
    TOKEN_WINDOWS,
    WEIGHTED,
    WINDOWS,
    clip,
    dp_mean,
    flat,
    grad_mean,
    grad_sum,
    losses,
    merged,
    n_tokens,
    rows,
    token_sum,
    windows,
)
from test_noise import bfloat16

from samegrad_doctor import StepError, diagnose

Round = Callable[[Any], Any]
EVEN = {**PLAIN, "equal_shards": True}
EVEN_WINDOWS = {
    "replicas": (1, 2),
    "micro_batches": (1, 2),
    "max_examples": 12,
    "equal_shards": True,
}
BY_WEIGHTS = {"weights": IMPORTANCE, "max_examples": 12}


def tokens_of(shares: Any) -> int:
    return sum(n_tokens(part) for part in flat(shares))


def ddp_means(shares: Any, rough: Round) -> Any:
    return dp_mean(rough(grad_mean(share)) for share in shares)


def accumulated_means(shares: Any, rough: Round) -> Any:
    return dp_mean(
        rough(sum(grad_mean(part) / len(window) for part in window)) for window in windows(shares)
    )


def detr(shares: Any, rough: Round) -> Any:
    boxes = max(tokens_of(shares) / len(shares), 1.0)
    return dp_mean(rough(token_sum(share) / boxes) for share in shares)


def megatron(shares: Any, rough: Round) -> Any:
    total = sum(rough(sum(token_sum(part) for part in window)) for window in windows(shares))
    return total / tokens_of(shares)


def num_items(shares: Any, rough: Round) -> Any:
    ranks, items = windows(shares), tokens_of(shares)
    return dp_mean(
        rough(sum(token_sum(part) * len(ranks) / items for part in window)) for window in ranks
    )


def opennmt(shares: Any, rough: Round) -> Any:
    (window,) = windows(shares)
    return rough(sum(token_sum(part) / tokens_of([window]) for part in window))


def wav2vec(shares: Any, rough: Round) -> Any:
    mean = dp_mean(rough(token_sum(share)) for share in shares)
    return mean * (len(shares) / tokens_of(shares))


def t5x(shares: Any, rough: Round) -> Any:
    parts = flat(shares)
    return sum(rough(token_sum(part)) for part in parts) / (tokens_of(shares) + 1e-8)


def retinanet(shares: Any, rough: Round) -> Any:
    return sum(rough(grad_sum(share) / 100.0) for share in shares)


def yolo(shares: Any, rough: Round) -> Any:
    return dp_mean(rough(grad_mean(s) * rows(s) * len(shares)) for s in shares)


def global_batch(shares: Any, rough: Round) -> Any:
    return sum(rough(grad_sum(share) / 64) for share in shares)


def counted(shares: Any, rough: Round) -> Any:
    count = sum(rows(part) for part in flat(shares))
    own = (sum(grad_sum(part) for part in window) / count for window in windows(shares))
    return sum(map(rough, own))


def predivided(shares: Any, rough: Round) -> Any:
    """Gradients are divided by the world before the sum, and losses multiplied by it."""
    count = sum(rows(share) for share in shares)
    return sum(rough(len(shares) * grad_sum(s) / count / len(shares)) for s in shares)


def weighted(shares: Any, rough: Round) -> Any:
    mass = sum(share["weight"].sum() for share in shares)
    return sum(rough(grad_sum(s, s["weight"]) / mass) for s in shares)


def decayed(shares: Any, rough: Round) -> Any:
    return counted(shares, rough) + 0.02 * NOISE


def baseline(shares: Any, rough: Round) -> Any:
    """REINFORCE with the mean reward of all ranks."""
    reward = losses(merged(shares))
    return rough(grad_sum(merged(shares), (reward - reward.mean()) / len(reward)))


def normalised(shares: Any, rough: Round) -> Any:
    """PPO with the moments of all ranks' advantages."""
    value = losses(merged(shares))
    advantages = (value - value.mean()) / (value.std() + 1e-8)
    return rough(grad_sum(merged(shares), advantages / len(value)))


def by_length(shares: Any, rough: Round) -> Any:
    """Every sentence is averaged, and the sentences of all ranks are."""
    count = sum(rows(share) for share in shares)
    own = [{k: v[[i]] for k, v in share.items()} for share in shares for i in range(rows(share))]
    return sum(rough(token_sum(one) / n_tokens(one) / count) for one in own)


SCRIPTS = [
    ("pytorch/examples imagenet", ddp_means, IMAGES, EVEN),
    ("timm, drop_last", ddp_means, IMAGES, {**EVEN, "replicas": (2,)}),
    ("torchvision references", ddp_means, IMAGES, {**EVEN, "replicas": (3,)}),
    ("flax imagenet, pmean", ddp_means, IMAGES, {**EVEN, "replicas": (4,)}),
    ("nanoGPT", accumulated_means, IMAGES, EVEN_WINDOWS),
    ("llama-recipes, FSDP", accumulated_means, IMAGES, {**EVEN_WINDOWS, "replicas": (2,)}),
    ("horovod, backward_passes_per_step", accumulated_means, IMAGES,
     {**EVEN_WINDOWS, "replicas": (1,)}),
    ("DETR", detr, TEXT, BY_TOKENS),
    ("Mask2Former", detr, TEXT, {**BY_TOKENS, "replicas": (2, 4)}),
    ("Megatron-LM, per-token loss", megatron, TEXT, TOKEN_WINDOWS),
    ("transformers Trainer, num_items_in_batch", num_items, TEXT, TOKEN_WINDOWS),
    ("TRL, DAPO loss", num_items, TEXT, BY_TOKENS),
    ("OpenNMT-py, tokens", opennmt, TEXT, {**ONE_DEVICE, "weights": BY_TOKENS["weights"]}),
    ("wav2vec 2.0 in fairseq", wav2vec, TEXT, BY_TOKENS),
    ("T5X", t5x, TEXT, TOKEN_WINDOWS),
    ("MaxText, weights not told", t5x, TEXT, PLAIN),
    ("Detectron2 RetinaNet, constant normaliser", retinanet, IMAGES, PLAIN),
    ("YOLOv5, loss * batch * world", yolo, IMAGES, PLAIN),
    ("TensorFlow models, global batch size", global_batch, IMAGES, PLAIN),
    ("Keras, compute_average_loss", counted, IMAGES, PLAIN),
    ("DeepSpeed, sums over a window", counted, IMAGES, WINDOWS),
    ("Apex, predivided gradients", predivided, IMAGES, PLAIN),
    ("sample weights over all ranks", weighted, WEIGHTED, BY_WEIGHTS),
    ("L2 once, after the all-reduce", decayed, IMAGES, WINDOWS),
    ("REINFORCE, baseline of all ranks", baseline, IMAGES, {"max_examples": 18}),
    ("CleanRL PPO, moments of all ranks", normalised, IMAGES, {"max_examples": 18}),
    ("sentence means (REINFORCE for text)", by_length, TEXT, PLAIN),
]  # fmt: skip
WAYS: dict[str, tuple[Round, float]] = {
    "float64": (lambda g: g, np.inf),
    "float32": (lambda g: np.asarray(g, np.float32), np.inf),
    "bfloat16": (bfloat16, np.inf),
    "limited": (lambda g: g, 0.05),
}


def verdict(script: Any, batch: Any, options: Any, way: str) -> str:
    rough, limit = WAYS[way]
    try:
        found = diagnose(lambda shares: clip(script(shares, rough), limit), batch, **options)
    except StepError:
        return "refused"
    return "right" if found.correct else "ACCUSED"


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    return {
        f"{name} ({way})": verdict(script, batch, options, way)
        for name, script, batch, options in SCRIPTS
        for way in WAYS
    }


def test_none_of_a_hundred_is_accused(verdicts: dict[str, str]) -> None:
    assert len(verdicts) >= 100
    assert not [name for name, word in verdicts.items() if word == "ACCUSED"]


def test_few_are_refused(verdicts: dict[str, str]) -> None:
    refused = [name for name, word in verdicts.items() if word == "refused"]
    assert len(refused) <= 0.02 * len(verdicts), (refused, Counter(verdicts.values()))
