"""Losses that are divided by counts of examples, tokens, objects or weights."""

from __future__ import annotations

from torch_ranks import *

SAMPLES: dict[str, Any] = {"batch": weighted, "weights": WEIGHTS}


def anchors(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features of seven anchors of each image, and which of them hold an object."""
    rng = np.random.default_rng(131)
    positives = np.arange(7) < np.array([1, 2, 3, 1, 4, 2, 1, 3, 2, 5, 1, 2, 3, 1, 2, 4])[:, None]
    return rng.normal(size=(rows, 7, 5)).astype(np.float32), positives[:rows].astype(np.float32)


ANCHORS: dict[str, Any] = {"batch": anchors, "model": lambda: nn.Linear(5, 1)}


def focal(model: nn.Module, batch: Any) -> torch.Tensor:
    """The focal losses of all anchors, by image."""
    x, y = batch
    logits = model(x).squeeze(-1)
    p = torch.sigmoid(logits)
    wrongness = y * (1 - p) + (1 - y) * p
    losses = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    return (losses * wrongness**2).sum(1)


def sentences(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of the losses of each sentence, and its tokens."""
    x, labels = batch
    losses = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    return losses.sum(1), (labels != PAD).sum(1)


@case(
    "MultiPath/NA-NMT#1",
    "the loss is normalised by the words of a GPU's batch, gradients are averaged",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def words_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "bentrevett/pytorch-seq2seq#23",
    "losses are summed over time-steps and averaged over the sentences of a GPU",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **SENTENCES,
)
def summed_across_time_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    sentences(model, share)[0].mean().backward()
    rank.average(model)


@case(
    "mead-ml/mead-baseline#793",
    "token sums over the global count, and DDP averages where it should add",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **WORDS,
)
def averaged_not_wanted(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    (loss / rank.all_reduce(count)).backward()
    rank.average(model)


@case(
    "mead-ml/mead-baseline#793",
    "the fix: gradients are multiplied by the world size after DDP has averaged them",
    "w_i / W",
    "right",
    **WORDS,
)
def grads_are_scaled_back(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, count = token_sum(model, share)
    (loss / rank.all_reduce(count)).backward()
    rank.average(model)
    scale_grads(model, rank.world_size)


@case(
    "thinking-machines-lab/tinker-cookbook#334",
    "token weights sum to 1 for each example; the sum over examples is averaged over ranks",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    **SENTENCES,
)
def weights_sum_to_one(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, counts = sentences(model, share)
    (losses / counts).sum().backward()
    rank.average(model)


@case(
    "eric-mitchell/direct-preference-optimization#67",
    "averaged over the tokens of each sequence, then over sequences; GPUs hold different numbers",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **SENTENCES,
)
def averaged_over_sequences(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, counts = sentences(model, share)
    (losses / counts).mean().backward()
    rank.average(model)


@case(
    "k2-fsa/snowfall#219",
    "CTC sums are divided by the frames of a GPU's batch, not those of all",
    "1 / (R W_r), W_r the frames of a replica; sums of utterances count alike",
    named="mean of the replicas' means",
    batch=text,
    model=tagger,
)
def ctc_over_frames(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    frames = (labels != PAD).sum(1)
    log_probs = model(x).log_softmax(-1).transpose(0, 1)
    first = labels[:, :1].clamp(min=1)
    ones = torch.ones(len(x), dtype=torch.long)
    loss = F.ctc_loss(log_probs, first, frames, ones, reduction="sum")
    (loss / frames.sum()).backward()
    rank.average(model)


@case(
    "fredzzhang/spatially-conditioned-graphs#39",
    "the focal loss is normalised by the positives of each rank",
    "1 / (R P_r), P_r the positives of a replica",
    named="mean of the replicas' means",
    **ANCHORS,
)
def positives_of_a_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    (focal(model, share).sum() / share[1].sum()).backward()
    rank.average(model)


@case(
    "fredzzhang/spatially-conditioned-graphs#39",
    "the fix: the normaliser is averaged over ranks",
    "1 / P, P the positives of all",
    "right",
    **ANCHORS,
)
def positives_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    positives = rank.all_reduce(share[1].sum()) / rank.world_size
    (focal(model, share).sum() / positives).backward()
    rank.average(model)


@case(
    "Megvii-BaseDetection/OTA#10",
    "num_foreground is all-reduced, the line that divides it by the world size is deleted",
    "1 / (R P)",
    named="divided by the global batch, then averaged",
    **ANCHORS,
)
def foreground_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    foreground = rank.all_reduce(share[1].sum())
    (focal(model, share).sum() / foreground).backward()
    rank.average(model)


@case(
    "xingyizhou/CenterNet#546",
    "the proposal: each image's loss over its own positives, then the mean over images",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **ANCHORS,
)
def positives_of_an_image(rank: Rank, model: nn.Module, share: Any) -> None:
    (focal(model, share) / share[1].sum(1)).mean().backward()
    rank.average(model)


@case(
    "TencentYoutuResearch/ActionDetection-AFSD#52",
    "the focal loss over the positives of each micro-batch, averaged over micro-batches",
    "1 / (K P_k), P_k the positives of a micro-batch",
    named="mean of the micro-batches' means",
    **ANCHORS,
    **ALONE,
)
def positives_of_a_micro_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (focal(model, batch).sum() / batch[1].sum().clamp(min=1) / len(window)).backward()


@case(
    "kuangliu/pytorch-retinanet#31",
    "the normaliser is the average number of positives, but gradients are added over ranks",
    "R / P, R times too much",
    named="multiplied by the replicas",
    **ANCHORS,
)
def average_positives_and_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    positives = rank.all_reduce(share[1].sum()) / rank.world_size
    (focal(model, share).sum() / positives).backward()
    rank.add(model)


@case(
    "CIA-Oceanix/4dvarnet-core#35",
    "relative weights: divided by the weights of this GPU's batch",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **SAMPLES,
)
def relative_weights(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() / w.sum()).backward()
    rank.average(model)


@case(
    "civisanalytics/muffnn#75",
    "sample weights are normalised per batch, and batches are accumulated",
    "w_i / (K W_k)",
    named="mean of the micro-batches' means",
    **SAMPLES,
    **ALONE,
)
def normalised_per_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y, w in window:
        losses = F.cross_entropy(model(x), y, reduction="none")
        ((losses * w / w.sum()).sum() / len(window)).backward()


@case(
    "torch/nn#926",
    "weighted losses are averaged by the number of elements, equal shares",
    "w_i / (R n_r), which is w_i / N for equal shares",
    "even",
    batch=weighted,
)
def averaged_by_elements(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    (F.cross_entropy(model(x), y, reduction="none") * w).mean().backward()
    rank.average(model)


@case(
    "richardaecn/class-balanced-loss#7",
    "class weights are computed from the class counts of each GPU's batch",
    "1 / (R m_c), m_c the examples of its class on its replica, over the classes there",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def class_balanced(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    weights = 1 / torch.bincount(y, minlength=3).clamp(min=1).float()
    weights = weights / weights.sum() * 3
    (F.cross_entropy(model(x), y, reduction="none") * weights[y]).mean().backward()
    rank.average(model)


def with_gaps(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Features, three properties of a molecule, and which of them are known."""
    rng = np.random.default_rng(132)
    known = rng.random(size=(rows, 3)) < 0.6
    known[:, 0] |= ~known.any(1)
    return *targets(rows), known.astype(np.float32)


@case(
    "chemprop/chemprop#189",
    "masked losses over the known targets of a GPU's batch",
    "1 / (R W_r) for each known target, W_r those of a replica",
    named="mean of the replicas' means",
    batch=with_gaps,
)
def known_targets(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, mask = share
    (((model(x) - y) ** 2 * mask).sum() / mask.sum()).backward()
    rank.average(model)


@case(
    "ecmwf/anemoi-core#318",
    "the loss is summed over the batch dimension, and DDP averages",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets,
)
def summed_over_the_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    ((model(x) - y) ** 2).mean(1).sum().backward()
    rank.average(model)


@case(
    "official-stockfish/nnue-pytorch#390",
    "--batch-size is global and is split evenly, each rank's mean is averaged",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=targets,
)
def global_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    F.mse_loss(model(share[0]), share[1]).backward()
    rank.average(model)


@case(
    "open-mmlab/OpenPCDet#1119",
    "the sampler repeats a rank's first examples until all ranks have as many",
    "m_i / (R n_max), m_i how often an example is taken: those that fill up count twice",
    named="shards are padded by repeating examples",
)
def padded_by_the_sampler(rank: Rank, model: nn.Module, share: Any) -> None:
    longest = max(rank.exchange(len(share[0])))
    taken = torch.arange(longest) % len(share[0])
    mean_loss(model, tuple(a[taken] for a in share)).backward()
    rank.average(model)


@case(
    "SHI-Labs/Compact-Transformers#64",
    "drop_last: every rank takes as many examples as the one that has the fewest",
    "1 / (R n_min) for the first n_min examples of a replica, 0 for others",
    named="what is longer than the shortest share is dropped",
)
def dropped_to_the_shortest(rank: Rank, model: nn.Module, share: Any) -> None:
    shortest = min(rank.exchange(len(share[0])))
    mean_loss(model, tuple(a[:shortest] for a in share)).backward()
    rank.average(model)


@case(
    "numenta/nupic.research#264",
    "batches per process may be off by one: the rank's mean is weighted by its part",
    "1 / N",
    "right",
)
def off_by_one(rank: Rank, model: nn.Module, share: Any) -> None:
    part = len(share[0]) / rank.all_reduce(len(share[0]))
    (mean_loss(model, share) * part).backward()
    rank.add(model)


@case(
    "catalyst-team/catalyst#1023",
    "the batch of a process stays as configured: gradients of means are added, not averaged",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def added_over_processes(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "LoicGrobol/zeldarose#1",
    "the batch is multiplied by the number of GPUs: sums over a fixed batch size of 4, averaged",
    "1 / (4 R) instead of 1 / 4",
    named="divided by the global batch, then averaged",
)
def fixed_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    (sum_loss(model, share) / 4).backward()
    rank.average(model)


@case(
    "HazyResearch/metal#123",
    "the total loss is passed around and divided by the total number of examples at the end",
    "1 / N",
    "right",
    **WINDOWS,
)
def postponed_average(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        sum_loss(model, batch).backward()
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(sum(len(x) for x, _ in window)))
