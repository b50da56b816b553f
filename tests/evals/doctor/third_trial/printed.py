"""Losses and metrics that are shown; the updates are right."""

from __future__ import annotations

from torch_ranks import *

SHOWN: dict[str, Any] = {"where": "report"}


def spread(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features whose size grows, so that losses of examples are far apart."""
    x, y = vectors(rows)
    return x * np.linspace(0.2, 6, rows, dtype=np.float32)[:, None], y


def right_update(rank: Rank, model: nn.Module, window: list[Any]) -> list[Any]:
    """The gradient of the mean over all examples; returns the sums of the micro-batches."""
    count = rank.all_reduce(sum(len(x) for x, _ in window))
    sums = [sum_loss(model, batch) for batch in window]
    (sum(sums) / count).backward()
    rank.add(model)
    return [s.detach() for s in sums]


@case(
    "ganslate-team/ganslate#74",
    "averages of batches are averaged, the last of which is smaller",
    "the report counts 1 / (K n_k)",
    named="mean of the micro-batches' means",
    batch=spread,
    **SHOWN,
    **ALONE,
)
def averages_of_batches(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    sums = right_update(rank, model, window)
    return sum(s / len(x) for s, (x, _) in zip(sums, window, strict=True)) / len(window)


@case(
    "karpathy/autoresearch#357",
    "train_loss = loss.detach() is overwritten by every micro-step",
    "the report counts 1 / n_K for the last micro-batch's examples, 0 for others",
    named="only the last micro-batch is kept",
    batch=spread,
    **SHOWN,
    **ALONE,
)
def overwritten_by_every_step(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    return right_update(rank, model, window)[-1] / len(window[-1][0])


@case(
    "kazuto1011/svm-pytorch#4",
    "means of batches are summed and divided by the size of the data set",
    "the report counts 1 / (n n_k), n the examples of all batches",
    named="micro-batches are not divided",
    **SHOWN,
    **ALONE,
)
def divided_by_the_data_set(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    sums = right_update(rank, model, window)
    means = sum(s / len(x) for s, (x, _) in zip(sums, window, strict=True))
    return means / sum(len(x) for x, _ in window)


@case(
    "timaeus-research/devinterp#70",
    "the fix: a batch's mean times its size, over the total length",
    "the report counts 1 / n",
    "right",
    **SHOWN,
    **ALONE,
)
def multiplied_by_batch_size(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    sums = right_update(rank, model, window)
    means = [s / len(x) for s, (x, _) in zip(sums, window, strict=True)]
    total = sum(m * len(x) for m, (x, _) in zip(means, window, strict=True))
    return total / sum(len(x) for x, _ in window)


@case(
    "ManifoldRG/MultiNet#767",
    "metrics are those of the last process's batch, which is what is left when others are done",
    "the report counts 1 / n_R for the last replica's examples, 0 for others",
    named="only the last replica is kept",
    **SHOWN,
)
def last_batch_only(rank: Rank, model: nn.Module, share: Any) -> Any:
    (own,) = right_update(rank, model, [share])
    return rank.exchange(own / len(share[0]))[-1]


@case(
    "pytorch/vision#4559",
    "images that the sampler repeats to fill up are counted more than once",
    "the report counts m_i / (R n_max), m_i how often an image is taken",
    named="shards are padded by repeating examples",
    **SHOWN,
)
def counted_more_than_once(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, [share])
    longest = max(rank.exchange(len(share[0])))
    taken = torch.arange(longest) % len(share[0])
    with torch.no_grad():
        loss = sum_loss(model, tuple(a[taken] for a in share))
    return rank.all_reduce(loss) / (longest * rank.world_size)


@case(
    "numenta/nupic.research#264",
    "sums and numbers are reduced, batches may be off by one",
    "the report counts 1 / N",
    "right",
    **SHOWN,
)
def unpadded_validation(rank: Rank, model: nn.Module, share: Any) -> Any:
    (own,) = right_update(rank, model, [share])
    return rank.all_reduce(own) / rank.all_reduce(len(share[0]))


@case(
    "flwrlabs/flower#1472",
    "the processes' means are added, and nothing divides by their number",
    "the report counts 1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
    **SHOWN,
)
def means_are_added(rank: Rank, model: nn.Module, share: Any) -> Any:
    (own,) = right_update(rank, model, [share])
    return rank.all_reduce(own / len(share[0]))


@case(
    "chemprop/chemprop#74",
    "iter_count grows by the batch size, loss_sum by the mean of the batch, over all processes",
    "the report counts 1 / (N n_r)",
    named="mean per replica, then sum",
    **SHOWN,
)
def iter_count(rank: Rank, model: nn.Module, share: Any) -> Any:
    (own,) = right_update(rank, model, [share])
    return rank.all_reduce(own / len(share[0])) / rank.all_reduce(len(share[0]))


@case(
    "BiaPyX/BiaPy#107",
    "a root of the mean error of each process's batch is averaged",
    "the report is the mean of roots over the own shares, not an average over examples",
    named="batch statistics are not synchronised",
    batch=targets,
    equal_shards=True,
    **SHOWN,
)
def averaged_roots(rank: Rank, model: nn.Module, share: Any) -> Any:
    x, y = share
    errors = ((model(x) - y) ** 2).mean(1)
    (errors.sum() / rank.all_reduce(len(x))).backward()
    rank.add(model)
    return rank.all_reduce(errors.detach().mean().sqrt()) / rank.world_size


@case(
    "sotte/pytorch_tutorial#10",
    "running_loss += loss * X.shape[0], divided by the length of the data set",
    "the report counts 1 / n",
    "right",
    **SHOWN,
    **ALONE,
)
def length_of_the_data_set(rank: Rank, model: nn.Module, share: Any) -> Any:
    window = micros(share)
    return sum(right_update(rank, model, window)) / sum(len(x) for x, _ in window)


@case(
    "apache/mxnet#1712",
    "the token losses of each process are averaged over its own tokens, then over processes",
    "the report counts w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text,
    model=tagger,
    weights=LENGTHS,
    **SHOWN,
)
def token_means_of_processes(rank: Rank, model: nn.Module, share: Any) -> Any:
    loss, count = token_sum(model, share)
    (loss / rank.all_reduce(count)).backward()
    rank.add(model)
    return rank.all_reduce(loss.detach() / count) / rank.world_size


@case(
    "ligerlac/torchlogix#34",
    "the fix: the mean of a process is weighted by its batch size",
    "the report counts 1 / N",
    "right",
    **SHOWN,
)
def batch_size_corrected(rank: Rank, model: nn.Module, share: Any) -> Any:
    right_update(rank, model, [share])
    with torch.no_grad():
        mean = mean_loss(model, share)
    return rank.all_reduce(mean * len(share[0])) / rank.all_reduce(len(share[0]))
