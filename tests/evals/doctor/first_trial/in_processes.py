"""Programs of real DistributedDataParallel: each build is called in processes joined by gloo."""

from __future__ import annotations

from torch_processes import *

REPORTED = {"adapter": {"whole_shard": True}, "where": "report"}


@case(
    "pytorch/examples#1196",
    "the tutorial: DDP and a mean loss, all shares of one size",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **LOSS,
)
def tutorial() -> Any:
    return mlp(), lambda model, batch: F.cross_entropy(model(batch[0].float()), batch[1].long())


@case(
    "pytorch/pytorch#67253",
    "DDP and a mean loss, where ranks have batches of different sizes",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **LOSS,
)
def different_batch_sizes() -> Any:
    return mlp(), lambda model, batch: F.cross_entropy(model(batch[0].float()), batch[1].long())


@case(
    "pytorch/pytorch#67253",
    "the sum over the batch of all ranks, times the world size",
    "1 / N",
    "right",
)
def weighted_by_batch_size() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        x, y = share
        loss = F.cross_entropy(model(x.float()), y.long(), reduction="sum")
        (loss * dist.get_world_size() / total(len(x))).backward()

    return mlp(), run


@case(
    "pytorch/pytorch#37359",
    "MSE in sum mode under DDP",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets,
    **LOSS,
)
def sum_mode() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        return F.mse_loss(model(batch[0]), batch[1], reduction="sum")

    return mlp(), loss


@case(
    "neuralmagic/sparseml#135",
    "loss *= world_size for a mean loss",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    batch=images,
    **LOSS,
)
def times_world_size() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        return F.cross_entropy(model(batch[0]), batch[1].long()) * dist.get_world_size()

    return convolutions(), loss


@case(
    "huggingface/transformers#34242",
    "the sum over the tokens of this device's window, DDP's mean on top",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text, weights=LENGTHS, **WINDOWS,
)  # fmt: skip
def device_window() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        items = sum((labels != PAD).sum() for _, labels in window)
        for batch in window[:-1]:
            with model.no_sync():
                (tokens(model, batch)[0] / items).backward()
        (tokens(model, window[-1])[0] / items).backward()

    return tagger(), run


@case(
    "huggingface/transformers#34373",
    "average_tokens_across_devices: the tokens of all devices, times their number",
    "w_i / W",
    "right",
    batch=text, weights=LENGTHS, **WINDOWS,
)  # fmt: skip
def across_devices() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        items = total(sum((labels != PAD).sum() for _, labels in window))
        for batch in window[:-1]:
            with model.no_sync():
                (tokens(model, batch)[0] / items * dist.get_world_size()).backward()
        (tokens(model, window[-1])[0] / items * dist.get_world_size()).backward()

    return tagger(), run


@case(
    "karpathy/nanochat#33",
    "every micro-batch is synchronised, no no_sync: slow, but the same gradient",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def every_micro_batch_synchronised() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for x, y in window:
            (F.cross_entropy(model(x.float()), y.long()) / len(window)).backward()

    return mlp(), run


@case(
    "karpathy/build-nanogpt#30",
    "forward and backward of all micro-batches under no_sync: gradients are never exchanged",
    "1 / (K n_0k) for the first rank's examples on its copy: every copy has its own update",
    named="the replicas' parameters differ",
    **WINDOWS,
)
def all_under_no_sync() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        with model.no_sync():
            for x, y in window:
                (F.cross_entropy(model(x.float()), y.long()) / len(window)).backward()

    return mlp(), run


@case(
    "facebookresearch/detr#267",
    "num_boxes of all ranks over the world size, here the rows of tokens",
    "w_i / W",
    "right",
    batch=text,
)
def detr_of_processes() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss / torch.clamp(total(count) / dist.get_world_size(), min=1).item()).backward()

    return tagger(), run


@case(
    "facebookresearch/fairseq2#430",
    "the sum over the batch of all ranks, DDP's mean is forgotten",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    batch=text,
)
def mean_forgotten() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss / total(count)).backward()

    return tagger(), run


@case(
    "sanderwood/bgpt#5",
    "the loss is divided by the world size, and DDP divides again",
    "1 / (R^2 n_r)",
    named="mean per replica, then divided by the replicas twice",
)
def reduced_and_divided() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        x, y = share
        (F.cross_entropy(model(x.float()), y.long()) / dist.get_world_size()).backward()

    return mlp(), run


@case(
    "huggingface/transformers#12220",
    "tr_loss is that of each rank's own window, printed by rank 0; the update is right",
    "the report counts 1 / n_0 for the first rank's examples, 0 for others",
    named="the replicas are not reduced",
    **REPORTED,
)
def printed_by_rank_0() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        x, y = share
        loss = F.cross_entropy(model(x.float()), y.long(), reduction="sum")
        (loss * dist.get_world_size() / total(len(x))).backward()
        return loss.detach() / len(x) if dist.get_rank() == 0 else None

    return mlp(), run


@case(
    "huggingface/transformers#13681",
    "the mean of the workers' losses is shown, for equal shares",
    "1 / (R n_r), which is 1 / N for equal shares, in the report, too",
    "even",
)
def printed_mean() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        x, y = share
        loss = F.cross_entropy(model(x.float()), y.long())
        loss.backward()
        return total(loss.detach()) / dist.get_world_size()

    return mlp(), run


@case(
    "tensorflow/tensorflow#33929",
    "each process clips what DDP has averaged: after the reduction, equal shares",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
)
def clipped_after_ddp() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        x, y = share
        F.cross_entropy(model(x.float()), y.long()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    return mlp(), run


@case(
    "NVIDIA/DeepLearningExamples#713",
    "gradients of the micro-batches' means are added under no_sync, never divided by K",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    **WINDOWS,
)
def added_under_no_sync() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for x, y in window[:-1]:
            with model.no_sync():
                F.cross_entropy(model(x.float()), y.long()).backward()
        x, y = window[-1]
        F.cross_entropy(model(x.float()), y.long()).backward()

    return mlp(), run
