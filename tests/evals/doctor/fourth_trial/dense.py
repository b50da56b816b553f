"""Anchors, pixels and overlaps: what is divided by objects, or is a quotient itself."""

from __future__ import annotations

from torch_ranks import *

from .settings import MASKS, average, masks, pixels

POSITIVES = masks()[1].sum(1).tolist()
OBJECTS: dict[str, Any] = {"batch": masks, "model": pixels, "weights": POSITIVES}


def focal(model: nn.Module, batch: Any) -> torch.Tensor:
    """The focal losses of all anchors, added by image."""
    x, y = batch
    logits = model(x).squeeze(-1)
    p = torch.sigmoid(logits)
    pt = torch.where(y > 0, p, 1 - p)
    losses = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    return ((1 - pt) ** 2 * losses).sum(1)


def overlaps(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of each image: the intersection, and what is predicted and marked."""
    x, y = batch
    p = torch.sigmoid(model(x).squeeze(-1))
    return (p * y).sum(1), p.sum(1), y.sum(1)


def dice(i: torch.Tensor, p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """1 - Dice."""
    return 1 - (2 * i + 1e-5) / (p + y + 1e-5)


@case(
    "aim-uofa/AdelaiDet#332",
    "num_pos of all GPUs over their number is the normalizer of each GPU's sum",
    "1 / P for each image's sum, P the positives of all",
    "right",
    **MASKS,
)
def average_of_positives(rank: Rank, model: nn.Module, share: Any) -> None:
    num_pos = share[1].sum()
    num_pos_avg = max(average(rank, num_pos).item(), 1.0)
    (focal(model, share).sum() / num_pos_avg).backward()
    rank.average(model)


@case(
    "aim-uofa/AdelaiDet#332",
    "another normalizer: the centerness of a GPU's own positives divides its sum",
    "1 / (R C_r) for each image's sum, C_r the targets of a replica",
    named="mean of the replicas' means",
    **MASKS,
)
def own_centerness(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    centerness = (y * x[..., 0].abs()).sum()
    (focal(model, share).sum() / centerness).backward()
    rank.average(model)


@case(
    "zylo117/Yet-Another-EfficientDet-Pytorch#539",
    "each image's sum over its own positive anchors, the mean over images",
    "1 / (R n_r) for each image, which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def positives_of_an_image(rank: Rank, model: nn.Module, share: Any) -> None:
    num_positive_anchors = share[1].sum(1).clamp(min=1.0)
    (focal(model, share) / num_positive_anchors).mean().backward()
    rank.average(model)


@case(
    "zylo117/Yet-Another-EfficientDet-Pytorch#539",
    "DataParallel: the images' losses of a GPU are averaged, and .mean() over GPUs",
    "1 / (R n_r) for each image",
    named="mean of the replicas' means",
    **MASKS,
)
def images_of_unequal_gpus(rank: Rank, model: nn.Module, share: Any) -> None:
    num_positive_anchors = share[1].sum(1).clamp(min=1.0)
    cls_loss = (focal(model, share) / num_positive_anchors).mean()
    (cls_loss / rank.world_size).backward()
    rank.add(model)


@case(
    "ChiefGodMan/Focal-Loss-implement-on-Tensorflow#2",
    "the sum over a batch's anchors over its foreground anchors, batches are accumulated",
    "1 / (K P_k) for each image's sum, P_k the positives of a micro-batch",
    named="mean of the micro-batches' means",
    **OBJECTS,
    **ALONE,
)
def foreground_of_a_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = focal(model, batch).sum() / batch[1].sum()
        (loss / len(window)).backward()


@case(
    "ChiefGodMan/Focal-Loss-implement-on-Tensorflow#2",
    "the mean over all anchors, all images have as many, batches of a window are equal",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **MASKS,
    **ALONE,
)
def mean_over_anchors(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = focal(model, batch).sum() / batch[1].numel()
        (loss / len(window)).backward()


@case(
    "facebookresearch/Detectron#231",
    "fg_num of a GPU divides its loss, losses are scaled by 1 / NUM_GPUS, gradients added",
    "1 / (R P_r) for each image's sum, P_r the positives of a replica",
    named="mean of the replicas' means",
    **OBJECTS,
)
def foreground_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    fg_num = share[1].sum()
    (focal(model, share).sum() / fg_num / rank.world_size).backward()
    rank.add(model)


@case(
    "facebookresearch/Detectron#231",
    "foreground and background are normalised apart, by counts of all GPUs",
    "1 / P for positives, 1 / B for the background",
    "right",
    **MASKS,
)
def foreground_and_background(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    losses = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y, reduction="none")
    fg_num, bg_num = rank.all_reduce(y.sum()), rank.all_reduce((1 - y).sum())
    ((losses * y).sum() / fg_num + (losses * (1 - y)).sum() / bg_num).backward()
    rank.add(model)


@case(
    "HiLab-git/SSL4MIS#101",
    "before: the Dice of all images of a GPU together, and cross entropy's mean",
    "two parts: 1 / (R n_r); the Dice of each replica's own sums",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **MASKS,
)
def dice_of_a_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    loss_ce = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
    loss_dice = dice(*(part.sum() for part in overlaps(model, share)))
    (0.5 * (loss_dice + loss_ce)).backward()
    rank.average(model)


@case(
    "HiLab-git/SSL4MIS#101",
    "the fix: the Dice of each image, averaged as cross entropy is",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def dice_of_each_image(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    loss_ce = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
    loss_dice = dice(*overlaps(model, share)).mean()
    (0.5 * (loss_dice + loss_ce)).backward()
    rank.average(model)


@case(
    "microsoft/InnerEye-DeepLearning#504",
    "SoftDice is computed per GPU",
    "the Dice of each replica's own sums, averaged",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **MASKS,
)
def soft_dice_per_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    dice(*(part.sum() for part in overlaps(model, share))).backward()
    rank.average(model)


@case(
    "microsoft/InnerEye-DeepLearning#504",
    "the tensors are gathered with their gradients before SoftDice",
    "the Dice of the sums over all images",
    "right",
    **MASKS,
)
def soft_dice_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    i, p, y = (rank.gather_with_grad(part).sum() for part in overlaps(model, share))
    dice(i, p, y).backward()
    rank.average(model)


@case(
    "PaddlePaddle/PaddleSeg#873",
    "weighted pixels over the weights of a card's batch",
    "v_i / (R V_r) for each pixel, V_r the class weights of a replica",
    named="mean of the replicas' means",
    **MASKS,
)
def weighted_pixels_of_a_card(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    weight = torch.where(y > 0, 3.0, 1.0)
    losses = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y, reduction="none")
    ((weight * losses).sum() / weight.sum()).backward()
    rank.average(model)


@case(
    "PaddlePaddle/PaddleSeg#873",
    "weighted pixels, and the mean over the pixels, which are as many in each image",
    "v_i / (R n_r), which is v_i / N for equal shares",
    "even",
    **MASKS,
)
def weighted_pixels_over_pixels(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    weight = torch.where(y > 0, 3.0, 1.0)
    losses = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y, reduction="none")
    (weight * losses).mean().backward()
    rank.average(model)


@case(
    "xinge008/Cylinder3D#6",
    "points that are labelled, a mean over those of a GPU",
    "1 / (R P_r) for each point, P_r the labelled points of a replica",
    named="mean of the replicas' means",
    **OBJECTS,
)
def labelled_points_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labelled = share
    target = (x[..., 0] > 0).float()
    losses = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), target, reduction="none")
    losses[labelled > 0].mean().backward()
    rank.average(model)


@case(
    "weecology/DeepForest#1407",
    "images without boxes are left out by a rank, which averages the others",
    "1 / (R m_r), m_r a replica's images with boxes, 0 for those without",
    named="mean of the replicas' means",
    **MASKS,
)
def images_without_boxes(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    keep = y.sum(1) > 1
    losses = focal(model, (x, y))
    (losses * keep).sum().div(keep.sum().clamp(min=1)).backward()
    rank.average(model)


@case(
    "weecology/DeepForest#1407",
    "the fix in the same spirit: all ranks take part, and count the images with boxes of all",
    "1 / M, M the images with boxes of all replicas, 0 for those without",
    "right",
    **MASKS,
)
def images_with_boxes_of_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    keep = y.sum(1) > 1
    kept = rank.all_reduce(keep.sum()).clamp(min=1)
    ((focal(model, (x, y)) * keep).sum() * rank.world_size / kept).backward()
    rank.average(model)


@case(
    "LBANN/lbann#149",
    "the correlation of outputs and targets of a whole mini-batch, as a loss, by each rank",
    "the correlation over each replica's own examples, averaged",
    named="batch statistics are not synchronised",
    equal_shards=True,
    batch=targets,
)
def correlation_of_a_minibatch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    a, b = model(x).flatten(), y.flatten()
    a, b = a - a.mean(), b - b.mean()
    (1 - (a * b).sum() / (a.norm() * b.norm())).backward()
    rank.average(model)


@case(
    "LBANN/lbann#149",
    "the fix: the correlation of each sample, averaged",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=targets,
)
def correlation_of_each_sample(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    a, b = model(x), y
    a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    (1 - (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).mean().backward()
    rank.average(model)


@case(
    "Pointcept/Pointcept#299",
    "clouds of all sizes are concatenated: the mean over a rank's points",
    "w_i / (R W_r), w_i the points of a cloud",
    named="mean of the replicas' means",
    **OBJECTS,
)
def points_are_concatenated(rank: Rank, model: nn.Module, share: Any) -> None:
    x, present = share
    points, target = x[present > 0], (x[present > 0][:, 1] > 0).float()
    F.binary_cross_entropy_with_logits(model(points)[:, 0], target).backward()
    rank.average(model)


@case(
    "open-mmlab/mmagic#108",
    "samples are repeated until every rank has as many: the repeated ones count twice",
    "1 / (R m) each time that an example is taken, m of the longest share",
    named="shards are padded by repeating examples",
    batch=targets,
    replicas=(2, 3),
)
def repeated_to_be_even(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    most = max(int(n) for n in rank.all_gather(torch.tensor(len(x))))
    picked = np.arange(most) % max(len(x), 1)
    F.l1_loss(model(x[picked]), y[picked]).backward()
    rank.average(model)


@case(
    "dmlc/dgl#6341",
    "redundant batches of those replicas that have more are dropped",
    "1 / (R m), m examples of the shortest share, 0 for what other shares have behind that",
    named="what is longer than the shortest share is dropped",
    batch=targets,
    replicas=(2, 3),
)
def redundant_ones_are_dropped(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    least = min(int(n) for n in rank.all_gather(torch.tensor(len(x))))
    F.l1_loss(model(x[:least]), y[:least]).backward()
    rank.average(model)


@case(
    "dmlc/dgl#6341",
    "the note's advice: uneven inputs are joined, each item counts once",
    "1 / N",
    "right",
    batch=targets,
    **WINDOWS,
)
def uneven_inputs_are_joined(rank: Rank, model: nn.Module, share: Any) -> None:
    seen = 0
    for x, y in micros(share):
        F.l1_loss(model(x), y, reduction="sum").backward()
        seen += len(x)
    rank.add(model)
    scale_grads(model, 1.0 / rank.all_reduce(seen))
