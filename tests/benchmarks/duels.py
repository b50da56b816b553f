"""What is compared with what, and what samegrad promises to reach in each comparison."""

from __future__ import annotations

from dataclasses import dataclass

from workloads import CLASSES, EMBEDDINGS, GIVEN, PIXELS
from workloads import DENSE as DENSE_WIDTHS


@dataclass(frozen=True)
class Side:
    """One contestant: a backend of peers.py with its replicas and the batch of each."""

    backend: str
    replicas: int
    batch: int

    @property
    def label(self) -> str:
        return f"{self.backend} {self.replicas}x{self.batch}"


@dataclass(frozen=True)
class Goal:
    """A bound on one figure of a summary (see table.summarize)."""

    figure: str
    bound: float
    at_most: bool = False

    @property
    def text(self) -> str:
        return f"{self.figure} {'≤' if self.at_most else '≥'} {self.bound:g}"

    def met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(frozen=True)
class Duel:
    name: str
    workload: str
    ours: Side
    other: Side
    goals: tuple[Goal, ...] = ()


MEMORY = Goal("memory_mib", 450, at_most=True)

# Both sides of a CNN duel train on the same global batch, so a step is the same work.
DUELS = (
    Duel(
        "cnn-tf",
        "cnn",
        Side("samegrad", 2, 64),
        Side("tf", 2, 64),
        (Goal("speedup", 2), Goal("peak_share", 0.45), MEMORY),
    ),
    Duel(
        "cnn-torch",
        "cnn",
        Side("samegrad", 2, 64),
        Side("torch", 1, 128),
        (Goal("speedup", 2.5),),
    ),
    Duel("cnn-ddp", "cnn", Side("samegrad", 2, 64), Side("ddp", 2, 64)),
    Duel("cnn-jax", "cnn", Side("samegrad", 2, 64), Side("jax", 2, 64)),
    Duel(
        "cnn-replicas",
        "cnn",
        Side("samegrad", 8, 64),
        Side("samegrad", 1, 512),
        (Goal("speedup", 0.95), Goal("memory_ratio", 1.1, at_most=True), MEMORY),
    ),
    Duel(
        "tiny-1",
        "tiny",
        Side("samegrad", 1, 8),
        Side("jax", 1, 8),
        (Goal("step_us", 10, at_most=True),),
    ),
    Duel(
        "tiny-8",
        "tiny",
        Side("samegrad", 8, 8),
        Side("jax", 2, 8),
        (Goal("step_us", 20, at_most=True),),
    ),
)

# The penalty's double backward, on one global batch of 64.
DUELS += (
    Duel(
        "wgan-tf",
        "wgan_gp",
        Side("samegrad", 2, 32),
        Side("tf", 2, 32),
        (Goal("speedup", 1.5),),
    ),
    Duel(
        "wgan-torch",
        "wgan_gp",
        Side("samegrad", 2, 32),
        Side("torch", 1, 64),
        (Goal("speedup", 1.5), Goal("memory_ratio", 0.5, at_most=True)),
    ),
)

# A translator's step; TensorFlow is the best peer in time, PyTorch in memory.
DUELS += tuple(
    Duel(
        f"transformer-{peer}-{replicas}",
        "transformer",
        Side("samegrad", replicas, 32),
        Side("tf", replicas, 32) if peer == "tf" else Side("torch", 1, 32 * replicas),
        (Goal("speedup", 1.5), Goal("memory_ratio", 0.5, at_most=True)),
    )
    for peer in ("tf", "torch")
    for replicas in (1, 2)
)

