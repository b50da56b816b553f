"""What is compared with what, and what samegrad promises to reach in each comparison."""

from __future__ import annotations

from dataclasses import dataclass

from models import MODELS
from workloads import CLASSES, EMBEDDINGS, GIVEN, PIXELS
from workloads import DENSE as DENSE_WIDTHS


@dataclass(frozen=True)
class Side:
    """One contestant: a backend of peers.py with its replicas and the batch of each.

    `threads` is per process; None leaves it to the command line.
    """

    backend: str
    replicas: int
    batch: int
    threads: int | None = None

    @property
    def label(self) -> str:
        threads = f" on {self.threads}" if self.threads else ""
        return f"{self.backend} {self.replicas}x{self.batch}{threads}"


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
    """A workload on samegrad and on its peers. The fastest peer counts."""

    name: str
    workload: str
    ours: Side
    others: tuple[Side, ...]
    goals: tuple[Goal, ...] = ()

    @property
    def title(self) -> str:
        """The row of a table."""
        return TITLES[self.workload]

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.ours, *self.others)


def duel(name: str, ours: Side, *others: Side, workload: str = "", goals: list[Goal]) -> Duel:
    """Return a duel of the workload of its name, unless another one is given."""
    return Duel(name, workload or name, ours, others, tuple(goals))


def own(replicas: int, batch: int, threads: int | None = None) -> Side:
    return Side("samegrad", replicas, batch, threads)


def speedup(bound: float, peer: str = "") -> Goal:
    return Goal(f"speedup_{peer}" if peer else "speedup", bound)


def memory(ratio: float) -> Goal:
    return Goal("memory_ratio", ratio, at_most=True)


EVEN = speedup(0.95)  # one global batch on many replicas is the same work as on one
MEMORY = Goal("memory_mib", 450, at_most=True)
BLOCK = "bert_block"
TITLES = {
    "cnn": "CNN of the tutorial",
    "tiny": "network of two layers",
    "wgan_gp": "WGAN-GP, critic and generator",
    "transformer": "Transformer, loss per token",
    BLOCK: "block of BERT-base",
    "bert_block_plain": "block of BERT-base, no dropout of attention",
    **{name: f"dense layers 784-{width}-{width}-10" for name, width in DENSE_WIDTHS.items()},
    **{
        name: f"embedding of {rows:,} rows, {'SGD' if kind == 'sparse_sgd' else 'lazy Adam'}"
        for name, (kind, rows) in EMBEDDINGS.items()
    },
    **{name: f"all-reduce and Adam, {n} million weights" for name, n in GIVEN.items()},
    **{name: model.title for name, model in MODELS.items()},
}
# Workloads whose small batches give each thread a part of an example.
SHARED_EXAMPLES = ("resnet50", "unet", "gpt", "vit", "attention")

DUELS = (
    # Everybody trains the tutorial's CNN on the same global batch, so a step is the same work.
    duel(
        "cnn",
        own(2, 64),
        Side("tf", 2, 64),
        Side("torch", 1, 128),
        Side("ddp", 2, 64),
        Side("jax", 2, 64),
        goals=[speedup(2, "tf"), speedup(2.5, "torch"), Goal("peak_share", 0.45), MEMORY],
    ),
    duel("cnn_replicas", own(8, 64), own(1, 512), workload="cnn", goals=[EVEN, memory(1.1)]),
    duel("cnn_64_replicas", own(64, 8), own(1, 512), workload="cnn", goals=[EVEN]),
    duel("tiny", own(1, 8), Side("jax", 1, 8), goals=[Goal("step_us", 10, at_most=True)]),
    duel(
        "tiny_8",
        own(8, 8),
        Side("jax", 2, 8),
        workload="tiny",
        goals=[Goal("step_us", 20, at_most=True)],
    ),
    # The penalty's double backward, on one global batch of 64.
    duel(
        "wgan_gp",
        own(2, 32),
        Side("tf", 2, 32),
        Side("torch", 1, 64),
        goals=[speedup(1.5), memory(0.5)],
    ),
    # A translator's step; TensorFlow is the best peer in time, PyTorch in memory.
    *(
        duel(
            f"transformer_{replicas}",
            own(replicas, 32),
            Side("tf", replicas, 32),
            Side("torch", 1, 32 * replicas),
            workload="transformer",
            goals=[speedup(1.5), memory(0.5)],
        )
        for replicas in (1, 2)
    ),
    *(
        duel(f"dense_{width}", own(2, batch), Side("torch", 1, 2 * batch), goals=[speedup(1.15)])
        for width, batch in ((1024, 32), (2048, 128), (4096, 128))
    ),
    duel(
        "dense_replicas",
        own(8, 32),
        own(1, 256),
        workload="dense_4096",
        goals=[EVEN, memory(1.1)],
    ),
    duel("dense_64_replicas", own(64, 8), own(1, 512), workload="dense_1024", goals=[EVEN]),
    *(duel(name, own(2, 2048), Side("torch", 1, 4096), goals=[speedup(2)]) for name in EMBEDDINGS),
    duel("resnet_replicas", own(8, 4), own(1, 32), workload="resnet50", goals=[EVEN, memory(1.1)]),
    # Memory is what a block of long sentences is about.
    duel(BLOCK, own(2, 4), Side("torch", 1, 8), Side("tf", 2, 4), goals=[memory(1)]),
    duel("bert_block_plain", own(2, 4), Side("torch", 1, 8), goals=[memory(1)]),
    duel("bert_block_replicas", own(8, 1), own(1, 8), workload=BLOCK, goals=[EVEN, memory(1.1)]),
    *(
        duel(
            f"given_{millions}",
            own(replicas, 1),
            Side("ddp", replicas, 1),
            goals=[Goal("peak_share", 0.7), speedup(2)],
        )
        for millions, replicas in ((25, 8), (50, 2))
    ),
    # Kinds of models: every peer computes what models.py describes.
    *(
        duel(
            name,
            own(1, model.batch),
            *(Side(peer, 1, model.batch) for peer in model.peers),
            goals=[speedup(1.3), memory(0.8)],
        )
        for name, model in MODELS.items()
    ),
    *(
        duel(
            f"{name}_threads_{batch}",
            own(1, batch, threads=2),
            own(1, batch, threads=1),
            workload=name,
            goals=[speedup(1.8)],
        )
        for name in SHARED_EXAMPLES
        for batch in (1, 2)
    ),
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
