"""What programs print; their updates are right."""

from __future__ import annotations

from torch_ranks import *

from .settings import masks, pixels


def spread(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes, some of which are far off."""
    x, y = vectors(rows)
    return x * np.linspace(0.5, 5, rows, dtype=np.float32)[:, None], y


def sorted_masks(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Images with small masks come first."""
    x, y = masks(rows)
    order = np.argsort(y.sum(1))
    return x[order], y[order]


REPORT: dict[str, Any] = {"batch": spread, "where": "report"}
MASKS: dict[str, Any] = {"batch": sorted_masks, "model": pixels, "where": "report"}
TOKENS: dict[str, Any] = {"batch": text, "model": tagger, "where": "report"}


def right_update(rank: Rank, model: nn.Module, share: Any) -> None:
    """Of the mean over all examples."""
    window = micros(share)
    n = rank.all_reduce(sum(len(x) for x, _ in window))
    for batch in window:
        (sum_loss(model, batch) / n).backward()
    rank.add(model)


def right_update_of_tokens(rank: Rank, model: nn.Module, share: Any) -> None:
    """Of the mean over all tokens."""
    loss, tokens = token_sum(model, share)
    (loss / rank.all_reduce(tokens)).backward()
    rank.add(model)


def losses(model: nn.Module, batch: Any) -> torch.Tensor:
    """Of each example, without a gradient."""
    with torch.no_grad():
        return F.cross_entropy(model(batch[0]), batch[1], reduction="none")


@case(
    "pytorch/tutorials#2811",
    "test_loss is added over batches and divided by their number, the last one is smaller",
    "the report counts 1 / (K n_k)",
    named="mean of the micro-batches' means",
    **ALONE,
    **REPORT,
)
def over_num_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    test_loss, window = 0.0, micros(share)
    for batch in window:
        test_loss += losses(model, batch).mean().item()
    return test_loss / len(window)


@case(
    "pytorch/tutorials#2811",
    "what the question asks for: divided by the number of values",
    "the report counts 1 / N",
    "right",
    **ALONE,
    **REPORT,
)
def over_the_values(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    window = micros(share)
    size = sum(len(x) for x, _ in window)
    return sum(losses(model, batch).sum().item() for batch in window) / size


@case(
    "macrocosm-os/pretraining#176",
    "the average over all batches of their mean losses",
    "the report counts w_i / (R W_r)",
    named="mean of the replicas' means",
    **TOKENS,
)
def average_across_all_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update_of_tokens(rank, model, share)
    with torch.no_grad():
        loss, tokens = token_sum(model, share)
    return rank.all_reduce(loss / tokens) / rank.world_size


@case(
    "numaproj/numalogic#53",
    "what is logged is the last batch's loss",
    "the report counts 1 / n_K for the last micro-batch, 0 for others",
    named="only the last micro-batch is kept",
    equal_shards=True,
    **ALONE,
    **REPORT,
)
def loss_of_the_last_batch(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    loss = torch.zeros(())
    for batch in micros(share):
        loss = losses(model, batch).mean()
    return loss


@case(
    "creafz/pytorch-cnn-finetune#1",
    "the fix: the average per element, of all batches",
    "the report counts 1 / N",
    "right",
    **ALONE,
    **REPORT,
)
def average_per_element(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    total_loss, total_size = 0.0, 0
    for batch in micros(share):
        total_loss += losses(model, batch).sum().item()
        total_size += len(batch[0])
    return total_loss / total_size


@case(
    "creafz/pytorch-cnn-finetune#1",
    "the question's line: train_loss adds the batches' means, over batch_idx",
    "the report counts 1 / ((K - 1) n_k), K / (K - 1) times too much where K > 1",
    equal_shards=True,
    **ALONE,
    **REPORT,
)
def over_batch_idx(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    train_loss, batch_idx = 0.0, 0
    for batch_idx, batch in enumerate(micros(share)):  # noqa: B007
        train_loss += losses(model, batch).mean().item()
    return train_loss / max(batch_idx, 1)


@case(
    "jmschrei/cherimoya#19",
    "averaged over the full batches of an epoch: what does not fill a batch of two is left out",
    "the report counts 1 / M for those in full batches, 0 for the rest",
    replicas=(2, 3),
    **REPORT,
)
def over_full_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    full = len(share[0]) // 2 * 2
    kept = losses(model, share)[:full]
    return rank.all_reduce(kept.sum()) / rank.all_reduce(full)


@case(
    "gnn-tracking/gnn_tracking#339",
    "the rolling loss of batches instead of the last one's",
    "the report counts 0.1 * 0.9^(K - k) / n_k, and 0.9^(K - 1) / n_1 for the first micro-batch",
    equal_shards=True,
    **ALONE,
    **REPORT,
)
def rolling_loss(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    rolling = 0.0
    for i, batch in enumerate(micros(share)):
        new = losses(model, batch).mean().item()
        rolling = new if i == 0 else 0.9 * rolling + 0.1 * new
    return rolling


@case(
    "magenta/magenta#239",
    "before: exp of each worker's mean loss, averaged over workers",
    "the report is the mean of exp over the means of shares, not exp of the mean",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **REPORT,
)
def mean_of_perplexities(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    return rank.all_reduce(losses(model, share).mean().exp()) / rank.world_size


@case(
    "magenta/magenta#239",
    "after: the losses are exponentiated before they are reduced to the mean of all",
    "the report counts 1 / N for each example's exp",
    "right",
    **REPORT,
)
def mean_of_exponents(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    return rank.all_reduce(losses(model, share).exp().sum()) / rank.all_reduce(len(share[0]))


@case(
    "alexiglad/EBT#3",
    "what is logged: batch perplexities, averaged every N steps",
    "the report is the mean of exp over the means of micro-batches",
    named="batch statistics are those of each micro-batch",
    equal_shards=True,
    **ALONE,
    **REPORT,
)
def perplexities_of_steps(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    window = micros(share)
    return sum(losses(model, batch).mean().exp() for batch in window) / len(window)


@case(
    "alexiglad/EBT#3",
    "the corrected one: exp of what is summed and divided at the end",
    "the report is exp of the mean over all",
    "right",
    **ALONE,
    **REPORT,
)
def corrected_perplexity(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    window = micros(share)
    total = sum(losses(model, batch).sum() for batch in window)
    return (total / sum(len(x) for x, _ in window)).exp()


@case(
    "huggingface/datasets#4108",
    "the mean of the perplexities of sentences, over all processes",
    "the report counts 1 / N for each sentence's exp",
    "right",
    **TOKENS,
)
def mean_perplexity_of_sentences(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update_of_tokens(rank, model, share)
    x, labels = share
    with torch.no_grad():
        nll = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    ppl = (nll.sum(1) / (labels != PAD).sum(1)).exp()
    return rank.all_reduce(ppl.sum()) / rank.all_reduce(len(ppl))


@case(
    "NetManAIOps/donut#13",
    "losses are summed within a batch and averaged over batches",
    "the report counts 1 / K instead of 1 / N",
    named="micro-batches are divided twice",
    equal_shards=True,
    **ALONE,
    **REPORT,
)
def summed_and_averaged_over_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    window = micros(share)
    return sum(losses(model, batch).sum() for batch in window) / len(window)


@case(
    "eora-ai/torchok#191",
    "the metric of DDP is that of rank 0",
    "the report counts 1 / n_0 for the first rank's examples, 0 for others",
    named="the replicas are not reduced",
    equal_shards=True,
    **REPORT,
)
def metric_of_rank_0(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    return losses(model, share).mean() if rank.rank == 0 else None


@case(
    "RangiLyu/nanodet#248",
    "every GPU validates its own part, of any size, and the first one prints",
    "the report counts 1 / n_0 for the first rank's examples, 0 for others",
    named="the replicas are not reduced",
    **REPORT,
)
def results_are_not_gathered(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    return losses(model, share).mean()


@case(
    "RangiLyu/nanodet#248",
    "the fix: results of all GPUs are gathered before they are averaged",
    "the report counts 1 / N",
    "right",
    **REPORT,
)
def results_are_gathered(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    return torch.cat(rank.all_gather(losses(model, share))).mean()


@case(
    "yangkky/distributed_tutorial#6",
    "reduce_tensor: the sum of the processes' mean losses over the world size",
    "the report counts 1 / (R n_r)",
    named="mean of the replicas' means",
    **REPORT,
)
def reduce_tensor(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    rt = rank.all_reduce(losses(model, share).mean())
    return rt / rank.world_size


@case(
    "tfzhou/ContrastiveSeg#54",
    "display_loss is reduced and divided by the world size, equal crops on all",
    "the report counts 1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **REPORT,
)
def display_loss(rank: Rank, model: nn.Module, share: Any) -> Any:
    mean_loss(model, share).backward()
    rank.average(model)
    return rank.all_reduce(losses(model, share).mean()) / rank.world_size


@case(
    "tfzhou/ContrastiveSeg#54",
    "reduced by a sum, and shown without the division",
    "the report counts 1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
    **REPORT,
)
def display_loss_is_a_sum(rank: Rank, model: nn.Module, share: Any) -> Any:
    mean_loss(model, share).backward()
    rank.average(model)
    return rank.all_reduce(losses(model, share).mean())


@case(
    "layumi/Person_reID_baseline_pytorch#116",
    "loss.item() * now_batch_size is added, and divided by the size of the data set",
    "the report counts 1 / N",
    "right",
    **WINDOWS,
    **REPORT,
)
def times_now_batch_size(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    running_loss, dataset_size = 0.0, 0
    for batch in micros(share):
        now_batch_size = len(batch[0])
        running_loss += losses(model, batch).mean().item() * now_batch_size
        dataset_size += now_batch_size
    return rank.all_reduce(running_loss) / rank.all_reduce(dataset_size)


@case(
    "layumi/Person_reID_baseline_pytorch#116",
    "the same without the batch size, still over the size of the data set",
    "the report counts 1 / (N n_k)",
    named="micro-batches are not divided",
    **ALONE,
    **REPORT,
)
def means_over_the_data_set(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, share)
    window = micros(share)
    running_loss = sum(losses(model, batch).mean().item() for batch in window)
    return running_loss / sum(len(x) for x, _ in window)


@case(
    "pyannote/pyannote-audio#591",
    "a root of the mean error is that of each process's share, averaged",
    "the report is the mean of roots over the own shares",
    named="batch statistics are not synchronised",
    equal_shards=True,
    batch=targets,
    where="report",
)
def root_of_a_share(rank: Rank, model: nn.Module, share: Any) -> Any:
    x, y = share
    n = rank.all_reduce(len(x))
    ((model(x) - y).square().sum() / n).backward()
    rank.add(model)
    with torch.no_grad():
        root = (model(x) - y).square().mean().pow(3).sqrt()
    return rank.all_reduce(root) / rank.world_size


@case(
    "NVIDIA/DIGITS#1236",
    "the Dice metric of a full batch, by each GPU, averaged",
    "the report is the mean of the Dice of each replica's own sums",
    named="batch statistics are not synchronised",
    equal_shards=True,
    **MASKS,
)
def dice_metric_of_a_batch(rank: Rank, model: nn.Module, share: Any) -> Any:
    x, y = share
    logits = model(x).squeeze(-1)
    F.binary_cross_entropy_with_logits(logits, y).backward()
    rank.average(model)
    p = torch.sigmoid(logits.detach())
    return rank.all_reduce(2 * (p * y).sum() / (p + y).sum()) / rank.world_size


@case(
    "NVIDIA/DIGITS#1236",
    "the fix: the Dice metric of each sample, averaged over the samples of all",
    "the report counts 1 / N for each sample's Dice",
    "right",
    **MASKS,
)
def dice_metric_of_each_sample(rank: Rank, model: nn.Module, share: Any) -> Any:
    x, y = share
    logits = model(x).squeeze(-1)
    n = rank.all_reduce(len(x))
    (F.binary_cross_entropy_with_logits(logits, y, reduction="sum") / n).backward()
    rank.add(model)
    p = torch.sigmoid(logits.detach())
    return rank.all_reduce((2 * (p * y).sum(1) / (p + y).sum(1)).sum()) / n
