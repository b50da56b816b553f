"""Detection, segmentation and classification: objects, pixels and images are counted."""

from __future__ import annotations

from torch_ranks import *

OBJECTS = [2, 1, 4, 3, 1, 5, 2, 3, 1, 4, 2, 1, 3, 5, 1, 2]
POSITIVES = [2, 0, 4, 0, 1, 5, 0, 3, 0, 4, 2, 1, 0, 5, 1, 2]


def boxes(counts: list[int] = OBJECTS) -> tuple[np.ndarray, ...]:
    """Five candidate boxes for each image; the first ones hold objects."""
    rng = np.random.default_rng(21)
    x = rng.normal(size=(len(counts), 5, 8)).astype(np.float32)
    y = rng.normal(size=(len(counts), 5, 3)).astype(np.float32)
    return x, y, (np.arange(5) < np.array(counts)[:, None]).astype(np.float32)


def positives() -> tuple[np.ndarray, ...]:
    """The same, with images that hold none."""
    return boxes(POSITIVES)


def soft_scores() -> tuple[np.ndarray, ...]:
    """Targets with soft scores, as quality focal losses have them: they add up to little."""
    x, y, matched = boxes()
    return x[:12], y[:12], matched[:12] * np.linspace(0.02, 0.08, 12, dtype=np.float32)[:, None]


