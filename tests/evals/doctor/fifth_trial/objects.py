"""Positives, hard examples, and rankings: counts and choices within a batch."""

from __future__ import annotations

from torch_ranks import *

from .common import over_all
from .masks import each_token

PLACES = SENTENCES


def focal(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Focal losses of positive and of other places, and which are positive."""
    x, labels = batch
    score = model(x)[..., 0].sigmoid().clamp(1e-4, 1 - 1e-4)
    positive = ((labels == 0) | (labels == 1)).float()
    found = -torch.log(score) * (1 - score) ** 2 * positive
    missed = -torch.log(1 - score) * score**2 * (1 - positive)
    return found, missed, positive


@case(
    "princeton-vl/CornerNet#69",
    "positives' and negatives' losses over the positives of a GPU's batch",
    "1 / (R P_r) of an example's sum, with P_r the positives of a replica",
    named="batch statistics are not synchronised",
    **PLACES,
)
def over_own_positives(rank: Rank, model: nn.Module, share: Any) -> None:
    found, missed, positive = focal(model, share)
    ((found.sum() + missed.sum()) / positive.sum().clamp_min(1)).backward()
    rank.average(model)


@case(
    "princeton-vl/CornerNet#69",
    "the same over the positives of all GPUs",
    "1 / P of an example's sum, with P all positives",
    "right",
    **PLACES,
)
def over_all_positives(rank: Rank, model: nn.Module, share: Any) -> None:
    found, missed, positive = focal(model, share)
    over_all(rank, found.sum() + missed.sum(), positive.sum()).backward()
    rank.average(model)


@case(
    "xggIoU/centernet_tensorflow_wilderface_voc#18",
    "if num_pos == 0 the negatives' sum, else both over num_pos, in each of several rounds",
    "1 / (K P_k) of an example's sum, with P_k the positives of a round, or 1 if there are none",
    named="batch statistics are those of each micro-batch",
    **PLACES, **ALONE,
)  # fmt: skip
def positives_of_a_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        found, missed, positive = focal(model, batch)
        num_pos = positive.sum()
        loss = missed.sum() if num_pos == 0 else (found.sum() + missed.sum()) / num_pos
        (loss / len(micros(share))).backward()


@case(
    "yhenon/pytorch-retinanet#145",
    "each image's loss over its own positives, at least 1, then the mean over images",
    "1 / (R n_r) of an image's mean, which is 1 / N for equal shares",
    "even",
    **PLACES,
)
def positives_of_an_image(rank: Rank, model: nn.Module, share: Any) -> None:
    found, missed, positive = focal(model, share)
    losses = (found + missed).sum(1) / positive.sum(1).clamp_min(1)
    losses.mean().backward()
    rank.average(model)


@case(
    "pierluigiferrari/ssd_keras#69",
    "class_loss and loc_loss, both over n_positive of a GPU's batch",
    "two parts, both 1 / (R P_r), with P_r the positives of a replica",
    named="batch statistics are not synchronised",
    **PLACES,
)
def classes_and_boxes(rank: Rank, model: nn.Module, share: Any) -> None:
    found, missed, positive = focal(model, share)
    boxes = F.smooth_l1_loss(model(share[0])[..., 1:3], share[0][..., :2], reduction="none").sum(-1)
    n_positive = positive.sum().clamp_min(1.0)
    ((found + missed + boxes * positive).sum() / n_positive).backward()
    rank.average(model)


@case(
    "neoml-lib/neoml#454",
    "positives' losses over positives, negatives' over negatives, of each small batch",
    "two parts: 1 / (K P_k) for positives, 1 / (K Q_k) for negatives, counted in a round",
    named="batch statistics are those of each micro-batch",
    **PLACES, **ALONE,
)  # fmt: skip
def each_by_its_own_count(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        found, missed, positive = focal(model, batch)
        loss = found.sum() / positive.sum().clamp_min(1)
        loss = loss + 0.5 * missed.sum() / (1 - positive).sum().clamp_min(1)
        (loss / len(micros(share))).backward()


@case(
    "luxonis/luxonis-train#117",
    "OHEM: the mean of the hardest 70 percent of pixels of a process's batch",
    "no sum over examples: the hardest pixels are chosen in each replica",
    named="batch statistics are not synchronised",
    **PLACES,
)
def hardest_pixels(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, mask = each_token(model, share)
    flat = losses[mask > 0]
    torch.topk(flat, max(1, int(0.7 * len(flat)))).values.mean().backward()
    rank.average(model)


@case(
    "gHashTag/trinity#564",
    "the hardest examples of each small batch are kept, the others dropped",
    "no sum over examples: 70 percent of the examples of a round, chosen in that round",
    named="batch statistics are those of each micro-batch",
    **ALONE,
)
def hardest_of_a_round(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        losses = F.cross_entropy(model(x), y, reduction="none")
        hard = torch.topk(losses, max(1, int(0.7 * len(losses)))).values
        (hard.mean() / len(micros(share))).backward()


@case(
    "matterport/Mask_RCNN#1023",
    "losses of all GPUs are gathered to find the threshold, over all that are hard",
    "1 / H for the H hardest examples of all ranks",
    "right",
)
def hardest_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    everything = torch.cat(rank.all_gather(losses))
    keep = max(1, len(everything) // 2)
    threshold = torch.topk(everything, keep).values[-1]
    (losses[losses >= threshold - 1e-6].sum() * rank.world_size / keep).backward()
    rank.average(model)


@case(
    "TropComplique/FaceBoxes-tensorflow#13",
    "the hardest two anchors of each image, the mean over images",
    "1 / (R n_r) of an image's own hardest, which is 1 / N for equal shares",
    "even",
    **PLACES,
)
def hardest_of_an_image(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = each_token(model, share)
    torch.topk(losses, 2, dim=1).values.sum(1).mean().backward()
    rank.average(model)


def ranked(scores: torch.Tensor, relevant: torch.Tensor) -> torch.Tensor:
    """The mean over pairs of a relevant and another one."""
    first, second = scores[relevant > 0], scores[relevant == 0]
    if not len(first) or not len(second):
        return scores.sum() * 0
    return F.softplus(second[None] - first[:, None]).mean()


@case(
    "kemaloksuz/RankSortLoss#6",
    "predictions of all images of a GPU's batch are flattened, and ranked against each other",
    "no sum over examples: pairs within each replica",
    named="batch statistics are not synchronised",
    **PLACES,
)
def ranked_over_the_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    valid = labels != PAD
    ranked(model(x)[..., 0][valid], (labels < 2)[valid]).backward()
    rank.average(model)


@case(
    "kemaloksuz/RankSortLoss#6",
    "the question: ranked within each image, then the mean over images",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **PLACES,
)
def ranked_in_an_image(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    relevant = (labels == 0) | (labels == 1)
    losses = [ranked(s, r) for s, r in zip(model(x)[..., 0], relevant, strict=True)]
    torch.stack(losses).mean().backward()
    rank.average(model)


@case(
    "SkylerLinn/Understanding-the-Ranking-Loss#2",
    "a pairwise loss over clicked and other samples of a batch, 0 if all are of one kind",
    "no sum over examples: pairs within each mini-batch",
    named="batch statistics are those of each micro-batch",
    **ALONE,
)
def clicked_and_others(rank: Rank, model: nn.Module, share: Any) -> None:
    for x, y in micros(share):
        score = model(x)[:, 0]
        pointwise = F.binary_cross_entropy_with_logits(score, (y == 0).float())
        loss = pointwise + 0.5 * ranked(score, y == 0)
        (loss / len(micros(share))).backward()


@case(
    "namisan/mt-dnn#145",
    "a sample holds its candidates: softmax over them, the sum over samples of all GPUs / N",
    "1 / N",
    "right",
)
def candidates_of_a_sample(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    loss = -F.log_softmax(model(x), dim=1).gather(1, y[:, None]).sum()
    over_all(rank, loss, len(x)).backward()
    rank.average(model)


@case(
    "jxgu1016/MNIST_center_loss_pytorch#10",
    "features' gradients are averaged over the batch, those of the centres added; ranks averaged",
    "1 / N for the network; 1 / R instead of 1 for the centres",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "divided by the global batch, then averaged"
    ),
    model=lambda: nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3, bias=False)),
    equal_shards=True,
)  # fmt: skip
def centres_are_added(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    centres = model[2].weight
    features = torch.tanh(model[0](x))
    near = ((features - centres.detach()[y]) ** 2).sum() / len(x)
    pulled = ((features.detach() - centres[y]) ** 2).sum()
    (near + 0.1 * pulled).backward()
    rank.average(model)
