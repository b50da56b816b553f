"""Windows of micro-batches: what is divided, added, limited and thrown away in them."""

from __future__ import annotations

from torch_ranks import *

LIMIT = 0.1


@case(
    "llm-random/llm-random#529",
    "losses are divided by the accumulation steps where they are computed, and in the loop again",
    "1 / (K^2 n_k)",
    named=(
        "means of micro-batches are added over replicas; and all is divided by the micro-batches"
    ),
    **ALONE,
)
def divided_in_loss_and_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch) / len(window)
        (loss / len(window)).backward()


@case(
    "ApolloResearch/e2e_sae#70",
    "the division by the accumulation steps was removed, but losses are means",
    "1 / n_k, K times too much",
    named="micro-batches are not divided",
    **ALONE,
)
def division_removed(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()


@case(
    "ApolloResearch/e2e_sae#70",
    "the fix: the loss is divided by the accumulation steps, whose batches are of one size",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def division_is_back(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()


@case(
    "unslothai/unsloth-zoo#6",
    "the losses of micro-batches, means over their tokens, are summed: no denominator",
    "w_i / W_k, K times too much",
    named="micro-batches are not divided",
    **WORDS, **ALONE,
)  # fmt: skip
def added_without_denominator(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        token_mean(model, batch).backward()


@case(
    "unslothai/unsloth-zoo#6",
    "sums over n_items, the tokens of all micro-batches, which are counted beforehand",
    "w_i / W",
    "right",
    **WORDS, **ALONE,
)  # fmt: skip
def n_items_of_the_window(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    n_items = sum((labels != -100).sum() for _, labels in window)
    for batch in window:
        (token_sum(model, batch)[0] / n_items).backward()


@case(
    "OpenHelix-Team/cobra#19",
    "before: token means of micro-batches, over their number",
    "w_i / (K W_k)",
    named="mean of the micro-batches' means",
    **WORDS, **ALONE,
)  # fmt: skip
def unbalanced_accumulation(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (token_mean(model, batch) / len(window)).backward()


@case(
    "Adit-Jain-srm/NightmareNet#562",
    "the last window of an epoch is divided by the configured steps, not by its own",
    "1 / (4 n_k) with 4 configured steps, whatever K: too small by 4 / K",
    named="micro-batches are not divided",
    **ALONE,
)
def configured_steps(rank: Rank, model: nn.Module, share: Any) -> None:
    grad_accum = 4
    for batch in micros(share):
        (mean_loss(model, batch) / grad_accum).backward()


@case(
    "jingyaogong/minimind#749",
    "the proposal: gradients of the rest are multiplied by accumulation_steps / rem",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def rest_is_corrected(rank: Rank, model: nn.Module, share: Any) -> None:
    accumulation_steps, window = 8, micros(share)
    for batch in window:
        (mean_loss(model, batch) / accumulation_steps).backward()
    scale_grads(model, accumulation_steps / len(window))


@case(
    "facebookresearch/lingua#59",
    "before: gradients are clipped after each accumulation step, accumulated ones again",
    "c(... c(c(g_1) + g_2) + g_K) of the micro-batches' gradients with 1 / (K n_k)",
    named="gradients are clipped in every micro-batch",
    **ALONE,
)
def clipped_in_each_step(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), LIMIT)


@case(
    "swathikirans/GSM#22",
    "the answer: clip(grads1 + grads2), once, before the optimizer's step",
    "min(1, c / |g|) of the whole gradient; 1 / (K n_k) for equal micro-batches",
    "even",
    **ALONE,
)
def clipped_before_the_step(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)


@case(
    "simchowitzlabpublic/nano-world-model#22",
    "the limit is applied before backward: on what was accumulated until then, never on the last",
    "c(... c(g_1) + g_2 ...) + g_K: the last micro-batch is not limited",
    **ALONE,
)
def clipped_before_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        loss = mean_loss(model, batch) / len(window)
        nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
        loss.backward()


@case(
    "tenstorrent/tt-metal#17568",
    "gradients are averaged over devices after every backward pass, those accumulated again",
    "1 / (R K n_rk), which is 1 / N for equal shares: the mean of equal copies changes nothing",
    "even",
    **WINDOWS,
)
def synchronised_every_time(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        rank.average(model)


@case(
    "petuum/adaptdl#26",
    "the limit hits the sum over the accumulation steps, which is divided afterwards",
    "min(1, c / |K g|) / (K n_k): the limit is K times too low",
    named="gradient clipping depends on the replicas",
    **ALONE,
)
def clipped_before_the_division(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        mean_loss(model, batch).backward()
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
    scale_grads(model, 1 / len(window))


@case(
    "pytorch/torchtitan#1733",
    "the pipeline scales all gradients after each schedule, so those accumulated before again",
    "2^-(K-k) / (K n_k): older micro-batches are halved once more by each later one",
    named=(
        "what is accumulated is halved with each later micro-batch; the weights of each of 2 "
        "chunks that the step cuts divides; all is divided by the micro-batches"
    ),
    equal_shards=True, **ALONE,
)  # fmt: skip
def scaled_by_each_schedule(rank: Rank, model: nn.Module, share: Any) -> None:
    window, n_microbatches = micros(share), 2
    for batch in window:
        size = -(-len(batch[0]) // n_microbatches)
        for part in pieces(batch, size):
            (sum_loss(model, part) / size / len(window)).backward()
        scale_grads(model, 1 / n_microbatches)


@case(
    "pytorch/torchtitan#1732",
    "the fix: the loss is scaled by pipeline micro-batches and accumulation steps",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def loss_scaled_instead(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        for part in pieces(batch, -(-len(batch[0]) // 2)):
            (sum_loss(model, part) / len(batch[0]) / len(window)).backward()


@case(
    "pytorch/torchtitan#3575",
    "zero_grad is called by forward_backward: all micro-batches but the last are lost",
    "w_i / (R W) for examples of the last micro-batch, else 0; W of the whole window",
    named="the other micro-batches are lost",
    **WORDS, **WINDOWS,
)  # fmt: skip
def zero_grad_in_forward_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    tokens = rank.all_reduce(sum((labels != -100).sum() for _, labels in window))
    for batch in window:
        model.zero_grad()
        (token_sum(model, batch)[0] / tokens * rank.world_size).backward()
    rank.average(model)


@case(
    "areal-project/AReaL#1273",
    "losses are weighted by w_k / W already, and the schedule divides by the micro-batches' number",
    "w_i / (K W)",
    named="micro-batches are divided twice",
    **WORDS, **WINDOWS,
)  # fmt: skip
def schedule_divides_too(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total = rank.all_reduce(sum((labels != -100).sum() for _, labels in window))
    for batch in window:
        weight = (batch[1] != -100).sum() / total * rank.world_size
        (token_mean(model, batch) * weight / len(window)).backward()
    rank.average(model)


@case(
    "areal-project/AReaL#1273",
    "the fix: loss_multiplier contains the number of micro-batches",
    "w_i / W",
    "right",
    **WORDS, **WINDOWS,
)  # fmt: skip
def schedule_is_compensated(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    total = rank.all_reduce(sum((labels != -100).sum() for _, labels in window))
    for batch in window:
        weight = (batch[1] != -100).sum() / total * rank.world_size * len(window)
        (token_mean(model, batch) * weight / len(window)).backward()
    rank.average(model)


@case(
    "lukas-blecher/LaTeX-OCR#148",
    "gradients of the micro-batches' means are added, then multiplied by microbatch / batchsize",
    "1 / (K n_k), which is 1 / N for equal micro-batches",
    "even",
    **ALONE,
)
def scaled_by_sizes(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        mean_loss(model, batch).backward()
    microbatch, batchsize = len(window[0][0]), sum(len(x) for x, _ in window)
    scale_grads(model, microbatch / batchsize)


@case(
    "EleutherAI/gpt-neox#405",
    "step() is inside of the loop: every micro-batch changes the parameters",
    "1 / (K n_k), but gradients of micro-batches after the first are those of other parameters",
    named="the parameters change between micro-batches",
    **ALONE,
)
def step_inside_the_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    window, rate = micros(share), 1.0
    start = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for batch in window:
        optimizer.zero_grad()
        (mean_loss(model, batch) / len(window)).backward()
        optimizer.step()
    for p, old in zip(model.parameters(), start, strict=True):
        p.grad = (old - p.detach()) / rate


@case(
    "modelscope/twinkle#292",
    "token means of micro-batches, weighted by their numbers of samples",
    "n_k w_i / (N W_k)",
    named=(
        "the weights of each micro-batch of each replica divides; the examples of the global "
        "batch divides; the examples of each micro-batch of each replica multiplies"
    ),
    **WORDS, **ALONE,
)  # fmt: skip
def weighted_by_samples(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    samples = sum(len(x) for x, _ in window)
    for batch in window:
        (token_mean(model, batch) * len(batch[0]) / samples).backward()


@case(
    "modelscope/twinkle#292",
    "the fix: weighted by the fraction of the valid tokens",
    "w_i / W",
    "right",
    **WORDS, **ALONE,
)  # fmt: skip
def weighted_by_valid_tokens(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    valid = sum((labels != -100).sum() for _, labels in window)
    for batch in window:
        (token_mean(model, batch) * (batch[1] != -100).sum() / valid).backward()


@case(
    "CarperAI/trlx#364",
    "each of num_mb micro-batches of one size counts 1 / num_mb, then DDP's mean",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def num_mb_of_trlx(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "diliadis/DeepMTP#34",
    "observation-weighted gradients of uneven micro-batches, clipped once after the division",
    "min(1, c / |g|) / N of the whole gradient",
    "right",
    **ALONE,
)
def observation_weighted(rank: Rank, model: nn.Module, share: Any) -> None:
    observations = 0
    for batch in micros(share):
        (mean_loss(model, batch) * len(batch[0])).backward()
        observations += len(batch[0])
    scale_grads(model, 1 / observations)
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)


@case(
    "hirofumi0810/neural_sp#168",
    "accum_grad_n_steps: the loss is not divided, on several workers that are averaged",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    equal_shards=True, **WINDOWS,
)  # fmt: skip
def accum_grad_not_divided(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        mean_loss(model, batch).backward()
    rank.average(model)


@case(
    "flairNLP/flair#3583",
    "before: losses are sums over the whole batch, DDP averages them over processes",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    **WINDOWS,
)
def sums_of_chunks_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        sum_loss(model, batch).backward()
    rank.average(model)


@case(
    "flairNLP/flair#3583",
    "the fix: gradients of the sums are summed over processes",
    "1, a sum over all examples",
    "right",
    **WINDOWS,
)
def sums_of_chunks_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        sum_loss(model, batch).backward()
    rank.add(model)


@case(
    "awslabs/keys_values#94",
    "losses are summed over chunks, and normalised once at the end",
    "w_i / W",
    "right",
    **WORDS, **WINDOWS,
)  # fmt: skip
def normalised_at_the_end(rank: Rank, model: nn.Module, share: Any) -> None:
    tokens = torch.zeros(())
    for batch in micros(share):
        loss, count = token_sum(model, batch)
        loss.backward()
        tokens = tokens + count
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(tokens))
