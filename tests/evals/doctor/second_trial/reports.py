"""Losses and metrics that are printed; the update beside them is right."""

from __future__ import annotations

from torch_ranks import *

from .dense import padded


def hard_and_easy() -> tuple[np.ndarray, ...]:
    """Examples whose losses differ much."""
    x, y = vectors()
    return x * np.linspace(5, 0.2, len(x), dtype=np.float32)[:, None], y


def hard_and_easy_words() -> tuple[np.ndarray, ...]:
    """Sequences whose losses differ much."""
    x, y = text()
    return x * np.linspace(6, 0.2, len(x), dtype=np.float32)[:, None, None], y


def short_ones_first() -> tuple[np.ndarray, ...]:
    """The same in the order of their lengths, as loaders with buckets give them."""
    return tuple(a[np.argsort(LENGTHS, kind="stable")] for a in hard_and_easy_words())


REPORT: dict[str, Any] = {"batch": hard_and_easy, "where": "report"}
WORDS: dict[str, Any] = {
    "batch": hard_and_easy_words,
    "model": tagger,
    "weights": LENGTHS,
    "where": "report",
}


def learn(rank: Rank, model: nn.Module, share: Any) -> None:
    """A right update of a share or window."""
    window = micros(share)
    total = rank.all_reduce(sum(len(x) for x, _ in window))
    for batch in window:
        (sum_loss(model, batch) / total * rank.world_size).backward()
    rank.average(model)


def read(rank: Rank, model: nn.Module, share: Any) -> None:
    """A right update of tokens."""
    loss, count = token_sum(model, share)
    (loss / rank.all_reduce(count) * rank.world_size).backward()
    rank.average(model)