DENSE = tuple(
    Duel(
        f"dense-{width}",
        f"dense_{width}",
        Side("samegrad", 2, batch // 2),
        Side("torch", 1, batch),
        (Goal("speedup", 1.15),),
    )
    for width, batch in ((1024, 64), (2048, 256), (4096, 256))
)
DUELS += (
    *DENSE,
    Duel(
        "dense-replicas",
        "dense_4096",
        Side("samegrad", 8, 32),
        Side("samegrad", 1, 256),
        (Goal("speedup", 0.95), Goal("memory_ratio", 1.1, at_most=True)),
    ),
)

DUELS += tuple(
    Duel(
        name.replace("_", "-"),
        name,
        Side("samegrad", 2, 2048),
        Side("torch", 1, 4096),
        (Goal("speedup", 2),),
    )
    for name in EMBEDDINGS
)

# One global batch on many replicas is the same work as on one.
EVEN = Goal("speedup", 0.95)
DUELS += tuple(
    Duel(
        f"{name}-64-replicas",
        workload,
        Side("samegrad", 64, 8),
        Side("samegrad", 1, 512),
        (EVEN,),
    )
    for name, workload in (("cnn", "cnn"), ("dense", "dense_1024"))
)

RESNET = "resnet50"
DUELS += (
    Duel(
        "resnet-tf",
        RESNET,
        Side("samegrad", 1, 32),
        Side("tf", 1, 32),
        (Goal("speedup", 1.3), Goal("memory_ratio", 1, at_most=True)),
    ),
    Duel("resnet-torch", RESNET, Side("samegrad", 1, 32), Side("torch", 1, 32)),
    Duel(
        "resnet-replicas",
        RESNET,
        Side("samegrad", 8, 4),
        Side("samegrad", 1, 32),
        (EVEN, Goal("memory_ratio", 1.1, at_most=True)),
    ),
)

# Memory is what a block of long sentences is about.
BLOCK = "bert_block"
LESS = Goal("memory_ratio", 1, at_most=True)
DUELS += (
    Duel("bert-block-torch", BLOCK, Side("samegrad", 2, 4), Side("torch", 1, 8), (LESS,)),
    Duel("bert-block-tf", BLOCK, Side("samegrad", 2, 4), Side("tf", 2, 4), (LESS,)),
    Duel(
        "bert-block-plain-torch",
        "bert_block_plain",
        Side("samegrad", 2, 4),
        Side("torch", 1, 8),
        (LESS,),
    ),
    Duel(
        "bert-block-replicas",
        BLOCK,
        Side("samegrad", 8, 1),
        Side("samegrad", 1, 8),
        (EVEN, Goal("memory_ratio", 1.1, at_most=True)),
    ),
)

DUELS += tuple(
    Duel(
        f"given-{millions}",
        f"given_{millions}",
        Side("samegrad", replicas, 1),
        Side("ddp", replicas, 1),
        (Goal("peak_share", 0.7), Goal("speedup", 2)),
    )
    for millions, replicas in ((25, 8), (50, 2))
)

IMPORT_GOAL = Goal("added_s", 0.1, at_most=True)


def cnn_flop_per_image() -> int:
    """Returns the floating-point operations of one image through the CNN, there and back.

    A product or convolution with P outputs, each the sum of K products, takes 2·P·K:

    ========  ==========================  =====  ===========
    layer     P                           K      2·P·K
    ========  ==========================  =====  ===========
    conv 1    26·26 positions · 32        3·3·1      389,376
    conv 2    11·11 positions · 64        3·3·32   4,460,544
    dense 1   64                          1,600      204,800
    dense 2   10                          64           1,280
    ========  ==========================  =====  ===========

    Going back, each layer takes the same once for its weights' gradient and once for its
    input's; the images themselves need none. That is 3 · 5,056,000 - 389,376 = 14,778,624.
    Bias, relu, pooling, the loss and the optimizer are left out: below 1 %.
    """
    layers = [(26 * 26 * 32, 9), (11 * 11 * 64, 9 * 32), (64, 1600), (10, 64)]
    forward = [2 * outputs * products for outputs, products in layers]
    return 3 * sum(forward) - forward[0]


def work_per_unit(duel: Duel) -> int:
    """Returns what the meter of the duel counts: operations of an example, bytes of a parameter.

    All-reduce and Adam read a gradient of each replica, and read and write the weight and its two
    moments, four bytes each.
    """
    if duel.workload in GIVEN:
        return 4 * (duel.ours.replicas + 6)
    return flop_per_unit(duel.workload)


def flop_per_unit(workload: str) -> int:
    """Returns the floating-point operations of an example, there and back, of cnn and dense_*.

    784-W-W-10 takes 2·(784·W + W·W + W·10) forwards, and twice that going back, but for the
    gradient of its input.
    """
    if workload == "cnn":
        return cnn_flop_per_image()
    width = DENSE_WIDTHS[workload]
    return 2 * (2 * PIXELS * width + 3 * width * width + 3 * width * CLASSES)
