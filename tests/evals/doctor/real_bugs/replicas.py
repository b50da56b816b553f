"""Ranks that are added, averaged, scaled or forgotten."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import EXAMPLES, Outcome, count, ddp, join, mean, total

SUM = "mean per replica, then sum"
SHARE = "divided by the global batch, then averaged"
TIMES = "multiplied by the replicas"
LEARNING_RATE = 0.1


def reduce_mean_in_run(shares):
    """tf.reduce_mean inside strategy.run; apply_gradients sums the replicas."""
    grads = [mean(share) for share in shares]
    return np.add.reduce(grads)


def mean_times_world_size(shares):
    """loss *= WORLD_SIZE before DDP's mean."""
    world = len(shares)
    return ddp([world * mean(share) for share in shares])


def yolo(shares):
    """The loss is multiplied by the batch of the rank and by the world size: a sum."""
    world = len(shares)
    return ddp([mean(share) * len(share[0]) * world for share in shares])


def divided_by_world_size_before_ddp(shares):
    world = len(shares)
    return ddp([mean(share) / world for share in shares])


def global_batch_then_mean(shares):
    return ddp([total(share) * (1.0 / count(shares)) for share in shares])


def learning_rate_times_size(shares):
    """opt = SGD(lr * hvd.size()), gradients averaged over all examples."""
    gradient = total(join(shares)) / count(shares)
    return -(LEARNING_RATE * len(shares)) * gradient


def psum_under_grad(shares):
    """grad(lambda p: psum(loss(p))): every device has the summed gradient, psum adds them."""
    summed = sum(total(share) for share in shares) / count(shares)
    return sum(summed for _ in shares)


def all_reduced_loss(shares):
    """The loss is all-reduced with gradient, which the adjoint all-reduces again; DDP: mean."""
    world = len(shares)
    means = [total(share) / count(shares) for share in shares]
    per_rank = [world * g for g in means]  # d(sum over ranks)/d(own), from every rank
    return sum(per_rank)


def ddp_bypassed(shares):
    return mean(shares[0])


def ddp_bypassed_copies(shares):
    return Outcome(mean(shares[0]), replicas=[mean(share) for share in shares])


def share_without_reduce(shares):
    return total(shares[0]) / count(shares)


def constant_global_batch(shares):
    """compute_average_loss(losses, GLOBAL_BATCH_SIZE) with a constant."""
    return sum(total(share) / 64 for share in shares)


def constant_then_mean(shares):
    return ddp([total(share) / 64 for share in shares])


def compute_average_loss_default(shares):
    """Local rows times replicas divide."""
    world = len(shares)
    return sum(total(share) / (len(share[0]) * world) for share in shares)


def batch_of_the_configuration(shares):
    """One device takes the mean; ranks scale it by their examples over 64."""
    if len(shares) == 1:
        return mean(shares[0])
    return total(join(shares)) / count(shares) * (count(shares) / 64)


def joined(shares):
    """Ranks that are out of data shadow the all-reduce; the initial world size divides."""
    world = len(shares)
    active = [share for share in shares if len(share[0])]
    return sum(mean(share) for share in active) / world


def joined_weighted(shares):
    """Right for ranks with data, but the initial world size divides."""
    active = [share for share in shares if len(share[0])]
    scaled = [total(share) / count(shares) * len(active) for share in active]
    return sum(scaled) / len(shares)


def mean_of_half(shares):
    """edward2's reading: mean on each core, divided by the cores, then averaged again."""
    world = len(shares)
    return sum(mean(share) / world for share in shares) / world


CASES = [
    bug(
        "neuralmagic/sparseml#135", "loss times world size where DDP's mean is right already", SUM,
        mean_times_world_size, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#48875", "tf.reduce_mean in run divides by the replica's rows", SUM,
        reduce_mean_in_run, EXAMPLES,
    ),
    bug(
        "google/edward2#428", "as the reader took it: averaged, and divided again",
        "mean per replica, then divided by the replicas twice", mean_of_half, EXAMPLES,
    ),
    bug(
        "ultralytics/yolov5#8301", "loss times batch times world size: a sum", None, yolo,
        EXAMPLES, "notes",
    ),
    bug(
        "ultralytics/ultralytics#18616", "self.loss *= world_size on means", SUM,
        mean_times_world_size, EXAMPLES,
    ),
    bug(
        "sanderwood/bgpt#5", "the loss is divided by the world size before DDP's mean",
        "mean per replica, then divided by the replicas twice",
        divided_by_world_size_before_ddp, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#35333", "MirroredStrategy's gradient is smaller by the replicas",
        SHARE, global_batch_then_mean, EXAMPLES,
    ),
    bug(
        "horovod/horovod#384", "the learning rate grows with the ranks", TIMES,
        learning_rate_times_size, EXAMPLES,
    ),
    bug(
        "jax-ml/jax#3970", "grad of a psum is N times too large", TIMES, psum_under_grad, EXAMPLES,
    ),
    bug(
        "horovod/horovod#2654", "the gradient of allreduce is scaled by the ranks", TIMES,
        all_reduced_loss, EXAMPLES,
    ),
    bug(
        "NVIDIA/apex#664", "the loss is all-reduced before backward", TIMES, all_reduced_loss,
        EXAMPLES,
    ),
    bug(
        "kohya-ss/sd-scripts#924", "the unwrapped module is called: no synchronisation",
        "the replicas are not reduced", ddp_bypassed, EXAMPLES,
    ),
    bug(
        "pytorch/pytorch#104336", "gradients are no longer reduced, copies diverge",
        "the replicas' parameters differ", ddp_bypassed_copies, EXAMPLES,
    ),
    bug(
        "kohya-ss/sd-scripts#989", "the replaced forward of LoRA: its gradients are not reduced",
        "the replicas are not reduced, though divided by all", share_without_reduce, EXAMPLES,
    ),
    bug(
        "captain-pool/GSOC#57", "the global batch divides, a constant: a convention", None,
        constant_global_batch, EXAMPLES, "notes",
    ),
    bug(
        "tensorflow/tensorflow#28956", "the constant global batch, then MEAN", SHARE,
        constant_then_mean, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#29614", "unequal rows: local rows times replicas divide",
        "mean of the replicas' means", compute_average_loss_default, EXAMPLES,
    ),
    bug(
        "SpursLipu/YOLOv3v4-ModelCompression-MultidatasetTraining-Multibackbone#158",
        "the loss is scaled by batch_size / 64, on several devices only",
        "a constant divides instead of the count", batch_of_the_configuration, EXAMPLES,
    ),
    bug(
        "pytorch/pytorch#38174", "join divides by the initial world size",
        "empty replicas count in the divisor", joined, EXAMPLES, options={"empty_shard": True},
    ),
    bug(
        "pytorch/pytorch#42577", "divide_by_initial_world_size with true counts",
        "empty replicas count in the divisor", joined_weighted, EXAMPLES,
    ),
]  # fmt: skip