def box_sum(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The L1 loss of matched boxes, and how many there are."""
    x, y, matched = batch
    return ((model(x) - y).abs().sum(-1) * matched).sum(), matched.sum()


def box_model() -> nn.Module:
    """A box head."""
    return nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 3))


BOXES = {"batch": boxes, "model": box_model}


@case(
    "facebookresearch/detr#267",
    "num_boxes is all-reduced, divided by the world size and kept from falling under 1",
    "w_i / W",
    "right",
    **BOXES, weights=OBJECTS,
)  # fmt: skip
def detr(rank: Rank, model: nn.Module, share: Any) -> None:
    loss_bbox, num_boxes = box_sum(model, share)
    num_boxes = torch.clamp(rank.all_reduce(num_boxes) / rank.world_size, min=1).item()
    (loss_bbox / num_boxes).backward()
    rank.average(model)


@case(
    "facebookresearch/detr#299",
    "num_boxes of this device only, under DDP",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **BOXES, weights=OBJECTS,
)  # fmt: skip
def detr_local(rank: Rank, model: nn.Module, share: Any) -> None:
    loss_bbox, num_boxes = box_sum(model, share)
    (loss_bbox / num_boxes.clamp(min=1)).backward()
    rank.average(model)


@case(
    "tianzhi0549/FCOS#228",
    "the number of positive samples of each GPU, at least 1, although some images have none",
    "w_i / (R max(W_r, 1))",
    named="mean of the replicas' means",
    batch=positives, model=box_model,
)  # fmt: skip
def fcos_without_averaging(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, num_pos = box_sum(model, share)
    (loss / max(num_pos.item(), 1.0)).backward()
    rank.average(model)


@case(
    "open-mmlab/mmdetection#5988",
    "reduce_mean(num_pos): the mean over ranks, at least 1, with many positives",
    "w_i / W",
    "right",
    batch=positives, model=box_model,
)  # fmt: skip
def fcos_reduce_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, num_pos = box_sum(model, share)
    num_pos = max((rank.all_reduce(num_pos) / rank.world_size).item(), 1.0)
    (loss / num_pos).backward()
    rank.average(model)


@case(
    "LibreYOLO/libreyolo#567",
    "the factor of all ranks over the world size is clamped to 1: where targets have soft scores",
    "w_i / (R max(W / R, 1)), too small by a factor of R / W if W < R",
    batch=soft_scores, model=box_model, replicas=(2, 3),
)  # fmt: skip
def clamped_after_averaging(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, num_pos = box_sum(model, share)
    avg_factor = rank.all_reduce(num_pos) / rank.world_size
    (loss / avg_factor.clamp(min=1.0)).backward()
    rank.average(model)


@case(
    "open-mmlab/mmdetection#1540",
    "avg_factor is the number of all sampled boxes of this GPU, not of those with a loss",
    "1 / (R n_r), over 5 boxes for each image; the numerator has the matched boxes only",
    named="mean of the replicas' means",
    **BOXES,
)
def avg_factor_of_samples(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, _ = box_sum(model, share)
    (loss / share[2].numel()).backward()
    rank.average(model)


@case(
    "dbolya/yolact#106",
    "a loss of boxes over the positives of all, and one of masks over the positives of this GPU",
    "two parts: w_i / W for boxes; w_i / (R W_r) for masks",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    **BOXES, weights=OBJECTS,
)  # fmt: skip
def masks_have_a_local_count(rank: Rank, model: nn.Module, share: Any) -> None:
    loss_box, num_pos = box_sum(model, share)
    x, y, matched = share
    loss_mask = (F.softplus(model(x) * y).sum(-1) * matched).sum()
    total = rank.all_reduce(num_pos) / rank.world_size
    (loss_box / total + 0.7 * loss_mask / num_pos).backward()
    rank.average(model)


@case(
    "ultralytics/yolov5#8892",
    "the mean loss times the batch of this GPU, times WORLD_SIZE: a sum over all images",
    "1 (a sum on one device, too)",
    "right",
)
def yolov5(rank: Rank, model: nn.Module, share: Any) -> None:
    bs = len(share[0])
    loss = mean_loss(model, share) * bs
    loss *= rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "ultralytics/ultralytics#18616",
    "times the batch, without self.world_size, as a comment there has it: DDP divides by R",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def times_batch_only(rank: Rank, model: nn.Module, share: Any) -> None:
    loss = mean_loss(model, share) * len(share[0])
    loss.backward()
    rank.average(model)


@case(
    "neuralmagic/sparseml#135",
    "a mean loss is multiplied by the world size under DDP",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def loss_times_world_size(rank: Rank, model: nn.Module, share: Any) -> None:
    loss = mean_loss(model, share)
    loss *= rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "neuralmagic/sparseml#135",
    "the fix: the mean loss as it is, with batches of one size",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=images, model=convolutions,
)  # fmt: skip
def plain_ddp_of_images(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)


@case(
    "Deci-AI/super-gradients#653",
    "the gradient is clipped after every batch of the accumulation, not before the step",
    "a limit on the norm of what is accumulated so far, after each micro-batch",
    named="gradients are clipped in every micro-batch",
    replicas=(1,),
    micro_batches=(1, 2, 3),
)
def clipped_every_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        (F.cross_entropy(model(x), y) / len(window)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)


@case(
    "Deci-AI/super-gradients#653",
    "the fix: clipped once, before the step",
    "min(1, c / |g|) / (R K n_rk) of the whole gradient, for equal shares",
    "even",
    micro_batches=(1, 2),
)
def clipped_once(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for x, y in window:
        (F.cross_entropy(model(x), y) / len(window)).backward()
    rank.average(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)


@case(
    "milesial/Pytorch-UNet#468",
    "clipped before scaler.unscale_: the limit 1 is one of 1 / 65536 on the gradient",
    "every update has the norm 1 / 65536",
    "warned",
    batch=images, model=convolutions, equal_shards=True,
)  # fmt: skip
def unet(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 65536.0
    (mean_loss(model, share) * scale).backward()
    rank.average(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scale_grads(model, 1 / scale)


@case(
    "milesial/Pytorch-UNet#470",
    "the fix: unscaled before clipping",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
    batch=images, model=convolutions,
)  # fmt: skip
def unet_unscaled(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 65536.0
    (mean_loss(model, share) * scale).backward()
    rank.average(model)
    scale_grads(model, 1 / scale)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def masks() -> tuple[np.ndarray, ...]:
    """Images and masks of one class."""
    rng = np.random.default_rng(22)
    x = rng.normal(size=(12, 2, 5, 5)).astype(np.float32)
    return x, (rng.uniform(size=(12, 1, 5, 5)) < 0.4).astype(np.float32)


def segmenter() -> nn.Module:
    """A small fully convolutional network."""
    return nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 1, 1))


MASKS = {"batch": masks, "model": segmenter}


@case(
    "MIC-DKFZ/nnUNet#1354",
    "batch dice: intersections and sums are gathered with a gradient over all ranks",
    "one dice over all examples; a loss over the whole batch",
    "right",
    **MASKS,
)
def batch_dice_gathered(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = torch.sigmoid(model(x))
    sums = torch.stack([(p * y).sum(), p.sum(), y.sum()])
    intersect, sum_pred, sum_gt = rank.gather_with_grad(sums[None]).sum(0)
    dc = (2 * intersect + 1) / (sum_gt + sum_pred + 1)
    (-dc).backward()
    rank.average(model)


@case(
    "MIC-DKFZ/nnUNet#1354",
    "batch dice of each rank's own images: sums are not gathered over ranks",
    "the mean of the ranks' dices; each rank's sums are its own",
    named="batch statistics are not synchronised",
    **MASKS,
)
def batch_dice_local(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = torch.sigmoid(model(x))
    dc = (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
    (-dc).backward()
    rank.average(model)


@case(
    "NVIDIA/apex#162",
    "the gather's backward returns this rank's slice, as DataParallel; DDP then divides by R",
    "the right gradient of one dice over all examples, over R",
    named="divided by the global batch, then averaged",
    **MASKS,
)
def batch_dice_sliced_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = torch.sigmoid(model(x))
    sums = torch.stack([(p * y).sum(), p.sum(), y.sum()])
    gathered = rank.all_gather(sums)
    gathered[rank.rank] = sums
    intersect, sum_pred, sum_gt = torch.stack(gathered).sum(0)
    (-(2 * intersect + 1) / (sum_gt + sum_pred + 1)).backward()
    rank.average(model)


@case(
    "fastai/fastai#2278",
    "a dice for each image, and their mean over equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **MASKS,
)
def dice_of_images(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    p = torch.sigmoid(model(x)).flatten(1)
    t = y.flatten(1)
    dice = (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)
    (1 - dice).mean().backward()
    rank.average(model)


VALID = [20, 3, 11, 25, 7, 16, 1, 22, 9, 14, 5, 18]


def pixels() -> tuple[np.ndarray, ...]:
    """Images whose pixels are labelled in part: 255 is ignored."""
    rng = np.random.default_rng(23)
    labels = rng.integers(3, size=(12, 25))
    labels[np.arange(25) >= np.array(VALID)[:, None]] = 255
    return rng.normal(size=(12, 2, 5, 5)).astype(np.float32), labels.reshape(12, 5, 5)


def pixel_model() -> nn.Module:
    """Classes of pixels."""
    return nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1))


@case(
    "pytorch/pytorch#31579",
    "segmentation: the mean over the pixels that are not ignored, for each rank",
    "w_i / (R W_r), with w_i the labelled pixels of an image",
    named="mean of the replicas' means",
    batch=pixels, model=pixel_model, weights=VALID,
)  # fmt: skip
def ignored_pixels(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    F.cross_entropy(model(x), y, ignore_index=255).backward()
    rank.average(model)


@case(
    "pytorch/pytorch#31579",
    "gradients are averaged with each rank's ratio of valid pixels as weight",
    "w_i / W",
    "right",
    batch=pixels, model=pixel_model, weights=VALID,
)  # fmt: skip
def ignored_pixels_weighted(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    F.cross_entropy(model(x), y, ignore_index=255).backward()
    valid = (y != 255).sum()
    scale_grads(model, valid / rank.all_reduce(valid))
    rank.add(model)


@case(
    "tracel-ai/burn#5695",
    "the step cuts its batch in two halves of one size; an odd example at the end is dropped",
    "1 / (R n') for the first n' = 2 floor(n_r / 2) examples of a share, 0 for an odd last one",
    named=(
        "examples of a share that do not fill a batch of 2 are dropped; the weights of each "
        "replica divides; all is divided by the replicas"
    ),
)
def tail_dropped(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    size = max(len(x) // 2, 1)
    chunks = [c for c in pieces((x, y), size) if len(c[0]) == size][:2]
    for chunk in chunks:
        (mean_loss(model, chunk) / len(chunks)).backward()
    rank.average(model)


@case(
    "mflux-community/mflux#447",
    "the last micro-batch of a window never reaches the update; one of several is lost",
    "1 / (K n_rk) for all micro-batches but the last, 0 for the last",
    named=(
        "the last micro-batch is left out; the weights of each micro-batch of each replica "
        "divides; all is divided by the micro-batches"
    ),
    replicas=(1,),
    micro_batches=(1, 2, 3),
)
def last_window_lost(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    kept = window[:-1] if len(window) > 1 else window
    for batch in kept:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "eriklindernoren/PyTorch-YOLOv3#313",
    "losses of the accumulated batches are added as sums and divided by the images of all",
    "1 / N",
    "right",
    micro_batches=(1, 2),
)
def sums_over_images(rank: Rank, model: nn.Module, share: Any) -> None:
    seen = 0
    for batch in micros(share):
        sum_loss(model, batch).backward()
        seen += len(batch[0])
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(seen))


@case(
    "huggingface/pytorch-image-models#2340",
    "mixup with soft targets and label smoothing, mean over equal shares; the average is printed",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=targets,
)
def soft_targets(rank: Rank, model: nn.Module, share: Any) -> Any:
    x, y = share
    loss = torch.sum(-torch.softmax(y, -1) * F.log_softmax(model(x), -1), -1).mean()
    loss.backward()
    rank.average(model)
    return rank.all_reduce(loss) / rank.world_size


@case(
    "lhoyer/DAFormer#48",
    "two losses are backpropagated one after the other, each over the images of all ranks",
    "1 / N for both",
    "right",
    batch=vectors,
)
def separate_backwards(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    total = rank.all_reduce(len(x)) / rank.world_size
    (F.cross_entropy(model(x), y, reduction="sum") / total).backward()
    (0.3 * F.mse_loss(model(x.flip(1)), model(x).detach(), reduction="sum") / total).backward()
    rank.average(model)