@case(
    "KellerJordan/modded-nanogpt#2",
    "the loss that is printed was not all-reduced: it is that of rank 0",
    "the report counts 1 / n_0 for the first rank's examples, 0 for others",
    named="the replicas are not reduced",
    **REPORT,
)
def printed_without_all_reduce(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return mean_loss(model, share)


@case(
    "ORNL/HydraGNN#116",
    "the sum of a rank's losses is divided by the samples of the whole data set",
    "the report counts 1 / N for the first rank's examples, 0 for others",
    named="the replicas are not reduced, though divided by all",
    **REPORT,
)
def divided_by_the_data_set(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return sum_loss(model, share) / rank.all_reduce(len(share[0]))


@case(
    "ORNL/HydraGNN#116",
    "the fix: samples are counted, and sums and counts are added over ranks",
    "1 / N in both",
    "right",
)
def samples_are_counted(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return rank.all_reduce(sum_loss(model, share)) / rank.all_reduce(len(share[0]))


@case(
    "BottleCapAI/NoCap-Test#2",
    "the logged loss is divided by the accumulation steps in the loop and after it",
    "the report counts 1 / (K^2 n_k)",
    named=(
        "means of micro-batches are added over replicas; and all is divided by the "
        "micro-batches"
    ),
    **REPORT, **ALONE,
)  # fmt: skip
def logged_loss_divided_twice(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window, train_loss = micros(share), torch.zeros(())
    for batch in window:
        train_loss += mean_loss(model, batch).detach() / len(window)
    return train_loss / len(window)


@case(
    "zipzou/hf-multitask-trainer#7",
    "the components' mean is multiplied by the accumulation steps",
    "the report counts 1 / n_k, K times too much",
    named="micro-batches are not divided",
    **REPORT, **ALONE,
)  # fmt: skip
def multiplied_by_the_steps(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    mean = sum(mean_loss(model, batch).detach() for batch in window) / len(window)
    return mean * len(window)


@case(
    "RUCAIBox/RecBole#1872",
    "means of ranks are weighted by what their loaders hold, repeated samples included",
    "the report counts c_i / (R n_max), c_i how often an example is repeated",
    named="shards are padded by repeating examples",
    **REPORT,
)
def metric_with_duplicates(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    batch = padded(rank, share)
    with torch.no_grad():
        value, count = sum_loss(model, batch), len(batch[0])
    return rank.all_reduce(value) / rank.all_reduce(count)


@case(
    "Lightning-AI/pytorch-lightning#5680",
    "the loss of the last micro-batch is logged, divided by accumulate_grad_batches",
    "the report counts 1 / (K n_K) for the last micro-batch, 0 for others",
    named="only the last micro-batch is kept, and divided by their number",
    **REPORT, **ALONE,
)  # fmt: skip
def last_loss_over_the_steps(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    return mean_loss(model, window[-1]) / len(window)


@case(
    "facebookresearch/ParlAI#623",
    "the average of the average losses of workers, whatever their tokens",
    "the report counts w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def average_of_averages(rank: Rank, model: nn.Module, share: Any) -> Any:
    read(rank, model, share)
    return rank.all_reduce(token_mean(model, share)) / rank.world_size


@case(
    "keras-team/keras-hub#2958",
    "before: a batch's mean over its tokens is weighted by its sequences",
    "the report counts n_r w_i / (N W_r)",
    named=(
        "the weights of each replica divides; the examples of the global batch divides; the "
        "examples of each replica multiplies"
    ),
    batch=short_ones_first, model=tagger, weights=sorted(LENGTHS), where="report",
)  # fmt: skip
def weighted_by_sequences(rank: Rank, model: nn.Module, share: Any) -> Any:
    read(rank, model, share)
    batch_size = len(share[0])
    aggregate = rank.all_reduce(token_mean(model, share) * batch_size)
    return aggregate / rank.all_reduce(batch_size)


@case(
    "keras-team/keras-hub#2958",
    "the fix: losses over all tokens are added, and their number",
    "w_i / W in both",
    "right",
    batch=text, model=tagger, weights=LENGTHS,
)  # fmt: skip
def tokens_are_added(rank: Rank, model: nn.Module, share: Any) -> Any:
    read(rank, model, share)
    loss, count = token_sum(model, share)
    return rank.all_reduce(loss) / rank.all_reduce(count)


@case(
    "udacity/deep-learning-v2-pytorch#415",
    "losses of batches are added and divided by len(loader), the last one is shorter",
    "the report counts 1 / (K n_k)",
    named="mean of the micro-batches' means",
    **REPORT, **ALONE,
)  # fmt: skip
def divided_by_len_loader(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    return sum(mean_loss(model, batch).item() for batch in window) / len(window)


@case(
    "dnouri/nolearn#248",
    "losses of batches are averaged with their sizes for weights",
    "1 / N in both",
    "right",
    **ALONE,
)
def averaged_with_sizes(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    sizes = [len(x) for x, _ in window]
    losses = [mean_loss(model, batch).item() for batch in window]
    return sum(n * loss for n, loss in zip(sizes, losses, strict=True)) / sum(sizes)


@case(
    "davidnabergoj/torchflows#7",
    "the validation loss is the sum of the batches' means",
    "the report counts 1 / n_k, K times too much",
    named="micro-batches are not divided",
    **REPORT, **ALONE,
)  # fmt: skip
def sum_of_batch_means(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return sum(mean_loss(model, batch).item() for batch in micros(share))


@case(
    "mahmoodlab/PathomicFusion#3",
    "means of batches are added and divided by the number of images",
    "the report counts 1 / (N n_k)",
    named="micro-batches are not divided",
    **REPORT, **ALONE,
)  # fmt: skip
def means_over_images(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    images = sum(len(x) for x, _ in window)
    return sum(mean_loss(model, batch).item() for batch in window) / images


@case(
    "prajdabre/yanmtt#62",
    "the loss is reduced over all processes, which have as many examples",
    "1 / (R n_r) in the report, which is 1 / N for equal shares",
    "even",
)
def reduced_loss(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return rank.all_reduce(mean_loss(model, share)) / rank.world_size


@case(
    "lightly-ai/lightly-train#662",
    "the mean of the train loss over the accumulation steps of one size",
    "1 / (K n_k) in the report, which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def mean_over_accumulation(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    window = micros(share)
    return sum(mean_loss(model, batch).detach() for batch in window) / len(window)


@case(
    "Nota-NetsPresso/netspresso-trainer#360",
    "AverageMeter takes ranks for equally large: the mean of their means",
    "the report counts 1 / (R n_r)",
    named="mean of the replicas' means",
    **REPORT,
)
def average_meter(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return rank.all_reduce(mean_loss(model, share)) / rank.world_size


@case(
    "torchmd/torchmd-cg#15",
    "a sum over ranks of what each logs, its mean",
    "the report counts 1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True, **REPORT,
)  # fmt: skip
def logged_sum_of_ranks(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    return rank.all_reduce(mean_loss(model, share))


@case(
    "pwhofman/probly#558",
    "the batches' means are added and divided by the loader's nominal length of two",
    "the report counts 1 / (2 n_k), whatever K",
    named="micro-batches are not divided",
    **REPORT, micro_batches=(1, 3), replicas=(1,),
)  # fmt: skip
def nominal_length(rank: Rank, model: nn.Module, share: Any) -> Any:
    learn(rank, model, share)
    nominal = 2
    return sum(mean_loss(model, batch).item() for batch in micros(share)) / nominal
