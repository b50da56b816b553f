"""Padding, missing labels, sample and class weights, atoms, and two terms of a loss."""

from __future__ import annotations

from torch_ranks import *

from .common import NUMBERS, WEIGHTED, over_all


def each_token(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The losses of tokens, 0 for padding, and a mask: rows are examples."""
    x, labels = batch
    losses = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    return losses, (labels != PAD).float()


def labelled(batch: Any) -> Any:
    """Every third example has no label."""
    x, y = batch
    return x, torch.where(x[:, 0] > 0.4, -1, y)


@case(
    "d2l-ai/d2l-en#2076",
    "the mean over time steps, padding included, is summed over the batch: a constant each",
    "w_i / 7 of an example's mean, 7 the length with padding",
    "right",
    **SENTENCES, **ALONE,
)  # fmt: skip
def mean_over_time_then_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        losses, _ = each_token(model, batch)
        losses.mean(dim=1).sum().backward()


@case(
    "d2l-ai/d2l-en#2707",
    "sums over time, divided by the tokens of this rank's batch, DDP averages",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def over_the_tokens_of_a_rank(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    (losses.sum(dim=1).sum() / mask.sum()).backward()
    rank.average(model)


@case(
    "huggingface/lerobot#3377",
    "after: (loss * mask).sum() / mask.sum() of a rank's padded actions",
    "w_i / (R W_r), with w_i the actions that are not padding",
    named="mean of the replicas' means",
    **WORDS,
)
def actions_that_are_no_padding(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    ((losses * mask).sum() / mask.sum().clamp_min(1)).backward()
    rank.average(model)


@case(
    "DeepX-inc/machina#198",
    "before: torch.mean(loss * out_masks), steps that are masked count in the mean",
    "w_i / (R 7 n_r), which is a constant for equal shares",
    "even",
    **SENTENCES,
)
def mean_with_masked_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    torch.mean(losses * mask).backward()
    rank.average(model)


@case(
    "uncbiag/ICON#83",
    "as proposed: torch.sum(loss) / torch.sum(mask), in each of several small batches",
    "w_i / (K W_k), with w_i the pixels in the mask",
    named="mean of the micro-batches' means",
    **WORDS, **ALONE,
)  # fmt: skip
def over_the_mask(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        losses, mask = each_token(model, batch)
        ((losses * mask).sum() / mask.sum() / len(micros(share))).backward()


@case(
    "hpcaitech/Open-Sora#7",
    "losses of frames in the mask, over the mask of all ranks",
    "w_i / W",
    "right",
    **WORDS,
)
def over_the_mask_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    total, count = token_sum(model, share)
    over_all(rank, total, count).backward()
    rank.average(model)


@case(
    "IBM/pytorch-seq2seq#125",
    "size_average with weights[pad] = 0 over padded positions: all are counted",
    "w_i / (7 N)",
    "right",
    **SENTENCES, **ALONE,
)  # fmt: skip
def padding_is_counted(rank: Rank, model: nn.Module, share: Any) -> None:
    positions = sum(batch[1].numel() for batch in micros(share))
    for batch in micros(share):
        (token_sum(model, batch)[0] / positions).backward()


@case(
    "allenai/bi-att-flow#67",
    "the mean of losses over a tower's questions, empty ones included; towers are averaged",
    "1 / (R n_r) of an example's sum, which is 1 / N for equal shares",
    "even",
    **SENTENCES,
)
def empty_questions_included(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    nonempty = (mask.sum(1) > 0).float()
    (losses.sum(1) * nonempty).mean().backward()
    rank.average(model)


def supervised(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum over examples that have a label, and how many."""
    x, y = labelled(batch)
    return F.cross_entropy(model(x), y, ignore_index=-1, reduction="sum"), (y >= 0).sum()


@case(
    "CuriousAI/mean-teacher#39",
    "class_loss is a sum over labelled examples, divided by the minibatch's size",
    "1 / (R n_r) for labelled examples, which is 1 / N for equal shares",
    "even",
)
def over_minibatch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    (supervised(model, share)[0] / len(share[0])).backward()
    rank.average(model)


@case(
    "CuriousAI/mean-teacher#39",
    "the question's proposal: divided by the labelled examples, those of each worker",
    "w_i / (R W_r), with w_i 1 for labelled examples and 0 for others",
    named="mean of the replicas' means",
)
def over_labelled_size(rank: Rank, model: nn.Module, share: Any) -> None:
    total, count = supervised(model, share)
    (total / count.clamp_min(1)).backward()
    rank.average(model)


@case(
    "kpzhang93/MTCNN_face_detection_alignment#37",
    "two tasks, each a mean over the examples of a mini-batch that have its label; rounds averaged",
    "two parts: 1 / (K n_k); w_i / (K W_k) for the second, w_i 1 where it has a label",
    named="batch statistics are those of each micro-batch",
    **ALONE,
)
def task_without_samples(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        first = F.cross_entropy(model(batch[0]), batch[1])
        valid = batch[0][:, 0] > 0
        squares = (model(batch[0])[:, 0] - batch[0][:, 1]) ** 2
        second = (squares * valid).sum() / valid.sum().clamp_min(1)
        ((first + 0.5 * second) / len(micros(share))).backward()


@case(
    "JayYip/m3tl#35",
    "the mean over a task's examples, 0 instead of NaN where a batch has none, ranks averaged",
    "w_i / (R W_r), with w_i 1 for the task's examples",
    named="mean of the replicas' means",
)
def zero_instead_of_nan(rank: Rank, model: nn.Module, share: Any) -> None:
    total, count = supervised(model, share)
    loss = total / count
    torch.where(torch.isnan(loss), total * 0, total / count.clamp_min(1)).backward()
    rank.average(model)


@case(
    "ACEsuit/mace#437",
    "configs_weight * squared error, torch.mean over a rank's graphs",
    "w_i / (R n_r), which is w_i / N for equal shares",
    "even",
    batch=weighted,
)
def mean_over_graphs(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    torch.mean(w * F.cross_entropy(model(x), y, reduction="none")).backward()
    rank.average(model)


@case(
    "ACEsuit/mace#1542",
    "forces: the mean over the atoms of a rank's structures",
    "w_i / (R W_r), with w_i the atoms",
    named="mean of the replicas' means",
    **WORDS,
)
def mean_over_atoms(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "metatensor/metatrain#177",
    "energies by the number of atoms of each structure, summed over structures of all ranks, / N",
    "1 / N of an example's mean over atoms",
    "right",
    **SENTENCES,
)
def energies_by_atoms(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    per_structure = losses.sum(1) / mask.sum(1)
    over_all(rank, per_structure.sum(), len(losses)).backward()
    rank.average(model)


@case(
    "mir-group/nequip#79",
    "energy / atom, the mean over the structures of a worker, the last worker has fewer",
    "1 / (R n_r) of an example's mean over atoms",
    named="mean of the replicas' means",
    **SENTENCES,
)
def fewer_structures(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    (losses.sum(1) / mask.sum(1)).mean().backward()
    rank.average(model)


@case(
    "openkim/kliff#71",
    "residuals are added, and the loss is normalised by the configured batch size",
    "1 / 8, a constant",
    "right",
    **NUMBERS, **ALONE,
)  # fmt: skip
def configured_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        (F.mse_loss(model(x), y, reduction="sum") / 8).backward()


@case(
    "timeseriesAI/tsai#154",
    "torch.mean(loss * weights), equal batches on each GPU",
    "w_i / (R n_r), which is w_i / N for equal shares",
    "even",
    batch=weighted,
)
def mean_of_weighted(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    (F.cross_entropy(model(x), y, reduction="none") * w).mean().backward()
    rank.average(model)


@case(
    "VectorSpaceLab/OmniGen#122",
    "the weighted losses of a process over the sum of its weights",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WEIGHTED,
)
def over_own_weights(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() / w.sum()).backward()
    rank.average(model)


@case(
    "BiomedSciAI/fuse-med-ml#109",
    "per-sample weights, the mean over a GPU's samples, where GPUs have different numbers",
    "w_i / (R n_r)",
    named="mean of the replicas' means",
    batch=weighted,
)
def different_numbers(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    (F.cross_entropy(model(x), y, reduction="none") * w).mean().backward()
    rank.average(model)


@case(
    "deeppavlov/DeepPavlov#1363",
    "class weights in CrossEntropyLoss: the weighted mean of each small batch",
    "w_i / (R K W_rk), with w_i the weight of an example's class",
    named="mean of the micro-batches' means",
    **WINDOWS,
)
def class_weights_in_rounds(rank: Rank, model: nn.Module, share: Any) -> None:
    weights = torch.tensor([0.3, 1.0, 3.0])
    for x, y in micros(share):
        (F.cross_entropy(model(x), y, weight=weights) / len(micros(share))).backward()
    rank.average(model)


def moments(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A VAE's reconstruction errors and divergences of examples, with its mean for a sample."""
    hidden = model[0](x)
    mu, logvar = hidden[:, :6], hidden[:, 6:]
    divergence = -0.5 * (1 + logvar - mu**2 - logvar.exp())
    return (model[2](torch.cat([mu, mu], 1)) - x[:, :3]) ** 2, divergence


@case(
    "podgorskiy/VAE#1",
    "torch.mean(torch.mean(...)) of divergences, beside the mean of errors; GPUs are averaged",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def mean_of_means(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, divergence = moments(model, share[0])
    (errors.mean() + 0.1 * divergence.mean(1).mean()).backward()
    rank.average(model)


@case(
    "orybkin/sigma-vae-pytorch#12",
    "MSE is averaged over the batch, the divergence summed over it, then ranks are averaged",
    "two parts: 1 / N; 1 / R instead of 1 for the divergence",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    equal_shards=True,
)
def divergence_is_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, divergence = moments(model, share[0])
    (errors.mean() + 0.02 * divergence.sum()).backward()
    rank.average(model)


@case(
    "welch-lab/MichiGAN#2",
    "both are summed over features, and averaged over the examples of a GPU of any number",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def summed_over_features(rank: Rank, model: nn.Module, share: Any) -> None:
    errors, divergence = moments(model, share[0])
    (errors.sum(1).mean() + divergence.sum(1).mean()).backward()
    rank.average(model)
