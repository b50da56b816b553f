"""Programs of real DistributedDataParallel."""

from __future__ import annotations

from torch_processes import *


class TwoParts(nn.Module):
    """An encoder and a head, which are also called one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 12), nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.encoder(x)))


@case(
    "elvisyjlin/AttGAN-PyTorch#6",
    "parts are called through .module, past the wrapper: gradients are not exchanged",
    "1 / n_0 for the first rank's examples on its copy: every copy has its own update",
    named="the replicas' parameters differ",
    equal_shards=True,
)
def called_through_module() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        x, y = share
        z = torch.tanh(model.module.encoder(x.float()))
        F.cross_entropy(model.module.head(z), y.long()).backward()

    return TwoParts(), run


@case(
    "elvisyjlin/AttGAN-PyTorch#6",
    "all goes through forward of the wrapped model, equal shares",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    **LOSS,
)
def called_through_forward() -> Any:
    return TwoParts(), mean_loss


@case(
    "NVlabs/stylegan2-ada-pytorch#233",
    "the forward is under no_sync, the backward is not, also in the last round: never exchanged",
    "1 / (K n_0k) for the first rank's examples on its copy: every copy has its own update",
    named="the replicas' parameters differ",
    equal_shards=True,
    **WINDOWS,
)
def forward_under_no_sync() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window:
            with model.no_sync():
                loss = mean_loss(model, batch)
            (loss / len(window)).backward()

    return mlp(), run


@case(
    "NVlabs/stylegan2-ada-pytorch#233",
    "the forward is under no_sync but in the last round, the backward never is",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def forward_decides() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window[:-1]:
            with model.no_sync():
                loss = mean_loss(model, batch)
            (loss / len(window)).backward()
        (mean_loss(model, window[-1]) / len(window)).backward()

    return mlp(), run


@case(
    "mlfoundations/open_lm#60",
    "no_sync for all but the last, each loss over the accumulated steps, lengths differ",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **WORDS,
    **WINDOWS,
)
def accumulated_token_means() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window[:-1]:
            with model.no_sync():
                loss, count = tokens(model, batch)
                (loss / count / len(window)).backward()
        loss, count = tokens(model, window[-1])
        (loss / count / len(window)).backward()

    return tagger(), run


@case(
    "Haian-Jin/LVSM#22",
    "the backward is under no_sync, the forward is not: synchronised at each step, the same",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def backward_under_no_sync() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window[:-1]:
            loss = mean_loss(model, batch) / len(window)
            with model.no_sync():
                loss.backward()
        (mean_loss(model, window[-1]) / len(window)).backward()

    return mlp(), run


@case(
    "gpauloski/kfac-pytorch#34",
    "gradients are divided by the world size once more, after DDP's mean",
    "1 / (R^2 n_r)",
    named="divided by the global batch, then averaged",
    equal_shards=True,
    batch=images,
)
def divided_after_ddp() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        mean_loss(model, share).backward()
        for p in model.parameters():
            p.grad /= dist.get_world_size()

    return convolutions(), run


@case(
    "verl-project/verl-SpeCo#29",
    "loss and tokens are all-reduced before the backward, which sees the own part",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **WORDS,
)
def reduced_before_backward() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        rest = total(loss.detach()) - loss.detach()
        ((loss + rest) / total(count)).backward()

    return tagger(), run


@case(
    "verl-project/verl-SpeCo#29",
    "the fix: the own sum times the world size over the tokens of all",
    "w_i / W",
    "right",
    **WORDS,
)
def scaled_by_reduce_world_size() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        loss, count = tokens(model, share)
        global_tokens = total(count)
        (loss * dist.get_world_size() / global_tokens).backward()

    return tagger(), run


@case(
    "shubham-goel/4D-Humans#85",
    "losses are summed over the batch, and DDP averages",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets,
    **LOSS,
)
def summed_under_ddp() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        x, y = batch
        return F.l1_loss(model(x.float()), y.float(), reduction="sum")

    return mlp(), loss


@case(
    "lucidrains/mlm-pytorch#3",
    "cross entropy of the masked tokens of a process",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
    **LOSS,
)
def masked_tokens_of_a_process() -> Any:
    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        x, labels = batch
        logits = model(x.float()).transpose(1, 2)
        return F.cross_entropy(logits, labels.long(), ignore_index=PAD)

    return tagger(), loss


@case(
    "yangkky/distributed_tutorial#6",
    "the tutorial's loop with a reduced loss: means over processes, shares differ",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    **LOSS,
)
def loop_of_the_tutorial() -> Any:
    return mlp(), mean_loss


@case(
    "ServiceNow/PipelineRL#36",
    "sequences of all processes and passes are counted, times the world size",
    "1 / N",
    "right",
    **WINDOWS,
)
def counted_over_passes() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        n = total(sum(len(x) for x, _ in window))
        for batch in window[:-1]:
            with model.no_sync():
                (mean_loss(model, batch) * len(batch[0]) * dist.get_world_size() / n).backward()
        last = window[-1]
        (mean_loss(model, last) * len(last[0]) * dist.get_world_size() / n).backward()

    return mlp(), run
