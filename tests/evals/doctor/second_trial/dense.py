"""Segmentation, detection, speech, atoms, codebooks, and samplers that repeat or drop."""

from __future__ import annotations

from torch_ranks import *


def masks(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Pixels with features, and their class."""
    rng = np.random.default_rng(75)
    x = rng.normal(size=(rows, 20, 5)).astype(np.float32)
    share = np.linspace(0.1, 0.8, rows)[:, None]
    return x, (rng.uniform(size=(rows, 20)) < share).astype(np.float32)


def pixels() -> nn.Module:
    """A probability for each pixel."""
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(1), nn.Sigmoid())


MASKS: dict[str, Any] = {"batch": masks, "model": pixels}
COUNTS = [2, 1, 4, 3, 1, 5, 2, 3, 1, 4, 2, 1, 3, 5, 1, 2]


def structures() -> tuple[np.ndarray, ...]:
    """Atoms with features and forces, and which of them exist."""
    rng = np.random.default_rng(76)
    x = rng.normal(size=(16, 5, 8)).astype(np.float32)
    forces = rng.normal(size=(16, 5, 3)).astype(np.float32)
    return x, forces, (np.arange(5) < np.array(COUNTS)[:, None]).astype(np.float32)


def potential() -> nn.Module:
    """Forces on atoms."""
    return nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 3))


ATOMS: dict[str, Any] = {"batch": structures, "model": potential}


def force_losses(model: nn.Module, batch: Any) -> torch.Tensor:
    """Squared errors of atoms that exist."""
    x, forces, exists = batch
    return ((model(x) - forces) ** 2).sum(-1) * exists


def speech() -> tuple[np.ndarray, ...]:
    """Frames, transcripts, and their lengths."""
    rng = np.random.default_rng(77)
    x = rng.normal(size=(16, 9, 5)).astype(np.float32)
    lengths = np.array([2, 1, 3, 2, 1, 3, 3, 1, 2, 1, 3, 2, 1, 3, 2, 1])
    return x, rng.integers(1, 4, size=(16, 3)), lengths


SPEECH: dict[str, Any] = {
    "batch": speech,
    "model": lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)),
}


def ctc(model: nn.Module, batch: Any, reduction: str) -> torch.Tensor:
    """nn.CTCLoss."""
    x, text, lengths = batch
    frames = torch.full((len(x),), x.shape[1])
    logp = model(x).log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(logp, text, frames, lengths, reduction=reduction)


def dice(inside: Any, predicted: Any, true: Any) -> torch.Tensor:
    """1 - 2 |A B| / (|A| + |B|)."""
    return 1 - (2 * inside + 1e-5) / (predicted + true + 1e-5)


@case(
    "qubvel-org/segmentation_models.pytorch#1148",
    "dice of the pixels of a whole batch, on each GPU",
    "a ratio of the replica's own sums, over R",
    named="batch statistics are not synchronised",
    equal_shards=True, **MASKS,
)  # fmt: skip
def dice_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = model(x)
    dice((p * y).sum(), p.sum(), y.sum()).backward()
    rank.average(model)


@case(
    "qubvel-org/segmentation_models.pytorch#1148",
    "image-wise: dice of each image, then the mean",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def dice_of_images(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = model(x)
    dice((p * y).sum(1), p.sum(1), y.sum(1)).mean().backward()
    rank.average(model)


@case(
    "ScrollPrize/villa#1501",
    "sums of all ranks are gathered with gradients and stacked before dice is taken",
    "the ratio of the sums of all",
    "right",
    **MASKS,
)
def dice_of_gathered_sums(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = model(x)
    sums = torch.stack([(p * y).sum(), p.sum(), y.sum()])[None]
    dice(*rank.gather_with_grad(sums).sum(0)).backward()
    rank.average(model)


@case(
    "BloodAxe/pytorch-toolbelt#99",
    "dice of the entire batch, taken of each accumulated micro-batch instead",
    "a ratio of the micro-batch's own sums, over K",
    named="batch statistics are those of each micro-batch",
    **MASKS, micro_batches=(1, 2), replicas=(1,), equal_shards=True,
)  # fmt: skip
def dice_of_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        p = model(x)
        (dice((p * y).sum(), p.sum(), y.sum()) / len(window)).backward()


@case(
    "open-mmlab/mmsegmentation#740",
    "online hard examples: the half of this GPU's pixels with the largest losses",
    "0 or 1 / (R n_r / 2): which ones are kept depends on the replica's share",
    named="batch statistics are not synchronised",
    equal_shards=True, **MASKS,
)  # fmt: skip
def hardest_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    losses = F.binary_cross_entropy(model(x), y, reduction="none").flatten()
    losses.topk(len(losses) // 2).values.mean().backward()
    rank.average(model)


@case(
    "open-mmlab/mmsegmentation#740",
    "hard examples by a threshold of the loss, over the kept pixels of all GPUs",
    "w_i / W with the kept pixels for weights",
    "right",
    **MASKS,
)
def harder_than_a_threshold(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    losses = F.binary_cross_entropy(model(x), y, reduction="none")
    kept = (losses.detach() > 0.6).float()
    (losses * kept).sum().div(rank.all_reduce(kept.sum())).mul(rank.world_size).backward()
    rank.average(model)


@case(
    "liuyuisanai/Focal-Loss#12",
    "the focal loss over all anchors, of which each image has as many",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def all_anchors(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = model(x)
    focal = (p - y).abs().detach() ** 2 * F.binary_cross_entropy(p, y, reduction="none")
    (focal.sum() / focal.numel()).backward()
    rank.average(model)


@case(
    "weiliu89/caffe#618",
    "the confidence loss of all anchors over the number of matches of this GPU's batch",
    "1 / (R W_r) with W_r matches, for the sum over all anchors of an example",
    named="mean of the replicas' means",
    **MASKS,
)
def over_matches(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    conf_loss = F.binary_cross_entropy(model(x), y, reduction="sum")
    (conf_loss / y.sum().clamp(min=1)).backward()
    rank.average(model)


@case(
    "atomistic-machine-learning/schnetpack#5",
    "torch.sum over structures of errors per atom, averaged by DDP",
    "1 / (R a_i), a_i the atoms of the structure: R times too small",
    named="divided by the global batch, then averaged",
    **ATOMS,
)
def sum_of_structures(rank: Rank, model: nn.Module, share: Any) -> None:
    per_structure = force_losses(model, share).sum(1) / share[2].sum(1)
    per_structure.sum().backward()
    rank.average(model)


@case(
    "aiqm/torchani#51",
    "the error per atom of each structure, then the mean over structures of equal shares",
    "1 / (R n_r a_i), which is 1 / (N a_i) for equal shares",
    "even",
    **ATOMS,
)
def per_atom_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    (force_losses(model, share).sum(1) / share[2].sum(1)).mean().backward()
    rank.average(model)


@case(
    "deepmodeling/deepmd-kit#177",
    "forces are averaged over the atoms of a rank, energies over its structures; ranks averaged",
    "two parts: w_i / (R W_r) for forces, 1 / (R n_r) for energies",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    **ATOMS,
)
def forces_and_energies(rank: Rank, model: nn.Module, share: Any) -> None:
    x, _, exists = share
    force_loss = force_losses(model, share).sum() / exists.sum()
    energies = (model(x).sum(-1) * exists).sum(1)
    (force_loss + 0.1 * ((energies - 1) ** 2).mean()).backward()
    rank.average(model)


@case(
    "bay1/card-crnn-ctpn#4",
    "CTCLoss averages already, and the cost is divided by the batch size again",
    "1 / (R n_r^2)",
    named=(
        "the weights of each replica divides; the weights of each replica divides; all is "
        "divided by the replicas"
    ),
    **SPEECH,
)
def ctc_divided_again(rank: Rank, model: nn.Module, share: Any) -> None:
    (ctc(model, share, "mean") / len(share[0])).backward()
    rank.average(model)


@case(
    "SeanNaren/warp-ctc#20",
    "size_average: the sum of the costs over the label lengths of this worker's batch",
    "1 / (R W_r), W_r the labels of the replica",
    named="mean of the replicas' means",
    **SPEECH,
)
def ctc_over_lengths(rank: Rank, model: nn.Module, share: Any) -> None:
    (ctc(model, share, "sum") / share[2].sum()).backward()
    rank.average(model)


@case(
    "SeanNaren/deepspeech.pytorch#319",
    "the sum of CTC costs over the utterances of all workers",
    "1 / N",
    "right",
    **SPEECH,
)
def ctc_over_utterances(rank: Rank, model: nn.Module, share: Any) -> None:
    utterances = rank.all_reduce(len(share[0]))
    (ctc(model, share, "sum") / utterances * rank.world_size).backward()
    rank.average(model)


class Codebook(nn.Module):
    """An encoder, fixed codes, and the moving sums of what is assigned to them."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 3)
        codes = torch.randn(5, 3)
        self.register_buffer("cluster_size", torch.full((5,), 2.0))
        self.register_buffer("embed_avg", codes * 2)

    def assigned(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Latents, their codes, and one-hot assignments."""
        z, codes = self.encoder(x), self.embed_avg / self.cluster_size[:, None]
        onehot = F.one_hot(torch.cdist(z.detach(), codes).argmin(1), 5).float()
        return z, onehot @ codes, onehot


CODES: dict[str, Any] = {"model": Codebook, "where": "statistics"}


def commit(rank: Rank, model: Any, x: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A right commitment loss; returns this rank's sums."""
    z, codes, onehot = model.assigned(x)
    loss = ((z - codes) ** 2).sum() / rank.all_reduce(len(x)) * rank.world_size
    loss.backward()
    rank.average(model)
    return onehot.sum(0), onehot.T @ z.detach()


@case(
    "zalandoresearch/pytorch-vq-vae#5",
    "the codebook's moving sums are those of what a process has seen",
    "sums of the first replica's examples only, in the codebook",
    named="the statistics are those of one replica",
    **CODES,
)
def codebook_of_a_process(rank: Rank, model: Any, share: Any) -> None:
    size, total = commit(rank, model, share[0])
    model.cluster_size = 0.8 * model.cluster_size + 0.2 * size
    model.embed_avg = 0.8 * model.embed_avg + 0.2 * total


@case(
    "lucidrains/vector-quantize-pytorch#220",
    "cluster sizes and sums are all-reduced before the moving average",
    "sums of all examples, in the codebook",
    "right",
    **CODES,
)
def codebook_of_all(rank: Rank, model: Any, share: Any) -> None:
    size, total = commit(rank, model, share[0])
    model.cluster_size = 0.8 * model.cluster_size + 0.2 * rank.all_reduce(size)
    model.embed_avg = 0.8 * model.embed_avg + 0.2 * rank.all_reduce(total)


@case(
    "facebookresearch/multimodal#47",
    "sums are averaged over ranks, as gradients are, though decay and history are those of one",
    "1 / R of the sums of all, in the codebook",
    named="in the statistics: divided by the global batch, then averaged",
    **CODES,
)
def codebook_averaged(rank: Rank, model: Any, share: Any) -> None:
    size, total = commit(rank, model, share[0])
    size, total = (rank.all_reduce(v) / rank.world_size for v in (size, total))
    model.cluster_size = 0.8 * model.cluster_size + 0.2 * size
    model.embed_avg = 0.8 * model.embed_avg + 0.2 * total


def padded(rank: Rank, share: Any) -> Any:
    """A sampler that repeats a rank's first examples, so that all ranks have as many."""
    longest = max(rank.exchange(len(share[0])))
    again = torch.arange(longest) % len(share[0])
    return tuple(a[again] for a in share)


@case(
    "roboflow/rf-detr#1507",
    "the padding of a sampler is trained on, too: ranks with few examples repeat them",
    "c_i / (R n_max), c_i how often an example is repeated",
    named="shards are padded by repeating examples",
)
def repeated_examples(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, padded(rank, share)).backward()
    rank.average(model)


@case(
    "mosaicml/composer#2218",
    "duplicates of the sampler's padding are sliced off",
    "1 / N",
    "right",
)
def duplicates_sliced_off(rank: Rank, model: nn.Module, share: Any) -> None:
    own = len(share[0])
    batch = tuple(a[:own] for a in padded(rank, share))
    (sum_loss(model, batch) / rank.all_reduce(own) * rank.world_size).backward()
    rank.average(model)


@case(
    "areal-project/AReaL#1096",
    "drop_last is hard-coded: what is left after full batches of two is dropped on each rank",
    "1 / (R m_r) for the first m_r = 2 floor(n_r / 2) examples, else 0; a share of one is kept",
    named=(
        "examples of a share that do not fill a batch of 2 are dropped; the weights of each "
        "replica divides; all is divided by the replicas"
    ),
    replicas=(2, 3),
)
def last_is_dropped(rank: Rank, model: nn.Module, share: Any) -> None:
    kept = [b for b in pieces(share, 2) if len(b[0]) == 2] or [share]
    total = sum(len(b[0]) for b in kept)
    for batch in kept:
        (sum_loss(model, batch) / total).backward()
    rank.average(model)
