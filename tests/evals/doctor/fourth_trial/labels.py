"""Losses over tokens, frames, labels and weighted samples."""

from __future__ import annotations

from torch_ranks import *

SAMPLES: dict[str, Any] = {"batch": weighted, "weights": WEIGHTS}


def by_sentence(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The summed loss of each sentence, and its tokens."""
    x, labels = batch
    losses = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    return losses.sum(1), (labels != PAD).sum(1)


@case(
    "lucidrains/x-transformers#291",
    "loss[mask].mean(): batches of short sequences weigh their tokens more",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def mean_of_the_unmasked(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    losses = F.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=PAD, reduction="none")
    losses[labels != PAD].mean().backward()
    rank.average(model)


@case(
    "lucidrains/x-transformers#291",
    "the proposal: masked values count zero and numel divides, all sequences padded alike",
    "1 / (R n_r) for each sequence, which is 1 / N for equal shares",
    "even",
    **SENTENCES,
)
def divided_by_numel(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    numel = share[1].numel()
    (losses.sum() / numel).backward()
    rank.average(model)


@case(
    "lucidrains/x-transformers#291",
    "the proposal where each process has another number of sequences",
    "1 / (R n_r) for each sequence",
    named="mean of the replicas' means",
    **SENTENCES,
)
def numel_of_other_sizes(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    (losses.sum() / share[1].numel()).backward()
    rank.average(model)


@case(
    "dmlc/gluon-nlp#238",
    "per sequence the mean over the maximal length; trainer.step divides by the global batch",
    "1 / N for each sequence",
    "right",
    **SENTENCES,
)
def padding_is_in_the_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    (losses / share[1].shape[1]).sum().backward()
    rank.add(model)
    scale_grads(model, 1.0 / rank.all_reduce(len(share[0])))


@case(
    "dmlc/gluon-nlp#238",
    "the workaround: rescaled by the valid length, the mean over a device's batch, devices added",
    "1 / n_r for each sequence, R times too much",
    named="mean per replica, then sum",
    **SENTENCES,
)
def rescaled_by_valid_length(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, lengths = by_sentence(model, share)
    (losses / lengths).mean().backward()
    rank.add(model)


@case(
    "lucidrains/mlm-pytorch#3",
    "the loss of masked tokens only, whose number differs between processes",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def masked_tokens_only(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "NVIDIA-BioNeMo/bionemo-recipes#900",
    "the fix: token sums and counts are reduced over data-parallel ranks, one division",
    "w_i / W",
    "right",
    **WORDS,
    **WINDOWS,
)
def sums_and_counts(rank: Rank, model: nn.Module, share: Any) -> None:
    tokens = torch.zeros(())
    for batch in micros(share):
        loss_sum, num_valid_tokens = token_sum(model, batch)
        loss_sum.backward()
        tokens = tokens + num_valid_tokens
    rank.add(model)
    scale_grads(model, 1.0 / rank.all_reduce(tokens))


@case(
    "NVIDIA-BioNeMo/bionemo-recipes#900",
    "before: the mean over each microbatch's tokens, averaged over microbatches and ranks",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **WORDS,
    **WINDOWS,
)
def mean_of_each_microbatch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (token_mean(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "ArcInstitute/evo2#187",
    "on several GPUs each averages its unpadded bases, gradients are averaged",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def bases_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, bases = token_sum(model, share)
    (loss / bases.clamp(min=1)).backward()
    rank.average(model)


@case(
    "akaszubski/autonomous-dev#413",
    "token_level_loss is a mean over sequences, whose number differs between workers",
    "1 / (R n_r) for each sequence",
    named="mean of the replicas' means",
    **SENTENCES,
)
def token_level_is_sequence_level(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    (losses.sum() / max(losses.numel(), 1)).backward()
    rank.average(model)


@case(
    "akaszubski/autonomous-dev#413",
    "what it should be: objective / total_tokens, with the tokens of the worker's own batch",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def total_tokens_of_a_worker(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, lengths = by_sentence(model, share)
    total_tokens = lengths.sum()
    (losses.sum() / total_tokens).backward()
    rank.average(model)


@case(
    "speechbrain/speechbrain#875",
    "an utterance's loss is normalised by its length, the batch is averaged, ranks are alike",
    "1 / (R n_r) for each utterance, which is 1 / N for equal shares",
    "even",
    **SENTENCES,
)
def normalised_by_frames(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, frames = by_sentence(model, share)
    (losses / frames).mean().backward()
    rank.average(model)


@case(
    "speechbrain/speechbrain#796",
    "the loss is averaged by frames of the batch, batches of seconds have all kinds of sizes",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def averaged_by_frames(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.average(model)


@case(
    "PaddlePaddle/PaddleSpeech#660",
    "the sum over utterances over the batch size of a card, cards have other batches",
    "1 / (R n_r) for each utterance",
    named="mean of the replicas' means",
    **SENTENCES,
)
def sum_over_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    batch_size = len(share[0])
    (losses.sum() / batch_size).backward()
    rank.average(model)


@case(
    "PaddlePaddle/PaddleSpeech#660",
    "batch_average is False: the sum over utterances, cards are averaged",
    "1 / R instead of 1 for each utterance",
    named="divided by the global batch, then averaged",
    **SENTENCES,
)
def no_batch_average(rank: Rank, model: nn.Module, share: Any) -> None:
    losses, _ = by_sentence(model, share)
    losses.sum().backward()
    rank.average(model)


@case(
    "linkedin/Liger-Kernel#444",
    "a fused loss over chunks of sequences, each chunk's token mean, averaged over chunks",
    "w_i / (R m_r W_c) with W_c of a chunk, m_r chunks of a rank",
    named=(
        "the weights of each chunk of 2 examples that the step cuts divides; their number "
        "divides; all is divided by the replicas"
    ),
    **WORDS,
)
def means_of_chunks(rank: Rank, model: nn.Module, share: Any) -> None:
    chunks = list(pieces(share, 2))
    for chunk in chunks:
        (token_mean(model, chunk) / len(chunks)).backward()
    rank.average(model)


@case(
    "linkedin/Liger-Kernel#444",
    "a fused loss over chunks, each divided by the tokens of the full target, of all ranks",
    "w_i / W",
    "right",
    **WORDS,
)
def chunks_over_the_full_target(rank: Rank, model: nn.Module, share: Any) -> None:
    tokens = rank.all_reduce((share[1] != PAD).sum())
    for chunk in pieces(share, 2):
        (token_sum(model, chunk)[0] * rank.world_size / tokens).backward()
    rank.average(model)


@case(
    "ServiceNow/Fast-LLM#321",
    "the language loss over the labels of all, the distillation loss over those of a rank",
    "two parts: w_i / W; w_i / (R W_r) for the second",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean of the replicas' means"
    ),
    batch=text,
    model=tagger,
)
def distillation_over_own_tokens(rank: Rank, model: nn.Module, share: Any) -> None:
    x, labels = share
    loss, tokens = token_sum(model, share)
    teacher = torch.softmax(x[..., :4], -1)
    kl = F.kl_div(model(x).log_softmax(-1), teacher, reduction="none").sum(-1)
    distill = (kl * (labels != PAD)).sum() / tokens
    (loss * rank.world_size / rank.all_reduce(tokens) + 0.7 * distill).backward()
    rank.average(model)


@case(
    "mlcommons/GaNDLF#151",
    "class weights are counted in the batch of each GPU",
    "1 / (R n_r) times a weight that the own share's labels make",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def weights_counted_in_a_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    counts = torch.bincount(y, minlength=3).float()
    penalty = 1 - counts / counts.sum()
    F.cross_entropy(model(x), y, weight=penalty, reduction="none").mean().backward()
    rank.average(model)


@case(
    "mlcommons/GaNDLF#151",
    "class weights are counted once, in all of the batch",
    "v_i / N, v_i the weight of the class",
    "right",
)
def weights_counted_in_all(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    counts = rank.all_reduce(torch.bincount(y, minlength=3).float())
    penalty = 1 - counts / counts.sum()
    loss = F.cross_entropy(model(x), y, weight=penalty, reduction="sum")
    (loss * rank.world_size / counts.sum()).backward()
    rank.average(model)


CLASS_WEIGHTS = [0.4, 1.0, 2.5]


@case(
    "EthanRosenthal/spacecutter#16",
    "class weights are multiplied with the losses, the mean over examples",
    "v_i / (R n_r), v_i the weight of the class, which is v_i / N for equal shares",
    "even",
)
def class_weights_are_multiplied(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    nll = F.cross_entropy(model(x), y, reduction="none")
    (torch.tensor(CLASS_WEIGHTS)[y] * nll).mean().backward()
    rank.average(model)


@case(
    "EthanRosenthal/spacecutter#16",
    "normalised by the sum of the weights, of the own batch",
    "v_i / (R V_r), V_r the class weights of a replica",
    named="mean of the replicas' means",
)
def class_weights_are_normalised(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    v = torch.tensor(CLASS_WEIGHTS)[y]
    nll = F.cross_entropy(model(x), y, reduction="none")
    ((v * nll).sum() / v.sum()).backward()
    rank.average(model)


@case(
    "DeepRank/deeprank#120",
    "nn.CrossEntropyLoss(weight=...) of accumulated batches, over their number",
    "v_i / (K V_k), V_k the class weights of a micro-batch",
    named="mean of the micro-batches' means",
    **ALONE,
)
def weighted_criterion(rank: Rank, model: nn.Module, share: Any) -> None:
    criterion = nn.CrossEntropyLoss(weight=torch.tensor(CLASS_WEIGHTS))
    window = micros(share)
    for x, y in window:
        (criterion(model(x), y) / len(window)).backward()


@case(
    "macournoyer/neuralconvo#67",
    "what the question asks for, as a loss: summed over a window's tokens, divided at its end",
    "w_i / W",
    "right",
    **WORDS,
    **ALONE,
)
def collected_and_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    targets = torch.zeros(())
    for batch in micros(share):
        loss, count = token_sum(model, batch)
        loss.backward()
        targets = targets + count
    scale_grads(model, 1.0 / targets)


@case(
    "macournoyer/neuralconvo#67",
    "the total loss of a batch over its average sequence length, averaged over batches",
    "n_k w_i / (K W_k): where one device has N w_i / W",
    named=(
        "the weights of each micro-batch of each replica divides; the examples of the global "
        "batch divides; the examples of each micro-batch of each replica multiplies; all is "
        "divided by the micro-batches"
    ),
    weights=LENGTHS,
    **SENTENCES,
    **ALONE,
)
def over_the_average_length(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        losses, lengths = by_sentence(model, batch)
        (losses.sum() / lengths.float().mean() / len(window)).backward()


@case(
    "Nixtla/neuralforecast#1571",
    "windows have sample weights: weighted sums over the weights of all devices",
    "w_i / W",
    "right",
    **SAMPLES,
)
def weighted_windows(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() * rank.world_size / rank.all_reduce(w.sum())).backward()
    rank.average(model)


@case(
    "Nixtla/neuralforecast#1571",
    "the same, but each device's weighted mean, averaged",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **SAMPLES,
)
def weighted_mean_of_a_device(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y, w = share
    losses = F.cross_entropy(model(x), y, reduction="none")
    ((losses * w).sum() / w.sum()).backward()
    rank.average(model)
